//! A queue: first in, first out (sto §4.2, `TQueue`).
//!
//! # Avoiding conflicts
//!
//! A queue has two segments, its tail and its head: the numbers of elements ever pushed, and ever popped. The elements
//! themselves are not segments. The one of number `n` is what a transaction may take if the head is `n` and the tail is
//! greater, and it never changes.
//!
//! - A push reads nothing: its elements wait in the tail's item, and get their numbers when the transaction commits. So
//!   transactions that only push never conflict.
//! - A pop reads the head and tests the tail: if the queue is not empty, pushes do not matter; if it is, every push does.
//!   Two pops always conflict.
//! - A transaction that empties the queue goes on with what it has pushed itself.

use crate::range::Range;
use hotrow_core::operations::Operand;
use hotrow_core::{Abort, Access, Commuting, CommutingSegment, Engine, Pin, Protocol, Seen, Transaction};
use hotrow_protocols::Occ;
use hotrow_sync::{Mutex, lock};
use std::collections::VecDeque;
use std::fmt;
use std::mem::needs_drop;
use std::sync::Arc;

/// A transactional queue of elements of any type. Transactions that only push never conflict.
///
/// ```
/// use hotrow_core::Engine;
/// use hotrow_objects::TQueue;
/// use hotrow_protocols::Occ;
///
/// let engine = Engine::<Occ>::new();
/// let jobs = TQueue::with_elements(&engine, ["mail", "print"]);
/// let next = engine.transact(|tx| {
///     jobs.push(tx, "archive")?;
///     jobs.pop(tx)
/// })?;
/// assert_eq!(next, Some("mail"));
/// # Ok::<(), hotrow_core::Error>(())
/// ```
pub struct TQueue<T: Clone + Send + Sync + 'static, P: Protocol = Occ> {
    tail: CommutingSegment<Tail<T>, P>,
    head: CommutingSegment<Head<T>, P>,
}

/// The number of elements ever pushed. Elements wait in its changes until they are.
struct Tail<T>(Arc<Mutex<Elements<T>>>);

/// The number of elements ever popped.
struct Head<T>(Arc<Mutex<Elements<T>>>);

/// Elements that wait to be pushed. A single one, as most transactions push, takes no memory beside itself.
#[derive(Debug)]
struct Waiting<T> {
    first: Option<Arc<T>>,
    /// The elements behind the first one.
    others: VecDeque<Arc<T>>,
}

impl<T> Clone for Waiting<T> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), others: self.others.clone() }
    }
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { first: None, others: VecDeque::new() }
    }
}

impl<T> Waiting<T> {
    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn push(&mut self, element: T) {
        let element = Arc::new(element);
        if self.first.is_some() { self.others.push_back(element) } else { self.first = Some(element) }
    }

    fn pop(&mut self) -> Option<Arc<T>> {
        std::mem::replace(&mut self.first, self.others.pop_front())
    }
}

impl<T> FromIterator<T> for Waiting<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut elements = elements.into_iter().map(Arc::new);
        Self { first: elements.next(), others: elements.collect() }
    }
}

/// The elements between head and tail. Their clones and drops are users' code, so the lock's holder does neither.
struct Elements<T> {
    /// The number of the first one.
    first: u64,
    elements: VecDeque<Arc<T>>,
}

impl<T: Clone + Send + Sync + 'static> Commuting for Tail<T> {
    type Value = u64;
    type Change = Waiting<T>;
    type Condition = Range;

    fn holds(&self, condition: &Range, _: Option<&Self::Change>, pushed: &u64) -> bool {
        condition.contains(pushed.cast_signed())
    }

    fn apply(&self, change: Self::Change, pushed: &mut u64) {
        *pushed += change.len() as u64;
        let mut shared = lock(&self.0);
        shared.elements.extend(change.first);
        shared.elements.extend(change.others);
    }

    /// One that has found the queue empty finds it so until there is an element.
    fn still_waits(&self, condition: &Range, change: Option<&Self::Change>, pushed: &u64) -> bool {
        if condition.is_unbounded_below() {
            return lock(&self.0).elements.is_empty();
        }
        self.holds(condition, change, pushed)
    }
}

