//! No concurrency control: the limit that protocols are measured against.
//!
//! One worker at a time is admitted and a second one refused, so there is nothing to control. A transaction still
//! does what it must do under any protocol: it finds its own pending writes, keeps them until it commits, and drops
//! them if it rolls back. Reads leave no items.

use crate::registry;
use hotrow_core::{Absent, Attempt, ConflictCause, ItemId, Prepared, Protocol, Variant, Variants};

/// No concurrency control, for one worker only. It is the performance limit, not a protocol; none of the papers has
/// it.
#[derive(Debug)]
pub struct NoProtocol;

impl Variants for NoProtocol {
    const VARIANTS: &'static [Variant] = &[Variant {
        name: "none",
        summary: "no concurrency control, one worker only: the limit for all others",
        source: "-",
    }];
    // One worker sees nothing but its own transactions.
    const OPAQUE: bool = true;

    type Options = ();

    fn options(name: &str) -> Option<()> {
        registry::only(Self::VARIANTS, name)
    }

    fn new((): &()) -> Self {
        Self
    }
}

// SAFETY: there is one worker at a time, and so one attempt. So nothing is installed while a `load` runs, and no two
// installs run at the same time. Each write is installed once, in a commit that cannot fail.
unsafe impl Protocol for NoProtocol {
    const CONCURRENT: bool = false;
    const WORKERS_MAX: u32 = 1;
    const TRACKS_READS: bool = false;
    type Header = ();
    type Mark = ();
    type Local = ();
    type Deferral = Absent;
    type Stealing = Absent;
    type RangeLocks = Absent;
    type LoggedReads = Absent;

    #[inline(always)]
    fn begin(&self, _attempt: &mut Attempt<Self>) {}

    #[inline(always)]
    fn read<V>(
        &self,
        _: &mut Attempt<Self>,
        _: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        Ok(load())
    }

    #[inline(always)]
    fn write(&self, _attempt: &mut Attempt<Self>, _item: ItemId) -> Result<(), ConflictCause> {
        Ok(())
    }

    #[inline(always)]
    fn peek<V>(
        &self,
        _: &mut Attempt<Self>,
        _: ItemId,
        mut load: impl FnMut() -> V,
    ) -> Result<V, ConflictCause> {
        Ok(load())
    }

    #[inline(always)]
    fn new_locked_header(&self, _attempt: &Attempt<Self>) {}

    #[inline]
    fn prepare(&self, attempt: &mut Attempt<Self>) -> Result<(), ConflictCause> {
        attempt.draw_stamp();
        Ok(())
    }

    #[inline]
    fn finish(&self, prepared: Prepared<'_, Self>) {
        prepared.install_all(|_| (), |_| ());
    }

    #[inline]
    fn abort(&self, _attempt: &mut Attempt<Self>) {}
}
