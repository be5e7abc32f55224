//! The core's ways to the log.

use hotrow_core::{CommitStamp, CommitSteps, EpochClock, Protocol, WorkerLog};
use hotrow_log::{Buffer, Epochs, Log, Mode, Stamp};
use hotrow_sync::{Arc, OnceLock};
use std::pin::Pin;

/// The steps of an engine with a log, which is started after the engine is made.
#[derive(Clone, Default)]
pub(super) struct LogSteps(Arc<OnceLock<(Log, Mode)>>);

impl LogSteps {
    pub(super) fn start(&self, log: Log, mode: Mode) {
        assert!(self.0.set((log, mode)).is_ok(), "a log is started once");
    }
}

impl<P: Protocol> CommitSteps<P> for LogSteps {
    fn has_log(&self) -> bool {
        true
    }

    fn worker_log(&self) -> Option<Box<dyn WorkerLog>> {
        let (log, mode) = self.0.get().expect("the log is started before there are workers");
        let waits = !matches!(mode, Mode::Async { .. });
        Some(Box::new(WorkersLog { buffer: log.buffer(), log: log.clone(), waits }))
    }
}

struct WorkersLog {
    buffer: Buffer,
    log: Log,
    waits: bool,
}

impl WorkerLog for WorkersLog {
    fn admit(&mut self) -> Result<(), String> {
        self.buffer.admit().map_err(|failure| failure.to_string())
    }

    fn append(&mut self, stamp: CommitStamp, entries: &[u8]) {
        self.buffer.append(Stamp { epoch: stamp.epoch(), order: stamp.order() }, entries);
    }

    fn acknowledge(&mut self, epoch: u64) -> Result<(), String> {
        if self.waits {
            return self.log.wait_durable(epoch).map_err(|failure| failure.to_string());
        }
        self.log.failure().map_or(Ok(()), |failure| Err(failure.to_string()))
    }

    fn has_room(&self) -> Result<bool, String> {
        self.buffer.has_room().map_err(|failure| failure.to_string())
    }

    fn acknowledgement(
        &self,
        epoch: u64,
    ) -> Option<Pin<Box<dyn Future<Output = Result<(), String>> + Send>>> {
        if self.waits {
            let durable = self.log.when_durable(epoch);
            return Some(Box::pin(async { durable.await.map_err(|failure| failure.to_string()) }));
        }
        let failure = self.log.failure()?;
        Some(Box::pin(std::future::ready(Err(failure.to_string()))))
    }
}

/// The clock by which the log closes its batches.
pub(super) struct ClockOfEngine(pub(super) EpochClock);

impl Epochs for ClockOfEngine {
    fn advance(&mut self) -> u64 {
        self.0.advance()
    }
}
