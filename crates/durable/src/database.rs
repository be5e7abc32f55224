//! Databases with a log, as programs use them.

use crate::checkpoint::checkpoint_now;
use crate::error::CheckpointError;
use crate::state::{self, Durable};
use crate::storage::Storage;
use crate::ticket::{Ticket, not_durable};
use crate::{LogReport, OpenReport, objects, sequence};
use hotrow_core::{Abort, Durability, Error, Misuse, NotDurable, Profile, Protocol, Transaction, Value};
use hotrow_objects::{Sequence, TArray, TBox, TCounter};
use hotrow_stored::Stored;
use hotrow_sync::{Arc, lock};
use hotrow_tables::Database;
use std::borrow::Borrow;
use std::panic::Location;

/// The methods of a [`Database`] that has a log. In one that lives in memory, nothing is waited for, and there is nothing to keep.
pub trait DurableDatabase<P: Protocol>: Borrow<Database<P>> {
    /// Waits until everything that was committed before the call is on the device. In a database without a directory it does nothing.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log has failed.
    fn flush(&self) -> Result<(), NotDurable> {
        state::of(self.borrow()).map_or(Ok(()), Durable::flush)
    }

    /// Writes everything to the device and ends the log, after a checkpoint that is being made: transactions that write are refused from now
    /// on. Once the handles are dropped, too, the directory can be opened again. Dropping the last handle without it does the same,
    /// but tells nobody if it fails, and does not wait for a checkpoint that the database makes by itself: the directory may be in use a little
    /// longer.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log has failed.
    fn close(&self) -> Result<(), NotDurable> {
        let Some(durable) = state::of(self.borrow()) else { return Ok(()) };
        let ended = durable.log.close().map_err(|failure| not_durable(&failure));
        *lock(&durable.checkpoint) = true;
        ended
    }

    /// Copies the database to another storage, while transactions run: a state that is at least as new as the call. Open it as any other.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; what there is of the copy is useless then.
    fn backup(&self, to: &dyn Storage) -> Result<(), CheckpointError> {
        let durable = state::of(self.borrow()).ok_or(CheckpointError::NoLog)?;
        Ok(durable.log.backup(to)?)
    }

    /// The log's counts so far. `None` in a database without a directory.
    fn log_report(&self) -> Option<LogReport> {
        state::of(self.borrow()).map(|durable| durable.log.report())
    }

    /// The findings at the opening of the database. `None` in a database without a directory.
    fn open_report(&self) -> Option<&OpenReport> {
        state::of(self.borrow()).map(|durable| &durable.report)
    }

    /// Writes a checkpoint: all rows of durable tables, as they are in one [snapshot](hotrow_core::Engine::snapshot_strict), beside
    /// transactions. Recovery begins with the newest one, and the log before it is deleted. Returns its size in bytes. Under a protocol
    /// that admits one worker it takes none.
    ///
    /// # Errors
    ///
    /// [`CheckpointError`]; the last checkpoint and the log are still there then.
    #[track_caller]
    fn checkpoint(&self) -> Result<u64, CheckpointError> {
        let durable = state::of(self.borrow()).ok_or(CheckpointError::NoLog)?;
        let _one_at_a_time = lock(&durable.checkpoint);
        checkpoint_now(durable, Location::caller())
    }

    /// The error of the last checkpoint that the database tried to make [by itself](crate::DurableBuilder::checkpoint_after); `None` if a
    /// checkpoint was made since. It tries again, after a while that doubles with each failure, up to ten seconds.
    /// [`LogReport`] counts checkpoints and failures.
    fn last_checkpoint_error(&self) -> Option<Arc<CheckpointError>> {
        lock(&state::of(self.borrow())?.checkpoint_error).clone()
    }

