//! The log of a run: how its commits become durable.

use crate::error::BenchError;
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::{Database, Durability, Engine, Error, Misuse, Protocol, RetryPolicy, Worker};
use std::path::PathBuf;
use std::time::Duration;

/// When a transaction of a run counts as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogMode {
    /// There is no log.
    #[default]
    None,
    /// At once. The log is written all the same, every ten milliseconds.
    Async,
    /// When it is on the device. The worker begins the next transaction meanwhile, so that a latency ends with the acknowledgement and
    /// not with the call.
    Group,
    /// When it is on the device. The worker waits for that.
    Sync,
}

impl LogMode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Async, Self::Group, Self::Sync];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Async => "async",
            Self::Group => "group",
            Self::Sync => "sync",
        }
    }

    /// True if workers do not wait for the acknowledgement of what they have committed.
    pub(crate) fn is_acknowledged_later(self) -> bool {
        self == Self::Group
    }

    /// Makes a worker whose transactions return as the mode says.
    pub(crate) fn worker<P: Protocol>(self, engine: &Engine<P>) -> Result<Worker<P>, Misuse> {
        let mut worker = engine.worker()?;
        if self.is_acknowledged_later() {
            worker.set_durability(Durability::Buffered);
        }
        Ok(worker)
    }
}

/// The interval at which `async` writes.
const INTERVAL: Duration = Duration::from_millis(10);

/// The log of a run.
#[derive(Debug, Clone, Default)]
pub struct LogSpec {
    /// When a transaction counts as committed.
    pub mode: LogMode,
    /// The directory of the log, which is empty. Not used without a log.
    pub directory: PathBuf,
}

impl LogSpec {
    /// Opens the database of a run, with the protocol's variant of this name.
    pub(crate) fn open<P: Protocol>(&self, protocol: &str) -> Result<Database<P>, BenchError> {
        let builder = Database::builder().typed::<P>().variant(protocol).retry_policy(RetryPolicy::default());
        let mode = match self.mode {
            LogMode::None => {
                return builder.open().map_err(|error| match error {
                    Error::Misuse(misuse) => misuse.into(),
                    other => BenchError::Load(other.to_string()),
                });
            }
            LogMode::Async => Mode::Async { interval: INTERVAL },
            LogMode::Group | LogMode::Sync => Mode::Group,
        };
        Ok(builder.log(LogOptions { mode, ..LogOptions::default() }).open_at(&self.directory)?)
    }

    /// Waits until the data are on the device, before the run begins.
    pub(crate) fn loaded<P: Protocol>(&self, database: &Database<P>) -> Result<(), BenchError> {
        database.flush().map_err(BenchError::NotDurable)
    }
}
