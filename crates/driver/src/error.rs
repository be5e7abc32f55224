//! Errors that end a benchmark.

use crate::options::OptionError;
use hotrow::durable::OpenError;
use hotrow::protocols::UnknownProtocol;
use hotrow::{Misuse, NotDurable};

/// Reason why a run could not begin or did not complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The workload has no option of this name, or the option does not admit the value.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// No protocol has this name.
    #[error(transparent)]
    UnknownProtocol(#[from] UnknownProtocol),
    /// The run has no threads.
    #[error("a run needs at least one thread")]
    NoThreads,
    /// The engine does not support the request: more workers than the protocol admits.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// The data could not be loaded.
    #[error("loading failed: {0}")]
    Load(String),
    /// The database could not be opened in its directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log failed.
    #[error("the log failed: {0}")]
    NotDurable(NotDurable),
    /// A transaction failed with an error that its workload does not expect.
    #[error("a {kind} transaction failed on worker {worker}: {message}")]
    Transaction {
        /// Name of the transaction type.
        kind: &'static str,
        /// Number of the worker.
        worker: usize,
        /// Message of the failure.
        message: String,
    },
    /// The observer ended the run.
    #[error("ended after {:.1} s: {reason}", after.as_secs_f64())]
    Ended {
        /// Time from the start of the run to its end, warm-up included.
        after: std::time::Duration,
        /// Reason given by the observer.
        reason: String,
    },
    /// A simulation could not begin or did not complete.
    #[error("simulation: {0}")]
    Simulation(String),
    /// A worker's thread panicked.
    #[error("worker {worker} panicked: {message}")]
    Panicked {
        /// Number of the worker.
        worker: usize,
        /// Message of the panic.
        message: String,
    },
    /// The operating system refused to start a thread.
    #[error("cannot start the thread of worker {worker}: {reason}")]
    Thread {
        /// Number of the worker.
        worker: usize,
        /// Error reported by the operating system.
        reason: std::io::Error,
    },
}

impl BenchError {
    /// True if other arguments would have avoided the error.
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
