//! Reads on which a transaction does not depend, of every datatype: at read committed, and in a part that is untracked. Each call
//! returns one committed fact, none aborts because something has changed, and none goes with a write.

use crate::models::boosted::Papaya;
use crate::support::{
    self, elsewhere, for_each_concurrent_protocol, for_each_protocol, on_threads, overtake,
};
use hotrow::sync::atomic::{AtomicU64, Ordering};
use hotrow::{
    Abort, Column, Database, Direction, Engine, Error, Isolation, Misuse, Profile, Protocol, SecondaryIndex,
    SessionOptions, TArray, TBoostedMap, TBox, TCounter, TCounters, THashMap, TList, TListSet, TOrderedMap,
    TPriorityQueue, TQueue, TTreeMap, TVector, TWords, Table, Transaction, UniqueIndex, Value, column_of,
};
use std::fmt::Debug;
use std::ops::ControlFlow;

const READ_COMMITTED: Profile = Profile { isolation: Isolation::ReadCommitted, ..Profile::UNKNOWN };

/// A row with main columns and a group.
#[derive(Debug, Clone, Copy, PartialEq, Value)]
#[value(inline)]
struct Halves {
    main: u64,
    #[value(group = "apart")]
    apart: u64,
}

/// One object of each kind, with something in it.
struct Everything<P: Protocol> {
    boxed: TBox<u64, P>,
    text: TBox<String, P>,
    array: TArray<u64, P>,
    counter: TCounter<P>,
    counters: TCounters<P>,
    vector: TVector<u64, P>,
    list: TList<u64, P>,
    set: TListSet<u64, P>,
    queue: TQueue<u64, P>,
    first: TPriorityQueue<u64, P>,
    tree: TTreeMap<u64, u64, P>,
    boosted: TBoostedMap<u64, u64, Papaya, P>,
    words: TWords<P>,
    word: u64,
    hashed: THashMap<u64, u64, P>,
    sorted: TOrderedMap<u64, u64, P>,
    hash: Table<u64, u64, P>,
    ordered: Table<u64, u64, P>,
    cached: Table<u64, u64, P>,
    queued: Table<(u64, u64), u64, P>,
    halves: Table<u64, Halves, P>,
    indexed: Table<u64, u64, P>,
    by_value: UniqueIndex<u64, u64, u64, P>,
    by_parity: SecondaryIndex<u64, u64, u64, P>,
}

impl<P: Protocol> Everything<P> {
    fn new(engine: &Engine<P>) -> Self {
        let database = Database::on(engine);
        let table = |name: &str| database.table::<u64, u64>(name);
        let mut indexed = table("indexed");
        let by_value = indexed.unique("value", |_, row| *row);
        let by_parity = indexed.secondary("parity", |_, row| *row % 2);
        let words = TWords::new(engine);
        let word = words.allocate(1);
        let everything = Self {
            boxed: TBox::new(engine, 5),
            text: TBox::new(engine, "five".to_owned()),
            array: TArray::new(engine, 2, |_| 5),
            counter: TCounter::new(engine, 5),
            counters: TCounters::new(engine, [5, 6]),
            vector: TVector::with_elements(engine, [5, 6, 7]),
            list: TList::with_elements(engine, [5, 6, 7]),
            set: TListSet::with_elements(engine, [5, 6, 7]),
            queue: TQueue::with_elements(engine, [5, 6, 7]),
            first: TPriorityQueue::with_elements(engine, [5, 6, 7]),
            tree: TTreeMap::with_entries(engine, [(5, 5), (6, 6)]),
            boosted: TBoostedMap::named(
                engine,
                "boosted",
                Papaya([(5, 5), (6, 6)].into_iter().collect()),
                16,
            ),
            words,
            word,
            hashed: THashMap::with_entries(engine, [(5, 5), (6, 6)]),
            sorted: TOrderedMap::with_entries(engine, [(5, 5), (6, 6)]),
            hash: table("hash").hash(4).create().unwrap(),
            ordered: table("ordered").create().unwrap(),
            cached: table("cached").cached(2).create().unwrap(),
            queued: database.table("queued").queues(|key: &(u64, u64)| key.0).create().unwrap(),
            halves: database.table("halves").create().unwrap(),
            indexed: indexed.create().unwrap(),
            by_value,
            by_parity,
        };
        let filled = engine.transact(|tx| {
            everything.words.write(tx, everything.word, 5)?;
            for row in [5, 6] {
                everything.hash.insert(tx, row, row)?;
                everything.ordered.insert(tx, row, row)?;
                everything.cached.insert(tx, row, row)?;
                everything.queued.insert(tx, (1, row), row)?;
                everything.halves.insert(tx, row, Halves { main: row, apart: row })?;
                everything.indexed.insert(tx, row, row)?;
            }
            Ok(())
        });
        filled.unwrap();
        everything
    }

