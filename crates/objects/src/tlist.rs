//! A list of any elements, in the order in which they came (sto §4.2, `TList`).
//!
//! # Avoiding conflicts
//!
//! The list is one segment. Insertions and removals wait in its item, and the commit applies them.
//!
//! - An insertion reads nothing: transactions that only insert never conflict.
//! - An operation that finds an element depends on it that this one stays; later insertions come behind it.
//! - An operation that finds none depends on it that none is inserted.
//! - The length is a condition of its own, as in a vector.
//!
//! Reads take no lock: a commit installs a new array of pointers to the elements, and readers go on with the old one until it is
//! freed through the epoch. Deviation from the paper: an array that a commit copies, and not linked nodes.

use crate::numbered::Numbered;
use crate::range::Range;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, Boxed, Commuting, CommutingSegment, Engine, Protocol, Seen, Transaction, Value,
};
use hotrow_protocols::Occ;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A transactional list. Insertions never conflict with each other.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TList;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let orders = TList::with_elements(&engine, [("ada", 3), ("bob", 5)]);
/// let of_bob = engine.transact(|tx| {
///     orders.insert(tx, ("bob", 7))?;
///     orders.remove(tx, |order| order.0 == "bob")
/// })?;
/// assert_eq!(of_bob, Some(("bob", 5)));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TList<T: Clone + Send + Sync + 'static, P: Protocol = Occ> {
    segment: CommutingSegment<List<T>, P>,
}

/// The datatype.
struct List<T>(PhantomData<fn(T)>);

/// The elements in the order of their numbers.
struct Elements<T> {
    elements: Vec<Numbered<T>>,
    next_number: u64,
}

impl<T> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Self { elements: self.elements.clone(), next_number: self.next_number }
    }
}

impl<T> Elements<T> {
    fn position(&self, number: u64) -> Option<usize> {
        self.elements.binary_search_by_key(&number, |element| element.number).ok()
    }
}

impl<T: Send + Sync + 'static> Value for Elements<T> {
    type Cell = Boxed<Self>;

    fn heap_bytes(&self) -> usize {
        self.elements.capacity() * size_of::<Numbered<T>>()
    }
}

/// The pending change of an attempt.
struct Change<T> {
    inserted: Vec<Arc<T>>,
    /// The numbers of elements to be removed.
    removed: Vec<u64>,
}

impl<T> Clone for Change<T> {
    fn clone(&self) -> Self {
        Self { inserted: self.inserted.clone(), removed: self.removed.clone() }
    }
}

impl<T> Default for Change<T> {
    fn default() -> Self {
        Self { inserted: Vec::new(), removed: Vec::new() }
    }
}

/// The facts on which an attempt depends.
#[derive(Clone, Default)]
struct Facts {
    /// The numbers of elements that are there.
    present: Vec<u64>,
    /// The number of the next element to come, if none may have come.
    next_number: Option<u64>,
    length: Range,
}

impl<T: Clone + Send + Sync + 'static> Commuting for List<T> {
    type Value = Elements<T>;
    type Change = Change<T>;
    type Condition = Facts;

    fn holds(&self, facts: &Facts, _: Option<&Change<T>>, list: &Elements<T>) -> bool {
        facts.length.contains(list.elements.len() as i64)
            && facts.next_number.is_none_or(|number| number == list.next_number)
            && facts.present.iter().all(|number| list.position(*number).is_some())
    }

    fn apply(&self, change: Change<T>, list: &mut Elements<T>) {
        for number in change.removed {
            if let Some(position) = list.position(number) {
                list.elements.remove(position);
            }
        }
        for element in change.inserted {
            list.elements.push(Numbered { element, number: list.next_number });
            list.next_number += 1;
        }
    }
}

/// An element that was found.
enum Found<T> {
    Shared(Numbered<T>),
    /// One that the attempt has inserted, and its position among those.
    Own(Arc<T>, usize),
}

