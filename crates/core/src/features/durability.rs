//! Durability: what the core knows of a log.
//!
//! A commit of an engine with a log appends one record to its worker's [`WorkerLog`], between its halves: everything that it will
//! write is locked, and nothing can fail any more. It releases its locks without waiting for any device. Only then does the
//! worker [wait](WorkerLog::acknowledge), holding nothing: its caller is told of a commit when that is durable, and with it all
//! commits that the transaction has read from, whose stamps have the same epoch or an earlier one (Silo §4.10; dbx-tc §5;
//! plor §5 flushes before it releases).

use crate::features::retries::TransactionEnd;
use crate::features::snapshot::{Announcement, Snapshots};
use crate::features::stamp::{CommitStamp, Commits, LogFollowers, WorkerLog};
use crate::kernel::abort::Error;
use crate::kernel::abort::NotDurable;
use crate::kernel::attempt::Attempt;
use crate::kernel::engine::Engine;
use crate::kernel::object_access::AttemptOutcome;
use crate::kernel::profile::Durability;
use crate::kernel::profile::Profile;
use crate::kernel::protocol::Protocol;
use crate::kernel::worker::Worker;
use hotrow_sync::Arc;
use std::fmt;
use std::pin::Pin;

/// The end of a transaction that has committed: what is left is the log's.
#[derive(Default)]
pub(crate) struct Acknowledgement {
    /// The log's answer; `None` if the caller is told at once.
    pub(crate) until: Option<Answer>,
    /// The way to hear when the commit is on the device, if it is logged.
    pub(crate) later: Option<Later>,
}

/// The log's answer about a commit.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// The way to hear when a commit is on the device, for nobody who waits.
pub(crate) struct Later {
    followers: Arc<dyn LogFollowers>,
    epoch: u64,
}

impl Later {
    /// Has the hooks for a durable commit run when it is.
    pub(crate) fn run(self, hooks: Box<dyn FnOnce() + Send>) {
        self.followers.when_durable(self.epoch, hooks);
    }
}

/// An attempt's part in its engine's log.
pub(crate) struct Logging {
    pub(crate) log: Box<dyn WorkerLog>,
    /// The entries of the commit in progress, as its objects have [written](crate::Object::log) them.
    pub(crate) entries: Vec<u8>,
    durability: Durability,
    /// The reason for which the log had no room for the transaction, if it had none.
    refusal: Option<String>,
}

impl Logging {
    /// Checks that the log takes the record of the transaction that commits.
    ///
    /// # Errors
    ///
    /// The reason, if it does not.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        self.refusal.take().map_or_else(|| self.log.check(), Err)
    }

    /// The way to hear when the commits up to an epoch are on the device.
    fn later(&self, epoch: u64) -> Later {
        Later { followers: self.log.followers(), epoch }
    }

    /// Makes the part of a new worker, if its engine has a log.
    pub(crate) fn of<P: Protocol>(commits: Option<&Commits<P>>) -> Option<Box<Self>> {
        let log = commits?.worker_log()?;
        Some(Box::new(Self { log, entries: Vec::new(), durability: Durability::OfDatabase, refusal: None }))
    }
}

impl<P: Protocol> Attempt<P> {
    /// True if the caller of a transaction with this profile is told when a device has what it has seen and done.
    pub(crate) fn awaits_device(&self, profile: &Profile) -> bool {
        self.asks_the_log(profile) && self.snapshots().is_some_and(|snapshots| snapshots.awaits_device())
    }

    /// True if the caller of a transaction with this profile is told when the log says so.
    fn asks_the_log(&self, profile: &Profile) -> bool {
        let is_asked = |logging: &Logging| logging.durability == Durability::OfDatabase;
        profile.durability == Durability::OfDatabase && self.features.logging.as_deref().is_some_and(is_asked)
    }

    fn snapshots(&self) -> Option<&Arc<Snapshots>> {
        Some(self.features.announcement.as_ref()?.snapshots())
    }

    /// Waits until what it has seen and done is durable, as far as its caller wants to know. It is closed.
    #[cold]
    fn acknowledge_now(&mut self) -> Result<(), NotDurable> {
        let epoch = self.epoch();
        // Where nobody waits for the device, one that has only read has nothing to ask.
        if self.asks_the_log(&self.profile)
            && (self.features.has_written || self.awaits_device(&self.profile))
            && let Some(logging) = &mut self.features.logging
        {
            let acknowledged = logging.log.acknowledge(epoch);
            acknowledged.map_err(|reason| NotDurable { reason, has_committed: true })?;
        }
        if let Some(snapshots) = self.snapshots() {
            snapshots.tell(epoch);
        }
        Ok(())
    }

    /// As [`acknowledge_now`](Self::acknowledge_now), as a future. `None` if there is nothing to wait for, and the caller is told at once.
    fn answer(&self) -> Option<Answer> {
        let (epoch, snapshots) = (self.epoch(), self.snapshots()?.clone());
        let has_asked =
            self.asks_the_log(&self.profile) && (self.features.has_written || snapshots.awaits_device());
        let logging = self.features.logging.as_ref().filter(|_| has_asked);
        let Some(until) = logging.and_then(|logging| logging.log.acknowledgement(epoch)) else {
            snapshots.tell(epoch);
            return None;
        };
        Some(Box::pin(async move {
            until.await?;
            snapshots.tell(epoch);
            Ok(())
        }))
    }

