//! Protocols and workloads on the virtual cores of the simulator, in explored schedules.
//!
//! Needs feature `sim`: `cargo test -p hotrow-workloads --features sim --test simulated`.

mod cascading;
mod crew;
mod datatypes;
#[path = "../../../hotrow/tests/models/mod.rs"]
mod models;
#[path = "../../../hotrow/tests/moves/mod.rs"]
mod moves;
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
mod stamps;
mod stealing_schedules;
mod stolen_operations;
mod wild;

/// An engine of a variant of queue locking.
fn queue_locking(protocol: &str) -> hotrow::Engine<hotrow::protocols::McsLocking> {
    hotrow::Engine::named(protocol, hotrow::RetryPolicy::default()).expect("a variant of queue locking")
}
