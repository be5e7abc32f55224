//! `hotrow sim`: workloads on virtual cores.

#[cfg(feature = "sim")]
mod measuring;
#[cfg(feature = "sim")]
mod virtual_run;

#[cfg(feature = "sim")]
pub(crate) use measuring::{VirtualPlan, command, plan, run};
#[cfg(feature = "sim")]
pub(crate) use virtual_run::VirtualRun;

/// The subcommand in a build without the simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn command() -> clap::Command {
    crate::arguments::without_feature("sim", "Runs a workload on virtual cores", "sim")
}