    /// Makes one write; false if there are no more of them.
    fn write(&self, tx: &mut Transaction<'_, P>, number: u32) -> Result<bool, Abort> {
        match number {
            0 => self.boxed.set(tx, 8)?,
            1 => self.boxed.update(tx, |value| *value += 1)?,
            2 => self.boxed.add(tx, 1)?,
            3 => drop(self.boxed.subtract_if_enough(tx, 1)?),
            4 => self.text.append(tx, ["!"])?,
            5 => drop(self.boxed.defer_update(tx, (), |value, ()| *value += 1)?),
            6 => self.array.set(tx, 0, 8)?,
            7 => drop(self.array.subtract_if_enough(tx, 0, 1)?),
            8 => self.array.max(tx, 1, 9)?,
            9 => self.counter.add(tx, 1)?,
            10 => self.counter.set(tx, 8)?,
            11 => self.counter.defer_add(tx, 1)?,
            12 => self.counters.add(tx, 0, 1)?,
            13 => self.vector.push(tx, 8)?,
            14 => drop(self.vector.pop(tx)?),
            15 => drop(self.vector.discard_last(tx)?),
            16 => drop(self.vector.set(tx, 0, 8)?),
            17 => drop(self.vector.insert(tx, 0, 8)?),
            18 => drop(self.vector.remove(tx, 0)?),
            19 => self.vector.clear(tx)?,
            20 => self.list.insert(tx, 8)?,
            21 => drop(self.list.remove(tx, |_| true)?),
            22 => drop(self.set.insert(tx, 8)?),
            23 => drop(self.set.remove(tx, &5)?),
            24 => self.queue.push(tx, 8)?,
            25 => drop(self.queue.pop(tx)?),
            26 => self.queue.defer_push(tx, 8)?,
            27 => self.first.push(tx, 8)?,
            28 => drop(self.first.pop(tx)?),
            29 => drop(self.tree.insert(tx, 8, 8)?),
            30 => drop(self.tree.update(tx, &5, |value| *value += 1)?),
            31 => drop(self.tree.remove(tx, &5)?),
            32 => drop(self.boosted.insert(tx, 8, 8)?),
            33 => drop(self.boosted.remove(tx, &5)?),
            34 => drop(self.boosted.update(tx, &5, |value| *value += 1)?),
            35 => self.words.write(tx, self.word, 8)?,
            36 => drop(self.hashed.insert(tx, 8, 8)?),
            37 => drop(self.hashed.remove(tx, &5)?),
            38 => drop(self.sorted.update(tx, &5, |value| *value += 1)?),
            39 => drop(self.sorted.remove(tx, &5)?),
            40 => self.hash.insert(tx, 8, 8)?,
            41 => drop(self.hash.insert_if_absent(tx, 8, 8)?),
            42 => self.hash.update(tx, &5, |row| *row += 1)?,
            43 => self.hash.replace(tx, &5, 8)?,
            44 => drop(self.ordered.upsert(tx, 5, 8)?),
            45 => drop(self.ordered.delete(tx, &5)?),
            46 => self.ordered.add(tx, &5, Column::whole(), 1)?,
            47 => drop(self.ordered.subtract_if_enough(tx, &5, Column::whole(), 1)?),
            48 => self.ordered.apply(tx, &5, |row| *row += 1)?,
            49 => drop(self.ordered.take_first(tx, ..)?),
            50 => drop(self.cached.delete(tx, &5)?),
            51 => drop(self.ordered.defer_update(tx, &5, (), |row, ()| *row += 1)?),
            52 => drop(self.ordered.defer_insert(tx, 8u64, 8u64)?),
            53 => drop(self.ordered.defer_delete(tx, &5)?),
            54 => drop(self.queued.defer_take_first(tx, 1, (1, 0)..)?),
            55 => self.halves.add(tx, &5, column_of!(Halves, apart), 1)?,
            56 => drop(self.halves.subtract_if_enough(tx, &5, column_of!(Halves, apart), 1)?),
            57 => self.halves.update(tx, &5, |row| row.main += 1)?,
            58 => self.indexed.update(tx, &5, |row| *row += 10)?,
            59 => drop(self.indexed.delete(tx, &5)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads everything, and notes what it has found.
    fn read(&self, tx: &mut Transaction<'_, P>) -> Result<Vec<String>, Abort> {
        let mut seen = Vec::new();
        let mut see = |found: &dyn Debug| seen.push(format!("{found:?}"));
        see(&self.boxed.get(tx)?);
        see(&self.text.get(tx)?);
        let mut elements = Vec::new();
        self.array.read_each(tx, 0..2, |_, element| elements.push(*element))?;
        see(&(self.array.get(tx, 0)?, elements));
        see(&self.counter.get(tx)?);
        see(&(self.counter.is_at_least(tx, 6)?, self.counter.is_between(tx, 1, 5)?));
        see(&(self.counters.get(tx, 0)?, self.counters.is_at_least(tx, 0, 6)?));
        see(&(self.vector.len(tx)?, self.vector.is_empty(tx)?, self.vector.is_longer_than(tx, 3)?));
        see(&(self.vector.get(tx, 0)?, self.vector.get(tx, 3)?, self.vector.to_vec(tx)?));
        see(&(self.list.len(tx)?, self.list.is_empty(tx)?, self.list.to_vec(tx)?));
        see(&(self.list.find(tx, |_| true)?, self.list.find(tx, |element| *element == 9)?));
        see(&(self.set.len(tx)?, self.set.is_empty(tx)?, self.set.to_vec(tx)?));
        see(&(self.set.contains(tx, &5)?, self.set.contains(tx, &9)?));
        see(&(self.queue.len(tx)?, self.queue.is_empty(tx)?, self.queue.front(tx)?));
        see(&(self.first.len(tx)?, self.first.is_empty(tx)?, self.first.peek(tx)?));
        see(&(self.tree.len(tx)?, self.tree.is_empty(tx)?, self.tree.get(tx, &5)?, self.tree.get(tx, &9)?));
        see(&(self.tree.first(tx)?, self.tree.last(tx)?, self.tree.contains_key(tx, &6)?));
        see(&self.tree.iter(tx).collect::<Result<Vec<_>, _>>()?);
        see(&(self.boosted.get(tx, &5)?, self.boosted.get(tx, &9)?));
        see(&self.words.read(tx, self.word)?);
        see(&(self.hashed.get(tx, &5)?, self.hashed.get(tx, &9)?, self.hashed.contains_key(tx, &6)?));
        see(&(
            self.sorted.get(tx, &5)?,
            self.sorted.first(tx)?,
            self.sorted.last(tx)?,
            self.sorted.count(tx, ..)?,
        ));
        see(&(self.hash.get(tx, &5)?, self.hash.get(tx, &6)?, self.hash.get(tx, &9)?));
        for table in [&self.ordered, &self.cached, &self.indexed] {
            see(&(table.get(tx, &5)?, table.get(tx, &6)?, table.get(tx, &9)?));
            see(&(table.count(tx, ..)?, table.collect(tx, .., Direction::Descending, 9)?));
        }
        see(&self.queued.collect(tx, .., Direction::Ascending, 9)?);
        see(&(self.halves.get(tx, &5)?, self.halves.get(tx, &6)?, self.halves.get(tx, &9)?));
        see(&self.halves.read_columns(tx, &5, column_of!(Halves, apart))?);
        see(&self.halves.collect(tx, .., Direction::Ascending, 9)?);
        see(&(self.by_value.get(tx, &5)?, self.by_value.get_key(tx, &6)?, self.by_value.get(tx, &9)?));
        see(&self.by_value.collect(tx, .., Direction::Ascending, 9)?);
        see(&(self.by_parity.count(tx, 1..=1)?, self.by_parity.collect(tx, .., Direction::Descending, 9)?));
        Ok(seen)
    }

    /// Changes everything, values and keys alike.
    fn change(&self, tx: &mut Transaction<'_, P>) -> Result<(), Abort> {
        self.boxed.set(tx, 9)?;
        self.text.set(tx, "nine".to_owned())?;
        self.array.set(tx, 0, 9)?;
        self.counter.add(tx, 4)?;
        self.counters.add(tx, 0, 4)?;
        self.vector.set(tx, 0, 9)?;
        self.vector.push(tx, 9)?;
        self.list.remove(tx, |element| *element == 5)?;
        self.list.insert(tx, 9)?;
        self.list.insert(tx, 10)?;
        self.set.remove(tx, &5)?;
        self.set.insert(tx, 9)?;
        self.set.insert(tx, 10)?;
        self.queue.pop(tx)?;
        self.first.push(tx, 9)?;
        self.tree.update(tx, &6, |value| *value = 9)?;
        self.tree.remove(tx, &5)?;
        self.tree.insert(tx, 9, 9)?;
        self.tree.insert(tx, 10, 9)?;
        self.boosted.insert(tx, 9, 9)?;
        self.boosted.update(tx, &5, |value| *value = 9)?;
        self.words.write(tx, self.word, 9)?;
        self.hashed.insert(tx, 9, 9)?;
        self.hashed.remove(tx, &5)?;
        self.sorted.insert(tx, 9, 9)?;
        self.sorted.remove(tx, &5)?;
        for table in [&self.hash, &self.ordered, &self.cached, &self.indexed] {
            table.update(tx, &6, |row| *row = 7)?;
            table.delete(tx, &5)?;
            table.insert(tx, 9, 9)?;
            table.insert(tx, 10, 10)?;
        }
        self.queued.take_first(tx, ..)?;
        self.halves.update(tx, &6, |row| *row = Halves { main: 9, apart: 9 })?;
        self.halves.delete(tx, &5)?;
        self.halves.insert(tx, 9, Halves { main: 9, apart: 9 })
    }
}

/// True if an operation was refused as a write in a transaction that only reads.
fn is_refused<T: Debug, E: Debug>(result: Result<T, Error<E>>) -> bool {
    match result {
        Err(Error::Misuse(Misuse::ReadOnly { .. })) => true,
        Ok(_) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_write_at_read_committed_or_in_an_untracked_part_is_a_misuse() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let everything = Everything::new(&engine);
        let before = engine.transact(|tx| everything.read(tx)).unwrap();
        for number in 0.. {
            let mut is_any = true;
            let mut write = |tx: &mut Transaction<'_, P>| {
                is_any = everything.write(tx, number)?;
                Ok(())
            };
            let at_read_committed = is_refused(engine.try_transact_as(READ_COMMITTED, &mut write));
            let in_a_part = is_refused(engine.try_transact_as(READ_COMMITTED, |tx| {
                tx.or_else(|tx| tx.savepoint(&mut write)?, |_| Ok::<_, Abort>(()))
            }));
            let untracked = is_refused(engine.transact(|tx| tx.untracked(&mut write)));
            if !is_any {
                assert_eq!(number, 60, "all were tried");
                break;
            }
            assert!(at_read_committed && in_a_part && untracked, "write {number}");
        }
        assert_eq!(engine.transact(|tx| everything.read(tx)), Ok(before));
    });
}

#[test]
fn a_session_at_read_committed_reads_and_ends_at_its_first_write() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let everything = Everything::new(&engine);
        let expected = engine.transact(|tx| everything.read(tx)).unwrap();
        let begin = || {
            let options = SessionOptions { profile: READ_COMMITTED, ..SessionOptions::default() };
            engine.begin(options).unwrap()
        };
        let mut session = begin();
        assert_eq!(session.run(|tx| everything.read(tx)), Ok(expected));
        session.commit().unwrap();
        for number in [3, 25, 47, 49] {
            let mut session = begin();
            assert!(is_refused(session.run(|tx| everything.write(tx, number))), "write {number}");
            assert!(is_refused(session.commit()), "write {number}");
        }
    });
}

