//! The version word that optimistic protocols keep beside each value.

use crate::host::{Algorithm, Host};
use crate::lock_wait::LockWait;
use crate::reads::{self, KeepsVersions};
use crate::stable::StableWord;
use hotrow_core::{
    Attempt, Before, ConflictCause, Flags, Item, ItemId, Prepared, Protocol, Reason, Rival, WorkerId,
};
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::profile;

/// Bits for a worker's number in a version.
pub(crate) const WORKER_BITS: u32 = 14;

/// Number of workers that a version can tell apart.
pub(crate) const WORKERS_MAX: u32 = 1 << WORKER_BITS;

/// A version: a number that grows, and the worker that made it. So no two commits share a version.
///
/// The number has 49 bits: at ten million commits a second on one chain of segments it lasts nineteen months.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Version(u64);

const LOCKED: u64 = 1;

impl Version {
    /// Makes the version of a number and a worker.
    #[inline]
    pub(crate) fn new(number: u64, worker: WorkerId) -> Self {
        Self((number << (WORKER_BITS + 1)) | (u64::from(worker.number()) << 1))
    }

    /// Returns the number.
    #[inline]
    pub(crate) fn number(self) -> u64 {
        self.0 >> (WORKER_BITS + 1)
    }

    /// Number, worker and lock as one word.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    #[inline]
    fn unlocked(self) -> Self {
        Self(self.0 & !LOCKED)
    }
}

/// A lock bit and a version in one word (sto §3.2, `TVersion`; Silo's TID word).
///
/// # Orderings
///
/// A writer locks the word (read-modify-write, acquire, then a release fence), changes the value with relaxed or
/// release stores, and unlocks with a release store of the new version. A reader loads the word (acquire), then the
/// value, then, after an acquire fence, the word again. If it read anything that was stored under the lock, the
/// writer's release fence and the reader's acquire fence order the locked word before the second load. So the second
/// load differs from the first.
///
/// Loads and locks are also sequentially consistent. If two committing attempts each lock what the other then
/// checks, one must see the other's lock (no reordering of a store with a later load). The clock of `tl2` needs a
/// total order, too (see there). On x86-64 this costs nothing over acquire.
#[derive(Debug, Default)]
pub struct VersionWord(AtomicU64);

impl VersionWord {
    /// Makes the word of a segment that a worker has just created and holds locked.
    pub(crate) fn new_locked() -> Self {
        Self(AtomicU64::new(LOCKED))
    }

    #[inline]
    pub(crate) fn load(&self) -> Version {
        Version(self.0.load(Ordering::SeqCst))
    }

    /// Locks the word with bounded spinning (sto §3.3) and returns the version below the lock. If `expected` is
    /// given and the version differs, it fails without locking.
    #[inline]
    pub(crate) fn lock(&self, expected: Option<Version>) -> Result<Version, Reason> {
        let seen = self.load();
        let wanted = expected.unwrap_or(seen);
        if seen == wanted && !seen.is_locked() && self.try_lock(seen) {
            return Ok(seen);
        }
        self.lock_again(expected)
    }

