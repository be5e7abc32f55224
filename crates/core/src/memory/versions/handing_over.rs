//! Handing over: what an object says of a segment to those who keep its versions.

use super::chunks::Chunks;
use super::{EntryHead, SegmentId, Versions};
use crate::memory::cell::{Cell, Value};
use crate::memory::pin::Pin;
use crate::memory::users_code::contained;
use std::fmt;
use std::ptr::NonNull;

/// Hands the present value of a segment over to snapshots, for [`Object::keep`](crate::Object::keep).
pub struct Keeper<'a> {
    chunks: (&'a mut Chunks, &'a Pin),
    segment: SegmentId,
    stamps: (u64, u64),
    history: u64,
    /// The entry, for the caller to put into the table.
    pub(crate) kept: Option<NonNull<EntryHead>>,
    /// The entry owns the box of the segment's cell from the installation on.
    pub(crate) owns: bool,
}

impl fmt::Debug for Keeper<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("stamps", &self.stamps).finish_non_exhaustive()
    }
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(
        chunks: (&'a mut Chunks, &'a Pin),
        segment: SegmentId,
        stamps: (u64, u64),
        history: u64,
    ) -> Self {
        Self { chunks, segment, stamps, history, kept: None, owns: false }
    }

    /// Keeps what `wrap` makes of a copy of a cell: another cell with the same value. If the cell is boxed, the copy owns the box
    /// from now on: the installation that follows calls [`Item::install_in`](crate::Item::install_in), which knows.
    ///
    /// # Safety
    ///
    /// The segment is locked, and its pending write will be installed in this cell, by `install_in`.
    pub unsafe fn keep_cell<T: Value, V: Send + 'static>(
        &mut self,
        cell: &T::Cell,
        wrap: impl FnOnce(T::Cell) -> V,
    ) {
        // SAFETY: the caller's promise: nothing is installed meanwhile.
        let heap_bytes = unsafe { contained(|| cell.heap_bytes()) }.unwrap_or_default();
        // SAFETY: the caller's promise. The copy is dropped only if the value was replaced.
        self.keep(wrap(unsafe { cell.share() }), heap_bytes);
        self.owns = !T::Cell::COPIES;
    }

    /// Keeps a value that says all that a snapshot needs to know of the segment.
    pub fn keep<V: Send + 'static>(&mut self, value: V, heap_bytes: usize) {
        let Self { chunks: (ref mut chunks, pin), segment, stamps, history, .. } = *self;
        self.kept = Some(Versions::make(Some((chunks, pin)), segment, stamps, history, value, heap_bytes));
    }
}

/// A version that snapshots have of a segment and that lacks a change: see [`Object::redo`](crate::Object::redo).
pub struct Redo<'a> {
    pub(crate) versions: &'a Versions,
    pub(crate) entry: NonNull<EntryHead>,
    pub(crate) stamp: u64,
    pub(crate) pin: &'a Pin,
}

impl fmt::Debug for Redo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redo").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<'a> Redo<'a> {
    /// The attempt's pin.
    pub fn pin(&self) -> &'a Pin {
        self.pin
    }

    /// The version.
    ///
    /// # Safety
    ///
    /// The object keeps versions of this type for the segment.
    pub unsafe fn version<V>(&self) -> &'a V {
        // SAFETY: the caller's promise; the pin lives as long as the reference.
        unsafe { EntryHead::value(self.entry) }
    }

    /// Keeps the version with the change, for the snapshots that see the change.
    pub fn keep<V: Send + 'static>(self, changed: V, heap_bytes: usize) {
        self.versions.split(self.entry, self.stamp, changed, heap_bytes);
    }
}
