//! Tests of the log through its public interface.

mod belonging;
mod checkpoints;
mod damage;
mod engine;
mod entries;
mod faults;
mod power_loss;
#[cfg(unix)]
mod processes;
mod reuse;
mod round_trips;
mod sweep;
