//! Two-phase locking, in three variants that resolve a conflict over a held lock differently (plor §2.1).
//!
//! # Algorithm
//!
//! A read takes the segment's lock in shared mode and a write in exclusive mode, each before it touches the value.
//! The attempt holds all locks until it ends. A read for update takes the lock exclusively at once. Writes are
//! buffered until commit, as under every protocol, so an attempt that aborts has changed nothing. At commit the
//! locks for predicates are taken, buckets and leaves are checked, writes are installed, and all locks are released.
//!
//! The variants differ only in `queue::Queues`. Its module explains waits, deaths and wounds, and why there is no
//! deadlock.
//!
//! # Why it is serializable
//!
//! An attempt holds all its locks at the moment when it has checked the buckets and leaves. Attempts in conflict
//! with it hold theirs before or after. So that moment is its place in the serial order. Absence has no lock: a
//! failed lookup and a scan observe versions, which are checked at that moment. (So an insertion may abort an older
//! scan. The age of a transaction does not protect it from phantoms, but the starvation gate does.)
//!
//! In detail, p(T) is the moment at which T begins to check buckets and leaves. T holds all its locks then, and until it ends; locks of
//! predicates are taken before, and only peeks (reads at read committed, and predicates in the body) release theirs early. If two transactions
//! use one value, and one of them writes it, one has released its lock before the other took it, so their p are in that order. If U inserts
//! where T has observed absence, T's check finds the version unchanged after p(T), and U latches the node after that and before p(U). Each p(T)
//! lies between the beginning and the end of T, so the order is that of real time.
//!
//! In `wound-wait` an attempt can lose a lock while it runs. A transaction that takes the lock has wounded the
//! attempt before, so the attempt cannot reach its commit point: a wound and a commit are compare-and-swaps of the worker's status word,
//! with the attempt's identity (`WorkerStates`). A value that it reads afterwards counts only if the
//! attempt then finds itself unharmed (`WorkerStates::is_wounded`).
//!
//! # No starvation
//!
//! A transaction keeps its age over retries. Under `wound-wait` the oldest takes every lock that it wants, and waits only for transactions past
//! their commit points. Under `wait-die` it waits for younger holders. Each holder that takes the lock from the queue before it is older than
//! the last one, because a transaction younger than a holder dies; and few share the lock past the queue. So the oldest gets the lock in the
//! end. It may still abort for an index change where it has observed absence, or a predicate; for these, and for all under `no-wait`, there is
//! the starvation gate.
//!
//! The values that an attempt has seen are of one moment. Absence is checked at commit only, so it is not opaque.
//!
//! # Deviations from plor §2.1 and DBx1000
//!
//! - Locks are two words with the holders' bits; only a transaction that must wait goes through a list under a mutex.
//! - See `queue` for deviations in wounds and in the queue of `wait-die`.
//! - Ages come from the clock, and from the workers' numbers if two are equal, not from a counter, which all workers would write.
//! - Absence has no lock.

mod lock;
mod queue;

use lock::LockWords;

use crate::host::{Algorithm, Host};
use crate::worker_states::{self, AttemptStamp, SpinPolicy, WorkerStates};
use hotrow_core::{
    Attempt, Before, ConflictCause, Flags, ItemId, Look, Prepared, Reason, Reports, Rival, Steps, Variant,
    Variants,
};
use hotrow_sync::clock;
use hotrow_sync::profile;
use lock::Released;
use queue::{LockRequest, Queues, Refused};

/// The rule for a transaction that meets a lock held by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It aborts.
    NoWait,
    /// It waits if it is older than all holders, and aborts otherwise.
    WaitDie,
    /// It takes the lock from younger holders, and waits for older ones.
    WoundWait,
}

impl Policy {
    const ALL: [Policy; 3] = [Policy::NoWait, Policy::WaitDie, Policy::WoundWait];

