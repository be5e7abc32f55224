//! The object behind a commuting datatype: its segments, and the payloads of their items.

use super::Commuting;
use crate::kernel::item::{Item, ItemId};
use crate::kernel::object::Object;
use crate::kernel::object::OutOfRange;
use crate::kernel::object::{SavedWrite, Saver};
use crate::kernel::protocol::Protocol;
use crate::kernel::transaction::ObjectAccess;
use crate::kit::segment::Segment;
use crate::kit::segment_object::{LogSegment, Segments};
use crate::memory::cell::{Cell, Value};
use crate::memory::identity::ObjectMeta;
use crate::memory::pin::Pin;
use crate::memory::users_code::contained;
use crate::memory::versions::Keeper;
use hotrow_sync::OnceLock;
use std::any::Any;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

pub(super) type CellOf<D> = <<D as Commuting>::Value as Value>::Cell;

/// The segments come first, so that even a single one of size zero has an address of its own.
#[repr(C)]
pub(super) struct Shared<D: Commuting, S> {
    pub(super) segments: S,
    pub(super) datatype: D,
    pub(super) meta: ObjectMeta,
    pub(super) log: OnceLock<LogSegment<D::Value>>,
}

/// Makes a segment of a datatype.
pub(super) fn new_segment<D: Commuting, P: Protocol>(value: D::Value) -> Segment<D::Value, P> {
    const {
        assert!(
            CellOf::<D>::NEVER_TORN,
            "an inline value of more than one word may be torn: leave `#[value(inline)]` out"
        );
    }
    Segment::new(value)
}

/// Looks at the present value, which may be replaced meanwhile.
#[inline]
pub(super) fn look_at<D: Commuting, P: Protocol, R>(
    segment: &Segment<D::Value, P>,
    look: impl FnOnce(&D::Value) -> R,
) -> R {
    if CellOf::<D>::COPIES {
        let mut copy = MaybeUninit::uninit();
        // SAFETY: there is room for the copy, which is whole because the cell is never torn (checked by `new_segment`). It is
        // plain data, which needs neither a pin nor a drop.
        return look(CellOf::<D>::pending(unsafe {
            segment.cell.load_pending(copy.as_mut_ptr());
            copy.assume_init_ref()
        }));
    }
    let pin = Pin::new();
    let snapshot = segment.cell.load();
    // SAFETY: the cell is never torn (checked by `new_segment`), and the pin was pinned before the load.
    look(unsafe { CellOf::<D>::view(&snapshot, &pin) })
}

/// Returns the present value with a change, to be installed.
pub(super) fn changed_by<D: Commuting, P: Protocol>(
    segment: &Segment<D::Value, P>,
    datatype: &D,
    change: D::Change,
) -> <CellOf<D> as Cell<D::Value>>::Pending {
    let mut value = look_at::<D, P, _>(segment, D::Value::clone);
    datatype.apply(change, &mut value);
    CellOf::<D>::pend(value)
}

/// The attempt's state of the object: its item's payload. It lies in the attempt's arena, and is dropped at the attempt's
/// end whatever becomes of the item.
pub(super) struct Kept<D: Commuting> {
    pub(super) condition: D::Condition,
    pub(super) change: Option<D::Change>,
    /// The value that the commit has made, if it is logged: the log and memory get the same.
    result: Option<D::Value>,
    /// Keeps the payload out of the item, however small the rest is.
    _room: [usize; 2],
}

/// Returns the address of an item's payload, if it has one.
///
/// # Safety
///
/// The item is of a [`Shared`] of `D`.
#[inline]
pub(super) unsafe fn kept<D: Commuting, P: Protocol>(
    tx: &mut ObjectAccess<'_, P>,
    id: ItemId,
) -> Option<NonNull<Kept<D>>> {
    if !tx.attempt.items.get(id).has_payload() {
        return None;
    }
    // SAFETY: items of commuting objects have payloads of this type.
    NonNull::new(unsafe { tx.attempt.items.get_mut(id).payload_mut::<Kept<D>>() })
}

