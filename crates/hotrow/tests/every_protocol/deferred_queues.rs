//! Queues: rows that come in at the tail and are taken at the head, by deferred operations and by others, alone and on
//! several threads.

use crate::support;
use crate::support::{for_each_protocol, steps};
use hotrow::operations::Constant;
use hotrow::sync::random::Random;
use hotrow::{
    Abort, Any, Counter, Database, Deferred, Direction, Engine, Error, Misuse, Profile, Protocol, Reason,
    RetryPolicy, TBox, Table, Transaction,
};
use std::ops::ControlFlow;

/// Enough for every run here.
const HISTORY_BYTES_MAX: usize = 1 << 27;
const THREADS: u64 = 5;

/// Queues of jobs by group and number. Numbers of each group ascend, from a row of `next`.
struct Jobs<P: Protocol> {
    next: Table<u64, u64, P>,
    queue: Table<(u64, u64), u64, P>,
    /// By group and number: how often each job was done.
    done: Table<(u64, u64), u64, P>,
    /// The worth of the jobs done, by number modulo 4.
    worth: Table<u64, u64, P>,
}

type Taken = Deferred<Option<(u64, u64)>>;

impl<P: Protocol> Jobs<P> {
    fn new(engine: &Engine<P>, groups: u64) -> Self {
        let next = Database::on(engine).table("next").hash(4).rank(1).create().unwrap();
        let queue = Database::on(engine)
            .table("queue")
            .rank(2)
            .queues(|(group, _): &(u64, u64)| *group)
            .create()
            .unwrap();
        let done = Database::on(engine).table("done").rank(3).create().unwrap();
        let worth = Database::on(engine).table("worth").hash(4).rank(4).create().unwrap();
        for group in 0..groups {
            next.bulk_insert([(group, 0)]).unwrap();
        }
        for number in 0..4 {
            worth.bulk_insert([(number, 0)]).unwrap();
        }
        Self { next, queue, done, worth }
    }

    /// Puts so many jobs into a group, each worth as much as its number. The record of what is done comes with it.
    fn put(&self, tx: &mut Transaction<'_, P>, group: u64, count: u64) -> Result<(), Abort> {
        for _ in 0..count {
            let number = self.next.defer_update(tx, &group, (), |next, ()| {
                *next += 1;
                *next - 1
            })?;
            let number = tx.compute(number, |number| number.expect("groups stay"))?;
            let key = number.map(move |number| (group, number));
            self.done.defer_insert_grouped(tx, group, key, Constant(0))?;
            self.queue.defer_insert_grouped(tx, group, key, number)?;
        }
        Ok(())
    }

    /// The same at once.
    fn put_now(&self, tx: &mut Transaction<'_, P>, group: u64) -> Result<(), Abort> {
        let number = self.next.update_if_present(tx, &group, |next| {
            *next += 1;
            *next - 1
        })?;
        let number = number.expect("groups stay");
        // Results are checked at the end: an attempt that is lost may see two states.
        self.queue.insert_if_absent(tx, (group, number), number)?;
        self.done.insert_if_absent(tx, (group, number), 0)?;
        Ok(())
    }

    fn range(group: u64) -> std::ops::Range<(u64, u64)> {
        (group, 0)..(group + 1, 0)
    }

    /// Takes the first job of a group, and does it.
    fn take(&self, tx: &mut Transaction<'_, P>, group: u64) -> Result<Taken, Abort> {
        let taken = self.queue.defer_take_first(tx, group, Self::range(group))?;
        self.done.defer_update_each(tx, taken, (), (), |(), times, ()| *times += 1)?;
        let at = taken.map(|taken| taken.map(|(_, number)| number % 4));
        let worth = taken.map(|taken| taken.map_or(0, |(_, number)| number));
        let worth = tx.compute(worth, |worth| worth)?;
        self.worth.defer_update_each(tx, at, worth, (), |(), sum, worth| *sum += worth)?;
        Ok(taken)
    }

