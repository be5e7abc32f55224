//! One run from its names to its report: loads, runs, checks.

use crate::definition::{WorkloadDefinition, WorkloadInfo, WorkloadOptions};
use crate::error::BenchError;
use crate::latency::Latencies;
use crate::log::{LogMode, LogSpec};
#[cfg(feature = "sim")]
use crate::measure::simulated::{self, VirtualSettings};
use crate::measure::{Counts, Measurement, Settings, measure};
use crate::observer::{Host, Observer};
use crate::options::OptionError;
use crate::report::{
    CounterReport, HotRow, KindReport, Machine, Memory, RunReport, WorkingSet, named_reasons,
};
use crate::think::delay_operations;
use crate::workload::{Check, Workload};
use hotrow::history::{History, Recording};
use hotrow::protocols::{Visitor, with_measured_protocol, with_protocol};
use hotrow::{Database, Engine, Occ, Protocol, Variants as _};
use std::time::Duration;

/// One run: what to run, under which protocol, how.
#[derive(Debug, Clone)]
pub struct RunSpec {
    /// The workload.
    pub workload: WorkloadOptions,
    /// The protocol's name, or that of a baseline of the workload.
    pub protocol: String,
    /// Where to run, how long, and with which seed.
    pub on: On,
    /// A delay before each operation of a procedure, as if operations came over a network (plor §6.2.2); zero for
    /// none. The thread sleeps for it, on Linux at least some 60 µs longer; in a simulation it is exact.
    pub think: Duration,
    /// The log of its commits.
    pub log: LogSpec,
    /// The distributed store that has the tables; `None` if they are in this process.
    pub store: Option<String>,
    /// How much memory a history of the run may take, in bytes; none if it is not to be recorded.
    pub record_bytes_max: Option<usize>,
    /// True if the hottest rows name the transactions on both sides of their conflicts.
    pub both_sides: bool,
}

/// Where a workload runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum On {
    /// On threads of this machine.
    Threads(Settings),
    /// On virtual cores.
    #[cfg(feature = "sim")]
    Cores(Box<VirtualSettings>),
}

impl On {
    fn workers(&self) -> usize {
        match self {
            On::Threads(settings) => settings.threads,
            #[cfg(feature = "sim")]
            On::Cores(settings) => settings.cores,
        }
    }

    /// Threads that load the data. One before a simulation: which of several was first would decide where the
    /// data lies, and with it which of them share a line.
    fn loaders(&self) -> usize {
        if self.is_virtual() { 1 } else { self.workers() }
    }

    fn seed(&self) -> u64 {
        match self {
            On::Threads(settings) => settings.seed,
            #[cfg(feature = "sim")]
            On::Cores(settings) => settings.seed,
        }
    }

    fn is_virtual(&self) -> bool {
        !matches!(self, On::Threads(_))
    }

    /// The machine that results are about.
    fn machine(&self, host: &dyn Host) -> Machine {
        match self {
            On::Threads(_) => host.machine(),
            #[cfg(feature = "sim")]
            On::Cores(settings) => {
                let VirtualSettings { machine, .. } = &**settings;
                Machine {
                    cores: machine.threads(),
                    memory_bytes: 0,
                    cpu: format!("{}: {}", machine.name, machine.description),
                    os: String::from("simulated"),
                }
            }
        }
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The report.
    pub report: RunReport,
    /// Reads and writes of each attempt after loading, if the run was recorded; warm-up included, checks not.
    pub history: Option<History>,
    /// Where the time went, if the run was on virtual cores and [profiled](VirtualSettings::profiles).
    #[cfg(feature = "sim")]
    pub profile: Option<hotrow_sim::profile::ProfileReport>,
}

/// Loads the workload's data into a new engine, runs it, checks the data.
///
/// # Errors
///
/// [`BenchError`]. Checks that do not pass are no errors: the report says so.
pub fn prepare_and_run(
    spec: &RunSpec,
    host: &dyn Host,
    observer: &dyn Observer,
) -> Result<RunOutcome, BenchError> {
    let info = spec.workload.info();
    if !spec.think.is_zero() && !info.runs_procedures {
        return Err(OptionError::NoProcedures { workload: info.name }.into());
    }
    if spec.log.mode != LogMode::None && !info.is_durable {
        return Err(OptionError::NothingDurable { workload: info.name }.into());
    }
    if spec.store.is_some() {
        check_in_store(spec)?;
    }
    spec.workload.run(spec, host, observer)
}

/// Checks, before anything is loaded, that a run in a distributed store has no option that only runs in this process have.
fn check_in_store(spec: &RunSpec) -> Result<(), OptionError> {
    let only = |option| Err(OptionError::OnlyHere { option });
    match spec {
        RunSpec { protocol, .. } if protocol != Occ::VARIANTS[0].name => only("protocol"),
        RunSpec { think, .. } if !think.is_zero() => only("think-us"),
        RunSpec { log, .. } if log.mode != LogMode::None => only("durability"),
        RunSpec { on, .. } if on.is_virtual() => only("cores"),
        _ => Ok(()),
    }
}

/// [`prepare_and_run`] for the type of the options that `spec` has.
pub(crate) fn run_defined<W: WorkloadDefinition>(
    options: &W,
    spec: &RunSpec,
    host: &dyn Host,
    observer: &dyn Observer,
) -> Result<RunOutcome, BenchError> {
    #[cfg(feature = "sim")]
    hotrow::sync::hashing::repeat(spec.on.seed());
    let run = Run { info: &W::INFO, spec, host, observer };
    if let Some(address) = &spec.store {
        let refused = || OptionError::NotInStores { workload: W::INFO.name }.into();
        return options.run_in_store(address, BaselineRun(run)).unwrap_or_else(|| Err(refused()));
    }
    match options.run_baseline(&spec.protocol, BaselineRun(run)) {
        Some(ran) => ran,
        None if W::MEASURES_LIMIT => with_measured_protocol(&spec.protocol, Runner { options, run })?,
        None => with_protocol(&spec.protocol, Runner { options, run })?,
    }
}

struct Runner<'a, W> {
    options: &'a W,
    run: Run<'a>,
}

