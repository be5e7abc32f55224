//! Mutants: small protocols, each broken in one way. The checker that finds nothing wrong with one of them is no
//! checker, or the stress is none.
//!
//! All are one optimistic protocol in the manner of `occ`, with a word beside each value (lock bit and version)
//! and a second word that keeps writers apart, so that no fault is undefined behaviour: two writers never install
//! into one segment at a time, and values that a reader sees half-written are plain integers.

use hotrow::sync::atomic::{AtomicU64, Ordering, fence};
use hotrow::sync::spin::Spin;
use hotrow::sync::thread;
use hotrow::{Protocol, Reason};
use hotrow_core::{Absent, Attempt, Before, ConflictCause, Flags, ItemId, Look, Prepared, Steps};

mutants! { Mutant, STRICT = true:
    /// Reads are not checked at commit.
    ReadsUnchecked = "unchecked-reads",
    /// A new version is published, and the lock given back, before the value is installed.
    PublishedEarly = "versions-published-before-their-values",
    /// Buckets and leaves are not checked at commit.
    PhantomsUnchecked = "unchecked-phantoms",
    /// A part of a leaf that was observed is not looked at again when the leaf has changed.
    PartsUnseen = "changed-leaves-accepted-unseen",
    /// An attempt reads a snapshot of when it began, and commits on it however old it is.
    StaleSnapshot = "stale-snapshot",
    /// Only reads of what is also written are checked (snapshot isolation's first committer wins).
    ReadsOfOthersUnchecked = "snapshot-isolation",
    /// Reads are checked before writes are locked.
    CheckedBeforeLocked = "checks-before-locks",
    /// Predicates are not checked at commit.
    PredicatesUnchecked = "unchecked-predicates",
    /// Attempts that wrote nothing are not checked.
    ReadersUnchecked = "unchecked-readers",
    /// Predicates are looked at before writes are locked, and what was seen then is not checked again.
    PredicatesBeforeLocks = "predicates-before-locks",
    /// A segment that is read again counts with the version seen last, so an earlier one is not checked.
    LastReadChecked = "only-the-last-read-checked",
    /// Each write is locked, installed and unlocked before the next one is locked, after all checks.
    LockedOneByOne = "locks-taken-one-by-one",
    /// Only the first write is locked before the checks, the others after them.
    FewLocked = "only-the-first-write-locked",
    /// A commit does not change the versions of what it writes after its first write.
    VersionsReused = "reused-versions",
    /// Locks of others are not heeded by the checks: only versions are compared.
    LocksUnheeded = "unheeded-locks",
    /// Rollbacks and panics are believed whatever was read.
    RollbacksUnchecked = "unchecked-rollbacks",
    /// The commit's stamp is drawn before writes are locked, so that a snapshot between may miss what it must see.
    StampedBeforeLocks = "stamps-before-locks",
    /// The commit's stamp is drawn before predicates are checked, which may count on a commit with a later stamp.
    StampedBeforePredicates = "stamps-before-predicates",
    /// The commit's stamp is drawn after the checks, when those who overwrite what was read may have drawn theirs.
    StampedAfterChecks = "stamps-after-checks",
}

pub(crate) struct Mutant {
    fault: Fault,
    clock: AtomicU64,
}

pub(crate) const LOCKED: u64 = 1;

#[derive(Default)]
pub(crate) struct Word {
    /// Version (even; of what kind is the mutant's matter), and the lock bit that readers heed.
    pub(crate) version: AtomicU64,
    /// Keeps writers apart: 0, or 1 while one has the segment.
    pub(crate) writer: AtomicU64,
}

impl Word {
    pub(crate) fn new_locked() -> Self {
        Self { version: AtomicU64::new(LOCKED), writer: AtomicU64::new(1) }
    }

    /// `None` while a writer has it.
    pub(crate) fn begin_look(&self) -> Option<u64> {
        let before = self.version.load(Ordering::SeqCst);
        (before & LOCKED == 0).then_some(before)
    }

    /// Returns the version, if no writer came.
    pub(crate) fn end_look(&self, before: u64) -> Option<u64> {
        fence(Ordering::Acquire);
        (self.version.load(Ordering::SeqCst) == before).then_some(before)
    }

    pub(crate) fn stable<V>(&self, mut load: impl FnMut() -> V) -> Result<(u64, V), Reason> {
        let mut spin = Spin::new();
        loop {
            if let Some(before) = self.begin_look() {
                let value = load();
                if let Some(version) = self.end_look(before) {
                    return Ok((version, value));
                }
            }
            if !spin.turn() {
                return Err(Reason::ReadLocked);
            }
        }
    }

    /// Returns the version below the lock.
    pub(crate) fn lock(&self) -> Result<u64, Reason> {
        let mut spin = Spin::new();
        while self.writer.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            if !spin.turn() {
                return Err(Reason::WriteLocked);
            }
        }
        let below = self.version.fetch_or(LOCKED, Ordering::SeqCst);
        fence(Ordering::Release);
        Ok(below)
    }

    pub(crate) fn publish(&self, version: u64) {
        self.version.store(version, Ordering::SeqCst);
    }

    pub(crate) fn unlock(&self) {
        self.version.fetch_and(!LOCKED, Ordering::SeqCst);
        self.writer.store(0, Ordering::SeqCst);
    }
}

#[derive(Default)]
pub(crate) struct Local {
    bound: u64,
}

/// As if the thread had been stopped here: where a fault opens a window, somebody should look through it.
fn stumble(attempt: u64) {
    if attempt.is_multiple_of(4) {
        thread::yield_now();
    }
}

impl Mutant {
    fn with(fault: Fault) -> Self {
        Self { fault, clock: AtomicU64::new(0) }
    }

    /// Locks some of the writes, those from one number on and before another.
    fn lock(attempt: &mut Attempt<Self>, begin: usize, end: usize) -> Result<(), ConflictCause> {
        for at in begin..end.min(attempt.items.writes().len()) {
            let id = attempt.items.writes()[at];
            let item = attempt.items.get_mut(id);
            if !item.is(Flags::INSERTED) {
                item.header().lock().map_err(|reason| ConflictCause::item(reason, id))?;
                item.set(Flags::LOCKED);
            }
        }
        Ok(())
    }

    fn check(&self, attempt: &Attempt<Self>) -> Result<(), ConflictCause> {
        if self.fault == Fault::ReadersUnchecked && attempt.items.writes().is_empty() {
            return Ok(());
        }
        for (id, item) in attempt.items.entries() {
            let skipped = match self.fault {
                Fault::ReadsUnchecked | Fault::StaleSnapshot => true,
                Fault::ReadsOfOthersUnchecked => !item.is(Flags::WRITE),
                _ => false,
            };
            if !item.is(Flags::READ) || skipped {
                continue;
            }
            let now = item.header().version.load(Ordering::SeqCst);
            let mine = item.is(Flags::LOCKED);
            let heeded = self.fault != Fault::LocksUnheeded;
            if now & !LOCKED != item.mark || (now & LOCKED != 0 && !mine && heeded) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        match self.fault {
            Fault::PhantomsUnchecked => Ok(()),
            Fault::PartsUnseen => attempt.check_structures_by(Attempt::is_of_part),
            _ => attempt.check_structures(),
        }
    }

    fn check_predicates(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        if !attempt.items.has_predicates() || self.fault == Fault::PredicatesUnchecked {
            return Ok(());
        }
        for id in attempt.items.ids() {
            let item = attempt.items.get(id);
            if !item.is(Flags::PREDICATE) {
                continue;
            }
            let holds = if item.is(Flags::LOCKED) {
                attempt.predicate_holds(id)
            } else {
                let stable = item.header().stable(|| attempt.predicate_holds(id));
                let (version, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
                let item = attempt.items.get_mut(id);
                if !item.is(Flags::READ) && self.fault != Fault::PredicatesBeforeLocks {
                    item.mark = version;
                    item.set(Flags::READ);
                }
                holds
            };
            if !holds {
                return Err(ConflictCause::item(Reason::PredicateFailed, id));
            }
        }
        Ok(())
    }
}

// SAFETY: each write is installed once, by who has the header's second word. With one fault, a `load` may count during which
// something is installed; the workload's values are plain numbers, of which a mixture is a value, too.
unsafe impl Protocol for Mutant {
    type Header = Word;
    type Mark = u64;
    type Local = Local;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;
    type LoggedReads = Absent;
    type PieceOrder = Absent;
    type Elision = Absent;
    type Reports = Absent;
}

impl Steps<Mutant> for Mutant {
    fn begin(&self, attempt: &mut Attempt<Self>) {
        attempt.local.bound = self.clock.load(Ordering::SeqCst);
    }

    fn before_load(&self, attempt: &mut Attempt<Self>, id: ItemId, _: Look) -> Result<Before, ConflictCause> {
        let before = attempt.items.get(id).header().begin_look();
        before.map(Before).ok_or(ConflictCause::item(Reason::ReadLocked, id).passing())
    }

    fn after_load(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        look: Look,
        Before(before): Before,
    ) -> Result<(), ConflictCause> {
        let bound = attempt.local.bound;
        let item = attempt.items.get_mut(id);
        let version =
            item.header().end_look(before).ok_or(ConflictCause::item(Reason::ReadLocked, id).passing())?;
        if look == Look::Peek {
            return Ok(());
        }
        if self.fault == Fault::StaleSnapshot && version > bound {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        if item.is(Flags::READ) && item.mark != version && self.fault != Fault::LastReadChecked {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        item.mark = version;
        item.set(Flags::READ);
        Ok(())
    }

    fn write(&self, _attempt: &mut Attempt<Self>, _id: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> Word {
        Word::new_locked()
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        let locked_first = match self.fault {
            Fault::CheckedBeforeLocked | Fault::LockedOneByOne => 0,
            Fault::FewLocked => 1,
            _ => usize::MAX,
        };
        if self.fault == Fault::PredicatesBeforeLocks {
            self.check_predicates(attempt)?;
            stumble(attempt.local.bound);
        }
        if self.fault == Fault::StampedBeforeLocks && !attempt.items.writes().is_empty() {
            attempt.draw_stamp();
            stumble(attempt.local.bound);
        }
        Self::lock(attempt, 0, locked_first)?;
        if self.fault == Fault::StampedBeforePredicates && !attempt.items.writes().is_empty() {
            attempt.draw_stamp();
            stumble(attempt.local.bound);
        }
        if self.fault != Fault::PredicatesBeforeLocks {
            self.check_predicates(attempt)?;
        }
        if self.fault != Fault::StampedAfterChecks && !attempt.items.writes().is_empty() {
            attempt.draw_stamp();
        }
        if self.fault == Fault::LocksUnheeded {
            // Two must be between lock and installation at a time, and check what the other has locked.
            thread::yield_now();
        }
        self.check(attempt)?;
        if self.fault == Fault::LocksUnheeded {
            thread::yield_now();
        }
        if locked_first < usize::MAX {
            stumble(attempt.local.bound);
        }
        if self.fault != Fault::LockedOneByOne {
            Self::lock(attempt, locked_first, usize::MAX)?;
        }
        if self.fault == Fault::StampedAfterChecks && !attempt.items.writes().is_empty() {
            stumble(attempt.local.bound);
            attempt.draw_stamp();
        }
        Ok(())
    }

    fn finish(&self, prepared: Prepared<'_, Self>) {
        let version = self.clock.fetch_add(2, Ordering::SeqCst) + 2;
        let mut prepared = prepared.one_by_one();
        for at in 0..prepared.attempt().items.writes().len() {
            let id = prepared.attempt().items.writes()[at];
            // Something has been installed: from now on it cannot fail. Others hold one lock at a time, too, and
            // wait for none while they hold it.
            while self.fault == Fault::LockedOneByOne && Self::lock(prepared.attempt(), at, at + 1).is_err() {
                thread::yield_now();
            }
            let reused = self.fault == Fault::VersionsReused && at > 0;
            let header = prepared.attempt().items.get(id).header();
            let version = if reused { header.version.load(Ordering::SeqCst) & !LOCKED } else { version };
            if self.fault == Fault::PublishedEarly {
                header.publish(version);
                stumble(version / 2);
                prepared.install(id);
            } else {
                prepared.install(id);
                prepared.attempt().items.get(id).header().publish(version);
            }
            prepared.attempt().items.get(id).header().writer.store(0, Ordering::SeqCst);
        }
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        if self.fault == Fault::RollbacksUnchecked { Ok(()) } else { self.prepare(attempt) }
    }

    fn abort(&self, attempt: &mut Attempt<Self>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                item.header().unlock();
            }
        }
    }
}
