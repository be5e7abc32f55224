//! The header that `mocc` keeps beside each value: a lock with a version, and the heat.

use crate::lock_wait::LockWait;
use crate::stable::StableWord;
use hotrow_core::{Before, Reason};
use hotrow_sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use hotrow_sync::spin::Spin;

/// Bits for the count of readers that hold the lock.
const READER_BITS: u32 = 14;

/// Number of readers that the word can count.
pub(super) const READERS_MAX: u32 = (1 << READER_BITS) - 1;

const LOCKED: u64 = 1;
const READER: u64 = 2;
const READERS: u64 = ((1 << READER_BITS) - 1) * READER;
const VERSION: u64 = 1 << (READER_BITS + 1);

/// The version of a segment, which counts its writes. It has 49 bits: at ten million writes a second it lasts
/// nineteen months.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeatedVersion(u64);

impl HeatedVersion {
    #[inline]
    fn of(word: u64) -> Self {
        Self(word & !(LOCKED | READERS))
    }
}

/// A lock bit, a count of the readers that hold the lock, and a version in one word; beside it the heat.
///
/// # Orderings
///
/// They are those of `VersionWord`, with the same arguments. A writer locks (sequentially consistent, then a release
/// fence), changes the value, and unlocks with a release store. A reader without a lock loads the word (sequentially
/// consistent), then the value, then, after an acquire fence, the word again. Readers that take or release the lock
/// do not count as a change.
///
/// A reader takes the lock in shared mode by a read-modify-write. It is acquire, so that the reader sees the last
/// writer's installation. It is also sequentially consistent, because it stands for the check of `occ`. The reader
/// releases the lock by another read-modify-write with release: its reads come before the installation of the next
/// writer, whose lock acquires. While the lock bit is set, only its holder changes the word, so the holder may store
/// to it.
#[derive(Debug, Default)]
pub struct HeatedWord {
    word: AtomicU64,
    /// Relaxed everywhere: it decides between reading with or without a lock, and both are correct.
    heat: AtomicU8,
}

impl HeatedWord {
    /// Makes the header of a segment that a worker has just created and holds locked.
    pub(super) fn new_locked() -> Self {
        Self { word: AtomicU64::new(LOCKED), heat: AtomicU8::new(0) }
    }

    #[inline]
    pub(super) fn heat(&self) -> u8 {
        self.heat.load(Ordering::Relaxed)
    }

    /// Sets the heat. If two threads set it at the same time, one update may be lost.
    pub(super) fn set_heat(&self, heat: u8) {
        self.heat.store(heat, Ordering::Relaxed);
    }

    #[inline]
    fn load(&self) -> u64 {
        self.word.load(Ordering::SeqCst)
    }

    /// True if the version is still the one read, and no writer has it locked.
    #[inline]
    pub(super) fn still_at(&self, version: HeatedVersion) -> bool {
        self.load() & !READERS == version.0
    }

    /// Locks the word in shared mode with bounded spinning. Returns the version.
    pub(super) fn lock_shared(&self) -> Result<HeatedVersion, Reason> {
        let mut spin = Spin::new();
        loop {
            let seen = self.load();
            if seen & LOCKED == 0 && self.replace(seen, seen + READER) {
                return Ok(HeatedVersion::of(seen));
            }
            if !spin.turn() {
                return Err(Reason::ReadLocked);
            }
        }
    }

    /// Releases the lock in shared mode.
    pub(super) fn unlock_shared(&self) {
        // Release: pairs with the lock of the next writer.
        self.word.fetch_sub(READER, Ordering::Release);
    }

