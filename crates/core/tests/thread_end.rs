//! A thread that ends while much waits to be freed. A process of its own: nobody else is to be pinned.

use hotrow_core::{EpochBox, Pin};
use hotrow_sync::atomic::{AtomicUsize, Ordering};
use hotrow_sync::event::Event;
use hotrow_sync::thread;

/// As a table with a secondary index, or a row that holds a table, which pin when they are dropped.
struct Pins<'f>(&'f AtomicUsize);

impl Drop for Pins<'_> {
    fn drop(&mut self) {
        drop(Pin::new());
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_thread_that_ends_frees_what_waits_one_by_one() {
    const VALUES: usize = 10_000;
    static FREED: AtomicUsize = AtomicUsize::new(0);
    let (step, event) = (AtomicUsize::new(0), Event::new());
    let reach = |at: usize| {
        step.store(at, Ordering::Release);
        event.notify_all();
    };
    let wait = |at: usize| event.wait_until(|| step.load(Ordering::Acquire) >= at);
    thread::scope(|scope| {
        let slow = scope.spawn(|| {
            let pin = Pin::new();
            reach(1);
            wait(2);
            drop(pin);
        });
        wait(1);
        for _ in 0..VALUES {
            drop(EpochBox::bulky(Pins(&FREED)));
        }
        assert_eq!(FREED.load(Ordering::Relaxed), 0, "somebody is pinned");
        reach(2);
        slow.join().unwrap();
        // crossbeam-epoch collects at every 128th pin of a thread, and its end is one more. Joined, because the end
        // of the scope does not wait for that of the thread.
        scope.spawn(|| (0..128).for_each(|_| drop(Pin::new()))).join().unwrap();
    });
    assert_eq!(FREED.load(Ordering::Relaxed), VALUES);
}
