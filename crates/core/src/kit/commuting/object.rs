//! The object behind a commuting datatype: its segments, and the payloads of their items.

use super::Commuting;
use crate::kernel::item::{Item, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object::{SavedWrite, Saver};
use crate::kernel::object_access::ObjectAccess;
use crate::kernel::protocol::Protocol;
use crate::kit::segment::Segment;
use crate::kit::segment_object::{Segments, Shared};
use crate::memory::cell::{Cell, Value};
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::Pin;
use crate::memory::users_code::contained;
use crate::memory::versions::Keeper;
use std::any::Any;
use std::ptr::NonNull;

/// Returns the present value with a change.
fn changed<D: Commuting, P: Protocol>(
    segment: &Segment<D::Value, P>,
    datatype: &D,
    change: D::Change,
) -> D::Value {
    let mut value = segment.look_at(D::Value::clone);
    datatype.apply(change, &mut value);
    value
}

/// The attempt's state of a segment. It lies in the attempt's memory, to which the item's payload points, and is dropped at the
/// attempt's end whatever becomes of the item.
pub(super) struct Kept<D: Commuting> {
    pub(super) condition: D::Condition,
    pub(super) change: Option<D::Change>,
    /// The value that the commit has made, if it is logged: the log and memory get the same.
    result: Option<D::Value>,
}

/// The payload of an item.
type Payload<D> = NonNull<Kept<D>>;

/// Returns the address of what the attempt keeps of an item's segment, if it does.
///
/// # Safety
///
/// The item is of a [`Shared`] of `D`.
#[inline]
pub(super) unsafe fn kept<D: Commuting, P: Protocol>(
    tx: &mut ObjectAccess<'_, P>,
    id: ItemId,
) -> Option<Payload<D>> {
    let item = tx.attempt.items.get(id);
    // SAFETY: items of commuting objects have payloads of this type.
    item.has_payload().then(|| unsafe { *item.payload::<Payload<D>>() })
}

/// As [`kept`], and makes it first if there is nothing yet.
///
/// # Safety
///
/// As for [`kept`].
pub(super) unsafe fn kept_or_new<D: Commuting, P: Protocol>(
    tx: &mut ObjectAccess<'_, P>,
    id: ItemId,
) -> Payload<D> {
    // SAFETY: the caller's promise.
    if let Some(kept) = unsafe { kept::<D, P>(tx, id) } {
        return kept;
    }
    assert!(
        !tx.attempt.features.graph.is_thief,
        "a thief's payloads would be dropped with it, not with the owner"
    );
    let kept = tx.keep(Kept::<D> { condition: D::Condition::default(), change: None, result: None });
    *tx.attempt.set_payload(id, kept)
}

/// Returns what an attempt keeps of an item's segment, and the segment.
///
/// # Safety
///
/// The item is of a [`Shared`] of `D`, with a payload, and nobody else uses what is kept.
unsafe fn parts<'a, D: Commuting, P: Protocol>(
    item: &Item<P>,
) -> (&'a mut Kept<D>, &'a Segment<D::Value, P>) {
    // SAFETY: the caller's promise; what is kept stays in place until the attempt ends.
    unsafe {
        let mut kept = *item.payload::<Payload<D>>();
        (kept.as_mut(), Segment::from_address(item.segment()))
    }
}

/// Returns the attempt's own change.
///
/// # Safety
///
/// The payload is of an attempt in progress, and nobody changes it as long as the reference lives.
pub(super) unsafe fn change_of<'a, D: Commuting>(kept: Option<NonNull<Kept<D>>>) -> Option<&'a D::Change> {
    // SAFETY: the caller's promise.
    unsafe { kept.and_then(|kept| kept.as_ref().change.as_ref()) }
}

