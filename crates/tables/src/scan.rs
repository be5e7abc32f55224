//! Scans of tables with an order.

use crate::index::{Direction, Keyed};
use crate::key::{Image, ImageOf, ImageRange, Key};
use crate::record::{Record, RecordKey};
use crate::record_index::{Index, PREFETCHED_MAX};
use crate::storage::Shared;
use hotrow_core::{Abort, ObjectAccess, Protocol, Transaction, Value, Whole};
use hotrow_sync::prefetch::prefetch_bytes;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Visits the rows of a range, including the attempt's own changes, until the visitor breaks.
    #[inline]
    pub(crate) fn scan_images(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let tx = tx.enter(&self.meta)?;
        if tx.history().is_recorded() && !self.immutable {
            self.scan_recorded(tx, range, direction, visit)
        } else {
            self.scan_leaves(tx, range, direction, visit)
        }
    }

    /// Returns copies of the first `limit` rows of a range.
    pub(crate) fn collect(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(K, R)>, Abort> {
        first_rows(limit, |visit| self.scan_by(tx.enter(&self.meta)?, range, direction, visit))
    }

    /// Returns the number of rows in a range.
    pub(crate) fn count(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
    ) -> Result<usize, Abort> {
        let mut rows = 0;
        self.scan_by(tx.enter(&self.meta)?, range, Direction::Ascending, &mut |_, _| {
            rows += 1;
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// Scans for an attempt that is recorded.
    ///
    /// `visit` is taken by value. A reference to it in the caller would keep it in memory even where nothing is
    /// recorded.
    #[cold]
    fn scan_recorded(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_by(tx, range, direction, &mut visit)
    }

    /// Scans, and adds the covered range to the history if the attempt is recorded. Is compiled once for all visitors.
    #[inline(never)]
    pub(crate) fn scan_by(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let from = if self.immutable { None } else { tx.history_mut().begin_range() };
        // The last key visited, and a flag that the visitor has stopped the scan.
        let mut last = None;
        let mut enough = false;
        let (mut low, mut high) = range.clone();
        let visit: &mut dyn FnMut(&K, &R) -> ControlFlow<()> = &mut |key, row| {
            if from.is_some() {
                last = Some(K::Image::own(&key.image()));
            }
            let flow = visit(key, row);
            enough = flow.is_break();
            flow
        };
        let result = self.scan_leaves(tx, range, direction, visit);
        if enough || result.is_err() {
            // The scan has not covered the range behind the last key.
            let Some(last) = last else { return result };
            match direction {
                Direction::Ascending => high = Bound::Included(last),
                Direction::Descending => low = Bound::Included(last),
            }
        }
        if let Some(from) = from {
            self.record_covered(tx, (low, high), from);
        }
        result
    }

    /// Records that a scan that began at `from` has covered a range.
    pub(crate) fn record_covered(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        (low, high): ImageRange<'_, K>,
        from: u64,
    ) {
        let bytes = |bound: Bound<ImageOf<'_, K>>| {
            bound.map(|image| {
                let mut bytes = Vec::new();
                K::Image::put_bytes(&image, &mut bytes);
                bytes
            })
        };
        let (low, high) = (bytes(low), bytes(high));
        let (low, high) = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
        tx.history_mut().record_range(&self.meta, low, high, from);
    }

    #[inline]
    fn scan_leaves(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        mut visit: impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        if tx.is_on_snapshot() && !self.immutable {
            return self.scan_on_snapshot(tx, range, direction, &mut visit);
        }
        tx.deferral_mut().settle_object(&self.meta)?;
        if self.index.is_cached() {
            return self.scan_cached(tx, range, direction, &mut visit);
        }
        let Some(mut cursor) = self.index.cursor(range, direction) else { return Err(self.no_order(tx)) };
        loop {
            let position = tx.structure().may_refuse_observations().then(|| cursor.position());
            let Some(leaf) = cursor.next(tx.pin().guard()) else { return Ok(()) };
            // SAFETY: the node is this table's.
            if !self.immutable && !unsafe { tx.observe(self, leaf.observed) }? {
                position.into_iter().for_each(|position| cursor.go_back(position));
                continue;
            }
            let mut bounds = leaf.bounds;
            let (visited, enough) =
                self.visit_records(tx, leaf.records, &mut bounds, direction, &mut visit)?;
            if !self.immutable {
                self.index.keep_part(tx, leaf.observed, bounds, direction, visited);
            }
            if enough {
                return Ok(());
            }
        }
    }

    /// Visits the rows of records that a scan has found, until the visitor breaks. Returns the records upon which the scan depends, and
    /// whether the visitor has stopped it: then the bounds end with the last of these.
    #[inline]
    pub(crate) fn visit_records<'r>(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        records: &'r [NonNull<RecordKey<K>>],
        bounds: &mut ImageRange<'_, K>,
        direction: Direction,
        visit: &mut impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<(&'r [NonNull<RecordKey<K>>], bool), Abort> {
        for (at, &key) in records.iter().enumerate() {
            prefetch_ahead(records, at, Record::<K, R, P>::BEFORE_KEY, size_of::<Record<K, R, P>>());
            // SAFETY: the table's index holds keys of its records; found under the attempt's pinned epoch.
            let record = unsafe { Record::<K, R, P>::of_key(key) };
            let flow = self.visit_record(tx, record, visit)?;
            if flow.is_some_and(|flow| flow.is_break()) {
                // The scan depends on nothing behind this key.
                // SAFETY: as above.
                let last = Bound::Included(K::Image::own(&unsafe { key.as_ref() }.image()));
                match direction {
                    Direction::Ascending => bounds.1 = last,
                    Direction::Descending => bounds.0 = last,
                }
                return Ok((&records[..=at], true));
            }
        }
        Ok((records, false))
    }

    /// Visits the row of a record that a scan has found; `None` if there is none.
    #[inline(always)]
    pub(crate) fn visit_record(
        &self,
        tx: &mut ObjectAccess<'_, P>,
        record: NonNull<Record<K, R, P>>,
        visit: &mut impl FnMut(&K, &R) -> ControlFlow<()>,
    ) -> Result<Option<ControlFlow<()>>, Abort> {
        // SAFETY: found in the index under the attempt's pinned epoch.
        let key = unsafe { record.as_ref() }.key();
        if self.immutable {
            // SAFETY: rows of an immutable table are never installed again.
            return Ok(Some(visit(key, unsafe { record.as_ref().row() })));
        }
        let segments = self.segments_of(Whole);
        let visited = self.read_at(tx, record, segments, Whole, |row| visit(key, row))?;
        // The observation of the leaf covers the absence of a row that is not there.
        Ok(visited.unless_absent().flatten())
    }
}

impl<K: Key, R: Value, P: Protocol> Shared<K, R, P> {
    /// Visits the rows of a range, until the visitor breaks, which may use other objects of the attempt meanwhile. The scan depends on
    /// nothing behind the last row that it has visited.
    ///
    /// This is for attempts that are not on a snapshot, and for tables with an order and without a cache.
    #[inline(never)]
    pub(crate) fn scan_one_by_one(
        &self,
        tx: &mut Transaction<'_, P>,
        range: ImageRange<'_, K>,
        direction: Direction,
        visit: &mut dyn FnMut(&mut Transaction<'_, P>, &K, &R) -> Result<ControlFlow<()>, Abort>,
    ) -> Result<(), Abort> {
        let access = tx.enter(&self.meta)?;
        access.deferral_mut().settle_object(&self.meta)?;
        let Some(mut cursor) = self.index.cursor(range, direction) else { return Err(self.no_order(access)) };
        loop {
            let access = tx.enter(&self.meta)?;
            let position = access.structure().may_refuse_observations().then(|| cursor.position());
            let Some(leaf) = cursor.next(access.pin().guard()) else { return Ok(()) };
            let mut begun = None;
            if !self.immutable {
                // SAFETY: the node is this table's.
                if !unsafe { access.observe(self, leaf.observed) }? {
                    position.into_iter().for_each(|position| cursor.go_back(position));
                    continue;
                }
                begun = self.index.begin_part(access, leaf.observed);
            }
            let (mut bounds, mut visited, mut enough) = (leaf.bounds, leaf.records, false);
            for (at, &key) in leaf.records.iter().enumerate() {
                // SAFETY: found in the table's index under the attempt's pinned epoch.
                let record = unsafe { Record::<K, R, P>::of_key(key) };
                let mut row = None;
                let mut copy = |key: &K, found: &R| {
                    row = Some((key.clone(), found.clone()));
                    ControlFlow::Continue(())
                };
                self.visit_record(tx.enter(&self.meta)?, record, &mut copy)?;
                if let Some((key, row)) = row
                    && visit(tx, &key, &row)?.is_break()
                {
                    let last = Bound::Included(K::Image::own(&key.image()));
                    match direction {
                        Direction::Ascending => bounds.1 = last,
                        Direction::Descending => bounds.0 = last,
                    }
                    (visited, enough) = (&leaf.records[..=at], true);
                    break;
                }
            }
            if let Some(begun) = begun {
                Index::<K, R, P>::end_part(tx.enter(&self.meta)?, begun, bounds, direction, visited);
            }
            if enough {
                return Ok(());
            }
        }
    }
}

/// Asks for the memory of a record that a scan comes to a few records after the one at this place. Records lie anywhere, and a scan that
/// waits for each takes several times as long. The pointers lead to a place this many bytes behind the beginning of records of a size.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn prefetch_ahead<T>(pointers: &[NonNull<T>], at: usize, behind: usize, bytes: usize) {
    const AHEAD: usize = 8;
    if let Some(later) = pointers.get(at + AHEAD) {
        prefetch_bytes(later.as_ptr().cast::<u8>().wrapping_sub(behind), bytes.min(PREFETCHED_MAX));
    }
}

/// Returns copies of the first `limit` rows, with their keys, that a scan visits.
///
/// # Errors
///
/// Those of the scan.
pub fn first_rows<K: Clone, R: Clone>(
    limit: usize,
    scan: impl FnOnce(&mut dyn FnMut(&K, &R) -> ControlFlow<()>) -> Result<(), Abort>,
) -> Result<Vec<(K, R)>, Abort> {
    let mut rows = Vec::new();
    if limit > 0 {
        scan(&mut |key, row| {
            rows.push((key.clone(), row.clone()));
            if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    Ok(rows)
}
