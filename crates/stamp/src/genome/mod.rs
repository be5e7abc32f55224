//! genome: a gene is put together from overlapping segments (STAMP).
//!
//! 1. Workers insert all segments into a hash map, which leaves out duplicates. A transaction inserts several.
//! 2. They enter each distinct segment into tables by its first nucleotides, one table for each length.
//! 3. For each overlap, the largest first, they look for each chain's end in the table of that length, and link the
//!    chain to one that starts with the same nucleotides. A transaction links two chains.
//!
//! The runner's calls are the barriers between the steps. At the end all segments are one chain, which is the gene.

mod gene;

use crate::application::{Application, Failure, Statistics, require};
use crate::encode::encode;
use crate::options::{invalid, options};
use crate::runner::{Runner, share};
use crate::store::{Element, Lists, Map, Store, Vector};
use gene::{Nucleotides, Segments, first, last, overlap_min};
use hotrow::Value;
use hotrow_sync::{Mutex, lock};

/// The segments that one transaction of the first step inserts, as in STAMP.
const SEGMENTS_PER_TRANSACTION: usize = 12;

options! {
    /// Options of genome. STAMP's letters are in brackets.
    pub struct GenomeOptions {
        /// Nucleotides of the gene (-g).
        gene_length: usize = 16_384 in 4..=10_000_000,
        /// Nucleotides of each segment (-s).
        segment_length: usize = 48 in 4..=64,
        /// Segments, most of them several times (-n).
        segments: usize = 524_288 in 1..=1_000_000_000,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "simulator": "STAMP's parameters for simulators." {
            gene_length = 256, segment_length = 16, segments = 16_384,
        }
        "native": "STAMP's large parameters." {
            gene_length = 16_384, segment_length = 64, segments = 16_777_216,
        }
    }
    relations |options: &GenomeOptions| {
        if options.segment_length <= overlap_min(options.gene_length) {
            let reason = "expected longer segments for so long a gene: more than its length has bits, and 2";
            return Err(invalid("segment_length", options.segment_length, reason));
        }
        if options.segment_length > options.gene_length {
            return Err(invalid("segment_length", options.segment_length, "expected at most the gene's length"));
        }
        Ok(())
    };
}

/// A distinct segment and what is known of the chain to which it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value)]
#[value(inline)]
struct Link {
    /// 1 if the segment is the first of its chain, 0 if not.
    is_start: u32,
    /// The first segment of the chain, if this one is the last.
    start: u32,
    /// The last segment of the chain, if this one is the first.
    end: u32,
    /// The next segment of the chain, or the segment itself if it is the last.
    next: u32,
    /// The nucleotides that the next segment shares with this one.
    overlap: u32,
}

impl Element for Link {}

encode!(Link { is_start, start, end, next, overlap });

/// genome over a store.
pub struct Genome<S: Store> {
    store: S,
    options: GenomeOptions,
    segments: Segments,
    distinct: S::HashMap<(u64, u64), ()>,
    /// The distinct segments by their first nucleotides: a table for each length.
    starts: Vec<S::Lists<u64, u32, ()>>,
    /// The distinct segments, after the first step.
    contents: Vec<Nucleotides>,
    links: S::Vector<Link>,
    sequence: Vec<u8>,
}

