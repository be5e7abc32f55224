//! The core's ways to the log.

use crate::followers::Followers;
use hotrow_core::{CommitStamp, CommitSteps, EpochClock, LogFollowers, Protocol, WorkerLog};
use hotrow_log::{Buffer, Epochs, Log, Mode, Stamp};
use hotrow_sync::{Arc, OnceLock};
use std::pin::Pin;

/// The steps of an engine with a log, which is started after the engine is made.
#[derive(Clone)]
pub(crate) struct LogSteps {
    log: Arc<OnceLock<Arc<Followers>>>,
    /// True if commits are acknowledged when they are on the device.
    awaits_device: bool,
}

impl LogSteps {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { log: Arc::default(), awaits_device: !matches!(mode, Mode::Async { .. }) }
    }

    pub(crate) fn start(&self, log: Log) {
        assert!(self.log.set(Arc::new(Followers::new(log))).is_ok(), "a log is started once");
    }
}

impl<P: Protocol> CommitSteps<P> for LogSteps {
    fn has_log(&self) -> bool {
        true
    }

    fn awaits_device(&self) -> bool {
        self.awaits_device
    }

    fn worker_log(&self) -> Option<Box<dyn WorkerLog>> {
        let followers = self.log.get().expect("the log is started before there are workers").clone();
        let log = followers.log().clone();
        Some(Box::new(WorkersLog { buffer: log.buffer(), log, followers, waits: self.awaits_device }))
    }
}

struct WorkersLog {
    buffer: Buffer,
    log: Log,
    followers: Arc<Followers>,
    waits: bool,
}

impl WorkerLog for WorkersLog {
    fn admit(&mut self) -> Result<(), String> {
        self.buffer.admit().map_err(|failure| failure.to_string())
    }

    fn check(&self) -> Result<(), String> {
        self.buffer.check().map_err(|failure| failure.to_string())
    }

    fn append(&mut self, stamp: CommitStamp, entries: &[u8]) {
        self.buffer.append(Stamp { epoch: stamp.epoch(), order: stamp.order() }, entries);
    }

    fn acknowledge(&mut self, epoch: u64) -> Result<(), String> {
        if self.waits {
            return self.buffer.wait_appended(epoch).map_err(|failure| failure.to_string());
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
            let durable = self.log.when_appended(epoch);
            return Some(Box::pin(async { durable.await.map_err(|failure| failure.to_string()) }));
        }
        let failure = self.log.failure()?;
        Some(Box::pin(std::future::ready(Err(failure.to_string()))))
    }

    fn followers(&self) -> Arc<dyn LogFollowers> {
        self.followers.clone()
    }
}

/// The clock by which the log closes its batches.
pub(crate) struct ClockOfEngine(pub(crate) EpochClock);

impl Epochs for ClockOfEngine {
    fn advance(&mut self) -> u64 {
        self.0.advance()
    }

    fn acknowledge(&mut self, epoch: u64) {
        self.0.acknowledge(epoch);
    }

    fn failed(&mut self) {
        self.0.end_acknowledging();
    }
}
