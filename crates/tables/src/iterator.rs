//! Scans as iterators.
//!
//! The visitor of a scan runs inside of the index, and an iterator's user does not. So an iterator reads its range in parts, and
//! begins each behind the row that it has shown last. The first part has one row, and each further one twice as many as the one
//! before, up to [`PART_MAX`]: a transaction that stops early depends on at most about as many rows behind as it was shown.

use crate::index::Direction;
use crate::key::{Image, ImageOf, ImageRange, Key, KeyBounds, own_range};
use crate::secondary::SecondaryIndex;
use crate::table::Table;
use crate::unique::UniqueIndex;
use hotrow_core::{Abort, Protocol, Transaction, Value};
use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::{Bound, ControlFlow};

/// The most rows of a part.
const PART_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// Gets the image under which a row was found, and a copy of the row.
type Show<'s, 'i, E, T> = dyn FnMut(ImageOf<'i, E>, T) -> ControlFlow<()> + 's;

/// Scans a range from one of its ends.
trait Scan<'w, 'i, E: Key, T, P: Protocol>:
    FnMut(&mut Transaction<'w, P>, ImageRange<'i, E>, Direction, &mut Show<'_, 'i, E, T>) -> Result<(), Abort>
{
}

impl<'w, 'i, E: Key, T, P: Protocol, F> Scan<'w, 'i, E, T, P> for F where
    F: FnMut(
        &mut Transaction<'w, P>,
        ImageRange<'i, E>,
        Direction,
        &mut Show<'_, 'i, E, T>,
    ) -> Result<(), Abort>
{
}

/// The rows of a range, one by one, from both ends. Behind an error there are no more.
struct Parts<'t, 'w, 'i, E: Key, T, P: Protocol, F> {
    tx: &'t mut Transaction<'w, P>,
    scan: F,
    /// The range that was not read yet; `None` when all was read.
    ahead: Option<ImageRange<'i, E>>,
    /// Rows that were read from the range's begin, and from its end, and not shown yet.
    front: VecDeque<T>,
    back: VecDeque<T>,
    rows_max: usize,
}

impl<'t, 'w, 'i, E: Key, T, P: Protocol, F> Parts<'t, 'w, 'i, E, T, P, F>
where
    F: Scan<'w, 'i, E, T, P>,
{
    fn new(tx: &'t mut Transaction<'w, P>, range: ImageRange<'_, E>, scan: F) -> Self {
        let ahead = Some(own_range::<E>(range));
        Self { tx, scan, ahead, front: VecDeque::new(), back: VecDeque::new(), rows_max: 1 }
    }

    /// Reads the next part of the range, from one of its ends.
    fn read(&mut self, direction: Direction) -> Result<(), Abort> {
        let Some((mut low, mut high)) = self.ahead.take() else { return Ok(()) };
        let (mut found, mut last) = (VecDeque::with_capacity(self.rows_max), None);
        (self.scan)(self.tx, (low.clone(), high.clone()), direction, &mut |image, row| {
            found.push_back(row);
            last = Some(image);
            if found.len() < self.rows_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if let Some(last) = last
            && found.len() == self.rows_max
        {
            match direction {
                Direction::Ascending => low = Bound::Excluded(last),
                Direction::Descending => high = Bound::Excluded(last),
            }
            self.ahead = Some((low, high));
            self.rows_max = PART_MAX.min(self.rows_max * 2);
        }
        match direction {
            Direction::Ascending => self.front = found,
            Direction::Descending => self.back = found,
        }
        Ok(())
    }
}

impl<'w, 'i, E: Key, T, P: Protocol, F> Iterator for Parts<'_, 'w, 'i, E, T, P, F>
where
    F: Scan<'w, 'i, E, T, P>,
{
    type Item = Result<T, Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.is_empty()
            && let Err(abort) = self.read(Direction::Ascending)
        {
            self.back.clear();
            return Some(Err(abort));
        }
        self.front.pop_front().or_else(|| self.back.pop_back()).map(Ok)
    }
}

impl<'w, 'i, E: Key, T, P: Protocol, F> DoubleEndedIterator for Parts<'_, 'w, 'i, E, T, P, F>
where
    F: Scan<'w, 'i, E, T, P>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.is_empty()
            && let Err(abort) = self.read(Direction::Descending)
        {
            self.front.clear();
            return Some(Err(abort));
        }
        self.back.pop_front().or_else(|| self.front.pop_back()).map(Ok)
    }
}

