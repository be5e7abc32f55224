//! The reasons why the command fails.

use hotrow_workloads::{BenchError, RunReport};
use std::fmt;
use std::io;

/// The exit status if a check failed or a run did not finish.
pub(crate) const FAILURE: u8 = 1;

/// The exit status for invalid arguments.
pub(crate) const BAD_INPUT: u8 = 2;

/// The reason why a subcommand fails.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The arguments are invalid.
    BadInput(String),
    /// A run did not finish.
    Run(BenchError),
    /// Checks failed; the runs finished.
    Checks(Vec<String>),
    /// The results could not be written.
    Output(io::Error),
    /// A file could not be written or read.
    File(String),
    /// The process of a run has told why it failed, with this exit status.
    Told(u8),
    /// A history or a measurement did not have the required result.
    Verdict(String),
}

impl From<BenchError> for CommandError {
    fn from(error: BenchError) -> Self {
        if error.is_bad_input() { Self::BadInput(error.to_string()) } else { Self::Run(error) }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadInput(message) => f.write_str(message),
            Self::Run(error) => write!(f, "{error}"),
            Self::Checks(failed) => write!(f, "checks failed: {}", failed.join("; ")),
            Self::File(message) | Self::Verdict(message) => f.write_str(message),
            Self::Told(status) => write!(f, "the process of a run ended with status {status}"),
            Self::Output(error) => write!(f, "cannot write the results: {error}"),
        }
    }
}

/// Returns an error if a check failed.
pub(crate) fn verdict<'a>(reports: impl IntoIterator<Item = &'a RunReport>) -> Result<(), CommandError> {
    let mut failed = Vec::new();
    for report in reports {
        for check in report.failed_checks() {
            let detail = check.detail.as_deref().unwrap_or("does not hold");
            failed.push(format!("{} under {} (seed {}): {detail}", check.name, report.protocol, report.seed));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CommandError::Checks(failed)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::report;

    #[test]
    fn a_failed_check_is_an_error_that_names_it() {
        assert!(verdict([&report(true)]).is_ok());
        let error = verdict([&report(true), &report(false)]).unwrap_err();
        let message = "checks failed: money is kept under occ (seed 7): 3 instead of 4";
        assert_eq!(error.to_string(), message);
    }
}
