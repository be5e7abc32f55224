//! The gene and its segments.
//!
//! A nucleotide is two bits and a segment one 128-bit number, so that the parts of segments are compared in one step.

use super::GenomeOptions;
use hotrow_sync::random::Random;
use std::collections::HashSet;

/// A segment, or a part of one: two bits for each nucleotide, the last one lowest.
pub(crate) type Nucleotides = u128;

/// The smallest overlap of two segments that are neighbours in the gene.
///
/// No part of the gene of this length occurs twice, so segments that overlap by as much are neighbours, and the gene is
/// the only result. There are 16 times more such parts than pairs of places in the gene.
pub(crate) fn overlap_min(gene_length: usize) -> usize {
    let pairs_log2 = 2 * (usize::BITS - gene_length.leading_zeros()) as usize;
    pairs_log2.div_ceil(2) + 2
}

/// Returns the last `length` nucleotides.
pub(crate) fn last(nucleotides: Nucleotides, length: usize) -> Nucleotides {
    if length == 64 { nucleotides } else { nucleotides & ((1 << (2 * length)) - 1) }
}

/// Returns the first `length` nucleotides of a segment of `segment_length`.
pub(crate) fn first(segment: Nucleotides, segment_length: usize, length: usize) -> Nucleotides {
    if length == 0 { 0 } else { segment >> (2 * (segment_length - length)) }
}

/// The input: segments of a gene, in random order, many of them several times.
pub(crate) struct Segments {
    /// The gene, for the verification.
    pub(crate) gene: Vec<u8>,
    /// The contents of the segments at each place of the gene.
    contents: Vec<Nucleotides>,
    /// The segments: places in the gene.
    places: Vec<u32>,
}

impl Segments {
    /// Draws a gene and its segments. Places are drawn at random, and then filled in so that neighbours overlap by
    /// at least [`overlap_min`].
    pub(crate) fn generate(options: &GenomeOptions) -> Self {
        let mut random = Random::seeded(options.seed);
        let overlap_min = overlap_min(options.gene_length);
        let gene = draw_gene(options.gene_length, overlap_min, &mut random);
        let mut window = 0;
        let windows = gene.iter().map(|nucleotide| {
            window = last(window << 2 | Nucleotides::from(*nucleotide), options.segment_length);
            window
        });
        let contents: Vec<Nucleotides> = windows.skip(options.segment_length - 1).collect();
        let mut places: Vec<u32> =
            (0..options.segments).map(|_| random.below(contents.len() as u64) as u32).collect();
        let step = options.segment_length - overlap_min;
        places.extend(missing(&places, contents.len(), step));
        random.shuffle(&mut places);
        Self { gene, contents, places }
    }

    /// The number of segments.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The content of a segment.
    pub(crate) fn content(&self, index: usize) -> Nucleotides {
        self.contents[self.places[index] as usize]
    }
}

/// Draws a gene in which no `distinct` nucleotides occur twice.
fn draw_gene(length: usize, distinct: usize, random: &mut Random) -> Vec<u8> {
    loop {
        let mut gene = Vec::with_capacity(length);
        let mut seen = HashSet::with_capacity(length);
        let mut window = 0;
        while gene.len() < length {
            let start = random.below(4) as u8;
            let is_new = |nucleotide: &u8| {
                let next = last(window << 2 | Nucleotides::from(*nucleotide), distinct);
                gene.len() + 1 < distinct || !seen.contains(&next)
            };
            let Some(nucleotide) = (0..4).map(|offset| (start + offset) % 4).find(is_new) else { break };
            window = last(window << 2 | Nucleotides::from(nucleotide), distinct);
            gene.push(nucleotide);
            if gene.len() >= distinct {
                seen.insert(window);
            }
        }
        if gene.len() == length {
            return gene;
        }
    }
}

/// Returns places that are missing: the first, the last, and some wherever two places are more than `step` apart.
fn missing(places: &[u32], length: usize, step: usize) -> Vec<u32> {
    let mut is_present = vec![false; length];
    for place in places {
        is_present[*place as usize] = true;
    }
    let mut missing = Vec::new();
    let mut previous = None;
    for (place, is_present) in is_present.into_iter().enumerate() {
        let is_due = previous.is_none_or(|previous| place - previous == step) || place + 1 == length;
        if is_due && !is_present {
            missing.push(place as u32);
        }
        if is_due || is_present {
            previous = Some(place);
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_overlap_enough() {
        let options = GenomeOptions { gene_length: 500, segment_length: 24, segments: 3, seed: 1 };
        let segments = Segments::generate(&options);
        let mut places = segments.places.clone();
        places.sort_unstable();
        assert_eq!((places[0], places[places.len() - 1]), (0, 500 - 24));
        let step = (24 - overlap_min(500)) as u32;
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] <= step));
    }

    #[test]
    fn parts_of_segments_are_cut_out() {
        let segment = 0b00_01_10_11;
        assert_eq!((first(segment, 4, 3), last(segment, 3)), (0b00_01_10, 0b01_10_11));
        assert_eq!((first(u128::MAX, 64, 64), last(u128::MAX, 64)), (u128::MAX, u128::MAX));
    }
}
