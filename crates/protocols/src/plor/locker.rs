//! The latch-free locker (plor §4.2): the lock state beside each value.
//!
//! Four words:
//!
//! - `writer`: the attempt that has the right to write, and a mark for *exclusive mode*; 0 if there is none;
//! - `readers`: a bit for each of the workers 0 to 61 whose attempt has entered as a reader;
//! - `waiters`: a bit for each of them whose attempt waits for the right to write;
//! - `version`: a sequence number, odd while a value is being installed.
//!
//! Locking and looking for conflicts are separate steps, so each is one access to one word:
//!
//! - a reader *enters its bit and then looks at* `writer`;
//! - a writer that commits *marks* `writer` *and then looks at* `readers`.
//!
//! Both are read-modify-writes followed by loads, all sequentially consistent. So of a reader and a committing
//! writer at least one sees the other. If the reader does, it clears its bit and waits. If the writer does, it
//! wounds the reader or waits for it.
//!
//! # Deviations
//!
//! - The paper marks exclusive mode in the readers' word, so that one access returns the readers that came before.
//!   Here the mark is in the writer's word, which names its owner. So the right to write can be taken, mark and all,
//!   from a wounded writer. The cost: a committing writer may see the bit of a reader that is about to clear it, and
//!   wound that reader in vain.
//! - A worker beyond the 62nd is noted in a list under a mutex instead of by a bit ([`Overflow`]); bit 62 marks that
//!   the list has such workers. (The paper stops at 63.)
//! - The version is for transactions that read without entering (plor §4.1.3, "Read-only transactions").

use crate::stable::StableWord;
use crate::striped::Striped;
use crate::worker_states::AttemptId;
use hotrow_core::Before;
use hotrow_sync::atomic::{AtomicU64, Ordering, fence};
use hotrow_sync::spin::Spin;

/// Number of workers that have a bit of their own.
const BITS: u32 = if cfg!(test) { 3 } else { 62 };
/// Mark: there are workers without a bit.
const OVERFLOW: u64 = 1 << 62;
/// In `waiters`: the latch of the baseline.
const LATCHED: u64 = 1 << 63;
/// In `writer`: exclusive mode.
const EXCLUSIVE: u64 = 1;

/// The words beside a value.
#[derive(Debug, Default)]
pub struct Locker {
    writer: AtomicU64,
    readers: AtomicU64,
    waiters: AtomicU64,
    version: AtomicU64,
}

/// The word that names the attempt with the right to write, as loaded at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Writer(u64);

impl Writer {
    /// Returns the attempt that has the right.
    #[inline(always)]
    pub(super) fn holder(self) -> Option<AttemptId> {
        (self.0 != 0).then_some(AttemptId::in_word(self.0))
    }

    /// Returns the attempt, if it is in exclusive mode.
    #[inline(always)]
    pub(super) fn exclusive(self) -> Option<AttemptId> {
        (self.0 & EXCLUSIVE != 0).then_some(AttemptId::in_word(self.0))
    }
}

/// The two sets of a locker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// The workers that have entered as readers.
    Readers,
    /// The workers that wait for the right to write.
    Waiters,
}

impl Locker {
    /// Makes the locker of a segment that an attempt has just created: nobody reads it before the attempt ends.
    pub(super) fn new_locked(id: AttemptId) -> Self {
        Self { writer: AtomicU64::new(id.word() | EXCLUSIVE), version: AtomicU64::new(1), ..Self::default() }
    }

    /// Returns its address, which is the segment's address.
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn word(&self, set: Set) -> &AtomicU64 {
        match set {
            Set::Readers => &self.readers,
            Set::Waiters => &self.waiters,
        }
    }

    /// Adds a worker to a set.
    #[inline(always)]
    pub(super) fn enter(&self, set: Set, worker: u32, overflow: &Overflow) {
        if worker < BITS {
            self.word(set).fetch_or(1 << worker, Ordering::SeqCst);
        } else {
            overflow.enter(self, set, worker);
        }
    }

