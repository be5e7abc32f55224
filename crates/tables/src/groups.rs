//! Groups: what stands for rows whose keys are not known yet.
//!
//! A deferred insertion lines up for the group that its row will belong to (an order belongs to its district), so that
//! whoever works on a whole group meets it there. A group is a segment without a value; groups whose numbers agree
//! below [`GROUPS`] share one.

use crossbeam_utils::CachePadded;
use hotrow_core::{EngineId, Item, Label, Object, Pin, Protocol};
use hotrow_sync::OnceLock;
use std::ptr::NonNull;

/// Segments for groups in a table that has any.
const GROUPS: usize = if cfg!(test) { 4 } else { 1_024 };

/// The groups of a table.
pub(crate) struct Groups<P: Protocol> {
    pub(crate) label: Label,
    /// Made when the first one is asked for. Each on a cache line of its own: groups are locked by many.
    segments: OnceLock<Box<[CachePadded<P::Header>]>>,
}

impl<P: Protocol> Groups<P> {
    pub(crate) fn new(engine: EngineId, table: &str) -> Self {
        Self { label: Label::new(engine, format!("{table}.groups")), segments: OnceLock::new() }
    }

    /// The segment of a group.
    pub(crate) fn segment(&self, group: u64) -> NonNull<P::Header> {
        let segments = self.segments.get_or_init(|| (0..GROUPS).map(|_| CachePadded::default()).collect());
        NonNull::from(&*segments[group as usize % GROUPS])
    }

    fn number(&self, segment: NonNull<P::Header>) -> u64 {
        let base = self.segments.get().map_or(0, |segments| segments.as_ptr().addr());
        (segment.addr().get() - base) as u64 / size_of::<CachePadded<P::Header>>() as u64
    }
}

// SAFETY: all items are for its segments, which live as long as the table's shared state; they never have a pending
// write.
unsafe impl<P: Protocol> Object<P> for Groups<P> {
    fn label(&self) -> &Label {
        &self.label
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        format!("group {}", self.number(segment))
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        self.number(segment)
    }

    unsafe fn install(&self, _: &mut Item<P>, _: &Pin) {}

    unsafe fn undo(&self, _: &mut Item<P>, _: &Pin) {}
}
