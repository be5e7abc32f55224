//! An attempt: one execution of a transaction's body, as its protocol sees it.

use crate::abort::Reason;
use crate::commit::{CommitStamp, Commits};
use crate::deferred::Intentions;
use crate::graph::Graph;
use crate::history::recorder::{Log, Named, Recorder, Slot};
use crate::history::{Ended, ReadKind};
use crate::item::{Flags, Item, ItemId, Items};
use crate::object::Object;
use crate::pin::Pin;
use crate::profile::{Isolation, Profile};
use crate::protocol::{ConflictCause, ConflictTarget, Protocol};
use crate::retained::{self, Holder, NOBODY};
use crate::structure::{Contradiction, Observed, StructureChange, StructureSet};
use crate::users_code::{Panics, contained};
use bumpalo::Bump;
use hotrow_sync::clock::{self, Duration, Instant};
use hotrow_sync::{Arc, memory};
use std::ptr::NonNull;

/// The number of a worker among those of its engine, from 0. A number is reused when its worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub(crate) u32);

impl WorkerId {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// How long a transaction may still wait.
#[derive(Debug, Default)]
struct WaitBudget {
    /// The policy's deadline.
    limit: Option<Duration>,
    /// When it began to count.
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

/// Everything that one attempt knows. A worker has one and uses it again and again.
pub struct Attempt<P: Protocol> {
    /// The segments touched.
    pub items: Items<P>,
    /// The protocol's own state for this worker.
    pub local: P::Local,
    /// What has been deferred.
    pub(crate) intentions: Intentions<P>,
    /// Whether deferred operations run at once, because an attempt of the transaction failed that deferred them.
    pub(crate) runs_at_once: bool,
    /// What has been drawn for others to run.
    pub(crate) graph: Graph<P>,
    structures: StructureSet,
    observers: Vec<NonNull<dyn Object<P>>>,
    arena: Bump,
    pub(crate) worker: WorkerId,
    number: u32,
    pub(crate) profile: Profile,
    wait_budget: WaitBudget,
    /// Whether any item has `Flags::CLEANUP`.
    pub(crate) wants_cleanup: bool,
    pub(crate) pin: Option<Pin>,
    /// The steps between the halves of its engine's commits.
    pub(crate) commits: Option<Arc<Commits<P>>>,
    /// The commit's stamp, once it is drawn.
    pub(crate) stamp: Option<CommitStamp>,
    /// The entry in the registry of open attempts; `NOBODY` for a part that a thief runs.
    pub(crate) holder: &'static Holder,
    /// How many attempts the holder has shown.
    serial: u64,
    /// The number of the thread whose name the holder has.
    thread: u64,
    /// What it has done so far, if it is recorded.
    pub(crate) log: Option<Box<Log>>,
    /// The log of earlier attempts, to be used again.
    spare_log: Option<Box<Log>>,
}

// SAFETY: the raw pointers in it (items, payloads, observers) belong to an attempt in progress, and a worker
// can be moved to another thread only between attempts, when all of these are cleared. `Pin`, which is not
// `Send`, is `None` then. `Local` is `Send`, and so is everything else.
unsafe impl<P: Protocol> Send for Attempt<P> {}

impl<P: Protocol> Attempt<P> {
    pub(crate) fn new(worker: WorkerId, local: P::Local, commits: Option<Arc<Commits<P>>>) -> Self {
        Self { commits, ..Self::with(Items::new(), StructureSet::new(), worker, local) }
    }

    /// An attempt that will touch very little.
    pub(crate) fn small() -> Self {
        Self::with(Items::small(), StructureSet::small(), WorkerId(0), P::Local::default())
    }

    fn with(items: Items<P>, structures: StructureSet, worker: WorkerId, local: P::Local) -> Self {
        Self {
            items,
            local,
            intentions: Intentions::new(),
            runs_at_once: false,
            graph: Graph::new(),
            structures,
            observers: Vec::new(),
            arena: Bump::new(),
            worker,
            number: 0,
            profile: Profile::UNKNOWN,
            wait_budget: WaitBudget::default(),
            wants_cleanup: false,
            pin: None,
            commits: None,
            stamp: None,
            holder: &NOBODY,
            serial: 0,
            thread: 0,
            log: None,
            spare_log: None,
        }
    }

