//! Results of operations, and inputs: earlier results, and values computed from them.

use super::Deferred;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The place of an operation's result.
struct ResultSlot {
    /// An `Option` of the result's type.
    result: *const u8,
    /// The number that an executor gives to the operation that makes the result; [`NO_MAKER`] if it needs none.
    maker: u32,
    /// Set by the worker that makes the result, before any operation that needs it runs.
    known: Cell<bool>,
}

const NO_MAKER: u32 = u32::MAX;

/// The results of an attempt's operations, as far as they are known.
pub struct Results {
    slots: Vec<ResultSlot>,
    stamp: u64,
}

/// The results, at an address that thieves can use as well as the attempt ([`graph`](crate::features::graph)).
pub(crate) struct SharedResults(NonNull<Results>);

// SAFETY: it owns the results as a box does. They lead into the arena of the attempt, and are cleared before another
// thread can have that.
unsafe impl Send for SharedResults {}

impl SharedResults {
    pub(super) fn new() -> Self {
        Self(NonNull::from(Box::leak(Box::new(Results::new()))))
    }

    /// Returns the results' address, which never changes. While another worker runs an operation of the attempt, only
    /// [`Results::learn`] changes them.
    pub(crate) fn shared(&self) -> NonNull<Results> {
        self.0
    }
}

impl Deref for SharedResults {
    type Target = Results;

    #[inline(always)]
    fn deref(&self) -> &Results {
        // SAFETY: made by `new`, and freed only by `drop`.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for SharedResults {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Results {
        // SAFETY: as above; thieves look at the results only while the attempt waits for them (`graph`).
        unsafe { self.0.as_mut() }
    }
}

impl Drop for SharedResults {
    fn drop(&mut self) {
        // SAFETY: made from a box, and no longer read: the attempt is over.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Number of attempts that one set of results distinguishes before it takes a new range of stamps.
const STAMPS: u64 = 1 << 32;

fn fresh_stamps() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    let first = NEXT.fetch_add(STAMPS, Ordering::Relaxed);
    if first > u64::MAX / 2 {
        // Two attempts with the same stamp would accept each other's handles as their own, with the wrong types.
        std::process::abort();
    }
    first
}

impl Results {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), stamp: fresh_stamps() }
    }

    /// Forgets all results, and makes their handles foreign.
    pub(super) fn clear(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        self.slots.clear();
        self.stamp += 1;
        if self.stamp.is_multiple_of(STAMPS) {
            self.stamp = fresh_stamps();
        }
    }

    /// Adds a place for the result that is, or will be, at `result`, and returns its number.
    ///
    /// # Safety
    ///
    /// `result` points to an `Option<T>`, for a `T` that [`handle`](Self::handle) is told, that stays in place until
    /// [`clear`](Self::clear), and is `Some` from the moment at which [`learn`](Self::learn) is called for it. The pointer may
    /// be written through.
    pub(super) unsafe fn add(&mut self, result: *const u8, known: bool) -> u32 {
        let slot = self.slots.len() as u32;
        self.slots.push(ResultSlot { result, maker: NO_MAKER, known: Cell::new(known) });
        slot
    }

    /// Returns a handle to a result.
    ///
    /// # Safety
    ///
    /// The result at this place is a `T`.
    pub(super) unsafe fn handle<T>(&self, slot: u32) -> Deferred<T> {
        Deferred { stamp: self.stamp, slot, value: PhantomData }
    }

    /// Sets the number of the operation that makes a result.
    pub(crate) fn set_maker(&mut self, slot: u32, maker: u32) {
        self.slots[slot as usize].maker = maker;
    }

    /// Returns the stamp, which distinguishes the attempt from all others.
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The number of results, known or not.
    pub(crate) fn count(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Returns the number of the operation that makes a result.
    pub(crate) fn maker(&self, slot: u32) -> Option<u32> {
        let maker = self.slots[slot as usize].maker;
        (maker != NO_MAKER).then_some(maker)
    }

    /// Returns the number of the operation that makes a result, if the result is not known yet.
    pub(crate) fn unknown_maker(&self, slot: u32) -> Option<u32> {
        if self.is_known(slot) { None } else { self.maker(slot) }
    }

    /// Returns a handle to a result that will never be known.
    pub(crate) fn unknown<T>(&mut self) -> Deferred<T> {
        // SAFETY: never learnt, so the pointer is never followed.
        unsafe {
            let slot = self.add(std::ptr::null(), false);
            self.handle(slot)
        }
    }

    /// Notes that a result is known. The worker that has made it calls this, and releases the operations that need it
    /// afterwards.
    pub(crate) fn learn(&self, slot: u32) {
        self.slots[slot as usize].known.set(true);
    }

    pub(crate) fn is_known(&self, slot: u32) -> bool {
        self.slots[slot as usize].known.get()
    }

    /// True if a handle is one of this attempt's.
    pub fn owns<T>(&self, deferred: &Deferred<T>) -> bool {
        deferred.stamp == self.stamp
    }

    /// Returns a result; `None` if it is not known, or if it is another attempt's.
    pub fn get<T>(&self, deferred: &Deferred<T>) -> Option<&T> {
        if !self.owns(deferred) {
            return None;
        }
        let slot = &self.slots[deferred.slot as usize];
        if !slot.known.get() {
            return None;
        }
        // SAFETY: the handle was made by `handle` for this slot (the stamp says so), hence with the slot's type; the
        // result is there and stays until `take` or `clear`, which take `&mut self`.
        unsafe { (*slot.result.cast::<Option<T>>()).as_ref() }
    }

    /// As [`get`](Self::get), but moves the result out, so that no users' code runs as for a copy.
    pub(super) fn take<T>(&mut self, deferred: &Deferred<T>) -> Option<T> {
        self.get(deferred)?;
        // SAFETY: as in `get`, and `&mut self` makes sure that nothing else looks at it. `add`'s pointers come from
        // ones to memory that may be written.
        unsafe { (*self.slots[deferred.slot as usize].result.cast_mut().cast::<Option<T>>()).take() }
    }
}