/// Spreads nucleotides over 64 bits. Different ones may have the same hash.
fn hash(nucleotides: Nucleotides) -> u64 {
    let folded = (nucleotides >> 64) as u64 ^ (nucleotides as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    folded ^ folded >> 29
}

impl<S: Store> Genome<S> {
    /// Inserts a worker's share of the segments, and returns those that were new.
    fn remove_duplicates(&self, number: usize, workers: usize) -> Vec<Nucleotides> {
        let mut worker = self.store.worker();
        let mut all_new = Vec::new();
        let mut start = share(self.segments.len(), number, workers);
        while !start.is_empty() {
            let end = (start.start + SEGMENTS_PER_TRANSACTION).min(start.end);
            let inserted: u32 = S::transact(&mut worker, |tx| {
                let mut inserted = 0;
                for index in start.start..end {
                    let content = self.segments.content(index);
                    let key = ((content >> 64) as u64, content as u64);
                    let is_new = self.distinct.insert_if_absent(tx, key, ())?;
                    inserted |= u32::from(is_new) << (index - start.start);
                }
                Ok(inserted)
            });
            let is_new = |index: &usize| inserted >> (index - start.start) & 1 == 1;
            all_new.extend((start.start..end).filter(is_new).map(|index| self.segments.content(index)));
            start.start = end;
        }
        all_new
    }

    /// Enters a worker's share of the distinct segments into the tables.
    fn enter_starts(&self, number: usize, workers: usize) {
        let mut worker = self.store.worker();
        let overlap_min = overlap_min(self.options.gene_length);
        for index in share(self.contents.len(), number, workers) {
            for (table, overlap) in self.starts.iter().zip(overlap_min..) {
                let start = first(self.contents[index], self.options.segment_length, overlap);
                S::transact(&mut worker, |tx| table.insert(tx, hash(start), index as u32, ()));
            }
        }
    }

    /// Links chains that overlap by `overlap` nucleotides. `ends` are the chains' ends among a worker's segments;
    /// those for which no chain has been found remain.
    fn link(&self, ends: &mut Vec<u32>, overlap: usize) {
        let mut worker = self.store.worker();
        let table = &self.starts[overlap - overlap_min(self.options.gene_length)];
        ends.retain(|end| {
            let shared = last(self.contents[*end as usize], overlap);
            let is_linked = S::transact(&mut worker, |tx| {
                for (start, ()) in table.get(tx, hash(shared))?.unwrap_or_default() {
                    let content = self.contents[start as usize];
                    if first(content, self.options.segment_length, overlap) == shared
                        && self.link_chains(tx, *end, start, overlap)?
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            });
            !is_linked
        });
    }

    /// Links the chain that ends with `end` to the one that starts with `start`. Returns false if no chain starts
    /// there, or the same one.
    fn link_chains(
        &self,
        tx: &mut S::Tx<'_>,
        end: u32,
        start: u32,
        overlap: usize,
    ) -> Result<bool, S::Abort> {
        let next = self.links.get(tx, start as usize)?;
        let first = self.links.read(tx, end as usize, |link| link.start)?;
        if next.is_start == 0 || first == start {
            return Ok(false);
        }
        self.links.update(tx, end as usize, |link| {
            link.next = start;
            link.overlap = overlap as u32;
        })?;
        self.links.update(tx, start as usize, |link| link.is_start = 0)?;
        self.links.update(tx, next.end as usize, |link| link.start = first)?;
        self.links.update(tx, first as usize, |link| link.end = next.end)?;
        Ok(true)
    }

    /// Writes down the chains, one after the other. They are one chain if the links are right.
    fn read_chains(&self) -> Vec<u8> {
        let mut links = Vec::new();
        S::transact(&mut self.store.worker(), |tx| self.links.peek_all(tx, &mut links));
        let link = |index: u32| links[index as usize];
        let mut sequence = Vec::with_capacity(self.options.gene_length);
        for start in 0..self.contents.len() as u32 {
            if link(start).is_start == 0 {
                continue;
            }
            let (mut index, mut length) = (start, self.options.segment_length);
            // A wrong cycle ends where the sequence is longer than the gene.
            while sequence.len() <= self.options.gene_length {
                let content = self.contents[index as usize];
                let added = (0..length).rev().map(|position| (content >> (2 * position)) as u8 & 3);
                sequence.extend(added);
                let Link { next, overlap, .. } = link(index);
                if next == index {
                    break;
                }
                (index, length) = (next, self.options.segment_length - overlap as usize);
            }
        }
        sequence
    }
}

impl<S: Store> Application<S> for Genome<S> {
    type Options = GenomeOptions;

    fn prepare(store: S, options: &GenomeOptions) -> Self {
        let segments = Segments::generate(options);
        let distinct_max = options.gene_length - options.segment_length + 1;
        let overlaps = overlap_min(options.gene_length)..options.segment_length;
        Self {
            distinct: store.hash_map(distinct_max, []),
            starts: overlaps.map(|_| store.lists(distinct_max, [])).collect(),
            links: store.vector([]),
            store,
            options: options.clone(),
            segments,
            contents: Vec::new(),
            sequence: Vec::new(),
        }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let workers = runner.workers();
        let distinct = Mutex::new(Vec::new());
        runner.run(self, &|genome, number| {
            let new = genome.remove_duplicates(number, workers);
            lock(&distinct).extend(new);
        });
        self.contents = std::mem::take(&mut lock(&distinct));
        let alone = |index| Link { is_start: 1, start: index, end: index, next: index, overlap: 0 };
        self.links = self.store.vector((0..self.contents.len() as u32).map(alone));
        runner.run(self, &|genome, number| genome.enter_starts(number, workers));

        let own_ends = |number| share(self.contents.len(), number, workers).map(|index| index as u32);
        let ends: Vec<Mutex<Vec<u32>>> =
            (0..workers).map(|number| Mutex::new(own_ends(number).collect())).collect();
        let mut overlaps = 0;
        for overlap in (overlap_min(self.options.gene_length)..self.options.segment_length).rev() {
            runner.run(self, &|genome, number| genome.link(&mut lock(&ends[number]), overlap));
            overlaps += 1;
            if ends.iter().map(|ends| lock(ends).len()).sum::<usize>() <= 1 {
                break;
            }
        }
        self.sequence = self.read_chains();
        Statistics::new([
            ("segments", self.segments.len() as u64),
            ("distinct_segments", self.contents.len() as u64),
            ("overlaps", overlaps),
        ])
    }

    /// Checks that the sequence is the gene.
    fn verify(&self) -> Result<(), Failure> {
        let (sequence, gene) = (&self.sequence, &self.segments.gene);
        let wrong = sequence.iter().zip(gene).position(|(put, drawn)| put != drawn);
        require(wrong.is_none(), || {
            format!("nucleotide {} of the sequence is not the gene's", wrong.unwrap_or_default())
        })?;
        require(sequence.len() == gene.len(), || {
            format!("the sequence has {} nucleotides and the gene {}", sequence.len(), gene.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::options::Options;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};

    fn small() -> GenomeOptions {
        GenomeOptions { gene_length: 300, segment_length: 20, segments: 1_000, seed: 5 }
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Genome<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.count("overlaps") > 1, "{outcome:?}");
        let outcome = execute::<Genome<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn few_segments_and_the_longest_ones_suffice() {
        for (gene_length, segment_length, segments) in [(300, 20, 1), (8, 7, 1), (64, 64, 1), (300, 64, 9)] {
            let options = GenomeOptions { gene_length, segment_length, segments, seed: 2 };
            options.check().unwrap();
            let outcome = execute::<Genome<_>, _, _>(GlobalLock::default(), &options, &on_threads(2));
            assert_eq!(outcome.verification, Ok(()), "{options:?}");
        }
    }

    #[test]
    fn segments_too_short_for_the_gene_are_refused() {
        let options = GenomeOptions { gene_length: 1_000_000, segment_length: 20, ..small() };
        assert!(options.check().unwrap_err().to_string().starts_with("segment_length=20: expected longer"));
    }

    #[test]
    fn a_wrong_link_is_found() {
        let mut genome = Genome::prepare(Sequential::default(), &small());
        genome.run(&OneThread);
        genome.verify().unwrap();
        let Ok(()) = genome.links.update(&mut (), 7, |link| link.overlap -= 1);
        genome.sequence = genome.read_chains();
        genome.verify().unwrap_err();
    }

    #[test]
    fn a_missing_link_is_found() {
        let mut genome = Genome::prepare(Sequential::default(), &small());
        genome.run(&OneThread);
        let Ok(()) = genome.links.update(&mut (), 7, |link| link.next = 7);
        genome.sequence = genome.read_chains();
        genome.verify().unwrap_err();
    }
}
