//! Objects whose changes commute, for authors of datatypes: one segment, written by *changes* and read by *conditions*.
//!
//! A transaction that changes such an object without looking at it depends on nothing: the change is applied when it commits,
//! under the segment's lock (commit-time updates; the increment of sto §3.5). One that looks says how much of what it saw
//! matters: a condition that the commit judges again (an optimistic transactional predicate, sto §3.5). Other transactions may
//! change the object meanwhile, as long as the condition holds.
//!
//! The author implements [`Commuting`] in safe code; [`CommutingSegment`] does the rest, once for all: the item's payload, the
//! installation, savepoints, deferral.
//!
//! # Users' code under a lock
//!
//! [`Commuting::apply`] runs while the segment is locked, [`Commuting::holds`] while a commit holds locks or under the
//! segment's version. Both are short. A panic in them is contained: a condition whose test panics does not hold, and a
//! change that panics half-way changes the value not at all. (The same test has run in the body before, where a panic
//! ends the transaction.)
//!
//! # Values that are never torn
//!
//! A condition is judged inside of a load, before the protocol knows that no commit has interfered. So the value's cell must
//! not tear: one word inline, or boxed ([`Cell::NEVER_TORN`]).

use crate::abort::{Abort, Reason};
use crate::cell::{Cell, Value};
use crate::deferred::Access;
use crate::engine::Engine;
use crate::item::{Item, ItemId};
use crate::object::{Object, ObjectMeta};
use crate::operations::{Deferred, Input};
use crate::pin::{EpochBox, Pin};
use crate::protocol::Protocol;
use crate::savepoint::{SavedWrite, Saver};
use crate::transaction::{ObjectAccess, Transaction};
use crate::users_code::contained;
use std::fmt;
use std::ptr::NonNull;

/// A datatype whose changes commute: its value, what transactions do to it, and what they may depend on.
///
/// The type itself may hold more than the value: a structure that [`apply`](Self::apply) changes along with it. Everything in
/// it that changes must be covered by the value's version: only `apply` may change it.
///
/// ```
/// use hotrow_core::{Abort, Commuting, CommutingSegment, Protocol, Seen, Transaction};
///
/// /// The free seats of a flight. Those who reserve do not conflict as long as enough are free (sto §5.4).
/// struct Seats;
///
/// impl Commuting for Seats {
///     type Value = i64;
///     /// The number of seats given back, minus those taken.
///     type Change = i64;
///     type Condition = Condition;
///
///     fn holds(&self, condition: &Condition, _: Option<&i64>, free: &i64) -> bool {
///         condition.least.is_none_or(|least| *free >= least) && condition.below.is_none_or(|below| *free < below)
///     }
///
///     fn apply(&self, change: i64, free: &mut i64) {
///         *free += change;
///     }
/// }
///
/// /// The numbers of free seats for which all tests come out as they did.
/// #[derive(Clone, Default)]
/// struct Condition {
///     least: Option<i64>,
///     below: Option<i64>,
/// }
///
/// impl Condition {
///     fn note(&mut self, bound: i64, is_reached: bool) {
///         if is_reached {
///             self.least = self.least.max(Some(bound));
///         } else {
///             self.below = Some(self.below.map_or(bound, |below| below.min(bound)));
///         }
///     }
/// }
///
/// fn reserve<P: Protocol>(
///     seats: &CommutingSegment<Seats, P>,
///     tx: &mut Transaction<'_, P>,
/// ) -> Result<bool, Abort> {
///     let look = |seen: Seen<'_, Seats>| (*seen.value, -seen.change.copied().unwrap_or_default());
///     let found = seats.enter(tx)?.test(look, |(free, taken), condition| {
///         let found = free > taken;
///         condition.note(taken + 1, found);
///         found
///     })?;
///     if found {
///         seats.enter(tx)?.change(|change| *change -= 1)?;
///     }
///     Ok(found)
/// }
/// ```
pub trait Commuting: Send + Sync + Sized + 'static {
    /// The value: one word of plain data, or boxed.
    type Value: Value;

    /// The effect that one transaction will have on the value. The default has none. It says nothing of what the transaction has
    /// seen, because a part of the body may be undone, and what it saw still counts.
    type Change: Clone + Default + Send + 'static;

    /// The extent to which one transaction depends on the value. The default is not at all.
    type Condition: Clone + Default + Send + 'static;

    /// True if a transaction with this condition may commit while the value is `value`. `change` is its own pending change, if
    /// it has one, which is not in the value yet.
    fn holds(&self, condition: &Self::Condition, change: Option<&Self::Change>, value: &Self::Value) -> bool;

    /// Applies a transaction's change. Called when it commits: one call at a time, in the order of the commits.
    fn apply(&self, change: Self::Change, value: &mut Self::Value);
}

