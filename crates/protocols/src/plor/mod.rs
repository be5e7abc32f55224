//! Pessimistic locking and optimistic reading.
//!
//! # Algorithm (plor §4)
//!
//! A read enters the attempt among the segment's readers and looks past whoever has the right to write; a write
//! takes that right, from a younger attempt if need be, and waits for an older one. Nothing is stored before the
//! commit, so readers and one writer do not disturb each other until then. At commit (plor Figure 5):
//!
//! 1. each segment to be written goes over to exclusive mode, which keeps new readers off; of those that have
//!    entered, younger ones are wounded and older ones waited for, which may wound this attempt instead;
//! 2. predicates, buckets and leaves are checked, and the attempt passes its commit point unless it was wounded. It
//!    leaves the readers of what it has read;
//! 3. each write is installed and its right given up: to the oldest who waits for it, if somebody does.
//!
//! Whoever waits, waits for an older transaction, so there is no deadlock, and the oldest one is never wounded: it
//! gets through in its first attempt after it has become the oldest.
//!
//! # Why it is right
//!
//! The check of buckets and leaves is the transaction's place in the serial order: all that it needs is its own by
//! then, and it commits later without having been wounded. What it writes nobody else can write from before it until
//! the installation (there is one right to write), and whoever reads it in between waits. What it has read
//! is as it was: who replaces it must find it among the readers (`locker`, on why it does), and wounds it before its
//! own commit point, or waits until it has passed its own. `WorkerStates` has a wound and a commit exclude each other.
//!
//! A wounded reader may be in the middle of a look while the value is replaced. It looks at its own state afterwards
//! (`WorkerStates::is_wounded`), so what it has seen does not count.
//!
//! # Read-only transactions (plor §4.1.3)
//!
//! One that says it writes nothing ([`Profile::READ_ONLY`](hotrow_core::Profile::READ_ONLY)) does not enter
//! anything: it keeps versions and checks them at commit, as `occ` does, for [`OPTIMISTIC_ATTEMPTS`] attempts. Then
//! it reads like the others.
//!
//! # First attempts by versions
//!
//! The variant `plor+optimistic` extends that to all transactions: the first attempts look at versions and take the
//! rights to write at commit, which costs no more than `occ`; only who has been aborted [`OPTIMISTIC_ATTEMPTS`] times
//! enters as a reader and has the right of way by its age. The check of versions comes after exclusive mode, before
//! the commit point. Whoever is about to replace what was read is wounded if it is younger. It is right for the
//! reasons for which `occ` is (exclusive mode is its lock), and together with the rest because those who enter look
//! at exclusive mode, whoever has it.
//!
//! # Deviations
//!
//! - What a wounded attempt holds is taken from it at once, exclusive mode included, instead of waited for: it will
//!   install nothing. (plor §4.1.3, "Liveness", has it notice; it may be stopped by the system, or by a user's
//!   think time.) A reader past its commit point is not waited for either.
//! - Attempts are told apart by their numbers and not by timestamps (`states`).
//! - A record that is inserted is in exclusive mode from birth. In the paper it is locked for writing only, which
//!   readers look past.
//! - Delayed write locks are taken in the order of first write, not of addresses (plor §4.1.4): ages exclude deadlock
//!   without that, and a simulated run must not depend on where things lie in memory.
//! - Which records a transaction will touch is not known, so precedence by deadline goes by what it says of itself.
//! - Who waits spins, then parks; the paper spins, with fewer workers than cores.
//! - Scans observe leaves, which are checked at commit; an insertion may so abort an older scan. See `locking`.

mod commit;
mod hand_over;
mod locker;
mod options;
mod readers;

pub use locker::Locker;
pub use options::PlorOptions;

use crate::worker_states::{self, AttemptId, AttemptStamp, SpinPolicy, WorkerStates, Wound};
use hotrow_core::{
    Absent, Attempt, ConflictCause, Flags, ItemId, Prepared, Protocol, Reason, Variant, Variants,
};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::clock;
use locker::{Latch, Overflow, Set, Writer};

/// Pessimistic locking and optimistic reading: plor §4.
#[derive(Debug)]
pub struct Plor {
    options: PlorOptions,
    states: WorkerStates,
    overflow: Overflow,
}

/// What a worker keeps.
#[derive(Debug, Default)]
pub struct PlorLocal {
    stamp: AttemptStamp,
    /// The attempt reads by versions.
    optimistic: bool,
    /// The attempt takes rights to write at commit.
    delayed: bool,
    /// Readers found in a segment.
    readers: Vec<AttemptStamp>,
}

/// Attempts of a transaction that reads by versions before it enters (plor §4.1.3: three).
const OPTIMISTIC_ATTEMPTS: u32 = 3;

