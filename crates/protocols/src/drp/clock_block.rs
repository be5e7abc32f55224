//! The time of a segment's last write, on the clock of `drp+opaque`, as precisely as 16 bits allow.
//!
//! A ticket lock (*line*) has no room for a clock value, and needs none. Its *clock block* is the number of a block
//! of clock values, modulo 2¹⁶. It may stand for several blocks; the newest one that is not in the future is
//! assumed. If that one is older than a bound's block, the segment was written before the bound, whichever block it
//! was. Otherwise it may have been written later, or long ago. Then everything is checked, which is always correct.

/// Number of clock values in a block, as a power of two. A larger block makes it rarer that a segment written long
/// ago seems new. But it also makes a segment written just before the bound seem new for longer.
const BLOCK_SHIFT: u32 = if cfg!(test) { 1 } else { 8 };

/// The block of the clock's values in which a segment was last written, modulo 2¹⁶; zero for one that was never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ClockBlock(pub(super) u16);

impl ClockBlock {
    /// The first value of a clock, larger than that of a segment that was never written.
    pub(super) const CLOCK_BEGINS: u64 = 1 << BLOCK_SHIFT;

    /// Returns the clock block of a commit.
    #[inline]
    pub(super) fn of(clock: u64) -> Self {
        Self((clock >> BLOCK_SHIFT) as u16)
    }

    /// True if a commit with this clock block certainly came before the clock was at `bound`. `now` is the clock's
    /// value after the clock block was loaded.
    #[inline]
    pub(super) fn is_before(self, bound: u64, now: u64) -> bool {
        let now = now >> BLOCK_SHIFT;
        let age = u64::from((now as u16).wrapping_sub(self.0));
        now.saturating_sub(age) < bound >> BLOCK_SHIFT
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_commit_called_earlier_than_a_bound_is_earlier_however_long_ago() {
        let moments = [2, 3, 100, 131_070, 131_073, 140_000, 262_143, 262_144, 300_001];
        for commit in moments {
            for bound in moments {
                for now in moments {
                    let says_so = ClockBlock::of(commit).is_before(bound, now);
                    assert!(!says_so || commit <= bound || commit > now, "{commit} {bound} {now}");
                }
            }
        }
    }

    #[test]
    fn most_of_what_is_before_a_bound_is_said_to_be() {
        let bound = 400_000;
        let known = (ClockBlock::CLOCK_BEGINS..bound)
            .filter(|commit| ClockBlock::of(*commit).is_before(bound, bound + 100));
        // Unknown are those in the bound's own block, and a hundred in each of three rounds of the clock blocks.
        assert!(known.count() as u64 > bound - 400);
        assert!(
            ClockBlock::default().is_before(ClockBlock::CLOCK_BEGINS, ClockBlock::CLOCK_BEGINS + 1),
            "never written"
        );
    }
}
