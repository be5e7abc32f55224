//! The tags of one cache: the lines it holds, and the choice of the line it evicts.

/// A set-associative cache without data. It evicts the least recently used line of a set.
///
/// The tags of a set are sorted by last use, so that a hit on the most recently used line is one comparison.
/// Lines are numbers from the directory, in order of first touch. Their low bits choose the set, so that lines
/// touched one after the other spread over the sets as evenly as consecutive addresses do.
#[derive(Debug)]
pub(crate) struct Tags {
    /// Line number plus one; 0 is an empty way.
    tags: Vec<u32>,
    sets: u32,
    ways: usize,
}

impl Tags {
    /// A cache of `lines` lines. The number of sets need not be a power of two.
    pub(crate) fn new(lines: usize, ways: usize) -> Self {
        let ways = ways.clamp(1, lines.max(1));
        let sets = (lines / ways).max(1);
        Self { tags: vec![0; sets * ways], sets: sets as u32, ways }
    }

    #[inline]
    fn set(&mut self, line: u32) -> &mut [u32] {
        let set = if self.sets.is_power_of_two() {
            line & (self.sets - 1)
        } else {
            let spread = line.wrapping_mul(0x9e37_79b1);
            ((u64::from(spread) * u64::from(self.sets)) >> 32) as u32
        };
        let start = set as usize * self.ways;
        &mut self.tags[start..start + self.ways]
    }

    /// Returns true if the cache holds the line, and marks the line as most recently used.
    #[inline]
    pub(crate) fn touch(&mut self, line: u32) -> bool {
        let tag = line + 1;
        let set = self.set(line);
        if set[0] == tag {
            return true;
        }
        match set.iter().position(|held| *held == tag) {
            Some(at) => {
                set.copy_within(..at, 1);
                set[0] = tag;
                true
            }
            None => false,
        }
    }

    /// Inserts a line as the most recently used one. Returns the line that it evicts.
    pub(crate) fn insert(&mut self, line: u32) -> Option<u32> {
        if self.touch(line) {
            return None;
        }
        let set = self.set(line);
        let last = set.len() - 1;
        let evicted = set[last];
        set.copy_within(..last, 1);
        set[0] = line + 1;
        evicted.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_set_evicts_the_least_recently_used_line() {
        let mut tags = Tags::new(8, 2);
        assert_eq!(tags.insert(0), None);
        assert_eq!(tags.insert(4), None);
        assert!(tags.touch(0));
        assert_eq!(tags.insert(8), Some(4));
        assert!(tags.touch(0) && tags.touch(8) && !tags.touch(4));
        assert!(!tags.touch(1), "another set is untouched");
    }

    #[test]
    fn an_array_larger_than_the_cache_does_not_stay_in_it() {
        let mut tags = Tags::new(24 * 20, 20);
        for line in 0..10_000 {
            tags.insert(line);
        }
        let kept = (0..10_000).filter(|line| tags.touch(*line)).count();
        assert!(kept <= 480);
    }
}
