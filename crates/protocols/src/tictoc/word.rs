//! The word with two timestamps that `tictoc` keeps beside each value.

use super::late_reads::LateReads;
use crate::lock_wait::LockWait;
use crate::stable::StableWord;
use hotrow_core::{Before, Reason};
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};

/// Bits for the distance from the write timestamp to the read timestamp. Tests have few, so that reads are [late](LateReads).
const DELTA_BITS: u32 = if cfg!(any(test, debug_assertions)) { 4 } else { 15 };

const LOCKED: u64 = 1;
const DELTA_MAX: u64 = (1 << DELTA_BITS) - 1;
const WRITE_SHIFT: u32 = DELTA_BITS + 1;

/// The period in logical time in which a version is valid: from the write timestamp to the read timestamp, both
/// included.
///
/// The write timestamp has 48 bits: at ten million commits a second on one chain of segments it lasts ten months.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps(u64);

impl Timestamps {
    /// Makes the timestamps of a version that was written at `commit_ts` and has not been read later.
    #[inline]
    pub(super) fn written_at(commit_ts: u64) -> Self {
        Self(commit_ts << WRITE_SHIFT)
    }

    /// Returns the write timestamp.
    #[inline]
    pub(crate) fn write(self) -> u64 {
        self.0 >> WRITE_SHIFT
    }

    /// Returns the read timestamp, or a lower bound if the distance [is not known](Self::is_read_late).
    #[inline]
    pub(super) fn read(self) -> u64 {
        self.write() + ((self.0 >> 1) & DELTA_MAX)
    }

    #[inline]
    fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    #[inline]
    fn unlocked(self) -> Self {
        Self(self.0 & !LOCKED)
    }

    /// True if both are of one version, locked or not.
    #[inline]
    pub(super) fn same_version(self, other: Self) -> bool {
        self.write() == other.write()
    }

    /// True if the version may have been read later than its word has room for: then [`LateReads`] has the rest.
    #[inline]
    pub(super) fn is_read_late(self) -> bool {
        (self.0 >> 1) & DELTA_MAX == DELTA_MAX
    }

    /// Checks that a version is the one in the word with these timestamps, and nobody is about to replace it.
    fn check_latest(self, version: Self) -> Result<(), Reason> {
        if !self.same_version(version) {
            return Err(Reason::ReadChanged);
        }
        if self.is_locked() { Err(Reason::ReadLocked) } else { Ok(()) }
    }

    /// Returns the same version with a later read timestamp, up to the last one for which there is room.
    #[inline]
    fn read_at(self, commit_ts: u64) -> Self {
        let distance = (commit_ts - self.write()).min(DELTA_MAX);
        Self((self.write() << WRITE_SHIFT) | (distance << 1))
    }
}

/// A lock bit, the write timestamp and the distance to the read timestamp in one word (TicToc §3.6).
///
/// # Orderings
///
/// They are those of `VersionWord`. A writer locks (acquire, then a release fence), changes the value, and unlocks
/// with a release store. A reader loads the word (acquire), then the value, then, after an acquire fence, the word
/// again. An extension is a read-modify-write of an unlocked word, so whoever loads the word that it stored still
/// synchronizes with the unlock before it.
///
/// Nothing in the word needs a total order, because the timestamps themselves order commits. A check that loads an old word
/// is right all the same: a writer that has locked the word since has found a read timestamp at least as large, and
/// commits above it. Late reads are noted beside the word, and do need one: see `LateReads`.
#[derive(Debug, Default)]
pub struct TimestampWord(AtomicU64);

impl TimestampWord {
    /// Makes the word of a segment that a worker has just created and holds locked.
    pub(super) fn new_locked() -> Self {
        Self(AtomicU64::new(LOCKED))
    }

    #[inline]
    fn load(&self) -> Timestamps {
        // Pairs with the release in `unlock_as`.
        Timestamps(self.0.load(Ordering::Acquire))
    }

    /// Locks the word with bounded spinning and returns the timestamps below the lock. If `expected` is given and
    /// the version differs, it fails without locking.
    #[inline]
    pub(super) fn lock(&self, expected: Option<Timestamps>) -> Result<Timestamps, Reason> {
        let mut wait = LockWait::new(expected.is_some());
        loop {
            let seen = self.load();
            if expected.is_some_and(|expected| !expected.same_version(seen)) {
                return Err(Reason::ReadChanged);
            }
            if !seen.is_locked() && self.try_lock(seen) {
                return Ok(seen);
            }
            if !wait.turn() {
                return Err(Reason::WriteLocked);
            }
        }
    }

