//! Objects whose changes commute, for authors of datatypes: one segment, written by *changes* and read by *conditions*.
//!
//! A transaction that changes such an object without looking at it depends on nothing: the change is applied when it commits,
//! under the segment's lock (commit-time updates; the increment of sto §3.5). One that looks says how much of what it saw
//! matters: a condition that the commit judges again (an optimistic transactional predicate, sto §3.5). Other transactions may
//! change the object meanwhile, as long as the condition holds.
//!
//! The author implements [`Commuting`] in safe code; [`CommutingSegment`] and [`CommutingArray`] do the rest, once for all: the item's payload, the
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
//! not tear: one word inline, or boxed ([`Cell::NEVER_TORN`](crate::Cell::NEVER_TORN)).

mod object;

use crate::features::operations::{Deferred, Input};
use crate::kernel::abort::{Abort, Reason};
use crate::kernel::capabilities::Access;
use crate::kernel::engine::Engine;
use crate::kernel::item::ItemId;
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kernel::slots::Moments;
use crate::kit::segment::Segment;
use crate::kit::segment_object::{Elements, SegmentAccess, SegmentObject, Segments};
use crate::memory::cell::Value;
use object::{Kept, change_of, kept, kept_or_new};
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

    /// True if a transaction with this condition that [waits](crate::Transaction::retry) for a change would find the same again, and so
    /// need not be woken. The default is what its commit would ask: [`holds`](Self::holds). A datatype that can say more spares
    /// wake-ups: a queue is empty again once its new element is taken, although its numbers are others.
    fn still_waits(
        &self,
        condition: &Self::Condition,
        change: Option<&Self::Change>,
        value: &Self::Value,
    ) -> bool {
        self.holds(condition, change, value)
    }

    /// Tells if a transaction's change can be applied to a value: a sum stays in its range, say. Otherwise its commit is a rollback with
    /// [`Overflow`](crate::Overflow). `None`: every change can.
    const FITS: Option<fn(&Self::Change, &Self::Value) -> bool> = None;

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
pub type CommutingSegment<D, P> = SegmentObject<Segment<<D as Commuting>::Value, P>, D>;

/// An object that consists of a fixed number of segments of one [`Commuting`] datatype, which conflict each on its own.
///
/// They lie side by side, each with its protocol's header. The datatype is that of all of them, so it holds nothing beside the
/// values.
pub type CommutingArray<D, P> = SegmentObject<Elements<<D as Commuting>::Value, P>, D>;

/// A segment of a [`Commuting`] datatype that a transaction has entered, for one operation.
pub type CommutingAccess<'t, 'w, D, P, S = Segment<<D as Commuting>::Value, P>> =
    SegmentAccess<'t, 'w, S, P, D>;

impl<D: Commuting, P: Protocol> CommutingSegment<D, P> {
    /// Makes an object of a datatype, whose segment holds `value`.
    pub fn of(engine: &Engine<P>, name: impl Into<String>, datatype: D, value: D::Value) -> Self {
        Self::with(engine, name, datatype, value)
    }

    /// The datatype, with whatever it holds beside the value.
    pub fn datatype(&self) -> &D {
        &self.shared.datatype
    }
}

impl<D: Commuting, P: Protocol> CommutingArray<D, P> {
    /// Makes an object of a datatype, with a segment for each value. They are numbered from 0.
    pub fn of(
        engine: &Engine<P>,
        name: impl Into<String>,
        datatype: D,
        values: impl IntoIterator<Item = D::Value>,
    ) -> Self {
        Self::with(engine, name, datatype, values)
    }
}

