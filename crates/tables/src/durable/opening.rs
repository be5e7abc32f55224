//! Opening a database at a directory.

use super::checkpoint::make_when_long;
use super::error::{CheckpointError, OpenError};
use super::settings::LogSettings;
use super::state::{Durable, RecoveredRows, known_of};
use super::steps::{ClockOfEngine, LogSteps};
use super::storage::{Directory, Storage};
use super::{Failure, LogOptions, LogReport, OpenReport, Progress};
use crate::database::{Database, DatabaseBuilder};
use hotrow_core::{CommitStamp, Engine, NotDurable, Protocol};
use hotrow_log::{Epochs, Log, Logger, Opened, RecoveredRow};
use hotrow_sync::{Arc, lock, thread};
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;

impl<P: Protocol> DatabaseBuilder<P> {
    /// Sets the options of the log: when commits are acknowledged, and how much room it takes.
    #[must_use]
    pub fn log(mut self, options: LogOptions) -> Self {
        self.log.options = options;
        self
    }

    /// Makes a [checkpoint](Database::checkpoint) by itself, on a thread of its own, whenever so many bytes were logged since the last one,
    /// in this process or in earlier ones, or half of [those that the log may have](LogOptions::space_bytes_max). Without it, or with 0,
    /// only the program makes them. If one fails, [`last_checkpoint_error`](Database::last_checkpoint_error) says why, and it is tried again.
    #[must_use]
    pub fn checkpoint_after(mut self, bytes: u64) -> Self {
        self.log.checkpoint_after = (bytes > 0).then_some(bytes);
        self
    }

    /// Sets the number of threads that recover; one for each of the machine's unless it is set.
    #[must_use]
    pub fn recovery_threads(mut self, threads: NonZeroUsize) -> Self {
        self.log.recovery_threads = Some(threads);
        self
    }

    /// Calls a function from time to time while the database recovers, for a progress bar.
    #[must_use]
    pub fn on_recovery(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.log.on_progress = Some(Box::new(tell));
        self
    }

    /// Opens the database of a directory: an empty one for an empty directory, or for one that is made here. All acknowledged commits
    /// are recovered, and [`create`](crate::TableBuilder::create) finds the rows of a table by its name. One process at a time has
    /// the directory.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; no file is changed then. Remains of the last writes before a crash, of which nobody was told, are no error: they
    /// are cut off, and [reported](Database::open_report).
    pub fn open_at(self, directory: impl AsRef<Path>) -> Result<Database<P>, OpenError> {
        let path = directory.as_ref();
        let storage = Directory::new(path);
        let storage = storage.map_err(|reason| OpenError::Directory { path: path.to_owned(), reason })?;
        self.open_in(Arc::new(storage))
    }

    /// As [`open_at`](Self::open_at), for a storage that is no directory.
    ///
    /// # Errors
    ///
    /// As [`open_at`](Self::open_at).
    #[inline(never)]
    pub fn open_in(self, storage: Arc<dyn Storage>) -> Result<Database<P>, OpenError> {
        let checkpoint_after = self.log.checkpoint_after;
        let (database, ()) = self.open_with(storage, |opened, epochs| Ok((opened.start(epochs)?, ())))?;
        if let Some(bytes) = checkpoint_after {
            let weak = database.downgrade();
            let checkpoint = database.durable().expect("made with a log").checkpoint.clone();
            thread::spawn(move || make_when_long(&weak, &checkpoint, bytes));
        }
        Ok(database)
    }

    /// As [`open_in`](Self::open_in), but leaves it to the caller to [run](Logger::run) the logger: on a thread that is bound to a
    /// processor, or on a virtual core of a simulation. Until it runs nothing becomes durable, and transactions that wait for that wait.
    /// Checkpoints are made by the program only.
    ///
    /// # Errors
    ///
    /// As [`open_at`](Self::open_at).
    pub fn open_without_threads(self, storage: Arc<dyn Storage>) -> Result<(Database<P>, Logger), OpenError> {
        self.open_with(storage, Opened::start_without_thread)
    }

    fn open_with<L>(
        self,
        storage: Arc<dyn Storage>,
        start: impl FnOnce(Opened, Box<dyn Epochs>) -> Result<(Log, L), hotrow_log::OpenError>,
    ) -> Result<(Database<P>, L), OpenError> {
        let (options, policy) = (self.protocol_options()?, self.policy);
        let LogSettings { options: log_options, recovery_threads, on_progress, .. } = self.log;
        let mode = log_options.mode;
        let mut opened = Log::open(storage, log_options)?;
        let catalog = opened.catalog().to_vec();
        let known = known_of(&catalog)?;
        let rows = known
            .iter()
            .map(|(name, (structure, shape))| (*structure, Arc::new(RecoveredRows::new(name, shape))));
        let rows: HashMap<_, _> = rows.collect();
        let add = |row: RecoveredRow<'_>| {
            if let Some(rows) = rows.get(&row.structure) {
                rows.add(&row);
            }
        };
        let tell = |progress| {
            if let Some(tell) = &on_progress {
                tell(progress);
            }
        };
        let threads = recovery_threads.map_or_else(thread::parallelism, NonZeroUsize::get);
        let threads = if thread::is_simulated() { 1 } else { threads };
        let last = opened.replay(threads, &tell, &add)?;
        let report = opened.report().clone();
        let steps = LogSteps::new(mode);
        let engine = Engine::with_commit_steps(&options, policy, steps.clone());
        engine.continue_after(CommitStamp::new(last.epoch, last.order));
        let (log, logger) = start(opened, Box::new(ClockOfEngine(engine.epoch_clock())))?;
        steps.start(log.clone());
        let durable = Durable::new(log, report, known, rows);
        Ok((Database::with_log(&engine, durable), logger))
    }
}

impl<P: Protocol> Database<P> {
    /// Waits until everything that was committed before the call is on the device. In a database without a directory it does nothing.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log has failed.
    pub fn flush(&self) -> Result<(), NotDurable> {
        self.with_the_log(Log::flush)
    }

    /// Writes everything to the device and ends the log, after a checkpoint that is being made: transactions that write are refused from now
    /// on. Once the handles are dropped, too, the directory can be opened again. Dropping the last handle without it does the same,
    /// but tells nobody if it fails, and does not wait for a checkpoint that the database makes by itself: the directory may be in use a little
    /// longer.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log has failed.
    pub fn close(&self) -> Result<(), NotDurable> {
        let ended = self.with_the_log(Log::close);
        if let Some(durable) = self.durable() {
            *lock(&durable.checkpoint) = true;
        }
        ended
    }

    fn with_the_log(&self, work: impl FnOnce(&Log) -> Result<(), Failure>) -> Result<(), NotDurable> {
        let ended = self.durable().map_or(Ok(()), |durable| work(&durable.log));
        ended.map_err(|failure| NotDurable { reason: failure.to_string(), has_committed: true })
    }

    /// Copies the database to another storage, while transactions run: a state that is at least as new as the call. Open it as any other.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; what there is of the copy is useless then.
    pub fn backup(&self, to: &dyn Storage) -> Result<(), CheckpointError> {
        let durable = self.durable().ok_or(CheckpointError::NoLog)?;
        Ok(durable.log.backup(to)?)
    }

    /// The log's counts so far. `None` in a database without a directory.
    pub fn log_report(&self) -> Option<LogReport> {
        self.durable().map(|durable| durable.log.report())
    }

    /// The findings at the opening of the database. `None` in a database without a directory.
    pub fn open_report(&self) -> Option<&OpenReport> {
        self.durable().map(|durable| &durable.report)
    }
}