// SAFETY: all items of the object are for its segments, with payloads that point to a `Kept`; the shared state is in an `EpochBox`;
// operations enter with `meta`.
unsafe impl<D, P, S> Object<P> for Shared<S, D>
where
    D: Commuting,
    P: Protocol,
    S: Segments<P, Value = D::Value>,
{
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        self.segments.describe(segment)
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        self.segments.index(segment) as u64
    }

    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the item has a pending write of this object; here and below, nobody else looks at it during the call.
        let (kept, segment) = unsafe { parts::<D, P>(item) };
        let value = match (kept.result.take(), &mut kept.change) {
            (_, None) => return,
            // The change is dropped with what is kept, when nothing is locked.
            (Some(result), _) => Some(result),
            (None, change) => {
                let change = change.take().expect("it has one");
                contained(|| changed(segment, &self.datatype, change))
            }
        };
        if let Some(value) = value {
            // SAFETY: the caller holds the segment's lock.
            unsafe { item.install_in(&segment.cell, <D::Value as Value>::Cell::pend(value), pin) };
        }
    }

    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: the caller's promise; `install` installs by `install_in`.
        unsafe { Segment::<D::Value, P>::keep(item, keeper) };
    }

    unsafe fn log(&self, item: &Item<P>, _: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        let Some(log) = self.log.get() else { return Ok(()) };
        // SAFETY: as in `install`.
        let Some(value) = (unsafe { &parts::<D, P>(item).0.result }) else { return Ok(()) };
        log(self.segments.index(item.segment()), value, entries)
    }

    unsafe fn settle(&self, id: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        // SAFETY: as in `install`.
        let (kept, segment) = unsafe { parts::<D, P>(tx.attempt.items.get(id)) };
        let Some(change) = &kept.change else { return Ok(()) };
        if let Some(fits) = D::FITS
            && !segment.look_at(|value| fits(change, value))
        {
            return Err(OutOfRange);
        }
        if self.log.get().is_some() {
            // The caller holds the segment's lock, so that the value is that which `install` will find.
            kept.result = Some(changed(segment, &self.datatype, change.clone()));
        }
        Ok(())
    }

    /// Does nothing: the payload is dropped with the attempt's memory, when nothing is locked any more.
    unsafe fn undo(&self, _: &mut Item<P>, _: &Pin) {}

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: as in `install`.
        saver.cloned(unsafe { &parts::<D, P>(item).0.change })
    }

    /// The condition stays: the body goes on as it does because of all tests.
    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: as in `install`; `save` has saved a change.
        let undone = unsafe {
            let before = saved.and_then(|saved| saved.take::<P, Option<D::Change>>());
            std::mem::replace(&mut parts::<D, P>(item).0.change, before)
        };
        // Users' code, which must not run under a lock.
        pin.drop_later(undone);
    }

    unsafe fn predicate_holds(&self, item: &Item<P>) -> bool {
        // SAFETY: the item has a predicate of this object; the rest as in `install`.
        let (kept, segment) = unsafe { parts::<D, P>(item) };
        let holds = |value: &_| self.datatype.holds(&kept.condition, kept.change.as_ref(), value);
        contained(|| segment.look_at(holds)).unwrap_or(false)
    }

    unsafe fn facts(&self, item: &Item<P>) -> Option<Box<dyn Any + Send>> {
        // SAFETY: as in `predicate_holds`.
        let (kept, _) = unsafe { parts::<D, P>(item) };
        let facts: Facts<D> = contained(|| (kept.condition.clone(), kept.change.clone()))?;
        Some(Box::new(facts))
    }

    unsafe fn facts_hold(&self, segment: NonNull<P::Header>, facts: &dyn Any) -> bool {
        let Some((condition, change)) = facts.downcast_ref::<Facts<D>>() else { return false };
        // SAFETY: the segment is one of this object's.
        let segment = unsafe { Segment::<D::Value, P>::from_address(segment) };
        let holds = |value: &_| self.datatype.still_waits(condition, change.as_ref(), value);
        contained(|| segment.look_at(holds)).unwrap_or(false)
    }
}

/// The facts of a transaction that waits.
type Facts<D> = (<D as Commuting>::Condition, Option<<D as Commuting>::Change>);
