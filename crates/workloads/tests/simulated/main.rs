//! Protocols and workloads on the virtual cores of the simulator, in explored schedules.
//!
//! Needs feature `sim`: `cargo test -p hotrow-workloads --features sim --test simulated`.

mod crew;
mod datatypes;
#[path = "../../../hotrow/tests/models/mod.rs"]
mod models;
#[path = "../mutants/mod.rs"]
mod mutants;
mod ordered_pieces;
mod pieces;
mod pipeline;
mod power_loss;
mod publishing;
mod regions;
mod same_results;
mod schedules;
mod sessions;
mod snapshots;
mod stamps;
mod stealing_schedules;
mod stolen_operations;
mod wild;

use hotrow_sim::{Config, Faults, Machine, Order};

/// A schedule of a few short transactions on each core, with cores that stand still for a while.
fn short_schedule(machine: Machine, cores: usize, seed: u64, steps_max: u64) -> Config {
    let mut config = Config::new(machine, cores);
    config.seed = seed;
    config.order = match seed % 2 {
        0 => Order::Priorities { depth: 3, steps_expected: 400 * cores as u64 },
        _ => Order::Random { probability: 0.3 },
    };
    config.caches = false;
    config.steps_max = Some(steps_max);
    config.faults = Faults { stops: 2, stop_ns_max: 1_000_000, kills: 0, within_steps: 400 };
    config
}

/// An engine of a variant of queue locking.
fn queue_locking(protocol: &str) -> hotrow::Engine<hotrow::protocols::McsLocking> {
    hotrow::Engine::named(protocol, hotrow::RetryPolicy::default()).expect("a variant of queue locking")
}
