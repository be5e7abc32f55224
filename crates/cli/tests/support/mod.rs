//! What the tests of the command share: calling it, and reading what it says.

use std::process::{Command, Output};

/// Runs the command.
pub(crate) fn hotrow(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotrow")).args(arguments).output().unwrap()
}

/// What was written, as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
