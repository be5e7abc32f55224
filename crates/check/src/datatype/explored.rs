//! Explored schedules: the crew on virtual cores, in an order that a seed determines.

use super::Datatype;
use super::crew::{CREW, rounds};
use hotrow_core::{Engine, Protocol, RetryPolicy};
use hotrow_protocols::{Visitor, for_each_protocol};
use hotrow_sim::{Config, Faults, Machine, Order, Simulation};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

/// Steps after which a schedule counts as one without an end.
const STEPS_MAX: u64 = 1_000_000;

/// Approximate number of steps of a schedule.
const STEPS_EXPECTED: u64 = 1_000;

/// Memory for the history of a schedule, in bytes; never reached.
const HISTORY_BYTES: usize = 1 << 28;

/// Checks a datatype in explored schedules, one for each seed, under every variant of every protocol that runs transactions
/// at the same time.
///
/// In each, three workers run two transactions each. A simulation switches between them at any step on shared memory, and
/// stops some for long. A serial order must explain what they have learned, and the recorded history must be what the
/// protocol promises. Returns, by variant, the number of attempts that were lost to conflicts.
///
/// # Panics
///
/// If a check fails. What is printed names the variant and the seed, which stands for the schedule.
pub fn explore_datatype<D: Datatype>(seeds: Range<u64>) -> Vec<(&'static str, u64)> {
    for_each_protocol(CREW as u32, Schedules::<D> { first: seeds.start, end: seeds.end, of: PhantomData })
}

struct Schedules<D> {
    first: u64,
    end: u64,
    of: PhantomData<D>,
}

impl<D> Clone for Schedules<D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Schedules<D> {}

impl<D: Datatype> Visitor for Schedules<D> {
    type Output = u64;

    fn visit<P: Protocol>(self, name: &str) -> u64 {
        (self.first..self.end).map(|seed| explore::<D, P>(name, seed)).sum()
    }
}

fn config(seed: u64) -> Config {
    let machine = Machine::named("server-128").expect("a machine that comes with the simulator");
    let mut config = Config::new(machine, CREW);
    config.seed = seed;
    config.order = match seed % 4 {
        0 => Order::Random { probability: 0.02 },
        1 => Order::Random { probability: 0.3 },
        _ => Order::Priorities { depth: 1 + (seed / 4 % 4) as u32, steps_expected: STEPS_EXPECTED },
    };
    config.caches = false;
    config.steps_max = Some(STEPS_MAX);
    config.grace_steps = 1;
    let stops = (seed / 16 % 3) as u32;
    config.faults = Faults { stops, stop_ns_max: 1_000_000, kills: 0, within_steps: STEPS_EXPECTED };
    config
}

/// Runs and judges one schedule. Returns the number of attempts that were lost.
fn explore<D: Datatype, P: Protocol>(variant: &str, seed: u64) -> u64 {
    let policy = RetryPolicy { backoff_max: Duration::from_micros(5), ..RetryPolicy::default() };
    let engine = Engine::<P>::named(variant, policy).expect("a variant of the protocol");
    let what = format!("{variant}, seed {seed}");
    let mut recording = None;
    rounds::<D, P>(&engine, &what, (1, seed), |part| {
        recording = Some(engine.record_history(HISTORY_BYTES).expect("a new engine"));
        let workers: Vec<_> =
            (0..CREW).map(|_| RefCell::new(Some(engine.worker().expect("few workers")))).collect();
        let simulation = Simulation::new(config(seed)).expect("options that can be");
        let outcome = simulation.try_run(|core| {
            let mut worker = workers[core].take().expect("each core has its own");
            part(core, &mut worker)
        });
        assert!(outcome.end.is_finished(), "{what}: {}\n{}", outcome.end, outcome.trace);
        outcome.results.into_iter().map(|result| result.expect("every core has finished")).collect()
    });
    let history = recording.expect("the crew has run").finish();
    let report = crate::check(&history).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.is(report.claimed()), "{what}: {report}");
    engine.statistics().aborts
}