/// The view that an operation has of a [`Commuting`] datatype.
pub struct Seen<'a, D: Commuting> {
    /// The datatype, with whatever it holds beside the value.
    pub datatype: &'a D,
    /// The value, without the transaction's own change.
    pub value: &'a D::Value,
    /// The transaction's own change, if it has one.
    pub change: Option<&'a D::Change>,
}

impl<D: Commuting> fmt::Debug for Seen<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("is_changed", &self.change.is_some()).finish_non_exhaustive()
    }
}

/// An object that is one segment of a [`Commuting`] datatype.
pub struct CommutingSegment<D: Commuting, P: Protocol> {
    shared: EpochBox<Shared<D, P>>,
}

#[repr(C)]
struct Shared<D: Commuting, P: Protocol> {
    header: P::Header,
    cell: CellOf<D>,
    datatype: D,
    meta: ObjectMeta,
}

type CellOf<D> = <<D as Commuting>::Value as Value>::Cell;

/// The attempt's state of the object: its item's payload. It lies in the attempt's arena, and is dropped at the attempt's
/// end whatever becomes of the item.
struct Kept<D: Commuting> {
    condition: D::Condition,
    change: Option<D::Change>,
    /// Keeps the payload out of the item, however small the rest is.
    _room: [usize; 2],
}

impl<D: Commuting, P: Protocol> fmt::Debug for CommutingSegment<D, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommutingSegment").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl<D: Commuting, P: Protocol> CommutingSegment<D, P> {
    /// Makes an object whose segment holds `value`.
    pub fn new(engine: &Engine<P>, name: impl Into<String>, datatype: D, value: D::Value) -> Self {
        const {
            assert!(
                CellOf::<D>::NEVER_TORN,
                "an inline value of more than one word may be torn: leave `#[value(inline)]` out"
            );
        }
        let meta = ObjectMeta::new(engine.id(), name);
        let (header, cell) = (P::Header::default(), CellOf::<D>::new(value));
        Self { shared: EpochBox::new(Shared { header, cell, datatype, meta }) }
    }

    /// The name, for errors and conflict reports.
    pub fn name(&self) -> &str {
        self.shared.meta.name()
    }

    /// The datatype, with whatever it holds beside the value.
    pub fn datatype(&self) -> &D {
        &self.shared.datatype
    }

    /// Sets the object's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`]).
    pub fn set_rank(&mut self, rank: u16) {
        self.shared.meta.set_rank(rank);
    }

    /// Applies a change outside of transactions, to load the object before they use it. One that is open meanwhile, and has
    /// looked at the object, does not notice it.
    pub fn load(&mut self, change: D::Change) {
        let changed = self.shared.changed_by(change);
        // SAFETY: nobody else has a reference to the object, so that no operation runs. A transaction that was left open may
        // commit on another thread: cells that are never torn are installed by one atomic access, so that one of the two
        // values is the last.
        unsafe { self.shared.cell.install(changed, &Pin::new()) };
    }

    /// Begins an operation.
    ///
    /// # Errors
    ///
    /// As [`Transaction::enter`].
    #[inline]
    pub fn enter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
    ) -> Result<CommutingAccess<'t, 'w, D, P>, Abort> {
        Ok(CommutingAccess { tx: tx.enter(&self.shared.meta)?, object: &self.shared })
    }
}

/// A [`CommutingSegment`] that a transaction has entered, for one operation.
#[must_use]
pub struct CommutingAccess<'t, 'w, D: Commuting, P: Protocol> {
    tx: &'t mut ObjectAccess<'w, P>,
    /// In an `EpochBox`.
    object: &'t Shared<D, P>,
}

impl<D: Commuting, P: Protocol> fmt::Debug for CommutingAccess<'_, '_, D, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommutingAccess").field("object", &self.object.meta.name()).finish_non_exhaustive()
    }
}

impl<'t, 'w, D: Commuting, P: Protocol> CommutingAccess<'t, 'w, D, P> {
    /// Returns the access itself, for what concerns more than this segment.
    pub fn access(self) -> &'t mut ObjectAccess<'w, P> {
        self.tx
    }

