//! Transactions as futures.

use crate::executor::{Executor, block_on};
use crate::support::{chosen, elsewhere, engine, engine_with, for_each_protocol, panic_of};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{
    BlockedForever, Engine, Error, Misuse, Occ, RetryPolicy, TArray, TBox, TCounter, TPriorityQueue, TQueue,
};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_service_of_a_thousand_waiting_tasks_blocks_no_thread_and_polls_nothing() {
    const TASKS: usize = 1_000;
    let engine = Engine::<Occ>::new();
    let flags = Arc::new(TArray::new(&engine, TASKS, |_| 0u64));
    let served = Arc::new(TCounter::new(&engine, 0));
    let (executor, runs) = (Executor::default(), Arc::new(AtomicU64::new(0)));
    for task in 0..TASKS {
        let (engine, flags, served) = (engine.clone(), flags.clone(), served.clone());
        let runs = runs.clone();
        executor.spawn(async move {
            let body = engine.transact_async(|tx| {
                runs.fetch_add(1, Ordering::Relaxed);
                if flags.get(tx, task)? == 0 {
                    return tx.retry();
                }
                served.add(tx, 1)
            });
            body.await.unwrap();
        });
    }
    thread::scope(|scope| {
        let running = scope.spawn(|| executor.run(2));
        while engine.statistics().waits < TASKS as u64 {
            thread::yield_now();
        }
        // Both threads are idle: nothing is polled, and no body runs.
        let (polls, bodies) = (executor.polls(), runs.load(Ordering::Relaxed));
        thread::sleep(Duration::from_millis(50));
        assert!(executor.polls() - polls <= 2, "polls in progress when they were counted");
        assert_eq!(runs.load(Ordering::Relaxed), bodies);
        assert_eq!(bodies, 2 * TASKS as u64, "the first run, and the one that watches");
        for task in 0..TASKS {
            engine.transact(|tx| flags.set(tx, task, 1)).unwrap();
        }
        running.join().unwrap();
    });
    assert_eq!(engine.transact(|tx| served.get(tx)), Ok(TASKS as i64));
    // A task may have lost to another one over the counter, but no commit has woken one that it does not concern.
    assert_eq!(engine.statistics().woken_in_vain, 0);
}

#[test]
fn each_new_element_wakes_one_of_a_thousand_tasks() {
    for_each_protocol!(2, |P| {
        // The scans for one that needs the change add up in a build without optimization.
        let tasks = if chosen() == "occ" { 1_000 } else { 60 };
        let engine = engine::<P>();
        let queue = Arc::new(TQueue::new(&engine));
        let urgent = Arc::new(TPriorityQueue::new(&engine));
        let permits = Arc::new(TCounter::new(&engine, 0));
        for kind in 0..3 {
            let executor = Executor::default();
            for _ in 0..tasks {
                let (engine, queue) = (engine.clone(), queue.clone());
                let (urgent, permits) = (urgent.clone(), permits.clone());
                executor.spawn(async move {
                    let take = engine.transact_async(|tx| {
                        let is_taken = match kind {
                            0 => queue.pop(tx)?.is_some(),
                            1 => urgent.pop(tx)?.is_some(),
                            _ if permits.is_at_least(tx, 1)? => {
                                permits.add(tx, -1)?;
                                true
                            }
                            _ => false,
                        };
                        if is_taken { Ok(()) } else { tx.retry() }
                    });
                    take.await.unwrap();
                });
            }
            executor.work_off();
            for number in 0..tasks {
                let put = engine.transact(|tx| match kind {
                    0 => queue.push(tx, number),
                    1 => urgent.push(tx, number),
                    _ => permits.add(tx, 1),
                });
                put.unwrap();
                executor.work_off();
            }
            assert!(executor.has_ended());
            assert_eq!(executor.polls(), 2 * tasks, "once to wait, and once to take");
        }
        assert_eq!(engine.statistics().woken_in_vain, 0);
    });
}

