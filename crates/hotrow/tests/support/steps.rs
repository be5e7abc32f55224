//! Interleavings stepped by hand: several transactions held open on one thread, and one step of one of them
//! after the other.

use hotrow::history::{History, Recording};
use hotrow::{Abort, Engine, Error, OpenTransaction, Protocol, RetryPolicy, Transaction, Worker};
use std::time::Duration;

/// More than the history of any interleaving here takes.
const HISTORY_BYTES_MAX: usize = 1 << 22;

/// The policy under which transactions are stepped. All that keeps a step from waiting for ever for another
/// transaction of the same thread is here: a protocol that makes transactions wait gives up at
/// once, since nobody else can go on meanwhile.
fn stepped() -> RetryPolicy {
    RetryPolicy { deadline: Some(Duration::ZERO), ..RetryPolicy::default() }
}

/// Checks every interleaving's history, whatever the test says of its outcome.
pub(crate) fn judge(history: &History) {
    assert!(history.complete, "the bound on the history was reached");
    let report = hotrow_check::check(history).unwrap();
    assert!(report.is(report.claimed()), "{report}");
}

/// An engine, its recorder running, for one interleaving.
pub(crate) struct Interleaving<P: Protocol> {
    engine: Engine<P>,
}

impl<P: Protocol> Interleaving<P> {
    pub(crate) fn new() -> Self {
        Self { engine: super::engine_with(stepped()) }
    }

    /// Hands out the engine and transactions to be stepped (`T1`, `T2`, ...), and judges the history at the end.
    /// A transaction that has not ended by then is rolled back.
    pub(crate) fn run<const N: usize, R>(self, work: impl FnOnce(&Engine<P>, [Stepped<'_, P>; N]) -> R) -> R {
        let mut series = Series::of(self.engine);
        let result = series.run(work);
        series.judge();
        result
    }
}

/// Interleavings one after the other, each of `N` transactions, with one engine, whose recorder runs: making an engine takes
/// longer than a short interleaving.
pub(crate) struct Series<P: Protocol, const N: usize> {
    engine: Engine<P>,
    recording: Recording,
    workers: [Worker<P>; N],
}

impl<P: Protocol, const N: usize> Series<P, N> {
    pub(crate) fn new() -> Self {
        Self::of(super::engine_with(stepped()))
    }

    fn of(engine: Engine<P>) -> Self {
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        let workers = std::array::from_fn(|_| engine.worker().unwrap());
        Self { engine, recording, workers }
    }

    /// As [`Interleaving::run`], but for the history.
    pub(crate) fn run<R>(&mut self, work: impl FnOnce(&Engine<P>, [Stepped<'_, P>; N]) -> R) -> R {
        let mut number = 0;
        let transactions = self.workers.each_mut().map(|worker| {
            number += 1;
            Stepped { number, steps: 0, state: State::NotBegun(worker) }
        });
        work(&self.engine, transactions)
    }

    /// Judges the history of all.
    pub(crate) fn judge(self) {
        drop(self.workers);
        judge(&self.recording.finish());
    }
}

/// How a stepped transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SteppedEnd {
    Committed,
    RolledBack,
    /// The protocol gave up on it.
    Aborted,
}

#[allow(clippy::large_enum_variant, reason = "there are a few of them")]
enum State<'w, P: Protocol> {
    NotBegun(&'w mut Worker<P>),
    Open(OpenTransaction<'w, P>),
    Ended(SteppedEnd),
}

/// A transaction of an interleaving: one attempt, which begins with its first step.
///
/// When the protocol aborts it, its later steps and its end are skipped. What it wrote is undone at once, so that
/// it is in nobody's way.
pub(crate) struct Stepped<'w, P: Protocol> {
    number: usize,
    steps: u32,
    state: State<'w, P>,
}

impl<'w, P: Protocol> Stepped<'w, P> {
    /// Begins, without doing anything yet.
    pub(crate) fn begin(&mut self) {
        self.state = match std::mem::replace(&mut self.state, State::Ended(SteppedEnd::Aborted)) {
            State::NotBegun(worker) => State::Open(worker.begin()),
            state => state,
        };
    }

    /// Does one step. `None` if the protocol has aborted the transaction, in this step or before.
    pub(crate) fn step<R>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'w, P>) -> Result<R, Abort>,
    ) -> Option<R> {
        self.begin();
        self.steps += 1;
        let open = match &mut self.state {
            State::Open(open) => open,
            State::Ended(SteppedEnd::Aborted) => return None,
            _ => panic!("T{} has ended", self.number),
        };
        match work(open) {
            Ok(result) => Some(result),
            Err(_) => {
                self.end(OpenTransaction::roll_back, SteppedEnd::RolledBack);
                assert_eq!(self.outcome(), Some(SteppedEnd::Aborted), "a step does not roll back");
                None
            }
        }
    }

    /// Tries to commit. Whether it did.
    pub(crate) fn commit(&mut self) -> bool {
        self.begin();
        self.end(OpenTransaction::commit, SteppedEnd::Committed);
        self.committed()
    }

    /// Rolls back, if it has not been aborted.
    pub(crate) fn roll_back(&mut self) {
        self.begin();
        self.end(OpenTransaction::roll_back, SteppedEnd::RolledBack);
    }

    /// A whole transaction of one step, before this one begins; any number of them. `None` if it did not commit.
    pub(crate) fn ahead<R>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Option<R> {
        let State::NotBegun(worker) = &mut self.state else { panic!("T{} has begun", self.number) };
        let mut open = worker.begin();
        match work(&mut open) {
            Ok(result) => ended(open.commit()).then_some(result),
            Err(_) => {
                assert!(!ended(open.roll_back()), "a step does not roll back");
                None
            }
        }
    }

    fn end(&mut self, how: impl FnOnce(OpenTransaction<'w, P>) -> Result<(), Error>, outcome: SteppedEnd) {
        self.state = match std::mem::replace(&mut self.state, State::Ended(SteppedEnd::Aborted)) {
            State::Open(open) => State::Ended(if ended(how(open)) { outcome } else { SteppedEnd::Aborted }),
            State::Ended(SteppedEnd::Aborted) => State::Ended(SteppedEnd::Aborted),
            _ => panic!("T{} has ended", self.number),
        };
    }

    /// How it ended, if it has.
    pub(crate) fn outcome(&self) -> Option<SteppedEnd> {
        match self.state {
            State::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn committed(&self) -> bool {
        self.outcome() == Some(SteppedEnd::Committed)
    }
}

/// True if an attempt ended as it was meant to, false if it was aborted.
fn ended(result: Result<(), Error>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.is_retryable() => false,
        Err(error) => panic!("{error}"),
    }
}

impl<P: Protocol> Drop for Stepped<'_, P> {
    /// Says what became of it when a test fails.
    fn drop(&mut self) {
        if hotrow::sync::thread::panicking() {
            eprintln!("T{}: {:?} after {} steps", self.number, self.outcome(), self.steps);
        }
    }
}
