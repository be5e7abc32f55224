//! What intentions are given: earlier results, and what is made of them.

use super::Deferred;
use hotrow_sync::atomic::{Ordering, unfollowed::AtomicU64};
use std::marker::PhantomData;

/// Where the result of an intention is, or will be.
struct Slot {
    /// An `Option` of the result's type.
    result: *const u8,
    known: bool,
}

/// The results of an attempt's intentions, as far as they are known.
pub struct Results {
    slots: Vec<Slot>,
    stamp: u64,
}

/// Attempts that one set of results tells apart before it takes a new range of stamps.
const STAMPS: u64 = 1 << 32;

fn fresh_stamps() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(STAMPS, Ordering::Relaxed)
}

impl Results {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), stamp: fresh_stamps() }
    }

    /// Forgets all results, and makes their handles strangers.
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

    /// A place for the result that is, or will be, at `result`.
    ///
    /// # Safety
    ///
    /// `result` points to an `Option<T>` that stays in place until [`clear`](Self::clear), and is `Some` from the
    /// moment at which [`learn`](Self::learn) is called for it.
    pub(super) unsafe fn add<T>(&mut self, result: *const Option<T>, known: bool) -> Deferred<T> {
        let slot = self.slots.len() as u32;
        self.slots.push(Slot { result: result.cast(), known });
        Deferred { stamp: self.stamp, slot, value: PhantomData }
    }

    /// A handle to a result that will never be known.
    pub(super) fn unknown<T>(&mut self) -> Deferred<T> {
        // SAFETY: never learnt, so the pointer is never followed.
        unsafe { self.add(std::ptr::null(), false) }
    }

    pub(super) fn learn(&mut self, slot: u32) {
        self.slots[slot as usize].known = true;
    }

    pub(super) fn is_known(&self, slot: u32) -> bool {
        self.slots[slot as usize].known
    }

    /// Whether a handle is one of this attempt's.
    pub fn owns<T>(&self, deferred: &Deferred<T>) -> bool {
        deferred.stamp == self.stamp
    }

    /// A result; `None` if it is not known, or if it is another attempt's.
    pub fn get<T>(&self, deferred: &Deferred<T>) -> Option<&T> {
        if !self.owns(deferred) {
            return None;
        }
        let slot = &self.slots[deferred.slot as usize];
        if !slot.known {
            return None;
        }
        // SAFETY: the handle was made by `add` for this slot (the stamp says so), hence with the slot's type; the
        // result is there and stays until `clear`, which takes `&mut self`.
        unsafe { (*slot.result.cast::<Option<T>>()).as_ref() }
    }
}

/// Something an intention is given: a [`Deferred`] value, an [`Expression`](super::Expression), a tuple of inputs, or nothing.
pub trait Input: 'static {
    /// What the intention gets.
    type Value: 'static;

    /// The value; `None` as long as a result that it needs is not known.
    fn get(&self, results: &Results) -> Option<Self::Value>;

    /// Whether all results that it needs are known.
    fn is_known(&self, results: &Results) -> bool;

    /// Whether all handles in it are this attempt's.
    fn belongs_to(&self, results: &Results) -> bool;
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
        }
    )*};
}
tuples! { () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }
