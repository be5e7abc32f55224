//! Durability: what the core knows of a log.
//!
//! A commit of an engine with a log appends one record to its worker's [`WorkerLog`], between its halves: everything that it will
//! write is locked, and nothing can fail any more. It releases its locks without waiting for any device. Only then does the
//! worker [wait](WorkerLog::acknowledge), holding nothing: its caller is told of a commit when that is durable, and with it all
//! commits that the transaction has read from, whose stamps have the same epoch or an earlier one (Silo §4.10; dbx-tc §5;
//! plor §5 flushes before it releases).

use crate::abort::Error;
use crate::attempt::Attempt;
use crate::commit::{CommitStamp, Commits};
use crate::engine::Engine;
use crate::profile::Profile;
use crate::protocol::Protocol;
use crate::snapshot::{Announcement, Snapshots};
use crate::transaction::AttemptOutcome;
use crate::waiting::Acknowledgement;
use crate::worker::Worker;
use hotrow_sync::Arc;
use std::fmt;
use std::pin::Pin;

/// When a transaction's caller is told that it has committed. What has no log is never durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// As soon as the log says so: when its record is on the device, unless the log itself is only buffered.
    #[default]
    OfDatabase,
    /// At once. A crash may undo it, and then all that has read from it.
    Buffered,
}

/// The log could not make a transaction durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDurable {
    /// The log's reason.
    pub reason: String,
    /// True if the transaction has committed: others may have read its writes, and a crash may undo them. False if it was not
    /// begun.
    pub has_committed: bool,
}

impl fmt::Display for NotDurable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, has_committed } = self;
        match has_committed {
            true => write!(f, "committed in memory, but perhaps not on the device: {reason}"),
            false => write!(f, "not begun, because the log takes no more: {reason}"),
        }
    }
}

impl std::error::Error for NotDurable {}

/// A worker's way to its engine's log.
pub trait WorkerLog: Send {
    /// Waits until there is room for another record. Called before a transaction that may write, which holds nothing yet.
    ///
    /// # Errors
    ///
    /// The reason, if the log takes no more records.
    fn admit(&mut self) -> Result<(), String>;

    /// Appends the record of a commit. It must neither wait nor fail: the commit's locks are held, and it cannot be undone. A
    /// log that takes no more drops it, and [`acknowledge`](Self::acknowledge) says so.
    fn append(&mut self, stamp: CommitStamp, entries: &[u8]);

    /// Waits until all commits of the epoch, and of those before, are durable, or buffered, as the log promises.
    ///
    /// # Errors
    ///
    /// The reason, if they never will be.
    fn acknowledge(&mut self, epoch: u64) -> Result<(), String>;

    /// True if [`admit`](Self::admit) would not wait.
    ///
    /// # Errors
    ///
    /// The reason, if the log takes no more records.
    fn has_room(&self) -> Result<bool, String>;

    /// As [`acknowledge`](Self::acknowledge), as a future; `None` if there is nothing to wait for.
    fn acknowledgement(&self, epoch: u64)
    -> Option<Pin<Box<dyn Future<Output = Result<(), String>> + Send>>>;
}

/// An attempt's part in its engine's log.
pub(crate) struct Logging {
    pub(crate) log: Box<dyn WorkerLog>,
    /// The entries of the commit in progress, as its objects have [written](crate::Object::log) them.
    pub(crate) entries: Vec<u8>,
    durability: Durability,
}

impl Logging {
    /// Makes the part of a new worker, if its engine has a log.
    pub(crate) fn of<P: Protocol>(commits: Option<&Commits<P>>) -> Option<Box<Self>> {
        let log = commits?.worker_log()?;
        Some(Box::new(Self { log, entries: Vec::new(), durability: Durability::OfDatabase }))
    }
}

impl<P: Protocol> Attempt<P> {
    /// The epoch of its transaction, which has committed: see [`Worker::epoch`].
    fn epoch(&self) -> u64 {
        match (self.stamp, self.snapshot_read) {
            (Some(stamp), _) => stamp.epoch(),
            // It has seen the commits with stamps below its number.
            (None, number @ 1..) => number - 1,
            // All that it has read was stamped before now.
            (None, 0) => {
                self.announcement.as_ref().map_or(0, |announcement| announcement.snapshots().epoch())
            }
        }
    }

    /// Waits until what it has seen and done is durable, as far as its caller wants to know. It is closed.
    #[cold]
    fn acknowledge_now(&mut self) -> Result<(), NotDurable> {
        let epoch = self.epoch();
        let Some(logging) = &mut self.logging else { return Ok(()) };
        if logging.durability == Durability::Buffered || self.profile.durability == Durability::Buffered {
            return Ok(());
        }
        logging.log.acknowledge(epoch).map_err(|reason| NotDurable { reason, has_committed: true })
    }

    /// As [`acknowledge_now`](Self::acknowledge_now), as a future.
    pub(crate) fn acknowledgement(&self) -> Option<Acknowledgement> {
        let logging = self.logging.as_ref()?;
        if logging.durability == Durability::Buffered || self.profile.durability == Durability::Buffered {
            return None;
        }
        logging.log.acknowledgement(self.epoch())
    }

    /// As [`Worker::acknowledge`], for the only attempt of a transaction.
    pub(crate) fn acknowledge(&mut self) -> AttemptOutcome {
        match &self.logging {
            None => AttemptOutcome::Done,
            Some(_) => {
                self.acknowledge_now().map_or_else(AttemptOutcome::NotDurable, |()| AttemptOutcome::Done)
            }
        }
    }
}

