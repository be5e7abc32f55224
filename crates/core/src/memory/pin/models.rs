//! Models of reclamation (docs/memory-model.md, R1, C2), with crossbeam-epoch's own words followed by loom.

use super::*;
use crate::memory::cell::{Boxed, Cell as _, Value};
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::model::{Model, Part, UnsafeCell, step_is_left_out};
use hotrow_sync::thread::{spawn, yield_now};

/// A value that is written when it is made and when it is freed, without atomics, so that a read before the one or
/// after the other is a data race.
struct Row {
    content: UnsafeCell<u64>,
    freed: Arc<AtomicUsize>,
}

// SAFETY: the content is written only by the row's sole owner, if the code under test is right.
unsafe impl Sync for Row {}

impl Row {
    fn new(content: u64, freed: &Arc<AtomicUsize>) -> Self {
        Self { content: UnsafeCell::new(content), freed: freed.clone() }
    }

    fn look(&self) -> u64 {
        // SAFETY: the row has been published and not been freed, if the code under test is right.
        self.content.with(|content| unsafe { *content })
    }
}

impl Clone for Row {
    fn clone(&self) -> Self {
        unreachable!("no model clones a row")
    }
}

impl Value for Row {
    type Cell = Boxed<Self>;
}

impl Drop for Row {
    fn drop(&mut self) {
        // SAFETY: dropped by its only owner, if the code under test is right.
        self.content.with_mut(|content| unsafe { *content = u64::MAX });
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

fn replace(cell: &Boxed<Row>, freed: &Arc<AtomicUsize>) {
    let pin = Pin::new();
    // SAFETY: the models have one writer.
    unsafe { cell.install(Boxed::pend(Row::new(2, freed)), &pin) };
}

/// Collects until one row has been freed. A thread that has been joined may still be leaving the epoch.
fn settle(freed: &AtomicUsize) {
    while freed.load(Ordering::Relaxed) == 0 {
        epoch::pin().flush();
        yield_now();
    }
}

#[test]
fn a_thread_pinned_before_the_load_sees_no_freed_value_and_replaced_values_are_freed() {
    Model::new().preemptions(2).needs(Part::LOADS).needs(Part::UPDATES).needs(Part::STEP).check(|| {
        let freed = Arc::new(AtomicUsize::new(0));
        let cell = Arc::new(Boxed::new(Row::new(1, &freed)));
        let (others, others_freed) = (cell.clone(), freed.clone());
        let writer = spawn(move || {
            replace(&others, &others_freed);
            // Collects as another thread's later pins would.
            (0..COLLECTIONS).for_each(|_| epoch::pin().flush());
        });
        let early = step_is_left_out().then(|| cell.load());
        let pin = Pin::new();
        let snapshot = early.unwrap_or_else(|| cell.load());
        // SAFETY: the epoch was pinned before the load, except where the model shows that it must be.
        let seen = unsafe { Boxed::view(&snapshot, &pin) }.look();
        assert!(seen == 1 || seen == 2);
        drop(pin);
        writer.join().unwrap();
        settle(&freed);
        assert_eq!(freed.load(Ordering::Relaxed), 1);
        drop(cell);
        assert_eq!(freed.load(Ordering::Relaxed), 2);
    });
}
