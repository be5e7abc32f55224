//! Stealing: who waits for a lock runs operations of the transaction that has it (stealdb §3.2, Algorithm 3).
//!
//! # The chain
//!
//! A worker's *steal context* is one word: whose operations, of which batch, and the number of the next one to take,
//! counted from the front. The holder puts its own there when its operations are on its board. Whoever waits immediately
//! behind it takes the word, so that nobody else has it, takes the operation, and leaves the rest in its own context for
//! the next one behind. So each worker looks at one word of one other worker. The last in the queue gives the rest back to
//! the holder, from where it goes down the chain again: operations are taken from the last to the first, while the holder
//! runs them from the first on, until they meet.
//!
//! # The single queue
//!
//! Under `steal-basic` the word stays where it is, and all that wait for the holder's lock count it down (stealdb §2.2).
//!
//! # Readers
//!
//! Who waits for those that share a lock has several ahead, and looks at each in turn.

use super::McsLocking;
use super::options::StealingMode;
use crate::per_worker::PerWorker;
use crate::worker_states::{AttemptStamp, WORKERS_MAX};
use crossbeam_utils::CachePadded;
use hotrow_core::WorkerId;
use hotrow_core::graph::{BATCH_BITS, BATCH_LOW, Found, StealableOperations};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whose operations are to be stolen next, and which. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StealContext {
    owner: u32,
    /// The lowest bits of the batch.
    batch: u64,
    /// The number of the operation.
    place: u32,
    /// How many have had it since the owner.
    hops: u32,
}

/// Who steals takes one operation, and one more for so many that are left: the chain takes its time, and those in front
/// begin first.
const SHARE_OF_LEFT: u32 = 6;

/// How many workers have a steal context before it goes back to its owner. Those further behind wait in peace: by the time
/// at which it came to them, the operations would be gone.
const HOPS_MAX: u32 = 16;

const PLACE_BITS: u32 = 12;
const HOPS_BITS: u32 = 6;

impl StealContext {
    /// That of a batch of which nobody has taken an operation yet. `None` if it has none.
    fn of_batch(owner: u32, batch: u64, stealable: u32) -> Option<Self> {
        stealable.checked_sub(1).map(|place| Self { owner, batch, place, hops: 0 })
    }

    /// The word of what is left; 0 if that is nothing.
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

    /// What is left when so many are taken.
    fn after(self, count: u32) -> Option<Self> {
        self.place.checked_sub(count).map(|place| Self { place, ..self })
    }
}

/// The attempt of a worker that others wait for: its identity. The worker looks at it before each operation, so it keeps a
/// reference.
#[derive(Debug, Default)]
pub(super) struct Awaited(CachePadded<AtomicU64>);

impl Awaited {
    /// Says that an attempt is waited for: from now on it draws its operations.
    fn set(&self, id: u64) {
        // Relaxed, as in `is`: a hint.
        if self.0.load(Ordering::Relaxed) != id {
            self.0.store(id, Ordering::Relaxed);
        }
    }

    /// Whether this attempt is waited for.
    #[inline(always)]
    pub(super) fn is(&self, stamp: AttemptStamp) -> bool {
        self.0.load(Ordering::Relaxed) == stamp.id.word()
    }
}

#[derive(Debug, Default)]
struct Place {
    /// The [`StealContext`]; 0 if there is nothing to steal.
    context: CachePadded<AtomicU64>,
    awaited: Arc<Awaited>,
    /// The steal context of the worker's own operations, for itself alone.
    own: AtomicU64,
    /// Whether the worker has run one of those while it waited.
    ran_ahead: AtomicBool,
}

/// What workers know of each other's operations.
#[derive(Debug)]
pub(super) struct Thieves {
    places: PerWorker<Place>,
    boards: PerWorker<StealableOperations<McsLocking>>,
    stealing: StealingMode,
}

impl Thieves {
    pub(super) fn new(stealing: StealingMode) -> Self {
        let boards = if stealing == StealingMode::Never { 0 } else { WORKERS_MAX };
        Self { places: PerWorker::new(WORKERS_MAX), boards: PerWorker::new(boards), stealing }
    }

    pub(super) fn stealing(&self) -> StealingMode {
        self.stealing
    }

    pub(super) fn board(&self, worker: WorkerId) -> &StealableOperations<McsLocking> {
        self.boards.of(worker.number())
    }

    /// Says that an attempt of a worker is waited for.
    pub(super) fn await_attempt(&self, id: u64, worker: u32) {
        self.places.of(worker).awaited.set(id);
    }

