//! An attempt: one execution of a transaction's body, as its protocol sees it.

use crate::kernel::abort::Reason;
use crate::kernel::capabilities::Abilities;
use crate::kernel::item::{Flags, Item, ItemId, Items};
use crate::kernel::object::Object;
use crate::kernel::object_access::Stop;
use crate::kernel::profile::{Isolation, Profile};
use crate::kernel::protocol::{ConflictCause, Protocol};
use crate::kernel::read_log::ReadLog;
use crate::kernel::slots::{Moments, Slots, WorkerSlot};
use crate::kernel::statistics::CounterPlace;
use crate::memory::arena::Arena;
use crate::memory::course::{Course, WaitLimit};
use crate::memory::identity::ObjectMeta;
use crate::memory::identity::WorkerId;
use crate::memory::pin::Pin;
use crate::memory::retained::{self, Holder, NOBODY};
use crate::memory::structure::{KeySpan, StructureSet};
use crate::memory::users_code::{Panics, contained};
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;
use std::alloc::Layout;
use std::ptr::NonNull;

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
    /// Nowhere: the attempt does not depend on them, and nobody hears of them.
    Unkept,
}

/// All state of one attempt. A worker has one and reuses it.
pub struct Attempt<P: Protocol> {
    /// The segments that it has touched.
    pub items: Items<P>,
    /// The reads that need no item.
    pub reads: ReadLog<P>,
    pub(crate) read_path: ReadPath,
    /// The protocol's own state for this worker.
    pub local: P::Local,
    abilities: Abilities,
    /// The buckets and leaves that it has observed.
    pub(crate) observed: Observations<P>,
    pub(crate) arena: Arena,
    pub(crate) pin: Option<Pin>,
    pub(crate) worker: WorkerId,
    /// The worker's slot; `None` for a part that a thief runs.
    slot: Option<Arc<WorkerSlot<P>>>,
    /// The entry in the registry of open attempts; `NOBODY` for a part that a thief runs.
    pub(crate) holder: &'static Holder,
    pub(crate) profile: Profile,
    pub(crate) course: Course,
    /// The moments of which somebody hears.
    pub(crate) hears: Moments,
    /// The cause for which it cannot commit; `None` while it can.
    pub(crate) stop: Option<Stop>,
    /// The state of features in it.
    pub(crate) features: <P as Slots>::State,
}

/// The buckets and leaves that an attempt has observed, each with the object that observed it.
pub(crate) struct Observations<P: Protocol> {
    pub(crate) structures: StructureSet,
    pub(crate) observers: Vec<NonNull<dyn Object<P>>>,
}

impl<P: Protocol> Observations<P> {
    fn new() -> Self {
        Self { structures: StructureSet::new(), observers: Vec::new() }
    }

    /// For very few.
    fn small() -> Self {
        Self { structures: StructureSet::small(), observers: Vec::new() }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.structures.is_empty()
    }

    #[inline]
    fn clear(&mut self) {
        if !self.is_empty() {
            self.structures.clear();
            self.observers.clear();
        }
    }
}

// SAFETY: the raw pointers in it (items, payloads, observers) belong to an attempt in progress, and a worker
// can be moved to another thread only between attempts, when all of these are cleared. `Pin`, which is not
// `Send`, is `None` then, and so is `stop`, whose report may have another one: whoever ends an attempt takes it, or drops it with the
// access. Of an attempt that was leaked, `abandon` forgets both. `Local` is `Send`, and so is everything else.
unsafe impl<P: Protocol> Send for Attempt<P> {}

impl<P: Protocol> Attempt<P> {
    pub(crate) fn new(
        slot: Arc<WorkerSlot<P>>,
        local: P::Local,
        features: <P as Slots>::State,
        protocol: &P,
    ) -> Self {
        let worker = WorkerId(slot.number);
        Self {
            slot: Some(slot),
            abilities: Abilities::of(protocol),
            features,
            ..Self::with(Items::new(), Observations::new(), worker, local)
        }
    }

    /// Makes an attempt for very few items.
    pub(crate) fn small(protocol: &P) -> Self {
        Self {
            abilities: Abilities::of(protocol),
            ..Self::with(Items::small(), Observations::small(), WorkerId(0), P::Local::default())
        }
    }

