//! `hotrow bench stamp` and `hotrow sim stamp`: the STAMP applications over several stores, which run to completion.

#[cfg(feature = "stamp")]
mod measuring;
#[cfg(feature = "stamp")]
mod plan;
#[cfg(feature = "stamp")]
mod report;
#[cfg(all(feature = "stamp", feature = "sim"))]
mod simulated;

use crate::arguments::{Refusal, Request};
use clap::ArgMatches;
#[cfg(not(feature = "stamp"))]
use clap::Command;

#[cfg(feature = "stamp")]
pub(crate) use measuring::run;
#[cfg(feature = "stamp")]
pub(crate) use plan::{StampPlan, command};
#[cfg(all(feature = "stamp", feature = "sim"))]
pub(crate) use simulated::{VirtualStampPlan, command as virtual_command, run as run_virtual};

/// The name of the workload.
pub(crate) const NAME: &str = "stamp";

/// Reads the arguments.
#[cfg(feature = "stamp")]
pub(crate) fn request(matches: &ArgMatches) -> Result<Request, Refusal> {
    plan::plan(matches).map(Request::Stamp)
}

/// Reads the arguments of `hotrow sim stamp`.
#[cfg(all(feature = "stamp", feature = "sim"))]
pub(crate) fn virtual_request(matches: &ArgMatches) -> Result<Request, Refusal> {
    simulated::plan(matches).map(Request::VirtualStamp)
}

/// The subcommand in a build without the applications. It accepts any arguments.
#[cfg(not(feature = "stamp"))]
pub(crate) fn command() -> Command {
    Command::new(NAME)
        .about("Runs STAMP applications (in builds with `--features stamp`)")
        .disable_help_flag(true)
        .arg(clap::Arg::new("anything").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}

/// The subcommand of `hotrow sim` in a build without the applications.
#[cfg(all(feature = "sim", not(feature = "stamp")))]
pub(crate) use command as virtual_command;

/// The error in a build without the applications.
#[cfg(not(feature = "stamp"))]
pub(crate) fn request(_: &ArgMatches) -> Result<Request, Refusal> {
    Err(missing("stamp -- bench stamp"))
}

/// The error of `hotrow sim` in a build without the applications.
#[cfg(all(feature = "sim", not(feature = "stamp")))]
pub(crate) fn virtual_request(_: &ArgMatches) -> Result<Request, Refusal> {
    Err(missing("sim,stamp -- sim stamp"))
}

/// The error, with the features and the command to use.
#[cfg(not(feature = "stamp"))]
fn missing(features_and_command: &str) -> Refusal {
    Refusal::Message(format!(
        "this build has no STAMP applications, because they lengthen the build by minutes; use: \
         cargo run --release --features {features_and_command}",
    ))
}
