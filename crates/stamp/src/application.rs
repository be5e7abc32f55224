//! The application trait: input, run, statistics and verification.

use crate::options::Options;
use crate::runner::Runner;
use crate::store::Store;
use hotrow_sync::clock;
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// An application over a store: its input and its collections.
pub trait Application<S: Store>: Sized {
    /// The options.
    type Options: Options;

    /// Generates the input and fills the collections, on the calling thread. The options have been checked.
    fn prepare(store: S, options: &Self::Options) -> Self;

    /// Does the work on all workers of `runner`. It is called once.
    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics;

    /// Checks the result, on the calling thread.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the first thing that is wrong.
    fn verify(&self) -> Result<(), Failure>;
}

/// Counts of the work that a run has done, by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Statistics {
    counts: Vec<(&'static str, u64)>,
}

impl Statistics {
    /// Makes statistics of names and counts.
    pub fn new<const N: usize>(counts: [(&'static str, u64); N]) -> Self {
        Self { counts: counts.to_vec() }
    }

    /// Returns the names and counts, in the order in which they are shown.
    pub fn counts(&self) -> &[(&'static str, u64)] {
        &self.counts
    }

    /// Returns the count of a name; 0 if there is none.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

/// A wrong result, found by a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    reason: String,
}

impl Failure {
    /// Makes a failure with a reason: a sentence without a full stop.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl Error for Failure {}

/// Returns a failure with the reason that `reason` makes if `condition` does not hold.
pub(crate) fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(Failure::new(reason())) }
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Duration of the run, without the generation of the input and the verification.
    pub elapsed: Duration,
    /// Counts of the work done.
    pub statistics: Statistics,
    /// The verification's result.
    pub verification: Result<(), Failure>,
}

/// Prepares an application, runs it, and verifies its result.
pub fn execute<A, S, R>(store: S, options: &A::Options, runner: &R) -> Outcome
where
    A: Application<S>,
    S: Store,
    R: Runner<A>,
{
    let mut application = A::prepare(store, options);
    let start = clock::now();
    let statistics = application.run(runner);
    let elapsed = clock::now().saturating_duration_since(start);
    Outcome { elapsed, statistics, verification: application.verify() }
}
