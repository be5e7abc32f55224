//! Protocols and workloads on the virtual cores of the simulator, in explored schedules.

mod crew;
mod datatypes;
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

use hotrow::protocols::PROTOCOLS;
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

/// The names of the protocols whose waiters run operations of others, and of their variants with locks that readers do not share.
fn stealing() -> impl Iterator<Item = String> {
    let names = PROTOCOLS.iter().filter(|protocol| protocol.steals).map(|protocol| protocol.name);
    names.flat_map(|name| [name.to_owned(), format!("{name}+exclusive")])
}

/// An engine of this protocol.
fn engine(protocol: &str) -> hotrow::Engine<hotrow::Any> {
    hotrow::Engine::named(protocol, hotrow::RetryPolicy::default()).expect("a protocol's name")
}