impl<W: WorkloadDefinition> Visitor for Runner<'_, W> {
    type Output = Result<RunOutcome, BenchError>;

    fn visit<P: Protocol>(self, name: &str) -> Self::Output {
        let Run { spec, observer, .. } = self.run;
        let database: Database<P> = spec.log.open(name)?;
        let workload = self.options.load(&database, spec.on.loaders(), spec.on.seed(), observer)?;
        spec.log.loaded(&database)?;
        self.run.measure(&database, database.protocol(), workload)
    }
}

/// A run of a baseline, which [`WorkloadDefinition::run_baseline`] is to make.
pub struct BaselineRun<'a>(Run<'a>);

impl BaselineRun<'_> {
    /// How many threads may load the data.
    pub fn loaders(&self) -> usize {
        self.0.spec.on.loaders()
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.0.spec.on.seed()
    }

    /// The observer of the loading.
    pub fn observer(&self) -> &dyn Observer {
        self.0.observer
    }

    /// True if the [history](Workload::history) of the run is wanted.
    pub fn records(&self) -> bool {
        self.0.spec.record_bytes_max.is_some()
    }

    /// Runs the transactions of a workload whose data is in a distributed store, and checks the data.
    ///
    /// # Errors
    ///
    /// As [`prepare_and_run`].
    pub fn run_in_store<W: Workload<Occ>>(self, workload: W) -> Result<RunOutcome, BenchError> {
        self.0.measure(&Database::on(&Engine::new()), Occ::VARIANTS[0].name, workload)
    }

    /// Makes the data with `load`, runs the transactions, checks the data.
    ///
    /// The driver gives each client a worker here, too, of an engine that has nothing to do. So it measures a baseline
    /// as it measures a protocol.
    ///
    /// # Errors
    ///
    /// As [`prepare_and_run`]; [`OptionError::OnlyProtocols`] if the run is to have a delay or to be recorded.
    pub fn run<W: Workload<Occ>>(self, load: impl FnOnce() -> W) -> Result<RunOutcome, BenchError> {
        let Self(run) = self;
        let only =
            |option| Err(OptionError::OnlyProtocols { option, baseline: run.spec.protocol.clone() }.into());
        if !run.spec.think.is_zero() {
            return only("think-us");
        }
        if run.spec.record_bytes_max.is_some() {
            return only("record");
        }
        if run.spec.log.mode != LogMode::None {
            return only("durability");
        }
        run.observer.loading(0, 1);
        let workload = load();
        run.observer.loading(1, 1);
        run.measure(&Database::on(&Engine::new()), &run.spec.protocol, workload)
    }
}

/// A run of a workload, whatever its type and its protocol.
#[derive(Clone, Copy)]
struct Run<'a> {
    info: &'static WorkloadInfo,
    spec: &'a RunSpec,
    host: &'a dyn Host,
    observer: &'a dyn Observer,
}

