//! The driver: runs a workload on several threads for a time and counts.
//!
//! # Phases
//!
//! A shared word says which phase it is: *waiting* until every thread is ready, *warm-up*, *measured*,
//! *over*. The driver advances it, and clients look at it before each transaction. A transaction counts if it
//! begins while the phase is *measured*: of the two that straddle a border, one counts and one does not, so
//! that neither end of the time is favoured. It counts with all of its latency, so long ones are not cut off.
//!
//! # Ends
//!
//! Every thread ends by itself. A transaction that fails, or a panic, makes the phase *over* at once; the
//! other threads finish the transaction they are in, and the run ends with one error.

use crate::error::BenchError;
use crate::latency::Latencies;
use crate::log::LogMode;
use crate::observer::{LiveView, Observer};
use crate::report::WorkingSet;
use crate::run::hottest_rows;
use crate::workload::{End, Workload};
use acknowledging::Acknowledging;
use hotrow::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use hotrow::sync::clock::{self, Instant};
use hotrow::sync::event::Event;
use hotrow::sync::{Mutex, lock, thread};
use hotrow::{Database, NamedCounts, Protocol, Reason, Statistics, Worker};
use std::any::Any;
use std::time::Duration;

/// How to run a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Threads, each with a worker and a client of its own.
    pub threads: usize,
    /// How long to run before measuring.
    pub warmup: Duration,
    /// How long to measure.
    pub measured: Duration,
    /// The seed of the clients' inputs.
    pub seed: u64,
}

/// Result of the measured time.
#[derive(Debug)]
pub struct Measurement<C> {
    /// How long was measured.
    pub elapsed: Duration,
    /// Sum of the counts of all threads.
    pub counts: Counts,
    /// The clients of all workers.
    pub clients: Vec<C>,
    /// The working sets of simulated hardware transactions, if there were any.
    pub working_set: Option<WorkingSet>,
}

/// Counts for one type of transaction.
#[derive(Debug, Clone, Default)]
pub struct KindCounts {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions rolled back as the workload wanted.
    pub rollbacks: u64,
    /// Attempts lost.
    pub aborts: u64,
    /// Latencies of those committed.
    pub latencies: Latencies,
}

/// Counts of one worker, or the sum over several.
#[derive(Debug)]
pub struct Counts {
    /// By type of transaction, in the order of [`Workload::kinds`].
    pub kinds: Vec<KindCounts>,
    /// Aborts by reason, in the order of [`Reason::ALL`].
    pub reasons: [u64; Reason::ALL.len()],
    /// The most attempts that a transaction took.
    pub attempts_max: u64,
    /// The counters that the protocol names.
    pub named: NamedCounts,
    /// A worker's statistics before its first measured transaction.
    before: Option<Statistics>,
}

impl Counts {
    fn new(kinds: usize) -> Self {
        Self {
            kinds: vec![KindCounts::default(); kinds],
            reasons: [0; Reason::ALL.len()],
            attempts_max: 0,
            named: NamedCounts::default(),
            before: None,
        }
    }

    /// Runs one transaction, and counts it if `is_measured`. True if it committed.
    ///
    /// # Errors
    ///
    /// The kind of a transaction that failed, and why.
    fn run_one<P: Protocol, W: Workload<P>>(
        &mut self,
        workload: &W,
        worker: &mut Worker<P>,
        client: &mut W::Client,
        is_measured: bool,
        acknowledging: Option<&mut Acknowledging<'_, P>>,
    ) -> Result<bool, (usize, String)> {
        if is_measured && self.before.is_none() {
            self.before = Some(worker.statistics());
        }
        workload.prepare(client);
        let aborts_before = workload.aborts(worker, client);
        let begin = clock::now();
        let ran = workload.run_one(worker, client);
        let end = clock::now();
        if let End::Failed(message) = ran.end {
            return Err((ran.kind, message));
        }
        if is_measured {
            let aborts = workload.aborts(worker, client) - aborts_before;
            self.attempts_max = self.attempts_max.max(aborts + 1);
            let kind = &mut self.kinds[ran.kind];
            kind.aborts += aborts;
            if ran.end == End::Committed && acknowledging.is_none() {
                kind.commits += 1;
                kind.latencies.record(end.nanoseconds_since(begin));
            } else if ran.end != End::Committed {
                kind.rollbacks += 1;
            }
        }
        if let Some(acknowledging) = acknowledging {
            let counted = (ran.end == End::Committed && is_measured).then_some((ran.kind, begin));
            let ended = acknowledging.after(worker.epoch(), counted, &mut self.kinds);
            ended.map_err(|failure| (ran.kind, failure.to_string()))?;
        }
        Ok(ran.end == End::Committed)
    }

