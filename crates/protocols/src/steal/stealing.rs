//! Stealing: waiters for a lock run operations of the lock's holder (stealdb §3.2, Algorithm 3).
//!
//! # The chain
//!
//! A worker's *steal context* is one word: the owner of operations, their batch, and the number of the next one to
//! take, counted from the front. The holder stores its own there when its operations are published. The waiter
//! immediately behind it takes the word, so that nobody else has it, takes an operation, and leaves the rest in its
//! own context for the next waiter. So each worker loads one word of one other worker. The last in the queue returns
//! the rest to the holder, from where it goes down the chain again. Operations are stolen from the last to the
//! first, while the holder runs them from the first on, until they meet.
//!
//! # The single queue
//!
//! Under `steal-basic` the word stays in place, and all that wait for the holder's lock count it down (stealdb
//! §2.2).
//!
//! # Readers
//!
//! A worker that waits for the readers of a lock has several workers ahead, and looks at up to eight of them in turn.
//!
//! # Running ahead
//!
//! With `+ahead` a transaction that enqueues because a lock is not free publishes its operations to itself before it waits. While it is near
//! the head of its queue and finds nothing to steal, it runs them from the last one on, as a thief would. It holds what it has locked
//! meanwhile, so it may be part of a deadlock that would not exist otherwise. So a transaction that was aborted does not run ahead again.
//!
//! # Invariants
//!
//! 1. *A thief touches only what is unshared*: the segment under its lock, the operation's node, its own stolen work, and results known before
//!    it took the operation. Items, arena and history of the owner are the owner's (`hotrow_core::graph`).
//! 2. *The owner leaves nothing behind.* At the end of a batch it goes through the operations in ascending order, takes back those that are not
//!    taken, and waits where one is taken. What a thief takes while it runs one (a follower, whose inputs are complete) is later, and is taken
//!    before the one is marked as done; so the owner misses none.
//! 3. *A thief's locks are visible as the owner's.* An exclusive lock names the owner. A shared one is noted in the owner's name before the
//!    thief tries to take it, because the owner may be waiting already, and will not look again. So the last waiter of a cycle sees the whole
//!    cycle.
//! 4. *An operation that would block has had no effect*: it stops for a lock only before its first pending write.
//! 5. *Two operations that meet on one key* although their keys were not known find the lock held by the owner: the attempt starts over and runs its
//!    operations at once (`Reason::Undeclared`).
//!
//! # Why it is serializable
//!
//! It is two-phase locking: each operation takes its locks, in the owner's name, before it reads, and they are held until the commit is
//! decided. The worker that ran an operation makes no difference, nor does the order of operations that do not depend on each other: nobody
//! sees any of them before. When all operations are finished, all predicates hold and no bucket or leaf has changed, the attempt is sure to
//! commit. That is its serialization point. Locks with waiters are released first, each after its value was installed. An attempt that
//! gets one comes later, and waits at every other segment until its value is there, too.
//!
//! # Deviations
//!
//! - Operations are recorded only when another transaction is in the way. stealdb (§3.1) has them made beforehand, by hand.
//! - Insertions and deletions are not stolen: neighbouring keys of one transaction share leaves, which would move between workers.
//! - A thief does not wait for a lock (Algorithm 2, lines 6 to 9, it steals more meanwhile): it gives the operation back.
//! - A thief takes more than one operation at a time. The chain ends after sixteen hops, and the last waiter gives the rest to
//!   the owner; so the owner need not look at the tail of the chain.
//! - The word stays where it was (Algorithm 3, line 5, clears it): a waiter recognizes a word that it has seen, which saves a transfer of its cache
//!   line with each hop.
//! - Locks with waiters are released first (Algorithm 1, line 13, releases all together).

