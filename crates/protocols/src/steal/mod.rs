//! Two-phase locking with fair queue locks: stealdb §3.3 and its baseline of §4, `2pl-mcs`.
//!
//! # Algorithm
//!
//! A read takes the segment's lock in shared mode and a write in exclusive mode, each before it touches the value.
//! The attempt holds all locks until it ends. An attempt that meets a held lock queues for it. Readers next to each
//! other in the queue share it, nobody overtakes, and a released lock is for the first in the queue. Writes are
//! buffered until commit. At commit the locks for predicates are taken, buckets and leaves are checked, writes are
//! installed, and all locks are released.
//!
//! Buckets and leaves are locked too: to scan them or to fail to find a key there, and to insert or delete there.
//! Holders of the same kind share such a lock, and wait for those of the other kind. These locks are released last,
//! after dead records have been taken out of the index.
//!
//! `lock` has the lock's word, `node` the published state of a waiter, `queue` the waiting, `cycle` the search for deadlocks and the choice of
//! a victim, `found` the members of those found. `ranges` has the locks of ranges, `lock::range` their word, and `word` the trait through which
//! the queues use either.
//!
//! # Why it is serializable
//!
//! The argument is that of `locking`: an attempt holds all its locks at the moment when it has checked the buckets
//! and leaves, and that moment is its place in the serial order. No lock is ever taken from its holder. Absence does
//! not depend on locks: a failed lookup and a scan observe versions, which are checked at that moment. The locks of
//! ranges only keep the versions from changing meanwhile.
//!
//! A wound only says that an attempt is the victim of a deadlock. The attempt heeds it where it waits. If it has got
//! the lock meanwhile, it goes on with the locks that it holds.
//!
//! # Invariants
//!
//! 1. *Two phases*: no lock is released before the attempt has taken its last one, except those of peeks.
//! 2. *While there is a queue, only its head and an upgrade take the lock; while there is an upgrade, only that one.* Both are parts
//!    of the word, so each acquisition checks them in the same update. A reader's count that is undone was never a lock: nothing is read under
//!    it. It may keep others off, and undoing it wakes them as a release does.
//! 3. *A queue has one head* (`queue`), and *in each cycle somebody searches when it is complete* (`cycle`).
//! 4. *The oldest transaction is never the victim*: in a cycle at least two hold something, and of two upgrades one is younger.
//! 5. *While a range is locked to scan, no insertion or deletion of another attempt changes the node's version*, except as
//!    `core/src/kernel/observations.rs` says ("Conflicts left to the check"), and after more than 2⁴² changes of one node.
//!
//! # No starvation
//!
//! Nobody overtakes in a queue, so each waiter gets the lock in the end unless it is a victim, which keeps its age. The oldest transaction may
//! still abort for a change of structure that no lock prevents, a predicate, or because all of its nodes are in queues as abandoned. For
//! these there is the starvation gate.
//!
//! # Deviations from stealdb
//!
//! - A node is in the queue while its worker waits, not while it holds the lock; the word names the holder. The
//!   paper's locks have one holder, so its queue begins with that one. Here readers come and go in any order, an
//!   upgrade goes before the queue, and a lock that nobody waits for takes no node.
//! - The paper has writers only and times out on deadlocks; readers, upgrades and victims are its future work (§5).
//! - Range locks are the paper's future work (§5), too. They are of nodes of the index, not of predicates.
//! - Waiters park after a short while instead of spinning.

mod cycle;
mod found;
mod lock;
mod node;
mod options;
mod queue;
mod ranges;
mod stealing;
mod word;

use lock::QueueLock;
use options::{McsLockingOptions, StealingMode};

use crate::host::{Algorithm, Host};
use crate::worker_states::{self, AttemptStamp, SpinPolicy, WorkerStates};
use hotrow_core::graph::StealableOperations;
use hotrow_core::{
    Attempt, Before, ConflictCause, DeadlockPart, Flags, Item, ItemId, Look, Prepared, RangeId, RangeLocks,
    RangeUse, Reason, Reports, Rival, Stealing, Steps, Variant, Variants, WorkerId,
};
use hotrow_sync::profile;
use hotrow_sync::{Arc, clock};
use lock::Blocker;
use queue::{LockRequest, Queues, Refused};
use ranges::{HeldRanges, Locker, Ranges};
use stealing::Awaited;

