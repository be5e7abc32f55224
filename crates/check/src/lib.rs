//! Judges recorded histories.

mod attempts;
mod builder;
mod check;
mod components;
mod cover;
mod cycle;
mod explain;
pub mod file;
mod graph;
mod judge;
mod malformed;
mod ordered;
mod ranges;
mod report;
#[cfg(test)]
mod tests;
mod version_index;
mod versions;

pub use builder::{AttemptInProgress, HistoryBuilder};
pub use check::check;
pub use malformed::Malformed;
pub use report::{Anomaly, AnomalyKind, Counts, Dependency, Level, Outcome, Report, Step, Transaction};
