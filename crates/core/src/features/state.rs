//! The state of all features in one attempt.

use crate::features::conflicts::{Activity, ConflictTable, Deadlocks, KnownOrigins, Origins};
use crate::features::deferred::{Execution, Footprint, Intentions};
use crate::features::durability::Logging;
use crate::features::graph::EnqueuedOperations;
use crate::features::history::recorder::Log;
use crate::features::hooks::Hooks;
use crate::features::operations::Operations;
use crate::features::pieces::Piece;
use crate::features::retries::{RetryPolicy, StarvationGate};
use crate::features::savepoint::Savepoints;
use crate::features::snapshot::{Announcement, KeptWrites, ReadPoint, Snapshots};
use crate::features::stamp::{CommitStamp, Commits};
use crate::features::waiting::{Waiting, Watch};
use crate::kernel::capabilities::PieceRanks;
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::memory::held_back::HeldBack;
use crate::memory::identity::{EngineId, Origin};
use crate::memory::retained::Limit;
use crossbeam_utils::CachePadded;
use hotrow_sync::profile::name_memory;
use hotrow_sync::{Arc, Mutex};

/// The state of all features in one attempt. The kernel owns it, and looks at none of it.
pub(crate) struct State<P: Protocol> {
    /// The memory of recorded operations.
    pub(crate) operations: Operations,
    pub(crate) intentions: Intentions<P>,
    pub(crate) execution: Execution,
    /// The segments for which the next attempt queues before its body runs. Valid only with the pin in the report of the
    /// loss.
    pub(crate) footprint: Footprint<P>,
    /// The conflict that the attempt has lost, if it goes on as a scout.
    pub(crate) scout: Option<ConflictCause>,
    /// True if the scout would have made a segment.
    pub(crate) scout_inserts: bool,
    /// The operations enqueued for waiting workers to steal.
    pub(crate) graph: EnqueuedOperations<P>,
    pub(crate) savepoints: Savepoints,
    /// The steps between the halves of its engine's commits.
    pub(crate) commits: Option<Arc<Commits<P>>>,
    /// The commit's stamp, once it is drawn.
    pub(crate) stamp: Option<CommitStamp>,
    /// The worker's way to the log, if its engine has one.
    pub(crate) logging: Option<Box<Logging>>,
    /// The number of the snapshot on which its transaction has read; 0 if it has not.
    pub(crate) snapshot_read: u64,
    /// True if its transaction has written anything that others can see.
    pub(crate) has_written: bool,
    /// The epoch of the newest commit that its transaction may have read from, if that only reads and its engine has a log.
    pub(crate) seen: u64,
    /// The worker's word for its commits; `None` for a part that a thief runs.
    pub(crate) announcement: Option<Announcement>,
    /// The place of its piece in the transaction.
    pub(crate) piece: Piece,
    /// The ranks of its piece, if pieces of other transactions may conflict with it.
    pub(crate) piece_ranks: Option<PieceRanks>,
    /// True if its transaction ends some time after its last piece.
    pub(crate) ends_later: bool,
    /// The list of what its region retires and makes.
    pub(crate) held_back: HeldBack,
    /// The history learns of its commit only when its region has ended.
    pub(crate) records_later: bool,
    /// The versions that its commit has kept.
    pub(crate) kept: KeptWrites,
    /// The snapshot that it reads on.
    pub(crate) snapshot: Option<Arc<ReadPoint>>,
    /// The history of the attempt so far, if it is recorded.
    pub(crate) log: Option<Box<Log>>,
    /// True if the log will be that of the next piece, too.
    pub(crate) log_goes_on: bool,
    /// The log of earlier attempts, to be used again.
    pub(crate) spare_log: Option<Box<Log>>,
    /// The entries by which its transaction watches what it reads.
    pub(crate) watch: Option<Box<Watch>>,
    /// The hooks. Those of the body outlive the attempt if it is the last one.
    pub(crate) hooks: Hooks,
    /// The buckets and leaves that it has changed while somebody watched any.
    pub(crate) changed_nodes: Vec<(usize, bool)>,
    /// True if it has committed, and must tell those that watch.
    pub(crate) wakes: bool,
}