/// Two-phase locking with queue locks: stealdb §3.3.
#[derive(Debug)]
pub struct McsLocking {
    states: WorkerStates,
    queues: Queues,
    /// True if readers take locks exclusively.
    exclusive: bool,
    /// True if waiters run operations of their own.
    ahead: bool,
    ranges: Ranges,
}

/// State that a worker keeps: the stamp of its current transaction, and the range locks that it holds.
#[derive(Debug, Default)]
pub struct McsLockingLocal {
    stamp: AttemptStamp,
    /// True if another worker (a thief) runs an operation in the worker's name.
    is_thief: bool,
    ranges: HeldRanges,
    /// The place where others record that they wait for the worker's attempt. `None` if nobody runs its operations
    /// then.
    awaited: Option<Arc<Awaited>>,
}

/// Before a load: the attempt keeps the lock.
const HELD: Before = Before(1);

impl McsLocking {
    /// Takes the lock of an item, shared or exclusive, unless the attempt holds it.
    #[inline(always)]
    fn lock<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        exclusive: bool,
    ) -> Result<(), ConflictCause> {
        let worker = attempt.worker().number();
        let item = attempt.items.get_mut(id);
        let shares = item.is(Flags::READ);
        if item.is(Flags::LOCKED) || (shares && !exclusive) {
            return Ok(());
        }
        let word = H::header(item.header());
        let taken = match exclusive {
            true => word.try_exclusive(worker, shares),
            false => self.queues.try_share(word, &self.states),
        };
        if !taken {
            // INVARIANT 31: A thief waits for nobody.
            if attempt.nonblocking() {
                return Err(ConflictCause::item(attempt.would_block(), id));
            }
            self.lock_slowly(attempt, id, exclusive)?;
        }
        let item = attempt.items.get_mut(id);
        if !exclusive {
            profile::hold(item.segment().addr().get());
        }
        item.set(if exclusive { Flags::LOCKED } else { Flags::READ });
        Ok(())
    }

    /// Shares the lock of an item until the attempt ends, unless the attempt holds it.
    #[inline(always)]
    fn share<H: Host<Self>>(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        if attempt.items.get(id).is_any(&[Flags::LOCKED, Flags::READ]) {
            return Ok(());
        }
        if self.exclusive {
            return self.lock(attempt, id, true);
        }
        let (worker, address) = (attempt.worker().number(), attempt.items.get(id).segment().addr().get());
        if H::local(&attempt.local).is_thief {
            return self.share_for(worker, address, attempt, id);
        }
        self.lock(attempt, id, false)?;
        self.queues.nodes.note_shared(worker, address);
        Ok(())
    }

    /// Shares the lock of an item as a thief, for the worker that owns the operation.
    #[cold]
    fn share_for<H: Host<Self>>(
        &self,
        worker: u32,
        address: usize,
        attempt: &mut Attempt<H>,
        id: ItemId,
    ) -> Result<(), ConflictCause> {
        let Some(note) = self.queues.nodes.note_lent(worker, address) else {
            return Err(ConflictCause::item(attempt.would_block(), id));
        };
        let shared = self.lock(attempt, id, false);
        if shared.is_err() {
            self.queues.nodes.forget_lent(worker, note);
        }
        shared
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        exclusive: bool,
    ) -> Result<(), ConflictCause> {
        let item = attempt.items.get(id);
        let (segment, shares) = (item.segment(), item.is(Flags::READ));
        let holds = Self::holds_besides(attempt, Some(id)) || Self::may_hold_more(attempt);
        let request = LockRequest {
            address: segment.addr().get(),
            stamp: H::local(&attempt.local).stamp,
            exclusive,
            holds,
        };
        // SAFETY: the item's segment is in memory until the attempt ends; the reference does not outlive it.
        let word = H::header(unsafe { segment.as_ref() });
        let (me, address) = (attempt.worker().number(), segment.addr().get());
        if word.blocker(false) == Some(Blocker::Owner(me))
            || exclusive && self.queues.nodes.thief_shares(me, address)
        {
            // The lock is already held for an operation of this attempt that another worker has run: two operations
            // on one key that were not known beforehand.
            return Err(ConflictCause::item(Reason::Undeclared, id));
        }
        let wait_max = || attempt.wait_max();
        let result = match shares {
            true => self.queues.upgrade(wait_max, word, request, &self.states),
            false => self.queues.acquire(wait_max, word, request, &self.states),
        };
        for part in self.queues.deadlocks.take_parts(request.stamp) {
            attempt.report_deadlock(part, id);
        }
        let reason = match result {
            Ok(()) => return Ok(()),
            Err(Refused::Victim) => Reason::Deadlock,
            Err(Refused::Unavailable) if exclusive => Reason::WriteLocked,
            Err(Refused::Unavailable) => Reason::ReadLocked,
        };
        Err(ConflictCause::item(reason, id))
    }

    /// True if the attempt holds a range lock, or others may hold locks for it that it does not know of yet.
    fn may_hold_more<H: Host<Self>>(attempt: &Attempt<H>) -> bool {
        !H::local(&attempt.local).ranges.is_empty() || attempt.is_published()
    }

    /// True if the attempt holds the lock of another item.
    fn holds_besides<H: Host<Self>>(attempt: &Attempt<H>, id: Option<ItemId>) -> bool {
        let is_held = |other| attempt.items.get(other).is_any(&[Flags::LOCKED, Flags::READ]);
        attempt.items.ids().any(|other| Some(other) != id && is_held(other))
    }

    #[cold]
    #[inline(never)]
    fn lock_range_slowly<H: Host<Self>>(
        &self,
        attempt: &mut Attempt<H>,
        range: RangeId,
        how: RangeUse,
    ) -> Result<(), Reason> {
        let held =
            [RangeUse::Scan, RangeUse::Change].map(|how| H::local(&attempt.local).ranges.holds(range, how));
        let holds = Self::may_hold_more(attempt) || Self::holds_besides(attempt, None);
        let locker = Locker { stamp: H::local(&attempt.local).stamp, holds, wait_max: || attempt.wait_max() };
        let result = self.ranges.wait(&self.queues, &self.states, held.contains(&true), (range, how), locker);
        match (result, how) {
            (Ok(()), _) => {}
            (Err(Refused::Victim), _) => return Err(Reason::Deadlock),
            (Err(Refused::Unavailable), RangeUse::Scan) => return Err(Reason::ReadLocked),
            (Err(Refused::Unavailable), RangeUse::Change) => return Err(Reason::WriteLocked),
        }
        let worker = attempt.worker().number();
        self.ranges.note(&self.queues, worker, &H::local(&attempt.local).ranges, range, how);
        Ok(())
    }

    /// Releases the lock of an item, if the attempt holds it. True if a parked waiter was told.
    #[inline(always)]
    fn unlock<H: Host<Self>>(&self, attempt: &Attempt<H>, id: ItemId) -> bool {
        let item = attempt.items.get(id);
        let released = if item.is(Flags::LOCKED) {
            H::header(item.header()).release_exclusive()
        } else if item.is(Flags::READ) {
            H::header(item.header()).release_shared()
        } else {
            return false;
        };
        self.queues.released(released, &self.states)
    }

    /// Installs all writes. Writes whose locks others wait for come first, and these locks are released at once, so
    /// that the next holder need not wait for the other installations.
    #[inline(never)]
    fn install_awaited_first<'a, H: Host<Self>>(&self, prepared: Prepared<'a, H>) -> &'a mut Attempt<H> {
        let mut prepared = prepared.one_by_one();
        for id in prepared.attempt().items.ids() {
            let item = prepared.attempt().items.get(id);
            if !item.is(Flags::LOCKED) || item.is(Flags::INSERTED) || !H::header(item.header()).has_waiters()
            {
                continue;
            }
            if item.is(Flags::WRITE) {
                prepared.install(id);
            }
            let attempt = prepared.attempt();
            self.unlock(attempt, id);
            // Both flags, because it may have been an upgrade: nothing is left to be released.
            let item = attempt.items.get_mut(id);
            item.clear(Flags::LOCKED);
            item.clear(Flags::READ);
        }
        for at in 0..prepared.attempt().items.writes().len() {
            let id = prepared.attempt().items.writes()[at];
            if prepared.attempt().items.get(id).is(Flags::LOCKED) {
                prepared.install(id);
            }
        }
        prepared.into_attempt()
    }

    fn release<H: Host<Self>>(&self, attempt: &Attempt<H>) {
        let mut told = false;
        for id in attempt.items.ids() {
            told |= self.unlock(attempt, id);
        }
        let worker = attempt.worker().number();
        self.queues.nodes.forget_shared(worker);
        if self.queues.thieves.stealing() != StealingMode::Never {
            self.queues.thieves.clear(worker);
        }
        self.states.end(H::local(&attempt.local).stamp);
        if told {
            self.states.let_others_run();
        }
    }
}