    /// The same at once, by a deletion of the row that a scan finds or by taking it.
    fn take_now(
        &self,
        tx: &mut Transaction<'_, P>,
        group: u64,
        scans: bool,
    ) -> Result<Option<(u64, u64)>, Abort> {
        let taken = if scans {
            let first = self.queue.collect(tx, Self::range(group), Direction::Ascending, 1)?.pop();
            if let Some((key, _)) = &first {
                self.queue.delete(tx, key)?;
            }
            first.map(|(key, _)| key)
        } else {
            self.queue.take_first(tx, Self::range(group))?
        };
        if let Some((_, number)) = taken {
            self.done.update_if_present(tx, &(group, number), |times| *times += 1)?;
            self.worth.update_if_present(tx, &(number % 4), |sum| *sum += number)?;
        }
        Ok(taken)
    }

    /// The jobs left of each group, in order, after a check that all others were done once and are worth what was booked.
    fn left(&self, engine: &Engine<P>, groups: u64) -> Vec<Vec<u64>> {
        let found = engine.transact(|tx| {
            let mut left = vec![Vec::new(); groups as usize];
            self.queue.scan(tx, .., Direction::Ascending, |(group, number), row| {
                assert_eq!(number, row);
                left[*group as usize].push(*number);
                ControlFlow::Continue(())
            })?;
            let (mut worth, mut booked) = (0, 0);
            self.done.scan(tx, .., Direction::Ascending, |(group, number), times| {
                assert_eq!(*times, u64::from(!left[*group as usize].contains(number)));
                worth += times * number;
                ControlFlow::Continue(())
            })?;
            for number in 0..4 {
                booked += self.worth.get(tx, &number)?.expect("loaded");
            }
            assert_eq!(worth, booked);
            Ok(left)
        });
        found.unwrap()
    }
}

/// Each producer's jobs and each consumer's: all are taken once, and in order where one consumer takes after the other.
fn assert_each_once(taken: Vec<Vec<(u64, u64)>>, left: &[Vec<u64>], is_fifo: bool) {
    for (group, left) in left.iter().enumerate() {
        let mut all = Vec::new();
        for taken in &taken {
            let mine: Vec<u64> =
                taken.iter().filter(|(of, _)| *of == group as u64).map(|(_, number)| *number).collect();
            assert!(!is_fifo || mine.is_sorted(), "group {group}: {mine:?}");
            all.extend(mine);
        }
        if let (Some(newest), Some(oldest)) = (all.iter().max(), left.first())
            && is_fifo
        {
            assert!(newest < oldest, "group {group}: {newest} was taken, and {oldest} is left");
        }
        all.extend(left);
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..all.len() as u64), "group {group}: {all:?}");
    }
}

#[test]
fn rows_are_taken_in_the_order_of_their_keys_with_own_changes_seen() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let jobs = Jobs::new(&engine, 3);
        let take = |group| engine.transact_deferred(|tx| jobs.take(tx, group));
        assert_eq!(take(0), Ok(None));
        engine.transact(|tx| jobs.put(tx, 0, 3)).unwrap();
        assert_eq!(take(0), Ok(Some((0, 0))));
        assert_eq!(take(1), Ok(None));
        // Two from one group, and what was put in just now.
        let both = engine.transact_deferred(|tx| {
            let first = jobs.take(tx, 0)?;
            let second = jobs.take(tx, 0)?;
            let none = jobs.take(tx, 0)?;
            jobs.put(tx, 1, 2)?;
            let own = jobs.take(tx, 1)?;
            tx.compute((first, second, none, own), |all| all)
        });
        assert_eq!(both, Ok((Some((0, 1)), Some((0, 2)), None, Some((1, 0)))));
        // From several groups, and put in again behind: tame.
        let tame = engine.statistics().count(&Counter::TAME_COMMITS);
        engine.transact(|tx| jobs.put(tx, 2, 1)).unwrap();
        let moved = engine.transact_deferred(|tx| {
            let (one, two) = (jobs.take(tx, 1)?, jobs.take(tx, 2)?);
            jobs.put(tx, 2, 1)?;
            tx.compute((one, two), |both| both)
        });
        assert_eq!(moved, Ok((Some((1, 1)), Some((2, 0)))));
        assert_eq!(
            engine.statistics().count(&Counter::TAME_COMMITS) - tame,
            if crate::support::defers() { 2 } else { 0 }
        );
        // Looked at at once.
        let seen = engine.transact(|tx| {
            let taken = jobs.take(tx, 2)?;
            assert_eq!(jobs.queue.collect(tx, .., Direction::Ascending, 9)?, []);
            assert_eq!(jobs.done.get(tx, &(2, 1))?, Some(1));
            tx.force(taken)
        });
        assert_eq!(seen, Ok(Some((2, 1))));
        assert_eq!(jobs.left(&engine, 3), [[0u64; 0]; 3]);
    });
}

