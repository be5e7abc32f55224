//! Workers' contexts: how old each one's transaction is, whether it still runs, and where others wait for it.
//!
//! A transaction gets a [`Stamp`] when it begins and keeps it over its attempts, so that it grows older than those
//! that come after it. Its worker's context holds the stamp and a state in one word (plor §4.1.1), and that word is
//! where it is decided whether the attempt commits:
//!
//! ```text
//! RUNNING ──commit──► COMMITTED ──► ENDED
//!    └─────wound────► WOUNDED   ──► ENDED
//! ```
//!
//! Both arrows out of `RUNNING` are compare-and-swaps of the whole word, so a wound meant for one transaction never
//! hits the worker's next one ("kill only with the timestamp that was seen"), and *a wounded attempt never installs
//! anything*. What it holds may therefore be taken from it at once, whether its thread is running or not.
//!
//! Who waits for a transaction waits at its worker's event, which is told when the transaction ends; who wounds one
//! also tells the event at which the victim waits.

use crossbeam_utils::CachePadded;
use hotrow_core::{Attempt, Lost, Protocol, Reason, WorkerId};
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use hotrow_sync::clock::{self, Duration};
use hotrow_sync::event::Event;

/// Bits of a worker's number in a stamp.
const WORKER_BITS: u32 = 14;
/// Workers that stamps can tell apart.
pub(crate) const WORKERS_MAX: u32 = 1 << WORKER_BITS;
/// Bits below the stamp: the state, or a protocol's own mark.
const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;
/// The unit of time in a stamp, as a power of two of nanoseconds.
const TICK_BITS: u32 = 6;

const RUNNING: u64 = 0;
const COMMITTED: u64 = 1;
const WOUNDED: u64 = 2;
const ENDED: u64 = 3;

/// The age of a transaction: when it began, in units of 64 ns, and its worker's number, which tells transactions
/// of one moment apart. The lowest two bits are 0.
///
/// 48 bits of time wrap around after 208 days; ages are compared by their distance, so that only transactions
/// that are 104 days apart would be mistaken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp(u64);

impl Stamp {
    /// The stamp of a transaction of `worker` that begins at `ticks`. Not the `last` one of that worker.
    #[inline]
    fn new(ticks: u64, worker: WorkerId, last: Stamp) -> Self {
        /// Clocks do not go back, but a worker may come from real time into a simulation.
        const NEAR: u64 = 1 << 20;
        const TICKS: u64 = (1 << (64 - WORKER_BITS - STATE_BITS)) - 1;
        let last_ticks = last.0 >> (WORKER_BITS + STATE_BITS);
        let ahead = last_ticks.wrapping_sub(ticks) & TICKS;
        // 0 would make the stamp of worker 0 look like none.
        let ticks = if ahead < NEAR { last_ticks + 1 } else { ticks }.max(1);
        Self((ticks << (WORKER_BITS + STATE_BITS)) | (u64::from(worker.number()) << STATE_BITS))
    }

    /// The stamp in a word whose two lowest bits mean something else. `None` if there is none.
    #[inline(always)]
    pub(crate) fn in_word(word: u64) -> Option<Self> {
        (word & !STATE != 0).then_some(Self(word & !STATE))
    }

    /// The stamp as a word.
    #[inline(always)]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Whether its transaction has precedence over the other's.
    #[inline(always)]
    pub(crate) fn is_older_than(self, other: Stamp) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// The number of its worker.
    #[inline(always)]
    pub(crate) fn worker(self) -> u32 {
        (self.0 >> STATE_BITS) as u32 & (WORKERS_MAX - 1)
    }
}

/// One worker's context.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// The current transaction's stamp and state.
    word: AtomicU64,
    /// The segment over which it was wounded.
    wounded_over: AtomicUsize,
    /// The worker at whose event it waits.
    waits_at: AtomicU32,
    /// The segment whose lock was granted to it while it waited.
    granted: AtomicUsize,
    /// Where others wait for the transaction, and where it waits for a grant.
    event: Event,
}

/// What became of an attempt to stop a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wound {
    /// It will never install anything, or has ended: what it holds may be taken.
    Dead,
    /// It has passed its commit point: wait for its end.
    TooLate,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// What was waited for is the case.
    Over,
    /// The waiter was wounded.
    Wounded,
    /// The transaction's deadline has passed.
    TimedOut,
}

const CHUNK: usize = if cfg!(test) { 2 } else { 64 };
const CHUNKS: usize = WORKERS_MAX as usize / CHUNK;

/// The contexts of all workers of an engine, by their numbers.
#[derive(Debug)]
pub(crate) struct Contexts {
    /// Made when the first of their workers begins a transaction.
    chunks: Box<[OnceLock<Box<[CachePadded<Context>]>>]>,
}

