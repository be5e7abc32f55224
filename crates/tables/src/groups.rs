//! Groups: what stands for rows whose keys are not known yet.
//!
//! A deferred insertion lines up for the group that its row will belong to (an order belongs to its district), so that
//! whoever works on a whole group meets it there. A group is a segment without a value; groups whose numbers agree
//! below [`GROUPS`] share one. A group of a [queue](crate::queue) has another segment, for its head.

use crossbeam_utils::CachePadded;
use hotrow_core::{EngineId, Item, Label, Object, Pin, Protocol};
use hotrow_sync::OnceLock;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use std::ptr::NonNull;

/// Segments for groups in a table that has any.
pub(crate) const GROUPS: usize = if cfg!(test) { 4 } else { 1_024 };
/// Heads come first in the order of lines, and are numbered first.
pub(crate) const HEADS: u32 = GROUPS as u32;

type Segments<P> = OnceLock<Box<[CachePadded<<P as Protocol>::Header>]>>;

/// The groups of a table.
pub(crate) struct Groups<P: Protocol> {
    pub(crate) label: Label,
    /// Made when the first one is asked for. Each on a cache line of its own: groups are locked by many.
    heads: Segments<P>,
    tails: Segments<P>,
    /// Rows that have come in without their turn at a tail being announced before: loaded, or not deferred.
    outsiders: CachePadded<AtomicU64>,
}

impl<P: Protocol> Groups<P> {
    pub(crate) fn new(engine: EngineId, table: &str) -> Self {
        Self {
            label: Label::new(engine, format!("{table}.groups")),
            heads: OnceLock::new(),
            tails: OnceLock::new(),
            outsiders: CachePadded::default(),
        }
    }

    /// How many rows have come in otherwise than at their turn at a tail, when they are looked for there.
    pub(crate) fn outsiders(&self) -> u64 {
        // Relaxed: those that line up have theirs counted at their turn at the tail, and the line orders it.
        self.outsiders.load(Ordering::Relaxed)
    }

    pub(crate) fn count_outsider(&self) {
        // Relaxed: see `outsiders`.
        self.outsiders.fetch_add(1, Ordering::Relaxed);
    }

    /// The segment of a group: where rows are inserted.
    pub(crate) fn tail(&self, group: u64) -> NonNull<P::Header> {
        Self::segment(&self.tails, group)
    }

    /// The segment of the head of a group: where rows are taken.
    pub(crate) fn head(&self, group: u64) -> NonNull<P::Header> {
        Self::segment(&self.heads, group)
    }

    fn segment(segments: &Segments<P>, group: u64) -> NonNull<P::Header> {
        let segments = segments.get_or_init(|| (0..GROUPS).map(|_| CachePadded::default()).collect());
        NonNull::from(&*segments[group as usize % GROUPS])
    }

    /// The number of a segment among these.
    fn number(segments: &Segments<P>, segment: NonNull<P::Header>) -> Option<u32> {
        let base = segments.get()?.as_ptr().addr();
        let number = segment.addr().get().checked_sub(base)? / size_of::<CachePadded<P::Header>>();
        (number < GROUPS).then_some(number as u32)
    }
}

// SAFETY: all items are for its segments, which live as long as the table's shared state; their writes have no payload.
unsafe impl<P: Protocol> Object<P> for Groups<P> {
    fn label(&self) -> &Label {
        &self.label
    }

    unsafe fn describe(&self, segment: NonNull<P::Header>) -> String {
        match Self::number(&self.heads, segment) {
            Some(number) => format!("head of group {number}"),
            None => format!("group {}", Self::number(&self.tails, segment).unwrap_or_default()),
        }
    }

    unsafe fn identify(&self, segment: NonNull<P::Header>) -> u64 {
        let tail = || HEADS + Self::number(&self.tails, segment).unwrap_or_default();
        u64::from(Self::number(&self.heads, segment).unwrap_or_else(tail))
    }

    /// What is not deferred is a write that changes nothing: its turn has come.
    unsafe fn install(&self, _: &mut Item<P>, _: &Pin) {
        self.count_outsider();
    }

    unsafe fn undo(&self, _: &mut Item<P>, _: &Pin) {}
}