impl<P: Protocol> Default for State<P> {
    fn default() -> Self {
        Self {
            operations: Operations::new(),
            intentions: Intentions::new(),
            execution: Execution::new(),
            footprint: Footprint::new(),
            scout: None,
            scout_inserts: false,
            graph: EnqueuedOperations::new(),
            savepoints: Savepoints::new(),
            commits: None,
            stamp: None,
            logging: None,
            snapshot_read: 0,
            has_written: false,
            seen: 0,
            announcement: None,
            piece: Piece::Whole,
            piece_ranks: None,
            ends_later: false,
            held_back: HeldBack::default(),
            records_later: false,
            kept: KeptWrites::default(),
            snapshot: None,
            log: None,
            log_goes_on: false,
            spare_log: None,
            watch: None,
            hooks: Hooks::default(),
            changed_nodes: Vec::new(),
            wakes: false,
        }
    }
}

impl<P: Protocol> State<P> {
    /// The state of a new worker's attempts.
    pub(crate) fn of(snapshots: &Arc<Snapshots>, commits: Option<Arc<Commits<P>>>) -> Self {
        let announcement = Some(Announcement::new(snapshots));
        Self { logging: Logging::of(commits.as_deref()), commits, announcement, ..Self::default() }
    }

    /// Forgets what belongs to the transaction before.
    #[inline(always)]
    pub(crate) fn begin_transaction(&mut self) {
        self.stamp = None;
        self.has_written = false;
        self.seen = 0;
    }

    /// Forgets what belongs to the attempt before.
    #[inline(always)]
    pub(crate) fn begin_attempt(&mut self) {
        self.snapshot_read = 0;
        if P::DEFERS {
            self.scout = None;
            self.scout_inserts = false;
        }
    }
}

/// The state of features that all workers of an engine share.
pub(crate) struct Shared<P: Protocol> {
    /// The steps between the halves of commits.
    pub(crate) commits: Option<Arc<Commits<P>>>,
    pub(crate) has_log: bool,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) origins: Arc<Origins>,
    pub(crate) deadlocks: Arc<Deadlocks>,
    pub(crate) policy: RetryPolicy,
    /// Lets transactions through that keep losing.
    pub(crate) gate: StarvationGate,
    /// The limit of retained memory.
    pub(crate) limit: Limit,
}

impl<P: Protocol> Shared<P> {
    /// The state of a new engine, with the steps between the halves of its commits.
    pub(crate) fn new(id: EngineId, policy: RetryPolicy, commits: Option<Arc<Commits<P>>>) -> Self {
        let has_log = commits.as_ref().is_some_and(|commits| commits.has_log());
        let awaits_device = commits.as_ref().is_some_and(|commits| commits.awaits_device());
        let snapshots = Snapshots::new(commits.is_some(), has_log.then_some(awaits_device));
        name_memory(&snapshots, || String::from("the list of snapshots"));
        if let Some(commits) = &commits {
            name_memory(&**commits, || String::from("the clock of the stamps"));
        }
        let (origins, deadlocks) = (Arc::default(), Arc::default());
        let (waiting, gate, limit) = (Waiting::new(), StarvationGate::default(), Limit::new(id));
        Self { commits, has_log, snapshots, waiting, origins, deadlocks, policy, gate, limit }
    }
}

/// The state of features for the workers of one number, one after the other.
pub(crate) struct Place {
    pub(crate) conflicts: Mutex<ConflictTable>,
    pub(crate) waiting: Arc<Waiting>,
    pub(crate) origins: Arc<Origins>,
    pub(crate) deadlocks: Arc<Deadlocks>,
    /// The transaction that the worker runs, if transactions say what they are.
    pub(crate) activity: Arc<CachePadded<Activity>>,
}

impl Place {
    pub(crate) fn of<P: Protocol>(shared: &Shared<P>) -> Self {
        Self {
            conflicts: Mutex::default(),
            waiting: shared.waiting.clone(),
            activity: shared.origins.add_worker(),
            origins: shared.origins.clone(),
            deadlocks: shared.deadlocks.clone(),
        }
    }
}

/// The state of features in a worker, from one transaction to the next.
#[derive(Default)]
pub(crate) struct OfWorker {
    /// The name of the transactions that follow, in reports of conflicts.
    pub(crate) origin: Option<Origin>,
    pub(crate) known_origins: KnownOrigins,
    /// True if its transaction in progress has said what it is.
    pub(crate) is_reported: bool,
}
