//! Shared by the tests of the command: calling it, and reading its output.

use std::process::{Child, Command, Output, Stdio};

/// Runs the command.
pub(crate) fn hotrow(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hotrow")).args(arguments).output().unwrap()
}

/// Starts the command, discards its output, and does not wait for it.
#[allow(dead_code, reason = "not every test needs it")]
pub(crate) fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotrow"));
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
