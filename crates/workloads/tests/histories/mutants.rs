//! Mutants: small protocols, each broken in one way. The checker that finds nothing wrong with one of them is no
//! checker, or the stress is none.
//!
//! All are one optimistic protocol in the manner of `occ`, with a word beside each value (lock bit and version)
//! and a second word that keeps writers apart, so that no fault is undefined behaviour: two writers never install
//! into one segment at a time, and values that a reader sees half-written are plain integers.

use hotrow::sync::atomic::{AtomicU64, Ordering, fence};
use hotrow::sync::spin::Spin;
use hotrow::sync::thread;
use hotrow::{Protocol, Reason, Variant, Variants};
use hotrow_core::{Absent, Attempt, ConflictCause, Flags, ItemId, Prepared};

/// What a mutant does wrong. `NONE` does nothing wrong, which shows that the others are caught for their faults.
pub(crate) mod fault {
    pub(crate) const NONE: u8 = 0;
    /// Reads are not checked at commit.
    pub(crate) const READS_UNCHECKED: u8 = 1;
    /// A new version is published, and the lock given back, before the value is installed.
    pub(crate) const PUBLISHED_EARLY: u8 = 2;
    /// Buckets and leaves are not checked at commit.
    pub(crate) const PHANTOMS_UNCHECKED: u8 = 3;
    /// An attempt reads a snapshot of when it began, and commits on it however old it is.
    pub(crate) const STALE_SNAPSHOT: u8 = 4;
    /// Only reads of what is also written are checked (snapshot isolation's first committer wins).
    pub(crate) const READS_OF_OTHERS_UNCHECKED: u8 = 5;
    /// Reads are checked before writes are locked.
    pub(crate) const CHECKED_BEFORE_LOCKED: u8 = 6;
    /// Predicates are not checked at commit.
    pub(crate) const PREDICATES_UNCHECKED: u8 = 7;
    /// Attempts that wrote nothing are not checked.
    pub(crate) const READERS_UNCHECKED: u8 = 8;
    /// Predicates are looked at before writes are locked, and what was seen then is not checked again.
    pub(crate) const PREDICATES_BEFORE_LOCKS: u8 = 9;
    /// A segment that is read again counts with the version seen last, so an earlier one is not checked.
    pub(crate) const LAST_READ_CHECKED: u8 = 10;
    /// Each write is locked, installed and unlocked before the next one is locked, after all checks.
    pub(crate) const LOCKED_ONE_BY_ONE: u8 = 11;
    /// Only the first write is locked before the checks, the others after them.
    pub(crate) const FEW_LOCKED: u8 = 12;
    /// A commit does not change the versions of what it writes after its first write.
    pub(crate) const VERSIONS_REUSED: u8 = 13;
    /// Locks of others are not heeded by the checks: only versions are compared.
    pub(crate) const LOCKS_UNHEEDED: u8 = 14;
    /// Rollbacks and panics are believed whatever was read. The history does not show that, only what the body says.
    pub(crate) const ROLLBACKS_UNCHECKED: u8 = 15;
}

pub(crate) struct Mutant<const FAULT: u8> {
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