impl Run<'_> {
    /// Runs a workload that is loaded, and reports. `protocol` is the name for the report.
    fn measure<P: Protocol, W: Workload<P>>(
        self,
        database: &Database<P>,
        protocol: &str,
        workload: W,
    ) -> Result<RunOutcome, BenchError> {
        let Self { info, spec, host, observer } = self;
        if !spec.think.is_zero() {
            let none = OptionError::NoProcedures { workload: info.name };
            delay_operations(workload.database_of_procedures().ok_or(none)?, spec.think);
        }
        let workload = &workload;
        database.report_both_sides(spec.both_sides);
        // Before the keys and rows are counted, which itself may take memory.
        // (What the process of a simulation takes says nothing, and is not the same in each.)
        let resident = || if spec.on.is_virtual() { 0 } else { host.resident_bytes() };
        let resident_bytes_loaded = resident();
        let payload_bytes_loaded = workload.payload_bytes(&mut database.worker()?);
        let recording = spec.record_bytes_max.map(|bytes| database.record_history(bytes)).transpose()?;
        #[cfg(feature = "sim")]
        let mut profile = None;
        let (measurement, mut worker) = match &spec.on {
            On::Threads(settings) => measure(database, workload, settings, spec.log.mode, observer)?,
            #[cfg(feature = "sim")]
            On::Cores(settings) => {
                let (measurement, worker, found) = simulated::measure(database, workload, settings)?;
                profile = found;
                (measurement, worker)
            }
        };
        let history = workload.history().or_else(|| recording.map(Recording::finish));
        let resident_bytes_end = resident();
        let retained_bytes_end = if spec.on.is_virtual() { 0 } else { hotrow::retained_bytes() };
        let payload_bytes_end = workload.payload_bytes(&mut worker);
        let hot_rows = hottest_rows(database);
        let deadlocks =
            database.deadlocks(DEADLOCKS).into_iter().map(|deadlock| deadlock.to_string()).collect();
        let Measurement { elapsed, counts, clients, working_set } = measurement;
        let results = Results {
            workload: info.name,
            protocol: protocol.to_owned(),
            kinds: workload.kinds(),
            elapsed,
            counts,
            hot_rows,
            deadlocks,
            working_set,
            checks: workload.checks(&mut worker, clients),
            memory: Memory {
                payload_bytes_loaded,
                resident_bytes_loaded,
                payload_bytes_end,
                resident_bytes_end,
                retained_bytes_end,
            },
        };
        Ok(RunOutcome {
            report: results.report(spec, host),
            history,
            #[cfg(feature = "sim")]
            profile,
        })
    }
}

/// Results of a run, of which a report is made. They depend neither on the protocol's type nor on the workload's, so
/// that the making of a report is compiled once.
struct Results {
    workload: &'static str,
    protocol: String,
    kinds: &'static [&'static str],
    elapsed: Duration,
    counts: Counts,
    hot_rows: Vec<HotRow>,
    deadlocks: Vec<String>,
    working_set: Option<WorkingSet>,
    checks: Vec<Check>,
    memory: Memory,
}

impl Results {
    fn report(self, spec: &RunSpec, host: &dyn Host) -> RunReport {
        let Self {
            workload,
            protocol,
            kinds: names,
            elapsed,
            counts,
            hot_rows,
            deadlocks,
            working_set,
            checks,
            memory,
        } = self;
        let Counts { kinds, reasons, attempts_max, named, .. } = counts;
        let mut latencies = Latencies::new();
        for kind in &kinds {
            latencies.add(&kind.latencies);
        }
        let mut options = spec.workload.to_json();
        if !spec.think.is_zero() {
            options.insert(String::from("think_us"), (spec.think.as_micros() as u64).into());
        }
        if let Some(address) = &spec.store {
            options.insert(String::from("store"), address.as_str().into());
        }
        if spec.log.mode != LogMode::None {
            options.insert(String::from("durability"), spec.log.mode.name().into());
        }
        let commits: u64 = kinds.iter().map(|kind| kind.commits).sum();
        let seconds = elapsed.as_secs_f64();
        RunReport {
            workload: workload.into(),
            protocol,
            threads: spec.on.workers(),
            seconds,
            seed: spec.on.seed(),
            virtual_time: spec.on.is_virtual(),
            commits,
            aborts: kinds.iter().map(|kind| kind.aborts).sum(),
            rollbacks: kinds.iter().map(|kind| kind.rollbacks).sum(),
            throughput_per_s: if commits == 0 { 0.0 } else { commits as f64 / seconds },
            latency_us: latencies.summary(),
            latency_distribution: latencies.distribution(),
            by_transaction: names
                .iter()
                .zip(&kinds)
                .map(|(name, kind)| {
                    let latency_us = kind.latencies.summary();
                    ((*name).into(), KindReport { commits: kind.commits, aborts: kind.aborts, latency_us })
                })
                .collect(),
            abort_reasons: named_reasons(&reasons),
            attempts_max,
            counters: named.iter().map(|(counter, value)| CounterReport { counter, value }).collect(),
            hot_rows,
            deadlocks,
            working_set,
            checks,
            memory_bytes: memory.resident_bytes_end,
            memory,
            options,
            revision: host.revision().to_owned(),
            machine: spec.on.machine(host),
        }
    }
}

/// Rows in a report of the hottest.
const HOT_ROWS: usize = 10;

/// Deadlocks in a report, the last ones.
const DEADLOCKS: usize = 5;

/// The hottest rows of a database.
pub(crate) fn hottest_rows<P: Protocol>(database: &Database<P>) -> Vec<HotRow> {
    database.hot_keys(HOT_ROWS).into_iter().map(HotRow::from).collect()
}