#[test]
fn a_queue_that_is_refused_what_it_cannot_do() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let jobs = Jobs::new(&engine, 1);
        engine.transact(|tx| jobs.put(tx, 0, 1)).unwrap();
        let reader = engine.try_transact_deferred(Profile::READ_ONLY, |tx| jobs.take(tx, 0));
        assert!(matches!(reader, Err(Error::Misuse(Misuse::ReadOnly { .. }))), "{reader:?}");
        let reader = engine.try_transact_deferred(Profile::READ_ONLY, |tx| {
            let next = jobs.next.defer_read(tx, &0, |next| *next)?;
            jobs.worth.defer_update_each(tx, next, (), (), |(), _, ()| ())
        });
        assert!(matches!(reader, Err(Error::Misuse(Misuse::ReadOnly { .. }))), "{reader:?}");
        let hash = Database::on(&engine).table::<u64, u64>("hash").hash(4).create().unwrap();
        let unordered = engine.transact(|tx| hash.defer_take_first(tx, 0, ..).map(|_| ()));
        assert!(matches!(unordered, Err(Error::Misuse(Misuse::Unsupported(_)))), "{unordered:?}");
        let other = support::engine::<P>();
        let stranger = Jobs::new(&other, 1);
        let bodies: [&dyn Fn(&mut Transaction<'_, P>) -> Result<(), Abort>; 2] =
            [&|tx| stranger.queue.defer_take_first(tx, 0, ..).map(|_| ()), &|tx| {
                {
                    let next = jobs.next.defer_read(tx, &0, |next| *next)?;
                    stranger.worth.defer_update_each(tx, next, (), (), |(), _, ()| ())
                }
                .map(|_| ())
            }];
        for body in bodies {
            let foreign = engine.transact(body);
            assert!(matches!(foreign, Err(Error::Misuse(Misuse::ForeignObject { .. }))), "{foreign:?}");
        }
        assert_eq!(jobs.left(&engine, 1), [[0]]);
    });
}

#[test]
fn a_row_that_is_forced_to_be_taken_stays_the_first_until_the_commit() {
    for_each_protocol!(2, |P| {
        for number in [0, 1] {
            steps::Interleaving::<P>::new().run(|engine, [mut t1, mut t2]| {
                let queue = Database::on(engine)
                    .table("queue")
                    .queues(|(group, _): &(u64, u64)| *group)
                    .create()
                    .unwrap();
                let seen = TBox::new(engine, 0u64);
                if number != 0 {
                    queue.bulk_insert([((0, 5), 5)]).unwrap();
                }
                let first = t1.step(|tx| {
                    let taken = queue.defer_take_first(tx, 0, (0, 0)..(1, 0))?;
                    tx.force(taken)
                });
                let inserted = t2.step(|tx| {
                    queue.insert_if_absent(tx, (0, 3), 3)?;
                    seen.set(tx, 1)
                });
                let second = inserted.is_some() && t2.commit();
                let after = t1.step(|tx| {
                    let after = seen.defer_update(tx, (), |seen, ()| *seen)?;
                    tx.force(after)
                });
                let first_committed = t1.commit();
                assert!(
                    !(first_committed && second && after == Some(1)),
                    "{first:?} was before, {after:?} after"
                );
            });
        }
    });
}

