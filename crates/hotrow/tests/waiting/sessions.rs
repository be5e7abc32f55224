//! Sessions of asynchronous code: their statements are futures, and may be dropped.

use crate::executor::{Executor, block_on};
use crate::support::{engine, for_each_protocol, panic_of};
use hotrow::protocols::{Any, Occ};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{
    Abort, AsyncSession, CancelCause, Cancelled, Engine, Error, Misuse, Protocol, RetryPolicy,
    SessionOptions, TArray, TBox,
};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn options(name: &str) -> SessionOptions {
    SessionOptions::named(name)
}

/// A statement that begins when it is polled, says so, and ends when it is let go.
#[derive(Default)]
struct Gate {
    has_begun: AtomicU64,
    may_end: AtomicU64,
}

impl Gate {
    fn pass(&self) {
        self.has_begun.store(1, Ordering::Release);
        while self.may_end.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
    }

    fn wait_until_begun(&self) {
        while self.has_begun.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
    }

    fn open(&self) {
        self.may_end.store(1, Ordering::Release);
    }
}

#[test]
fn statements_marks_and_the_commit_are_futures_under_every_protocol() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let rows = Arc::new(TArray::new(&engine, 2, |_| 0u64));
        let task = async {
            let mut session = engine.begin_async(options("transfer")).await?;
            let (first, second) = (rows.clone(), rows.clone());
            session.run(move |tx| first.set(tx, 0, 5)).await?;
            let mark = session.savepoint().await?;
            session.run(move |tx| second.set(tx, 1, 9)).await?;
            session.roll_back_to(mark).await?;
            session.release(mark).await?;
            assert_eq!(session.release(mark).await, Err(Misuse::UnknownMark.into()));
            let both = rows.clone();
            let seen = session.run(move |tx| Ok([both.get(tx, 0)?, both.get(tx, 1)?])).await?;
            session.commit().await?;
            Ok::<_, Error>(seen)
        };
        assert_eq!(block_on(task), Ok([5, 0]));
        assert_eq!(engine.transact(|tx| Ok([rows.get(tx, 0)?, rows.get(tx, 1)?])), Ok([5, 0]));
        // Dropped, and rolled back.
        let task = async {
            let mut session = engine.begin_async(options("dropped")).await?;
            let row = rows.clone();
            session.run(move |tx| row.set(tx, 0, 7)).await?;
            let mut another = engine.begin_async(options("rolled back")).await?;
            drop(session);
            let row = rows.clone();
            another.run(move |tx| row.set(tx, 1, 7)).await?;
            another.roll_back().await;
            Ok::<_, Error>(())
        };
        // Under `serial` the second one waits for the first.
        if crate::support::is_concurrent() {
            assert_eq!(block_on(task), Ok(()));
        }
        assert_eq!(engine.transact(|tx| Ok([rows.get(tx, 0)?, rows.get(tx, 1)?])), Ok([5, 0]));
    });
}

/// Two sessions want one row, on an executor of one thread: it would never come to the commit that the second one waits for, if
/// that blocked the thread.
#[test]
fn a_statement_that_waits_for_a_lock_blocks_no_executor() {
    let engine = Engine::<Any>::named("steal", RetryPolicy::default()).unwrap();
    let row = Arc::new(TBox::new(&engine, 0u64));
    let (executor, order) = (Executor::default(), Arc::new(Mutex::new(Vec::new())));
    for number in 0..8 {
        let (engine, row, order) = (engine.clone(), row.clone(), order.clone());
        let other = executor.clone();
        executor.spawn(async move {
            let mut session = engine.begin_async(options("adder")).await.unwrap();
            session.run(move |tx| row.update(tx, |row| *row += 1)).await.unwrap();
            // Others run, while the row is locked.
            let ran = Arc::new(AtomicU64::new(0));
            let runs = ran.clone();
            other.spawn(async move { runs.store(1, Ordering::Release) });
            std::future::poll_fn(|context| match ran.load(Ordering::Acquire) {
                0 => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                _ => Poll::Ready(()),
            })
            .await;
            session.commit().await.unwrap();
            lock(&order).push(number);
        });
    }
    executor.run(1);
    assert_eq!(lock(&order).len(), 8);
    assert_eq!(engine.transact(|tx| row.get(tx)), Ok(8));
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn begun<P: Protocol>(engine: &Engine<P>) -> AsyncSession<P> {
    block_on(engine.begin_async(options("dropped"))).unwrap()
}

#[test]
fn a_statement_whose_future_is_dropped_has_no_effect() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let row = Arc::new(TArray::new(&engine, 4, |_| 0u64));
        let mut session = begun(&engine);
        let set = |at: usize, gate: Option<Arc<Gate>>| {
            let row = row.clone();
            move |tx: &mut hotrow::Transaction<'_, P>| -> Result<(), Abort> {
                row.set(tx, at, 1)?;
                if let Some(gate) = gate {
                    gate.pass();
                }
                Ok(())
            }
        };
        // Never polled: never run.
        drop(session.run(set(0, None)));
        // Dropped while it runs. The next call waits for it.
        let gate = Arc::new(Gate::default());
        {
            let mut statement = pin!(session.run(set(1, Some(gate.clone()))));
            assert!(poll_once(statement.as_mut()).is_pending());
            gate.wait_until_begun();
        }
        {
            let mut next = pin!(session.savepoint());
            assert!(poll_once(next.as_mut()).is_pending());
            gate.open();
            block_on(next).unwrap();
        }
        // Dropped when it has run, and before anybody has seen that.
        {
            let gate = Arc::new(Gate::default());
            let mut statement = pin!(session.run(set(2, Some(gate.clone()))));
            assert!(poll_once(statement.as_mut()).is_pending());
            gate.wait_until_begun();
            gate.open();
            thread::sleep(Duration::from_millis(2));
        }
        block_on(session.run(set(3, None))).unwrap();
        let all = row.clone();
        let seen =
            block_on(session.run(move |tx| (0..4).map(|at| all.get(tx, at)).collect::<Result<Vec<_>, _>>()));
        assert_eq!(seen, Ok(vec![0, 0, 0, 1]));
        // The last one is not seen, and the commit undoes it.
        {
            let gate = Arc::new(Gate::default());
            let mut statement = pin!(session.run(set(0, Some(gate.clone()))));
            assert!(poll_once(statement.as_mut()).is_pending());
            gate.open();
        }
        assert_eq!(block_on(session.commit()), Ok(()));
        let seen = engine.transact(|tx| (0..4).map(|at| row.get(tx, at)).collect::<Result<Vec<_>, _>>());
        assert_eq!(seen, Ok(vec![0, 0, 0, 1]));
    });
}

