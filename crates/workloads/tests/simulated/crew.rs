//! Workers on virtual cores that all want the same row first, in schedules that a seed determines.

use hotrow::{Engine, Protocol, Worker};
use hotrow_sim::{Config, Machine, Order, Simulation};
use std::cell::RefCell;

/// Steps after which a run of a few transactions is taken to be without an end.
const STEPS_MAX: u64 = 2_000_000;

/// Runs `body` on so many virtual cores, each with a worker of the engine. What it returns is by core.
pub(crate) fn run<P: Protocol, R>(
    engine: &Engine<P>,
    cores: usize,
    seed: u64,
    body: impl Fn(usize, &mut Worker<P>) -> R,
) -> Vec<R> {
    let machine = Machine::named("server-128").expect("a machine that comes with the simulator");
    let mut config = Config::new(machine, cores);
    config.seed = seed;
    config.order = Order::by_seed(seed, 3_000);
    config.caches = false;
    config.steps_max = Some(STEPS_MAX);
    config.grace_steps = 1;
    let workers: Vec<_> =
        (0..cores).map(|_| RefCell::new(Some(engine.worker().expect("few workers")))).collect();
    let simulation = Simulation::new(config).expect("options that can be");
    let outcome = simulation.try_run(|core| {
        let mut worker = workers[core].take().expect("each core has its own");
        body(core, &mut worker)
    });
    assert!(outcome.end.is_finished(), "seed {seed}: {}\n{}", outcome.end, outcome.trace);
    outcome.results.into_iter().map(|result| result.expect("every core has finished")).collect()
}