#[test]
fn a_task_that_is_dropped_after_it_was_woken_wakes_another() {
    for_each_protocol!(2, |P| {
        let engine = engine::<P>();
        let queue = TQueue::new(&engine);
        let take = || {
            engine.transact_async(|tx| match queue.pop(tx)? {
                None => tx.retry(),
                Some(number) => Ok(number),
            })
        };
        let woken = |waker: &Arc<Counting>| waker.0.load(Ordering::Acquire);
        let mut tasks: Vec<_> = (0..4).map(|_| (Box::new(take()), Arc::new(Counting::default()))).collect();
        for (task, waker) in &mut tasks {
            let waker = Waker::from(waker.clone());
            assert!(pin!(task).poll(&mut Context::from_waker(&waker)).is_pending());
        }
        engine.transact(|tx| queue.push(tx, 7)).unwrap();
        assert_eq!(tasks.iter().map(|(_, waker)| woken(waker)).collect::<Vec<_>>(), [1, 0, 0, 0]);
        for dropped in 0..3 {
            drop(tasks.remove(0));
            let expected: Vec<_> = (dropped + 1..4).map(|task| u64::from(task == dropped + 1)).collect();
            assert_eq!(tasks.iter().map(|(_, waker)| woken(waker)).collect::<Vec<_>>(), expected);
        }
        assert_eq!(poll_once(&mut tasks[0].0), Poll::Ready(Ok(7)));
    });
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counting(AtomicU64);

impl Wake for Counting {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn tasks_pass_each_element_of_a_bounded_buffer_on_once() {
    const EACH: u64 = 200;
    for_each_protocol!(8, |P| {
        let engine = engine::<P>();
        let (buffer, free) = (Arc::new(TQueue::new(&engine)), Arc::new(TCounter::new(&engine, 3)));
        let (executor, taken) = (Executor::default(), Arc::new(Mutex::new(Vec::new())));
        for producer in 0..2 {
            let (engine, buffer, free) = (engine.clone(), buffer.clone(), free.clone());
            executor.spawn(async move {
                for number in 0..EACH {
                    let put = engine.transact_async(|tx| {
                        if !free.is_at_least(tx, 1)? {
                            return tx.retry();
                        }
                        free.add(tx, -1)?;
                        buffer.push(tx, producer * EACH + number)
                    });
                    put.await.unwrap();
                }
            });
        }
        for _ in 0..4 {
            let (engine, buffer, free) = (engine.clone(), buffer.clone(), free.clone());
            let taken = taken.clone();
            executor.spawn(async move {
                for _ in 0..EACH / 2 {
                    let take = engine.transact_async(|tx| match buffer.pop(tx)? {
                        None => tx.retry(),
                        Some(number) => free.add(tx, 1).map(|()| number),
                    });
                    let number = take.await.unwrap();
                    lock(&taken).push(number);
                }
            });
        }
        executor.run(2);
        let mut taken = std::mem::take(&mut *lock(&taken));
        taken.sort_unstable();
        assert_eq!(taken, (0..2 * EACH).collect::<Vec<_>>());
    });
}

#[test]
fn a_future_that_is_dropped_has_had_no_effect_and_leaves_nothing_behind() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        let (flag, number) = (TBox::new(&engine, false), TBox::new(&engine, 0u64));
        let aborted = Arc::new(AtomicU64::new(0));
        let mut waiting = engine.transact_async(|tx| {
            let aborted = aborted.clone();
            tx.on_abort(move || {
                aborted.fetch_add(1, Ordering::Relaxed);
            });
            number.update(tx, |number| *number += 1)?;
            if flag.get(tx)? { Ok(()) } else { tx.retry() }
        });
        for _ in 0..3 {
            assert!(poll_once(&mut waiting).is_pending());
        }
        assert_eq!(engine.statistics().waits, 1, "nothing has changed, so its body has not run again");
        // It holds nothing, and may go to another thread.
        elsewhere(|| engine.transact(|tx| number.set(tx, 10)).unwrap());
        assert!(elsewhere(|| poll_once(&mut waiting)).is_pending());
        assert_eq!(aborted.load(Ordering::Relaxed), 0);
        drop(waiting);
        assert_eq!(aborted.load(Ordering::Relaxed), 1);
        assert!(format!("{:?}", engine.watched_nodes()).contains("watchers: 0"));
        engine.transact(|tx| flag.set(tx, true)).unwrap();
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(10));
        // One that was never polled.
        drop(engine.transact_async(|tx| number.set(tx, 11)));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(10));
    });
}

#[test]
fn a_poll_ends_though_the_lock_that_it_waits_for_stays_taken() {
    for_each_protocol!(3, |P| {
        let engine = engine::<P>();
        if crate::support::defers() {
            // A place in line cannot be given back.
            return;
        }
        let number = TBox::new(&engine, 0u64);
        let mut worker = engine.worker().unwrap();
        let mut holder = worker.begin();
        number.update(&mut holder, |number| *number += 1).unwrap();
        let mut task = engine.transact_async(|tx| number.update(tx, |number| *number += 10));
        // A wait without a bound would never end, as the holder ends after it. (No time is measured: a thread that waits gives its
        // processor away to whatever else the machine has to do.)
        let polls =
            elsewhere(|| (1..=5).find(|_| poll_once(&mut task).is_ready()).map_or(5, |pending| pending - 1));
        assert!(engine.statistics().aborts >= polls, "each of these polls has lost an attempt");
        let _ = holder.commit();
    });
}

#[test]
fn errors_of_a_future_are_those_of_a_call() {
    for_each_protocol!(2, |P| {
        let engine = engine_with::<P>(RetryPolicy::default());
        let number = TBox::new(&engine, 0u64);
        assert_eq!(block_on(engine.transact_async(|tx| number.get(tx))), Ok(0));
        let refused = block_on(engine.transact_async(|tx| tx.ensure(false, "refused")));
        assert_eq!(refused.unwrap_err().to_string(), "rolled back: refused");
        let nothing = block_on(engine.transact_async(|tx| tx.retry::<()>()));
        assert_eq!(nothing, Err(Error::BlockedForever(BlockedForever::NothingRead)));
        let message =
            panic_of(|| block_on(engine.transact_async(|_| -> Result<(), _> { panic!("planned") })));
        assert_eq!(message, "planned");
        let nested = engine.transact(|_| Ok(block_on(engine.transact_async(|tx| number.get(tx)))));
        assert_eq!(nested.unwrap(), Err(Error::Misuse(Misuse::Nested)));
        let mut late = engine.transact_async(|tx| {
            number.get(tx)?;
            tx.retry_for::<()>(Duration::from_millis(1))
        });
        assert!(poll_once(&mut late).is_pending());
        thread::sleep(Duration::from_millis(5));
        assert!(matches!(poll_once(&mut late), Poll::Ready(Err(Error::RetryTimeout { .. }))));
        // Polled again.
        assert!(panic_of(|| poll_once(&mut late)).contains("after it had ended"));
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(0));
    });
}
