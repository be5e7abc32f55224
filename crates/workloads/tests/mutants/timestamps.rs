//! Mutants of `tictoc`: what only a protocol with logical timestamps can do wrong.
//!
//! As those of `versions`, with the same words: a version is two timestamps.

use super::versions::{LOCKED, Word};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Protocol, Reason};
use hotrow_core::{Absent, Attempt, Before, ConflictCause, Flags, ItemId, Look, Prepared, Steps};

mutants! { TimestampMutant, STRICT = false:
    /// Absence has no place in logical time: buckets and leaves are checked, and that is all.
    Timeless = "absence-without-a-logical-time",
    /// An insertion need not come after those who have observed the absence of its key.
    ObserversUnheeded = "insertions-at-any-logical-time",
    /// Absences need not come after the deletions that made them.
    DeletersUnheeded = "deletions-without-a-logical-time",
    /// A version that was read need not be valid at the commit timestamp.
    NotExtended = "reads-that-are-not-extended",
    /// A version is extended although a writer has locked it and knows its commit timestamp already.
    ExtendedUnderLocks = "extensions-under-locks",
    /// A write comes after the version that it replaces, but not after those who read it.
    ReadersUnheeded = "writes-in-the-midst-of-a-version",
    /// A segment read again counts with the version seen last.
    LastReadCounts = "two-versions-of-one-segment",
}

pub(crate) struct TimestampMutant {
    fault: Fault,
    /// The latest timestamp of a commit that has observed an absence.
    observed: AtomicU64,
    /// The latest timestamp of a commit that has deleted a key.
    deleted: AtomicU64,
}

/// When a version was written (32 bits), until when it is valid (31 bits), and the lock bit.
fn word(write: u64, read: u64) -> u64 {
    write << 32 | read << 1
}

fn write_of(word: u64) -> u64 {
    word >> 32
}

fn read_of(word: u64) -> u64 {
    (word & 0xffff_ffff) >> 1
}

impl TimestampMutant {
    fn with(fault: Fault) -> Self {
        Self { fault, observed: AtomicU64::new(0), deleted: AtomicU64::new(0) }
    }

