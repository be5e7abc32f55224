//! Interleavings of an operation with a change by "another thread", stepped on one thread.

use super::*;
use hotrow_sync::{Arc, Mutex, lock};
use std::rc::Rc;

/// A key whose first comparison runs an action on the index, as another thread might at that moment.
struct Meddling {
    number: u64,
    deed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Meddling {
    fn harmless(number: u64) -> Self {
        Self { number, deed: Mutex::new(None) }
    }

    fn with(number: u64, deed: impl FnOnce() + Send + 'static) -> Self {
        Self { number, deed: Mutex::new(Some(Box::new(deed))) }
    }

    /// A key that another thread inserts during the first comparison.
    fn inserted_meanwhile(number: u64, index: &Arc<Index<Self>>, census: &Census) -> Self {
        let (index, census) = (Arc::clone(index), census.clone());
        Self::with(number, move || insert_harmless(&index, number, &census))
    }
}

impl PartialEq for Meddling {
    fn eq(&self, other: &Self) -> bool {
        for key in [self, other] {
            let deed = lock(&key.deed).take();
            if let Some(deed) = deed {
                deed();
            }
        }
        self.number == other.number
    }
}

impl Eq for Meddling {}

impl Hash for Meddling {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(0);
    }
}

/// Inserts a key whose comparisons do nothing else.
fn insert_harmless(index: &Index<Meddling>, number: u64, census: &Census) {
    let record = CountedRecord::new(Meddling::harmless(number), census);
    assert!(insert(index, record, &epoch::pin(), &mut |_| ()));
}

/// An index of `count` keys in one chain.
fn chain(count: u64) -> (Arc<Index<Meddling>>, Census) {
    let census = Census::default();
    let index = Index::with_capacity(100);
    (0..count).for_each(|number| insert_harmless(&index, number, &census));
    (Arc::new(index), census)
}

/// Ends a test whose action has run.
fn end(index: Arc<Index<Meddling>>, census: &Census) {
    empty(Arc::into_inner(index).expect("the action has run"), epoch::pin(), census);
}

#[test]
fn an_entry_that_is_moved_behind_a_readers_back_is_found() {
    let (index, census) = chain(10);
    let other = Arc::clone(&index);
    // The last entry moves to the first one's slot while the reader compares the first.
    let key = Meddling::with(9, move || {
        let guard = &epoch::pin();
        let Lookup::Found(first) = other.get(&Meddling::harmless(0), guard) else { panic!("the first") };
        assert!(other.remove(first, guard, &mut |_| ()));
        retire(first, guard);
    });
    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)), "missed");
    end(index, &census);
}

#[test]
fn a_key_inserted_behind_a_lookups_back_is_found() {
    let (index, census) = chain(5);
    let key = Meddling::inserted_meanwhile(77, &index, &census);
    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)));
    end(index, &census);
}

#[test]
fn a_key_inserted_behind_an_insertions_back_is_not_inserted_twice() {
    let (index, census) = chain(5);
    let key = Meddling::inserted_meanwhile(77, &index, &census);
    assert!(!insert(&index, CountedRecord::new(key, &census), &epoch::pin(), &mut |_| ()));
    end(index, &census);
}

#[test]
fn a_key_inserted_into_the_larger_array_behind_a_lookups_back_is_found() {
    let (index, census) = chain(5);
    let (other, deeds) = (Arc::clone(&index), census.clone());
    let key = Meddling::with(77, move || {
        let guard = &epoch::pin();
        let array = other.current(guard);
        other.grow(array);
        assert!(insert(&other, CountedRecord::new(Meddling::harmless(77), &deeds), guard, &mut |_| ()));
        let at = array.position(Hash64::of(&Meddling::harmless(77), &other.hashing));
        assert_eq!(array.buckets()[at].version.stable(), None, "retired");
    });
    assert!(matches!(index.get(&key, &epoch::pin()), Lookup::Found(_)));
    end(index, &census);
}

/// An overflow bucket makes a bucket look ready; the latch must keep readers out until it really is.
#[test]
fn a_bucket_is_latched_while_it_is_being_filled() {
    let census = Census::default();
    for at in 0..41 {
        let index = Rc::new(Index::with_capacity(1));
        let pin = epoch::pin();
        for n in 0..41 {
            assert!(insert(&index, CountedRecord::new(Same(n), &census), &pin, &mut |_| ()));
        }
        index.grow(index.current(&pin));
        let array = index.current(&pin);
        let position = array.position(Hash64::of(&Same(0), &index.hashing));
        assert!(!array.buckets()[position].is_ready());
        let other = Rc::clone(&index);
        let deed = move || {
            let guard = epoch::pin();
            let bucket = &other.current(&guard).buckets()[position];
            assert!(!bucket.is_ready() || !bucket.version.try_lock_at(0));
        };
        let ((), did) = meanwhile(at, deed, || index.make_ready(array, position, &pin));
        assert!(did);
        assert!(matches!(index.get(&Same(40), &pin), Lookup::Found(_)));
        empty(Rc::into_inner(index).unwrap(), pin, &census);
    }
}
