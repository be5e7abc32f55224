//! Tests of the pool of threads. What sessions do is tested under every protocol, in crate `hotrow`.

use super::{SessionOptions, threads};
use crate::Engine;
use crate::testing::Unprotected;
use hotrow_sync::event::Event;
use hotrow_sync::{Arc, Mutex, lock, thread};
use std::time::Duration;

/// Keeps the tests of the process's pool apart.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

#[test]
fn sessions_one_after_the_other_share_threads() {
    let _alone = lock(&ONE_AT_A_TIME);
    let engine = Engine::<Unprotected>::new();
    let mut used = Vec::new();
    for _ in 0..20 {
        let mut session = engine.begin(SessionOptions::default()).unwrap();
        let number = session.run(|_| Ok(thread::number())).unwrap();
        assert_ne!(number, thread::number());
        session.commit().unwrap();
        used.push(number);
        while threads::parked() == 0 {
            thread::yield_now();
        }
    }
    used.dedup();
    assert!(used.len() < 10, "{used:?}");
}

#[test]
fn a_thread_that_is_not_needed_ends() {
    let _alone = lock(&ONE_AT_A_TIME);
    let done = Arc::new(Event::new());
    let count = Arc::new(Mutex::new(0));
    for _ in 0..4 {
        let (done, count) = (done.clone(), count.clone());
        let task = move || {
            *lock(&count) += 1;
            done.notify_all();
        };
        threads::run(Box::new(task)).unwrap();
    }
    // A panic does not end its thread, or the pool.
    threads::run(Box::new(|| std::panic::resume_unwind(Box::new("planned")))).unwrap();
    assert!(done.wait_timeout(Duration::from_secs(60), || *lock(&count) == 4));
    while threads::parked() > 0 {
        thread::sleep(Duration::from_millis(10));
    }
}