impl<T: Clone + Send + Sync + 'static> Commuting for Head<T> {
    type Value = u64;
    /// The number of elements popped.
    type Change = usize;
    /// A transaction that looks at the head reads it.
    type Condition = ();

    fn holds(&self, (): &(), _: Option<&usize>, _: &u64) -> bool {
        true
    }

    fn apply(&self, count: usize, popped: &mut u64) {
        *popped += count as u64;
        let mut shared = lock(&self.0);
        shared.first = *popped;
        // Freeing the memory of an element runs no code of users if dropping it runs none.
        let pin = needs_drop::<T>().then(Pin::new);
        for element in (0..count).filter_map(|_| shared.elements.pop_front()) {
            if let Some(pin) = &pin {
                pin.drop_later(element);
            }
        }
        // A collection, when the pin is dropped, may drop other values, and so not under the lock.
        drop(shared);
    }
}

impl<T: Clone + Send + Sync + 'static, P: Protocol> fmt::Debug for TQueue<T, P> {
    /// Shows the name only: the content is for transactions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TQueue").field("name", &self.head.name()).finish_non_exhaustive()
    }
}

/// The next element of a queue.
enum Next<T> {
    /// Of those that commits have pushed.
    Shared(Arc<T>),
    /// The first one that the attempt has pushed itself, if there is any.
    Own(Option<Arc<T>>),
}