    fn with(items: Items<P>, observed: Observations<P>, worker: WorkerId, local: P::Local) -> Self {
        Self {
            items,
            reads: ReadLog::new(),
            read_path: ReadPath::Item,
            local,
            abilities: Abilities::NONE,
            observed,
            arena: Arena::default(),
            pin: None,
            worker,
            slot: None,
            holder: &NOBODY,
            profile: Profile::UNKNOWN,
            course: Course::default(),
            hears: Moments::NONE,
            stop: None,
            features: Default::default(),
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
    pub(crate) fn slot(&self) -> Option<&WorkerSlot<P>> {
        self.slot.as_deref()
    }

    /// The number of earlier attempts of the same transaction.
    #[inline]
    pub fn number(&self) -> u32 {
        self.course.number
    }

    /// True if its transaction makes no attempt after this one, whatever happens: one that is stepped by hand, or the last
    /// one that the policy allows.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.course.is_last
    }

    /// The facts that the transaction has declared about itself.
    #[inline]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The limit of a wait for other transactions that begins now. It [is over](WaitLimit::is_over) once the transaction's
    /// deadline has passed or the transaction was told to end.
    pub fn wait_max(&mut self) -> WaitLimit {
        WaitLimit::new(self.course.budget.left(), self.course.may_be_told.then_some(self.holder))
    }

    /// True if the body comes in statements, with any time between them: that of a [session](crate::Session). Such an attempt
    /// should hold as little as possible between two operations.
    #[inline(always)]
    pub fn is_interactive(&self) -> bool {
        self.course.is_interactive
    }

    /// True if it was told to end, and listens while it waits.
    pub(crate) fn has_to_end(&self) -> bool {
        self.course.may_be_told && self.holder.is_told() && !P::must_end(self)
    }

    /// Makes it the only attempt of a session.
    pub(crate) fn make_interactive(&mut self) {
        self.course.is_interactive = true;
    }

    /// The number of the thread that runs it.
    #[inline(always)]
    pub fn thread(&self) -> u64 {
        self.course.thread
    }

    /// Prepares for the first attempt of a transaction.
    #[inline]
    pub(crate) fn begin_transaction(&mut self, deadline: Option<Duration>) {
        self.course.set_deadline(deadline);
        self.course.may_be_told = self.course.is_interactive;
        P::admitted(self);
    }

    #[inline]
    pub(crate) fn open(&mut self, number: u32, profile: Profile, thread: u64) {
        if self.is_open() {
            self.abandon();
        }
        debug_assert!(self.stop.is_none(), "the end of an attempt takes its cause");
        self.profile = profile;
        self.profile.read_only = profile.only_reads();
        let course = &mut self.course;
        course.number = number;
        if course.thread != thread {
            course.thread = thread;
            self.holder.name_thread();
        }
        self.holder.begin(number);
        self.pin = Some(Pin::of_attempt());
        self.hears = Moments::NONE;
        P::opened(self);
        self.read_path = if self.can_defer() { ReadPath::Item } else { self.path_of_logged_reads() };
    }

    /// True if somebody hears of some of these moments.
    #[inline(always)]
    pub(crate) fn hears(&self, moments: Moments) -> bool {
        self.hears.have(moments)
    }

    /// True if the attempt depends on what it reads: it is serializable, and in no part whose reads are
    /// [untracked](crate::Transaction::untracked).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn keeps_reads(&self) -> bool {
        !self.hears(Moments::READ_APART) || self.profile.isolation == Isolation::Serializable
    }

