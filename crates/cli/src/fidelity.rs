//! `hotrow fidelity`: measures the error of simulated throughput against real throughput.
//!
//! The simulator's error cannot be measured for machines that are not available. It can be measured on the present
//! machine, for as many threads as that has. The result of one such run is kept beside the sources
//! (`crates/cli/fidelity.toml`) and repeated below every simulated table.

#[cfg(feature = "sim")]
mod measuring;
#[cfg(feature = "sim")]
mod stated;

#[cfg(feature = "sim")]
pub(crate) use measuring::{FidelityPlan, command, plan, run};
#[cfg(feature = "sim")]
pub(crate) use stated::Fidelity;

/// The subcommand in a build without the simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn command() -> clap::Command {
    crate::arguments::without_feature("fidelity", "Compares simulated runs with real ones", "sim")
}