    #[inline]
    fn try_lock(&self, seen: Timestamps) -> bool {
        // Acquire: pairs with the release in `unlock_as`. Sequentially consistent besides: a commit that takes the lock and then
        // looks for those that wait for a change misses none (`Protocol::READS_PASS_PREPARED`).
        let locked =
            self.0.compare_exchange(seen.0, seen.0 | LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if locked {
            // Orders the locked word before the stores to the value; pairs with the fence in `stable`.
            fence(Ordering::Release);
        }
        locked
    }

    /// Makes the version read valid at `commit_ts`, so that no other version is ever valid then.
    #[inline]
    pub(super) fn extend(&self, version: Timestamps, commit_ts: u64, late: &LateReads) -> Result<(), Reason> {
        // Relaxed: the value has been read, and only timestamps are compared from now on.
        let mut seen = Timestamps(self.0.load(Ordering::Relaxed));
        loop {
            if !seen.same_version(version) {
                return Err(Reason::ReadChanged);
            }
            if seen.read() >= commit_ts {
                return Ok(());
            }
            if seen.is_locked() {
                return Err(Reason::ReadLocked);
            }
            let extended = seen.read_at(commit_ts);
            if extended.is_read_late() {
                late.note(self, commit_ts);
                if seen.is_read_late() {
                    // Sequentially consistent, after the note: see `LateReads`.
                    let now = Timestamps(self.0.load(Ordering::SeqCst));
                    return now.check_latest(version);
                }
            }
            // No bound on the turns: whoever came first has locked the word or extended it. Release: pairs with the acquire in
            // `try_lock`, so that a writer that finds the read late sees the note.
            match self.0.compare_exchange(seen.0, extended.0, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = Timestamps(now),
            }
        }
    }

    /// Checks that a version is still the latest, and nobody is about to replace it.
    pub(super) fn check_latest(&self, version: Timestamps) -> Result<(), Reason> {
        // Relaxed: as in `extend`. The full fence after the stamp was drawn orders it.
        Timestamps(self.0.load(Ordering::Relaxed)).check_latest(version)
    }

    /// Releases a lock under which nothing was changed. Only the lock's holder may call it.
    pub(super) fn unlock(&self) {
        // Relaxed: nobody else changes a locked word.
        self.unlock_as(Timestamps(self.0.load(Ordering::Relaxed)).unlocked());
    }

    /// Publishes the value that was stored under the lock, with its timestamps.
    #[inline]
    pub(super) fn unlock_as(&self, version: Timestamps) {
        // Release: pairs with the loads in `stable` and with `try_lock`.
        self.0.store(version.0, Ordering::Release);
    }
}

impl StableWord for TimestampWord {
    type Version = Timestamps;

    #[inline(always)]
    fn version_before(&self) -> Option<Timestamps> {
        let before = self.load();
        (!before.is_locked()).then_some(before)
    }

    #[inline(always)]
    fn version_after(&self, before: Timestamps) -> Option<Timestamps> {
        // Others may extend the version.
        let after = Timestamps(self.0.load(Ordering::Relaxed));
        (!after.is_locked() && after.same_version(before)).then_some(after)
    }

    #[inline(always)]
    fn note(version: Timestamps) -> Before {
        Before(version.0)
    }

    #[inline(always)]
    fn noted(before: Before) -> Timestamps {
        Timestamps(before.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_version_keeps_its_write_timestamp_however_late_it_is_read() {
        let (word, late) = (TimestampWord::default(), LateReads::new());
        word.lock(None).unwrap();
        word.unlock_as(Timestamps::written_at(7));
        let (version, ()) = word.stable(|| ()).unwrap();
        for (read_at, in_word) in [(7 + DELTA_MAX - 1, true), (9, true), (8 + DELTA_MAX, false), (900, false)]
        {
            word.extend(version, read_at, &late).unwrap();
            let (now, ()) = word.stable(|| ()).unwrap();
            assert_eq!(now.write(), 7);
            assert_eq!(now.is_read_late(), !in_word);
            assert_eq!(word.check_latest(version), Ok(()));
        }
        let below = word.lock(Some(version)).unwrap();
        assert_eq!(late.last_read(&word, below), 900, "the next version is after that");
        assert_eq!(word.extend(version, 7 + DELTA_MAX, &late), Ok(()));
        assert_eq!(word.extend(version, 899, &late), Err(Reason::ReadLocked));
        word.unlock_as(Timestamps::written_at(901));
        assert_eq!(word.extend(version, 902, &late), Err(Reason::ReadChanged));
        let (now, ()) = word.stable(|| ()).unwrap();
        assert_eq!(late.last_read(&word, now), 901);
    }

    #[test]
    fn a_locked_version_is_valid_up_to_its_read_timestamp_and_no_further() {
        let (word, late) = (TimestampWord::default(), LateReads::new());
        let (version, ()) = word.stable(|| ()).unwrap();
        word.extend(version, 3, &late).unwrap();
        assert_eq!(word.lock(Some(version)).unwrap().read(), 3);
        assert_eq!(word.extend(version, 3, &late), Ok(()));
        assert_eq!(word.extend(version, 4, &late), Err(Reason::ReadLocked));
        assert_eq!(word.stable(|| ()), Err(Reason::ReadLocked));
        assert_eq!(word.lock(None), Err(Reason::WriteLocked));
        word.unlock();
        assert_eq!(word.extend(version, 4, &late), Ok(()));
    }

    #[test]
    fn an_extension_in_the_midst_of_a_read_does_not_disturb_it_and_a_write_does() {
        let (word, late) = (TimestampWord::default(), LateReads::new());
        let mut reads = 0;
        let (version, ()) = word
            .stable(|| {
                reads += 1;
                match reads {
                    1 => {
                        word.lock(None).unwrap();
                        word.unlock_as(Timestamps::written_at(5));
                    }
                    _ => word.extend(Timestamps::written_at(5), 6, &late).unwrap(),
                }
            })
            .unwrap();
        assert_eq!((reads, version.write(), version.read()), (2, 5, 6));
    }
}
