//! The longest time that there is, wherever a caller gives one.

use crate::executor::block_on;
use crate::support::{chosen, engine_with, for_each_protocol};
use hotrow::durable::storage::Faulty;
use hotrow::durable::{DurableBuilder, DurableDatabase, LogOptions, Mode};
use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Engine, Protocol, RetryPolicy, SessionOptions, TBox};
use std::time::Duration;

const LONGEST: Duration = Duration::MAX;

fn engine<P: Protocol>() -> Engine<P> {
    engine_with(RetryPolicy { deadline: Some(LONGEST), backoff_max: LONGEST, ..RetryPolicy::default() })
}

#[test]
fn the_longest_deadline_limits_no_wait_for_a_lock_and_the_longest_idle_time_no_session() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let options = || SessionOptions::default().idle_max(LONGEST);
        let mut holder = engine.begin(options()).unwrap();
        holder.run(|tx| number.update(tx, |number| *number += 1)).unwrap();
        let begun = AtomicU64::new(0);
        let (held, called, stated) = thread::scope(|scope| {
            let called = scope.spawn(|| {
                engine.transact(|tx| {
                    begun.store(1, Ordering::Release);
                    number.update(tx, |number| *number += 10)
                })
            });
            while begun.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            // Long enough to be parked at the lock, where the protocol has one; the result does not depend on it.
            thread::sleep(Duration::from_millis(2));
            let held = holder.commit();
            let called = called.join();
            let stated = engine.begin(options()).and_then(|mut session| {
                session.run(|tx| number.update(tx, |number| *number += 100))?;
                session.commit()
            });
            (held, called, stated)
        });
        // Under a protocol that locks nothing before the commit, the session has lost.
        let expected = 10 + 100 + u64::from(held.is_ok());
        assert_eq!((called.unwrap(), stated), (Ok(()), Ok(())));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(expected));
    });
}

#[test]
fn a_wait_for_a_change_may_last_for_the_longest_time() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let flag = TBox::new(&engine, 0u64);
        let (engine, flag) = (&engine, &flag);
        thread::scope(|scope| {
            let wait = |tx: &mut hotrow::Transaction<'_, P>| match flag.get(tx)? {
                0 => tx.retry_for(LONGEST),
                flag => Ok(flag),
            };
            let called = scope.spawn(move || engine.transact(wait));
            let task = scope.spawn(move || block_on(engine.transact_async(wait)));
            while engine.statistics().waits < 2 {
                thread::yield_now();
            }
            engine.transact(|tx| flag.set(tx, 7)).unwrap();
            assert_eq!((called.join().unwrap(), task.join().unwrap()), (Ok(7), Ok(7)));
        });
    });
}

#[test]
fn a_log_may_wait_for_room_and_between_batches_for_the_longest_time() {
    for_each_protocol!(2, |P| {
        let mode = Mode::Async { interval: LONGEST };
        let options = LogOptions { mode, space_wait: LONGEST, ..LogOptions::default() };
        let builder = Database::builder().typed::<P>().variant(chosen());
        let db = builder.log(options).open_in(Arc::new(Faulty::new(3))).unwrap();
        let number = db.durable_box("number", 0u64).unwrap();
        for _ in 0..3 {
            db.transact(|tx| number.update(tx, |number| *number += 1)).unwrap();
        }
        db.close().unwrap();
    });
}