impl<'t, 'w, D, P, S> SegmentAccess<'t, 'w, S, P, D>
where
    D: Commuting,
    P: Protocol,
    S: Segments<P, Value = D::Value>,
{
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
        let Self { tx, object, segment } = self;
        // SAFETY: the segment is the object's, which has been entered, and both are in an `EpochBox`; items of the object have
        // payloads that point to a `Kept`, as its functions expect.
        let kept = unsafe {
            let (id, pending) = tx.write(object, segment.address())?;
            let mut kept = kept_or_new::<D, P>(tx, id);
            if !pending {
                tx.write_payload(id);
            }
            tx.attempt.hears.add(Moments::SETTLE.when(D::FITS.is_some() || object.log.get().is_some()));
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
        self,
        look: impl FnMut(Seen<'_, D>) -> L,
        note: impl FnOnce(L, &mut D::Condition) -> R,
    ) -> Result<R, Abort> {
        self.test_unless_known(|_| None, look, note)
    }

    /// As [`test`](Self::test), unless the transaction's own change, if it has one, tells the result alone: then `known` returns
    /// it, and the transaction depends on nothing.
    ///
    /// # Errors
    ///
    /// As [`test`](Self::test).
    #[inline]
    pub fn test_unless_known<L, R>(
        mut self,
        known: impl FnOnce(&D::Change) -> Option<R>,
        mut look: impl FnMut(Seen<'_, D>) -> L,
        note: impl FnOnce(L, &mut D::Condition) -> R,
    ) -> Result<R, Abort> {
        if self.tx.is_on_snapshot() {
            return Ok(note(self.look_on_snapshot(look), &mut D::Condition::default()));
        }
        let (id, kept) = self.kept()?;
        // SAFETY: the payload is in the attempt's arena, and nobody changes it meanwhile.
        if let Some(result) = unsafe { change_of(kept) }.and_then(known) {
            return Ok(result);
        }
        let Self { tx, object, segment } = self;
        let has_read = tx.has_read(id);
        let load = || {
            // SAFETY: the payload is in the attempt's arena, and nobody changes it during the load.
            let (kept, change) = unsafe { (kept.map(|kept| kept.as_ref()), change_of(kept)) };
            segment.look_at(|value| {
                let holds = kept.is_none_or(|kept| object.datatype.holds(&kept.condition, change, value));
                (look(Seen { datatype: &object.datatype, value, change }), holds)
            })
        };
        // SAFETY: `load` looks at the item's segment.
        let loaded = unsafe { if has_read { tx.read_beside_write(id, load) } else { tx.peek(id, load) } };
        let (found, holds) = loaded?;
        if has_read || !tx.keeps_reads() {
            return Ok(note(found, &mut D::Condition::default()));
        }
        if !holds {
            // The value has changed between two tests, so that no single value explains both outcomes.
            return Err(tx.conflict(Reason::PredicateFailed, id));
        }
        // SAFETY: the payload is the attempt's, which nobody else uses now.
        let kept = unsafe { kept_or_new::<D, P>(tx, id).as_mut() };
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
    pub fn read<R>(self, look: impl FnMut(Seen<'_, D>) -> R) -> Result<R, Abort> {
        self.read_unless_known(|_| None, look)
    }

    /// As [`read`](Self::read), unless the transaction's own change, if it has one, tells the result alone: then `known` returns
    /// it, and the transaction depends on nothing.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    #[inline]
    pub fn read_unless_known<R>(
        mut self,
        known: impl FnOnce(&D::Change) -> Option<R>,
        mut look: impl FnMut(Seen<'_, D>) -> R,
    ) -> Result<R, Abort> {
        if self.tx.is_on_snapshot() {
            return Ok(self.look_on_snapshot(look));
        }
        let (id, kept) = self.kept()?;
        let Self { tx, object, segment } = self;
        // SAFETY: the payload is in the attempt's arena, and nobody changes it meanwhile.
        let change = || unsafe { change_of(kept) };
        if let Some(result) = change().and_then(known) {
            return Ok(result);
        }
        let load =
            || segment.look_at(|value| look(Seen { datatype: &object.datatype, value, change: change() }));
        // SAFETY: `load` looks at the item's segment, which the attempt did not make.
        unsafe { tx.read_beside_write(id, load) }
    }

    /// Looks at the value that it had for the transaction's snapshot.
    #[cold]
    fn look_on_snapshot<R>(self, look: impl FnOnce(Seen<'_, D>) -> R) -> R {
        let Self { tx, object, segment } = self;
        let mut found = None;
        let look = |value: &D::Value| {
            found = Some(look(Seen { datatype: &object.datatype, value, change: None }));
        };
        // SAFETY: the segment is the object's, which has been entered, and both are in an `EpochBox`; `keep` keeps cells of it.
        unsafe { segment.read_on_snapshot(tx, object, look) };
        found.expect("such a segment has a value")
    }

    /// Looks at the transaction's own change alone, if it has one, and depends on nothing.
    ///
    /// # Errors
    ///
    /// As [`change`](Self::change).
    #[inline]
    pub fn own_change<R>(mut self, look: impl FnOnce(Option<&D::Change>) -> R) -> Result<R, Abort> {
        if self.tx.is_on_snapshot() {
            return Ok(look(None));
        }
        let (_, kept) = self.kept()?;
        // SAFETY: as in `test`.
        Ok(look(unsafe { change_of(kept) }))
    }

    /// False if the transaction does not depend on what it reads, as [`ObjectAccess::keeps_reads`] says.
    pub fn keeps_reads(&self) -> bool {
        self.tx.keeps_reads()
    }

    /// Ends the transaction if it reads on a snapshot, for which this operation's data are not kept.
    ///
    /// # Errors
    ///
    /// [`Abort`] then.
    pub fn refuse_snapshot(self) -> Result<(), Abort> {
        if self.tx.is_on_snapshot() {
            Err(self.tx.snapshot_mut().no_snapshots(&self.object.meta))
        } else {
            Ok(())
        }
    }

    /// Takes the last [read](Self::read) of the value back as far as [waiting](crate::Transaction::retry) goes: what the operation has
    /// found in another segment changes whenever this one matters. The transaction depends on it all the same.
    pub fn matters_not_to_wait(mut self) -> Result<(), Abort> {
        if self.tx.is_watching() {
            let (id, _) = self.kept()?;
            self.tx.read_matters_not_to_wait(id);
        }
        Ok(())
    }

    /// Ends the attempt over a conflict that only the datatype can see: what it found has been removed since.
    #[cold]
    pub fn conflict(mut self) -> Abort {
        debug_assert!(!self.tx.is_on_snapshot(), "on a snapshot, nothing is removed");
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
        work: impl FnOnce(CommutingAccess<'_, '_, D, P, S>, I::Value) -> Result<R, Abort> + 'static,
    ) -> Result<Deferred<R>, Abort> {
        self.defer_work(access, inputs, work)
    }

    /// Returns the item, and the address of what the attempt keeps in it, if it does.
    fn kept(&mut self) -> Result<(ItemId, Option<NonNull<Kept<D>>>), Abort> {
        // SAFETY: the segment is the object's, which has been entered, and both are in an `EpochBox`.
        let id = unsafe { self.tx.item(self.object, self.segment.address()) };
        self.tx.settle_before(id)?;
        // SAFETY: the item is of this object.
        Ok((id, unsafe { kept::<D, P>(self.tx, id) }))
    }
}