    /// Counts what a worker's statistics say of all measured transactions, when the last has ended.
    fn count_measured<P: Protocol>(&mut self, worker: &Worker<P>) {
        let Some(before) = self.before.take() else { return };
        let after = worker.statistics();
        for (count, (before, after)) in self.reasons.iter_mut().zip(before.reasons.iter().zip(after.reasons))
        {
            *count += after - before;
        }
        self.named += after.counters - before.counters;
    }

    fn add(&mut self, other: &Counts) {
        for (mine, others) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.commits += others.commits;
            mine.rollbacks += others.rollbacks;
            mine.aborts += others.aborts;
            mine.latencies.add(&others.latencies);
        }
        for (mine, others) in self.reasons.iter_mut().zip(other.reasons) {
            *mine += others;
        }
        self.attempts_max = self.attempts_max.max(other.attempts_max);
        self.named += other.named;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
enum Phase {
    Waiting,
    Warmup,
    Measured,
    Over,
}

/// State shared by the driver and its threads.
struct Control {
    phase: AtomicU32,
    ready: AtomicUsize,
    /// Commits of each thread so far, for the observer.
    commits: Vec<Commits>,
    event: Event,
    failure: Mutex<Option<BenchError>>,
}

/// A thread's count, in cache lines of its own; and the latencies since the last view of a live run.
#[derive(Default)]
#[repr(align(128))]
struct Commits(AtomicU64, Option<Mutex<Latencies>>);

impl Control {
    fn new(threads: usize, is_live: bool) -> Self {
        let latencies = || is_live.then(Mutex::default);
        Self {
            phase: AtomicU32::new(Phase::Waiting as u32),
            ready: AtomicUsize::new(0),
            commits: (0..threads).map(|_| Commits(AtomicU64::new(0), latencies())).collect(),
            event: Event::new(),
            failure: Mutex::new(None),
        }
    }

    /// Goes on to a phase, unless a later one has come already.
    fn advance(&self, phase: Phase) {
        // Relaxed: the phase orders no other data; what threads return is ordered by joining them.
        self.phase.fetch_max(phase as u32, Ordering::Relaxed);
        self.event.notify_all();
    }

    #[inline]
    fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) == phase as u32
    }

    fn fail(&self, error: BenchError) {
        lock(&self.failure).get_or_insert(error);
        self.advance(Phase::Over);
    }

    /// The number of commits of all threads so far.
    fn commits(&self) -> u64 {
        // Relaxed: counts.
        self.commits.iter().map(|commits| commits.0.load(Ordering::Relaxed)).sum()
    }

    /// Counts a transaction of a thread that has committed.
    fn count(&self, thread: usize, commits: u64, begin: Instant) {
        let Commits(count, latencies) = &self.commits[thread];
        count.store(commits, Ordering::Relaxed);
        if let Some(latencies) = latencies {
            lock(latencies).record(clock::now().nanoseconds_since(begin));
        }
    }

    /// The latencies of all threads since the last call.
    fn take_latencies(&self) -> Latencies {
        let mut sum = Latencies::new();
        for Commits(_, latencies) in &self.commits {
            if let Some(latencies) = latencies {
                sum.add(&std::mem::take(&mut *lock(latencies)));
            }
        }
        sum
    }

    /// A thread is ready: waits for the others.
    fn wait_for_start(&self) {
        // Relaxed: a count.
        self.ready.fetch_add(1, Ordering::Relaxed);
        self.event.notify_all();
        self.event.wait_until(|| !self.is(Phase::Waiting));
    }

    fn wait_until_ready(&self, threads: usize) {
        self.event.wait_until(|| self.ready.load(Ordering::Relaxed) == threads || self.is(Phase::Over));
    }
}