/// An input of an operation: a [`Deferred`] value, an [`Expression`](super::Expression), a tuple of inputs, or nothing.
pub trait Input: 'static {
    /// The type of value that the operation gets.
    type Value: 'static;

    /// Returns the value; `None` as long as a result that it needs is not known.
    fn get(&self, results: &Results) -> Option<Self::Value>;

    /// True if all results that it needs are known.
    fn is_known(&self, results: &Results) -> bool;

    /// True if all handles in it are this attempt's.
    fn belongs_to(&self, results: &Results) -> bool;

    /// Visits the results that it needs, by number.
    fn each_slot(&self, visit: &mut dyn FnMut(u32));

    /// Returns a hash of the key of an intention with these inputs, for one that [finds its
    /// segment](crate::DeferralAccess::finds_segment) when it runs. It must equal
    /// [`Object::identify`](crate::Object::identify) of that segment. `None` as long as the key is not known.
    fn key_hash(&self, _results: &Results) -> Option<u64> {
        None
    }
}

impl<T: Clone + 'static> Input for Deferred<T> {
    type Value = T;

    fn get(&self, results: &Results) -> Option<T> {
        results.get(self).cloned()
    }
    fn is_known(&self, results: &Results) -> bool {
        results.owns(self) && results.is_known(self.slot)
    }
    fn belongs_to(&self, results: &Results) -> bool {
        results.owns(self)
    }
    fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
        visit(self.slot);
    }
}

macro_rules! tuples {
    ($(($($input:ident $at:tt),*))*) => {$(
        impl<$($input: Input),*> Input for ($($input,)*) {
            type Value = ($($input::Value,)*);

            #[allow(unused_variables, clippy::unused_unit)]
            fn get(&self, results: &Results) -> Option<Self::Value> {
                Some(($(self.$at.get(results)?,)*))
            }
            #[allow(unused_variables)]
            fn is_known(&self, results: &Results) -> bool {
                true $(&& self.$at.is_known(results))*
            }
            #[allow(unused_variables)]
            fn belongs_to(&self, results: &Results) -> bool {
                true $(&& self.$at.belongs_to(results))*
            }
            #[allow(unused_variables)]
            fn each_slot(&self, visit: &mut dyn FnMut(u32)) {
                $(self.$at.each_slot(visit);)*
            }
        }
    )*};
}
tuples! { () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }
