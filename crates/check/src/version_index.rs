//! From versions to small numbers that keep their order.
//!
//! Versions come from one counter that stamps are taken from as well, so they are nearly dense: a bit for each
//! number up to the largest, and the count of bits before each word, find a version's rank in one place of
//! memory. Histories that are not like that (written by hand, or cut out of a long run) are searched.

/// The ranks of all versions of a history.
#[derive(Debug)]
pub(crate) struct VersionIndex {
    ranks: Ranks,
    len: usize,
}

#[derive(Debug)]
enum Ranks {
    /// For each 64 versions from 0: which of them there are, and how many there are before.
    Dense(Vec<(u64, u32)>),
    /// The versions, sorted.
    Sparse(Vec<u64>),
}

impl VersionIndex {
    /// The index of these versions; the error is one that is there twice. At most `u32::MAX` versions.
    pub(crate) fn new(mut written: Vec<u64>) -> Result<Self, u64> {
        let len = written.len();
        let largest = written.iter().copied().max().unwrap_or(0);
        if largest / 64 > len as u64 + 1024 {
            written.sort_unstable();
            return match written.windows(2).find(|pair| pair[0] == pair[1]) {
                Some(pair) => Err(pair[0]),
                None => Ok(Self { ranks: Ranks::Sparse(written), len }),
            };
        }
        let mut words = vec![(0u64, 0u32); largest as usize / 64 + 1];
        for version in written {
            let word = &mut words[version as usize / 64].0;
            let bit = 1 << (version % 64);
            if *word & bit != 0 {
                return Err(version);
            }
            *word |= bit;
        }
        let mut before = 0;
        for word in &mut words {
            word.1 = before;
            before += word.0.count_ones();
        }
        Ok(Self { ranks: Ranks::Dense(words), len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many versions are smaller.
    pub(crate) fn below(&self, version: u64) -> u32 {
        match &self.ranks {
            Ranks::Dense(words) => match words.get((version / 64) as usize) {
                Some((word, before)) => before + (word & ((1 << (version % 64)) - 1)).count_ones(),
                None => self.len as u32,
            },
            Ranks::Sparse(sorted) => sorted.partition_point(|other| *other < version) as u32,
        }
    }

    /// The rank of a version, if there is such a version.
    pub(crate) fn rank(&self, version: u64) -> Option<u32> {
        match &self.ranks {
            Ranks::Dense(words) => {
                let (word, before) = words.get(usize::try_from(version / 64).ok()?)?;
                let bit = 1u64 << (version % 64);
                (word & bit != 0).then(|| before + (word & (bit - 1)).count_ones())
            }
            Ranks::Sparse(sorted) => sorted.binary_search(&version).ok().map(|rank| rank as u32),
        }
    }

    /// The version of a rank.
    pub(crate) fn version(&self, rank: u32) -> u64 {
        match &self.ranks {
            Ranks::Dense(words) => {
                let at = words.partition_point(|word| word.1 <= rank) - 1;
                let (mut word, before) = words[at];
                for _ in before..rank {
                    word &= word - 1;
                }
                at as u64 * 64 + u64::from(word.trailing_zeros())
            }
            Ranks::Sparse(sorted) => sorted[rank as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::VersionIndex;

    #[test]
    fn ranks_are_those_of_a_sorted_list() {
        let dense: Vec<u64> = (1..2000).filter(|n| n % 3 != 0 && n / 100 != 7).collect();
        let sparse = vec![u64::MAX, 1, 1 << 40, 64, 63];
        for versions in [dense, sparse, vec![]] {
            let index = VersionIndex::new(versions.clone()).unwrap();
            let mut sorted = versions;
            sorted.sort_unstable();
            for (rank, version) in sorted.iter().enumerate() {
                assert_eq!(index.rank(*version), Some(rank as u32));
                assert_eq!(index.below(*version), rank as u32);
                assert_eq!(index.version(rank as u32), *version);
                let below = sorted.iter().filter(|other| **other < version - 1).count();
                assert_eq!(index.below(version - 1), below as u32);
            }
            assert_eq!(index.rank(0), None);
            assert_eq!(index.below(1 << 62) as usize, sorted.iter().filter(|v| **v < 1 << 62).count());
        }
    }

    #[test]
    fn a_version_that_is_there_twice_is_named() {
        assert_eq!(VersionIndex::new(vec![5, 6, 5]).unwrap_err(), 5);
        assert_eq!(VersionIndex::new(vec![1 << 50, 6, 1 << 50]).unwrap_err(), 1 << 50);
    }
}