    /// Removes a worker from a set.
    #[inline(always)]
    pub(super) fn leave(&self, set: Set, worker: u32, overflow: &Overflow) {
        if worker < BITS {
            // Release: a writer that no longer finds the reader stores after the reader's loads.
            self.word(set).fetch_and(!(1 << worker), Ordering::Release);
        } else {
            overflow.leave(self, set, worker);
        }
    }

    /// Visits the workers in a set, one after the other.
    pub(super) fn each(&self, set: Set, overflow: &Overflow, mut visit: impl FnMut(u32)) {
        let word = self.word(set).load(Ordering::SeqCst);
        let mut bits = word & !(OVERFLOW | LATCHED);
        while bits != 0 {
            visit(bits.trailing_zeros());
            bits &= bits - 1;
        }
        if word & OVERFLOW != 0 {
            overflow.workers(self, set).into_iter().for_each(visit);
        }
    }

    /// True if a set is empty.
    #[inline(always)]
    pub(super) fn is_empty(&self, set: Set) -> bool {
        self.word(set).load(Ordering::SeqCst) & !LATCHED == 0
    }

    /// True if a worker is in a set.
    pub(super) fn contains(&self, set: Set, worker: u32, overflow: &Overflow) -> bool {
        if worker < BITS {
            self.word(set).load(Ordering::SeqCst) & (1 << worker) != 0
        } else {
            overflow.workers(self, set).contains(&worker)
        }
    }

    /// Loads the word that names the attempt with the right to write.
    #[inline(always)]
    pub(super) fn writer(&self) -> Writer {
        Writer(self.writer.load(Ordering::SeqCst))
    }