    #[cold]
    #[inline(never)]
    fn lock_again(&self, expected: Option<Version>) -> Result<Version, Reason> {
        let mut wait = LockWait::new(expected.is_some());
        if expected.is_none() {
            // It was locked just now.
            wait.turn();
        }
        loop {
            let seen = self.load();
            if expected.is_some_and(|expected| expected != seen.unlocked()) {
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
    fn try_lock(&self, seen: Version) -> bool {
        let locked =
            self.0.compare_exchange(seen.0, seen.0 | LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if locked {
            // Orders the locked word before the stores to the value; pairs with the fence in `stable`.
            fence(Ordering::Release);
        }
        locked
    }

    /// Marks an unlocked word as locked, in a region. Nobody sees it, as the region ends with another version or not at all; but a
    /// simulation learns that the segment changes before its value does, and aborts the region if others look at it.
    #[inline]
    pub(crate) fn lock_in_region(&self) {
        // Relaxed: the region is what orders it.
        self.0.store(LOCKED, Ordering::Relaxed);
    }

    /// Returns the version below a lock that this attempt holds.
    #[inline]
    fn held(&self) -> Version {
        // Relaxed: nobody else changes a locked word.
        Version(self.0.load(Ordering::Relaxed)).unlocked()
    }

    /// Publishes the value that was stored under the lock, with its version.
    #[inline]
    pub(crate) fn unlock_as(&self, version: Version) {
        // Release: pairs with the load in `stable` and with `try_lock`.
        self.0.store(version.0, Ordering::Release);
    }
}

impl StableWord for VersionWord {
    type Version = Version;

    #[inline(always)]
    fn version_before(&self) -> Option<Version> {
        let before = self.load();
        (!before.is_locked()).then_some(before)
    }

    #[inline(always)]
    fn version_after(&self, before: Version) -> Option<Version> {
        (self.0.load(Ordering::Relaxed) == before.0).then_some(before)
    }

    #[inline(always)]
    fn note(version: Version) -> Before {
        Before(version.0)
    }

    #[inline(always)]
    fn noted(before: Before) -> Version {
        Version(before.0)
    }
}

/// A protocol whose headers are version words and whose marks are versions. `occ` and `tl2` share the steps that
/// follow.
pub(crate) trait Versioned: Algorithm<Header = VersionWord, Mark = Version> {}

impl<A: Versioned> KeepsVersions for A {
    #[inline]
    fn version(mark: &mut Version) -> &mut Version {
        mark
    }
}

/// Returns the worker that has made the version of a segment; `None` if nobody has written it, or another attempt has it locked,
/// because the word does not tell which.
#[cold]
pub(crate) fn rival<A: Versioned, H: Host<A>>(attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
    let version = H::header(header).load();
    let own = attempt.items.at(std::ptr::from_ref(header).addr());
    let is_own = own.is_some_and(|id| attempt.items.get(id).is(Flags::LOCKED));
    let worker = (version.0 >> 1) as u32 & (WORKERS_MAX - 1);
    (version.number() != 0 && (is_own || !version.is_locked()))
        .then(|| Rival::writer_by(worker, version.number()))
}

/// Phase 1 (sto §3.3): locks the segments to be written, in the order of first write; those that are changed without having been read
/// come after all others. Returns the highest number among the versions below the locks.
///
/// So what needs no earlier value, as a sum that everybody adds to, is locked for a shorter time; [`install_writes`] begins with it.
/// (What has been read is not locked in the reverse order, although that would shorten the time for what most want, which often comes
/// first: an attempt that has lost it would find that out late, and New-Order of TPC-C made a tenth less on 32 simulated cores.)
#[inline]
pub(crate) fn lock_writes<A: Versioned, H: Host<A>>(attempt: &mut Attempt<H>) -> Result<u64, ConflictCause> {
    let (mut highest, mut left) = (0, false);
    let mut lock = |id: ItemId, item: &mut Item<H>, expected| {
        let overwritten =
            H::header(item.header()).lock(expected).map_err(|reason| ConflictCause::item(reason, id))?;
        item.set(Flags::LOCKED);
        highest = highest.max(overwritten.number());
        Ok(())
    };
    for (id, item) in attempt.items.writes_mut() {
        if is_blind(item) {
            left = true;
        } else if !item.is(Flags::INSERTED) {
            lock(id, item, Some(H::mark(item.mark)))?;
        }
    }
    if left {
        for (id, item) in attempt.items.writes_mut().filter(|(_, item)| is_blind(item)) {
            lock(id, item, None)?;
        }
    }
    Ok(highest)
}

/// True if a write's commit needs no earlier value of the segment.
#[inline(always)]
fn is_blind<P: Protocol>(item: &Item<P>) -> bool {
    !item.is_any(&[Flags::READ, Flags::INSERTED])
}

/// Phase 1, predicates (sto §3.5): checks each on a state that phase 2 validates.
#[inline]
pub(crate) fn upgrade_predicates<A: Versioned, H: Host<A>>(
    attempt: &mut Attempt<H>,
) -> Result<(), ConflictCause> {
    reads::upgrade_predicates::<A, H>(attempt, |item| item.is(Flags::LOCKED))
}

/// Phase 2 (sto §3.3): checks that every version read is still there and not locked by others, and that every bucket
/// and leaf is unchanged. Returns the highest number among the versions read and not locked.
#[inline]
pub(crate) fn validate<A: Versioned, H: Host<A>>(attempt: &Attempt<H>) -> Result<u64, ConflictCause> {
    validate_first::<A, H>(attempt, attempt.items.len())
}

/// Does what [`validate`] does, for an attempt that has [locked its writes](lock_writes).
#[inline]
pub(crate) fn validate_beside_locks<A: Versioned, H: Host<A>>(
    attempt: &Attempt<H>,
) -> Result<u64, ConflictCause> {
    // Often the only items are those of writes, and other reads are in the log.
    let items = attempt.items.len();
    validate_first::<A, H>(attempt, if attempt.items.writes().len() == items { 0 } else { items })
}

/// Does what [`validate`] does, for an attempt whose reads are all in the log or among its first `count` items.
#[inline(always)]
pub(crate) fn validate_first<A: Versioned, H: Host<A>>(
    attempt: &Attempt<H>,
    count: usize,
) -> Result<u64, ConflictCause> {
    let mut highest = 0;
    for (id, item) in attempt.items.first_entries(count) {
        // Locked items were locked at the version read (`lock_writes`); inserted ones are never read.
        if item.is(Flags::READ) && !item.is(Flags::LOCKED) {
            if H::header(item.header()).load() != H::mark(item.mark) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
            highest = highest.max(H::mark(item.mark).number());
        }
    }
    for (position, read) in attempt.reads.iter().enumerate() {
        let mark = H::mark(read.mark());
        let found = H::header(read.segment().header()).load();
        let unchanged = found == mark || found.unlocked() == mark && reads::is_locked_since(attempt, read);
        if !unchanged {
            return Err(attempt.reads.lost(position, Reason::ReadChanged));
        }
        highest = highest.max(mark.number());
    }
    attempt.check_structures()?;
    Ok(highest)
}

/// Phase 3 (sto §3.3): installs each write and unlocks it with its new version. Those that were locked last come first.
#[inline]
pub(crate) fn install_writes<A: Versioned, H: Host<A>>(
    prepared: Prepared<'_, H>,
    version: Version,
) -> &mut Attempt<H> {
    prepared.install_first(is_blind, |item| {
        H::header(item.header()).unlock_as(version);
        profile::release(item.segment().addr().get());
    })
}

/// Releases the locks of an attempt that failed. Versions stay, because nothing was changed under the locks, except
/// in segments that the attempt itself made and nobody has seen.
pub(crate) fn release<A: Versioned, H: Host<A>>(attempt: &mut Attempt<H>) {
    for item in attempt.items.iter() {
        if item.is(Flags::LOCKED) {
            H::header(item.header()).unlock_as(H::header(item.header()).held());
            profile::release(item.segment().addr().get());
        }
    }
}

#[cfg(all(test, loom))]
pub(crate) mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_version_keeps_number_and_worker_apart() {
        let engine = hotrow_core::Engine::<crate::Occ>::new();
        let (first, second) = (engine.worker().unwrap(), engine.worker().unwrap());
        assert_ne!(Version::new(7, first.id()), Version::new(7, second.id()));
        assert_eq!(Version::new(7, second.id()).number(), 7);
        assert!(!Version::new(7, second.id()).is_locked());
    }

    #[test]
    fn a_locked_word_is_neither_read_nor_locked_again() {
        let word = VersionWord::default();
        assert_eq!(word.stable(|| 5).unwrap(), (Version(0), 5));
        word.lock(None).unwrap();
        assert_eq!(word.stable(|| 5).unwrap_err(), Reason::ReadLocked);
        assert_eq!(word.lock(None).unwrap_err(), Reason::WriteLocked);
        word.unlock_as(Version(1 << 20));
        assert_eq!(word.lock(Some(Version(0))).unwrap_err(), Reason::ReadChanged);
        assert_eq!(word.stable(|| 6).unwrap(), (Version(1 << 20), 6));
    }

    #[test]
    fn a_read_that_a_writer_touched_is_done_again() {
        let word = VersionWord::default();
        let mut reads = 0;
        let (version, _) = word
            .stable(|| {
                reads += 1;
                if reads == 1 {
                    word.lock(None).unwrap();
                    word.unlock_as(Version(1 << 20));
                }
            })
            .unwrap();
        assert_eq!((reads, version), (2, Version(1 << 20)));
    }
}
