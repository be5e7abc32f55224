//! Workloads, and the driver that measures them.
//!
//! A [`Workload`] has data in an engine and clients that run transactions on it. [`measure`] runs it on several
//! threads and counts. [`prepare_and_run`] makes a [`RunReport`] from names alone: it loads the data, runs the
//! transactions, checks the data and reports. The `hotrow` command is a thin layer over it. A user's own workload
//! runs in the same way once its options implement [`WorkloadDefinition`].
//!
//! Workloads use Hotrow through its facade only, as any other program would.

pub mod array;
pub mod datatypes;
mod definition;
mod driver;
mod error;
#[cfg(feature = "sim")]
pub mod explore;
mod latency;
mod loading;
mod observer;
mod options;
mod registry;
mod report;
mod run;
pub mod stress;
pub mod tables32;
mod think;
pub mod tickets;
pub mod tpcc;
mod workload;
pub mod ycsb;

pub use definition::{BaselineInfo, WorkloadDefinition, WorkloadInfo, WorkloadOptions};
#[cfg(feature = "sim")]
pub use driver::simulated::VirtualSettings;
pub use driver::{Counts, KindCounts, Measurement, Settings, measure};
pub use error::BenchError;
pub use hotrow::{Counter, CounterValue};
pub use latency::{Latencies, LatencyDistribution, LatencySummary};
pub use observer::{Host, Observer, Unobserved};
pub use options::{OptionError, OptionInfo, OptionValues};
pub use registry::WORKLOADS;
pub use report::{CounterReport, HotRow, KindReport, Machine, Memory, RunReport};
pub use run::{BaselineRun, On, RunOutcome, RunSpec, prepare_and_run};
pub use workload::{Check, End, Ran, Workload};
