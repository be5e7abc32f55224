//! What subcommands need of the simulator: its machines or, in a build without it, the way to a build with it.

use super::Refusal;
#[cfg(not(feature = "sim"))]
use clap::{Arg, Command};
#[cfg(feature = "sim")]
use hotrow_sim::Machine;
#[cfg(feature = "sim")]
use std::path::Path;

/// The machine of a name or of a file. A text with a slash or a dot is a file.
#[cfg(feature = "sim")]
pub(crate) fn machine_called(name: &str) -> Result<Machine, Refusal> {
    let machine =
        if name.contains(['/', '.']) { Machine::from_file(Path::new(name)) } else { Machine::named(name) };
    machine.map_err(|error| Refusal::Message(error.to_string()))
}

/// The error in a build without the simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn no_simulator(command: &str) -> Refusal {
    Refusal::Message(format!(
        "this build has no simulator, because a simulator would slow measurements down; use: \
         cargo run --release --features sim -- {command}",
    ))
}

/// A subcommand that needs the simulator, for a build without it. It accepts any arguments.
#[cfg(not(feature = "sim"))]
pub(crate) fn without_simulator(name: &'static str, about: &str) -> Command {
    Command::new(name)
        .about(format!("{about} (in builds with `--features sim`)"))
        .disable_help_flag(true)
        .arg(Arg::new("anything").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true))
}
