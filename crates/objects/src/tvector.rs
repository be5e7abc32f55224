//! A vector: an array whose length changes (sto §4.2, `TVector`).
//!
//! # Avoiding conflicts
//!
//! The length is a segment, and each element is one.
//!
//! - A push reads nothing: its elements wait in the length's item, and get their places when the transaction commits. So
//!   transactions that only push never conflict.
//! - An operation that needs to know if there is an element of some index tests the length, and depends on the side of that
//!   index on which it lies (sto §3.5). So does [`TVector::discard_last`], which does not look at what it removes: the paper's
//!   `pop_back`.
//! - [`TVector::pop`] looks at the last element, and depends on the exact length.
//! - `insert` and `remove` within the vector move the elements behind, and write them all.
//!
//! [`TVector::exact`] makes a vector that always depends on the exact length, to see what predicates are worth (sto §5.5).

use crate::range::Range;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, Commuting, CommutingSegment, Engine, Protocol, Seen, SegmentAccess, SegmentSlots, Slots,
    Transaction, Value,
};
use hotrow_protocols::Occ;
use hotrow_sync::Arc;
use std::fmt;

/// A transactional vector. Pushes do not conflict, and neither do operations on different elements.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TVector;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let bids = TVector::with_elements(&engine, [7, 9]);
/// let all = engine.transact(|tx| {
///     bids.push(tx, 12)?;
///     bids.update(tx, 0, |bid| *bid += 1)?;
///     bids.to_vec(tx)
/// })?;
/// assert_eq!(all, [8, 9, 12]);
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TVector<T: Value, P: Protocol = Occ> {
    length: CommutingSegment<Length<T, P>, P>,
    is_exact: bool,
}

/// The number of elements, with the elements themselves.
struct Length<T: Value, P: Protocol>(Arc<SegmentSlots<T, P>>);

/// The pending change of an attempt, at the end of the vector.
#[derive(Clone)]
struct Change<T> {
    /// The number of elements removed from the end.
    removed: usize,
    /// The elements added then.
    pushed: Vec<T>,
}

impl<T> Default for Change<T> {
    fn default() -> Self {
        Self { removed: 0, pushed: Vec::new() }
    }
}

/// The end of the vector as an attempt finds it: the length, and its own pending change.
struct Ends {
    base: i64,
    removed: i64,
    pushed: i64,
}

impl Ends {
    fn of<T: Value, P: Protocol>(seen: Seen<'_, Length<T, P>>) -> Self {
        let (removed, pushed) =
            seen.change.map_or((0, 0), |change| (change.removed as i64, change.pushed.len() as i64));
        Self { base: seen.value.cast_signed(), removed, pushed }
    }

    /// The number by which the length will change.
    fn delta(&self) -> i64 {
        self.pushed - self.removed
    }
}

impl<T: Value, P: Protocol> Commuting for Length<T, P> {
    type Value = u64;
    type Change = Change<T>;
    type Condition = Range;

    fn holds(&self, condition: &Range, _: Option<&Change<T>>, length: &u64) -> bool {
        condition.contains(length.cast_signed())
    }

    fn apply(&self, change: Change<T>, length: &mut u64) {
        for _ in 0..change.removed {
            *length -= 1;
            self.0.take_out(*length as usize);
        }
        for element in change.pushed {
            self.0.put(*length as usize, element);
            *length += 1;
        }
    }
}

/// The number of looks at an element after which an attempt is lost because others push and pop at its place all the time.
const LOOKS_MAX: u32 = 64;

/// The place of an element.
enum Place<S> {
    /// Among those that commits have made.
    Shared(S),
    /// Among those that the attempt has pushed.
    Own(usize),
    /// There is none of this index.
    Nowhere,
}