/// Ends the run if the thread that holds it panics.
struct EndIfPanicking<'a>(&'a Control);

impl Drop for EndIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.advance(Phase::Over);
        }
    }
}

/// How often the observer hears of a run.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Runs `workload` on `settings.threads` threads, warms up, measures.
///
/// Returns one of the workers, to check the data with; the others are gone.
///
/// # Errors
///
/// [`BenchError::NoThreads`] without threads; [`BenchError::Misuse`] if the protocol admits fewer workers;
/// [`BenchError::Transaction`] and [`BenchError::Panicked`] for what ended the run early;
/// [`BenchError::Thread`] if the system has no thread.
pub fn measure<P: Protocol, W: Workload<P>>(
    database: &Database<P>,
    workload: &W,
    settings: &Settings,
    log: LogMode,
    observer: &dyn Observer,
) -> Result<(Measurement<W::Client>, Worker<P>), BenchError> {
    let threads = settings.threads;
    if threads == 0 {
        return Err(BenchError::NoThreads);
    }
    let mut crew = Vec::with_capacity(threads);
    for number in 0..threads {
        let client = workload.client(number, threads, settings.seed);
        crew.push(Mutex::new(Some((log.worker(database)?, client))));
    }
    let kinds = workload.kinds();
    let run = |control: &Control, number: usize| {
        let (worker, client) = lock(&crew[number]).take().expect("each thread has its own");
        let acknowledging = log.is_acknowledged_later().then(|| Acknowledging::new(database));
        let crew_member = (worker, client, acknowledging);
        let (worker, client, counts) = work(control, workload, kinds, number, crew_member);
        *lock(&crew[number]) = Some((worker, client));
        counts
    };
    let aborts_before = database.statistics().aborts;
    let observe = |control: &Control, elapsed, total| {
        let commits = control.commits();
        observer.running(elapsed, total, commits);
        if observer.is_live() {
            let aborts = database.statistics().aborts - aborts_before;
            let (latency_us, hot_rows) = (control.take_latencies().summary(), hottest_rows(database));
            observer.live(LiveView { elapsed, total, commits, aborts, latency_us, hot_rows });
        }
        observer.must_end()
    };
    let (elapsed, counts) = run_threads(settings, kinds.len(), &run, observer.is_live(), &observe)?;
    let mut clients = Vec::with_capacity(threads);
    let mut first = None;
    for member in crew {
        let (worker, client) = lock(&member).take().expect("without an error, every thread gave both back");
        clients.push(client);
        first.get_or_insert(worker);
    }
    let worker = first.expect("there is at least one thread");
    Ok((Measurement { elapsed, counts, clients, working_set: None }, worker))
}