#[test]
fn what_was_read_without_being_kept_may_change() {
    for_each_concurrent_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let everything = Everything::new(&engine);
        let before = engine.transact(|tx| everything.read(tx)).unwrap();
        let after = || engine.transact(|tx| everything.read(tx)).unwrap();
        let mut worker = engine.worker().unwrap();
        let mut attempts = 0;
        worker
            .try_transact_as(READ_COMMITTED, |tx| {
                attempts += 1;
                assert_eq!(everything.read(tx)?, before);
                let after = elsewhere(|| {
                    engine.transact(|tx| everything.change(tx)).unwrap();
                    after()
                });
                assert_eq!(everything.read(tx)?, after);
                Ok::<_, Abort>(())
            })
            .unwrap();
        assert_eq!((attempts, engine.statistics().aborts), (1, 0));

        let engine = support::engine::<P>();
        let (everything, written) = (Everything::new(&engine), TBox::new(&engine, 0));
        let after = || engine.transact(|tx| everything.read(tx)).unwrap();
        engine
            .transact(|tx| {
                attempts += 1;
                written.set(tx, 1)?;
                assert_eq!(tx.untracked(|tx| everything.read(tx))?, before);
                let after = elsewhere(|| {
                    engine.transact(|tx| everything.change(tx)).unwrap();
                    after()
                });
                assert_eq!(tx.untracked(|tx| everything.read(tx))?, after);
                Ok(())
            })
            .unwrap();
        assert_eq!((attempts, engine.statistics().aborts), (2, 0));
    });
}