/// One job after the other, or two at once: all deferred and in ascending order, so nobody loses a conflict.
#[test]
fn tame_producers_and_consumers_lose_no_conflict() {
    const GROUPS: u64 = 3;
    const ROUNDS: u64 = 150;
    let calm = ["drp", "drp+calm=1", "drp+opaque+calm=1"];
    let always =
        ["drp+tame", "drp+opaque+tame", "drp+exclusive+tame", "deferred-2pl", "deferred-2pl+exclusive"];
    for (name, always_defers) in
        calm.map(|name| (name, false)).into_iter().chain(always.map(|name| (name, true)))
    {
        let engine = Engine::<Any>::named(name, RetryPolicy::default()).unwrap();
        let jobs = Jobs::new(&engine, GROUPS);
        let taken = support::on_threads(&engine, THREADS, |thread, worker| {
            let mut taken = Vec::new();
            for round in 0..ROUNDS {
                let group = (thread + round) % GROUPS;
                if thread % 2 == 0 {
                    worker.transact(|tx| jobs.put(tx, group, 1 + round % 2)).unwrap();
                } else {
                    let both = worker.transact_deferred(|tx| {
                        let one = jobs.take(tx, group)?;
                        let other = jobs.take(tx, (group + 1) % GROUPS)?;
                        tx.compute((one, other), |both| both)
                    });
                    let (one, other) = both.unwrap();
                    taken.extend(one.into_iter().chain(other));
                }
            }
            taken
        });
        let statistics = engine.statistics();
        // Where transactions also run at once, an insertion may meet the new row of one that does.
        let by_new_rows = if always_defers { 0 } else { statistics.aborts_for(Reason::ReadLocked) };
        assert!(statistics.count(&Counter::TAME_ABORTS) <= by_new_rows, "{name}: {statistics:?}");
        if always_defers {
            assert_eq!((statistics.aborts, statistics.rollbacks), (0, 0), "{name}: {statistics:?}");
            assert_eq!(statistics.count(&Counter::TAME_COMMITS), THREADS * ROUNDS, "{name}");
        }
        assert_each_once(taken, &jobs.left(&engine, GROUPS), true);
    }
}

/// Whoever takes or puts, deferred or at once, with failures among them.
#[test]
fn each_job_is_done_once_whoever_takes_it() {
    const GROUPS: u64 = 2;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let jobs = Jobs::new(&engine, GROUPS);
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        let taken = support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(37, thread);
            let mut taken = Vec::new();
            for _ in 0..70 {
                let (group, kind) = (random.below(GROUPS), random.below(12));
                let fails = random.chance(0.1);
                match kind {
                    0..=3 => worker.transact(|tx| jobs.put(tx, group, 1 + kind % 2)).unwrap(),
                    4 | 5 => worker.transact(|tx| jobs.put_now(tx, group)).unwrap(),
                    6 | 7 => {
                        taken.extend(worker.transact(|tx| jobs.take_now(tx, group, kind == 6)).unwrap());
                    }
                    8 => {
                        // Nothing of it happens.
                        let result = worker.transact(|tx| {
                            let taken = jobs.take(tx, group)?;
                            jobs.put(tx, group, 1)?;
                            jobs.worth.defer_update_each(
                                tx,
                                taken.map(|_| Some(0u64)),
                                (),
                                (),
                                move |(), sum, ()| {
                                    *sum += 1;
                                    // No message is printed for a panic that is resumed.
                                    std::panic::resume_unwind(Box::new("as planned"));
                                },
                            )
                        });
                        assert!(matches!(result, Err(Error::Panicked { .. })), "{result:?}");
                    }
                    _ => {
                        let result = worker.transact_deferred(|tx| {
                            let first = jobs.take(tx, group)?;
                            let other = if kind == 9 {
                                // A second one of the same group, or a look at what is left: wild.
                                jobs.take(tx, group)?
                            } else {
                                jobs.take(tx, (group + 1) % GROUPS)?
                            };
                            tx.require(first.map(move |_| !fails))?;
                            tx.compute((first, other), |both| both)
                        });
                        match result {
                            Ok((first, other)) => {
                                assert!(!fails);
                                taken.extend(first.into_iter().chain(other));
                            }
                            Err(error) => assert!(fails && matches!(error, Error::Rollback(_)), "{error}"),
                        }
                    }
                }
            }
            taken
        });
        assert_each_once(taken, &jobs.left(&engine, GROUPS), false);
        steps::judge(&recording.finish());
    });
}

