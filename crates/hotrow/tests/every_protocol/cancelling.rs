//! Transactions that are ended from outside, and deadlines of their own.

use crate::support::{self, elsewhere, for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::atomic::{AtomicU32, Ordering};
use hotrow::sync::thread;
use hotrow::{CancelCause, Canceller, Engine, Error, Profile, Protocol, TArray};
use std::time::Duration;

fn is_cancelled<T, E>(result: &Result<T, Error<E>>) -> bool {
    matches!(result, Err(Error::Cancelled(it)) if it.cause == CancelCause::Requested && it.session.is_empty())
}

/// The end of a transaction of another thread that changes a row which an open one has changed. It asks for a handle that is used once
/// it has begun, and has this deadline.
fn blocked<P: Protocol>(canceller: Option<&Canceller>, deadline: Duration) -> Result<(), Error> {
    let engine: Engine<P> = support::engine();
    let rows = TArray::new(&engine, 3, |_| 0i64);
    let attempts = AtomicU32::new(0);
    let mut holder = engine.begin_here("holder", Profile::UNKNOWN).unwrap();
    holder.run(|tx| rows.update(tx, 0, |row| *row += 1)).unwrap();
    let ended = thread::scope(|scope| {
        let blocked = scope.spawn(|| {
            engine.transact(|tx| {
                if let Some(canceller) = canceller {
                    tx.cancelled_by(canceller)?;
                }
                tx.set_deadline(deadline);
                attempts.fetch_add(1, Ordering::SeqCst);
                rows.update(tx, 0, |row| *row += 10)
            })
        });
        while attempts.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        if let Some(canceller) = canceller {
            thread::sleep(Duration::from_millis(2));
            canceller.cancel();
        }
        blocked.join().unwrap()
    });
    // The one that was blocked holds nothing any more; the other one may have lost against it.
    let _ = holder.commit();
    let total = engine.transact(|tx| rows.get(tx, 0)).unwrap();
    assert_eq!(total >= 10, ended.is_ok(), "{total} after {ended:?}");
    // The deadline was that transaction's alone.
    assert!(engine.transact(|tx| rows.update(tx, 0, |row| *row += 1)).is_ok());
    ended
}

#[test]
fn one_that_waits_for_a_lock_is_cancelled() {
    static CANCELLED: AtomicU32 = AtomicU32::new(0);
    for_each_concurrent_protocol!(2, |P| {
        let canceller = Canceller::new();
        // The deadline is there so that a wait that does not hear fails instead of lasting for ever.
        let ended = blocked::<P>(Some(&canceller), Duration::from_secs(60));
        assert!(ended.is_ok() || is_cancelled(&ended), "{ended:?}");
        CANCELLED.fetch_add(u32::from(is_cancelled(&ended)), Ordering::SeqCst);
        assert!(canceller.is_cancelled());
    });
    // Those that wait, at least: `no-wait`, `wait-die`, `2pl-mcs`, `plor` with early locks, `steal`.
    assert!(CANCELLED.load(Ordering::SeqCst) >= 4, "{CANCELLED:?}");
}

#[test]
fn one_that_waits_for_a_lock_gives_up_at_its_own_deadline() {
    static LATE: AtomicU32 = AtomicU32::new(0);
    for_each_concurrent_protocol!(2, |P| {
        let ended = blocked::<P>(None, Duration::from_millis(3));
        assert!(matches!(ended, Ok(()) | Err(Error::Timeout(_))), "{ended:?}");
        LATE.fetch_add(u32::from(ended.is_err()), Ordering::SeqCst);
    });
    assert!(LATE.load(Ordering::SeqCst) >= 4, "{LATE:?}");
}

#[test]
fn a_handle_that_was_used_ends_all_that_ask_for_it_and_no_others() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let canceller = Canceller::new();
        let add = |canceller: Option<&Canceller>| {
            engine.transact(|tx| {
                rows.update(tx, 0, |row| *row += 1)?;
                canceller.map_or(Ok(()), |canceller| tx.cancelled_by(canceller))
            })
        };
        assert_eq!(add(Some(&canceller)), Ok(()));
        // It knows an attempt that has ended.
        elsewhere(|| canceller.cancel());
        assert_eq!(add(None), Ok(()));
        assert!(is_cancelled(&add(Some(&canceller))));
        assert_eq!(add(None), Ok(()));
        assert_eq!(engine.transact(|tx| rows.get(tx, 0)), Ok(3));
    });
}

#[test]
fn a_body_that_runs_hears_at_its_next_operation() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let canceller = Canceller::new();
        let ended = engine.transact(|tx| {
            tx.cancelled_by(&canceller)?;
            rows.set(tx, 0, 1)?;
            elsewhere(|| canceller.cancel());
            let heard = rows.get(tx, 1);
            assert!(heard.is_err());
            heard
        });
        assert!(is_cancelled(&ended), "{ended:?}");
        assert_eq!(engine.transact(|tx| rows.get(tx, 0)), Ok(0));
    });
}
