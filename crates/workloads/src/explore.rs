//! Schedule exploration: runs small workloads on a few virtual cores, in many schedules; records and judges each.
//!
//! A seed determines everything: the workload and its sizes, the number of cores, the scheduling order (random, or
//! by priorities), and the points where cores pause or die. Most seeds choose stress; some choose YCSB, the array,
//! the 32 tables or TPC-C. So a seed reproduces a schedule that failed, with a trace.
//!
//! A core that dies is a thread that stops forever at any point, without unwinding. (A panic unwinds; panics belong
//! to the workload.) A dead core must not make the others read wrong values. The others may wait for a lock that it
//! held; such schedules are counted.
//!
//! A violation is a history that the protocol does not promise (the promise is strict serializability, unless the
//! protocol claims more or less), data that contradict the workload's own checks, a deadlock, a panic, or a run
//! that does not end.

use crate::array::{ArrayOptions, Increment};
use crate::stress::StressOptions;
use crate::tables32::Tables32Options;
use crate::tpcc::input::Mix;
use crate::tpcc::population::Scale;
use crate::tpcc::{Caches, Factors, Ranks, TpccOptions};
use crate::ycsb::{Preset, YcsbOptions};
use hotrow::sync::clock::Duration;
use hotrow::sync::random::Random;
use hotrow::{Counter, Database, Engine, Isolation, Protocol, RetryPolicy};
use hotrow_driver::{End as Ended, READERS, Unobserved, Workload, WorkloadDefinition};
use hotrow_sim::{Config, End, Faults, Machine, Order, Simulation, SimulationReport, Trace};
use std::cell::RefCell;
use std::fmt;
use std::mem::ManuallyDrop;

/// Everything that a seed determines.
#[derive(Debug, Clone)]
pub struct Drawn {
    /// The seed.
    pub seed: u64,
    /// Number of virtual cores, each with a worker.
    pub cores: usize,
    /// Transactions per core.
    pub transactions: usize,
    /// Workload and its sizes.
    pub workload: DrawnWorkload,
    /// Rule by which the scheduler chooses the next core.
    pub order: Order,
    /// Number of long pauses of cores.
    pub stops: u32,
    /// Number of cores that die.
    pub kills: u32,
}

/// A workload to explore, with its sizes. Exploration has a list of its own, because it also runs protocols that
/// are not in the registry: broken ones, which it must catch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum DrawnWorkload {
    /// TPC-C.
    Tpcc(TpccOptions),
    /// YCSB.
    Ycsb(YcsbOptions),
    /// The array.
    Array(ArrayOptions),
    /// The 32 tables.
    Tables32(Tables32Options),
    /// Stress.
    Stress(StressOptions),
}

impl Drawn {
    /// Derives everything from `seed`. In one seed of `kills_one_in` a core dies (0: in none). Memory that a dead
    /// core has pinned is never freed again in this process.
    pub fn new(seed: u64, kills_one_in: u64) -> Self {
        let mut random = Random::stream(seed, 0x5eed);
        let mut among = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
        let cores = among(&[2, 2, 3, 4]) as usize;
        let transactions = among(&[1, 2, 3, 6]) as usize;
        let keys = among(&[1, 1, 2, 3]) as u32;
        let ops = among(&[1, 2, 3, 5, 8]) as u32;
        let write_share = among(&[2, 5, 8]) as f64 / 10.0;
        let stops = among(&[0, 0, 1, 3]) as u32;
        let depth = among(&[1, 2, 3, 5]) as u32;
        let order = match among(&[0, 0, 1, 2]) {
            0 => Order::Priorities { depth, steps_expected: STEPS_EXPECTED },
            1 => Order::Random { probability: 0.02 },
            _ => Order::Random { probability: 0.3 },
        };
        let kills = u32::from(kills_one_in != 0 && random.below(kills_one_in) == 0);
        let workload = match random.below(60) {
            // TPC-C takes the longest to load, so it is the rarest.
            0 => DrawnWorkload::Tpcc(TpccOptions {
                warehouses: 1,
                mix: Mix::Full,
                scale: Scale::SMALL,
                stock_level: Isolation::Serializable,
                tame_share: [0.0, 0.5, 1.0, 1.0][random.below(4) as usize],
                ranks: Ranks::Tuned,
                readers: if seed.is_multiple_of(2) { Isolation::StrictSnapshot } else { Isolation::Snapshot },
                delivery_batch: [10, 1][seed as usize / 2 % 2],
                chop: Factors::Full,
                caches: [Caches::None, Caches::Inserted][seed as usize / 4 % 2],
            }),
            1..=3 => DrawnWorkload::Array(ArrayOptions {
                size: 4,
                ops: ops as usize,
                increment_share: write_share,
                increment: if keys == 1 { Increment::AtCommit } else { Increment::Update },
            }),
            4..=8 => DrawnWorkload::Ycsb(YcsbOptions {
                records: u64::from(ops.max(keys)),
                // Short values are inline, long ones boxed.
                value_bytes: if keys == 1 { 16 } else { 40 },
                read_ratio: 1.0 - write_share,
                rmw_share: 0.5,
                ops: keys,
                big_share: 0.3,
                big_ops: ops,
                readers: READERS[seed as usize % READERS.len()].1,
                ..YcsbOptions::of(Preset::A)
            }),
            // All transactions begin with the same row: under a protocol that shares operations, workers run each
            // other's.
            9..=16 => DrawnWorkload::Tables32(Tables32Options {
                tables: 1 + 2 * ops,
                records: u64::from(keys),
                hot_records: 1,
            }),
            _ => DrawnWorkload::Stress(StressOptions {
                keys,
                ops,
                write_share,
                rollback_share: 0.1,
                part_share: 0.05,
                panic_share: 0.02,
                // The scheduler alone switches cores.
                yield_share: 0.0,
                snapshot_share: if seed.is_multiple_of(3) { 0.3 } else { 0.0 },
                caches: seed / 4 % 2 == 1,
            }),
        };
        let order = match order {
            Order::Priorities { depth, .. } => {
                let each = if matches!(workload, DrawnWorkload::Tpcc(_)) { 2_000 } else { STEPS_EXPECTED };
                Order::Priorities { depth, steps_expected: (cores * transactions) as u64 * each }
            }
            order => order,
        };
        Self { seed, cores, transactions, workload, order, stops, kills }
    }