    /// The worker that makes the attempt.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// How many attempts of the same transaction came before.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What the transaction has said of itself.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// How long a protocol may wait now for others; `None` for as long as it takes. Zero once the transaction's
    /// deadline has passed.
    pub fn wait_max(&mut self) -> Option<Duration> {
        self.wait_budget.left()
    }

    /// When the transaction waited for the first time, if it has a deadline and has waited.
    pub(crate) fn waited_since(&self) -> Option<Instant> {
        self.wait_budget.since
    }

    /// Before the first attempt of a transaction.
    #[inline]
    pub(crate) fn begin_transaction(&mut self, deadline: Option<Duration>) {
        self.wait_budget = WaitBudget { limit: deadline, since: None };
        self.runs_at_once = false;
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
        self.stamp = None;
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
    }

    /// Gives up an attempt whose transaction was leaked ([`std::mem::forget`]). What it holds it holds for ever, as that of a
    /// thread that has died. This may be another thread than the one that made it: so its pin is leaked, too, and what was
    /// deferred, its inputs and results, which need not be `Send`. Its holder shows that for ever; the worker gets another one.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        std::mem::forget(self.pin.take());
        self.holder = retained::replace(self.holder);
        self.thread = 0;
        self.intentions.leak();
        self.forget(&mut Panics::default());
        self.log = None;
    }

    #[cold]
    fn open_log(&mut self, recorder: &Arc<Recorder>) {
        if recorder.is_open() {
            let log = self.spare_log.take();
            let mut log = log.unwrap_or_else(|| Box::new(Log::new(recorder.clone(), self.worker)));
            log.begin(self.number, self.profile.isolation == Isolation::Serializable);
            self.log = Some(log);
        }
    }

    #[cold]
    fn close_log(&mut self) {
        if let Some(mut log) = self.log.take() {
            log.close();
            self.spare_log = Some(log);
        }
    }

    /// Whether there is an attempt in progress.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.pin.is_some()
    }

    /// Forgets everything and unpins. Pending writes have been consumed.
    #[inline]
    pub(crate) fn close(&mut self, panics: &mut Panics) {
        self.forget(panics);
        if self.is_recorded() {
            self.close_log();
        }
        self.holder.end();
        self.pin = None;
        if retained::is_anybody_told() {
            retained::look_again();
        }
    }

    /// Forgets all that it knows. Pending writes have been consumed, or are another one's.
    #[inline]
    fn forget(&mut self, panics: &mut Panics) {
        self.forget_items();
        self.intentions.clear(panics);
        self.arena.reset();
    }

    /// Forgets all items. Their payloads stay, as others may have them.
    #[inline]
    pub(crate) fn forget_items(&mut self) {
        self.items.clear();
        self.structures.clear();
        self.observers.clear();
        self.wants_cleanup = false;
    }

    /// Forgets all payloads.
    pub(crate) fn forget_payloads(&mut self) {
        self.arena.reset();
    }

    /// What records the attempt, if it is recorded.
    pub(crate) fn recorder(&self) -> Option<Arc<Recorder>> {
        self.log.as_ref().map(|log| log.recorder())
    }

