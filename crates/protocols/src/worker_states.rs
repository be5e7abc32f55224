//! The state of each worker: the age of its transaction, whether its attempt still runs, and the event at which
//! others wait for it.
//!
//! A transaction keeps the time when it began over all its attempts. So it grows older than the transactions that
//! come after it. Each attempt has an [`AttemptId`] that no other attempt ever has. The worker's state holds this
//! identity and the attempt's phase in one word (plor §4.1.1). That word decides whether the attempt commits:
//!
//! ```text
//! RUNNING ──commit──► COMMITTED ──► ENDED
//!    └─────wound────► WOUNDED   ──► ENDED
//! ```
//!
//! Both arrows out of `RUNNING` are compare-and-swaps of the whole word. So a wound meant for one attempt never hits
//! the worker's next one ("kill only with the timestamp that was seen"), and *a wounded attempt never installs
//! anything*. Others may therefore take everything that it holds at once, whether its thread is running or not.
//!
//! A thread that waits for a transaction waits at the event of that transaction's worker, which is told when the
//! attempt ends. A thread that wounds a transaction also tells the event at which the victim waits.
//!
//! # Deviation
//!
//! plor §4.1.1 has the timestamp where Hotrow has the attempt's number. There only holders release their locks. Here
//! others take the locks of wounded attempts, by a compare-and-swap of the holder's identity. So the identity must
//! not come back with the transaction's next attempt, as a timestamp does. The timestamp lies beside the word.

mod attempts;

use crate::crowd::Crowd;
use crate::per_worker::PerWorker;
use crossbeam_utils::CachePadded;
use hotrow_core::WaitLimit;
use hotrow_sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::event::Event;
use hotrow_sync::profile::waiting;
use hotrow_sync::spin::{spin_until, yield_until};
use hotrow_sync::thread;

/// Bits for a worker's number in an identity.
const WORKER_BITS: u32 = 14;
/// Number of workers that identities can tell apart.
pub(crate) const WORKERS_MAX: u32 = 1 << WORKER_BITS;
/// Bits below the identity: the state, or a lock's own mark.
const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;

const RUNNING: u64 = 0;
const COMMITTED: u64 = 1;
const WOUNDED: u64 = 2;
const ENDED: u64 = 3;

/// The identity of an attempt: its worker's number, and a count of that worker's attempts. It is never 0; its two
/// lowest bits are 0.
///
/// The count has 48 bits: at ten million attempts a second of one worker, an identity comes back after ten months.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AttemptId(u64);

impl AttemptId {
    #[inline(always)]
    fn next(self, worker: u32) -> Self {
        let number = (self.0 >> (WORKER_BITS + STATE_BITS)).wrapping_add(1);
        Self((number << (WORKER_BITS + STATE_BITS)) | (u64::from(worker) << STATE_BITS))
    }

    /// Returns the identity in a word whose two lowest bits mean something else.
    #[inline(always)]
    pub(crate) fn in_word(word: u64) -> Self {
        Self(word & !STATE)
    }

    /// Returns the identity as a word.
    #[inline(always)]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    /// Returns the number of its worker.
    #[inline(always)]
    pub(crate) fn worker(self) -> u32 {
        (self.0 >> STATE_BITS) as u32 & (WORKERS_MAX - 1)
    }
}

/// The identity of an attempt, and the age of its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AttemptStamp {
    /// The attempt's identity.
    pub(crate) id: AttemptId,
    /// The time when the transaction began, in nanoseconds of the clock. It is later for a transaction that is to
    /// come after others, and 0 under a protocol that does not go by age.
    began_ns: u64,
}

impl AttemptStamp {
    /// True if its transaction has precedence over the other's. If both began at the same moment, the worker with
    /// the lower number has precedence.
    #[inline(always)]
    pub(crate) fn is_older_than(self, other: AttemptStamp) -> bool {
        (self.began_ns, self.worker()) < (other.began_ns, other.worker())
    }

    /// Returns the number of its worker.
    #[inline(always)]
    pub(crate) fn worker(self) -> u32 {
        self.id.worker()
    }
}

