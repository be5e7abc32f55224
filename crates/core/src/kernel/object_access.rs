//! A transaction in an operation of an object: the interface that datatypes are built on.

use crate::kernel::abort::NotDurable;
use crate::kernel::abort::{Abort, Error, Misuse};
use crate::kernel::attempt::{Attempt, ReadPath};
use crate::kernel::capabilities::LoggedReads;
use crate::kernel::item::{Flags, ItemId, TouchedSegment};
use crate::kernel::loss::ConflictReport;
use crate::kernel::object::Object;
use crate::kernel::protocol::{Look, Protocol};
use crate::kernel::slots::WorkerSlot;
use crate::kernel::slots::{Moments, Slots};
use crate::kernel::statistics::NamedCounters;
use crate::memory::identity::EngineId;
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::Pin;
use crate::memory::retained::{Told, is_anybody_told, told_cause};
use crate::memory::structure::StructureChange;
use hotrow_sync::profile;
use hotrow_sync::thread::label;
use hotrow_sync::work::{Work, charge};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

mod ending;
mod pending;

/// A transaction in an operation of an object: the interface for authors of datatypes.
///
/// An operation gets it by [entering](crate::Transaction::enter), so there is no access without the checks that `enter`
/// makes. The work of a deferred operation gets it from the engine. The unsafe methods share one contract, stated at
/// [`read`](Self::read).
///
/// It is the transaction, too: it dereferences to [`Transaction`](crate::Transaction), so that an operation may call others, of the same
/// object or of another one.
pub struct ObjectAccess<'w, P: Protocol> {
    pub(crate) protocol: &'w P,
    pub(crate) attempt: &'w mut Attempt<P>,
    pub(crate) slot: &'w WorkerSlot<P>,
    /// The engine while the attempt can commit; 0, which no object has, once it cannot. So one comparison at the start
    /// of each operation finds both a foreign object and a stopped attempt.
    pub(crate) engine: EngineId,
    /// True if the report of a loss names object and key.
    pub(crate) describe: bool,
    pub(crate) open: bool,
    /// True if the first half of the commit has succeeded: what was read is one consistent state.
    pub(crate) is_valid: bool,
    /// The attempt's pinned epoch is its thread's, so a transaction must not be sent to another thread.
    _thread: PhantomData<*const ()>,
}

/// Defines a room of the access, what an operation may ask of one feature and tell it, and the two ways to the room.
macro_rules! room_of_access {
    ($(#[$doc:meta])* $Room:ident, $room:ident, $room_mut:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $Room<'w, P: $crate::kernel::protocol::Protocol>(
            $crate::kernel::object_access::ObjectAccess<'w, P>,
        );

        impl<P: $crate::kernel::protocol::Protocol> std::fmt::Debug for $Room<'_, P> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($Room)).field(&self.0).finish()
            }
        }

        impl<'w, P: $crate::kernel::protocol::Protocol> std::ops::Deref for $Room<'w, P> {
            type Target = $crate::kernel::object_access::ObjectAccess<'w, P>;

            #[inline(always)]
            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl<P: $crate::kernel::protocol::Protocol> std::ops::DerefMut for $Room<'_, P> {
            #[inline(always)]
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }

        impl<'w, P: $crate::kernel::protocol::Protocol> $crate::kernel::object_access::ObjectAccess<'w, P> {
            $(#[$doc])*
            #[inline(always)]
            pub fn $room(&self) -> &$Room<'w, P> {
                // SAFETY: the room is a transparent wrapper of this type, with no invariant of its own.
                unsafe { &*std::ptr::from_ref(self).cast() }
            }

            /// As the method without `mut`, to change something.
            #[inline(always)]
            pub fn $room_mut(&mut self) -> &mut $Room<'w, P> {
                // SAFETY: as above.
                unsafe { &mut *std::ptr::from_mut(self).cast() }
            }
        }
    };
}
pub(crate) use room_of_access;