/// The locker of an item.
///
/// # Safety
///
/// The reference must not be used after the attempt has ended.
#[inline(always)]
unsafe fn locker_of<'a>(attempt: &Attempt<Plor>, id: ItemId) -> &'a Locker {
    // SAFETY: the item's segment is in memory until the attempt ends.
    unsafe { attempt.items.get(id).segment().as_ref() }
}

impl Plor {
    fn latch<'a>(&self, locker: &'a Locker) -> Option<Latch<'a>> {
        self.options.latched.then(|| locker.latch())
    }

    /// Whether an attempt that is in the way can be passed over: it is over, or younger and now wounded.
    fn passes(&self, stamp: AttemptStamp, other: AttemptId, locker: &Locker) -> bool {
        match self.states.stamp_of(other) {
            None => true,
            Some(other) if stamp.is_older_than(other) => {
                self.states.wound(other.id, locker.address()) == Wound::Dead
            }
            Some(_) => false,
        }
    }

    /// Waits until whoever was seen with the right to write has given it up. As a reader, it waits at that one's
    /// event; as a writer, at its own, for the right will be handed to it.
    #[cold]
    fn wait_for_writer(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        seen: Writer,
        reason: Reason,
    ) -> Result<(), ConflictCause> {
        let Some(holder) = seen.holder() else { return Ok(()) };
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let (stamp, states) = (attempt.local.stamp, &self.states);
        let over = || locker.writer() != seen || states.is_over(holder);
        let lost = ConflictCause::item(reason, id);
        if reason == Reason::WriteLocked {
            let granted = || states.is_granted(stamp.worker(), locker.address());
            states.wait(attempt, stamp.worker(), stamp, granted, over, lost)
        } else {
            states.wait(attempt, holder.worker(), stamp, || states.is_over(holder), over, lost)
        }
    }

    /// Enters among the readers of a segment (plor Figure 4, `LockRd`).
    #[inline(always)]
    fn lock_read(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let stamp = attempt.local.stamp;
        self.enter_readers(locker, stamp, |seen| {
            self.wait_for_writer(attempt, id, seen, Reason::ReadLocked)
        })?;
        attempt.items.get_mut(id).set(Flags::READ);
        Ok(())
    }

    /// Takes the right to write a segment (plor Figure 4, `LockWr`).
    #[inline(always)]
    fn lock_write(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let latch = self.latch(locker);
        let taken = locker.take(None, attempt.local.stamp.id);
        drop(latch);
        // Who has come before others that wait must look for older ones among them.
        if !taken || !locker.is_empty(Set::Waiters) {
            self.lock_write_slowly(attempt, id)?;
        }
        attempt.items.get_mut(id).set(Flags::LOCKED);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn lock_write_slowly(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let stamp = attempt.local.stamp;
        self.take_in_turn(locker, stamp, |seen| self.wait_for_writer(attempt, id, seen, Reason::WriteLocked))
    }

    /// Makes sure that the value of an item stays, or that the attempt learns that it does not.
    #[inline(always)]
    fn enter(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get(id);
        if item.is(Flags::READ) || item.is(Flags::LOCKED) { Ok(()) } else { self.lock_read(attempt, id) }
    }

    #[inline(always)]
    fn unharmed<V>(&self, attempt: &Attempt<Self>, value: V) -> Result<V, ConflictCause> {
        self.states.unharmed(attempt, attempt.local.stamp, value)
    }

    /// A look at a value between installations, whose version an optimistic attempt keeps.
    #[inline(always)]
    fn read_version<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        let item = attempt.items.get_mut(id);
        let Some((version, value)) = item.header().stable(load) else {
            return Err(ConflictCause::item(Reason::ReadLocked, id));
        };
        if !item.is(Flags::READ) {
            item.mark = version;
            item.set(Flags::READ);
        } else if item.mark != version {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        Ok(value)
    }
}

impl Variants for Plor {
    const VARIANTS: &'static [Variant] = options::VARIANTS;
    // Buckets and leaves are checked at commit only, and so is what a read-only transaction reads at first.
    const OPAQUE: bool = false;

    type Options = PlorOptions;

    fn options(name: &str) -> Option<PlorOptions> {
        PlorOptions::parse(name)
    }

    fn name(options: &PlorOptions) -> String {
        options.name()
    }

    fn new(options: &PlorOptions) -> Self {
        Self { options: *options, states: WorkerStates::new(SpinPolicy::SPINNING), overflow: Overflow::new() }
    }
}