/// The state of one worker.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    /// The current attempt's identity and state.
    word: AtomicU64,
    /// The time when its transaction began.
    began_ns: AtomicU64,
    /// The segment over which it was wounded.
    wounded_over: AtomicUsize,
    /// The worker at whose event this one waits.
    waits_at: AtomicU32,
    /// The segment whose lock was granted to the worker while it waited.
    granted: AtomicUsize,
    /// 1 if the worker was called: what it waits for was left free for whoever comes first.
    called: AtomicU32,
    /// 1 if the worker, if it is parked, looks again by itself after a [`NAP`].
    naps: AtomicU32,
    /// The event at which others wait for the transaction, and at which the worker waits for a grant.
    event: Event,
}

/// Result of trying to stop a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wound {
    /// The victim will never install anything, or has ended: its locks may be taken.
    Dead,
    /// The victim has passed its commit point: wait for its end.
    TooLate,
}

/// Result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The awaited condition holds.
    Over,
    /// The waiter was wounded.
    Wounded,
    /// The transaction's deadline has passed, or it was told to end.
    TimedOut,
}

/// The states of all workers of an engine, by the workers' numbers.
#[derive(Debug)]
pub(crate) struct WorkerStates {
    states: PerWorker<WorkerState>,
    crowd: Crowd,
    /// The time of the last call, in nanoseconds of the clock.
    last_call_ns: CachePadded<AtomicU64>,
    spin: SpinPolicy,
}

/// The time after which a parked worker looks by itself whether what it waits for is free.
const NAP: Duration = Duration::from_millis(1);
/// Number of naps, after which the worker sleeps until it is given what it waits for.
const NAPS_MAX: u32 = 8;
/// The time within which no other worker is called. Whoever runs goes on meanwhile: a call for each transaction would take
/// longer than the transactions. A model has no time.
const CALL_EVERY_NS: u64 = if cfg!(loom) { 0 } else { 100_000 };

/// The number of checks of a hint before a waiter that spins checks its condition as well.
const HINTS: u32 = 16;
/// As [`HINTS`], for a waiter that is given what it waits for. The condition's word is the one that all others change: waiters
/// that look at it delay them, and may take what is about to be given to an older waiter, and have to pass it on.
const HINTS_ONLY: u32 = u32::MAX;

/// How often a waiter checks its condition before it parks: first between pauses, then between yields of the processor.
///
/// Where each worker has a processor, the awaited thread is most likely running, and will be done long before a parked
/// thread would be awake again. But other programs may use the processors, too. Then the awaited thread may need this
/// processor, and spinning would keep it from running. A yield lets it run, and costs little where nobody else is waiting
/// for the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpinPolicy {
    spinning: u32,
    yielding: u32,
    /// As `yielding`, where there are more workers than processors. Then the awaited thread may be waiting for this one's.
    crowded_yielding: u32,
    /// True if a waiter parks at once then.
    naps: bool,
}

impl SpinPolicy {
    /// For a lock that is taken soon by somebody who runs: `serial`.
    pub(crate) const SPINNING: Self = Self { spinning: 128, yielding: 0, crowded_yielding: 0, naps: false };
    /// For locks that go by age: `wait-die`.
    pub(crate) const AGED: Self = Self { yielding: 256, ..Self::SPINNING };
    /// For locks that those take who run while others nap: `plor`, `wound-wait`.
    pub(crate) const BARGING: Self = Self { naps: true, ..Self::AGED };
    /// For fair locks: all waiters behind the next holder wait until it gets a processor.
    pub(crate) const FAIR: Self = Self { spinning: 32, yielding: 512, crowded_yielding: 64, naps: false };
    /// For waiters that run others' operations meanwhile: new ones may come soon.
    const WORKING: Self = Self { spinning: 2048, yielding: 8192, crowded_yielding: 0, naps: false };
    /// Number of checks between pauses where there are more workers than processors.
    const CROWDED_SPINNING: u32 = 8;

    /// Returns the numbers of checks between pauses and between yields.
    fn checks(self, is_crowded: bool) -> (u32, u32) {
        if is_crowded {
            (Self::CROWDED_SPINNING, self.crowded_yielding)
        } else {
            (self.spinning, self.yielding)
        }
    }
}