#[test]
fn rows_that_come_in_out_of_order_are_taken_once() {
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let queue =
            Database::on(&engine).table("queue").queues(|(group, _): &(u64, u64)| *group).create().unwrap();
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        let counts = support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(41, thread);
            let mut count = 0i64;
            for _ in 0..80 {
                let (group, number) = (random.below(2), random.below(30));
                let range = (group, 0)..(group + 1, 0);
                let kind = random.below(6);
                let done = worker.transact_deferred(|tx| {
                    let one = tx.known(1u64);
                    let key = one.map(move |_| (group, number));
                    match kind {
                        0 | 1 => queue.defer_insert_grouped(tx, group, key, one),
                        2 => queue.defer_insert(tx, key, one),
                        3 => queue.defer_delete(tx, &(group, number)),
                        _ => {
                            let taken = queue.defer_take_first(tx, group, range.clone())?;
                            tx.compute(taken, |taken| taken.is_some())
                        }
                    }
                });
                count += i64::from(done.unwrap()) * if kind < 3 { 1 } else { -1 };
            }
            count
        });
        let left = engine.transact(|tx| queue.collect(tx, .., Direction::Ascending, 100)).unwrap();
        assert_eq!(counts.iter().sum::<i64>(), left.len() as i64);
        steps::judge(&recording.finish());
    });
}

#[test]
fn an_insertion_knows_of_later_rows_however_they_came_in() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let queue =
            Database::on(&engine).table::<(u64, u64), u64>("queue").queues(|key| key.0).create().unwrap();
        // True if the insertion had to be made again, at once.
        let is_out_of_order = |group, number| {
            let aborts = engine.statistics().aborts;
            let key = move |one: Deferred<u64>| one.map(move |_| (group, number));
            let inserted = engine.transact_deferred(|tx| {
                let one = tx.known(1u64);
                queue.defer_insert_grouped(tx, group, key(one), one)
            });
            assert_eq!(inserted, Ok(true));
            engine.statistics().aborts > aborts
        };
        // The second group has the same tail as the first.
        for group in [1, 1 + 1_024] {
            assert!(!is_out_of_order(group, 1) && !is_out_of_order(group, 2));
            assert_eq!(engine.transact(|tx| queue.insert_if_absent(tx, (group, 100), 1)), Ok(true));
            assert_eq!(
                is_out_of_order(group, 50),
                crate::support::defers(),
                "behind one that was not deferred"
            );
            assert!(!is_out_of_order(group, 101));
            queue.bulk_insert([((group, 200), 1)]).unwrap();
            assert_eq!(is_out_of_order(group, 150), crate::support::defers(), "behind one that was loaded");
            assert!(!is_out_of_order(group, 201) && !is_out_of_order(group, 202));
        }
        assert_eq!(is_out_of_order(1, 199), crate::support::defers(), "behind one of another group");
    });
}

#[test]
fn an_attempt_that_names_another_group_than_the_ranges_still_takes_the_first_row() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let queue =
            Database::on(&engine).table::<(u64, u64), u64>("queue").queues(|key| key.0).create().unwrap();
        queue.bulk_insert([((0, 0), 1)]).unwrap();
        queue.bulk_insert([((0, 1), 1)]).unwrap();
        let taken = engine.transact_deferred(|tx| {
            queue.defer_delete(tx, &(0, 0))?;
            queue.defer_take_first(tx, 7, (0, 0)..(1, 0))
        });
        assert_eq!(taken, Ok(Some((0, 1))));
    });
}