    /// Runs a transaction as [`transact`](hotrow_core::Engine::transact) does, but returns as soon as it has committed, with a ticket for
    /// its durability. What it has committed may be undone by a crash until the ticket says otherwise.
    ///
    /// # Errors
    ///
    /// As [`Engine::transact`](hotrow_core::Engine::transact).
    #[track_caller]
    fn transact_with_ticket<R>(
        &self,
        mut body: impl FnMut(&mut Transaction<'_, P>) -> Result<R, Abort>,
    ) -> Result<(R, Ticket), Error> {
        let place = Location::caller();
        self.borrow().with_worker(|worker| {
            let profile = Profile { durability: Durability::Buffered, ..Profile::UNKNOWN };
            let result = worker.called_from(place).try_transact_as(profile, &mut body)?;
            Ok((result, self.ticket(worker.epoch())))
        })
    }

    /// The epoch up to which all commits are durable: see [`Worker::epoch`](hotrow_core::Worker::epoch). The greatest number in a
    /// database without a directory.
    fn durable_epoch(&self) -> u64 {
        state::of(self.borrow()).map_or(u64::MAX, |durable| durable.log.durable_epoch())
    }

    /// Returns a ticket for all commits up to an epoch: that of a worker's [last transaction](hotrow_core::Worker::epoch), say.
    fn ticket(&self, epoch: u64) -> Ticket {
        Ticket::new(state::of(self.borrow()).map(|durable| (durable.log.clone(), epoch)))
    }

    /// Returns the box of this name: the one that was made before, or recovered, or else a new one that holds `value`. It survives the
    /// process: the database is one that was [opened at a directory](crate::DurableBuilder::open_at). See [`hotrow_durable`](crate).
    ///
    /// ```
    /// use hotrow_durable::{DurableBuilder, DurableDatabase};
    /// use hotrow_tables::Database;
    ///
    /// # let directory = std::env::temp_dir().join(format!("hotrow-box-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// let db = Database::builder().open_at(&directory)?;
    /// let limit = db.durable_box("limit", 1_000_u64)?;
    /// db.transact(|tx| limit.set(tx, 500))?;
    /// drop((limit, db));
    ///
    /// let db = Database::builder().open_at(&directory)?;
    /// let limit = db.durable_box("limit", 1_000_u64)?;
    /// assert_eq!(db.transact(|tx| limit.get(tx))?, 500);
    /// # drop((limit, db));
    /// # std::fs::remove_dir_all(&directory)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`TableMisuse::NoDirectory`](hotrow_tables::TableMisuse::NoDirectory) if the database lives in memory; [`TableMisuse::OtherTypes`](hotrow_tables::TableMisuse::OtherTypes) if the name has a table, or an object of another kind or
    /// type of value, in this run, [`TableMisuse::OtherSchema`](hotrow_tables::TableMisuse::OtherSchema) if it had one in an earlier one; [`TableMisuse::Malformed`](hotrow_tables::TableMisuse::Malformed) if what was recovered cannot be read; [`Misuse::Unsupported`] if the log has failed, or the
    /// value cannot be written.
    fn durable_box<T: Value + Stored>(&self, name: &str, value: T) -> Result<Arc<TBox<T, P>>, Misuse> {
        objects::find_or_make(self.borrow(), name, vec![value])
    }

    /// Returns the counter of this name, as [`durable_box`](Self::durable_box) does: a new one starts at `value`.
    ///
    /// # Errors
    ///
    /// As [`durable_box`](Self::durable_box).
    fn durable_counter(&self, name: &str, value: i64) -> Result<Arc<TCounter<P>>, Misuse> {
        objects::find_or_make(self.borrow(), name, vec![value])
    }

    /// Returns the array of this name, as [`durable_box`](Self::durable_box) does. `element` makes the elements from their indexes. They
    /// count in a new array, and behind the end of one that was recovered and was shorter.
    ///
    /// # Errors
    ///
    /// As [`durable_box`](Self::durable_box); [`TableMisuse::OtherTypes`](hotrow_tables::TableMisuse::OtherTypes) if the recovered array is longer, or if this run has made one of
    /// another length.
    fn durable_array<T: Value + Stored>(
        &self,
        name: &str,
        length: usize,
        element: impl FnMut(usize) -> T,
    ) -> Result<Arc<TArray<T, P>>, Misuse> {
        objects::find_or_make(self.borrow(), name, (0..length).map(element).collect())
    }

    /// Returns the sequence of this name, as [`durable_box`](Self::durable_box) does: the first number of a new one is `first`. One that was
    /// recovered goes on behind all numbers that a transaction which survives has drawn. Numbers are reserved in blocks, without waiting
    /// for the device: each opening leaves a gap of 1,536 numbers at most.
    ///
    /// # Errors
    ///
    /// As [`durable_box`](Self::durable_box).
    fn durable_sequence(&self, name: &str, first: u64) -> Result<Arc<Sequence>, Misuse> {
        sequence::find_or_make(self.borrow(), name, first)
    }
}

impl<P: Protocol> DurableDatabase<P> for Database<P> {}
