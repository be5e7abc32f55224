//! Tests of the driver on a toy workload: every transaction increments one counter.

use super::*;
use crate::observer::Unobserved;
use crate::workload::{Check, Ran};
use hotrow::protocols::{Visitor, with_protocol};
use hotrow::sync::atomic::AtomicU64;
use hotrow::{Abort, Engine, Error, RetryPolicy, TBox};

/// Behaviour of the toy's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// The hundredth transaction of each client fails.
    Failing,
    /// The hundredth transaction of worker 1 panics.
    Panicking,
}

struct Toy<P: Protocol> {
    counter: TBox<u64, P>,
    mood: Mood,
}

struct Client {
    worker: usize,
    ran: u64,
    committed: u64,
    prepared: u64,
}

impl<P: Protocol> Workload<P> for Toy<P> {
    type Client = Client;

    fn kinds(&self) -> &'static [&'static str] {
        &["increment", "rolled_back"]
    }

    fn client(&self, worker: usize, _workers: usize, _seed: u64) -> Client {
        Client { worker, ran: 0, committed: 0, prepared: 0 }
    }

    fn prepare(&self, client: &mut Client) {
        client.prepared += 1;
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut Client) -> Ran {
        client.ran += 1;
        assert_eq!(client.ran, client.prepared);
        if client.ran == 100 {
            match self.mood {
                Mood::Well => {}
                Mood::Failing => return Ran { kind: 1, end: End::Failed("out of luck".into()) },
                Mood::Panicking => assert_ne!(client.worker, 1, "no more of this"),
            }
        }
        let kind = usize::from(client.ran.is_multiple_of(4));
        let done = worker.transact(|tx| {
            self.counter.update(tx, |counter| *counter += 1)?;
            if kind == 1 { Err(Abort::rollback()) } else { Ok(()) }
        });
        let end = match done {
            Ok(()) => {
                client.committed += 1;
                End::Committed
            }
            Err(Error::Rollback(_)) => End::RolledBack,
            Err(error) => End::Failed(error.to_string()),
        };
        Ran { kind, end }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<Client>) -> Vec<Check> {
        let counted: u64 = clients.iter().map(|client| client.committed).sum();
        let counter = worker.transact(|tx| self.counter.get(tx)).unwrap();
        let found = if counter == counted { Ok(()) } else { Err(format!("{counter} instead of {counted}")) };
        vec![Check::new("every commit counts", found)]
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        8
    }
}

#[derive(Clone, Copy)]
struct Run<'a> {
    threads: usize,
    measured: Duration,
    mood: Mood,
    observer: &'a dyn Observer,
}

const SETTINGS: Settings =
    Settings { threads: 1, warmup: Duration::from_millis(20), measured: Duration::from_millis(60), seed: 1 };

impl Visitor for Run<'_> {
    type Output = Result<(Measurement<()>, Vec<Check>)>;

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        let engine = Engine::<P>::named(name, RetryPolicy::default()).unwrap();
        let toy = Toy { counter: TBox::new(&engine, 0u64), mood: self.mood };
        let settings = Settings { threads: self.threads, measured: self.measured, ..SETTINGS };
        let (measurement, mut worker) =
            measure(&Database::on(&engine), &toy, &settings, LogMode::None, self.observer)?;
        let Measurement { elapsed, counts, clients, working_set } = measurement;
        assert_eq!(clients.len(), self.threads);
        let checks = toy.checks(&mut worker, clients);
        Ok((Measurement { elapsed, counts, clients: Vec::new(), working_set }, checks))
    }
}

type Result<T> = std::result::Result<T, BenchError>;

fn run_for(
    measured: Duration,
    protocol: &str,
    threads: usize,
    mood: Mood,
) -> Result<(Measurement<()>, Vec<Check>)> {
    with_protocol(protocol, Run { threads, measured, mood, observer: &Unobserved }).unwrap()
}

fn run(protocol: &str, threads: usize, mood: Mood) -> Result<(Measurement<()>, Vec<Check>)> {
    run_for(SETTINGS.measured, protocol, threads, mood)
}