impl Contexts {
    pub(crate) fn new() -> Self {
        Self { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    /// The context of a worker.
    #[inline]
    pub(crate) fn of(&self, worker: u32) -> &Context {
        let worker = worker as usize;
        let chunk = self.chunks[worker / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| CachePadded::new(Context::default())).collect());
        &chunk[worker % CHUNK]
    }

    /// Begins an attempt: a new stamp for a first one, the same again for a retry. `behind_ns` puts a new
    /// transaction behind others, by so many nanoseconds.
    #[inline]
    pub(crate) fn begin<P: Protocol>(&self, attempt: &Attempt<P>, last: Stamp, behind_ns: u64) -> Stamp {
        let stamp = if attempt.number() == 0 {
            let ticks = clock::nanoseconds().wrapping_add(behind_ns) >> TICK_BITS;
            Stamp::new(ticks, attempt.worker(), last)
        } else {
            last
        };
        // Release: who finds the attempt in a lock, which it enters later, sees this.
        self.of(stamp.worker()).word.store(stamp.0 | RUNNING, Ordering::Release);
        stamp
    }

    /// The commit point: from here on the attempt cannot be wounded. False if it was.
    #[inline]
    pub(crate) fn commit(&self, stamp: Stamp) -> bool {
        let word = &self.of(stamp.worker()).word;
        // Sequentially consistent, as `wound`: the two decide between them.
        word.compare_exchange(stamp.0 | RUNNING, stamp.0 | COMMITTED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Ends an attempt that has released what it held.
    #[inline]
    pub(crate) fn end(&self, stamp: Stamp) {
        // Release: pairs with the loads in `running` and its siblings; who sees the end sees what was released.
        self.of(stamp.worker()).word.store(stamp.0 | ENDED, Ordering::Release);
    }

    /// Tells who waits at the worker's event.
    #[inline]
    pub(crate) fn tell(&self, stamp: Stamp) {
        self.of(stamp.worker()).event.notify_all();
    }

    /// Whether the attempt, which is the caller's own, was wounded.
    ///
    /// Called after a look at a value that the attempt has a right to, it says whether what was seen may be torn:
    /// who takes the right away wounds first, and stores afterwards.
    #[inline(always)]
    pub(crate) fn is_wounded(&self, stamp: Stamp) -> bool {
        // Pairs with the release fence of who installs (`fence_before_install`): who has seen a part of what was
        // stored sees the wound too.
        fence(Ordering::Acquire);
        self.of(stamp.worker()).word.load(Ordering::Relaxed) & STATE == WOUNDED
    }

    /// Orders wounds before what is installed; pairs with the fence in [`is_wounded`](Self::is_wounded).
    #[inline(always)]
    pub(crate) fn fence_before_install() {
        fence(Ordering::Release);
    }

    /// The stamp of a worker's transaction, if it is running and may still commit or be wounded.
    #[inline]
    pub(crate) fn running(&self, worker: u32) -> Option<Stamp> {
        // Sequentially consistent: the caller has found the worker in a lock before.
        let word = self.of(worker).word.load(Ordering::SeqCst);
        if word & STATE == RUNNING { Stamp::in_word(word) } else { None }
    }

    /// The stamp of a worker's transaction, whatever has become of it.
    #[inline]
    pub(crate) fn stamp(&self, worker: u32) -> Stamp {
        Stamp(self.of(worker).word.load(Ordering::SeqCst) & !STATE)
    }

    /// Whether a transaction's attempt runs, and may still commit or be wounded.
    #[inline]
    pub(crate) fn is_running(&self, stamp: Stamp) -> bool {
        self.of(stamp.worker()).word.load(Ordering::SeqCst) == stamp.0 | RUNNING
    }

    /// Whether an attempt will install nothing any more.
    #[inline]
    pub(crate) fn is_over(&self, stamp: Stamp) -> bool {
        let word = self.of(stamp.worker()).word.load(Ordering::SeqCst);
        word & !STATE != stamp.0 || matches!(word & STATE, WOUNDED | ENDED)
    }

    /// Stops a transaction if it can still be stopped.
    pub(crate) fn wound(&self, victim: Stamp, over: usize) -> Wound {
        let context = self.of(victim.worker());
        if self.is_running(victim) {
            // Only words for a report.
            context.wounded_over.store(over, Ordering::Relaxed);
        }
        let (from, to) = (victim.0 | RUNNING, victim.0 | WOUNDED);
        match context.word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                // Who waits for the victim may take over what it holds.
                context.event.notify_all();
                // Sequentially consistent: the victim names its place before it looks at its state.
                let place = context.waits_at.load(Ordering::SeqCst);
                if place != victim.worker() {
                    self.of(place).event.notify_all();
                }
                Wound::Dead
            }
            Err(word) if word == victim.0 | COMMITTED => Wound::TooLate,
            Err(_) => Wound::Dead,
        }
    }

    /// Waits at a worker's event until `over`, which must become true before that worker is told.
    pub(crate) fn wait<P: Protocol>(
        &self,
        attempt: &mut Attempt<P>,
        at: u32,
        stamp: Stamp,
        over: impl FnMut() -> bool,
    ) -> Waited {
        self.wait_at_most(attempt.wait_max(), at, stamp, over)
    }

    /// As [`wait`](Self::wait), for so long at most.
    pub(crate) fn wait_at_most(
        &self,
        limit: Option<Duration>,
        at: u32,
        stamp: Stamp,
        mut over: impl FnMut() -> bool,
    ) -> Waited {
        let mine = self.of(stamp.worker());
        mine.waits_at.store(at, Ordering::SeqCst);
        let wounded = || mine.word.load(Ordering::SeqCst) & STATE == WOUNDED;
        let mut condition = || over() || wounded();
        let event = &self.of(at).event;
        let met = match limit {
            None => {
                event.wait_until(condition);
                true
            }
            // Nobody else goes on meanwhile.
            Some(Duration::ZERO) => condition(),
            Some(limit) => event.wait_timeout(limit, condition),
        };
        match (wounded(), met) {
            (true, _) => Waited::Wounded,
            (false, true) => Waited::Over,
            (false, false) => Waited::TimedOut,
        }
    }

    /// Says that a lock is now the worker's, and wakes it.
    pub(crate) fn grant(&self, worker: u32, segment: usize) {
        let context = self.of(worker);
        // Release: pairs with the acquire in `is_granted`, which takes the lock over with what it protects.
        context.granted.store(segment, Ordering::Release);
        context.event.notify_all();
    }

    /// Whether the lock of a segment was granted to the worker.
    pub(crate) fn is_granted(&self, worker: u32, segment: usize) -> bool {
        self.of(worker).granted.load(Ordering::Acquire) == segment
    }

    /// Forgets earlier grants. Only the worker itself calls it, while it waits for nothing.
    pub(crate) fn clear_grant(&self, worker: u32) {
        self.of(worker).granted.store(0, Ordering::Relaxed);
    }

    /// What a wounded attempt lost: the segment over which it was wounded, if it still knows it.
    #[cold]
    pub(crate) fn loss<P: Protocol>(&self, attempt: &Attempt<P>) -> Lost {
        let over = self.of(attempt.worker().number()).wounded_over.load(Ordering::Relaxed);
        let item = attempt.items.at(over).or_else(|| attempt.items.ids().next());
        Lost::item(Reason::Wounded, item.expect("only who holds something is wounded"))
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hotrow_core::Engine;

    fn stamps() -> [Stamp; 3] {
        let engine = Engine::<crate::Occ>::new();
        let (first, second) = (engine.worker().unwrap(), engine.worker().unwrap());
        [
            Stamp::new(7, first.id(), Stamp::default()),
            Stamp::new(7, second.id(), Stamp::default()),
            Stamp::new(8, first.id(), Stamp::default()),
        ]
    }

    #[test]
    fn who_began_earlier_is_older_and_ties_are_broken_by_the_worker() {
        let [first, second, later] = stamps();
        assert!(first.is_older_than(second) && second.is_older_than(later) && first.is_older_than(later));
        assert!(!first.is_older_than(first) && !later.is_older_than(first));
        assert_eq!((first.worker(), second.worker(), later.worker()), (0, 1, 0));
    }

    #[test]
    fn ages_survive_the_end_of_the_clock() {
        let [old, _, young] = stamps();
        let old = Stamp(old.0.wrapping_sub(20 << (WORKER_BITS + STATE_BITS)));
        assert!(old.0 > young.0 && old.is_older_than(young));
    }

    #[test]
    fn a_worker_never_has_the_same_stamp_twice_in_a_row() {
        let [first, ..] = stamps();
        let engine = Engine::<crate::Occ>::new();
        let worker = engine.worker().unwrap().id();
        let again = Stamp::new(7, worker, first);
        assert!(first.is_older_than(again));
        // Another clock begins: its time counts.
        assert_eq!(Stamp::new(3, worker, Stamp(u64::MAX >> 1)).0 >> (WORKER_BITS + STATE_BITS), 3);
    }

    #[test]
    fn a_transaction_is_wounded_or_commits_but_never_both() {
        let contexts = Contexts::new();
        let [first, second, later] = stamps();
        let word = |stamp: Stamp| &contexts.of(stamp.worker()).word;
        word(first).store(first.0 | RUNNING, Ordering::SeqCst);
        assert_eq!(contexts.wound(first, 1), Wound::Dead);
        assert!(contexts.is_wounded(first) && contexts.is_over(first) && !contexts.commit(first));
        word(second).store(second.0 | RUNNING, Ordering::SeqCst);
        assert!(contexts.commit(second));
        assert_eq!(contexts.wound(second, 1), Wound::TooLate);
        assert!(!contexts.is_over(second));
        contexts.end(second);
        assert_eq!(contexts.wound(second, 1), Wound::Dead);
        // The worker's next transaction is not hit by what was meant for the one before.
        word(later).store(later.0 | RUNNING, Ordering::SeqCst);
        assert_eq!(contexts.wound(first, 1), Wound::Dead);
        assert!(contexts.is_running(later));
    }
}