    /// Whether the attempt is recorded in a history.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_recorded(&self) -> bool {
        self.log.is_some()
    }

    /// The attempt's log, if it is recorded.
    pub(crate) fn log(&mut self) -> Option<&mut Log> {
        self.log.as_deref_mut()
    }

    /// The history's word of a segment's key, if the attempt is recorded.
    ///
    /// # Safety
    ///
    /// The segment is the object's and in memory.
    pub(crate) unsafe fn slot(
        &self,
        object: &dyn Object<P>,
        segment: NonNull<P::Header>,
    ) -> Option<Arc<Slot>> {
        // SAFETY: the caller's promise.
        self.log.as_deref().map(|log| unsafe { slot_in(log, object, segment) })
    }

    /// Records the end of the attempt.
    pub(crate) fn record_end(&mut self, outcome: Ended) {
        let Self { log: Some(log), items, .. } = self else { return };
        if outcome == Ended::Committed {
            log.read_predicates(|item| items.get(item).is(Flags::PREDICATE));
        }
        log.end(outcome);
    }

    /// Records a look at a predicate; the last one before a commit is what the transaction depends on.
    pub(crate) fn record_predicate(&self, id: ItemId, slot: &Slot, version: u64) {
        if let Some(log) = &self.log {
            log.predicate(id, slot, version);
        }
    }

    /// Records a read.
    pub(crate) fn record_read(&mut self, slot: &Slot, version: u64, kind: ReadKind) {
        if let Some(log) = &mut self.log {
            log.read(slot, version, kind);
        }
    }

    /// The attempt's pinned epoch.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn pin(&self) -> &Pin {
        self.pin.as_ref().expect("an attempt in progress is pinned")
    }

    /// Memory that lives until the attempt ends. Nothing in it is dropped.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn allocate<T>(&self, value: T) -> *mut u8 {
        std::ptr::from_mut(self.arena.alloc(value)).cast()
    }

    #[inline]
    pub(crate) fn observe(
        &mut self,
        observed: Observed,
        by: NonNull<dyn Object<P>>,
    ) -> Result<(), ConflictCause> {
        match self.structures.observe(observed) {
            Ok(first) => {
                if first {
                    self.observers.push(by);
                }
                Ok(())
            }
            Err(Contradiction { position }) => Err(ConflictCause {
                reason: Reason::StructureChanged,
                target: ConflictTarget::Structure(position as u32),
            }),
        }
    }

    /// A number under which a report finds a bucket or leaf, of an attempt that has lost over it and will not commit.
    pub(crate) fn enter_lost(&mut self, observed: Observed, by: NonNull<dyn Object<P>>) -> u32 {
        // If it contradicts an earlier observation, that one will do.
        let _ = self.observe(observed, by);
        self.structures.number_of(observed.node).unwrap_or_default() as u32
    }

    pub(crate) fn follow(&mut self, change: StructureChange, by: NonNull<dyn Object<P>>) {
        self.structures.follow(change);
        self.observers.resize(self.structures.len(), by);
    }

    /// How many buckets and leaves were observed.
    pub(crate) fn observations(&self) -> u32 {
        self.structures.len() as u32
    }

    pub(crate) fn observation_at(&self, number: u32) -> (Observed, NonNull<dyn Object<P>>) {
        (self.structures.get(number as usize), self.observers[number as usize])
    }

    pub(crate) fn observation(&self, number: u32) -> (Observed, &dyn Object<P>) {
        let (observed, observer) = self.observation_at(number);
        // SAFETY: whoever observed promised that the object lives until the attempt ends.
        (observed, unsafe { observer.as_ref() })
    }

    /// Whether all observed buckets and leaves are as they were observed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn check_structures(&self) -> Result<(), ConflictCause> {
        if self.structures.is_empty() {
            return Ok(());
        }
        match self.structures.first_changed(self.pin().guard()) {
            None => Ok(()),
            Some(position) => Err(ConflictCause {
                reason: Reason::StructureChanged,
                target: ConflictTarget::Structure(position as u32),
            }),
        }
    }

    /// Checks the predicates of all items. `holds` looks at one, with [`predicate_holds`](Self::predicate_holds), and
    /// sees to it that what it says stays true.
    #[inline]
    pub fn check_predicates(
        &mut self,
        mut holds: impl FnMut(&mut Self, ItemId) -> Result<bool, ConflictCause>,
    ) -> Result<(), ConflictCause> {
        if !self.items.has_predicates() {
            return Ok(());
        }
        for id in self.items.ids() {
            if self.items.get(id).is(Flags::PREDICATE) && !holds(self, id)? {
                return Err(ConflictCause::item(Reason::PredicateFailed, id));
            }
        }
        Ok(())
    }

    /// Whether any bucket or leaf was observed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn has_structures(&self) -> bool {
        !self.structures.is_empty()
    }

    /// Whether any write is an insertion or a deletion, or something else that wants
    /// [cleanup](crate::Object::cleanup).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn changes_structure(&self) -> bool {
        self.wants_cleanup
    }

    /// Whether an intention may add to an index or take from it, which nobody can see before it has run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn will_restructure(&self) -> bool {
        self.intentions.will_restructure()
    }

    /// Whether an intention may take from an index, which nobody can see before it has run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn will_remove(&self) -> bool {
        self.intentions.will_remove()
    }

    /// Whether an item's predicate holds of the value that is there now. Run it inside a stable load.
    #[inline]
    pub fn predicate_holds(&self, id: ItemId) -> bool {
        let item = self.items.get(id);
        assert!(item.is(Flags::PREDICATE), "asked of items with a predicate");
        // SAFETY: the item has a predicate of its object.
        let holds = unsafe { item.object().predicate_holds(item) };
        // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
        if let Some(slot) = unsafe { self.slot(item.object(), item.segment()) } {
            self.record_predicate(id, &slot, slot.version());
        }
        holds
    }

    /// Installs the pending write of an item.
    ///
    /// # Safety
    ///
    /// [`Protocol::prepare`] has returned `Ok`. The item is in [`Items::writes`], and its write has not been installed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn install(&mut self, id: ItemId) {
        let Self { items, pin, log, .. } = self;
        let item = items.get_mut(id);
        if cfg!(debug_assertions) {
            item.mark_as(Flags::INSTALLED);
        }
        let object = item.object;
        let pin = pin.as_ref().expect("an attempt in progress is pinned");
        if P::ALLOWS_STEALING && item.is(Flags::ADOPTED) && !item.payload.is_null() {
            memory::read(item.payload);
        }
        // SAFETY: the object outlives the attempt; the item has a pending write (it is in `writes`) that was not
        // consumed yet, and the lock is held: the caller's promise.
        unsafe { object.as_ref().install(item, pin) };
        if let Some(log) = log {
            log.installed(id);
        }
    }

    /// Finds the keys of all pending writes, before any of them is installed. Their names are made by users'
    /// code, which may panic; between one installation and the next it must not.
    #[cold]
    pub(crate) fn name_writes(&mut self) {
        let Self { items, log: Some(log), .. } = self else { return };
        for id in items.writes() {
            let item = items.get(*id);
            if let Some(effect) = item.object().effect(item) {
                // SAFETY: the item's segment is its object's, and in memory until the attempt ends.
                let slot = unsafe { slot_in(log, item.object(), item.segment()) };
                log.will_write(*id, slot, effect);
            }
        }
        log.sort_writes();
    }

    /// True if every pending write has been installed, where that is noted.
    pub(crate) fn is_installed(&self) -> bool {
        self.items.writes().iter().all(|id| self.items.get(*id).is(Flags::INSTALLED))
    }

    /// Undoes all pending writes, the last first. What panics must not keep the protocol from releasing what it holds.
    pub(crate) fn undo(&mut self) {
        self.visit_writes(|object, item, pin| {
            // SAFETY: the item has a pending write that was not installed: a commit that fails installs none.
            contained(|| unsafe { object.undo(item, pin) });
        });
    }

    /// Runs the cleanup of the writes that want one, the last first (sto §3.7). Of one that panics (a key's hash) the rest
    /// is left undone, and the others are done.
    #[inline]
    pub(crate) fn cleanup(&mut self, committed: bool, panics: &mut Panics) {
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
        let pin = pin.as_ref().expect("an attempt in progress is pinned");
        for at in (0..items.writes().len()).rev() {
            let id = items.writes()[at];
            let item = items.get_mut(id);
            let object = item.object;
            // SAFETY: the object outlives the attempt.
            visit(unsafe { object.as_ref() }, item, pin);
        }
    }
}

/// A segment's key, named by its object.
struct NamedSegment<'o, P: Protocol> {
    object: &'o dyn Object<P>,
    segment: NonNull<P::Header>,
}

impl<P: Protocol> Named for NamedSegment<'_, P> {
    fn bytes(&self, bytes: &mut Vec<u8>) {
        // SAFETY: `slot_in`'s caller promised that the segment is the object's and in memory.
        unsafe { self.object.name(self.segment, bytes) };
    }

    fn text(&self) -> String {
        // SAFETY: as for `bytes`.
        unsafe { self.object.describe(self.segment) }
    }
}

/// # Safety
///
/// The segment is the object's and in memory.
unsafe fn slot_in<P: Protocol>(log: &Log, object: &dyn Object<P>, segment: NonNull<P::Header>) -> Arc<Slot> {
    log.slot(object.meta(), &NamedSegment { object, segment })
}