// SAFETY: a `load` runs between two installs, which are counted (`Locker::stable`), or while the attempt is among the readers
// or has the right to write; then it counts only if the attempt has not been wounded by then (`unharmed`). Writes are installed
// between `begin_install` and `end_install`, with the right to write, which nobody takes from an attempt that has passed its
// commit point; each once, after everything that can fail.
unsafe impl Protocol for Plor {
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;
    type Header = Locker;
    type Mark = u64;
    type Local = PlorLocal;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;

    #[inline]
    fn begin(&self, attempt: &mut Attempt<Self>) {
        let profile = attempt.profile();
        let slack = self.options.slack.map_or(0, |slack| slack.as_nanos() as u64);
        let behind_ns = slack.saturating_mul(profile.records.into());
        let optimistic =
            (profile.read_only || self.options.optimistic) && attempt.number() < OPTIMISTIC_ATTEMPTS;
        attempt.local.optimistic = optimistic;
        attempt.local.delayed = self.options.delayed_writes || optimistic;
        let now_ns = || clock::nanoseconds().saturating_add(behind_ns);
        attempt.local.stamp = self.states.begin(attempt, attempt.local.stamp, now_ns);
    }

    #[inline(always)]
    fn read<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        if attempt.local.optimistic {
            return self.read_version(attempt, id, load);
        }
        self.enter(attempt, id)?;
        self.unharmed(attempt, load())
    }

    #[inline(always)]
    fn read_for_update<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        if attempt.local.optimistic {
            return self.read_version(attempt, id, load);
        }
        self.write(attempt, id)?;
        // Who has the right to write need not enter; with delayed writes nobody has it yet.
        self.enter(attempt, id)?;
        self.unharmed(attempt, load())
    }

    #[inline(always)]
    fn write(&self, attempt: &mut Attempt<Self>, id: ItemId) -> Result<(), ConflictCause> {
        if attempt.local.delayed || attempt.items.get(id).is(Flags::LOCKED) {
            return Ok(());
        }
        self.lock_write(attempt, id)
    }

    fn peek<V>(
        &self,
        attempt: &mut Attempt<Self>,
        id: ItemId,
        load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        match attempt.items.get(id).header().stable(load) {
            Some((_, value)) => Ok(value),
            None => Err(ConflictCause::item(Reason::ReadLocked, id)),
        }
    }

    fn new_locked_header(&self, attempt: &Attempt<Self>) -> Locker {
        Locker::new_locked(attempt.local.stamp.id)
    }

    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        self.make_all_exclusive(attempt)?;
        attempt.draw_stamp();
        self.validate_all(attempt)?;
        if Self::is_unknown(attempt) {
            Ok(())
        } else {
            self.states.pass_commit_point(attempt, attempt.local.stamp)
        }
    }

    fn finish(&self, mut prepared: Prepared<'_, Self>) {
        let stamp = prepared.attempt().local.stamp;
        if Self::is_unknown(prepared.attempt()) {
            return self.states.end(stamp);
        }
        if !prepared.attempt().local.optimistic {
            self.leave_readers(prepared.attempt());
        }
        let mut holds = !prepared.attempt().items.writes().is_empty();
        let attempt = prepared.install_all(
            |item| item.header().begin_install(),
            |item| {
                let locker = item.header();
                locker.end_install();
                let latch = self.latch(locker);
                locker.release();
                drop(latch);
            },
        );
        // Rights to write what then was not written: a dead record that was to be updated.
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) && !item.is(Flags::WRITE) {
                item.header().release();
                holds = true;
            }
        }
        if holds {
            // Orders the releases before the looks at who waits: who enters as a waiter then finds the right to
            // write free, or is found here.
            fence(Ordering::SeqCst);
            for item in attempt.items.iter() {
                if item.is(Flags::LOCKED) {
                    self.hand_over(item.header());
                }
            }
        }
        self.states.end(stamp);
        self.states.tell(stamp);
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        self.validate_all(attempt)?;
        self.unharmed(attempt, ())
    }

    #[cold]
    fn abort(&self, attempt: &mut Attempt<Self>) {
        let stamp = attempt.local.stamp;
        // Before anything is released: who still takes it for a waiter and hands it a right, which it has just given
        // up, must find that it is not running (`hand_over`).
        self.states.wound(stamp.id, 0);
        if !attempt.local.optimistic {
            self.leave_readers(attempt);
        }
        for item in attempt.items.iter() {
            if item.is(Flags::INSERTED) {
                item.header().end_install();
            }
            if item.is(Flags::LOCKED) {
                item.header().release_if_held(stamp.id);
                self.hand_over(item.header());
            }
        }
        self.states.end(stamp);
        self.states.tell(stamp);
    }
}

#[cfg(all(test, loom))]
mod models;
