//! Pessimistic locking and optimistic reading.
//!
//! # Algorithm (plor §4)
//!
//! A read adds the attempt to the segment's readers and ignores the holder of the right to write. A write takes that
//! right, from a younger attempt if need be, and waits for an older one. Nothing is stored before the commit, so
//! readers and one writer do not disturb each other until then. At commit (plor Figure 5):
//!
//! 1. each segment to be written enters exclusive mode, which keeps new readers off. Younger readers that have
//!    entered are wounded. Older ones are waited for, and may wound this attempt instead;
//! 2. predicates, buckets and leaves are checked, and the attempt passes its commit point unless it was wounded. It
//!    leaves the readers of what it has read;
//! 3. each write is installed and its right given up, to the oldest waiter if there is one.
//!
//! An attempt waits only for older transactions, so there is no deadlock. The oldest transaction is never wounded:
//! its first attempt after it has become the oldest commits.
//!
//! # Why it is serializable
//!
//! The moment when buckets and leaves are checked is the transaction's place in the serial order. By then it holds
//! all that it needs, and it commits later without having been wounded. From before that moment until the
//! installation nobody else can write its writes, because there is one right to write, and whoever reads them in
//! between waits. Its reads are unchanged, because a writer that replaces them finds it among the readers (`locker`
//! argues why). That writer wounds it before its own commit point, or waits until it has passed its own. In
//! `WorkerStates` a wound and a commit exclude each other.
//!
//! A wounded reader may be in the middle of a load while the value is replaced. It checks its own state afterwards
//! (`WorkerStates::is_wounded`), so the value that it has loaded does not count.
//!
//! # Read-only transactions (plor §4.1.3)
//!
//! A transaction that declares that it writes nothing ([`Profile::READ_ONLY`](hotrow_core::Profile::READ_ONLY))
//! enters no reader set. It keeps versions and checks them at commit, as `occ` does, for [`OPTIMISTIC_ATTEMPTS`]
//! attempts. Then it reads like the others.
//!
//! # First attempts by versions
//!
//! The variant `plor+optimistic` extends that to all transactions. The first attempts read by versions and take the
//! rights to write at commit, which costs no more than `occ`. Only a transaction that has been aborted
//! [`OPTIMISTIC_ATTEMPTS`] times enters as a reader and has the right of way by its age. Versions are checked after
//! exclusive mode is entered and before the commit point. A younger transaction that is about to replace a read
//! value is wounded. The variant is right for the reasons for which `occ` is (exclusive mode is its lock). It is
//! right together with the other attempts because those who enter check for exclusive mode, whoever has it.
//!
//! # Deviations
//!
//! - The rights of a wounded attempt, exclusive mode included, are taken from it at once, because it will install
//!   nothing. (In plor §4.1.3, "Liveness", others wait until it notices. But the system, or a user's think time, may
//!   stop it.) A reader past its commit point is not waited for either.
//! - Attempts are told apart by their numbers and not by timestamps (`worker_states`).
//! - An inserted record is in exclusive mode from the start. In the paper it is locked for writing only, so readers
//!   ignore the lock.
//! - Delayed write locks are taken in the order of first write, not of addresses (plor §4.1.4). Ages exclude
//!   deadlock without that, and a simulated run must not depend on addresses in memory.
//! - The records that a transaction will touch are not known, so precedence by deadline uses the transaction's own
//!   declaration.
//! - A waiter spins, then parks. The paper spins, with fewer workers than cores.
//! - Scans observe leaves, which are checked at commit. So an insertion may abort an older scan; see `locking`.

mod commit;
mod hand_over;
mod locker;
mod options;
mod readers;

use locker::Locker;
use options::PlorOptions;

use crate::host::{Algorithm, Host};
use crate::reads;
use crate::worker_states::{self, AttemptId, AttemptStamp, SpinPolicy, WorkerStates, Wound};
use hotrow_core::{
    Attempt, Before, ConflictCause, Flags, ItemId, Look, Prepared, Reason, Reports, Rival, Steps, Variant,
    Variants,
};
use hotrow_sync::atomic::{Ordering, fence};
use hotrow_sync::clock;
use hotrow_sync::profile::waiting;
use locker::{Latch, Overflow, Set, Writer};

