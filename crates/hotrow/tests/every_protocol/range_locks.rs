//! Locks of ranges, under the protocols that have them: who scans and who inserts wait for each other, and nobody is aborted for it.

use hotrow::protocols::PROTOCOLS;
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{
    Abort, Any, Database, Direction, Engine, Error, Reason, RetryPolicy, Statistics, Table, Transaction,
    Worker,
};
use std::ops::{ControlFlow, RangeInclusive};
use std::time::Duration;

type Tx<'a> = Transaction<'a, Any>;
type Rows = Table<u64, u64, Any>;

/// Rows 0, 10, 20 and so on to 990, in leaves of an ordered index.
fn rows(engine: &Engine<Any>, name: &str) -> Rows {
    let rows = Database::on(engine).table(name).create().unwrap();
    rows.bulk_insert((0..100).map(|number| (number * 10, 1))).unwrap();
    rows
}

fn count(rows: &Rows, tx: &mut Tx<'_>, range: RangeInclusive<u64>) -> Result<u64, Abort> {
    let mut count = 0;
    rows.scan(tx, range, Direction::Ascending, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

/// An engine of each protocol that locks ranges.
pub(crate) fn engines() -> impl Iterator<Item = Engine<Any>> {
    engines_with(RetryPolicy::default())
}

/// Engines whose transactions do not wait: who would have to, is aborted with [`Error::Timeout`].
fn without_waits() -> impl Iterator<Item = Engine<Any>> {
    engines_with(RetryPolicy { deadline: Some(Duration::ZERO), ..RetryPolicy::default() })
}

fn engines_with(policy: RetryPolicy) -> impl Iterator<Item = Engine<Any>> {
    PROTOCOLS.iter().filter(|protocol| protocol.locks_ranges).map(move |protocol| {
        // Shown only if the test fails.
        eprintln!("{}", protocol.name);
        Engine::named(protocol.name, policy).expect("a registered protocol")
    })
}

/// Moments of two threads, one after the other.
#[derive(Default)]
struct Moment(AtomicU64);

impl Moment {
    fn is_here(&self, number: u64) {
        self.0.fetch_max(number, Ordering::AcqRel);
    }

    fn wait_for(&self, number: u64) {
        while self.0.load(Ordering::Acquire) < number {
            thread::yield_now();
        }
    }
}

/// Runs a transaction on each of two workers, of which the second, which is the younger one, begins at the first moment.
/// Returns what they are aborted for.
fn side_by_side(
    engine: &Engine<Any>,
    moment: &Moment,
    first: impl FnMut(&mut Tx<'_>) -> Result<(), Abort> + Send,
    second: impl FnMut(&mut Tx<'_>) -> Result<(), Abort> + Send,
) -> [Statistics; 2] {
    fn run(mut worker: Worker<Any>, body: impl FnMut(&mut Tx<'_>) -> Result<(), Abort>) -> Statistics {
        assert_eq!(worker.transact(body), Ok(()));
        worker.statistics()
    }
    let workers = [engine.worker().unwrap(), engine.worker().unwrap()];
    let [one, two] = workers;
    thread::scope(|scope| {
        let other = scope.spawn(move || {
            moment.wait_for(1);
            run(two, second)
        });
        [run(one, first), other.join().unwrap()]
    })
}

#[test]
fn an_insertion_waits_for_a_scan_and_aborts_nobody() {
    for engine in engines() {
        let (rows, moment) = (rows(&engine, "rows"), Moment::default());
        let mut scanned = Vec::new();
        let statistics = side_by_side(
            &engine,
            &moment,
            |tx| {
                let first = count(&rows, tx, 200..=300)?;
                moment.is_here(1);
                moment.wait_for(2);
                // If the insertion did not wait, it would most likely be through by now.
                (0..1_000).for_each(|_| thread::yield_now());
                scanned.push((first, count(&rows, tx, 200..=300)?));
                Ok(())
            },
            |tx| {
                moment.is_here(2);
                rows.insert_if_absent(tx, 255, 1).map(|inserted| assert!(inserted))
            },
        );
        assert_eq!(statistics.map(|statistics| statistics.aborts), [0, 0]);
        assert_eq!(scanned, [(11, 11)]);
        assert_eq!(engine.transact(|tx| count(&rows, tx, 200..=300)), Ok(12));
    }
}

#[test]
fn a_scan_waits_for_an_insertion_and_looks_again() {
    for engine in engines() {
        let rows = rows(&engine, "rows");
        for direction in [Direction::Ascending, Direction::Descending] {
            let key = if direction == Direction::Ascending { 255 } else { 256 };
            let before = engine.transact(|tx| count(&rows, tx, 0..=1_000)).unwrap();
            let (mut scanned, moment) = (Vec::new(), Moment::default());
            let statistics = side_by_side(
                &engine,
                &moment,
                |tx| {
                    assert!(rows.insert_if_absent(tx, key, 1)?);
                    moment.is_here(1);
                    moment.wait_for(2);
                    (0..1_000).for_each(|_| thread::yield_now());
                    // The leaf is full at some time, and its right half is locked as it was.
                    (0..40)
                        .try_for_each(|number| rows.insert_if_absent(tx, key * 1_000 + number, 1).map(drop))
                },
                |tx| {
                    moment.is_here(2);
                    let mut keys = Vec::new();
                    rows.scan(tx, 0..=1_000, direction, |key, _| {
                        keys.push(*key);
                        ControlFlow::Continue(())
                    })?;
                    scanned.push(keys);
                    Ok(())
                },
            );
            assert_eq!(statistics.map(|statistics| statistics.aborts), [0, 0]);
            let keys = scanned.pop().unwrap();
            assert_eq!(keys.len() as u64, before + 1);
            assert!(keys.is_sorted_by(|a, b| if direction == Direction::Ascending { a < b } else { a > b }));
        }
    }
}

#[test]
fn a_failed_lookup_is_waited_for_and_waits() {
    for hash in [true, false] {
        for engine in without_waits() {
            let table: Rows = if hash {
                Database::on(&engine).table("rows").hash(10).create().unwrap()
            } else {
                Database::on(&engine).table("rows").create().unwrap()
            };
            let (mut one, mut two) = (engine.worker().unwrap(), engine.worker().unwrap());
            let mut looking = one.begin();
            assert_eq!(table.get(&mut looking, &7), Ok(None));
            assert!(matches!(
                two.transact(|tx| table.insert_if_absent(tx, 7, 1)),
                Err(Error::Timeout { .. })
            ));
            assert_eq!(two.statistics().aborts_for(Reason::WriteLocked), two.statistics().aborts);
            looking.commit().unwrap();
            let mut inserting = one.begin();
            assert_eq!(table.insert_if_absent(&mut inserting, 7, 1), Ok(true));
            let report = two.transact(|tx| table.get(tx, &7)).unwrap_err().to_string();
            assert!(report.contains("rows"), "{report}");
            inserting.commit().unwrap();
            assert_eq!(two.transact(|tx| table.get(tx, &7)), Ok(Some(1)));
        }
    }
}

#[test]
fn insertions_into_one_leaf_do_not_wait_for_each_other_and_neither_do_scans() {
    for engine in without_waits() {
        let rows = rows(&engine, "rows");
        let (mut one, mut two) = (engine.worker().unwrap(), engine.worker().unwrap());
        let mut inserting = one.begin();
        assert_eq!(rows.insert_if_absent(&mut inserting, 251, 1), Ok(true));
        // The second of them splits the leaf, and then the first goes on in both halves.
        assert_eq!(
        two.transact(|tx| (0..40).try_for_each(|key| rows.insert_if_absent(tx, 2_520 + key, 1).map(drop))),
        Ok(())
    );
        assert_eq!(rows.insert_if_absent(&mut inserting, 252, 1), Ok(true));
        assert_eq!(rows.insert_if_absent(&mut inserting, 259, 1), Ok(true));
        inserting.commit().unwrap();
        let mut scanning = one.begin();
        assert_eq!(count(&rows, &mut scanning, 200..=300), Ok(14));
        assert_eq!(two.transact(|tx| count(&rows, tx, 200..=300)), Ok(14));
        scanning.commit().unwrap();
        assert_eq!(engine.statistics().aborts, 0);
    }
}

#[test]
fn a_deleter_keeps_the_leaf_until_the_row_has_left_it() {
    for engine in without_waits() {
        let rows = rows(&engine, "rows");
        let (mut one, mut two) = (engine.worker().unwrap(), engine.worker().unwrap());
        let mut deleting = one.begin();
        assert_eq!(rows.delete(&mut deleting, &250), Ok(true));
        // Not for the row: the scan is of others.
        assert!(matches!(two.transact(|tx| count(&rows, tx, 255..=260)), Err(Error::Timeout { .. })));
        deleting.commit().unwrap();
        let mut scanning = two.begin();
        assert_eq!(count(&rows, &mut scanning, 200..=300), Ok(10));
        assert!(matches!(one.transact(|tx| rows.delete(tx, &260)), Err(Error::Timeout { .. })));
        scanning.commit().unwrap();
        assert_eq!(one.transact(|tx| rows.delete(tx, &260)), Ok(true));
    }
}

#[test]
fn the_only_one_in_a_leaf_scans_and_changes_it_in_any_order() {
    for engine in without_waits() {
        let rows = rows(&engine, "rows");
        let mut worker = engine.worker().unwrap();
        let body = |tx: &mut Tx<'_>| {
            assert_eq!(count(&rows, tx, 200..=300)?, 11);
            assert!(rows.insert_if_absent(tx, 255, 1)?);
            assert!(rows.delete(tx, &260)?);
            assert_eq!(count(&rows, tx, 200..=300)?, 11);
            // Splits it, while all of it is observed.
            (261..269)
                .chain(271..279)
                .chain(281..289)
                .try_for_each(|key| rows.insert_if_absent(tx, key, 1).map(drop))?;
            assert_eq!(count(&rows, tx, 200..=300)?, 35);
            assert!(rows.insert_if_absent(tx, 995, 1)?);
            count(&rows, tx, 980..=1_000).map(|count| assert_eq!(count, 3))
        };
        assert_eq!(worker.transact(body), Ok(()));
        assert_eq!(worker.statistics().aborts, 0);
        // Nothing is held any more.
        assert_eq!(engine.transact(|tx| rows.insert_if_absent(tx, 256, 1)), Ok(true));
        assert_eq!(engine.transact(|tx| count(&rows, tx, 0..=1_000)), Ok(126));
    }
}

#[test]
fn of_two_that_have_scanned_what_the_other_one_changes_the_younger_one_is_aborted() {
    // The same leaf, too: each wants to be alone in it.
    for [first, second] in [[0, 1], [0, 0]] {
        for engine in engines() {
            let moment = Moment::default();
            let tables = [rows(&engine, "left"), rows(&engine, "right")];
            let body = |own: usize, others: usize, key: u64, number: u64| {
                let (tables, moment) = (&tables, &moment);
                move |tx: &mut Tx<'_>| {
                    count(&tables[own], tx, 200..=300)?;
                    moment.is_here(number);
                    moment.wait_for(2);
                    tables[others].insert_if_absent(tx, key, 1).map(drop)
                }
            };
            let key = 251 + 2 * second as u64;
            let statistics =
                side_by_side(&engine, &moment, body(first, second, key, 1), body(second, first, key + 1, 2));
            let [older, younger] = statistics;
            assert_eq!(older.aborts, 0);
            // More than once if it is back before the other one has its place in the word.
            assert!(younger.aborts > 0);
            assert_eq!(younger.aborts, younger.aborts_for(Reason::Deadlock));
        }
    }
}

#[test]
fn of_an_insertion_and_a_scan_that_wait_for_each_other_the_younger_one_is_aborted_once() {
    for engine in engines() {
        let (left, right) = (rows(&engine, "left"), rows(&engine, "right"));
        let moment = Moment::default();
        let [older, younger] = side_by_side(
            &engine,
            &moment,
            |tx| {
                count(&left, tx, 200..=300)?;
                moment.is_here(1);
                moment.wait_for(2);
                count(&right, tx, 200..=300).map(drop)
            },
            |tx| {
                assert!(right.insert_if_absent(tx, 255, 1)?);
                moment.is_here(2);
                left.insert_if_absent(tx, 255, 1).map(drop)
            },
        );
        assert_eq!(older.aborts, 0);
        assert_eq!((younger.aborts, younger.aborts_for(Reason::Deadlock)), (1, 1));
    }
}

#[test]
fn a_panic_in_the_midst_of_a_change_leaves_nothing_locked() {
    for engine in without_waits() {
        let rows = rows(&engine, "rows");
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            engine.transact(|tx| -> Result<(), Abort> {
                count(&rows, tx, 200..=300)?;
                rows.insert_if_absent(tx, 255, 1)?;
                panic!("in the body")
            })
        }));
        assert!(panics.is_err());
        assert_eq!(engine.transact(|tx| rows.insert_if_absent(tx, 255, 1)), Ok(true));
        assert_eq!(engine.transact(|tx| count(&rows, tx, 200..=300)), Ok(12));
    }
}

/// Scans beside insertions and deletions of the same leaves by two threads each.
#[test]
fn scans_beside_insertions_and_deletions_are_never_aborted_for_a_change_of_structure() {
    for engine in engines() {
        let rows = rows(&engine, "rows");
        let run = |mut worker: Worker<Any>, number: u64| {
            for round in 0..300 {
                let key = 200 + (round * 7 + number * 3) % 100;
                let ran = match number {
                    0 | 1 => worker.transact(|tx| count(&rows, tx, key - 50..=key + 50).map(drop)),
                    _ if round % 3 == 0 => worker.transact(|tx| rows.delete(tx, &key).map(drop)),
                    _ => worker.transact(|tx| rows.insert_if_absent(tx, key, round).map(drop)),
                };
                assert_eq!(ran, Ok(()));
            }
        };
        let crew: Vec<_> = (0..4).map(|number| (engine.worker().unwrap(), number)).collect();
        thread::scope(|scope| {
            crew.into_iter().for_each(|(worker, number)| _ = scope.spawn(move || run(worker, number)));
        });
        let statistics = engine.statistics();
        assert_eq!(statistics.aborts_for(Reason::StructureChanged), 0, "{statistics:?}");
    }
}
