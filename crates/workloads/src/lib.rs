//! Workloads: TPC-C, YCSB, Articles, ticket sales, microbenchmarks and stress.
//!
//! [`parse`] finds a workload by its name and reads its options; the driver, which this crate shows whole
//! ([`prepare_and_run`]), loads, runs and checks it. The `hotrow` command is a thin layer over both.
//!
//! Workloads use Hotrow through its facade only, as any other program would.

pub mod array;
pub mod articles;
pub mod datatypes;
#[cfg(feature = "sim")]
pub mod explore;
#[cfg(feature = "remote")]
mod in_store;
mod registry;
mod site;
pub mod stress;
pub mod tables32;
pub mod tickets;
pub mod tpcc;
mod traces;
pub mod ycsb;

pub use hotrow_driver::*;
pub use registry::{WORKLOADS, parse};