/// Pessimistic locking and optimistic reading: plor §4.
#[derive(Debug)]
pub struct Plor {
    options: PlorOptions,
    states: WorkerStates,
    overflow: Overflow,
}

/// State that a worker keeps.
#[derive(Debug, Default)]
pub struct PlorLocal {
    stamp: AttemptStamp,
    /// True if the attempt reads by versions.
    optimistic: bool,
    /// True if the attempt takes rights to write at commit.
    delayed: bool,
    /// Number of naps in the wait for a right to write.
    naps: u32,
    /// Readers found in a segment; kept only for the memory.
    readers: Vec<AttemptStamp>,
}

/// Attempts of a transaction that reads by versions before it enters as a reader (plor §4.1.3: three).
const OPTIMISTIC_ATTEMPTS: u32 = 3;

/// Returns the locker of an item.
///
/// # Safety
///
/// The reference must not be used after the attempt has ended.
#[inline(always)]
unsafe fn locker_of<'a, H: Host<Plor>>(attempt: &Attempt<H>, id: ItemId) -> &'a Locker {
    // SAFETY: the item's segment is in memory until the attempt ends.
    H::header(unsafe { attempt.items.get(id).segment().as_ref() })
}

impl Plor {
    fn latch<'a>(&self, locker: &'a Locker) -> Option<Latch<'a>> {
        self.options.latched.then(|| locker.latch())
    }

    /// True if a conflicting attempt need not be waited for: it is over, or younger and now wounded.
    fn passes(&self, stamp: AttemptStamp, other: AttemptId, locker: &Locker) -> bool {
        match self.states.stamp_of(other) {
            None => true,
            // INVARIANT 27: A transaction waits for one side of its age only, or for one that is installing.
            Some(other) if stamp.is_older_than(other) => {
                self.states.wound(other.id, locker.address()) == Wound::Dead
            }
            Some(_) => false,
        }
    }

    /// Waits until the attempt that was seen with the right to write has given it up. A reader waits at that
    /// attempt's event. A writer waits at its own, because the right will be handed to it.
    #[cold]
    fn wait_for_writer<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        seen: Writer,
        reason: Reason,
    ) -> Result<(), ConflictCause> {
        let Some(holder) = seen.holder() else { return Ok(()) };
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let (stamp, states) = (H::local(&attempt.local).stamp, &self.states);
        let over = || locker.writer() != seen || states.is_over(holder);
        let lost = ConflictCause::item(reason, id);
        let _waiting = waiting("its writer", locker.address());
        if reason == Reason::WriteLocked {
            let granted = || states.is_granted(stamp.worker(), locker.address());
            let limit = attempt.wait_max();
            let waited =
                states.wait_for_turn(limit, stamp, &mut H::local_mut(&mut attempt.local).naps, granted, over);
            states.ended(attempt, waited, lost)
        } else {
            states.wait(attempt, holder.worker(), stamp, || states.is_over(holder), over, lost)
        }
    }

    /// Enters among the readers of a segment (plor Figure 4, `LockRd`).
    #[inline(always)]
    fn lock_read<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let stamp = H::local(&attempt.local).stamp;
        self.enter_readers(locker, stamp, |seen| {
            self.wait_for_writer(attempt, id, seen, Reason::ReadLocked)
        })?;
        attempt.items.get_mut(id).set(Flags::READ);
        Ok(())
    }

    /// Takes the right to write a segment (plor Figure 4, `LockWr`).
    #[inline(always)]
    fn lock_write<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let latch = self.latch(locker);
        let taken = locker.take(None, H::local(&attempt.local).stamp.id);
        drop(latch);
        // An attempt that comes before waiters must look for older ones among them.
        if !taken || !locker.is_empty(Set::Waiters) {
            self.lock_write_slowly(attempt, id)?;
        }
        attempt.items.get_mut(id).set(Flags::LOCKED);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn lock_write_slowly<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
    ) -> Result<(), ConflictCause> {
        // SAFETY: used before the attempt ends.
        let locker = unsafe { locker_of(attempt, id) };
        let stamp = H::local(&attempt.local).stamp;
        H::local_mut(&mut attempt.local).naps = 0;
        self.take_in_turn(locker, stamp, |seen| self.wait_for_writer(attempt, id, seen, Reason::WriteLocked))
    }

    /// Makes sure that the value of an item stays, or that the attempt learns that it does not.
    #[inline(always)]
    fn enter<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        let item = attempt.items.get(id);
        if item.is(Flags::READ) || item.is(Flags::LOCKED) { Ok(()) } else { self.lock_read(attempt, id) }
    }

    #[inline(always)]
    fn unharmed<H: Host<Self>, V>(&self, attempt: &Attempt<H>, value: V) -> Result<V, ConflictCause> {
        self.states.unharmed(attempt, H::local(&attempt.local).stamp, value)
    }

    /// Keeps the version of a value that an optimistic attempt has loaded. A second read fails, too, if a commit is about to
    /// replace the value: what else was read since may be of that commit already.
    #[inline(always)]
    fn keep_version<H: Host<Self>>(
        attempt: &mut Attempt<H>,
        id: ItemId,
        before: Before,
    ) -> Result<(), ConflictCause> {
        let version = reads::after_peek::<Self, H>(attempt, id, before)?;
        let item = attempt.items.get_mut(id);
        if !item.is(Flags::READ) {
            *H::mark_mut(&mut item.mark) = version;
            item.set(Flags::READ);
        } else if H::mark(item.mark) != version || !H::header(item.header()).is_unchanged(version, |_| false)
        {
            return Err(ConflictCause::item(Reason::ReadChanged, id));
        }
        Ok(())
    }
}

