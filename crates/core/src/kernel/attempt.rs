//! An attempt: one execution of a transaction's body, as its protocol sees it.

use crate::features::deferred::{Footprint, Intentions};
use crate::features::durability::Logging;
use crate::features::end_hooks::EndHooks;
use crate::features::graph::EnqueuedOperations;
use crate::features::history::recorder::{Log, Recorder};
use crate::features::operations::Operations;
use crate::features::pieces::{Piece, PieceRanks};
use crate::features::region::HeldBack;
use crate::features::savepoint::Savepoints;
use crate::features::snapshot::{Announcement, KeptWrites, ReadPoint};
use crate::features::waiting::Watch;
use crate::kernel::abort::Reason;
use crate::kernel::commit::{CommitStamp, Commits};
use crate::kernel::counter::CounterPlace;
use crate::kernel::engine;
use crate::kernel::item::{Flags, Item, ItemId, Items};
use crate::kernel::object::{Object, ObjectMeta};
use crate::kernel::profile::{Isolation, Profile};
use crate::kernel::protocol::{Abilities, ConflictCause, Protocol};
use crate::kernel::read_log::ReadLog;
use crate::kernel::wait_limit::WaitLimit;
use crate::memory::arena::Arena;
use crate::memory::pin::Pin;
use crate::memory::retained::{self, Holder, NOBODY};
use crate::memory::structure::{KeySpan, StructureSet};
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::Arc;
use hotrow_sync::clock::{self, Duration, Instant};
use std::alloc::Layout;
use std::ptr::NonNull;

mod observations;
mod recording;

/// The number of a worker among those of its engine, from 0. A number is reused once its worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub(crate) u32);

impl WorkerId {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// The time that a transaction may still wait.
#[derive(Debug, Default)]
struct WaitBudget {
    /// The policy's deadline.
    limit: Option<Duration>,
    /// The moment at which it began to count.
    since: Option<Instant>,
}

impl WaitBudget {
    fn left(&mut self) -> Option<Duration> {
        let limit = self.limit?;
        if limit.is_zero() {
            return Some(limit);
        }
        let since = *self.since.get_or_insert_with(clock::now);
        Some(limit.saturating_sub(since.elapsed()))
    }
}

/// Message of a panic: an attempt that is over is used.
const PINNED: &str = "an attempt in progress is pinned";

/// The place where an attempt's reads are noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPath {
    /// In the log of reads.
    Log,
    /// There, and in the history.
    LogAndRecord,
    /// In items, and possibly in the history. Attempts that defer operations find them there.
    Item,
}

/// All state of one attempt. A worker has one and reuses it.
pub struct Attempt<P: Protocol> {
    /// The segments that it has touched.
    pub items: Items<P>,
    /// The reads that need no item.
    pub reads: ReadLog<P>,
    pub(crate) read_path: ReadPath,
    abilities: Abilities,
    /// The protocol's own state for this worker.
    pub local: P::Local,
    /// The memory of recorded operations.
    pub(crate) operations: Operations,
    pub(crate) intentions: Intentions<P>,
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
    structures: StructureSet,
    observers: Vec<NonNull<dyn Object<P>>>,
    pub(crate) arena: Arena,
    pub(crate) worker: WorkerId,
    number: u32,
    /// True if its transaction makes no attempt after it.
    pub(crate) is_last: bool,
    /// See [`is_interactive`](Self::is_interactive).
    is_interactive: bool,
    pub(crate) profile: Profile,
    wait_budget: WaitBudget,
    /// True if any item has `Flags::CLEANUP`.
    pub(crate) wants_cleanup: bool,
    /// True if objects check their pending writes at the commit.
    pub(crate) wants_check: bool,
    /// True if some pending write is a change to be made at the commit.
    pub(crate) settles: bool,
    /// True from the first to the last change of an operation whose changes belong together: if the operation has failed
    /// between them, and nobody has undone it, the attempt cannot commit.
    pub(crate) is_half_changed: bool,
    pub(crate) pin: Option<Pin>,
    /// The moment of its transaction's last loss.
    pub(crate) lost_since: Option<Instant>,
    /// The worker's slot; `None` for a part that a thief runs.
    slot: Option<Arc<engine::WorkerSlot<P>>>,
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
    /// The entry in the registry of open attempts; `NOBODY` for a part that a thief runs.
    pub(crate) holder: &'static Holder,
    /// Number of attempts that the holder has shown.
    serial: u64,
    /// The number of the thread whose name the holder shows.
    thread: u64,
    /// The history of the attempt so far, if it is recorded.
    pub(crate) log: Option<Box<Log>>,
    /// True if the log will be that of the next piece, too.
    log_goes_on: bool,
    /// The log of earlier attempts, to be used again.
    spare_log: Option<Box<Log>>,
    /// The entries by which its transaction watches what it reads.
    pub(crate) watch: Option<Box<Watch>>,
    /// The hooks of the body for the end of the transaction. They outlive the attempt if it is the last one.
    pub(crate) end_hooks: Option<Box<EndHooks>>,
    /// True if there is a log or a watch.
    pub(crate) is_noted: bool,
    /// True if reads and observations are noted, or are not kept: as long as the attempt is open.
    pub(crate) reads_otherwise: bool,
    /// The buckets and leaves that it has changed while somebody watched any.
    pub(crate) changed_nodes: Vec<(usize, bool)>,
    /// True if it has committed, and must tell those that watch.
    pub(crate) wakes: bool,
}

