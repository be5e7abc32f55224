//! A priority queue: the greatest element comes first (sto §4.2, `TPriorityQueue`).
//!
//! # Avoiding conflicts
//!
//! The queue is one segment. Pushed elements wait in its item, and enter the queue when the transaction commits. A transaction
//! that looks at the top, or pops, keeps the order of the first elements that it has seen as a condition. So
//!
//! - two pushes never conflict;
//! - a push and a pop conflict only if the element pushed comes before one popped: elements of equal priority are in the order
//!   of their commits. (A pop that takes an element of its own transaction also depends on the first one of the others.)
//! - two pops of elements of others always conflict.
//!
//! Reads take no lock: each commit installs a new version of a persistent heap, which shares most of its nodes with the one
//! before, and readers go on with the old one until it is freed through the epoch.
//!
//! Deviations from the paper: the heap is persistent, and not in a vector, so that what follows the popped elements can be looked
//! at while they are still there; and a popped element is not poisoned: concurrent pops find out at their commits, or earlier
//! under a protocol that locks what it will write.

use crate::leftist_heap::LeftistHeap;
use crate::numbered::Numbered;
use hotrow_core::operations::Operand;
use hotrow_core::{
    Abort, Access, Boxed, Commuting, CommutingSegment, Engine, Protocol, Seen, Transaction, Value,
};
use hotrow_protocols::Occ;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A transactional priority queue. Pushes never conflict with each other, and with pops only if they must.
///
/// The greatest element comes first; wrap elements in [`Reverse`](std::cmp::Reverse) for the smallest. Among equal ones, the
/// order is that of the commits that pushed them. A comparison that panics in a commit loses what that
/// transaction has pushed.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TPriorityQueue;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let calls = TPriorityQueue::with_elements(&engine, [(1, "noise"), (3, "fire")]);
/// let first = engine.transact(|tx| {
///     calls.push(tx, (2, "cat in a tree"))?;
///     Ok((calls.pop(tx)?, calls.pop(tx)?))
/// })?;
/// assert_eq!(first, (Some((3, "fire")), Some((2, "cat in a tree"))));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TPriorityQueue<T: Ord + Clone + Send + Sync + 'static, P: Protocol = Occ> {
    segment: CommutingSegment<Queue<T>, P>,
}

/// The datatype.
struct Queue<T>(PhantomData<fn(T)>);

/// One version of the queue.
struct Elements<T> {
    heap: LeftistHeap<Numbered<T>>,
    length: usize,
    /// The number of the next element.
    next_number: u64,
}

impl<T> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Self { heap: self.heap.clone(), ..*self }
    }
}

impl<T: Send + Sync + 'static> Value for Elements<T> {
    type Cell = Boxed<Self>;
}

/// The greatest element comes first; of equal ones, that which was pushed first.
impl<T: Ord> Ord for Numbered<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.element.cmp(&self.element).then(self.number.cmp(&other.number))
    }
}

impl<T: Ord> PartialOrd for Numbered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Numbered<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Numbered<T> {}

/// The pending change of an attempt.
#[derive(Clone)]
struct Change<T> {
    pushed: BinaryHeap<Arc<T>>,
    /// The number of elements popped, which are the first ones of the queue.
    popped: usize,
}

impl<T: Ord> Default for Change<T> {
    fn default() -> Self {
        Self { pushed: BinaryHeap::new(), popped: 0 }
    }
}

/// The part of the queue that an attempt has seen: its first elements, in order.
#[derive(Clone, Default)]
struct First {
    /// The numbers of the first elements.
    numbers: Vec<u64>,
    /// True if there was no other element.
    is_all: bool,
    /// True if what was seen contradicts what had been seen before.
    is_contradictory: bool,
}

impl First {
    /// Adds what was seen at a position: the number of the element there, if there is one. All before it has been seen.
    fn add(&mut self, position: usize, number: Option<u64>) {
        let before = self.numbers.get(position).copied();
        if before.is_some() || self.is_all {
            self.is_contradictory |= before != number;
        } else if let Some(number) = number {
            self.numbers.push(number);
        } else {
            self.is_all = true;
        }
    }
}

impl<T: Ord + Clone + Send + Sync + 'static> Commuting for Queue<T> {
    type Value = Elements<T>;
    type Change = Change<T>;
    type Condition = First;

    fn holds(&self, first: &First, _: Option<&Change<T>>, elements: &Elements<T>) -> bool {
        let mut numbers = elements.heap.iter().map(|entry| entry.number);
        !first.is_contradictory
            && first.numbers.iter().all(|seen| numbers.next() == Some(*seen))
            && !(first.is_all && numbers.next().is_some())
    }

    fn apply(&self, change: Change<T>, elements: &mut Elements<T>) {
        elements.length = elements.length + change.pushed.len() - change.popped;
        for _ in 0..change.popped {
            elements.heap = elements.heap.without_first();
        }
        for element in change.pushed {
            elements.heap = elements.heap.with(Numbered { element, number: elements.next_number });
            elements.next_number += 1;
        }
    }
}

