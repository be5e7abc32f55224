//! The time of a segment's last write, on the clock of `drp+opaque`, as precisely as 16 bits allow.
//!
//! A ticket lock (*line*) has no room for a clock value, and needs none. Its *clock block* is the number of a block
//! of clock values, modulo 2¹⁶. It may stand for several blocks; the newest one that is not in the future is
//! assumed. If that one is older than a bound's block, the segment was written before the bound, whichever block it
//! was. Otherwise it may have been written later, or long ago. Then everything is checked, which is always correct.
//!
//! # Opacity
//!
//! The clock counts commits. A commit that is at its turn in all its lines advances it before it installs anything; the new value is the
//! commit's. An attempt keeps a *bound*: the clock before all its reads so far were last found unchanged, or when it began. When it has looked at a
//! segment and the clock is past the bound, it asks the segment's clock block if a commit after the bound may have written the segment. If so,
//! it checks all that it has read again, with the clock as its new bound. The same holds of the intentions of a wild attempt at their turns: there,
//! x may be newer than the y that the body has read. An absence is newer than the bound only if a later commit has deleted the missed key
//! ([`Removals`](crate::removals::Removals)).
//!
//! *All that an attempt sees is the state after a beginning of the serial order.* Let b be the bound, and B the moment at which the clock was
//! loaded. Let C be the commits with values up to b, and J these and all that come before any of them in the serial order.
//!
//! - If V comes before W because it is before W in a line, V's value is smaller: V leaves the line after it has advanced the clock, and W
//!   advances it at its turn. The same holds if W has read what V wrote. If V has read, without a place, what W writes later, then V's check
//!   came before W joined that line; and before that check V was at its turn everywhere, with its records in their indexes. (For that an opaque
//!   attempt waits for its turns before it checks.) So those before V in a line have smaller values than W, too. Hence each V in J either has a
//!   value up to b, or had joined all its lines, and made all its records, before a commit of C had advanced the clock, and so before B.
//! - The attempt has looked at, or checked, all that it has seen after B. A segment with no writer in line and a last writer of C has its value
//!   after J: another commit of J that writes it later had joined its line before B, so the attempt would have found it there, or its version.
//! - A key that is present after J was in its index before B. If the attempt misses it, a commit that is not in C has deleted it. That one noted its
//!   value, above b, before anybody could miss the key, so the attempt checks.
//!
//! For the same reason no attempt leaves a line early under `drp+opaque`, and one that aborts leaves the block of the clock at its turn.

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
