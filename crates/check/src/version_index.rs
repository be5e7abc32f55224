//! Index from versions to dense ranks in the same order.
//!
//! Versions come from the counter that stamps come from as well, so they are nearly dense. A bit for each number up
//! to the largest, and the count of bits before each word, give a version's rank with one memory access. Other
//! histories (written by hand, or cut out of a long run) use binary search.

/// Ranks of all versions of a history.
#[derive(Debug)]
pub(crate) struct VersionIndex {
    ranks: Ranks,
    len: usize,
}

#[derive(Debug)]
enum Ranks {
    /// For each 64 versions from 0: a bit set of those present, and the number of versions before.
    Dense(Vec<(u64, u32)>),
    /// The versions, sorted.
    Sparse(Vec<u64>),
}

impl VersionIndex {
    /// Makes the index of at most `u32::MAX` versions. The error is a version that occurs twice.
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

    /// Returns the number of smaller versions.
    pub(crate) fn below(&self, version: u64) -> u32 {
        match &self.ranks {
            Ranks::Dense(words) => match words.get((version / 64) as usize) {
                Some((word, before)) => before + (word & ((1 << (version % 64)) - 1)).count_ones(),
                None => self.len as u32,
            },
            Ranks::Sparse(sorted) => sorted.partition_point(|other| *other < version) as u32,
        }
    }

    /// Returns the rank of a version; `None` if there is no such version.
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

    /// Returns the version of a rank.
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
