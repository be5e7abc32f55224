//! `hotrow fidelity`: how far simulated throughput is from real throughput, where both can be had.
//!
//! The simulator answers for machines that are not at hand, so its error cannot be measured there. It can be
//! measured on the machine at hand, for as many threads as that has; and this error, of one run that is kept
//! beside the sources (`crates/cli/fidelity.toml`), is repeated below every simulated table.

#[cfg(feature = "sim")]
mod measuring;
#[cfg(feature = "sim")]
mod stated;

#[cfg(feature = "sim")]
pub(crate) use measuring::{FidelityPlan, command, plan, run};
#[cfg(feature = "sim")]
pub(crate) use stated::Fidelity;

/// The subcommand, in a build that cannot carry it out.
#[cfg(not(feature = "sim"))]
pub(crate) fn command() -> clap::Command {
    crate::sim::without_simulator("fidelity", "Holds simulated runs against real ones")
}