/// The part sees changes that the transaction makes at the commit or has deferred, and does not lose over them.
#[test]
fn an_untracked_part_sees_what_the_transaction_will_do_and_depends_on_nothing() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let everything = Everything::new(&engine);
        let mut attempts = 0;
        let sum = |tx: &mut Transaction<'_, P>| {
            Ok::<_, Abort>([
                everything.boxed.get(tx)?,
                everything.counter.get(tx)?.cast_unsigned(),
                everything.ordered.get(tx, &5)?.unwrap(),
                everything.halves.read_columns(tx, &5, column_of!(Halves, apart))?.unwrap(),
                everything.queue.len(tx)? as u64,
            ])
        };
        let add = |tx: &mut Transaction<'_, P>| {
            everything.boxed.add(tx, 1)?;
            everything.counter.defer_add(tx, 1)?;
            everything.ordered.add(tx, &5, Column::whole(), 1)?;
            everything.halves.add(tx, &5, column_of!(Halves, apart), 1)?;
            everything.queue.push(tx, 1)
        };
        engine
            .transact(|tx| {
                attempts += 1;
                add(tx)?;
                assert_eq!(tx.untracked(sum)?, [6, 6, 6, 6, 4]);
                if overtake(&engine, add) {
                    assert_eq!(tx.untracked(sum)?, [7, 7, 7, 7, 5]);
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(attempts, 1);
    });
}