impl Variants for McsLocking {
    const VARIANTS: &'static [Variant] = options::VARIANTS;
    // Buckets and leaves are checked at commit only.
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = worker_states::WORKERS_MAX;

    type Options = McsLockingOptions;

    fn options(name: &str) -> Option<McsLockingOptions> {
        McsLockingOptions::named(name)
    }

    fn name(options: &McsLockingOptions) -> String {
        options.name()
    }

    fn new(options: &McsLockingOptions) -> Self {
        Self {
            states: WorkerStates::new(SpinPolicy::FAIR),
            queues: Queues::new(options.stealing),
            ranges: Ranges::new(),
            exclusive: options.exclusive,
            ahead: options.ahead,
        }
    }
}

// SAFETY: a `load` runs while the attempt holds the segment's lock, shared or exclusive. Writes are installed under
// exclusive locks, which nobody takes from their holder. Each is installed once, after everything that can fail.
// Those whose locks others wait for come first, and their locks are released, so that the item no longer says
// `LOCKED`.
unsafe impl Algorithm for McsLocking {
    type Header = QueueLock;
    type Mark = ();
    type Local = McsLockingLocal;
}

impl<H: Host<McsLocking>> Steps<H> for McsLocking {
    #[inline]
    fn begin(&self, attempt: &mut Attempt<H>) {
        if H::local(&attempt.local).stamp == AttemptStamp::default() {
            let worker = attempt.worker().number();
            self.queues.nodes.admit(worker);
            H::local_mut(&mut attempt.local).awaited = (self.queues.thieves.stealing()
                != StealingMode::Never)
                .then(|| self.queues.thieves.awaited(worker));
        }
        H::local_mut(&mut attempt.local).stamp =
            self.states.begin(attempt, H::local(&attempt.local).stamp, clock::nanoseconds);
    }

