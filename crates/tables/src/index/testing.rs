//! Shared test support of both indexes: counted records, and an observer.

use super::Keyed;
use hotrow_core::epoch::Guard;
use hotrow_core::{Observed, StructureChange};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use std::cell::RefCell;
use std::ptr::NonNull;

/// The number of live records.
#[derive(Debug, Clone, Default)]
pub(super) struct Census(Arc<AtomicUsize>);

impl Census {
    pub(super) fn alive(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Lets the epoch free deferred garbage until `expected` records are left.
    pub(super) fn settle(&self, expected: usize) {
        for _ in 0..1_000_000 {
            if self.alive() == expected {
                return;
            }
            hotrow_core::epoch::pin().flush();
            hotrow_sync::thread::yield_now();
        }
        assert_eq!(self.alive(), expected, "records were leaked, or freed too early");
    }
}

/// A record: a key, and a mark that shows that the record has not been freed.
#[derive(Debug)]
pub(super) struct CountedRecord<K> {
    key: K,
    mark: u64,
    census: Census,
}

const ALIVE: u64 = 0xa11_5e11;

impl<K> CountedRecord<K> {
    pub(super) fn new(key: K, census: &Census) -> NonNull<Self> {
        census.0.fetch_add(1, Ordering::SeqCst);
        NonNull::from(Box::leak(Box::new(Self { key, mark: ALIVE, census: census.clone() })))
    }
}

impl<K> Drop for CountedRecord<K> {
    fn drop(&mut self) {
        assert_eq!(std::mem::replace(&mut self.mark, 0), ALIVE, "freed twice");
        self.census.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<K: Send + Sync + 'static> Keyed for CountedRecord<K> {
    type Key = K;
    fn key(&self) -> &K {
        &self.key
    }
}

/// The key of a record that a lookup or scan has just returned.
pub(super) fn key_of<K: Clone>(record: NonNull<CountedRecord<K>>, _guard: &Guard) -> K {
    // SAFETY: returned under the pinned epoch.
    let record = unsafe { record.as_ref() };
    assert_eq!(record.mark, ALIVE, "a freed record");
    record.key.clone()
}

/// Frees a record at once.
///
/// # Safety
///
/// No thread can reach it any more.
pub(super) unsafe fn free<K>(record: NonNull<CountedRecord<K>>) {
    // SAFETY: made by `CountedRecord::new`; the caller's promise.
    drop(unsafe { Box::from_raw(record.as_ptr()) });
}

/// Frees a record that has been removed, once no reader can have it.
pub(super) fn retire<K>(record: NonNull<CountedRecord<K>>, guard: &Guard) {
    // SAFETY: the tests call it once, after the removal.
    unsafe { guard.defer_unchecked(move || free(record)) };
}

/// A transaction's use of observations: it keeps them, follows its own changes, and checks them.
#[derive(Default)]
pub(super) struct Observer {
    entries: Vec<Observed>,
}

impl Observer {
    pub(super) fn observe(&mut self, observed: Observed) {
        if !self.entries.contains(&observed) {
            self.entries.push(observed);
        }
    }

    pub(super) fn follow(&mut self, change: StructureChange) {
        match change {
            StructureChange::Bumped { node, before, after } => {
                for entry in &mut self.entries {
                    if *entry == (Observed { node, version: before }) {
                        entry.version = after;
                    }
                }
            }
            StructureChange::Split { from, before, node, version } => {
                if self.entries.contains(&Observed { node: from, version: before }) {
                    self.entries.push(Observed { node, version });
                }
            }
        }
    }

    pub(super) fn unchanged(&self, _guard: &Guard) -> bool {
        // SAFETY: observed under the pinned epoch.
        self.entries.iter().all(|entry| unsafe { entry.node.as_ref() }.unchanged(entry.version))
    }
}

/// The action of "another thread", and the number of interleaving points before it.
type Deed = (usize, Box<dyn FnOnce()>);

thread_local! {
    static DEED: RefCell<Option<Deed>> = const { RefCell::new(None) };
}

/// Runs `operation`, and `deed` at the operation's interleaving point number `at`. The flag is false if there were fewer;
/// `deed` is then dropped.
pub(super) fn meanwhile<R>(
    at: usize,
    deed: impl FnOnce() + 'static,
    operation: impl FnOnce() -> R,
) -> (R, bool) {
    DEED.set(Some((at, Box::new(deed))));
    let result = operation();
    (result, DEED.take().is_none())
}

/// Runs the pending action if its point has come.
pub(super) fn interleaving_point() {
    let due = DEED.with_borrow_mut(|deed| match deed {
        Some((0, _)) => deed.take(),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    if let Some((_, deed)) = due {
        deed();
    }
}

/// Runs `work`, which passes no interleaving point.
pub(super) fn undisturbed<R>(work: impl FnOnce() -> R) -> R {
    let deed = DEED.take();
    let result = work();
    DEED.set(deed);
    result
}