    const fn variant(self) -> Variant {
        match self {
            Policy::NoWait => Variant {
                name: "no-wait",
                summary: "two-phase locking; a transaction that meets a held lock aborts",
                source: "plor §2.1",
                for_comparison: false,
            },
            Policy::WaitDie => Variant {
                name: "wait-die",
                summary: "two-phase locking; older transactions wait for younger ones, younger ones abort",
                source: "plor §2.1",
                for_comparison: false,
            },
            Policy::WoundWait => Variant {
                name: "wound-wait",
                summary: "two-phase locking; older transactions take locks from younger ones, younger ones wait",
                source: "plor §2.1",
                for_comparison: false,
            },
        }
    }
}

/// Two-phase locking with reader-writer locks: plor §2.1.
#[derive(Debug)]
pub struct TwoPhaseLocking {
    policy: Policy,
    states: WorkerStates,
    queues: Queues,
}

/// State that a worker keeps: the stamp of its current transaction.
#[derive(Debug, Default)]
pub struct LockingLocal {
    stamp: AttemptStamp,
}

/// Before a load: the attempt keeps the lock.
const HELD: Before = Before(1);

impl TwoPhaseLocking {
    #[inline(always)]
    fn holds<H: Host<Self>>(attempt: &Attempt<H>, id: ItemId, exclusive: bool) -> bool {
        let item = attempt.items.get(id);
        item.is(Flags::LOCKED) || (!exclusive && item.is(Flags::READ))
    }

    /// Takes the lock of an item, shared or exclusive, unless the attempt holds it.
    #[inline(always)]
    fn lock<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        exclusive: bool,
    ) -> Result<(), ConflictCause> {
        if Self::holds(attempt, id, exclusive) {
            return Ok(());
        }
        let worker = attempt.worker().number();
        let item = attempt.items.get_mut(id);
        let shares = item.is(Flags::READ);
        let word = H::header(item.header());
        let taken = if exclusive { word.try_exclusive(worker, shares) } else { word.try_shared(worker) };
        if let Err(released) = taken {
            self.lock_slowly(attempt, id, exclusive, released)?;
        }
        let item = attempt.items.get_mut(id);
        if !exclusive {
            profile::hold(item.segment().addr().get());
        }
        item.set(if exclusive { Flags::LOCKED } else { Flags::READ });
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        exclusive: bool,
        released: Released,
    ) -> Result<(), ConflictCause> {
        let item = attempt.items.get(id);
        let segment = item.segment();
        let shares = item.is(Flags::READ);
        let request = LockRequest {
            segment: segment.addr().get(),
            stamp: H::local(&attempt.local).stamp,
            exclusive,
            shares,
        };
        // SAFETY: the item's segment is in memory until the attempt ends; the reference does not outlive it.
        let word: &LockWords = H::header(unsafe { segment.as_ref() });
        if released == Released::Queued {
            // Others in the queue have taken the attempt for a holder.
            self.queues.hand_on(word, request.segment, self.policy, &self.states);
        }
        match self.queues.acquire(|| attempt.wait_max(), word, request, self.policy, &self.states) {
            Ok(()) => Ok(()),
            Err(Refused::Wounded) => Err(self.states.loss(attempt)),
            Err(Refused::Unavailable) if exclusive => Err(ConflictCause::item(Reason::WriteLocked, id)),
            Err(Refused::Unavailable) => Err(ConflictCause::item(Reason::ReadLocked, id)),
        }
    }

    /// Returns a value that was read under a lock, or fails if the attempt was wounded.
    #[inline(always)]
    fn unharmed<H: Host<Self>, V>(&self, attempt: &Attempt<H>, value: V) -> Result<V, ConflictCause> {
        match self.policy {
            Policy::WoundWait => self.states.unharmed(attempt, H::local(&attempt.local).stamp, value),
            Policy::NoWait | Policy::WaitDie => Ok(value),
        }
    }

    /// Releases the lock of an item, if the attempt holds it.
    #[inline(always)]
    fn unlock<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) {
        let (worker, stamp) = (attempt.worker().number(), H::local(&attempt.local).stamp);
        let item = attempt.items.get_mut(id);
        let (word, segment) = (H::header(item.header()), item.segment().addr().get());
        let released = if item.is(Flags::LOCKED) {
            Some(word.release_exclusive(worker))
        } else if !item.is(Flags::READ) {
            return;
        } else {
            word.release_shared(worker)
        };
        match released {
            Some(Released::NoWaiters) => {}
            Some(Released::Queued) => self.queues.hand_on(word, segment, self.policy, &self.states),
            None => self.queues.release_noted(word, segment, stamp, self.policy, &self.states),
        }
    }

    fn release<H: Host<Self>>(&self, attempt: &mut Attempt<H>) {
        for id in attempt.items.ids() {
            self.unlock(attempt, id);
        }
        self.states.end(H::local(&attempt.local).stamp);
    }
}