impl<'w, 'i, E: Key, T, P: Protocol, F> FusedIterator for Parts<'_, 'w, 'i, E, T, P, F> where
    F: Scan<'w, 'i, E, T, P>
{
}

impl<K: Key, R: Value, P: Protocol> Table<K, R, P> {
    /// Returns copies of the keys and rows of a range, in the order of the keys or, from its end, against it. It includes the
    /// transaction's own changes.
    ///
    /// It reads in parts, of one row first and then of more and more: a transaction that stops early depends on at most about as
    /// many rows behind as it was shown. [`scan`](Self::scan) copies nothing, and depends on what it has visited.
    ///
    /// An item is an error when the attempt cannot go on; pass it up with `?`. A table with a hash index ends the transaction with
    /// [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported).
    ///
    /// ```
    /// use hotrow_tables::Database;
    ///
    /// let db = Database::open()?;
    /// let bids = db.table::<u64, String>("bids").create()?;
    /// let best = db.transact(|tx| {
    ///     for (bid, who) in [(10, "ada"), (12, "bob"), (9, "eve")] {
    ///         bids.insert(tx, bid, who.into())?;
    ///     }
    ///     let mut best = Vec::new();
    ///     for bid in bids.iter(tx, ..12).rev() {
    ///         let (bid, who) = bid?;
    ///         best.push((bid, who));
    ///     }
    ///     Ok(best)
    /// })?;
    /// assert_eq!(best, [(10, "ada".into()), (9, "eve".into())]);
    /// # Ok::<(), hotrow_core::Error>(())
    /// ```
    pub fn iter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        range: impl KeyBounds<K>,
    ) -> impl DoubleEndedIterator<Item = Result<(K, R), Abort>> + FusedIterator {
        Parts::<K, _, P, _>::new(tx, range.images(), |tx: &mut Transaction<'w, P>, range, direction, show| {
            let tx = tx.enter(&self.shared.meta)?;
            self.shared.scan_by(tx, range, direction, &mut |key, row| {
                show(K::Image::own(&key.image()), (key.clone(), row.clone()))
            })
        })
    }

    /// Returns a copy of the first row of a range, with its key. The transaction does not depend on what comes behind it.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next().transpose()
    }

    /// Returns a copy of the last row of a range, with its key. The transaction does not depend on what comes before it.
    ///
    /// # Errors
    ///
    /// As [`scan`](Self::scan).
    pub fn last(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<K>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next_back().transpose()
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> SecondaryIndex<S, K, R, P> {
    /// Returns copies of the primary keys and rows in a range of secondary keys, as [`Table::iter`] does.
    pub fn iter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        range: impl KeyBounds<S>,
    ) -> impl DoubleEndedIterator<Item = Result<(K, R), Abort>> + FusedIterator {
        let range = crate::secondary::images::<S, K>(&range);
        Parts::<(S, K), _, P, _>::new(tx, range, |tx: &mut Transaction<'w, P>, range, direction, show| {
            self.scan_images(tx, range, direction, &mut |secondary, key, row| {
                let entry = (secondary.clone(), key.clone());
                let image = <(S, K) as Key>::Image::own(&entry.image());
                show(image, (entry.1, row.clone()))
            })
        })
    }

    /// Returns copies of the primary key and the row of the first entry in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
    pub fn first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next().transpose()
    }

    /// Returns copies of the primary key and the row of the last entry in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`scan_keys`](Self::scan_keys).
    pub fn last(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next_back().transpose()
    }
}

impl<S: Key, K: Key, R: Value, P: Protocol> UniqueIndex<S, K, R, P> {
    /// Returns copies of the primary keys and rows in a range of secondary keys, as [`Table::iter`] does.
    pub fn iter<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        range: impl KeyBounds<S>,
    ) -> impl DoubleEndedIterator<Item = Result<(K, R), Abort>> + FusedIterator {
        Parts::<S, _, P, _>::new(tx, range.images(), |tx: &mut Transaction<'w, P>, range, direction, show| {
            self.scan_images(tx, range, direction, &mut |secondary, key, row| {
                show(S::Image::own(&secondary.image()), (key.clone(), row.clone()))
            })
        })
    }

    /// Returns copies of the primary key and the row of the first entry in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn first(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next().transpose()
    }

    /// Returns copies of the primary key and the row of the last entry in a range of secondary keys.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn last(
        &self,
        tx: &mut Transaction<'_, P>,
        range: impl KeyBounds<S>,
    ) -> Result<Option<(K, R)>, Abort> {
        self.iter(tx, range).next_back().transpose()
    }
}