    /// True if operations of its transactions can be deferred.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn can_defer(&self) -> bool {
        P::DEFERS && self.abilities.defers
    }

    /// True if waiting workers can run operations of its transactions.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn allows_stealing(&self) -> bool {
        P::ALLOWS_STEALING && self.abilities.steals
    }

    #[inline(always)]
    fn logs_reads(&self) -> bool {
        P::LOGS_READS && self.abilities.logs_reads
    }

    /// True if its reads are logged, and nobody else hears of them: it is serializable, on no snapshot, and in no history.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn logs_reads_only(&self) -> bool {
        P::LOGS_READS && self.read_path == ReadPath::Log
    }

    /// The path of reads that are logged where the protocol logs them.
    #[inline(always)]
    pub(crate) fn path_of_logged_reads(&self) -> ReadPath {
        match () {
            () if !self.logs_reads() || self.profile.isolation != Isolation::Serializable => ReadPath::Item,
            () if self.hears(Moments::READ) => P::path_of_noted_reads(self),
            () => ReadPath::Log,
        }
    }

    /// Gives up an attempt whose transaction was leaked ([`std::mem::forget`]). Its locks stay held for ever, as those of a thread that has
    /// died. The pin, the cause that has stopped it, and the inputs and results of deferred operations are leaked, too. The attempt's holder
    /// shows that for ever; the worker gets another one.
    #[cold]
    pub(crate) fn abandon(&mut self) {
        // INVARIANT 11: A leaked attempt drops nothing that need not be `Send`: its worker may be on another thread.
        std::mem::forget(self.pin.take());
        self.holder = retained::replace(self.holder);
        self.course.thread = 0;
        std::mem::forget(self.stop.take());
        P::abandoned(self);
        self.forget(&mut Panics::default());
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
        self.holder.end();
        self.pin = None;
        if self.hears(Moments::CLOSED) {
            P::closed(self);
        }
        if retained::is_anybody_noticed() {
            retained::after_holder(self.holder);
        }
    }

    /// Forgets items, payloads, and what features remember of them. Pending writes have been consumed, or belong to another attempt.
    #[inline]
    pub(crate) fn forget(&mut self, panics: &mut Panics) {
        if self.hears(Moments::FORGETTING) {
            P::forgetting(self, panics);
        }
        self.forget_items();
        self.arena.reset();
    }

    /// Forgets all items. Their payloads stay, because another attempt may have adopted them.
    #[inline]
    pub(crate) fn forget_items(&mut self) {
        self.items.clear();
        self.reads.clear();
        self.observed.clear();
        self.hears.remove(Moments::OF_OBJECTS);
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
        !self.observed.is_empty()
    }

    /// The objects whose buckets or leaves were observed; an object may come several times.
    #[inline]
    pub fn observed_objects(&self) -> impl Iterator<Item = &ObjectMeta> {
        // SAFETY: the caller of `observe` promised that the object lives until the attempt ends.
        self.observed.observers.iter().map(|observer| unsafe { observer.as_ref() }.meta())
    }

    /// The parts of objects in which the attempt has observed which keys are there.
    #[inline]
    pub fn observed_spans(&self) -> impl Iterator<Item = (&ObjectMeta, KeySpan)> {
        (0..self.observations()).map(|number| {
            let (_, object) = self.observation(number);
            let span = self.observed.structures.seen(number as usize).map_or(KeySpan::ALL, |seen| {
                // SAFETY: as in `still_holds`.
                unsafe { object.span_seen(seen) }
            });
            (object.meta(), span)
        })
    }

    /// True if any write is an insertion or a deletion, or wants [cleanup](crate::Object::cleanup) for another reason.
    #[inline]
    pub fn changes_structure(&self) -> bool {
        self.hears(Moments::CLEANUP)
    }

    /// True if an item's predicate holds of the segment's current value. Call it inside a stable load.
    #[inline]
    pub fn predicate_holds(&self, id: ItemId) -> bool {
        let item = self.items.get(id);
        // INVARIANT 9: An item's payload is used only as its flags and its tag say.
        assert!(item.is(Flags::PREDICATE), "asked of items with a predicate");
        // SAFETY: the item has a predicate of its object.
        let holds = unsafe { item.object().predicate_holds(item) };
        if self.hears(Moments::READ) {
            P::judged(self, id);
        }
        holds
    }

    /// Installs the pending write of an item.
    ///
    /// # Safety
    ///
    /// [`Steps::prepare`](crate::Steps::prepare) has returned `Ok`. The item is in [`Items::writes`], and its write has not been installed.
    #[inline(always)]
    pub(crate) unsafe fn install(&mut self, id: ItemId) {
        let is_heard = self.hears(Moments::INSTALLING);
        if is_heard {
            // SAFETY: the write is installed next, and its segment is locked: the attempt is prepared.
            unsafe { P::installing(self, id) };
        }
        let Self { items, pin, .. } = self;
        let item = items.get_mut(id);
        if cfg!(debug_assertions) {
            item.mark_as(Flags::INSTALLED);
        }
        // SAFETY: the caller's promise.
        unsafe { item.install(pin.as_ref().expect(PINNED)) };
        if is_heard {
            P::installed(self, id);
        }
    }

    /// Installs all pending writes, in the order of first write, and calls `before` and `after` around each.
    ///
    /// # Safety
    ///
    /// [`Steps::prepare`](crate::Steps::prepare) has returned `Ok`, and none was installed.
    #[inline(always)]
    pub(crate) unsafe fn install_all(
        &mut self,
        mut before: impl FnMut(&Item<P>),
        mut after: impl FnMut(&Item<P>),
    ) {
        if self.hears(Moments::INSTALLING) {
            for at in 0..self.items.writes().len() {
                let id = self.items.writes()[at];
                before(self.items.get(id));
                // SAFETY: the caller's promise.
                unsafe { self.install(id) };
                after(self.items.get(id));
            }
            return;
        }
        // The same, for nobody who hears of it.
        let Self { items, pin, .. } = self;
        let pin = pin.as_ref().expect(PINNED);
        for at in 0..items.writes().len() {
            let item = items.write_mut(at);
            before(item);
            if cfg!(debug_assertions) {
                item.mark_as(Flags::INSTALLED);
            }
            // SAFETY: the caller's promise.
            unsafe { item.install(pin) };
            after(item);
        }
    }

    /// True if every pending write has been installed, where that is noted: see `Flags::INSTALLED`.
    pub(crate) fn is_installed(&self) -> bool {
        self.items.writes().iter().all(|id| self.items.get(*id).is(Flags::INSTALLED))
    }

    /// Undoes all pending writes, the last first. A panic is contained, so that the protocol still releases its locks.
    pub(crate) fn undo(&mut self) {
        P::undoing(self);
        self.visit_writes(|object, item, pin| {
            // SAFETY: the item has a pending write that was not installed: a commit that fails installs none.
            contained(|| unsafe { object.undo(item, pin) });
        });
    }

    /// Tells that the attempt has ended, and runs the cleanup of the writes that want one, the last first (sto §3.7). If one panics (in a
    /// key's hash), the rest of that one is skipped, and the others are still done.
    #[inline]
    pub(crate) fn cleanup(&mut self, committed: bool, panics: &mut Panics) {
        if self.hears(Moments::ENDED) {
            P::ended(self, committed, panics);
        }
        if self.hears(Moments::CLEANUP) {
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