use super::options::StealingMode;
use crate::per_worker::PerWorker;
use crate::worker_states::{AttemptStamp, WORKERS_MAX};
use crossbeam_utils::CachePadded;
use hotrow_core::graph::{BATCH_BITS, BATCH_LOW, StealableOperations, TakeResult};
use hotrow_core::{Protocol, WorkerId};
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow_sync::{Arc, OnceLock};
use std::any::Any;
use std::fmt;

/// The next operation to steal, and its owner. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StealContext {
    owner: u32,
    /// The lowest bits of the batch.
    batch: u64,
    /// The number of the operation.
    place: u32,
    /// Number of workers that have had it since the owner.
    hops: u32,
}

/// A thief takes one operation, and one more for each group of this many that are left. The chain takes its time,
/// and thieves in front begin first.
const SHARE_OF_LEFT: u32 = 6;

/// Number of workers that have a steal context before it returns to its owner. Workers further behind only wait:
/// before it reached them, the operations would be gone.
const HOPS_MAX: u32 = 16;

const PLACE_BITS: u32 = 12;
const HOPS_BITS: u32 = 6;

impl StealContext {
    /// Makes the context of a batch of which nobody has taken an operation yet. `None` if it has none.
    fn of_batch(owner: u32, batch: u64, stealable: u32) -> Option<Self> {
        stealable.checked_sub(1).map(|place| Self { owner, batch, place, hops: 0 })
    }

    /// Returns the word of the rest; 0 if there is none.
    fn word_of(left: Option<Self>) -> u64 {
        left.map_or(0, Self::word)
    }

    /// `owner | batch | hops | place + 1`.
    fn word(self) -> u64 {
        let high = u64::from(self.owner) << BATCH_BITS | self.batch & BATCH_LOW;
        (high << HOPS_BITS | u64::from(self.hops)) << PLACE_BITS | u64::from(self.place + 1)
    }

    fn from_word(word: u64) -> Option<Self> {
        let part = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
        let (place, hops) = (part(0, PLACE_BITS) as u32, part(PLACE_BITS, HOPS_BITS) as u32);
        let batch = part(PLACE_BITS + HOPS_BITS, BATCH_BITS);
        let owner = (word >> (PLACE_BITS + HOPS_BITS + BATCH_BITS)) as u32;
        place.checked_sub(1).map(|place| Self { owner, batch, place, hops })
    }

    /// Returns the rest after `count` operations are taken, or `None`.
    fn after(self, count: u32) -> Option<Self> {
        self.place.checked_sub(count).map(|place| Self { place, ..self })
    }
}

/// The identity of a worker's attempt that others wait for. The worker checks it before each operation, so it keeps
/// a reference.
#[derive(Debug, Default)]
pub(super) struct Awaited(CachePadded<AtomicU64>);

impl Awaited {
    /// Records that others wait for an attempt: from now on the attempt lets them take its operations.
    fn set(&self, id: u64) {
        // Relaxed, as in `is`: a hint.
        if self.0.load(Ordering::Relaxed) != id {
            self.0.store(id, Ordering::Relaxed);
        }
    }

    /// True if others wait for this attempt.
    #[inline(always)]
    pub(super) fn is(&self, stamp: AttemptStamp) -> bool {
        self.0.load(Ordering::Relaxed) == stamp.id.word()
    }
}

/// The operations that one worker offers to thieves, and the note that others wait for it.
#[derive(Debug, Default)]
struct StealState {
    /// The [`StealContext`]; 0 if there is nothing to steal.
    context: CachePadded<AtomicU64>,
    awaited: Arc<Awaited>,
    /// The steal context of the worker's own operations, used only by the worker itself.
    own: AtomicU64,
    /// True if the worker has run one of those while it waited.
    ran_ahead: AtomicBool,
}

/// The steal contexts and stealable operations of all workers.
#[derive(Debug)]
pub(super) struct Thieves {
    states: PerWorker<StealState>,
    /// Made when the first worker offers operations, because only then it is known what hosts the protocol.
    boards: OnceLock<Box<dyn Boards>>,
    stealing: StealingMode,
}