impl Variants for TwoPhaseLocking {
    const VARIANTS: &'static [Variant] =
        &[Policy::WoundWait.variant(), Policy::WaitDie.variant(), Policy::NoWait.variant()];
    // Buckets and leaves are checked at commit only.
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;

    type Options = Policy;

    fn options(name: &str) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.variant().name == name)
    }

    fn name(policy: &Policy) -> String {
        policy.variant().name.to_owned()
    }

    fn new(policy: &Policy) -> Self {
        let spin = match policy {
            Policy::NoWait | Policy::WaitDie => SpinPolicy::AGED,
            Policy::WoundWait => SpinPolicy::BARGING,
        };
        Self { policy: *policy, states: WorkerStates::new(spin), queues: Queues::new() }
    }
}

// SAFETY: a `load` runs while the attempt holds the segment's lock, shared or exclusive. Otherwise the lock was
// taken from a wounded attempt, and the load does not count (`unharmed`). Writes are installed under exclusive
// locks, which nobody takes from an attempt that has passed its commit point. Each is installed once, after
// everything that can fail.
unsafe impl Algorithm for TwoPhaseLocking {
    type Header = LockWords;
    type Mark = ();
    type Local = LockingLocal;
}

impl<H: Host<TwoPhaseLocking>> Steps<H> for TwoPhaseLocking {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        let now_ns = || match self.policy {
            // It never compares ages, so it need not read the clock.
            Policy::NoWait => 0,
            Policy::WaitDie | Policy::WoundWait => clock::nanoseconds(),
        };
        H::local_mut(&mut attempt.local).stamp =
            self.states.begin(attempt, H::local(&attempt.local).stamp, now_ns);
    }

    #[inline(always)]
    fn before_load(&self, attempt: &mut Attempt<H>, id: ItemId, look: Look) -> Result<Before, ConflictCause> {
        let held = look != Look::Peek || Self::holds(attempt, id, false);
        self.lock(attempt, id, look == Look::ReadForUpdate)?;
        Ok(Before(held.into()))
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        let seen = self.unharmed(attempt, ());
        if look == Look::Peek && before != HELD {
            self.unlock(attempt, id);
            attempt.items.get_mut(id).clear(Flags::READ);
        }
        seen
    }

    #[inline(always)]
    fn write(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        self.lock(attempt, id, true)
    }

    fn new_locked_header(&self, attempt: &Attempt<H>) -> H::Header {
        H::new_header(LockWords::new_locked(attempt.worker().number()))
    }

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        attempt.check_predicates(|attempt, id| {
            self.lock(attempt, id, false)?;
            let holds = attempt.predicate_holds(id);
            self.unharmed(attempt, holds)
        })?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        attempt.check_structures()?;
        if self.policy == Policy::WoundWait {
            self.states.pass_commit_point(attempt, H::local(&attempt.local).stamp)?;
        }
        Ok(())
    }

    fn finish(&self, prepared: Prepared<'_, H>) {
        WorkerStates::fence_before_install();
        let attempt = prepared.install_all(|_| (), |_| ());
        self.release(attempt);
    }

    #[cold]
    fn abort(&self, attempt: &mut Attempt<H>) {
        self.release(attempt);
    }
}

impl<H: Host<TwoPhaseLocking>> Reports<H> for TwoPhaseLocking {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn rival(&self, _attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
        H::header(header).holders().workers().next().map(|(worker, _)| Rival::holder(worker))
    }
}