    fn extend(&self, header: &Word, mark: u64, commit_ts: u64) -> Result<(), Reason> {
        let mut seen = header.version.load(Ordering::SeqCst);
        loop {
            if write_of(seen) != write_of(mark) {
                return Err(Reason::ReadChanged);
            }
            if read_of(seen) >= commit_ts {
                return Ok(());
            }
            if seen & LOCKED != 0 {
                let heeded = self.fault != Fault::ExtendedUnderLocks;
                return if heeded { Err(Reason::ReadLocked) } else { Ok(()) };
            }
            let extended = word(write_of(seen), commit_ts);
            match header.version.compare_exchange(seen, extended, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    fn keep(&self, attempt: &mut Attempt<Self>, id: ItemId, stamps: u64) -> Result<(), ConflictCause> {
        let item = attempt.items.get_mut(id);
        let another = item.is(Flags::READ) && write_of(item.mark) != write_of(stamps);
        if another && self.fault != Fault::LastReadCounts {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        item.mark = stamps;
        item.set(Flags::READ);
        Ok(())
    }

    /// The earliest timestamp after what is overwritten.
    fn lock_writes(&self, attempt: &mut Attempt<Self>) -> Result<u64, ConflictCause> {
        let mut earliest = 0;
        for at in 0..attempt.items.writes().len() {
            let id = attempt.items.writes()[at];
            let item = attempt.items.get_mut(id);
            if item.is(Flags::INSERTED) {
                continue;
            }
            let below = item.header().lock().map_err(|reason| ConflictCause::item(reason, id))?;
            item.set(Flags::LOCKED);
            if item.is(Flags::READ) && write_of(item.mark) != write_of(below) {
                return Err(ConflictCause::item(Reason::ReadChanged, id));
            }
            let after = if self.fault == Fault::ReadersUnheeded { write_of(below) } else { read_of(below) };
            earliest = earliest.max(after + 1);
        }
        Ok(earliest)
    }

    fn upgrade_predicates(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        for id in attempt.items.ids() {
            let item = attempt.items.get(id);
            if !item.is(Flags::PREDICATE) {
                continue;
            }
            let holds = if item.is(Flags::LOCKED) {
                attempt.predicate_holds(id)
            } else {
                let stable = item.header().stable(|| attempt.predicate_holds(id));
                let (stamps, holds) = stable.map_err(|reason| ConflictCause::item(reason, id))?;
                self.keep(attempt, id, stamps)?;
                holds
            };
            if !holds {
                return Err(ConflictCause::item(Reason::PredicateFailed, id));
            }
        }
        Ok(())
    }
}

// SAFETY: loads are stable by the header, and each write is installed once, under the header's lock. The faults are in what
// is checked, not in that.
unsafe impl Protocol for TimestampMutant {
    type Header = Word;
    type Mark = u64;
    /// The timestamp of the current commit.
    type Local = u64;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;
    type LoggedReads = Absent;
    type PieceOrder = Absent;
    type Elision = Absent;
    type Reports = Absent;
}

impl Steps<TimestampMutant> for TimestampMutant {
    fn begin(&self, _attempt: &mut Attempt<Self>) {}

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
        let stamps = attempt.items.get(id).header().end_look(before);
        let stamps = stamps.ok_or(ConflictCause::item(Reason::ReadLocked, id).passing())?;
        if look == Look::Peek { Ok(()) } else { self.keep(attempt, id, stamps) }
    }

    fn write(&self, _attempt: &mut Attempt<Self>, _id: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    fn new_locked_header(&self, _attempt: &Attempt<Self>) -> Word {
        Word::new_locked()
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        let mut commit_ts = self.lock_writes(attempt)?;
        if self.fault == Fault::ExtendedUnderLocks {
            // Two must be between lock and installation at a time, and check what the other has locked.
            thread::yield_now();
        }
        self.upgrade_predicates(attempt)?;
        for item in attempt.items.iter().filter(|item| item.is(Flags::READ)) {
            commit_ts = commit_ts.max(write_of(item.mark));
        }
        let mut changes = attempt.items.iter().filter(|item| item.is(Flags::CLEANUP));
        let inserts = changes.clone().any(|item| item.is(Flags::INSERTED));
        let deletes = changes.any(|item| !item.is(Flags::INSERTED));
        // An insertion that the attempt has deleted again makes it an observer.
        let observes = attempt.has_structures() || inserts;
        let heeds_observers = inserts && !matches!(self.fault, Fault::Timeless | Fault::ObserversUnheeded);
        let heeds_deleters = observes && !matches!(self.fault, Fault::Timeless | Fault::DeletersUnheeded);
        if heeds_observers {
            commit_ts = commit_ts.max(self.observed.load(Ordering::SeqCst));
        }
        if heeds_deleters {
            commit_ts = commit_ts.max(self.deleted.load(Ordering::SeqCst));
        }
        for (id, item) in attempt.items.entries() {
            let unlocked = item.is(Flags::READ) && !item.is(Flags::LOCKED);
            if unlocked && read_of(item.mark) < commit_ts && self.fault != Fault::NotExtended {
                let extended = self.extend(item.header(), item.mark, commit_ts);
                extended.map_err(|reason| ConflictCause::item(reason, id))?;
            }
        }
        if observes && self.fault != Fault::Timeless {
            self.observed.fetch_max(commit_ts, Ordering::SeqCst);
        }
        if deletes && self.fault != Fault::Timeless {
            self.deleted.fetch_max(commit_ts, Ordering::SeqCst);
        }
        attempt.check_structures()?;
        attempt.local = commit_ts;
        Ok(())
    }

    fn finish(&self, mut prepared: Prepared<'_, Self>) {
        let commit_ts = prepared.attempt().local;
        prepared.install_all(
            |_| (),
            |item| {
                item.header().publish(word(commit_ts, commit_ts));
                item.header().writer.store(0, Ordering::SeqCst);
            },
        );
    }

    fn abort(&self, attempt: &mut Attempt<Self>) {
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) {
                item.header().unlock();
            }
        }
    }
}