impl<T: Ord + Clone + Send + Sync + 'static, P: Protocol> fmt::Debug for TPriorityQueue<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TPriorityQueue").field("name", &self.segment.name()).finish_non_exhaustive()
    }
}

/// The element that comes next.
enum Top<T> {
    Shared(Arc<T>),
    /// It is the attempt's own.
    Own(Arc<T>),
    Nothing,
}

impl<T: Ord + Clone + Send + Sync + 'static, P: Protocol> TPriorityQueue<T, P> {
    /// An empty queue.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "priority queue", [])
    }

    /// A queue of these elements.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = T>) -> Self {
        Self::named(engine, "priority queue", elements)
    }

    /// A queue of these elements with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, elements: impl IntoIterator<Item = T>) -> Self {
        let entry = |(number, element)| Numbered { element: Arc::new(element), number };
        let mut entries: Vec<_> = (0..).zip(elements).map(entry).collect();
        let (length, next_number) = (entries.len(), entries.len() as u64);
        entries.sort_unstable();
        // The last one first: each comes before all that are there already, which takes one step.
        let heap = entries.into_iter().rev().fold(LeftistHeap::default(), |heap, entry| heap.with(entry));
        let elements = Elements { heap, length, next_number };
        Self { segment: CommutingSegment::of(engine, name, Queue(PhantomData), elements) }
    }

    /// Adds an element, and reads nothing.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn push(&self, tx: &mut Transaction<'_, P>, element: T) -> Result<(), Abort> {
        self.segment.enter(tx)?.change(|change| change.pushed.push(Arc::new(element)))
    }

    /// Takes the greatest element; `None` if the queue is empty.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn pop(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        let top = self.look_at_top(tx)?;
        let (element, is_own) = match top {
            Top::Nothing => return Ok(None),
            Top::Shared(element) => (element, false),
            Top::Own(element) => (element, true),
        };
        // Copied first: if that panics, the element stays.
        let element = T::clone(&element);
        self.segment.enter(tx)?.change(|change| {
            if is_own {
                change.pushed.pop();
            } else {
                change.popped += 1;
            }
        })?;
        Ok(Some(element))
    }

    /// Returns a copy of the greatest element, which stays; `None` if the queue is empty.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn peek(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        Ok(match self.look_at_top(tx)? {
            Top::Shared(element) | Top::Own(element) => Some(T::clone(&element)),
            Top::Nothing => None,
        })
    }

    /// True if the queue is empty.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        Ok(matches!(self.look_at_top(tx)?, Top::Nothing))
    }

    /// Returns the number of elements. Any push or pop of another transaction is then a conflict.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.segment.enter(tx)?.read(|seen| {
            let (pushed, popped) = seen.change.map_or((0, 0), |change| (change.pushed.len(), change.popped));
            // Fewer than popped: the attempt cannot commit.
            (seen.value.length + pushed).saturating_sub(popped)
        })
    }

    /// Adds an element when the transaction commits. It may become known only then.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn defer_push(&self, tx: &mut Transaction<'_, P>, element: impl Operand<T>) -> Result<(), Abort> {
        self.segment.enter(tx)?.defer(Access::Write, element.into_input(), |queue, element| {
            queue.change(|change| change.pushed.push(Arc::new(element)))
        })?;
        Ok(())
    }

    /// Sets the queue's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.segment.set_rank(rank);
    }

    /// Looks at the element that comes next, on which the attempt depends then.
    fn look_at_top(&self, tx: &mut Transaction<'_, P>) -> Result<Top<T>, Abort> {
        let look = |queue: Seen<'_, Queue<T>>| {
            let (own, popped) =
                queue.change.map_or((None, 0), |change| (change.pushed.peek().cloned(), change.popped));
            let shared = queue.value.heap.iter().nth(popped).cloned();
            (own, popped, shared)
        };
        self.segment.enter(tx)?.test(look, |(own, popped, shared), first| {
            first.add(popped, shared.as_ref().map(|entry| entry.number));
            match (own, shared) {
                (None, None) => Top::Nothing,
                (None, Some(entry)) => Top::Shared(entry.element),
                (Some(own), Some(entry)) if own <= entry.element => Top::Shared(entry.element),
                (Some(own), _) => Top::Own(own),
            }
        })
    }
}