    /// The options of the simulation. `in_regions`: the protocol uses hardware transactions, if the machine has them.
    fn config(&self, trace_steps: usize, in_regions: bool) -> Config {
        let name = if in_regions { "dbx-tc" } else { "server-128" };
        let mut machine = Machine::named(name).expect("a machine that comes with the simulator");
        if let Some(transactions) = &mut machine.transactions {
            // In some seeds many are aborted, at any of their steps.
            transactions.system_aborts_per_s *= [1.0, 1e2, 1e3][self.seed as usize % 3];
        }
        let mut config = Config::new(machine, self.cores);
        config.seed = self.seed;
        config.order = self.order.clone();
        config.caches = false;
        config.steps_max = Some(STEPS_MAX);
        config.grace_steps = STEPS_MAX;
        config.trace_steps = trace_steps;
        let steps = (self.cores * self.transactions) as u64 * STEPS_EXPECTED;
        config.faults =
            Faults { stops: self.stops, stop_ns_max: 1_000_000, kills: self.kills, within_steps: steps };
        config
    }
}

/// Approximate number of steps of a transaction.
const STEPS_EXPECTED: u64 = 200;

/// Steps after which a run of a few transactions counts as endless.
const STEPS_MAX: u64 = 500_000;

/// Memory for the history of one schedule, in bytes; never reached.
const HISTORY_BYTES: usize = 1 << 28;

/// A violation found under a seed.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The seed and everything that it determines.
    pub drawn: Drawn,
    /// Description of the violation.
    pub what: String,
    /// Last steps of each core.
    pub trace: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}: {}", self.drawn.seed, self.what)
    }
}

/// Counts from one schedule, or from several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    /// Steps of all cores.
    pub steps: u64,
    /// Committed transactions.
    pub commits: u64,
    /// Attempts lost to a conflict.
    pub aborts: u64,
    /// Schedules in which the others waited, until the end of the run, for a lock that a dead core held.
    pub stalled: u64,
    /// Operations that other workers ran for their owners.
    pub stolen: u64,
    /// Hardware transactions that committed.
    pub regions: u64,
    /// Hardware transactions that were aborted.
    pub region_aborts: u64,
    /// Hash over all steps.
    pub hash: u64,
}

