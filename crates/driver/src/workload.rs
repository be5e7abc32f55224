//! The trait of workloads, and the results of their transactions and checks.

use hotrow::history::History;
use hotrow::{Database, Protocol, Worker};
use serde::{Deserialize, Serialize};

/// Transactions to measure, on data loaded into an engine.
///
/// The driver gives each thread a worker and a client of its own. The thread runs one transaction after the other.
/// A workload starts no threads after it is loaded.
///
/// If a transaction takes only a few microseconds, put `#[inline]` on [`prepare`](Self::prepare) and
/// [`run_one`](Self::run_one): the compiler can then inline them into the driver's loop. Otherwise inlining depends
/// on how the compiler splits the crate.
pub trait Workload<P: Protocol>: Sync {
    /// State of one worker: its random numbers, its counts.
    type Client: Send;

    /// Returns the names of the transaction types, in the order of their numbers (`"new_order"` and so on).
    fn kinds(&self) -> &'static [&'static str];

    /// Makes the client of worker `worker` of `workers`.
    fn client(&self, worker: usize, workers: usize, seed: u64) -> Self::Client;

    /// Returns the database if all transactions are procedures on one, so that a run can set a delay before each
    /// operation ([`WorkloadInfo::runs_procedures`](crate::WorkloadInfo::runs_procedures)).
    fn database_of_procedures(&self) -> Option<&Database<P>> {
        None
    }

    /// Draws the input of the next transaction, which [`run_one`](Self::run_one) then runs. The driver calls it
    /// before each transaction, outside the time that counts as latency.
    fn prepare(&self, _client: &mut Self::Client) {}

    /// Runs one transaction to its end, retries included.
    fn run_one(&self, worker: &mut Worker<P>, client: &mut Self::Client) -> Ran;

    /// Attempts that the transactions of a client have lost so far.
    fn aborts(&self, worker: &Worker<P>, _client: &Self::Client) -> u64 {
        worker.aborts()
    }

    /// The history of the run, if the workload records it itself, because transactions run elsewhere than in the engine.
    fn history(&self) -> Option<History> {
        None
    }

    /// Checks the data after a run, while nothing else runs. `clients` are those of all workers; their counts
    /// include the warm-up.
    fn checks(&self, worker: &mut Worker<P>, clients: Vec<Self::Client>) -> Vec<Check>;

    /// Returns the bytes of the keys and rows held now.
    fn payload_bytes(&self, worker: &mut Worker<P>) -> u64;
}

/// Result of one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// Number of the transaction's type.
    pub kind: usize,
    /// How the transaction ended.
    pub end: End,
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It committed.
    Committed,
    /// It rolled back because the workload asked for it.
    RolledBack,
    /// It failed with an error that the workload does not expect: the run stops with this message.
    Failed(String),
}

/// Verdict on one property of the data after a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the property.
    pub name: String,
    /// True if the property holds.
    pub passed: bool,
    /// Description of the contradiction, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Check {
    /// Makes a verdict: `found` is `Ok` if the property holds, otherwise it describes the contradiction.
    pub fn new(name: impl Into<String>, found: Result<(), String>) -> Self {
        Self { name: name.into(), passed: found.is_ok(), detail: found.err() }
    }
}