impl Variants for Plor {
    const VARIANTS: &'static [Variant] = options::VARIANTS;
    // Buckets and leaves are checked at commit only, and so are the first reads of a read-only transaction.
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;

    type Options = PlorOptions;

    fn options(name: &str) -> Option<PlorOptions> {
        PlorOptions::parse(name)
    }

    fn name(options: &PlorOptions) -> String {
        options.name()
    }

    fn new(options: &PlorOptions) -> Self {
        Self { options: *options, states: WorkerStates::new(SpinPolicy::BARGING), overflow: Overflow::new() }
    }
}

// SAFETY: a `load` runs between two installs, which are counted (`StableWord`), or while the attempt is among
// the readers or has the right to write. In the latter case it counts only if the attempt has not been wounded by
// then (`unharmed`). Writes are installed between `begin_install` and `end_install`, with the right to write, which
// nobody takes from an attempt that has passed its commit point. Each is installed once, after everything that can
// fail.
unsafe impl Algorithm for Plor {
    // Those that read by versions, or peek, look at what is installed and not at rights to write.
    const READS_PASS_PREPARED: bool = true;
    type Header = Locker;
    type Mark = u64;
    type Local = PlorLocal;
}

impl<H: Host<Plor>> Steps<H> for Plor {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        let profile = attempt.profile();
        let slack = self.options.slack.map_or(0, clock::whole_nanoseconds);
        let behind_ns = slack.saturating_mul(profile.records.into());
        let optimistic =
            (profile.read_only || self.options.optimistic) && attempt.number() < OPTIMISTIC_ATTEMPTS;
        H::local_mut(&mut attempt.local).optimistic = optimistic;
        H::local_mut(&mut attempt.local).delayed = self.options.delayed_writes || optimistic;
        let now_ns = || clock::nanoseconds().saturating_add(behind_ns);
        H::local_mut(&mut attempt.local).stamp =
            self.states.begin(attempt, H::local(&attempt.local).stamp, now_ns);
    }

    #[inline(always)]
    fn before_load(&self, attempt: &mut Attempt<H>, id: ItemId, look: Look) -> Result<Before, ConflictCause> {
        if look == Look::Peek || H::local(&attempt.local).optimistic {
            return reads::before::<Self, H>(attempt, id);
        }
        if look == Look::ReadForUpdate {
            Steps::<H>::write(self, attempt, id)?;
        }
        // An attempt with the right to write need not enter; with delayed writes no attempt has it yet.
        self.enter(attempt, id)?;
        Ok(Before(0))
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        if look == Look::Peek {
            reads::after_peek::<Self, H>(attempt, id, before).map(drop)
        } else if H::local(&attempt.local).optimistic {
            Self::keep_version(attempt, id, before)
        } else {
            self.unharmed(attempt, ())
        }
    }

    #[inline(always)]
    fn write(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        if H::local(&attempt.local).delayed || attempt.items.get(id).is(Flags::LOCKED) {
            return Ok(());
        }
        self.lock_write(attempt, id)
    }

    fn new_locked_header(&self, attempt: &Attempt<H>) -> H::Header {
        H::new_header(Locker::new_locked(H::local(&attempt.local).stamp.id))
    }

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        self.make_all_exclusive(attempt)?;
        self.check_predicates(attempt)?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        self.validate(attempt)?;
        if Self::is_unknown(attempt) {
            Ok(())
        } else {
            self.states.pass_commit_point(attempt, H::local(&attempt.local).stamp)
        }
    }

    fn finish(&self, mut prepared: Prepared<'_, H>) {
        let stamp = H::local(&prepared.attempt().local).stamp;
        if Self::is_unknown(prepared.attempt()) {
            return self.states.end(stamp);
        }
        if !H::local(&prepared.attempt().local).optimistic {
            self.leave_readers(prepared.attempt());
        }
        let mut holds = !prepared.attempt().items.writes().is_empty();
        let attempt = prepared.install_all(
            |item| H::header(item.header()).begin_install(),
            |item| {
                let locker = H::header(item.header());
                locker.end_install();
                let latch = self.latch(locker);
                self.release(locker);
                drop(latch);
            },
        );
        // Rights to write without a write in the end: a dead record that was to be updated.
        for item in attempt.items.iter() {
            if item.is(Flags::LOCKED) && !item.is(Flags::WRITE) {
                self.release(H::header(item.header()));
                holds = true;
            }
        }
        if holds {
            // Orders the releases before the looks for waiters: an attempt that enters as a waiter then finds the
            // right to write free, or is found here, or by the attempt that was given the right.
            fence(Ordering::SeqCst);
            for item in attempt.items.iter() {
                if item.is(Flags::LOCKED) {
                    self.hand_over(H::header(item.header()));
                }
            }
        }
        self.states.end(stamp);
        self.states.tell(stamp);
    }

    fn validate_before_rollback(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        self.check_predicates(attempt)?;
        self.validate(attempt)?;
        // An attempt that touched no segment has lost nothing: the wound was meant for an earlier one of the worker.
        if attempt.items.is_empty() { Ok(()) } else { self.unharmed(attempt, ()) }
    }

    #[cold]
    fn abort(&self, attempt: &mut Attempt<H>) {
        let stamp = H::local(&attempt.local).stamp;
        // Before anything is released: an attempt that still takes this one for a waiter, and hands it a right that
        // it has just given up, must find that it is not running (`hand_over`).
        self.states.wound(stamp.id, 0);
        if !H::local(&attempt.local).optimistic {
            self.leave_readers(attempt);
        }
        for item in attempt.items.iter() {
            if item.is(Flags::INSERTED) {
                H::header(item.header()).end_install();
            }
            if item.is(Flags::LOCKED) {
                H::header(item.header()).release_if_held(stamp.id);
                self.hand_over(H::header(item.header()));
            }
        }
        self.states.end(stamp);
        self.states.tell(stamp);
    }
}

impl<H: Host<Plor>> Reports<H> for Plor {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn rival(&self, _attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
        H::header(header).writer().holder().map(|holder| Rival::holder(holder.worker()))
    }
}

#[cfg(all(test, loom))]
mod models;