/// The cause for which an attempt cannot commit.
#[derive(Debug)]
pub(crate) enum Stop {
    Lost(ConflictReport),
    Misuse(Misuse),
    /// An intention asked for a rollback, with this reason.
    RolledBack(Abort),
    /// An intention panicked, with this message.
    Panicked(String),
    /// It was told to end.
    Told(Told),
    /// The log does not take its record, for this reason.
    Refused(String),
    /// The body waits for a change, for this time at most, in a transaction of this engine.
    Retry {
        engine: EngineId,
        time_max: Option<Duration>,
    },
}

impl AttemptOutcome {
    /// The result of a transaction that has this attempt only.
    pub(crate) fn result(self) -> Result<(), Error> {
        Err(match self {
            AttemptOutcome::Done => return Ok(()),
            AttemptOutcome::Lost(lost) => Error::Conflict(lost.into_conflict(1, Duration::ZERO)),
            AttemptOutcome::Misused(misuse) => Error::Misuse(misuse),
            AttemptOutcome::RolledBack(reason) => Error::Rollback(reason),
            AttemptOutcome::Panicked(message) => Error::Panicked { message },
            AttemptOutcome::Told(told) => told.into(),
            AttemptOutcome::NotDurable(failure) => Error::NotDurable(failure),
            AttemptOutcome::Retry(_) => Error::Misuse(Misuse::CannotWait),
        })
    }
}

/// The outcome of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptOutcome {
    /// As the body wanted: committed, or rolled back.
    Done,
    /// It lost a conflict.
    Lost(ConflictReport),
    /// A misuse, which can never work.
    Misused(Misuse),
    /// An intention asked for a rollback, with this reason.
    RolledBack(Abort),
    /// An intention panicked, with this message.
    Panicked(String),
    /// It was told to end.
    Told(Told),
    /// It has committed, and is perhaps not durable, or it could not commit because the log takes no more.
    NotDurable(NotDurable),
    /// The body waits for a change, for this time at most.
    Retry(Option<Duration>),
}

/// The result of a read.
#[derive(Debug)]
pub enum ReadValue<V> {
    /// The attempt has a pending write of the segment: the value is in the item's payload.
    Own(ItemId),
    /// The result of `load`, stable.
    Shared(V),
}

/// Message of a panic that cannot happen.
const LOGS_READS: &str = "the protocol logs reads";

/// Message of a panic that cannot happen.
pub(crate) const LOADED: &str = "a read that succeeds has loaded its value";

const STOPPED: EngineId = EngineId(0);

impl<P: Protocol> fmt::Debug for ObjectAccess<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (worker, attempt) = (self.worker().number(), self.attempt_number());
        f.debug_struct("ObjectAccess")
            .field("worker", &worker)
            .field("attempt", &attempt)
            .finish_non_exhaustive()
    }
}

impl<'w, P: Protocol> ObjectAccess<'w, P> {
    /// Makes the transaction of an attempt that was opened just now.
    #[inline]
    pub(crate) fn begin(
        protocol: &'w P,
        engine: EngineId,
        attempt: &'w mut Attempt<P>,
        slot: &'w WorkerSlot<P>,
        describe: bool,
    ) -> Self {
        profile::attempt_begins();
        label("begin");
        charge(Work::Attempt);
        if !attempt.hears(Moments::ALONE) {
            protocol.begin(attempt);
            P::began(protocol, attempt);
        }
        label("body");
        Self::of(protocol, engine, attempt, slot, describe, true)
    }

    /// Makes a transaction for a thief, which runs one operation for its owner. It must not be dropped.
    pub(crate) fn of_stolen_work(
        protocol: &'w P,
        engine: EngineId,
        attempt: &'w mut Attempt<P>,
        slot: &'w WorkerSlot<P>,
    ) -> Self {
        Self::of(protocol, engine, attempt, slot, false, false)
    }

    /// Makes a transaction. It is open if it has to end the attempt.
    #[inline(always)]
    fn of(
        protocol: &'w P,
        engine: EngineId,
        attempt: &'w mut Attempt<P>,
        slot: &'w WorkerSlot<P>,
        describe: bool,
        open: bool,
    ) -> Self {
        Self { protocol, attempt, slot, engine, describe, open, is_valid: false, _thread: PhantomData }
    }