    /// Changes what the transaction will do to the value when it commits, and depends on nothing.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    #[inline]
    pub fn change<R>(self, change: impl FnOnce(&mut D::Change) -> R) -> Result<R, Abort> {
        let Self { tx, object } = self;
        // SAFETY: the segment is the object's, which has been entered, and both are in an `EpochBox`; items of the object have
        // payloads of type `Kept`, which its functions expect.
        let kept = unsafe {
            let (id, pending) = tx.write(object, object.address())?;
            let mut kept = tx.kept_or_new::<D>(id);
            if !pending {
                tx.write_payload(id);
            }
            kept.as_mut()
        };
        Ok(change(kept.change.get_or_insert_default()))
    }

    /// Looks at the value, and at the transaction's own change of it, and notes what of it matters.
    ///
    /// `look` may be called several times. `note` gets what it has found the last time, and the condition that says on what the
    /// transaction has depended so far: it adds to it what the result depends on.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change). A conflict, if the value has changed so that the condition does not hold of it.
    #[inline]
    pub fn test<L, R>(
        mut self,
        mut look: impl FnMut(Seen<'_, D>) -> L,
        note: impl FnOnce(L, &mut D::Condition) -> R,
    ) -> Result<R, Abort> {
        let (id, kept) = self.kept()?;
        let Self { tx, object } = self;
        let has_read = tx.has_read(id);
        let load = || {
            // SAFETY: the payload is in the attempt's arena, and nobody changes it during the load.
            let (kept, change) = unsafe { (kept.map(|kept| kept.as_ref()), change_of(kept)) };
            object.look(|value| {
                let holds = kept.is_none_or(|kept| object.datatype.holds(&kept.condition, change, value));
                (look(Seen { datatype: &object.datatype, value, change }), holds)
            })
        };
        // SAFETY: `load` looks at the item's segment.
        let loaded = unsafe { if has_read { tx.read_beside_write(id, load) } else { tx.peek(id, load) } };
        let (found, holds) = loaded?;
        if has_read {
            return Ok(note(found, &mut D::Condition::default()));
        }
        if !holds {
            // The value has changed between two tests, so that no single value explains both outcomes.
            return Err(tx.conflict(Reason::PredicateFailed, id));
        }
        // SAFETY: the payload is the attempt's, which nobody else uses now.
        let kept = unsafe { tx.kept_or_new::<D>(id).as_mut() };
        tx.attempt.items.mark_predicate(id);
        Ok(note(found, &mut kept.condition))
    }

    /// Reads the value itself, and the transaction's own change of it. Any change of the value by another transaction is then
    /// a conflict: prefer a [test](Self::test). `look` may be called several times.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    #[inline]
    pub fn read<R>(mut self, mut look: impl FnMut(Seen<'_, D>) -> R) -> Result<R, Abort> {
        let (id, kept) = self.kept()?;
        let Self { tx, object } = self;
        // SAFETY: as in `test`.
        let change = || unsafe { change_of(kept) };
        let load = || object.look(|value| look(Seen { datatype: &object.datatype, value, change: change() }));
        // SAFETY: `load` looks at the item's segment, which the attempt did not make.
        unsafe { tx.read_beside_write(id, load) }
    }

    /// Looks at the transaction's own change alone, if it has one, and depends on nothing.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    #[inline]
    pub fn own_change<R>(mut self, look: impl FnOnce(Option<&D::Change>) -> R) -> Result<R, Abort> {
        let (_, kept) = self.kept()?;
        // SAFETY: as in `test`.
        Ok(look(unsafe { change_of(kept) }))
    }

    /// Ends the attempt over a conflict that only the datatype can see: what it found has been removed since.
    #[cold]
    pub fn conflict(mut self) -> Abort {
        match self.kept() {
            Ok((id, _)) => self.tx.conflict(Reason::PredicateFailed, id),
            Err(abort) => abort,
        }
    }

    /// Defers an operation until the transaction commits, in the order of the object's line (drp §4): what `work` does to the
    /// access it does then, with the values that the inputs have by then. It may do one operation of this object.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    #[inline]
    pub fn defer<I: Input, R: 'static>(
        self,
        access: Access,
        inputs: I,
        work: impl FnOnce(CommutingAccess<'_, '_, D, P>, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort> {
        let Self { tx, object } = self;
        let shared = NonNull::from(object);
        // SAFETY: the segment is this object's, which has been entered, and both are in an `EpochBox`, so they stay in
        // memory until the attempt ends.
        unsafe {
            tx.defer(object, object.address(), access, inputs, move |tx, inputs| {
                work(CommutingAccess { tx, object: shared.as_ref() }, inputs)
            })
        }
    }

    /// Returns the item, and the address of what the attempt keeps in it, if it does.
    fn kept(&mut self) -> Result<(ItemId, Option<NonNull<Kept<D>>>), Abort> {
        // SAFETY: the segment is the object's, which has been entered, and both are in an `EpochBox`.
        let id = unsafe { self.tx.item(self.object, self.object.address()) };
        self.tx.settle_before(id)?;
        // SAFETY: the item is of this object.
        Ok((id, unsafe { self.tx.kept::<D>(id) }))
    }
}

impl<P: Protocol> ObjectAccess<'_, P> {
    /// Returns the address of an item's payload, if it has one.
    ///
    /// # Safety
    ///
    /// The item is of a [`Shared<D, P>`].
    unsafe fn kept<D: Commuting>(&mut self, id: ItemId) -> Option<NonNull<Kept<D>>> {
        if !self.attempt.items.get(id).has_payload() {
            return None;
        }
        // SAFETY: items of commuting objects have payloads of this type.
        NonNull::new(unsafe { self.attempt.items.get_mut(id).payload_mut::<Kept<D>>() })
    }

    /// Returns the address of an item's payload, a new one if it has none.
    ///
    /// # Safety
    ///
    /// As for [`kept`](Self::kept).
    unsafe fn kept_or_new<D: Commuting>(&mut self, id: ItemId) -> NonNull<Kept<D>> {
        // SAFETY: the caller's promise.
        if let Some(kept) = unsafe { self.kept::<D>(id) } {
            return kept;
        }
        assert!(
            !self.attempt.graph.is_thief,
            "a thief's payloads would be dropped with it, not with the owner"
        );
        let kept = Kept::<D> { condition: D::Condition::default(), change: None, _room: [0; 2] };
        self.attempt.set_payload(id, kept);
        // SAFETY: the item has one now. It is in the arena, because it is too large for the item, and the object's functions
        // do not drop it.
        unsafe {
            let kept = self.kept::<D>(id).expect("set just now");
            self.attempt.operations.drop_later(kept.as_ptr());
            kept
        }
    }
}

/// Returns the attempt's own change.
///
/// # Safety
///
/// The payload is of an attempt in progress, and nobody changes it as long as the reference lives.
unsafe fn change_of<'a, D: Commuting>(kept: Option<NonNull<Kept<D>>>) -> Option<&'a D::Change> {
    // SAFETY: the caller's promise.
    unsafe { kept.and_then(|kept| kept.as_ref().change.as_ref()) }
}

impl<D: Commuting, P: Protocol> Shared<D, P> {
    /// Looks at the present value, which may be replaced meanwhile.
    #[inline]
    fn look<R>(&self, look: impl FnOnce(&D::Value) -> R) -> R {
        let pin = Pin::new();
        let snapshot = self.cell.load();
        // SAFETY: the cell is never torn (checked by `new`), and the pin was pinned before the load.
        look(unsafe { CellOf::<D>::view(&snapshot, &pin) })
    }

    /// Returns the present value with a change, to be installed.
    fn changed_by(&self, change: D::Change) -> <CellOf<D> as Cell<D::Value>>::Pending {
        let mut value = self.look(D::Value::clone);
        self.datatype.apply(change, &mut value);
        CellOf::<D>::pend(value)
    }

    fn address(&self) -> NonNull<P::Header> {
        // The header is the first field of a `repr(C)` struct.
        NonNull::from(self).cast()
    }
}

// SAFETY: all items of the object are for its one segment, with payloads of type `Kept`; the shared state is in an `EpochBox`;
// operations enter with `meta`.
unsafe impl<D: Commuting, P: Protocol> Object<P> for Shared<D, P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the item has a pending write of this object.
        let Some(change) = (unsafe { (*item.payload_mut::<Kept<D>>()).change.take() }) else { return };
        let changed = contained(|| self.changed_by(change));
        if let Some(changed) = changed {
            // SAFETY: the caller holds the segment's lock.
            unsafe { self.cell.install(changed, pin) };
        }
    }

    /// The payload is dropped with the arena.
    unsafe fn undo(&self, _: &mut Item<P>, _: &Pin) {}

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the item has a pending write of this object.
        saver.cloned(unsafe { &(*item.payload::<Kept<D>>()).change })
    }

    /// The condition stays: the body goes on as it does because of all tests.
    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, _: &Pin) {
        // SAFETY: as in `save`, and so is what was saved.
        unsafe {
            let before = saved.and_then(|saved| saved.take::<P, Option<D::Change>>());
            (*item.payload_mut::<Kept<D>>()).change = before;
        }
    }

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: the item has a predicate of this object.
        let kept = unsafe { &*item.payload::<Kept<D>>() };
        let holds = |value: &_| self.datatype.holds(&kept.condition, kept.change.as_ref(), value);
        contained(|| self.look(holds)).unwrap_or(false)
    }
}