/// Starts the threads, each with `run` and its number, and advances the phases. Returns how long was measured, and the
/// sum of the threads' counts.
///
/// It knows neither the protocol nor the workload, so it is compiled once.
fn run_threads(
    settings: &Settings,
    kinds: usize,
    run: &(dyn Fn(&Control, usize) -> Counts + Sync),
    is_live: bool,
    observe: &Observe<'_>,
) -> Result<(Duration, Counts), BenchError> {
    let control = Control::new(settings.threads, is_live);
    let (elapsed, ended) = thread::scope(|scope| {
        let mut handles = Vec::with_capacity(settings.threads);
        for number in 0..settings.threads {
            let control = &control;
            let run = move || run(control, number);
            match thread::Builder::new().name(format!("worker {number}")).spawn_scoped(scope, run) {
                Ok(handle) => handles.push(handle),
                Err(reason) => {
                    control.fail(BenchError::Thread { worker: number, reason });
                    break;
                }
            }
        }
        control.wait_until_ready(settings.threads);
        let elapsed = conduct(&control, settings, observe);
        let ended: Vec<_> = handles.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (elapsed, ended)
    });

    let mut sum = Counts::new(kinds);
    for (number, ended) in ended.into_iter().enumerate() {
        match ended {
            Ok(counts) => sum.add(&counts),
            Err(panic) => {
                let message = panic_message(&*panic);
                lock(&control.failure).get_or_insert(BenchError::Panicked { worker: number, message });
            }
        }
    }
    if let Some(error) = lock(&control.failure).take() {
        return Err(error);
    }
    Ok((elapsed, sum))
}

/// Shows a run of which so much time of the whole has passed. A reason if it must end.
type Observe<'a> = dyn Fn(&Control, Duration, Duration) -> Option<String> + 'a;

/// Advances the phases in time. Returns how long was measured.
fn conduct(control: &Control, settings: &Settings, observe: &Observe<'_>) -> Duration {
    let begin = clock::now();
    let total = settings.warmup.saturating_add(settings.measured);
    let pass = |from: Instant, duration: Duration| {
        loop {
            let left = duration.saturating_sub(from.elapsed());
            if left.is_zero() || control.is(Phase::Over) {
                return;
            }
            control.event.wait_timeout(left.min(REPORT_EVERY), || control.is(Phase::Over));
            if let Some(reason) = observe(control, begin.elapsed().min(total), total) {
                control.fail(BenchError::Ended { after: begin.elapsed(), reason });
            }
        }
    };
    control.advance(Phase::Warmup);
    pass(begin, settings.warmup);
    control.advance(Phase::Measured);
    let measured = clock::now();
    pass(measured, settings.measured);
    control.advance(Phase::Over);
    measured.elapsed()
}

/// Runs in each thread: one transaction after the other until the run is over.
fn work<P: Protocol, W: Workload<P>>(
    control: &Control,
    workload: &W,
    kinds: &'static [&'static str],
    number: usize,
    (mut worker, mut client, mut acknowledging): (Worker<P>, W::Client, Option<Acknowledging<'_, P>>),
) -> (Worker<P>, W::Client, Counts) {
    let _end = EndIfPanicking(control);
    let mut counts = Counts::new(kinds.len());
    let mut commits = 0;
    let is_live = control.commits[number].1.is_some();
    control.wait_for_start();
    let started = clock::now();
    while !control.is(Phase::Over) {
        let is_measured = control.is(Phase::Measured);
        let begin = if is_live { clock::now() } else { started };
        match counts.run_one(workload, &mut worker, &mut client, is_measured, acknowledging.as_mut()) {
            Ok(committed) => {
                commits += u64::from(committed);
                control.count(number, commits, begin);
            }
            Err((kind, message)) => {
                control.fail(BenchError::Transaction { kind: kinds[kind], worker: number, message });
                break;
            }
        }
    }
    if let Some(acknowledging) = &mut acknowledging
        && let Err(failure) = acknowledging.finish(&mut counts.kinds)
    {
        control.fail(BenchError::NotDurable(failure));
    }
    counts.count_measured(&worker);
    (worker, client, counts)
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(message) = panic.downcast_ref::<&str>() {
        (*message).to_owned()
    } else if let Some(message) = panic.downcast_ref::<String>() {
        message.clone()
    } else {
        "(no message)".to_owned()
    }
}

mod acknowledging;
#[cfg(feature = "sim")]
pub(crate) mod simulated;
#[cfg(test)]
mod tests;
