//! What a workload is.

use hotrow::{Database, Protocol, Worker};
use serde::Serialize;

/// Transactions to measure, on data that was loaded into an engine.
///
/// The driver gives each thread a worker and a client of its own, and has it run one transaction after the
/// other. A workload starts no threads of its own after it was loaded.
///
/// Where a transaction takes less than some microseconds, `#[inline]` at [`prepare`](Self::prepare) and
/// [`run_one`](Self::run_one) lets them become a part of the driver's loop; otherwise that depends on how the compiler
/// happens to split the crate.
pub trait Workload<P: Protocol>: Sync {
    /// One worker's own state: its random numbers, its counts.
    type Client: Send;

    /// Names of the transaction types, in the order of their numbers (`"new_order"` and so on).
    fn kinds(&self) -> &'static [&'static str];

    /// The client of worker `worker` of `workers`.
    fn client(&self, worker: usize, workers: usize, seed: u64) -> Self::Client;

    /// The database, if all transactions are procedures on one: what a delay before each operation can be
    /// asked of ([`WorkloadInfo::runs_procedures`](crate::WorkloadInfo::runs_procedures)).
    fn database_mut(&mut self) -> Option<&mut Database<P>> {
        None
    }

    /// Draws the input of the next transaction, which [`run_one`](Self::run_one) will then run. Called
    /// before each of them, outside the time that counts as latency.
    fn prepare(&self, _client: &mut Self::Client) {}

    /// Runs one transaction to its end, retries included.
    fn run_one(&self, worker: &mut Worker<P>, client: &mut Self::Client) -> Ran;

    /// The workload's own checks after a run, while nothing else runs. `clients` are those of all workers;
    /// what they have counted includes the warm-up.
    fn checks(&self, worker: &mut Worker<P>, clients: Vec<Self::Client>) -> Vec<Check>;

    /// Bytes of keys and rows held now.
    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64;
}

/// What became of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The number of its type.
    pub kind: usize,
    /// How it ended.
    pub end: End,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It rolled back because the workload wants some to.
    RolledBack,
    /// It failed in a way that the workload does not know: the run stops with this message.
    Failed(String),
}

/// The verdict on one property of the data after a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Check {
    /// The verdict on a property that `found` either confirms or contradicts in words.
    pub fn new(name: impl Into<String>, found: Result<(), String>) -> Self {
        Self { name: name.into(), passed: found.is_ok(), detail: found.err() }
    }
}
