//! The driver that measures workloads.
//!
//! A [`Workload`] has data in an engine and clients that run transactions on it. [`measure`] runs it on several
//! threads and counts. [`prepare_and_run`] makes a [`RunReport`] from the workload's options and a protocol's name: it
//! loads the data, runs the transactions, checks the data and reports. A user's own workload runs in the same way once
//! its options implement [`WorkloadDefinition`].

mod definition;
mod error;
mod latency;
mod loading;
mod log;
mod measure;
mod observer;
mod options;
mod report;
mod run;
mod think;
mod workload;

pub use definition::{BaselineInfo, Refinement, WorkloadDefinition, WorkloadInfo, WorkloadOptions};
pub use error::BenchError;
pub use hotrow::{Counter, CounterValue};
pub use latency::{Latencies, LatencyDistribution, LatencySummary};
pub use loading::{finish, load_parts};
pub use log::{LogMode, LogSpec};
#[cfg(feature = "sim")]
pub use measure::simulated::VirtualSettings;
pub use measure::{Counts, KindCounts, Measurement, Settings, measure};
pub use observer::{Host, LiveView, Observer, Unobserved};
pub use options::{OptionError, OptionInfo, OptionValues, READERS, alternatives, invalid, name_of};
pub use report::{CounterReport, HotRow, KindReport, Machine, Memory, RivalryReport, RunReport, WorkingSet};
pub use run::{BaselineRun, On, RunOutcome, RunSpec, prepare_and_run};
pub use workload::{Check, End, Ran, Workload};
