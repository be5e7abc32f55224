//! The smallest protocol and the smallest object, for this crate's own tests.

use crate::kernel::object::{SavedWrite, Saver};
use crate::memory::versions::Keeper;
use crate::{
    Absent, Attempt, Before, ConflictCause, Item, ItemId, Look, Object, ObjectMeta, Pin, Prepared, Protocol,
    Steps, Variant, Variants,
};
use std::ptr::NonNull;

/// No concurrency control.
pub(crate) struct Unprotected;

impl Variants for Unprotected {
    const VARIANTS: &'static [Variant] =
        &[Variant { name: "unprotected", summary: "for tests", source: "", for_comparison: false }];
    const OPAQUE: bool = false;
    const WORKERS_MAX: u32 = 2;
    type Options = ();

    fn options(_: &str) -> Option<()> {
        Some(())
    }
    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: the tests that use it run one transaction at a time. Each write is installed once, after everything that can
// fail.
unsafe impl Protocol for Unprotected {
    type Header = u64;
    type Mark = u64;
    type Local = u64;
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;
    type LoggedReads = Absent;
    type PieceOrder = Absent;
    type Elision = Absent;
    type Reports = Absent;
}

impl Steps<Unprotected> for Unprotected {
    fn begin(&self, attempt: &mut Attempt<Self>) {
        attempt.local += 1;
    }
    fn before_load(&self, _: &mut Attempt<Self>, _: ItemId, _: Look) -> Result<Before, ConflictCause> {
        Ok(Before(0))
    }
    fn after_load(&self, _: &mut Attempt<Self>, _: ItemId, _: Look, _: Before) -> Result<(), ConflictCause> {
        Ok(())
    }
    fn write(&self, _: &mut Attempt<Self>, _: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }
    fn new_locked_header(&self, _: &Attempt<Self>) -> u64 {
        1
    }
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        attempt.draw_stamp();
        attempt.check_structures()
    }
    fn finish(&self, prepared: Prepared<'_, Self>) {
        prepared.install_all(|_| (), |_| ());
    }
    fn abort(&self, _: &mut Attempt<Self>) {}
}

/// An object without segments.
pub(crate) struct Silent(ObjectMeta);

impl Default for Silent {
    fn default() -> Self {
        Self(ObjectMeta::new(crate::EngineId(1), "silent"))
    }
}

// SAFETY: it has no segments, so no function with a contract is ever called.
unsafe impl Object<Unprotected> for Silent {
    fn meta(&self) -> &ObjectMeta {
        &self.0
    }
    unsafe fn describe(&self, _: NonNull<u64>) -> String {
        String::new()
    }
    unsafe fn identify(&self, _: NonNull<u64>) -> u64 {
        0
    }
    unsafe fn install(&self, _: &mut Item<Unprotected>, _: &Pin) {}
    unsafe fn keep(&self, _: &Item<Unprotected>, _: &mut Keeper<'_>) {}
    unsafe fn save(&self, _: &Item<Unprotected>, saver: &Saver<'_, Unprotected>) -> SavedWrite {
        saver.nothing()
    }
    unsafe fn restore(&self, item: &mut Item<Unprotected>, saved: Option<SavedWrite>, _: &Pin) {
        // SAFETY: as the caller promises.
        saved.into_iter().for_each(|saved| unsafe { item.put_back(saved) });
    }
}