    pub(crate) fn stable<V>(&self, mut load: impl FnMut() -> V) -> Result<(u64, V), Reason> {
        let mut spin = Spin::new();
        loop {
            let before = self.version.load(Ordering::SeqCst);
            if before & LOCKED == 0 {
                let value = load();
                fence(Ordering::Acquire);
                if self.version.load(Ordering::SeqCst) == before {
                    return Ok((before, value));
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

impl<const FAULT: u8> Mutant<FAULT> {
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

    fn check(attempt: &Attempt<Self>) -> Result<(), ConflictCause> {
        if FAULT == fault::READERS_UNCHECKED && attempt.items.writes().is_empty() {
            return Ok(());
        }
        for (id, item) in attempt.items.entries() {
            let skipped = match FAULT {
                fault::READS_UNCHECKED | fault::STALE_SNAPSHOT => true,
                fault::READS_OF_OTHERS_UNCHECKED => !item.is(Flags::WRITE),
                _ => false,
            };
            if !item.is(Flags::READ) || skipped {
                continue;
            }
            let now = item.header().version.load(Ordering::SeqCst);
            let mine = item.is(Flags::LOCKED);
            let heeded = FAULT != fault::LOCKS_UNHEEDED;
            if now & !LOCKED != item.mark || (now & LOCKED != 0 && !mine && heeded) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
        }
        if FAULT == fault::PHANTOMS_UNCHECKED { Ok(()) } else { attempt.check_structures() }
    }

    fn check_predicates(attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        if !attempt.items.has_predicates() || FAULT == fault::PREDICATES_UNCHECKED {
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
                if !item.is(Flags::READ) && FAULT != fault::PREDICATES_BEFORE_LOCKS {
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

impl<const FAULT: u8> Variants for Mutant<FAULT> {
    const VARIANTS: &'static [Variant] = &[Variant { name: "mutant", summary: "broken", source: "-" }];
    const OPAQUE: bool = false;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        (name == "mutant").then_some(())
    }

    fn new((): &()) -> Self {
        Self { clock: AtomicU64::new(0) }
    }
}

// SAFETY: each write is installed once, by who has the header's second word. With one fault, a `load` may count during which
// something is installed; the workload's values are plain numbers, of which a mixture is a value, too.
unsafe impl<const FAULT: u8> Protocol for Mutant<FAULT> {
    const WORKERS_MAX: u32 = 64;
    type Header = Word;
    type Mark = u64;
    type Local = Local;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;

    fn begin(&self, attempt: &mut Attempt<Self>) {
        attempt.local.bound = self.clock.load(Ordering::SeqCst);
    }

    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let bound = attempt.local.bound;
        let item = attempt.items.get_mut(id);
        let (version, value) =
            item.header().stable(load).map_err(|reason| ConflictCause::item(reason, id))?;
        if FAULT == fault::STALE_SNAPSHOT && version > bound {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        if !item.is(Flags::READ) || FAULT == fault::LAST_READ_CHECKED {
            item.mark = version;
            item.set(Flags::READ);
        }
        Ok(value)
    }

    fn write(&self, _attempt: &mut Attempt<Self>, _id: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let stable = attempt.items.get(id).header().stable(load);
        stable.map(|(_, value)| value).map_err(|reason| ConflictCause::item(reason, id))
    }

    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> Word {
        Word::new_locked()
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        let locked_first = match FAULT {
            fault::CHECKED_BEFORE_LOCKED | fault::LOCKED_ONE_BY_ONE => 0,
            fault::FEW_LOCKED => 1,
            _ => usize::MAX,
        };
        if FAULT == fault::PREDICATES_BEFORE_LOCKS {
            Self::check_predicates(attempt)?;
            stumble(attempt.local.bound);
        }
        Self::lock(attempt, 0, locked_first)?;
        if FAULT == fault::LOCKS_UNHEEDED {
            // Two must be between lock and installation at a time, and check what the other has locked.
            thread::yield_now();
        }
        if FAULT != fault::PREDICATES_BEFORE_LOCKS {
            Self::check_predicates(attempt)?;
        }
        Self::check(attempt)?;
        if FAULT == fault::LOCKS_UNHEEDED {
            thread::yield_now();
        }
        if locked_first < usize::MAX {
            stumble(attempt.local.bound);
        }
        if FAULT != fault::LOCKED_ONE_BY_ONE {
            Self::lock(attempt, locked_first, usize::MAX)?;
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
            while FAULT == fault::LOCKED_ONE_BY_ONE && Self::lock(prepared.attempt(), at, at + 1).is_err() {
                thread::yield_now();
            }
            let reused = FAULT == fault::VERSIONS_REUSED && at > 0;
            let header = prepared.attempt().items.get(id).header();
            let version = if reused { header.version.load(Ordering::SeqCst) & !LOCKED } else { version };
            if FAULT == fault::PUBLISHED_EARLY {
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
        if FAULT == fault::ROLLBACKS_UNCHECKED { Ok(()) } else { self.prepare(attempt) }
    }

    fn abort(&self, attempt: &mut Attempt<Self>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                item.header().unlock();
            }
        }
    }
}