    /// Where others say that a worker's attempt is waited for.
    pub(super) fn awaited(&self, worker: u32) -> Arc<Awaited> {
        Arc::clone(&self.places.of(worker).awaited)
    }

    /// Offers a worker's operations.
    pub(super) fn offer(&self, owner: u32, batch: u64, stealable: u32) {
        if let Some(context) = StealContext::of_batch(owner, batch, stealable) {
            // Release: pairs with the acquire in `steal`; who finds the word finds the board as it was published.
            self.places.of(owner).context.store(context.word(), Ordering::Release);
        }
    }

    /// Offers a worker's operations to itself.
    pub(super) fn offer_ahead(&self, owner: u32, batch: u64, stealable: u32) {
        let context = StealContext::of_batch(owner, batch, stealable);
        let Place { own, ran_ahead, .. } = self.places.of(owner);
        // Relaxed, as in `run_ahead`: nobody else looks.
        own.store(StealContext::word_of(context), Ordering::Relaxed);
        ran_ahead.store(false, Ordering::Relaxed);
    }

    /// Whether a worker that waits holds locks for operations that it has run meanwhile.
    pub(super) fn has_run_ahead(&self, me: u32) -> bool {
        self.stealing != StealingMode::Never && self.places.of(me).ran_ahead.load(Ordering::Relaxed)
    }

    /// Runs an operation of the worker's own, while it waits, if its turn `is_near`. False if there is none.
    pub(super) fn run_ahead(&self, me: u32, is_near: impl Fn() -> bool) -> bool {
        let Place { own, ran_ahead, .. } = self.places.of(me);
        while let Some(context) = StealContext::from_word(own.load(Ordering::Relaxed)) {
            if !is_near() {
                return false;
            }
            own.store(StealContext::word_of(context.after(1)), Ordering::Relaxed);
            match self.boards.of(me).take(context.place, context.batch) {
                Found::Taken(taken) => {
                    ran_ahead.store(true, Ordering::Relaxed);
                    taken.run();
                    return true;
                }
                Found::Busy => {}
                Found::Ended => own.store(0, Ordering::Relaxed),
            }
        }
        false
    }

    /// Forgets what a worker has left for those behind it.
    #[inline]
    pub(super) fn clear(&self, worker: u32) {
        let Place { context, own, ran_ahead, .. } = self.places.of(worker);
        ran_ahead.store(false, Ordering::Relaxed);
        for word in [&**context, own] {
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Runs an operation that the one ahead, or the holder, has to offer, for a worker that waits. `last` is what was found
    /// there before, and `is_last` says whether nobody waits behind the worker. False if there is nothing new.
    pub(super) fn steal(&self, me: u32, ahead: u32, last: &mut u64, is_last: impl Fn() -> bool) -> bool {
        let context = &self.places.of(ahead).context;
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

    /// Leaves the rest of a steal context to those behind, or to the owner if there are none, and runs operations.
    fn steal_along(&self, me: u32, context: StealContext, is_last: impl Fn() -> bool) -> bool {
        let count = 1 + context.place / SHARE_OF_LEFT;
        let returns = context.hops + 1 >= HOPS_MAX || is_last();
        let (to, hops) = if returns { (context.owner, 0) } else { (me, context.hops + 1) };
        let left = StealContext::word_of(StealContext { hops, ..context }.after(count));
        // First of all, so that the next one need not wait. Release: pairs with the acquire in `steal`; what this worker has
        // seen of the board, the next sees.
        self.places.of(to).context.store(left, Ordering::Release);
        let board = self.boards.of(context.owner);
        for place in (0..=context.place).rev().take(count as usize) {
            match board.take(place, context.batch) {
                Found::Taken(taken) => taken.run(),
                // It has met the owner, or the batch is over.
                Found::Busy | Found::Ended => return place != context.place,
            }
        }
        true
    }

    /// Counts the one word down and runs the operation whose turn that was.
    fn steal_from_one(&self, word: &AtomicU64) -> bool {
        let mut seen = word.load(Ordering::Relaxed);
        while let Some(context) = StealContext::from_word(seen) {
            let left = StealContext::word_of(context.after(1));
            // Acquire: pairs with the release in `offer`.
            if let Err(now) = word.compare_exchange(seen, left, Ordering::AcqRel, Ordering::Relaxed) {
                seen = now;
                continue;
            }
            match self.boards.of(context.owner).take(context.place, context.batch) {
                Found::Taken(taken) => {
                    taken.run();
                    return true;
                }
                Found::Busy => seen = left,
                Found::Ended => return false,
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