impl<T: Value, P: Protocol> fmt::Debug for TVector<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TVector").field("name", &self.length.name()).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> TVector<T, P> {
    /// An empty vector.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "vector", [])
    }

    /// A vector of these elements.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = T>) -> Self {
        Self::named(engine, "vector", elements)
    }

    /// A vector of these elements with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, elements: impl IntoIterator<Item = T>) -> Self {
        let name = name.into();
        let slots = SegmentSlots::new(engine, name.as_str());
        let mut length = 0;
        for element in elements {
            slots.put(length, element);
            length += 1;
        }
        let (length, datatype) = (length as u64, Length(Arc::new(slots)));
        let length = CommutingSegment::of(engine, format!("{name}'s length"), datatype, length);
        Self { length, is_exact: false }
    }

    /// Makes each operation that looks at the length depend on the exact one, as if there were no predicates.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.is_exact = true;
        self
    }

    /// Adds an element at the end, and reads nothing.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn push(&self, tx: &mut Transaction<'_, P>, element: T) -> Result<(), Abort> {
        if self.is_exact {
            self.len(tx)?;
        }
        self.length.enter(tx)?.change(|change| change.pushed.push(element))
    }

    /// Removes the last element and returns it; `None` if the vector is empty. The transaction depends on the exact length.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn pop(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        if let Some(own) = self.pop_own(tx)? {
            return Ok(Some(own));
        }
        let length = self.len(tx)?;
        let Some(last) = length.checked_sub(1) else { return Ok(None) };
        let element = self.get(tx, last)?;
        self.length.enter(tx)?.change(|change| change.removed += 1)?;
        Ok(element)
    }

    /// Removes the last element; false if there is none. The transaction depends on it that the vector is not empty, and not
    /// on the length.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn discard_last(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        let is_own = self.pop_own(tx)?.is_some();
        if !is_own {
            if !self.is_longer_than(tx, 0)? {
                return Ok(false);
            }
            self.length.enter(tx)?.change(|change| change.removed += 1)?;
        }
        Ok(true)
    }

    /// Returns the number of elements. Any push or pop of another transaction is then a conflict: prefer
    /// [`is_longer_than`](Self::is_longer_than).
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.length.enter(tx)?.test(Ends::of, |ends, condition| condition.exactly(ends.base, ends.delta()))
    }

    /// True if the vector has no elements.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        Ok(!self.is_longer_than(tx, 0)?)
    }

    /// True if the vector has more than `length` elements. The transaction depends on that only.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn is_longer_than(&self, tx: &mut Transaction<'_, P>, length: usize) -> Result<bool, Abort> {
        if self.is_exact {
            return Ok(self.len(tx)? > length);
        }
        // No vector is longer than the greatest number of the other type.
        let Some(low) = i64::try_from(length).ok().and_then(|length| length.checked_add(1)) else {
            return Ok(false);
        };
        let wanted = Range { low, high: i64::MAX };
        self.length
            .enter(tx)?
            .test(Ends::of, |ends, condition| condition.test(ends.base, ends.delta(), wanted))
    }

    /// Returns a copy of an element; `None` if there is none of this index.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn get(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<Option<T>, Abort> {
        self.read(tx, index, T::clone)
    }

    /// Reads an element without copying it; `None` if there is none of this index.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn read<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        look: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, Abort> {
        match self.place(tx, index)? {
            Place::Shared(element) => element.read(look).map(Some),
            Place::Own(at) => self.length.enter(tx)?.own_change(|change| Some(look(&change?.pushed[at]))),
            Place::Nowhere => Ok(None),
        }
    }

    /// Replaces an element; false if there is none of this index.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn set(&self, tx: &mut Transaction<'_, P>, index: usize, element: T) -> Result<bool, Abort> {
        match self.place(tx, index)? {
            Place::Shared(place) => place.write(element)?,
            Place::Own(at) => self.length.enter(tx)?.change(|change| change.pushed[at] = element)?,
            Place::Nowhere => return Ok(false),
        }
        Ok(true)
    }

    /// Changes an element, and returns what the change returns; `None` if there is none of this index.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn update<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        index: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<Option<R>, Abort> {
        match self.place(tx, index)? {
            Place::Shared(place) => place.update(change).map(Some),
            Place::Own(at) => self.length.enter(tx)?.change(|own| Some(change(&mut own.pushed[at]))),
            Place::Nowhere => Ok(None),
        }
    }

    /// Inserts an element before the one of an index, or at the end; false if the index is greater than the length. Writes all
    /// elements behind.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn insert(&self, tx: &mut Transaction<'_, P>, index: usize, element: T) -> Result<bool, Abort> {
        let length = self.len(tx)?;
        if index > length {
            return Ok(false);
        }
        let around = self.length.enter(tx)?.access().begin_joint_changes();
        let mut moved = element;
        for at in index..length {
            let replaced = self.update(tx, at, |place| std::mem::replace(place, moved))?;
            let Some(next) = replaced else { return Err(self.length.enter(tx)?.conflict()) };
            moved = next;
        }
        self.push(tx, moved)?;
        self.length.enter(tx)?.access().end_joint_changes(around);
        Ok(true)
    }

    /// Removes the element of an index and returns it; `None` if there is none. Writes all elements behind.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn remove(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<Option<T>, Abort> {
        let length = self.len(tx)?;
        if index >= length {
            return Ok(None);
        }
        let around = self.length.enter(tx)?.access().begin_joint_changes();
        let mut moved = self.pop(tx)?;
        for at in (index..length - 1).rev() {
            let Some(element) = moved else { return Err(self.length.enter(tx)?.conflict()) };
            moved = self.update(tx, at, |place| std::mem::replace(place, element))?;
        }
        self.length.enter(tx)?.access().end_joint_changes(around);
        Ok(moved)
    }

    /// Removes all elements.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn clear(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        let length = self.len(tx)?;
        self.length.enter(tx)?.change(|change| {
            change.removed += length - change.pushed.len().min(length);
            change.pushed.clear();
        })
    }

    /// Returns the elements one by one, from the first to the last. A transaction that stops before the end depends only on the
    /// elements seen, and not on the length.
    pub fn iter<'t, 'w>(&'t self, tx: &'t mut Transaction<'w, P>) -> Iter<'t, 'w, T, P> {
        Iter { vector: self, tx, next: Some(0) }
    }

    /// Returns the index of the first element for which `is_wanted` is true.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn position(
        &self,
        tx: &mut Transaction<'_, P>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Option<usize>, Abort> {
        for index in 0.. {
            match self.read(tx, index, &is_wanted)? {
                Some(true) => return Ok(Some(index)),
                Some(false) => {}
                None => break,
            }
        }
        Ok(None)
    }

    /// Returns copies of all elements.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn to_vec(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<T>, Abort> {
        self.iter(tx).collect()
    }

    /// Adds an element at the end when the transaction commits. It may become known only then.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn defer_push(&self, tx: &mut Transaction<'_, P>, element: impl Operand<T>) -> Result<(), Abort> {
        self.length.enter(tx)?.defer(Access::Write, element.into_input(), |length, element| {
            length.change(|change| change.pushed.push(element))
        })?;
        Ok(())
    }

    /// Sets the rank of the vector's end: its position in the order in which transactions acquire the segments of their
    /// deferred operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.length.set_rank(rank);
    }

    /// Takes back the attempt's own last push, if there is one.
    fn pop_own(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        if self.length.enter(tx)?.own_change(|change| change.is_none_or(|change| change.pushed.is_empty()))? {
            return Ok(None);
        }
        self.length.enter(tx)?.change(|change| change.pushed.pop())
    }

    /// Finds an element, on whose being there, or not, the attempt depends then.
    #[expect(clippy::type_complexity, reason = "said once")]
    fn place<'t, 'w>(
        &'t self,
        tx: &'t mut Transaction<'w, P>,
        index: usize,
    ) -> Result<Place<SegmentAccess<'t, 'w, Slots<T, P>, P>>, Abort> {
        let mut looks = 0;
        let elements = &self.length.datatype().0;
        let (place, element) = elements.enter(tx, index, |tx| {
            looks += 1;
            if looks > LOOKS_MAX {
                return Err(self.length.enter(tx)?.conflict());
            }
            let place = self.test(tx, index)?;
            // If the attempt does not depend on what it reads, it is enough that the place was empty just now.
            let is_filled = matches!(place, Place::Shared(())) && self.length.enter(tx)?.keeps_reads();
            Ok((place, is_filled))
        })?;
        Ok(match (place, element) {
            (Place::Shared(()), Some(element)) => Place::Shared(element),
            (Place::Own(at), _) => Place::Own(at),
            _ => Place::Nowhere,
        })
    }

    /// Tests the length: is there an element of this index?
    fn test(&self, tx: &mut Transaction<'_, P>, index: usize) -> Result<Place<()>, Abort> {
        let is_exact = self.is_exact;
        self.length.enter(tx)?.test(Ends::of, |Ends { base, removed, pushed }, condition| {
            if is_exact {
                condition.narrow(base, base);
            }
            let Ok(wanted) = i64::try_from(index) else { return Place::Nowhere };
            let kept = base - removed;
            if wanted < kept {
                condition.narrow(wanted + removed + 1, i64::MAX);
                Place::Shared(())
            } else if wanted < kept + pushed {
                condition.narrow(base, base);
                Place::Own((wanted - kept) as usize)
            } else {
                condition.narrow(i64::MIN, (wanted - pushed).saturating_add(removed));
                Place::Nowhere
            }
        })
    }
}

/// The elements of a [`TVector`], one by one.
pub struct Iter<'t, 'w, T: Value, P: Protocol> {
    vector: &'t TVector<T, P>,
    tx: &'t mut Transaction<'w, P>,
    /// The index of the next element; `None` after the last one, or after an error.
    next: Option<usize>,
}

impl<T: Value, P: Protocol> fmt::Debug for Iter<'_, '_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("next", &self.next).finish_non_exhaustive()
    }
}

impl<T: Value, P: Protocol> Iterator for Iter<'_, '_, T, P> {
    type Item = Result<T, Abort>;

    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next.take()?;
        let element = self.vector.get(self.tx, index).transpose()?;
        if element.is_ok() {
            self.next = Some(index + 1);
        }
        Some(element)
    }
}