impl<E> Error<E> {
    /// The error of a transaction that was not begun because the log takes no more.
    pub(crate) fn no_room(reason: String) -> Self {
        Error::NotDurable(NotDurable { reason, has_committed: false })
    }

    /// The error of a transaction that has committed, and that the log does not acknowledge.
    pub(crate) fn not_durable(reason: String) -> Self {
        Error::NotDurable(NotDurable { reason, has_committed: true })
    }
}

impl<P: Protocol> Worker<P> {
    /// True if a transaction that may write need not wait for room in the log.
    pub(crate) fn has_room_in_log<E>(&self, profile: &Profile) -> Result<bool, Error<E>> {
        match &self.attempt.logging {
            Some(logging) if !profile.only_reads() => logging.log.has_room().map_err(Error::no_room),
            _ => Ok(true),
        }
    }

    /// Sets when the callers of its transactions are told that they have committed. A [`Profile`] may promise less for one
    /// transaction. Without a log it has no effect.
    pub fn set_durability(&mut self, durability: Durability) {
        if let Some(logging) = &mut self.attempt.logging {
            logging.durability = durability;
        }
    }

    /// The epoch of its last transaction, if that has committed: once all commits of this epoch are durable, so are the
    /// transaction and all that it has read. See [`CommitStamp::epoch`].
    pub fn epoch(&self) -> u64 {
        self.attempt.epoch()
    }

    /// Waits until the log has room, before a transaction that may write.
    #[inline(always)]
    pub(crate) fn admit_to_log<E>(&mut self, profile: &Profile) -> Result<(), Error<E>> {
        match &mut self.attempt.logging {
            Some(logging) if !profile.only_reads() => wait_for_room(logging),
            _ => Ok(()),
        }
    }

    /// Waits until what a transaction says to its caller is durable. Nothing is held.
    #[inline(always)]
    pub(crate) fn acknowledge<R, E>(&mut self, result: Result<R, Error<E>>) -> Result<R, Error<E>> {
        // A body's own error tells what it has read, as a result does.
        if self.attempt.logging.is_some() && matches!(result, Ok(_) | Err(Error::Rollback(_))) {
            let acknowledged = self.attempt.acknowledge_now();
            if let (Ok(_), Err(failure)) = (&result, acknowledged) {
                return Err(Error::NotDurable(failure));
            }
        }
        result
    }
}

#[cold]
fn wait_for_room<E>(logging: &mut Logging) -> Result<(), Error<E>> {
    logging.log.admit().map_err(|reason| Error::NotDurable(NotDurable { reason, has_committed: false }))
}

/// The clock of an engine's stamps, for its log. It does not keep the engine alive.
#[derive(Clone)]
pub struct EpochClock(Arc<Snapshots>);

impl fmt::Debug for EpochClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EpochClock").field(&self.epoch()).finish()
    }
}

impl EpochClock {
    /// The present epoch.
    pub fn epoch(&self) -> u64 {
        self.0.epoch()
    }

    /// Begins the next epoch, and waits for the commits in progress that may have an earlier one. Returns the new epoch: all
    /// commits of earlier ones have been appended, and there will be no others.
    pub fn advance(&self) -> u64 {
        self.0.advance()
    }
}

/// Commits that no transaction makes, for rows that are loaded into tables beside transactions. They appear in the log only.
pub struct OutsideCommits<P: Protocol> {
    commits: Arc<Commits<P>>,
    announcement: Announcement,
    log: Box<dyn WorkerLog>,
    epoch: u64,
}

impl<P: Protocol> fmt::Debug for OutsideCommits<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideCommits").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl<P: Protocol> OutsideCommits<P> {
    /// Calls a function that makes changes and returns their entries, and logs these. A snapshot that is opened later sees the
    /// changes.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log takes no more records; then the function was not called.
    pub fn commit(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), NotDurable> {
        self.log.admit().map_err(|reason| NotDurable { reason, has_committed: false })?;
        let epoch = self.announcement.begin().expect("an engine with a log stamps all commits");
        let mut entries = Vec::new();
        change(&mut entries);
        self.log.append(self.commits.draw(epoch), &entries);
        self.epoch = epoch;
        self.announcement.end();
        Ok(())
    }

    /// Waits until all of them are durable, or buffered, as the log promises.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if they never will be.
    pub fn acknowledge(&mut self) -> Result<(), NotDurable> {
        self.log.acknowledge(self.epoch).map_err(|reason| NotDurable { reason, has_committed: true })
    }
}

impl<P: Protocol> Engine<P> {
    /// The clock of the stamps of its commits.
    pub fn epoch_clock(&self) -> EpochClock {
        EpochClock(self.shared.snapshots.clone())
    }

    /// Goes on behind a stamp, which a log has recovered. Call it before any transaction.
    pub fn continue_after(&self, stamp: CommitStamp) {
        self.shared.snapshots.continue_after(stamp.epoch());
        if let Some(commits) = &self.shared.commits {
            commits.continue_after(stamp.order());
        }
    }

    /// Begins to log changes that no transaction makes. `None` if the engine has no log.
    pub fn outside_commits(&self) -> Option<OutsideCommits<P>> {
        let commits = self.shared.commits.clone()?;
        let log = commits.worker_log()?;
        Some(OutsideCommits {
            commits,
            announcement: Announcement::new(&self.shared.snapshots),
            log,
            epoch: 0,
        })
    }
}
