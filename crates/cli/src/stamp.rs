//! `hotrow bench stamp` and `hotrow sim stamp`: the STAMP applications over several stores, which run to completion.

#[cfg(feature = "stamp")]
mod measuring;
#[cfg(feature = "stamp")]
mod plan;
#[cfg(feature = "stamp")]
mod report;
#[cfg(all(feature = "stamp", feature = "sim"))]
mod simulated;

#[cfg(not(feature = "stamp"))]
use crate::arguments::{Refusal, without_feature};
#[cfg(not(feature = "stamp"))]
use clap::Command;

#[cfg(feature = "stamp")]
pub(crate) use measuring::run;
#[cfg(feature = "stamp")]
pub(crate) use plan::{NAME, StampPlan, command, plan};
#[cfg(all(feature = "stamp", feature = "sim"))]
pub(crate) use simulated::{
    VirtualStampPlan, command as virtual_command, plan as virtual_plan, run as run_virtual,
};

/// The name of the workload.
#[cfg(not(feature = "stamp"))]
pub(crate) const NAME: &str = "stamp";

/// The subcommand in a build without the applications. It accepts any arguments.
#[cfg(not(feature = "stamp"))]
pub(crate) fn command() -> Command {
    without_feature(NAME, "Runs STAMP applications", "stamp")
}

/// The subcommand of `hotrow sim` in a build without the applications.
#[cfg(all(feature = "sim", not(feature = "stamp")))]
pub(crate) use command as virtual_command;

/// The error in a build without the applications, with the features and the command to use.
#[cfg(not(feature = "stamp"))]
pub(crate) fn missing(features_and_command: &str) -> Refusal {
    Refusal::Message(format!(
        "this build has no STAMP applications, because they lengthen the build by minutes; use: \
         cargo run --release --features {features_and_command}",
    ))
}
