//! Sessions on the thread that has begun them.

use crate::support::{self, Refused, elsewhere, for_each_concurrent_protocol, for_each_protocol};
use hotrow::sync::thread;
use hotrow::{
    CancelCause, Engine, Error, LocalSession, Misuse, Profile, Protocol, RetryPolicy, TArray, TCounter,
};
use std::time::Duration;

fn begin<P: Protocol>(engine: &Engine<P>) -> LocalSession<P> {
    engine.begin_here("local", Profile::UNKNOWN).unwrap()
}

/// The rows as a session of its own sees them: `none` admits no other worker.
fn committed<P: Protocol>(engine: &Engine<P>, rows: &TArray<i64, P>) -> Vec<i64> {
    let mut session = begin(engine);
    let seen = session.run(|tx| (0..3).map(|row| rows.get(tx, row)).collect()).unwrap();
    session.commit().unwrap();
    seen
}

#[test]
fn statements_build_on_each_other_and_one_that_fails_is_undone_alone() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (rows, counter) = (TArray::new(&engine, 3, |_| 0i64), TCounter::new(&engine, 0));
        let mut session = begin(&engine);
        session.run(|tx| rows.update(tx, 0, |row| *row += 1)).unwrap();
        session.run(|tx| counter.add(tx, 3)).unwrap();
        let own = session.try_run(|tx| {
            rows.set(tx, 1, 100)?;
            Err::<(), _>(Refused::SoldOut)
        });
        assert_eq!(own, Err(Error::Rollback(Refused::SoldOut)));
        let mark = session.savepoint().unwrap();
        session.run(|tx| rows.set(tx, 2, 5)).unwrap();
        session.roll_back_to(mark).unwrap();
        session.run(|tx| rows.update(tx, 2, |row| *row += 7)).unwrap();
        session.release(mark).unwrap();
        assert_eq!(session.release(mark), Err(Error::Misuse(Misuse::UnknownMark)));
        assert_eq!(
            session.run(|tx| Ok((rows.get(tx, 0)?, rows.get(tx, 2)?, counter.get(tx)?))),
            Ok((1, 7, 3))
        );
        session.commit().unwrap();
        assert_eq!(committed(&engine, &rows), [1, 0, 7]);
        // One that is dropped, or rolled back, leaves nothing.
        let mut dropped = begin(&engine);
        dropped.run(|tx| rows.set(tx, 0, 9)).unwrap();
        drop(dropped);
        let mut rolled_back = begin(&engine);
        rolled_back.run(|tx| rows.set(tx, 0, 9)).unwrap();
        rolled_back.roll_back();
        assert_eq!(committed(&engine, &rows), [1, 0, 7]);
    });
}

#[test]
fn its_thread_is_inside_a_transaction_until_it_ends() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut session = begin(&engine);
        session.run(|tx| rows.get(tx, 0)).unwrap();
        assert_eq!(engine.transact(|tx| rows.get(tx, 0)), Err(Error::Misuse(Misuse::Nested)));
        assert!(matches!(engine.begin_here("second", Profile::UNKNOWN), Err(Error::Misuse(Misuse::Nested))));
        // The canceller works from anywhere; it is heard at the next call.
        let canceller = session.canceller();
        elsewhere(|| canceller.cancel());
        let ended = session.run(|tx| rows.set(tx, 0, 1));
        assert!(
            matches!(&ended, Err(Error::Cancelled(it)) if it.cause == CancelCause::Requested),
            "{ended:?}"
        );
        assert!(!session.is_open());
        assert_eq!(session.run(|tx| rows.set(tx, 0, 1)), ended);
        // It holds nothing any more, the thread's mark included, though it is not dropped yet.
        assert_eq!(engine.transact(|tx| rows.get(tx, 0)), Ok(0));
        assert_eq!(session.commit(), ended);
    });
}

#[test]
fn a_panic_ends_it_and_is_passed_on() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let mut session = begin(&engine);
        let message = support::panic_of(|| {
            session.run(|tx| {
                rows.set(tx, 1, 1)?;
                if rows.get(tx, 1)? == 1 {
                    std::panic::resume_unwind(Box::new(String::from("planned")));
                }
                Ok(())
            })
        });
        assert_eq!(message, "planned");
        let after = || Error::Panicked { message: String::from("planned") };
        assert!(!session.is_open());
        assert_eq!(session.run(|tx| rows.get(tx, 0)), Err(after()));
        assert_eq!(session.commit(), Err(after()));
        assert_eq!(committed(&engine, &rows), [0, 0, 0]);
    });
}

#[test]
fn of_two_that_change_the_same_rows_no_change_is_lost() {
    for_each_concurrent_protocol!(2, |P| {
        let deadline = Some(Duration::from_millis(5));
        let engine: Engine<P> = support::engine_with(RetryPolicy { deadline, ..RetryPolicy::default() });
        let rows = TArray::new(&engine, 3, |_| 0i64);
        let add = || {
            let mut commits = 0;
            for _ in 0..50 {
                let mut session = begin(&engine);
                let added =
                    (0..2).try_for_each(|row| session.run(|tx| rows.update(tx, row, |row| *row += 1)));
                if added.and_then(|()| session.commit()).is_ok() {
                    commits += 1;
                }
            }
            commits
        };
        let commits = thread::scope(|scope| {
            let other = scope.spawn(add);
            add() + other.join().unwrap()
        });
        assert!(commits > 0);
        assert_eq!(committed(&engine, &rows), [commits, commits, 0]);
    });
}