// SAFETY: the raw pointers in it (items, payloads, observers) belong to an attempt in progress, and a worker
// can be moved to another thread only between attempts, when all of these are cleared. `Pin`, which is not
// `Send`, is `None` then. `Local` is `Send`, and so is everything else.
unsafe impl<P: Protocol> Send for Attempt<P> {}

impl<P: Protocol> Attempt<P> {
    pub(crate) fn new(
        slot: Arc<engine::WorkerSlot<P>>,
        local: P::Local,
        commits: Option<Arc<Commits<P>>>,
        announcement: Announcement,
        protocol: &P,
    ) -> Self {
        let worker = WorkerId(slot.number);
        let announcement = Some(announcement);
        Self {
            slot: Some(slot),
            abilities: Abilities::of(protocol),
            logging: Logging::of(commits.as_deref()),
            commits,
            announcement,
            ..Self::with(Items::new(), StructureSet::new(), worker, local)
        }
    }

    /// Makes an attempt for very few items.
    pub(crate) fn small(protocol: &P) -> Self {
        Self {
            abilities: Abilities::of(protocol),
            ..Self::with(Items::small(), StructureSet::small(), WorkerId(0), P::Local::default())
        }
    }

    fn with(items: Items<P>, structures: StructureSet, worker: WorkerId, local: P::Local) -> Self {
        Self {
            items,
            reads: ReadLog::new(),
            read_path: ReadPath::Item,
            abilities: Abilities::NONE,
            local,
            operations: Operations::new(),
            intentions: Intentions::new(),
            footprint: Footprint::new(),
            scout: None,
            scout_inserts: false,
            graph: EnqueuedOperations::new(),
            savepoints: Savepoints::new(),
            structures,
            observers: Vec::new(),
            arena: Arena::default(),
            worker,
            number: 0,
            is_last: false,
            is_interactive: false,
            profile: Profile::UNKNOWN,
            wait_budget: WaitBudget::default(),
            wants_cleanup: false,
            wants_check: false,
            settles: false,
            is_half_changed: false,
            pin: None,
            lost_since: None,
            slot: None,
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
            holder: &NOBODY,
            serial: 0,
            thread: 0,
            log: None,
            log_goes_on: false,
            spare_log: None,
            watch: None,
            end_hooks: None,
            is_noted: false,
            reads_otherwise: false,
            changed_nodes: Vec::new(),
            wakes: false,
        }
    }

    /// The worker that makes the attempt.
    #[inline]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Counts an event for a counter of the protocol's own ([`Variants::COUNTERS`](crate::Variants::COUNTERS)), which
    /// is found by `const { COUNTER.place::<Self>() }`. Has no effect in a stolen operation: a worker's counters have
    /// one writer.
    #[inline]
    pub fn count(&self, place: CounterPlace) {
        if let Some(slot) = &self.slot {
            slot.counters.named().count(place);
        }
    }