/// The stealable operations of all workers, of whatever host.
trait Boards: fmt::Debug + Send + Sync {
    /// Takes an operation of a worker's batch and runs it; calls `taken` before.
    fn take(&self, owner: u32, place: u32, batch: u64, taken: &dyn Fn()) -> Taken;

    fn as_any(&self) -> &dyn Any;
}

/// The end of trying to take an operation: see [`TakeResult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Run,
    Busy,
    Ended,
}

struct BoardsOf<H: Protocol>(PerWorker<StealableOperations<H>>);

impl<H: Protocol> fmt::Debug for BoardsOf<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoardsOf").field(&self.0).finish()
    }
}

impl<H: Protocol> Boards for BoardsOf<H> {
    fn take(&self, owner: u32, place: u32, batch: u64, taken: &dyn Fn()) -> Taken {
        match self.0.of(owner).take(place, batch) {
            TakeResult::Taken(operation) => {
                taken();
                operation.run();
                Taken::Run
            }
            TakeResult::Busy => Taken::Busy,
            TakeResult::Ended => Taken::Ended,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Thieves {
    pub(super) fn new(stealing: StealingMode) -> Self {
        Self { states: PerWorker::new(WORKERS_MAX), boards: OnceLock::new(), stealing }
    }

    pub(super) fn stealing(&self) -> StealingMode {
        self.stealing
    }

    pub(super) fn stealable_operations<H: Protocol>(&self, worker: WorkerId) -> &StealableOperations<H> {
        let boards = self.boards.get_or_init(|| Box::new(BoardsOf::<H>(PerWorker::new(WORKERS_MAX))));
        let boards = boards.as_any().downcast_ref::<BoardsOf<H>>();
        boards.expect("an engine has one host").0.of(worker.number())
    }

    /// Takes an operation of a worker's batch and runs it; calls `taken` before.
    fn take(&self, owner: u32, place: u32, batch: u64, taken: &dyn Fn()) -> Taken {
        self.boards.get().map_or(Taken::Ended, |boards| boards.take(owner, place, batch, taken))
    }

    /// Records that others wait for an attempt of a worker.
    pub(super) fn await_attempt(&self, id: u64, worker: u32) {
        self.states.of(worker).awaited.set(id);
    }

    /// Returns the place where others record that they wait for a worker's attempt.
    pub(super) fn awaited(&self, worker: u32) -> Arc<Awaited> {
        Arc::clone(&self.states.of(worker).awaited)
    }

    /// Offers a worker's operations to thieves.
    pub(super) fn offer(&self, owner: u32, batch: u64, stealable: u32) {
        if let Some(context) = StealContext::of_batch(owner, batch, stealable) {
            // Release: pairs with the acquire in `steal`; a thief that loads the word sees the operations as
            // published.
            self.states.of(owner).context.store(context.word(), Ordering::Release);
        }
    }

    /// Offers a worker's operations to the worker itself.
    pub(super) fn offer_ahead(&self, owner: u32, batch: u64, stealable: u32) {
        let context = StealContext::of_batch(owner, batch, stealable);
        let StealState { own, ran_ahead, .. } = self.states.of(owner);
        // Relaxed, as in `run_ahead`: no other worker loads it.
        own.store(StealContext::word_of(context), Ordering::Relaxed);
        ran_ahead.store(false, Ordering::Relaxed);
    }

    /// True if a waiting worker holds locks for operations that it has run meanwhile.
    pub(super) fn has_run_ahead(&self, me: u32) -> bool {
        self.stealing != StealingMode::Never && self.states.of(me).ran_ahead.load(Ordering::Relaxed)
    }

    /// Runs one of a waiting worker's own operations, if its turn `is_near`. False if there is none.
    pub(super) fn run_ahead(&self, me: u32, is_near: impl Fn() -> bool) -> bool {
        let StealState { own, ran_ahead, .. } = self.states.of(me);
        while let Some(context) = StealContext::from_word(own.load(Ordering::Relaxed)) {
            if !is_near() {
                return false;
            }
            own.store(StealContext::word_of(context.after(1)), Ordering::Relaxed);
            let taken = || ran_ahead.store(true, Ordering::Relaxed);
            match self.take(me, context.place, context.batch, &taken) {
                Taken::Run => return true,
                Taken::Busy => {}
                Taken::Ended => own.store(0, Ordering::Relaxed),
            }
        }
        false
    }

    /// Forgets the steal contexts that a worker has left for those behind it.
    #[inline]
    pub(super) fn clear(&self, worker: u32) {
        let StealState { context, own, ran_ahead, .. } = self.states.of(worker);
        ran_ahead.store(false, Ordering::Relaxed);
        for word in [&**context, own] {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Runs an operation that the worker ahead, or the holder, offers, for a worker that waits. `last` is the word
    /// found there before, and `is_last` is true if nobody waits behind the worker. False if there is nothing new.
    pub(super) fn steal(&self, me: u32, ahead: u32, last: &mut u64, is_last: impl Fn() -> bool) -> bool {
        let context = &self.states.of(ahead).context;
        // Acquire: pairs with the release in `offer` and below.
        let seen = context.load(Ordering::Acquire);
        if seen == 0 || seen == *last {
            return false;
        }
        match self.stealing {
            StealingMode::Never => false,
            StealingMode::Chain => {
                *last = seen;
                StealContext::from_word(seen).is_some_and(|context| self.steal_along(me, context, is_last))
            }
            StealingMode::Basic => self.steal_from_one(context),
        }
    }

    /// Leaves the rest of a steal context to the workers behind, or to the owner if there are none, and runs
    /// operations.
    fn steal_along(&self, me: u32, context: StealContext, is_last: impl Fn() -> bool) -> bool {
        let count = 1 + context.place / SHARE_OF_LEFT;
        let returns = context.hops + 1 >= HOPS_MAX || is_last();
        let (to, hops) = if returns { (context.owner, 0) } else { (me, context.hops + 1) };
        let left = StealContext::word_of(StealContext { hops, ..context }.after(count));
        // Stored before the operations run, so that the next worker need not wait. Release: pairs with the acquire
        // in `steal`, so that the next worker sees of the operations what this one has seen.
        self.states.of(to).context.store(left, Ordering::Release);
        for place in (0..=context.place).rev().take(count as usize) {
            // Otherwise this worker has met the owner, or the batch is over.
            if self.take(context.owner, place, context.batch, &|| ()) != Taken::Run {
                return place != context.place;
            }
        }
        true
    }

    /// Counts the shared word down and runs the operation that it stood for.
    fn steal_from_one(&self, word: &AtomicU64) -> bool {
        let mut seen = word.load(Ordering::Relaxed);
        while let Some(context) = StealContext::from_word(seen) {
            let left = StealContext::word_of(context.after(1));
            // Acquire: pairs with the release in `offer`.
            if let Err(now) = word.compare_exchange(seen, left, Ordering::AcqRel, Ordering::Relaxed) {
                seen = now;
                continue;
            }
            match self.take(context.owner, context.place, context.batch, &|| ()) {
                Taken::Run => return true,
                Taken::Busy => seen = left,
                Taken::Ended => return false,
            }
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_steal_context_is_one_word() {
        for (owner, batch, place, hops) in
            [(0, 0, 0, 0), (16_383, BATCH_LOW, 4_094, 63), (7, 1 << 25, 255, 1)]
        {
            let context = StealContext { owner, batch, place, hops };
            assert_ne!(context.word(), 0);
            assert_eq!(StealContext::from_word(context.word()), Some(context));
        }
        assert_eq!(StealContext::from_word(0), None);
        assert_eq!(StealContext { owner: 1, batch: 2, place: 0, hops: 0 }.after(1), None);
    }
}