    /// Locks the word exclusively with bounded spinning and returns the version below the lock. It waits until there
    /// is no reader except, if it is `shared`, the caller, whose shared lock becomes exclusive. If `expected` is
    /// given and the version differs, it fails without locking.
    #[inline]
    pub(super) fn lock(
        &self,
        expected: Option<HeatedVersion>,
        shared: bool,
    ) -> Result<HeatedVersion, Reason> {
        let mut wait = LockWait::new(expected.is_some());
        let own = if shared { READER } else { 0 };
        loop {
            let seen = self.load();
            let version = HeatedVersion::of(seen);
            if expected.is_some_and(|expected| expected != version) {
                return Err(Reason::ReadChanged);
            }
            if seen == version.0 | own && self.try_lock(seen, version) {
                return Ok(version);
            }
            if !wait.turn() {
                return Err(Reason::WriteLocked);
            }
        }
    }

    #[inline]
    fn try_lock(&self, seen: u64, version: HeatedVersion) -> bool {
        let locked = self.replace(seen, version.0 | LOCKED);
        if locked {
            // Orders the locked word before the stores to the value; pairs with the fence in `stable`.
            fence(Ordering::Release);
        }
        locked
    }

    #[inline]
    fn replace(&self, seen: u64, next: u64) -> bool {
        self.word.compare_exchange(seen, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Releases an exclusive lock under which nothing was changed. Only its holder may call it.
    pub(super) fn unlock(&self) {
        // Relaxed: nobody else changes a locked word. Release: as in `unlock_changed`.
        self.word.store(self.word.load(Ordering::Relaxed) & !LOCKED, Ordering::Release);
    }

    /// Publishes the value that was stored under the lock, with a new version. Only the lock's holder may call it.
    #[inline]
    pub(super) fn unlock_changed(&self) {
        // Release: pairs with the load in `stable` and with `replace`.
        self.word.store((self.word.load(Ordering::Relaxed) & !LOCKED) + VERSION, Ordering::Release);
    }
}

impl StableWord for HeatedWord {
    type Version = HeatedVersion;

    #[inline(always)]
    fn version_before(&self) -> Option<HeatedVersion> {
        let before = self.load();
        (before & LOCKED == 0).then_some(HeatedVersion::of(before))
    }

    #[inline(always)]
    fn version_after(&self, before: HeatedVersion) -> Option<HeatedVersion> {
        // A set lock bit counts as a difference. A writer may have locked, changed nothing and unlocked meanwhile.
        (self.word.load(Ordering::Relaxed) & !READERS == before.0).then_some(before)
    }

    #[inline(always)]
    fn note(version: HeatedVersion) -> Before {
        Before(version.0)
    }

    #[inline(always)]
    fn noted(before: Before) -> HeatedVersion {
        HeatedVersion(before.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn readers_share_the_lock_and_keep_writers_out() {
        let word = HeatedWord::default();
        let version = word.lock_shared().unwrap();
        assert_eq!(word.lock_shared(), Ok(version));
        assert_eq!(word.stable(|| 5), Ok((version, 5)));
        assert!(word.still_at(version));
        assert_eq!(word.lock(None, false), Err(Reason::WriteLocked));
        assert_eq!(word.lock(None, true), Err(Reason::WriteLocked), "there is another reader");
        word.unlock_shared();
        assert_eq!(word.lock(Some(version), true), Ok(version));
        assert!(!word.still_at(version));
        assert_eq!(word.lock_shared(), Err(Reason::ReadLocked));
        assert_eq!(word.stable(|| 5), Err(Reason::ReadLocked));
        word.unlock();
        assert!(word.still_at(version), "nothing was changed");
    }

    #[test]
    fn a_write_is_another_version_and_a_read_in_its_midst_is_done_again() {
        let word = HeatedWord::default();
        let before = word.lock_shared().unwrap();
        word.unlock_shared();
        let mut reads = 0;
        let (version, ()) = word
            .stable(|| {
                reads += 1;
                if reads == 1 {
                    word.lock(Some(before), false).unwrap();
                    word.unlock_changed();
                } else {
                    word.lock_shared().unwrap();
                }
            })
            .unwrap();
        assert_eq!(reads, 2, "a reader that comes is no change");
        assert_ne!(version, before);
        assert_eq!(word.lock(Some(before), true), Err(Reason::ReadChanged));
    }
}
