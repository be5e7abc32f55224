//! Why a benchmark did not come to its end.

use crate::options::OptionError;
use hotrow::Misuse;
use hotrow::protocols::UnknownProtocol;

/// Why a run could not begin, or did not come to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A workload's option has no such name, or a value it cannot have.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No protocol has the name.
    #[error(transparent)]
    UnknownProtocol(#[from] UnknownProtocol),
    /// A run without threads.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// The engine was asked for what it cannot do (more workers than the protocol admits).
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The data could not be loaded.
    #[error("loading failed: {0}")]
    Load(String),
    /// A transaction failed in a way that its workload does not know.
    #[error("a {kind} transaction failed on worker {worker}: {message}")]
    Transaction {
        /// The transaction's type.
        kind: &'static str,
        /// The worker's number.
        worker: usize,
        /// What went wrong.
        message: String,
    },
    /// The observer ended the run.
    #[error("ended after {:.1} s: {reason}", after.as_secs_f64())]
    Ended {
        /// How long the run had gone on, warm-up included.
        after: std::time::Duration,
        /// Why.
        reason: String,
    },
    /// A simulation could not begin, or did not come to its end.
    #[error("simulation: {0}")]
    Simulation(String),
    /// A worker's thread panicked.
    #[error("worker {worker} panicked: {message}")]
    Panicked {
        /// The worker's number.
        worker: usize,
        /// The panic's message.
        message: String,
    },
    /// The system refused a thread.
    #[error("cannot start the thread of worker {worker}: {reason}")]
    Thread {
        /// The worker's number.
        worker: usize,
        /// The system's reason.
        reason: std::io::Error,
    },
}

impl BenchError {
    /// Whether other arguments would have avoided it.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Option(_)
                | Self::UnknownProtocol(_)
                | Self::NoThreads
                | Self::Misuse(Misuse::TooManyWorkers { .. })
        )
    }
}