impl WorkerStates {
    pub(crate) fn new(spin: SpinPolicy) -> Self {
        Self {
            states: PerWorker::new(WORKERS_MAX),
            crowd: Crowd::default(),
            last_call_ns: CachePadded::default(),
            spin,
        }
    }

    /// Returns the state of a worker.
    #[inline]
    pub(crate) fn of(&self, worker: u32) -> &WorkerState {
        self.states.of(worker)
    }

    /// Begins a worker's next attempt after `last`.
    #[inline]
    pub(crate) fn enter_next(&self, last: AttemptStamp, worker: u32, began_ns: u64) -> AttemptStamp {
        self.enter(AttemptStamp { id: last.id.next(worker), began_ns })
    }

    /// Makes an attempt its worker's current one.
    #[inline]
    fn enter(&self, stamp: AttemptStamp) -> AttemptStamp {
        let context = self.of(stamp.worker());
        // In this order; pairs with `look`, which loads the identity again after it has loaded the time.
        fence(Ordering::Release);
        context.began_ns.store(stamp.began_ns, Ordering::Relaxed);
        // Release: a thread that finds the attempt in a lock, which it enters later, sees this.
        context.word.store(stamp.id.0 | RUNNING, Ordering::Release);
        stamp
    }

    /// Passes the commit point: from here on the attempt cannot be wounded. False if it was wounded before.
    #[inline]
    pub(crate) fn commit(&self, stamp: AttemptStamp) -> bool {
        let word = &self.of(stamp.worker()).word;
        let (from, to) = (stamp.id.0 | RUNNING, stamp.id.0 | COMMITTED);
        // INVARIANT 26: An attempt is wounded or commits, never both.
        // Sequentially consistent, like `wound`: one of the two succeeds.
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends an attempt that has released what it held.
    #[inline]
    pub(crate) fn end(&self, stamp: AttemptStamp) {
        // Release: pairs with the loads in `running` and its siblings, so that a thread that sees the end sees the
        // releases.
        self.of(stamp.worker()).word.store(stamp.id.0 | ENDED, Ordering::Release);
    }

    /// Wakes the threads that wait at the worker's event. If they may lack a processor, lets them run first.
    #[inline]
    pub(crate) fn tell(&self, stamp: AttemptStamp) {
        if self.tell_at(stamp.worker()) {
            self.let_others_run();
        }
    }

    /// Wakes the threads that wait at a worker's event. True if any was parked there.
    pub(crate) fn tell_at(&self, worker: u32) -> bool {
        self.of(worker).event.notify_all()
    }

    /// Lets woken threads run first if there are more workers than processors.
    pub(crate) fn let_others_run(&self) {
        if self.is_crowded() {
            thread::yield_now();
        }
    }

    /// True if the attempt, which is the caller's own, was wounded.
    ///
    /// Called after a read of a value that the attempt has a right to, it tells whether the value may be torn: a
    /// thread that takes the right away wounds first, and stores afterwards.
    #[inline(always)]
    pub(crate) fn is_wounded(&self, stamp: AttemptStamp) -> bool {
        // Pairs with the release fence before an installation (`fence_before_install`): a reader that has seen a
        // part of the stored value sees the wound, too.
        fence(Ordering::Acquire);
        self.of(stamp.worker()).word.load(Ordering::Relaxed) & STATE == WOUNDED
    }

    /// Orders wounds before the installation; pairs with the fence in [`is_wounded`](Self::is_wounded).
    #[inline(always)]
    pub(crate) fn fence_before_install() {
        fence(Ordering::Release);
    }

    /// Loads a worker's word and the age of its transaction.
    #[inline]
    fn look(&self, worker: u32) -> (u64, u64) {
        let context = self.of(worker);
        loop {
            // Sequentially consistent: the caller has found the worker in a lock before.
            let word = context.word.load(Ordering::SeqCst);
            let began_ns = context.began_ns.load(Ordering::Relaxed);
            // Pairs with the fence in `enter`: a thread that has seen the next transaction's time sees that this one
            // ended.
            fence(Ordering::Acquire);
            let again = context.word.load(Ordering::Relaxed);
            if again & !STATE == word & !STATE {
                return (again, began_ns);
            }
        }
    }

    /// Returns the attempt that a worker makes, if it may still commit or be wounded.
    #[inline]
    pub(crate) fn running(&self, worker: u32) -> Option<AttemptStamp> {
        let (word, began_ns) = self.look(worker);
        (word & STATE == RUNNING).then_some(AttemptStamp { id: AttemptId::in_word(word), began_ns })
    }

    /// Returns the attempt that a worker makes, in any phase.
    #[inline]
    pub(crate) fn stamp(&self, worker: u32) -> AttemptStamp {
        let (word, began_ns) = self.look(worker);
        AttemptStamp { id: AttemptId::in_word(word), began_ns }
    }

    /// Returns an attempt's stamp, or `None` if the attempt will install nothing any more.
    #[inline]
    pub(crate) fn stamp_of(&self, id: AttemptId) -> Option<AttemptStamp> {
        let (word, began_ns) = self.look(id.worker());
        let alive = AttemptId::in_word(word) == id && matches!(word & STATE, RUNNING | COMMITTED);
        alive.then_some(AttemptStamp { id, began_ns })
    }

    /// True if an attempt may still commit or be wounded.
    #[inline]
    pub(crate) fn is_running(&self, id: AttemptId) -> bool {
        self.of(id.worker()).word.load(Ordering::SeqCst) == id.0 | RUNNING
    }

    /// True if an attempt will install nothing any more.
    #[inline]
    pub(crate) fn is_over(&self, id: AttemptId) -> bool {
        let word = self.of(id.worker()).word.load(Ordering::SeqCst);
        AttemptId::in_word(word) != id || matches!(word & STATE, WOUNDED | ENDED)
    }

    /// Stops an attempt if it can still be stopped.
    pub(crate) fn wound(&self, victim: AttemptId, over: usize) -> Wound {
        let context = self.of(victim.worker());
        if self.is_running(victim) {
            // Only a conflict report reads it.
            context.wounded_over.store(over, Ordering::Relaxed);
        }
        let (from, to) = (victim.0 | RUNNING, victim.0 | WOUNDED);
        match context.word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                // A thread that waits for the victim may take over its locks.
                context.event.notify_all();
                // Sequentially consistent: the victim stores where it waits before it loads its own state.
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

    /// Waits at a worker's event until `over` holds or the limit has passed. `over` must become true before that
    /// worker's event is told. `hint` is a cheap check that `over` may hold.
    pub(crate) fn wait_at_most(
        &self,
        limit: WaitLimit,
        at: u32,
        stamp: AttemptStamp,
        hint: impl FnMut() -> bool,
        over: impl FnMut() -> bool,
    ) -> Waited {
        self.wait_hinted(limit, at, stamp, HINTS, hint, over)
    }

    /// As [`wait_at_most`](Self::wait_at_most). While it spins, it checks `over` only after each `hints` checks of `hint`, and
    /// whenever `hint` holds.
    fn wait_hinted(
        &self,
        limit: WaitLimit,
        at: u32,
        stamp: AttemptStamp,
        hints: u32,
        mut hint: impl FnMut() -> bool,
        mut over: impl FnMut() -> bool,
    ) -> Waited {
        let _waiting = waiting("another transaction", 0);
        let mine = self.of(stamp.worker());
        mine.waits_at.store(at, Ordering::SeqCst);
        let wounded = || mine.word.load(Ordering::SeqCst) & STATE == WOUNDED;
        let mut condition = || over() || wounded();
        let met = match limit.is_over() {
            // A wait of no time: nobody else makes progress, so one check is enough.
            true => condition(),
            _ => {
                let until = limit.time().map(|time| clock::now() + time);
                self.spin_hinted(hints, until, || hint() || wounded(), &mut condition) || {
                    let limit = until
                        .map_or(limit, |until| limit.at_most(until.saturating_duration_since(clock::now())));
                    limit.wait_at(&self.of(at).event, !(self.spin.naps && self.is_crowded()), condition)
                }
            }
        };
        match (wounded(), met) {
            (true, _) => Waited::Wounded,
            (false, true) => Waited::Over,
            (false, false) => Waited::TimedOut,
        }
    }

    /// Runs `work` again and again while a wait is not over, until there was nothing to do for long. `work` returns
    /// true if it has done anything, and `None` if the loop is to end.
    pub(crate) fn look_while(
        &self,
        stamp: AttemptStamp,
        over: impl Fn() -> bool,
        mut work: impl FnMut() -> Option<bool>,
    ) {
        let (spinning, yielding) = SpinPolicy::WORKING.checks(self.is_crowded());
        let mut idle = 0;
        while idle < spinning + yielding && !over() && !self.is_wounded(stamp) {
            match work() {
                None => return,
                Some(true) => idle = 0,
                Some(false) if idle < spinning => {
                    idle += 1;
                    spin_until(1, || false);
                }
                Some(false) => {
                    idle += 1;
                    thread::yield_now();
                }
            }
        }
    }

    /// Spins within bounds until a wait is over. Most turns check only the hint, which disturbs nobody.
    pub(crate) fn spin_until(&self, hint: impl FnMut() -> bool, condition: impl FnMut() -> bool) -> bool {
        self.spin_hinted(HINTS, None, hint, condition)
    }

    /// As [`spin_until`](Self::spin_until), with a check of the condition after each `hints` checks of the hint. There are no more
    /// yields after `until`: each may take a time slice.
    fn spin_hinted(
        &self,
        hints: u32,
        until: Option<Instant>,
        mut hint: impl FnMut() -> bool,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        let mut checks = 0;
        let (spinning, yielding) = if cfg!(loom) { (0, 0) } else { self.spin.checks(self.is_crowded()) };
        let mut met = false;
        let mut check = || {
            checks += 1;
            // A condition that has held is not asked again: it may hold once.
            met = met || (hint() || checks % hints == 0) && condition();
            met
        };
        if spin_until(spinning, &mut check) {
            return true;
        }
        let is_late = || until.is_some_and(|until| clock::now() >= until);
        yielding > 0 && yield_until(yielding, || check() || is_late()) && check()
    }

    /// True if there are more workers at work than can run at once.
    fn is_crowded(&self) -> bool {
        self.crowd.is_large(|worker| self.of(worker).word.load(Ordering::Relaxed))
    }

    /// Grants a lock to the worker and wakes it.
    pub(crate) fn grant(&self, worker: u32, segment: usize) {
        let context = self.of(worker);
        // Release: pairs with the acquire in `is_granted`, which takes over the lock and the data under it.
        context.granted.store(segment, Ordering::Release);
        context.event.notify_all();
    }

    /// True if the lock of a segment was granted to the worker.
    pub(crate) fn is_granted(&self, worker: u32, segment: usize) -> bool {
        self.of(worker).granted.load(Ordering::Acquire) == segment
    }

    /// True if a worker that waits for its turn has a nap: it may take long to wake if it is called, but looks by itself
    /// soon. So others may go before it, even those that must not have it wait for them: it looks after them, too. (True
    /// besides if it is awake, and others are parked at its event who wait for its transaction.)
    ///
    /// A worker that has had [`NAPS_MAX`] naps is not asleep: it gets its turn before others.
    pub(crate) fn is_asleep(&self, worker: u32) -> bool {
        let context = self.of(worker);
        // Sequentially consistent: see `wait_for_turn`.
        context.naps.load(Ordering::SeqCst) != 0 && context.event.has_parked()
    }

    /// Waits at the worker's own event for something that is granted to it, or is left free: then the worker is called,
    /// or wakes up from a nap, and has to look itself. `naps` counts the naps; a new wait begins with 0.
    ///
    /// A waiter that is awake checks only `hint`, which should hold as soon as it is given what it waits for. It checks `over`
    /// before it parks, and whenever it wakes.
    pub(crate) fn wait_for_turn(
        &self,
        limit: WaitLimit,
        stamp: AttemptStamp,
        naps: &mut u32,
        mut hint: impl FnMut() -> bool,
        mut over: impl FnMut() -> bool,
    ) -> Waited {
        let worker = stamp.worker();
        let is_nap = self.spin.naps && *naps < NAPS_MAX && limit.time().is_none_or(|time| time > NAP);
        // Sequentially consistent: either who frees what is waited for sees that the worker does not nap, and gives it to
        // the worker; or the worker's look before it parks comes after that.
        self.of(worker).naps.store(is_nap.into(), Ordering::SeqCst);
        let limit = if is_nap { limit.at_most(NAP) } else { limit };
        // (A waiter that is awake may be taken for one that is asleep, and called.)
        let hint = || hint() || self.is_called(worker);
        let over = || over() || self.take_call(worker);
        match self.wait_hinted(limit, worker, stamp, HINTS_ONLY, hint, over) {
            Waited::TimedOut if is_nap && !limit.is_cancelled() => {
                *naps += 1;
                Waited::Over
            }
            waited => waited,
        }
    }

    /// Calls a worker that is asleep, because what it waits for is free now. It is left free for others meanwhile: who
    /// runs already need not wait until it is awake. The worker takes it then, or waits again. It is not called if
    /// somebody was called just now, because it naps.
    ///
    /// The event is told once for each time that the worker takes a call. A caller that finds an earlier call has freed
    /// what it frees before the worker takes that call, so the worker sees it then.
    pub(crate) fn call(&self, worker: u32) {
        let context = self.of(worker);
        let now_ns = clock::nanoseconds();
        // Relaxed: it only decides how often.
        if now_ns.saturating_sub(self.last_call_ns.load(Ordering::Relaxed)) < CALL_EVERY_NS {
            return;
        }
        self.last_call_ns.store(now_ns, Ordering::Relaxed);
        // Acquire and release, sequentially consistent: pairs with the exchange in `take_call`.
        if context.called.swap(1, Ordering::SeqCst) == 0 {
            context.event.notify_all();
        }
    }

    /// True if the worker has a call that it has not taken.
    fn is_called(&self, worker: u32) -> bool {
        // Relaxed: who sets it afterwards tells the event, where it is looked for again.
        self.of(worker).called.load(Ordering::Relaxed) != 0
    }

    /// True if the worker, which is the caller, was called since the last time.
    fn take_call(&self, worker: u32) -> bool {
        self.is_called(worker) && self.of(worker).called.swap(0, Ordering::SeqCst) != 0
    }

    /// Forgets earlier grants and calls. Only the worker itself calls it, while it waits for no lock.
    pub(crate) fn clear_grant(&self, worker: u32) {
        self.take_call(worker);
        self.of(worker).granted.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn stamp(worker: u32, number: u64, began_ns: u64) -> AttemptStamp {
        let before = AttemptId((number - 1) << (WORKER_BITS + STATE_BITS));
        AttemptStamp { id: before.next(worker), began_ns }
    }

    #[test]
    fn an_earlier_begin_is_older_and_ties_are_broken_by_the_worker() {
        let [first, second, later] = [stamp(0, 9, 7), stamp(1, 3, 7), stamp(0, 1, 8)];
        assert!(first.is_older_than(second) && second.is_older_than(later) && first.is_older_than(later));
        assert!(!first.is_older_than(first) && !later.is_older_than(first));
        assert_eq!((first.worker(), second.worker(), later.worker()), (0, 1, 0));
    }

    #[test]
    fn an_attempt_is_wounded_or_commits_but_never_both() {
        let states = WorkerStates::new(SpinPolicy::BARGING);
        let [first, second, later] = [stamp(0, 1, 7), stamp(1, 1, 7), stamp(0, 2, 7)];
        states.enter(first);
        assert_eq!(states.running(0), Some(first));
        assert_eq!(states.wound(first.id, 1), Wound::Dead);
        assert!(states.is_wounded(first) && states.is_over(first.id) && !states.commit(first));
        assert_eq!((states.running(0), states.stamp_of(first.id), states.stamp(0)), (None, None, first));
        states.enter(second);
        assert!(states.commit(second));
        assert_eq!(states.wound(second.id, 1), Wound::TooLate);
        assert!(!states.is_over(second.id));
        assert_eq!(states.stamp_of(second.id), Some(second));
        states.end(second);
        assert_eq!(states.wound(second.id, 1), Wound::Dead);
        // A wound meant for the previous attempt does not hit the next one, even of the same transaction.
        states.enter(later);
        assert_eq!(states.wound(first.id, 1), Wound::Dead);
        assert!(states.is_running(later.id) && states.is_over(first.id));
    }
}