impl Explored {
    /// Adds the counts of another schedule, and its hash.
    pub fn add(&mut self, other: &Explored) {
        self.steps += other.steps;
        self.commits += other.commits;
        self.aborts += other.aborts;
        self.stalled += other.stalled;
        self.stolen += other.stolen;
        self.regions += other.regions;
        self.region_aborts += other.region_aborts;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Runs one schedule under the protocol variant named `protocol` and judges it. Calls `look` with the last
/// `trace_steps` steps of each core.
///
/// # Errors
///
/// The violation, with the same steps as text.
pub fn explore<P: Protocol>(
    drawn: &Drawn,
    protocol: &str,
    trace_steps: usize,
    look: impl FnOnce(&Trace),
) -> Result<Explored, Box<Violation>> {
    // If a core may die, the attempts are limited: otherwise others would wait forever for a lock that it holds.
    let attempts_max = if drawn.kills == 0 { u32::MAX } else { 20 };
    let policy =
        RetryPolicy { attempts_max, backoff_max: Duration::from_micros(5), ..RetryPolicy::default() };
    let engine = Engine::<P>::named(protocol, policy).expect("chosen by this name");
    match &drawn.workload {
        DrawnWorkload::Tpcc(options) => explore_workload(options, drawn, &engine, trace_steps, look),
        DrawnWorkload::Ycsb(options) => explore_workload(options, drawn, &engine, trace_steps, look),
        DrawnWorkload::Array(options) => explore_workload(options, drawn, &engine, trace_steps, look),
        DrawnWorkload::Tables32(options) => explore_workload(options, drawn, &engine, trace_steps, look),
        DrawnWorkload::Stress(options) => explore_workload(options, drawn, &engine, trace_steps, look),
    }
}

fn explore_workload<P: Protocol, W: WorkloadDefinition>(
    options: &W,
    drawn: &Drawn,
    engine: &Engine<P>,
    trace_steps: usize,
    look: impl FnOnce(&Trace),
) -> Result<Explored, Box<Violation>> {
    // One thread loads; with several, their race would decide the addresses of the data.
    let workload =
        options.load(&Database::on(engine), 1, drawn.seed, &Unobserved).expect("small data can be loaded");
    // It is leaked if a core may die: the drop of an index would wait for the latch of one that has.
    let workload = ManuallyDrop::new(workload);
    let recording = engine.record_history(HISTORY_BYTES).expect("a new engine");
    let crew: Vec<_> = (0..drawn.cores)
        .map(|core| {
            let worker = engine.worker().expect("few workers");
            RefCell::new(Some((worker, workload.client(core, drawn.cores, drawn.seed))))
        })
        .collect();
    let in_regions = engine.uses_regions();
    let simulation =
        Simulation::new(drawn.config(trace_steps, in_regions)).expect("the drawn options are valid");
    let outcome = simulation.try_run(|core| {
        let (mut worker, mut client) = crew[core].take().expect("each core has its own");
        let mut failed = None;
        for _ in 0..drawn.transactions {
            workload.prepare(&mut client);
            if let Ended::Failed(message) = workload.run_one(&mut worker, &mut client).end {
                failed.get_or_insert(message);
            }
        }
        (worker, client, failed)
    });
    look(&outcome.trace);
    let statistics = engine.statistics();
    // A core that dies while it changes an index or commits leaves its latches and locks held. Nobody can know that
    // it will not go on, so others may wait forever. Their reads must be correct all the same.
    let stalled = drawn.kills != 0 && matches!(outcome.end, End::StepLimit | End::Deadlock { .. });
    let explored = Explored {
        stalled: stalled.into(),
        steps: outcome.steps,
        commits: statistics.commits,
        aborts: statistics.aborts,
        stolen: statistics.count(&Counter::STOLEN_OPERATIONS),
        regions: outcome.regions.commits,
        region_aborts: outcome.regions.aborts(),
        hash: outcome.hash(),
    };
    let SimulationReport { end, results, trace, .. } = outcome;
    let violation =
        |what: String| Err(Box::new(Violation { drawn: drawn.clone(), what, trace: trace.to_string() }));
    if !end.is_finished() && !stalled {
        return violation(end.to_string());
    }
    match hotrow_check::check(&recording.finish()) {
        Err(error) => return violation(format!("the history contradicts itself: {error}")),
        Ok(report) if !report.is(report.claimed()) => return violation(report.to_string()),
        Ok(_) => {}
    }
    if drawn.kills == 0 {
        let mut workers = Vec::new();
        let mut clients = Vec::new();
        for result in results {
            let (worker, client, failed) = result.expect("every core has finished");
            if let Some(message) = failed {
                return violation(message);
            }
            workers.push(worker);
            clients.push(client);
        }
        let failed = workload.checks(&mut workers[0], clients).into_iter().find(|check| !check.passed);
        if let Some(check) = failed {
            return violation(format!("{}: {}", check.name, check.detail.unwrap_or_default()));
        }
        drop(ManuallyDrop::into_inner(workload));
    }
    Ok(explored)
}
