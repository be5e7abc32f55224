//! `hotrow bench stamp`: the STAMP applications over several stores, which run to completion.

#[cfg(feature = "stamp")]
mod measuring;
#[cfg(feature = "stamp")]
mod plan;
#[cfg(feature = "stamp")]
mod report;

use crate::arguments::{Refusal, Request};
use clap::ArgMatches;
#[cfg(not(feature = "stamp"))]
use clap::Command;

#[cfg(feature = "stamp")]
pub(crate) use measuring::run;
#[cfg(feature = "stamp")]
pub(crate) use plan::{StampPlan, command};

/// The name of the workload.
pub(crate) const NAME: &str = "stamp";

/// Reads the arguments.
#[cfg(feature = "stamp")]
pub(crate) fn request(matches: &ArgMatches) -> Result<Request, Refusal> {
    plan::plan(matches).map(Request::Stamp)
}

/// The subcommand in a build without the applications. It accepts any arguments.
#[cfg(not(feature = "stamp"))]
pub(crate) fn command() -> Command {
    Command::new(NAME)
        .about("Runs STAMP applications (in builds with `--features stamp`)")
        .disable_help_flag(true)
        .arg(clap::Arg::new("anything").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}

/// The error in a build without the applications.
#[cfg(not(feature = "stamp"))]
pub(crate) fn request(_: &ArgMatches) -> Result<Request, Refusal> {
    Err(Refusal::Message(String::from(
        "this build has no STAMP applications, because they lengthen the build by minutes; use: \
         cargo run --release --features stamp -- bench stamp",
    )))
}