    #[inline(always)]
    fn before_load(&self, attempt: &mut Attempt<H>, id: ItemId, look: Look) -> Result<Before, ConflictCause> {
        match look {
            Look::Read => self.share(attempt, id)?,
            Look::ReadForUpdate => self.lock(attempt, id, true)?,
            Look::Peek => {
                let held = attempt.items.get(id).is_any(&[Flags::LOCKED, Flags::READ]);
                self.lock(attempt, id, self.exclusive && !held)?;
                return Ok(Before(held.into()));
            }
        }
        Ok(HELD)
    }

    #[inline(always)]
    fn after_load(
        &self,
        attempt: &mut Attempt<H>,
        id: ItemId,
        look: Look,
        before: Before,
    ) -> Result<(), ConflictCause> {
        if look == Look::Peek && before != HELD {
            self.unlock(attempt, id);
            attempt.items.get_mut(id).clear(if self.exclusive { Flags::LOCKED } else { Flags::READ });
        }
        Ok(())
    }

    #[inline(always)]
    fn write(&self, attempt: &mut Attempt<H>, id: ItemId) -> Result<(), ConflictCause> {
        self.lock(attempt, id, true)
    }

    fn new_locked_header(&self, attempt: &Attempt<H>) -> H::Header {
        H::new_header(QueueLock::new_locked(attempt.worker().number()))
    }

    fn prepare(&self, attempt: &mut Attempt<H>) -> Result<(), ConflictCause> {
        attempt.check_predicates(|attempt, id| {
            self.share(attempt, id)?;
            Ok(attempt.predicate_holds(id))
        })?;
        // INVARIANT 12: A commit draws its stamp under all its locks and before it validates, so that no successor has a smaller stamp.
        attempt.draw_stamp();
        attempt.check_structures()
    }