    /// The worker's slot; `None` for a part that a thief runs.
    pub(crate) fn slot(&self) -> Option<&engine::WorkerSlot<P>> {
        self.slot.as_deref()
    }

    /// The number of earlier attempts of the same transaction.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// True if its transaction makes no attempt after this one, whatever happens: one that is stepped by hand, or the last
    /// one that the policy allows.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// The ranks of the attempt's piece, if its protocol [orders](crate::PieceOrder) pieces and this one may conflict with
    /// those of other transactions.
    #[inline]
    pub fn piece_ranks(&self) -> Option<PieceRanks> {
        self.piece_ranks
    }

    /// The facts that the transaction has declared about itself.
    #[inline]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Makes the attempt run its operations at once instead of deferring them, and log its reads. A protocol that defers
    /// calls it when the attempt begins.
    #[inline]
    pub fn run_at_once(&mut self) {
        self.operations.run_at_once = true;
        self.read_path = self.logging();
    }

    /// The limit of a wait for other transactions that begins now. It [is over](WaitLimit::is_over) once the transaction's
    /// deadline has passed or the transaction was told to end.
    pub fn wait_max(&mut self) -> WaitLimit {
        WaitLimit::new(self.wait_budget.left(), self.is_interactive.then_some(self.holder))
    }

    /// True if the body comes in statements, with any time between them: that of a [session](crate::Session). Such an attempt
    /// should hold as little as possible between two operations.
    #[inline(always)]
    pub fn is_interactive(&self) -> bool {
        self.is_interactive
    }

    /// True if it is a session's, and was told to end: its waits end then.
    pub(crate) fn has_to_end(&self) -> bool {
        self.is_interactive && self.holder.is_told()
    }

    /// Makes it the only attempt of a session.
    pub(crate) fn make_interactive(&mut self) {
        self.is_interactive = true;
    }

    /// Begins a statement of a session: its waits have the whole deadline.
    pub(crate) fn begin_statement(&mut self) {
        self.wait_budget.since = None;
    }

    /// True if the transaction has waited until its deadline.
    pub(crate) fn is_out_of_time(&mut self) -> bool {
        self.wait_budget.since.is_some() && self.wait_budget.left() == Some(Duration::ZERO)
    }

    /// The number of the thread that runs it.
    #[inline(always)]
    pub fn thread(&self) -> u64 {
        self.thread
    }

    /// The moment at which the transaction waited for the first time, if it has a deadline and has waited.
    pub(crate) fn waited_since(&self) -> Option<Instant> {
        self.wait_budget.since
    }

    /// Prepares for the first attempt of a transaction.
    #[inline]
    pub(crate) fn begin_transaction(&mut self, deadline: Option<Duration>) {
        self.wait_budget = WaitBudget { limit: deadline, since: None };
        self.operations.has_lost = false;
        self.footprint.clear();
    }

    #[inline]
    pub(crate) fn open(
        &mut self,
        number: u32,
        profile: Profile,
        thread: u64,
        recorder: Option<&Arc<Recorder>>,
    ) {
        if self.is_open() {
            self.abandon();
        }
        self.number = number;
        self.profile = profile;
        self.profile.read_only = profile.only_reads();
        self.operations.run_at_once = self.operations.has_lost || self.snapshot.is_some();
        if !self.piece.is_later() {
            self.stamp = None;
            self.has_written = false;
            self.seen = 0;
        }
        self.snapshot_read = 0;
        self.scout = None;
        self.scout_inserts = false;
        if P::ALLOWS_STEALING {
            self.graph.open();
        }
        if self.thread != thread {
            self.thread = thread;
            self.holder.name_thread();
        }
        self.serial += 1;
        self.holder.begin(self.serial, number);
        self.pin = Some(Pin::of_attempt());
        if let Some(recorder) = recorder {
            self.open_log(recorder);
        }
        self.read_path = if self.can_defer() { ReadPath::Item } else { self.logging() };
        self.reads_otherwise = self.is_noted || self.profile.isolation != Isolation::Serializable;
    }

