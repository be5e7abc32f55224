//! What subcommands need of the simulator: its machines or, in a build without it, the way to a build with it.

use super::Refusal;
#[cfg(feature = "sim")]
use super::unknown;
#[cfg(feature = "sim")]
use hotrow_sim::{Machine, MachineError};
#[cfg(feature = "sim")]
use std::path::Path;

/// The machine of a name or of a file. A text with a slash or a dot is a file.
#[cfg(feature = "sim")]
pub(crate) fn machine_called(name: &str) -> Result<Machine, Refusal> {
    let machine =
        if name.contains(['/', '.']) { Machine::from_file(Path::new(name)) } else { Machine::named(name) };
    machine.map_err(|error| match error {
        MachineError::Unknown { name } => Refusal::Message(unknown("machine", &name, Machine::names())),
        error => Refusal::Message(error.to_string()),
    })
}

/// The error in a build without the simulator.
#[cfg(not(feature = "sim"))]
pub(crate) fn no_simulator(command: &str) -> Refusal {
    Refusal::Message(format!(
        "this build has no simulator, because a simulator would slow measurements down; use: \
         cargo run --release --features sim -- {command}",
    ))
}