    fn finish(&self, mut prepared: Prepared<'_, H>) {
        // A waiter at the head of a queue has recorded that it waits. If nobody waits, all locks are released
        // together.
        let attempt = if self.has_waiters(prepared.attempt()) {
            self.install_awaited_first(prepared)
        } else {
            prepared.install_all(|_| (), |_| ())
        };
        self.release(attempt);
    }

    #[cold]
    fn abort(&self, attempt: &mut Attempt<H>) {
        self.release(attempt);
    }

    #[inline]
    fn after_cleanup(&self, attempt: &mut Attempt<H>) {
        let worker = attempt.worker().number();
        if !H::local(&attempt.local).ranges.is_empty()
            && self.ranges.release(&self.queues, &self.states, worker, &H::local(&attempt.local).ranges)
        {
            self.states.let_others_run();
        }
    }
}

impl<H: Host<McsLocking>> Stealing<H> for McsLocking {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm().filter(|steal| steal.queues.thieves.stealing() != StealingMode::Never)
    }

    fn stealable_operations(&self, worker: WorkerId) -> &StealableOperations<H> {
        self.queues.thieves.stealable_operations(worker)
    }

    #[inline(always)]
    fn has_waiters(&self, attempt: &Attempt<H>) -> bool {
        let McsLockingLocal { awaited, stamp, .. } = H::local(&attempt.local);
        awaited.as_ref().is_some_and(|awaited| awaited.is(*stamp))
    }

    fn published(&self, attempt: &mut Attempt<H>, batch: u64, stealable: u32) {
        self.queues.thieves.offer(attempt.worker().number(), batch, stealable);
    }

    fn published_ahead(&self, attempt: &mut Attempt<H>, batch: u64, stealable: u32) {
        self.queues.thieves.offer_ahead(attempt.worker().number(), batch, stealable);
    }

    fn runs_ahead(&self, attempt: &Attempt<H>) -> bool {
        // The locks of operations that were run ahead may have made the last attempt fail.
        self.ahead && attempt.number() == 0
    }

    fn thief_state(&self, worker: WorkerId) -> H::Local {
        let stamp = self.states.stamp(worker.number());
        H::new_local(McsLockingLocal { stamp, is_thief: true, ..McsLockingLocal::default() })
    }

    fn adopt(&self, attempt: &mut Attempt<H>, mine: ItemId, lent: &Item<H>) {
        // The lock is shared twice: by the owner before, and by the thief for the operation.
        if attempt.items.get(mine).is(Flags::READ) && lent.is(Flags::READ) {
            self.queues.released(H::header(lent.header()).release_shared(), &self.states);
        }
    }
}

impl<H: Host<McsLocking>> RangeLocks<H> for McsLocking {
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    #[inline]
    fn try_lock(&self, attempt: &Attempt<H>, range: RangeId, how: RangeUse) -> bool {
        // Only the owner notes the range locks that it holds.
        !H::local(&attempt.local).is_thief
            && self.ranges.try_lock(
                &self.queues,
                attempt.worker().number(),
                &H::local(&attempt.local).ranges,
                range,
                how,
            )
    }

    fn wait(&self, attempt: &mut Attempt<H>, range: RangeId, how: RangeUse) -> Result<(), Reason> {
        match H::local(&attempt.local).is_thief {
            true => Err(attempt.would_block()),
            false => self.lock_range_slowly(attempt, range, how),
        }
    }

    fn deadlocks(&self, attempt: &Attempt<H>) -> Vec<DeadlockPart> {
        // A thief has the owner's stamp and waits for nothing: the parts are the owner's to report.
        match H::local(&attempt.local).is_thief {
            true => Vec::new(),
            false => self.queues.deadlocks.take_parts(H::local(&attempt.local).stamp),
        }
    }

    #[inline]
    fn holds(&self, attempt: &Attempt<H>, range: RangeId, how: RangeUse) -> bool {
        H::local(&attempt.local).ranges.holds(range, how)
    }
}

impl<H: Host<McsLocking>> Reports<H> for McsLocking {
    #[inline(always)]
    fn of(protocol: &H) -> Option<&Self> {
        protocol.algorithm()
    }

    fn rival(&self, _attempt: &Attempt<H>, header: &H::Header) -> Option<Rival> {
        match H::header(header).blocker(false)? {
            Blocker::Owner(worker) => Some(Rival::holder(worker)),
            Blocker::Readers => None,
        }
    }
}