    /// True if the attempt depends on what it reads: it is serializable, and in no part whose reads are
    /// [untracked](crate::Transaction::untracked).
    #[inline(always)]
    pub fn keeps_reads(&self) -> bool {
        !self.reads_otherwise || self.profile.isolation == Isolation::Serializable
    }

    /// True if operations of its transactions can be deferred.
    #[inline(always)]
    pub(crate) fn can_defer(&self) -> bool {
        P::DEFERS && self.abilities.defers
    }

    /// True if waiting workers can run operations of its transactions.
    #[inline(always)]
    pub(crate) fn allows_stealing(&self) -> bool {
        P::ALLOWS_STEALING && self.abilities.steals
    }

    #[inline(always)]
    fn logs_reads(&self) -> bool {
        P::LOGS_READS && self.abilities.logs_reads
    }

    /// Returns the path of reads that are logged where the protocol logs them.
    #[inline(always)]
    fn logging(&self) -> ReadPath {
        match () {
            () if !self.logs_reads() || self.profile.isolation != Isolation::Serializable => ReadPath::Item,
            () if self.is_noted && self.watch.is_some() => ReadPath::Item,
            () if self.is_noted => ReadPath::LogAndRecord,
            () => ReadPath::Log,
        }
    }

    /// Gives up an attempt whose transaction was leaked ([`std::mem::forget`]). Its locks stay held for ever, as those
    /// of a thread that has died. The caller may be another thread than the one that made the attempt, so the pin is
    /// leaked too, and so are the inputs and results of deferred operations, which need not be `Send`. The attempt's
    /// holder shows that for ever; the worker gets another one.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        std::mem::forget(self.pin.take());
        self.holder = retained::replace(self.holder);
        self.thread = 0;
        self.operations.leak();
        self.savepoints.hooks.leak();
        std::mem::forget(self.end_hooks.take());
        self.forget(&mut Panics::default());
        self.log = None;
        self.set_watch(None);
    }

    /// True if an attempt is in progress.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.pin.is_some()
    }

    /// Forgets everything and unpins. Pending writes must have been consumed before.
    #[inline]
    pub(crate) fn close(&mut self, panics: &mut Panics) {
        self.forget(panics);
        if self.is_recorded() && !self.log_goes_on {
            self.close_log();
        }
        self.holder.end();
        self.pin = None;
        if self.snapshot.is_some() {
            self.leave_snapshot();
        }
        if retained::is_anybody_noticed() {
            retained::after_holder(self.holder);
        }
    }

    /// Ends the reading of a snapshot. Frees memory, and so may run users' code.
    #[cold]
    pub(crate) fn leave_snapshot(&mut self) {
        let point = self.snapshot.take();
        self.snapshot_read = point.map_or(0, |point| point.number());
    }

    /// Forgets all that it has done in a region that was aborted, and goes on as if it had begun just now. Most of it the abort has
    /// undone.
    pub(crate) fn reopen(&mut self) {
        let mut panics = Panics::default();
        self.undo();
        self.forget(&mut panics);
        self.pin().forget_kept();
        self.stamp = None;
        self.end_stamped(false);
        if let Some(log) = &mut self.log {
            log.undo_piece();
        }
    }

    /// Forgets items, intentions and payloads. Pending writes have been consumed, or belong to another attempt.
    #[inline]
    fn forget(&mut self, panics: &mut Panics) {
        self.savepoints.clear(self.pin.as_ref());
        self.forget_items();
        self.intentions.clear();
        self.operations.clear(panics);
        self.arena.reset();
    }

    /// Forgets all items. Their payloads stay, because another attempt may have adopted them.
    #[inline]
    pub(crate) fn forget_items(&mut self) {
        self.items.clear();
        self.reads.clear();
        self.structures.clear();
        self.observers.clear();
        self.wants_cleanup = false;
        self.wants_check = false;
        self.settles = false;
        self.is_half_changed = false;
    }

    /// Forgets all payloads.
    pub(crate) fn forget_payloads(&mut self) {
        self.arena.reset();
    }

    /// The attempt's pinned epoch.
    #[inline]
    pub fn pin(&self) -> &Pin {
        self.pin.as_ref().expect(PINNED)
    }

    /// Allocates memory that lives until the attempt ends. Nothing in it is dropped.
    #[inline]
    pub(crate) fn allocate<T>(&self, value: T) -> *mut u8 {
        let place = self.reserve::<T>();
        // SAFETY: the arena has just returned the place, aligned and large enough for a `T`.
        unsafe { place.write(value) };
        place.cast()
    }

    /// Returns room for a value that lives until the attempt ends.
    #[inline]
    pub(crate) fn reserve<T>(&self) -> *mut T {
        self.arena.allocate(Layout::new::<T>()).cast()
    }

    /// Gives an item a payload.
    #[inline]
    pub(crate) fn set_payload<T>(&mut self, id: ItemId, payload: T) -> &mut T {
        let Self { items, arena, .. } = self;
        items.get_mut(id).set_payload(payload, arena)
    }

    /// Gives an item a payload, and marks it as written.
    #[inline]
    pub(crate) fn set_write<T>(&mut self, id: ItemId, payload: T) -> &mut T {
        let Self { items, arena, .. } = self;
        items.mark_write(id).set_payload(payload, arena)
    }

    /// Checks the predicates of all items. `holds` evaluates one with [`predicate_holds`](Self::predicate_holds), and
    /// makes sure that its answer stays true, or that the validation finds that it is true no longer. Before the
    /// [stamp](Self::draw_stamp) is drawn: the answer is that of the present value, whose commit may have drawn a stamp just now.
    #[inline]
    pub fn check_predicates(
        &mut self,
        holds: impl FnMut(&mut Self, ItemId) -> Result<bool, ConflictCause>,
    ) -> Result<(), ConflictCause> {
        if self.items.has_predicates() { self.check_all_predicates(holds) } else { Ok(()) }
    }

    #[inline(never)]
    fn check_all_predicates(
        &mut self,
        mut holds: impl FnMut(&mut Self, ItemId) -> Result<bool, ConflictCause>,
    ) -> Result<(), ConflictCause> {
        for id in self.items.ids() {
            if self.items.get(id).is(Flags::PREDICATE) && !holds(self, id)? {
                return Err(ConflictCause::item(Reason::PredicateFailed, id));
            }
        }
        Ok(())
    }

    /// True if any bucket or leaf was observed.
    #[inline]
    pub fn has_structures(&self) -> bool {
        !self.structures.is_empty()
    }

    /// The objects whose buckets or leaves were observed; an object may come several times.
    #[inline]
    pub fn observed_objects(&self) -> impl Iterator<Item = &ObjectMeta> {
        // SAFETY: the caller of `observe` promised that the object lives until the attempt ends.
        self.observers.iter().map(|observer| unsafe { observer.as_ref() }.meta())
    }

    /// The parts of objects in which the attempt has observed which keys are there.
    #[inline]
    pub fn observed_spans(&self) -> impl Iterator<Item = (&ObjectMeta, KeySpan)> {
        (0..self.observations()).map(|number| {
            let (_, object) = self.observation(number);
            let span = self.structures.seen(number as usize).map_or(KeySpan::ALL, |seen| {
                // SAFETY: as in `still_holds`.
                unsafe { object.span_seen(seen) }
            });
            (object.meta(), span)
        })
    }

    /// True if any write is an insertion or a deletion, or wants [cleanup](crate::Object::cleanup) for another reason.
    #[inline]
    pub fn changes_structure(&self) -> bool {
        self.wants_cleanup
    }

    /// True if a datatype with concurrency control of its own takes part: [`ObjectAccess::on_undo`](crate::ObjectAccess::on_undo),
    /// [`at_end`](crate::ObjectAccess::at_end).
    pub fn has_hooks(&self) -> bool {
        self.savepoints.hooks.are_any()
    }

    /// True if an intention may add to an index or remove from it. Nobody can see that before the intention has run.
    #[inline]
    pub fn will_restructure(&self) -> bool {
        self.intentions.will_restructure()
    }

    /// True if an intention may remove from an index. Nobody can see that before the intention has run.
    #[inline]
    pub fn will_remove(&self) -> bool {
        self.intentions.will_remove()
    }

    /// True if an item's predicate holds of the segment's current value. Call it inside a stable load.
    #[inline]
    pub fn predicate_holds(&self, id: ItemId) -> bool {
        let item = self.items.get(id);
        assert!(item.is(Flags::PREDICATE), "asked of items with a predicate");
        // SAFETY: the item has a predicate of its object.
        let holds = unsafe { item.object().predicate_holds(item) };
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        if let Some(recorded) = unsafe { self.recorded_key(item.object(), item.segment()) } {
            self.record_predicate(id, &recorded, recorded.version());
        }
        holds
    }

    /// Installs the pending write of an item, and calls `note` before. What that rules out by a panic the caller need
    /// not promise.
    ///
    /// # Safety
    ///
    /// [`Protocol::prepare`] has returned `Ok`. The item is in [`Items::writes`], and its write has not been installed.
    #[inline]
    pub(crate) unsafe fn install(&mut self, id: ItemId, note: impl FnOnce(&mut Item<P>)) {
        let Self { items, pin, log, kept, announcement, .. } = self;
        let (item, pin) = (items.get_mut(id), pin.as_ref().expect(PINNED));
        note(item);
        // SAFETY: the caller's promise.
        unsafe { kept.install((id, item), announcement.as_ref(), pin) };
        if let Some(log) = log {
            log.installed(id);
        }
    }

    /// Installs the pending writes for which `chosen` is true, in the order of first write or the last first, and calls `after` after
    /// each.
    ///
    /// # Safety
    ///
    /// [`Protocol::prepare`] has returned `Ok`, and none of those that are chosen has been installed.
    #[inline]
    pub(crate) unsafe fn install_chosen(
        &mut self,
        last_first: bool,
        mut chosen: impl FnMut(&mut Item<P>) -> bool,
        mut after: impl FnMut(&Item<P>),
    ) {
        let Self { items, pin, log, kept, announcement, records_later, .. } = self;
        let pin = pin.as_ref().expect(PINNED);
        let count = items.writes().len();
        for at in 0..count {
            let (id, item) = items.write_mut(if last_first { count - 1 - at } else { at });
            if !chosen(item) {
                continue;
            }
            // SAFETY: the caller's promise.
            unsafe { kept.install((id, item), announcement.as_ref(), pin) };
            if let Some(log) = log
                && !*records_later
            {
                log.installed(id);
            }
            after(item);
        }
    }

    /// True if every pending write has been installed, where that is noted: see `Flags::INSTALLED`.
    pub(crate) fn is_installed(&self) -> bool {
        self.items.writes().iter().all(|id| self.items.get(*id).is(Flags::INSTALLED))
    }

    /// Undoes all pending writes, the last first. A panic is contained, so that the protocol still releases its locks.
    pub(crate) fn undo(&mut self) {
        self.savepoints.hooks.undo_since(0);
        self.visit_writes(|object, item, pin| {
            // SAFETY: the item has a pending write that was not installed: a commit that fails installs none.
            contained(|| unsafe { object.undo(item, pin) });
        });
    }

    /// Notes what it has seen, and runs the cleanup of the writes that want one, the last first (sto §3.7). If one panics (in a key's hash), the
    /// rest of that one is skipped, and the others are still done.
    #[inline]
    pub(crate) fn cleanup(&mut self, committed: bool, panics: &mut Panics) {
        self.note_seen();
        self.savepoints.hooks.end(committed, panics);
        if self.wants_cleanup {
            self.visit_writes(|object, item, pin| {
                if item.is(Flags::CLEANUP) {
                    // SAFETY: the item's write was installed or undone.
                    panics.contain(|| unsafe { object.cleanup(item, committed, pin) });
                }
            });
        }
    }

    #[inline]
    fn visit_writes(&mut self, mut visit: impl FnMut(&dyn Object<P>, &mut Item<P>, &Pin)) {
        let Self { items, pin, .. } = self;
        let pin = pin.as_ref().expect(PINNED);
        for at in (0..items.writes().len()).rev() {
            let id = items.writes()[at];
            let item = items.get_mut(id);
            let touched = item.touched;
            visit(touched.object(), item, pin);
        }
    }
}