    /// Takes the cause for which it cannot commit, for the owner of stolen work.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.attempt.stop.take()
    }

    pub(crate) fn engine(&self) -> EngineId {
        self.engine
    }

    pub(crate) fn slot(&self) -> NonNull<WorkerSlot<P>> {
        NonNull::from(self.slot)
    }

    /// The worker's counters that the protocol and its capabilities name.
    #[inline(always)]
    pub(crate) fn counters(&self) -> &NamedCounters {
        self.slot.counters.named()
    }

    /// The attempt's pinned epoch.
    #[inline]
    pub fn pin(&self) -> &Pin {
        // INVARIANT 7: An access exists only while its attempt is pinned, so that what an item points to stays in memory.
        debug_assert!(self.attempt.is_open());
        // SAFETY: an access is of an attempt in progress, which is pinned: `begin` and `of_stolen_work` get one, and no operation can have
        // the access when that is closed.
        unsafe { self.attempt.pin.as_ref().unwrap_unchecked() }
    }

    /// Makes the checks of [`Transaction::enter`].
    #[inline]
    pub(super) fn check_in(&mut self, meta: &ObjectMeta) -> Result<(), Abort> {
        charge(Work::Operation);
        profile::enter_object(std::ptr::from_ref(meta).addr(), || meta.name().to_owned());
        if meta.engine() != self.engine || self.is_told() {
            return Err(self.refuse(meta));
        }
        if self.is_on_snapshot() {
            return Ok(());
        }
        match self.protocol.enter(self.attempt) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.refuse_all_keys(meta, error)),
        }
    }

    /// True if the attempt was told to end. Makes no call, even if another attempt was told: after a call that returns,
    /// the compiler would have to reload what it has loaded for the operation.
    #[inline(always)]
    fn is_told(&self) -> bool {
        is_anybody_told() && self.attempt.holder.is_told() && !P::must_end(self.attempt)
    }

    #[cold]
    fn refuse(&mut self, meta: &ObjectMeta) -> Abort {
        if self.attempt.stop.is_some() {
            return Abort::INTERNAL;
        }
        if meta.engine() == self.engine {
            return self.heed();
        }
        let object = meta.name().to_owned();
        let is_closed = meta.engine() == self.engine.of_closed();
        self.misuse(if is_closed { Misuse::Dropped { object } } else { Misuse::ForeignObject { object } })
    }

    /// Lets the attempt use the engine's closed objects, and no others.
    pub(crate) fn use_closed_objects(&mut self) {
        if !self.is_stopped() {
            self.engine = self.engine.of_closed();
        }
    }

    /// Ends the attempt because it was told to end.
    #[cold]
    pub(crate) fn heed(&mut self) -> Abort {
        self.stop(Stop::Told(told_cause(self.attempt.holder)))
    }

    /// Ends the attempt for a use that can never work.
    #[cold]
    pub fn misuse(&mut self, misuse: Misuse) -> Abort {
        self.stop(Stop::Misuse(misuse))
    }

    /// True if the attempt can no longer commit.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.engine == STOPPED
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn stop(&mut self, stop: Stop) -> Abort {
        // INVARIANT 5: An attempt that has lost cannot commit, whatever its body does.
        self.engine = STOPPED;
        if self.attempt.stop.is_none() {
            self.attempt.stop = Some(stop);
        }
        Abort::INTERNAL
    }

    /// Ends the attempt because an intention asked for a rollback.
    #[cold]
    pub(crate) fn roll_back_later(&mut self, reason: Abort) -> Abort {
        self.stop(Stop::RolledBack(reason))
    }

    /// Ends the attempt because an intention panicked.
    #[cold]
    pub(crate) fn panicked(&mut self, message: String) -> Abort {
        self.stop(Stop::Panicked(message))
    }

    /// Reads a segment: its stable value, or the attempt's own pending write.
    ///
    /// # Safety
    ///
    /// - `segment` belongs to `object`: the object's [`Object`] functions can work with it;
    /// - both stay in memory until the attempt ends: they are freed through the epoch only;
    /// - this access is of an operation of `object`, or of an object of the same engine of which `object` is a part: the
    ///   operation got it by [entering](crate::Transaction::enter) with the [`ObjectMeta`], or the operation's deferred work
    ///   got it from the engine; and nothing that the operation has called on it has failed.
    ///
    /// That an operation enters at all is no promise of the caller's: there is no other way to an access.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn read<V, O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
        load: impl FnMut() -> V,
    ) -> Result<ReadValue<V>, Abort> {
        // SAFETY: the caller's promise, in all three.
        unsafe {
            if self.attempt.logs_reads_only() {
                self.read_logged(TouchedSegment::new(segment, NonNull::from(object)), load)
            } else if !P::LOGS_READS || P::DEFERS && self.attempt.read_path == ReadPath::Item {
                self.read_by_item(TouchedSegment::new(segment, NonNull::from(object)), load)
            } else {
                self.read_otherwise(object, segment, load)
            }
        }
    }

    /// Makes a read that is recorded, or is at read committed, under a protocol that logs reads.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[cold]
    #[inline(never)]
    unsafe fn read_otherwise<V, O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
        mut load: impl FnMut() -> V,
    ) -> Result<ReadValue<V>, Abort> {
        let mut value = None;
        // SAFETY: the caller's promise.
        let touched = unsafe { TouchedSegment::new(segment, NonNull::from(object)) };
        // SAFETY: the caller's promise.
        match unsafe { self.read_otherwise_by(touched, &mut || value = Some(load())) }? {
            ReadValue::Own(id) => Ok(ReadValue::Own(id)),
            ReadValue::Shared(()) => Ok(ReadValue::Shared(value.expect(LOADED))),
        }
    }

    /// Is compiled once for all results.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline(never)]
    pub(crate) unsafe fn read_otherwise_by(
        &mut self,
        touched: TouchedSegment<P>,
        load: &mut dyn FnMut(),
    ) -> Result<ReadValue<()>, Abort> {
        // SAFETY: the caller's promise, in both.
        unsafe {
            match self.attempt.read_path {
                ReadPath::Item => self.read_by_item(touched, load),
                ReadPath::Unkept => self.read_unkept(touched, load),
                ReadPath::Log | ReadPath::LogAndRecord => self.read_logged_recorded(touched, load),
            }
        }
    }

    /// Reads a segment, and notes in its item that it was read.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub(crate) unsafe fn read_by_item<V>(
        &mut self,
        touched: TouchedSegment<P>,
        mut load: impl FnMut() -> V,
    ) -> Result<ReadValue<V>, Abort> {
        touched.announce();
        let id = if !P::TRACKS_READS {
            self.refuse_on_snapshot(touched.object().meta())?;
            return match self.own_write(touched.segment()) {
                Some(id) => Ok(ReadValue::Own(id)),
                None => {
                    let value = if self.attempt.hears(Moments::READ) {
                        // SAFETY: the caller's promise.
                        unsafe { self.load_recorded(touched, load) }
                    } else {
                        load()
                    };
                    self.attempt.note_seen_segment(&touched);
                    Ok(ReadValue::Shared(value))
                }
            };
        } else {
            let id = self.item_of(touched);
            self.settle_before(id)?;
            if self.attempt.items.get(id).is(Flags::WRITE) {
                if self.attempt.can_defer() && self.attempt.is_recorded() {
                    self.record_own_read(id);
                }
                return Ok(ReadValue::Own(id));
            }
            self.note_read(id);
            id
        };
        self.look(id, Look::Read, load).map(ReadValue::Shared)
    }

    /// Loads the value of an item's segment.
    #[inline(always)]
    fn look<V>(&mut self, id: ItemId, look: Look, load: impl FnMut() -> V) -> Result<V, Abort> {
        let result = if self.attempt.hears(Moments::READ_APART) {
            self.refuse_item_on_snapshot(id)?;
            self.read_noted(id, look, load)
        } else {
            self.attempt.load(self.protocol, id, look, load)
        };
        match result {
            Ok(value) => Ok(value),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Reads a segment without an item, unless it was written.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn read_logged<V>(
        &mut self,
        touched: TouchedSegment<P>,
        load: impl FnMut() -> V,
    ) -> Result<ReadValue<V>, Abort> {
        touched.announce();
        if let Some(id) = self.own_write(touched.segment()) {
            return Ok(ReadValue::Own(id));
        }
        let logged = P::LoggedReads::of(self.protocol).expect(LOGS_READS);
        match self.attempt.load_logged(logged, touched, load) {
            Ok(value) => Ok(ReadValue::Shared(value)),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// False at read committed and in an [untracked](crate::Transaction::untracked) part: the transaction does not depend on what
    /// it reads, so an object keeps no condition of it, and an operation that has to look at two segments finds by itself
    /// what was true at one moment. False on a snapshot, too.
    #[inline]
    pub fn keeps_reads(&self) -> bool {
        self.attempt.keeps_reads()
    }

    #[cold]
    fn refuse_write(&mut self, meta: &ObjectMeta) -> Abort {
        self.misuse(Misuse::ReadOnly { object: meta.name().to_owned() })
    }

    /// Ends the attempt if its transaction [only reads](crate::Profile::only_reads). [`write`](Self::write) and
    /// [`read_for_update`](Self::read_for_update) do so themselves; an operation that does something else first calls
    /// this before.
    #[inline]
    pub fn may_write(&mut self, meta: &ObjectMeta) -> Result<(), Abort> {
        if self.attempt.profile().read_only { Err(self.refuse_write(meta)) } else { Ok(()) }
    }

    /// Returns the item of a segment of which the attempt has a pending write.
    #[inline]
    pub fn own_write(&self, segment: NonNull<P::Header>) -> Option<ItemId> {
        if self.attempt.items.is_empty() {
            return None;
        }
        self.attempt.items.find(segment).filter(|id| self.attempt.items.get(*id).is(Flags::WRITE))
    }

    /// Reads a segment that the caller will write next with [`set_write`](Self::set_write). No value if
    /// the attempt has a pending write of it.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn read_for_update<V, O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
        mut load: impl FnMut() -> V,
    ) -> Result<(ItemId, Option<V>), Abort> {
        self.may_write(object.meta())?;
        // SAFETY: the caller's promise.
        let touched = unsafe { TouchedSegment::new(segment, NonNull::from(object)) };
        if self.attempt.logs_reads_only() {
            let logged = P::LoggedReads::of(self.protocol).expect(LOGS_READS);
            if let Some(before) = self.attempt.begin_load_to_write(logged, &touched) {
                let value = load();
                if let Some(id) = self.attempt.end_load_to_write(logged, &touched, before) {
                    return Ok((id, Some(value)));
                }
            }
        }
        let (id, is_written) = self.item_to_write(touched)?;
        if is_written {
            return Ok((id, None));
        }
        self.note_read(id);
        Ok((id, Some(self.look(id, Look::ReadForUpdate, load)?)))
    }

    /// Announces a write that does not depend on the segment's value; [`set_write`](Self::set_write)
    /// follows. True if the attempt has a pending write already.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn write<O: Object<P> + 'static>(
        &mut self,
        object: &O,
        segment: NonNull<P::Header>,
    ) -> Result<(ItemId, bool), Abort> {
        self.may_write(object.meta())?;
        // SAFETY: the caller's promise.
        let touched = unsafe { TouchedSegment::new(segment, NonNull::from(object)) };
        let (id, is_written) = self.item_to_write(touched)?;
        if is_written {
            return Ok((id, true));
        }
        match self.protocol.write(self.attempt, id) {
            Ok(()) => Ok((id, false)),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Returns the item of a segment that will be written, and true if it has a pending write, which is going to change.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn item_to_write(&mut self, touched: TouchedSegment<P>) -> Result<(ItemId, bool), Abort> {
        let id = self.item_of(touched);
        self.settle_before(id)?;
        let is_written = self.attempt.items.get(id).is(Flags::WRITE);
        if is_written {
            self.save(id);
            self.history_mut().record_change(id);
        }
        Ok((id, is_written))
    }

    /// Returns the item of a segment, a new one if the segment was not touched yet.
    ///
    /// # Safety
    ///
    /// As for [`read`](Self::read).
    #[inline]
    pub unsafe fn item<O: Object<P> + 'static>(&mut self, object: &O, segment: NonNull<P::Header>) -> ItemId {
        // SAFETY: the caller's promise.
        self.item_of(unsafe { TouchedSegment::new(segment, NonNull::from(object)) })
    }

    #[inline]
    fn item_of(&mut self, touched: TouchedSegment<P>) -> ItemId {
        touched.announce();
        if let Some(latest) = self.item_of_intention(touched.segment()) {
            return latest;
        }
        self.attempt.items.find_or_add(touched)
    }

    /// True if an item has a predicate.
    #[inline]
    pub fn has_predicate(&self, id: ItemId) -> bool {
        self.attempt.items.get(id).is(Flags::PREDICATE)
    }

    /// True if the segment's value was read in this attempt.
    #[inline]
    pub fn has_read(&self, id: ItemId) -> bool {
        self.attempt.items.get(id).is(Flags::READ)
    }

    /// Looks at a segment without depending on its value.
    ///
    /// # Safety
    ///
    /// The item's segment is the one that `load` looks at.
    #[inline]
    pub unsafe fn peek<V>(&mut self, id: ItemId, load: impl FnMut() -> V) -> Result<V, Abort> {
        self.settle_before(id)?;
        self.look(id, Look::Peek, load)
    }

    /// Reads a segment's shared value, even if the attempt has a pending write of it: for writes that change the value
    /// (an increment) instead of replacing it.
    ///
    /// # Safety
    ///
    /// The item's segment is the one that `load` looks at, and this attempt did not make it.
    #[inline]
    pub unsafe fn read_beside_write<V>(&mut self, id: ItemId, load: impl FnMut() -> V) -> Result<V, Abort> {
        self.note_read(id);
        if self.attempt.can_defer()
            && self.attempt.is_recorded()
            && self.attempt.items.get(id).is(Flags::WRITE)
        {
            self.record_own_read(id);
        }
        self.look(id, Look::Read, load)
    }

    /// Gives an item a predicate that the object checks at commit (sto §3.5). Without `payload`, the item's present
    /// payload has become the predicate.
    ///
    /// # Safety
    ///
    /// The object's `predicate_holds` can work with the item's payload.
    #[inline]
    pub unsafe fn set_predicate<T: Copy>(&mut self, id: ItemId, payload: Option<T>) {
        if let Some(payload) = payload {
            self.attempt.set_payload(id, payload);
        }
        self.attempt.items.mark_predicate(id);
    }

    /// Turns an item that has a payload (a predicate's) into a pending write of that payload.
    ///
    /// # Safety
    ///
    /// The object's `install` and `undo` can work with the payload, and the write was announced.
    #[inline]
    pub unsafe fn write_payload(&mut self, id: ItemId) {
        debug_assert!(self.attempt.items.get(id).has_payload());
        self.has_written();
        self.history_mut().record_change(id);
        self.attempt.items.mark_write(id);
    }

    /// Notes that a key or a range of an object was found absent: by an observation, or because an insertion succeeded.
    /// `None`: rows were read without their versions, so that all of them may be newer than earlier reads.
    #[inline]
    pub fn learn_absence(&mut self, object: Option<&ObjectMeta>) -> Result<(), Abort> {
        match self.protocol.observed(self.attempt, object) {
            Ok(()) => Ok(()),
            Err(lost) => Err(self.lose(lost)),
        }
    }

    /// Follows a change of structure that the attempt itself has made.
    ///
    /// # Safety
    ///
    /// As for [`observe`](Self::observe).
    #[inline]
    pub unsafe fn follow<O: Object<P> + 'static>(&mut self, object: &O, change: StructureChange) {
        self.attempt.follow(change, NonNull::from(object));
        self.note_change_of_node(change);
    }
}