/// Repeats a run, each time for twice as long, until it was long enough for what the test is about. On a busy machine a
/// worker may get no turn in a short one.
fn long_enough<R>(mut run: impl FnMut(Duration) -> R, is_enough: impl Fn(&R) -> bool) -> R {
    let mut measured = SETTINGS.measured;
    loop {
        let ran = run(measured);
        if is_enough(&ran) || measured > Duration::from_secs(30) {
            return ran;
        }
        measured *= 2;
    }
}

#[test]
fn a_run_counts_what_ended_while_measured() {
    let run = |measured| run_for(measured, "occ", 2, Mood::Well).unwrap();
    let (measurement, checks) = long_enough(run, |(measurement, _)| {
        measurement.counts.kinds[0].commits > 0 && measurement.counts.kinds[1].rollbacks > 0
    });
    assert!(measurement.elapsed >= SETTINGS.measured);
    assert_eq!(checks, [Check::new("every commit counts", Ok(()))]);
    let [increments, rolled_back] = &measurement.counts.kinds[..] else { panic!("two kinds") };
    assert!(increments.commits > 0 && increments.rollbacks == 0);
    assert!(rolled_back.rollbacks > 0 && rolled_back.commits == 0);
    assert!(increments.latencies.summary().unwrap().max > 0.0);
    assert_eq!(rolled_back.latencies.summary(), None, "the latency is that of commits");
    let reasons: u64 = measurement.counts.reasons.iter().sum();
    assert_eq!(reasons, increments.aborts + rolled_back.aborts, "every abort has one reason");
    assert!(measurement.counts.attempts_max > u64::from(reasons > 0));
}

#[test]
fn a_transaction_that_fails_stops_the_run() {
    let error = long_enough(|measured| run_for(measured, "occ", 2, Mood::Failing), Result::is_err);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("a rolled_back transaction failed on worker "), "{error}");
    assert!(error.ends_with(": out of luck"), "{error}");
}

#[test]
fn a_panic_of_one_worker_ends_the_run_with_one_error() {
    let ran = long_enough(|measured| run_for(measured, "occ", 2, Mood::Panicking), Result::is_err);
    match ran.unwrap_err() {
        BenchError::Panicked { worker: 1, message } => {
            assert!(message.contains("no more of this"), "{message}")
        }
        other => panic!("{other}"),
    }
}

#[test]
fn more_threads_than_the_protocol_admits_are_refused() {
    let error = run("none", 2, Mood::Well).unwrap_err();
    assert!(error.is_bad_input(), "{error}");
    assert!(matches!(run("occ", 0, Mood::Well), Err(BenchError::NoThreads)));
    let run = |measured| run_for(measured, "none", 1, Mood::Well).unwrap();
    let (measurement, _) = long_enough(run, |(measurement, _)| measurement.counts.kinds[0].commits > 0);
    assert!(measurement.counts.kinds[0].commits > 0);
}

#[test]
fn the_observer_hears_of_progress() {
    struct Ears {
        commits: AtomicU64,
    }
    impl Observer for Ears {
        fn loading(&self, _done: u64, _total: u64) {}
        fn running(&self, elapsed: Duration, total: Duration, commits: u64) {
            assert!(elapsed <= total && total >= SETTINGS.warmup + SETTINGS.measured);
            self.commits.fetch_max(commits, Ordering::Relaxed);
        }
    }
    let ears = Ears { commits: AtomicU64::new(0) };
    let run = |measured| {
        let run = Run { threads: 1, measured, mood: Mood::Well, observer: &ears };
        with_protocol("occ", run).unwrap().unwrap();
    };
    long_enough(run, |()| ears.commits.load(Ordering::Relaxed) > 0);
    assert!(ears.commits.into_inner() > 0);
}

#[test]
fn an_observer_may_end_the_run() {
    struct Alarm;
    impl Observer for Alarm {
        fn loading(&self, _done: u64, _total: u64) {}
        fn running(&self, _elapsed: Duration, _total: Duration, _commits: u64) {}
        fn must_end(&self) -> Option<String> {
            Some(String::from("enough"))
        }
    }
    let run = Run { threads: 2, measured: SETTINGS.measured, mood: Mood::Well, observer: &Alarm };
    match with_protocol("occ", run).unwrap() {
        Err(BenchError::Ended { reason, .. }) => assert_eq!(reason, "enough"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the run went on"),
    }
}