    /// The work that is left to do after its commit.
    pub(crate) fn acknowledgement(&self) -> Acknowledgement {
        Acknowledgement {
            until: self.answer(),
            later: self.features.logging.as_ref().map(|logging| logging.later(self.epoch())),
        }
    }

    /// The way to hear when the commit that comes next is on the device, if nobody waits for that.
    pub(crate) fn later(&self) -> Option<Later> {
        let logging = self.features.logging.as_ref().filter(|_| !self.awaits_device(&self.profile))?;
        // Up to the last record that will have been appended then.
        Some(logging.later(u64::MAX))
    }

    /// As [`Worker::acknowledge`], for the only attempt of a transaction.
    pub(crate) fn acknowledge(&mut self) -> AttemptOutcome {
        match &self.features.logging {
            None => AttemptOutcome::Done,
            Some(_) => {
                self.acknowledge_now().map_or_else(AttemptOutcome::NotDurable, |()| AttemptOutcome::Done)
            }
        }
    }
}

impl<E> Error<E> {
    /// The error of a transaction that has committed, and that the log does not acknowledge.
    pub(crate) fn not_durable(reason: String) -> Self {
        Error::NotDurable(NotDurable { reason, has_committed: true })
    }
}

impl<P: Protocol> Worker<P> {
    /// True if a transaction that may write need not wait for room in the log. It need not if the log takes no more: then it may
    /// only read.
    pub(crate) fn has_room_in_log(&self, profile: &Profile) -> bool {
        match &self.attempt.features.logging {
            Some(logging) if !profile.only_reads() => logging.log.has_room().unwrap_or(true),
            _ => true,
        }
    }

    /// Notes the reason for which the log has no room for the next transaction, if it has none.
    pub(crate) fn set_refusal(&mut self, refusal: Option<String>) {
        if let Some(logging) = &mut self.attempt.features.logging {
            logging.refusal = refusal;
        }
    }

    /// Sets when the callers of its transactions are told that they have committed. A [`Profile`] may promise less for one
    /// transaction. Without a log it has no effect.
    pub fn set_durability(&mut self, durability: Durability) {
        if let Some(logging) = &mut self.attempt.features.logging {
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
    pub(crate) fn admit_to_log(&mut self, profile: &Profile) {
        if let Some(logging) = &mut self.attempt.features.logging
            && !profile.only_reads()
        {
            wait_for_room(logging);
        }
    }

    /// Waits until what a transaction says to its caller is durable. Nothing is held.
    #[inline]
    pub(crate) fn acknowledge(&mut self, end: TransactionEnd) -> Result<(), NotDurable> {
        if self.attempt.features.logging.is_none() || end == TransactionEnd::Failed {
            return Ok(());
        }
        let acknowledged = self.attempt.acknowledge_now();
        // The body's own error stands.
        if end == TransactionEnd::Committed { acknowledged } else { Ok(()) }
    }
}

#[cold]
fn wait_for_room(logging: &mut Logging) {
    logging.refusal = logging.log.admit().err();
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

    /// Notes that all commits of the epochs before the one to which the clock was advanced last are durable. Call it before anybody is told.
    pub fn acknowledge(&self, epoch: u64) {
        self.0.acknowledge(epoch);
    }

    /// Notes that the log has failed: no other commits will be durable.
    pub fn end_acknowledging(&self) {
        self.0.end_acknowledging();
    }
}

/// Commits that no transaction makes, of what others cannot see yet. They appear in the log only.
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
    /// Logs entries, as one commit.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if the log takes no more records.
    pub fn commit(&mut self, entries: &[u8]) -> Result<(), NotDurable> {
        self.log.admit().map_err(|reason| NotDurable { reason, has_committed: false })?;
        self.append(entries);
        Ok(())
    }

    /// Logs entries, whether or not the log has room, and waits for nobody. A commit that begins when it has returned is not recovered
    /// without them. If the log takes no more they are lost, and so is that commit.
    pub fn append(&mut self, entries: &[u8]) {
        let epoch = self.announcement.begin().expect("an engine with a log stamps all commits");
        self.log.append(self.commits.draw(epoch), entries);
        self.epoch = epoch;
        self.announcement.end();
    }

    /// Waits until all of them are durable, or buffered, as the log promises.
    ///
    /// # Errors
    ///
    /// [`NotDurable`], if they never will be.
    pub fn acknowledge(&mut self) -> Result<(), NotDurable> {
        let acknowledged = self.log.acknowledge(self.epoch);
        acknowledged.map_err(|reason| NotDurable { reason, has_committed: true })?;
        self.announcement.snapshots().tell(self.epoch);
        Ok(())
    }
}

impl<P: Protocol> Engine<P> {
    /// The clock of the stamps of its commits.
    pub fn epoch_clock(&self) -> EpochClock {
        EpochClock(self.shared.features.snapshots.clone())
    }

    /// Goes on behind a stamp, which a log has recovered. Call it before any transaction.
    pub fn continue_after(&self, stamp: CommitStamp) {
        self.shared.features.snapshots.continue_after(stamp.epoch());
        if let Some(commits) = &self.shared.features.commits {
            commits.continue_after(stamp.order());
        }
    }

    /// Begins to log changes that no transaction makes. `None` if the engine has no log.
    pub fn outside_commits(&self) -> Option<OutsideCommits<P>> {
        let commits = self.shared.features.commits.clone()?;
        let log = commits.worker_log()?;
        Some(OutsideCommits {
            commits,
            announcement: Announcement::new(&self.shared.features.snapshots),
            log,
            epoch: 0,
        })
    }
}