#[test]
fn a_dropped_session_gives_up_its_locks_although_a_statement_waits() {
    let engine = Engine::<Any>::named("steal", RetryPolicy::default()).unwrap();
    let rows = Arc::new(TArray::new(&engine, 2, |_| 0u64));
    let (mut holder, mut waiter) = (begun(&engine), begun(&engine));
    let (first, second) = (rows.clone(), rows.clone());
    block_on(holder.run(move |tx| first.set(tx, 0, 1))).unwrap();
    block_on(waiter.run(move |tx| second.set(tx, 1, 1))).unwrap();
    {
        let row = rows.clone();
        let mut statement = pin!(waiter.run(move |tx| row.set(tx, 0, 2)));
        assert!(poll_once(statement.as_mut()).is_pending());
    }
    drop(waiter);
    // Waits until the lock is given up.
    assert_eq!(engine.transact(|tx| rows.set(tx, 1, 5)), Ok(()));
    assert_eq!(block_on(holder.commit()), Ok(()));
    assert_eq!(engine.transact(|tx| Ok([rows.get(tx, 0)?, rows.get(tx, 1)?])), Ok([1, 5]));
}

#[test]
fn errors_and_panics_of_statements_reach_their_tasks() {
    let policy = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let engine = Engine::<Occ>::with_policy(policy);
    let row = Arc::new(TBox::new(&engine, 0u64));
    let mut session = begun(&engine);
    let set = row.clone();
    let failed = block_on(session.try_run(move |tx| {
        set.set(tx, 1)?;
        Err::<(), _>(Failed::Own)
    }));
    assert_eq!(failed, Err(Error::Rollback(Failed::Own)));
    let get = row.clone();
    assert_eq!(
        block_on(session.run(move |tx| get.get(tx))),
        Ok(0),
        "it goes on, and the statement is undone"
    );
    let message =
        panic_of(|| block_on(session.run(|_| -> Result<(), Abort> { panic!("a statement's own") })));
    assert_eq!(message, "a statement's own");
    assert!(matches!(block_on(session.run(|_| Ok(()))), Err(Error::Panicked { .. })));
    drop(session);

    let mut session = begun(&engine);
    session.canceller().cancel();
    let cancelled = Cancelled { session: String::from("dropped"), cause: CancelCause::Requested };
    assert_eq!(block_on(session.run(|_| Ok(()))), Err(Error::Cancelled(cancelled)));
    assert!(!session.is_open());

    let mut session = begun(&engine);
    let get = row.clone();
    block_on(session.run(move |tx| get.get(tx))).unwrap();
    engine.transact(|tx| row.set(tx, 3)).unwrap();
    let set = row.clone();
    let lost = block_on(async {
        session.run(move |tx| set.set(tx, 9)).await?;
        session.commit().await
    });
    assert!(matches!(lost, Err(Error::Conflict(_))), "{lost:?}");
    let nested = engine.transact(|_| Ok(block_on(engine.begin_async(options("nested"))).map(drop)));
    assert_eq!(nested, Ok(Err(Misuse::Nested.into())));
}

#[derive(Debug, PartialEq, Eq)]
enum Failed {
    Own,
    Aborted,
}

impl From<Abort> for Failed {
    fn from(_: Abort) -> Self {
        Failed::Aborted
    }
}