    /// Takes the right to write, from nobody or from the writer that was seen. True if `id` has it now.
    #[inline(always)]
    pub(super) fn take(&self, seen: Option<Writer>, id: AttemptId) -> bool {
        let from = seen.map_or(0, |writer| writer.0);
        // Sequentially consistent, which includes acquire: pairs with the release of the last writer.
        self.writer.compare_exchange(from, id.word(), Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Gives the right to write from one attempt to another, or to nobody. False if it was taken away.
    #[inline]
    pub(super) fn pass(&self, from: AttemptId, to: Option<AttemptId>) -> bool {
        let to = to.map_or(0, AttemptId::word);
        self.writer.compare_exchange(from.word(), to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Enters exclusive mode. False if the right to write was taken away.
    #[inline(always)]
    pub(super) fn make_exclusive(&self, id: AttemptId) -> bool {
        let (from, to) = (id.word(), id.word() | EXCLUSIVE);
        self.writer.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Gives the right to write to another attempt after a commit. It cannot have been taken away.
    pub(super) fn release_to(&self, to: AttemptId) {
        // Sequentially consistent, which includes release: see `hand_over`, "an attempt that has left".
        self.writer.swap(to.word(), Ordering::SeqCst);
    }

    /// Releases the right to write after a commit. It cannot have been taken away.
    #[inline(always)]
    pub(super) fn release(&self) {
        // Release: pairs with `take`, and with the loads of readers that find exclusive mode ended.
        self.writer.store(0, Ordering::Release);
    }

    /// Releases the right to write, unless it was taken away.
    pub(super) fn release_if_held(&self, id: AttemptId) {
        for word in [id.word(), id.word() | EXCLUSIVE] {
            // A load that fails counts as well: an attempt that hands the right over later finds this attempt over.
            if self.writer.compare_exchange(word, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
    }

    /// Begins to store a new value; [`end_install`](Self::end_install) follows.
    #[inline(always)]
    pub(super) fn begin_install(&self) {
        let version = self.version.load(Ordering::Relaxed);
        // (The version of a segment that was just made is odd already.)
        self.version.store(version | 1, Ordering::Relaxed);
        // Orders the odd version, and wounds dealt before, ahead of the stores to the value. Pairs with the acquire
        // fences in `stable` and in `WorkerStates::is_wounded`.
        fence(Ordering::Release);
    }

    /// Ends an installation: the new value is stored, or an insertion undone.
    #[inline(always)]
    pub(super) fn end_install(&self) {
        let version = self.version.load(Ordering::Relaxed);
        // Release: pairs with the load in `stable`.
        self.version.store(version + 1, Ordering::Release);
    }

    /// True if the value still has this version, and nobody is about to replace it, except if `harmless` allows it.
    #[inline(always)]
    pub(super) fn is_unchanged(&self, version: u64, harmless: impl FnOnce(AttemptId) -> bool) -> bool {
        // In this order: an attempt that replaces the value is in exclusive mode from before its commit point until
        // the version has changed. So at the moment of the first load the value had this version and was settled.
        self.writer().exclusive().is_none_or(harmless) && self.version.load(Ordering::SeqCst) == version
    }

    /// Takes the latch (only in the baseline, see `PlorOptions::latched`).
    pub(super) fn latch(&self) -> Latch<'_> {
        let mut spin = Spin::new();
        while self.waiters.fetch_or(LATCHED, Ordering::Acquire) & LATCHED != 0 {
            spin.turn_or_yield();
        }
        Latch(self)
    }
}

/// A writer is who installs.
impl StableWord for Locker {
    type Version = u64;

    #[inline(always)]
    fn version_before(&self) -> Option<u64> {
        let before = self.version.load(Ordering::SeqCst);
        (before & 1 == 0).then_some(before)
    }

    #[inline(always)]
    fn version_after(&self, before: u64) -> Option<u64> {
        (self.version.load(Ordering::Relaxed) == before).then_some(before)
    }

    #[inline(always)]
    fn note(version: u64) -> Before {
        Before(version)
    }

    #[inline(always)]
    fn noted(before: Before) -> u64 {
        before.0
    }
}

/// A latched locker, unlatched on drop.
#[derive(Debug)]
pub(super) struct Latch<'a>(&'a Locker);

impl Drop for Latch<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_and(!LATCHED, Ordering::Release);
    }
}

/// Number of lists of noted workers.
const STRIPES: usize = if cfg!(test) { 2 } else { 64 };
/// Size of a locker's four words in bytes.
const GRAIN: usize = 32;

/// The workers without a bit that are in a set of some locker.
#[derive(Debug)]
pub(super) struct Overflow {
    notes: Striped<Note, STRIPES, GRAIN>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    locker: usize,
    set: Set,
    worker: u32,
}

impl Overflow {
    pub(super) fn new() -> Self {
        Self { notes: Striped::new() }
    }

    #[cold]
    fn enter(&self, locker: &Locker, set: Set, worker: u32) {
        let mut notes = self.notes.lock(locker.address());
        notes.push(Note { locker: locker.address(), set, worker });
        // Under the mutex, so that a thread that sees the bit finds the note.
        locker.word(set).fetch_or(OVERFLOW, Ordering::SeqCst);
    }

    #[cold]
    fn leave(&self, locker: &Locker, set: Set, worker: u32) {
        let mut notes = self.notes.lock(locker.address());
        let note = Note { locker: locker.address(), set, worker };
        if let Some(at) = notes.iter().position(|other| *other == note) {
            notes.swap_remove(at);
        }
        if !notes.iter().any(|other| (other.locker, other.set) == (note.locker, set)) {
            locker.word(set).fetch_and(!OVERFLOW, Ordering::SeqCst);
        }
    }

    #[cold]
    fn workers(&self, locker: &Locker, set: Set) -> Vec<u32> {
        let notes = self.notes.lock(locker.address());
        let noted = notes.iter().filter(|note| (note.locker, note.set) == (locker.address(), set));
        noted.map(|note| note.worker).collect()
    }
}