impl<T: Clone + Send + Sync + 'static, P: Protocol> fmt::Debug for TList<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TList").field("name", &self.segment.name()).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + Sync + 'static, P: Protocol> TList<T, P> {
    /// An empty list.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "list", [])
    }

    /// A list of these elements.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = T>) -> Self {
        Self::named(engine, "list", elements)
    }

    /// A list of these elements with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, elements: impl IntoIterator<Item = T>) -> Self {
        let element = |(number, element)| Numbered { element: Arc::new(element), number };
        let elements: Vec<_> = (0..).zip(elements).map(element).collect();
        let next_number = elements.len() as u64;
        let list = Elements { elements, next_number };
        Self { segment: CommutingSegment::of(engine, name, List(PhantomData), list) }
    }

    /// Adds an element at the end, and reads nothing.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn insert(&self, tx: &mut Transaction<'_, P>, element: T) -> Result<(), Abort> {
        self.segment.enter(tx)?.change(|change| change.inserted.push(Arc::new(element)))
    }

    /// Returns a copy of the first element for which `is_wanted` is true. It may be called several times.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn find(
        &self,
        tx: &mut Transaction<'_, P>,
        is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<T>, Abort> {
        Ok(self.look_for(tx, is_wanted)?.map(|found| match found {
            Found::Shared(Numbered { element, .. }) | Found::Own(element, _) => T::clone(&element),
        }))
    }

    /// Removes the first element for which `is_wanted` is true, and returns it.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn remove(
        &self,
        tx: &mut Transaction<'_, P>,
        is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<T>, Abort> {
        let Some(found) = self.look_for(tx, is_wanted)? else { return Ok(None) };
        // Copied first: if that panics, the element stays.
        let element = match found {
            Found::Shared(Numbered { element, number }) => {
                let element = T::clone(&element);
                self.segment.enter(tx)?.change(|change| change.removed.push(number))?;
                element
            }
            Found::Own(element, position) => {
                let element = T::clone(&element);
                self.segment.enter(tx)?.change(|change| drop(change.inserted.remove(position)))?;
                element
            }
        };
        Ok(Some(element))
    }

    /// True if the list has no elements.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        self.segment.enter(tx)?.test(lengths, |(length, delta), facts| facts.length.test_empty(length, delta))
    }

    /// Returns the number of elements. Any insertion or removal of another transaction is then a conflict: prefer
    /// [`is_empty`](Self::is_empty).
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.segment.enter(tx)?.test(lengths, |(length, delta), facts| facts.length.exactly(length, delta))
    }

    /// Returns copies of all elements. Any change of the list by another transaction is then a conflict.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn to_vec(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<T>, Abort> {
        let list = self.segment.enter(tx)?.read(|seen| {
            let mut list = seen.value.clone();
            if let Some(change) = seen.change {
                seen.datatype.apply(change.clone(), &mut list);
            }
            list
        })?;
        Ok(list.elements.iter().map(|element| T::clone(&element.element)).collect())
    }

    /// Adds an element at the end when the transaction commits. It may become known only then.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub fn defer_insert(&self, tx: &mut Transaction<'_, P>, element: impl Operand<T>) -> Result<(), Abort> {
        self.segment.enter(tx)?.defer(Access::Write, element.into_input(), |list, element| {
            list.change(|change| change.inserted.push(Arc::new(element)))
        })?;
        Ok(())
    }

    /// Sets the list's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.segment.set_rank(rank);
    }

    /// Finds the first element that is wanted.
    fn look_for(
        &self,
        tx: &mut Transaction<'_, P>,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<Found<T>>, Abort> {
        let look = |seen: Seen<'_, List<T>>| {
            let is_there = |number| seen.change.is_none_or(|change| !change.removed.contains(&number));
            let shared = seen.value.elements.iter();
            let found = shared.clone().find(|one| is_there(one.number) && is_wanted(&one.element));
            let found = match found {
                Some(element) => Some(Found::Shared(element.clone())),
                None => seen.change.and_then(|change| {
                    let position = change.inserted.iter().position(|element| is_wanted(element))?;
                    Some(Found::Own(change.inserted[position].clone(), position))
                }),
            };
            (found, seen.value.next_number)
        };
        self.segment.enter(tx)?.test(look, |(found, next_number), facts| {
            match &found {
                Some(Found::Shared(element)) => facts.present.push(element.number),
                // An earlier one is the same: the condition was judged just now.
                _ => facts.next_number = Some(next_number),
            }
            found
        })
    }
}

/// The length without the attempt's own changes, and what they add to it.
fn lengths<T: Clone + Send + Sync + 'static>(seen: Seen<'_, List<T>>) -> (i64, i64) {
    let delta = seen.change.map_or(0, |change| change.inserted.len() as i64 - change.removed.len() as i64);
    (seen.value.elements.len() as i64, delta)
}