/// The entries of a part of the range are read before their rows.
#[test]
fn a_scan_of_an_index_that_is_not_kept_shows_no_row_of_another_key() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let everything = Everything::new(&engine);
        let mut worker = engine.worker().unwrap();
        let mut is_moved = false;
        let mut wrong = Vec::new();
        let mut move_once = || {
            let next = |tx: &mut Transaction<'_, P>| everything.indexed.update(tx, &6, |row| *row += 5);
            if !std::mem::replace(&mut is_moved, true) && !overtake(&engine, next) {
                is_moved = false;
            }
        };
        let seen = worker.try_transact_as(READ_COMMITTED, |tx| {
            everything.by_value.scan(tx, .., Direction::Ascending, |value, key, row| {
                move_once();
                if value != row {
                    wrong.push((*value, *key, *row));
                }
                ControlFlow::Continue(())
            })?;
            everything.by_parity.scan(tx, .., Direction::Descending, |parity, key, row| {
                move_once();
                if *parity != row % 2 {
                    wrong.push((*parity, *key, *row));
                }
                ControlFlow::Continue(())
            })
        });
        assert_eq!((seen, wrong), (Ok::<(), Error>(()), Vec::new()));
    });
}

/// There are always two or three elements in the queue, and a row for each key of the index.
#[test]
fn each_call_that_is_not_kept_returns_what_was_so_at_one_moment() {
    for_each_protocol!(3, |P| {
        let engine = support::engine::<P>();
        let everything = Everything::new(&engine);
        let reading = AtomicU64::new(1);
        on_threads(&engine, 2, |number, worker| {
            if number == 0 {
                while reading.load(Ordering::Acquire) > 0 {
                    let element =
                        worker.transact(|tx| everything.queue.pop(tx)).unwrap().expect("there are three");
                    worker.transact(|tx| everything.queue.push(tx, element)).unwrap();
                    let moved = worker.transact(|tx| {
                        // The two rows exchange their values.
                        let row = everything.indexed.get(tx, &5)?.expect("it is there");
                        everything.indexed.update(tx, &5, |row| *row = 100)?;
                        everything.indexed.update(tx, &6, |other| *other = row)?;
                        everything.indexed.update(tx, &5, |other| *other = 11 - row)
                    });
                    moved.unwrap();
                }
                return;
            }
            let _done = Done(&reading);
            for _ in 0..300 {
                let seen = worker.try_transact_as(READ_COMMITTED, |tx| {
                    let (length, is_empty) = (everything.queue.len(tx)?, everything.queue.is_empty(tx)?);
                    assert!((2..=3).contains(&length) && !is_empty, "{length}");
                    assert!(everything.queue.front(tx)?.is_some());
                    for value in [5, 6] {
                        let found = everything.by_value.get(tx, &value)?;
                        assert!(found.is_some_and(|(_, row)| row == value), "{value}: {found:?}");
                    }
                    everything.by_value.scan(tx, .., Direction::Ascending, |value, _, row| {
                        assert_eq!(value, row);
                        ControlFlow::Continue(())
                    })
                });
                assert_eq!(seen, Ok::<(), Error>(()));
            }
        });
    });
}

/// Says that the reader is done, even if it panics.
struct Done<'a>(&'a AtomicU64);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}