/// Returns the address of an item's payload, a new one if it has none.
///
/// # Safety
///
/// As for [`kept`].
pub(super) unsafe fn kept_or_new<D: Commuting, P: Protocol>(
    tx: &mut ObjectAccess<'_, P>,
    id: ItemId,
) -> NonNull<Kept<D>> {
    // SAFETY: the caller's promise.
    if let Some(kept) = unsafe { kept::<D, P>(tx, id) } {
        return kept;
    }
    assert!(
        !tx.attempt.features.graph.is_thief,
        "a thief's payloads would be dropped with it, not with the owner"
    );
    let new = Kept::<D> { condition: D::Condition::default(), change: None, result: None, _room: [0; 2] };
    tx.attempt.set_payload(id, new);
    // SAFETY: the item has one now. It is in the arena, because it is too large for the item, and the object's functions
    // do not drop it.
    unsafe {
        let kept = kept::<D, P>(tx, id).expect("set just now");
        tx.attempt.drop_later(kept.as_ptr());
        kept
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

// SAFETY: all items of the object are for its segments, with payloads of type `Kept`; the shared state is in an `EpochBox`;
// operations enter with `meta`.
unsafe impl<D, P, S> Object<P> for Shared<D, S>
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
        // SAFETY: the item has a pending write of this object.
        let kept = unsafe { &mut *item.payload_mut::<Kept<D>>() };
        let Some(change) = kept.change.take() else { return };
        // SAFETY: the item has a segment of this object.
        let segment = unsafe { Segment::<D::Value, P>::from_address(item.segment()) };
        let changed = match kept.result.take() {
            Some(result) => Some(CellOf::<D>::pend(result)),
            None => contained(|| changed_by::<D, P>(segment, &self.datatype, change)),
        };
        if let Some(changed) = changed {
            // SAFETY: the caller holds the segment's lock.
            unsafe { item.install_in(&segment.cell, changed, pin) };
        }
    }

    unsafe fn keep(&self, item: &Item<P>, keeper: &mut Keeper<'_>) {
        // SAFETY: the caller's promise; `install` installs by `install_in`.
        unsafe { Segment::<D::Value, P>::keep(item, keeper) };
    }

    unsafe fn log(&self, item: &Item<P>, _: &Pin, entries: &mut Vec<u8>) -> Result<(), String> {
        let Some(log) = self.log.get() else { return Ok(()) };
        // SAFETY: as in `install`, but that nothing is taken.
        let kept = unsafe { &*item.payload::<Kept<D>>() };
        let Some(value) = &kept.result else { return Ok(()) };
        log(self.segments.index(item.segment()), value, entries)
    }

    unsafe fn settle(&self, id: ItemId, tx: &mut ObjectAccess<'_, P>) -> Result<(), OutOfRange> {
        // SAFETY: the item has a pending write of this object, and a segment of it.
        let (kept, segment) = unsafe {
            let item = tx.attempt.items.get_mut(id);
            let segment = Segment::<D::Value, P>::from_address(item.segment());
            (&mut *item.payload_mut::<Kept<D>>(), segment)
        };
        let Some(change) = &kept.change else { return Ok(()) };
        if let Some(fits) = D::FITS
            && !look_at::<D, P, _>(segment, |value| fits(change, value))
        {
            return Err(OutOfRange);
        }
        if self.log.get().is_some() {
            // The caller holds the segment's lock, so that the value is that which `install` will find.
            let mut value = look_at::<D, P, _>(segment, D::Value::clone);
            self.datatype.apply(change.clone(), &mut value);
            kept.result = Some(value);
        }
        Ok(())
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
        // SAFETY: the item has a predicate of this object, and a segment of it.
        let (kept, segment) =
            unsafe { (&*item.payload::<Kept<D>>(), Segment::<D::Value, P>::from_address(item.segment())) };
        let holds = |value: &_| self.datatype.holds(&kept.condition, kept.change.as_ref(), value);
        contained(|| look_at::<D, P, _>(segment, holds)).unwrap_or(false)
    }

    unsafe fn facts(&self, item: &Item<P>) -> Option<Box<dyn Any + Send>> {
        // SAFETY: the item has a predicate of this object.
        let kept = unsafe { &*item.payload::<Kept<D>>() };
        let facts: Facts<D> = contained(|| (kept.condition.clone(), kept.change.clone()))?;
        Some(Box::new(facts))
    }

    unsafe fn facts_hold(&self, segment: NonNull<P::Header>, facts: &dyn Any) -> bool {
        let Some((condition, change)) = facts.downcast_ref::<Facts<D>>() else { return false };
        // SAFETY: the segment is one of this object's.
        let segment = unsafe { Segment::<D::Value, P>::from_address(segment) };
        let holds = |value: &_| self.datatype.still_waits(condition, change.as_ref(), value);
        contained(|| look_at::<D, P, _>(segment, holds)).unwrap_or(false)
    }
}

/// The facts of a transaction that waits.
type Facts<D> = (<D as Commuting>::Condition, Option<<D as Commuting>::Change>);
