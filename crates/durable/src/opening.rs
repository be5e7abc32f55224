//! Opening a database at a directory.

use crate::checkpoint::make_when_long;
use crate::error::OpenError;
use crate::settings::{LogSettings, settings_of};
use crate::shape::Shape;
use crate::state::{Durable, RecoveredRows, known_of};
use crate::steps::{ClockOfEngine, LogSteps};
use crate::storage::{Directory, Storage};
use crate::{LogOptions, Progress};
use hotrow_core::{CommitStamp, Engine, Protocol};
use hotrow_log::{Epochs, Log, Logger, Opened, RecoveredRow, Stamp};
use hotrow_sync::{Arc, thread};
use hotrow_tables::{Database, DatabaseBuilder, inside};
use std::borrow::BorrowMut;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::Path;

/// The methods of a [`DatabaseBuilder`] that open a database with a log.
pub trait DurableBuilder<P: Protocol>: Into<DatabaseBuilder<P>> + BorrowMut<DatabaseBuilder<P>> {
    /// Sets the options of the log: when commits are acknowledged, and how much room it takes.
    #[must_use]
    fn log(mut self, options: LogOptions) -> Self {
        settings_of(self.borrow_mut()).options = options;
        self
    }

    /// Makes a [checkpoint](crate::DurableDatabase::checkpoint) by itself, on a thread of its own, whenever so many bytes were logged since the last one,
    /// in this process or in earlier ones, or half of [those that the log may have](LogOptions::space_bytes_max). Without it, or with 0,
    /// only the program makes them. If one fails, [`last_checkpoint_error`](crate::DurableDatabase::last_checkpoint_error) says why, and it is tried again.
    #[must_use]
    fn checkpoint_after(mut self, bytes: u64) -> Self {
        settings_of(self.borrow_mut()).checkpoint_after = (bytes > 0).then_some(bytes);
        self
    }

    /// Sets the number of threads that recover; one for each of the machine's unless it is set.
    #[must_use]
    fn recovery_threads(mut self, threads: NonZeroUsize) -> Self {
        settings_of(self.borrow_mut()).recovery_threads = Some(threads);
        self
    }

    /// Calls a function from time to time while the database recovers, for a progress bar.
    #[must_use]
    fn on_recovery(mut self, tell: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        settings_of(self.borrow_mut()).on_progress = Some(Box::new(tell));
        self
    }

    /// Opens the database of a directory: an empty one for an empty directory, or for one that is made here. All acknowledged commits
    /// are recovered, and [`create`](hotrow_tables::TableBuilder::create) finds the rows of a table by its name. One process at a time has
    /// the directory.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; no file is changed then. Remains of the last writes before a crash, of which nobody was told, are no error: they
    /// are cut off, and [reported](crate::DurableDatabase::open_report).
    fn open_at(self, directory: impl AsRef<Path>) -> Result<Database<P>, OpenError> {
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
    fn open_in(mut self, storage: Arc<dyn Storage>) -> Result<Database<P>, OpenError> {
        let checkpoint_after = settings_of(self.borrow_mut()).checkpoint_after;
        let start = |opened: Opened, epochs| Ok((opened.start(epochs)?, ()));
        let (durable, ()) = open(self.into(), storage, start)?;
        if let Some(bytes) = checkpoint_after {
            let (weak, checkpoint) = (Arc::downgrade(&durable), durable.checkpoint.clone());
            thread::spawn(move || make_when_long(&weak, &checkpoint, bytes));
        }
        Ok(durable.database())
    }

    /// As [`open_in`](Self::open_in), but leaves it to the caller to [run](Logger::run) the logger: on a thread that is bound to a
    /// processor, or on a virtual core of a simulation. Until it runs nothing becomes durable, and transactions that wait for that wait.
    /// Checkpoints are made by the program only.
    ///
    /// # Errors
    ///
    /// As [`open_at`](Self::open_at).
    fn open_without_threads(self, storage: Arc<dyn Storage>) -> Result<(Database<P>, Logger), OpenError> {
        let (durable, logger) = open(self.into(), storage, Opened::start_without_thread)?;
        Ok((durable.database(), logger))
    }
}

impl<P: Protocol> DurableBuilder<P> for DatabaseBuilder<P> {}

/// The structures of a log that count, and their rows.
pub(crate) struct Recovered {
    pub(crate) known: HashMap<String, (u32, Arc<Shape>)>,
    pub(crate) rows: HashMap<u32, Arc<RecoveredRows>>,
    /// The stamp of the last commit.
    pub(crate) last: Stamp,
}

/// Reads all rows of a log.
pub(crate) fn recover(
    opened: &mut Opened,
    threads: usize,
    tell: &(dyn Fn(Progress) + Sync),
) -> Result<Recovered, OpenError> {
    let known = known_of(opened.catalog())?;
    let rows = known
        .iter()
        .map(|(name, (structure, shape))| (*structure, Arc::new(RecoveredRows::new(name, shape))));
    let rows: HashMap<_, _> = rows.collect();
    let add = |row: RecoveredRow<'_>| {
        if let Some(rows) = rows.get(&row.structure) {
            rows.add(&row);
        }
    };
    let threads = if thread::is_simulated() { 1 } else { threads };
    let last = opened.replay(threads, tell, &add)?;
    Ok(Recovered { known, rows, last })
}

fn open<P: Protocol, L>(
    mut builder: DatabaseBuilder<P>,
    storage: Arc<dyn Storage>,
    start: impl FnOnce(Opened, Box<dyn Epochs>) -> Result<(Log, L), hotrow_log::OpenError>,
) -> Result<(Arc<Durable<P>>, L), OpenError> {
    let (options, policy) = inside::engine_options(&builder)?;
    let LogSettings { options: log_options, recovery_threads, on_progress, .. } =
        std::mem::take(settings_of(&mut builder));
    let mode = log_options.mode;
    let mut opened = Log::open(storage, log_options)?;
    let tell = |progress| {
        if let Some(tell) = &on_progress {
            tell(progress);
        }
    };
    let threads = recovery_threads.map_or_else(thread::parallelism, NonZeroUsize::get);
    let Recovered { known, rows, last } = recover(&mut opened, threads, &tell)?;
    let report = opened.report().clone();
    let steps = LogSteps::new(mode);
    let engine = Engine::with_commit_steps(&options, policy, steps.clone());
    engine.continue_after(CommitStamp::new(last.epoch, last.order));
    let (log, logger) = start(opened, Box::new(ClockOfEngine(engine.epoch_clock())))?;
    steps.start(log.clone());
    Ok((Arc::new(Durable::new(&engine, log, report, known, rows)), logger))
}