impl<T: Clone + Send + Sync + 'static, P: Protocol> TQueue<T, P> {
    /// An empty queue.
    pub fn new(engine: &Engine<P>) -> Self {
        Self::named(engine, "queue", [])
    }

    /// A queue of these elements, the first one at the head.
    pub fn with_elements(engine: &Engine<P>, elements: impl IntoIterator<Item = T>) -> Self {
        Self::named(engine, "queue", elements)
    }

    /// A queue of these elements with a name, for errors and conflict reports.
    pub fn named(engine: &Engine<P>, name: impl Into<String>, elements: impl IntoIterator<Item = T>) -> Self {
        let name = name.into();
        let elements: VecDeque<_> = elements.into_iter().map(Arc::new).collect();
        let pushed = elements.len() as u64;
        let shared = Arc::new(Mutex::new(Elements { first: 0, elements }));
        let tail = CommutingSegment::of(engine, format!("{name}'s tail"), Tail(shared.clone()), pushed);
        Self { tail, head: CommutingSegment::of(engine, name, Head(shared), 0) }
    }

    /// Adds an element at the tail, and reads nothing.
    ///
    /// # Errors
    ///
    /// [`Abort`] when the attempt cannot go on; pass it up with `?`.
    pub fn push(&self, tx: &mut Transaction<'_, P>, element: T) -> Result<(), Abort> {
        self.tail.enter(tx)?.change(|pushed| pushed.push(element))
    }

    /// Takes the element at the head; `None` if the queue is empty.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn pop(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        // Copied first: if that panics, the element stays.
        let element = match self.next(tx)? {
            Next::Shared(element) => {
                let element = T::clone(&element);
                self.head.enter(tx)?.change(|popped| *popped += 1)?;
                element
            }
            Next::Own(Some(element)) => {
                let element = T::clone(&element);
                self.tail.enter(tx)?.change(Waiting::pop)?;
                element
            }
            Next::Own(None) => return Ok(None),
        };
        Ok(Some(element))
    }

    /// Returns a copy of the element at the head, which stays; `None` if the queue is empty.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push). [`Misuse::Unsupported`](hotrow_core::Misuse::Unsupported) on a snapshot, for which elements are not
    /// kept.
    pub fn front(&self, tx: &mut Transaction<'_, P>) -> Result<Option<T>, Abort> {
        Ok(match self.next(tx)? {
            Next::Shared(element) | Next::Own(Some(element)) => Some(T::clone(&element)),
            Next::Own(None) => None,
        })
    }

    /// True if the queue is empty. Pushes matter to that only if it is.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn is_empty(&self, tx: &mut Transaction<'_, P>) -> Result<bool, Abort> {
        if self.head.enter(tx)?.access().is_on_snapshot() {
            return Ok(self.len(tx)? == 0);
        }
        Ok(matches!(self.next(tx)?, Next::Own(None)))
    }

    /// Returns the number of elements. Any push or pop of another transaction is then a conflict: prefer
    /// [`is_empty`](Self::is_empty).
    ///
    /// At read committed it is the length of one moment. Under `plor` that may be one at which another transaction, which pops and
    /// pushes, is installing its commit.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn len(&self, tx: &mut Transaction<'_, P>) -> Result<usize, Abort> {
        self.with_popped(tx, |tx, popped| {
            let pushed = self
                .tail
                .enter(tx)?
                .read(|seen| *seen.value + seen.change.map_or(0, |own| own.len() as u64))?;
            // Fewer pushed than popped: they are of different moments, and the attempt cannot commit.
            Ok(pushed.saturating_sub(popped) as usize)
        })
    }

    /// Adds an element at the tail when the transaction commits. It may become known only then.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn defer_push(&self, tx: &mut Transaction<'_, P>, element: impl Operand<T>) -> Result<(), Abort> {
        self.tail.enter(tx)?.defer(Access::Write, element.into_input(), |tail, element| {
            tail.change(|pushed| pushed.push(element))
        })?;
        Ok(())
    }

    /// Sets the queue's rank: its position in the order in which transactions acquire the segments of their deferred
    /// operations (*line up*; [`ObjectMeta::set_rank`](hotrow_core::ObjectMeta::set_rank)).
    pub fn set_rank(&mut self, rank: u16) {
        self.tail.set_rank(rank);
        self.head.set_rank(rank);
    }

    /// Reads the number of elements popped, the attempt's own pops included: the number of the next one.
    fn popped(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        self.head.enter(tx)?.read(|seen| *seen.value + seen.change.map_or(0, |own| *own as u64))
    }

    /// Looks at the tail for a number of elements popped, which is that of the same moment. An attempt that does not depend on what
    /// it reads finds out by itself: it looks again if somebody has popped meanwhile.
    fn with_popped<R>(
        &self,
        tx: &mut Transaction<'_, P>,
        mut look: impl FnMut(&mut Transaction<'_, P>, u64) -> Result<R, Abort>,
    ) -> Result<R, Abort> {
        loop {
            let popped = self.popped(tx)?;
            let seen = look(tx, popped)?;
            if self.head.enter(tx)?.keeps_reads() || self.popped(tx)? == popped {
                return Ok(seen);
            }
        }
    }

    fn next(&self, tx: &mut Transaction<'_, P>) -> Result<Next<T>, Abort> {
        self.head.enter(tx)?.refuse_snapshot()?;
        loop {
            if let Some(next) = self.with_popped(tx, |tx, popped| self.next_of(tx, popped))? {
                if let Next::Own(_) = next {
                    // Nothing is popped from an empty queue before something is pushed.
                    self.head.enter(tx)?.matters_not_to_wait()?;
                }
                return Ok(next);
            }
            // Somebody else has popped it, so the head has changed since it was read.
            let head = self.head.enter(tx)?;
            if head.keeps_reads() {
                return Err(head.conflict());
            }
        }
    }

    /// Finds the element of this number. There is none if others have popped it.
    fn next_of(&self, tx: &mut Transaction<'_, P>, number: u64) -> Result<Option<Next<T>>, Abort> {
        let look = |seen: Seen<'_, Tail<T>>| {
            if *seen.value <= number {
                return Some(Next::Own(seen.change.and_then(|own| own.first.clone())));
            }
            let shared = lock(&seen.datatype.0);
            let at = number.checked_sub(shared.first)?;
            shared.elements.get(at as usize).cloned().map(Next::Shared)
        };
        self.tail.enter(tx)?.test(look, |next, pushed| {
            let popped = number.cast_signed();
            match next {
                Some(Next::Own(_)) => pushed.narrow(i64::MIN, popped),
                _ => pushed.narrow(popped + 1, i64::MAX),
            }
            next
        })
    }
}
