//! Code that users bring along (a key's `Debug` and `Hash`, a copy, a `Drop`), where it calls back or panics in the midst of
//! the library's own work.

use crate::support;
use crate::support::{
    Census, Counted, attempts, by_number, for_each_concurrent_protocol, for_each_protocol, panic_of,
};
use hotrow::cell::Boxed;
use hotrow::key::Key;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::{Arc, Mutex, lock};
use hotrow::{Abort, Database, Engine, Protocol, TBox, Table, Value};
use std::hash::{Hash, Hasher};
use std::ops::Range;

type Hook = Arc<dyn Fn() + Send + Sync>;

/// The actions of one test's keys when they are shown or hashed.
#[derive(Default)]
struct Hooks {
    shown: Mutex<Option<Hook>>,
    calls: AtomicU64,
    hash_panics: AtomicBool,
}

impl Hooks {
    const fn new() -> Self {
        Self { shown: Mutex::new(None), calls: AtomicU64::new(0), hash_panics: AtomicBool::new(false) }
    }

    fn set(&self, hook: impl Fn() + Send + Sync + 'static) {
        *lock(&self.shown) = Some(Arc::new(hook));
    }

    /// How often the hook was called since this was asked for last; it is no more.
    fn clear(&self) -> u64 {
        *lock(&self.shown) = None;
        self.calls.swap(0, Ordering::SeqCst)
    }
}

#[derive(Clone, Copy)]
struct Hooked {
    number: u64,
    hooks: &'static Hooks,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hook = lock(&self.hooks.shown).clone();
        if let Some(hook) = hook {
            self.hooks.calls.fetch_add(1, Ordering::SeqCst);
            hook();
        }
        self.number.fmt(f)
    }
}
by_number!(Hooked);
impl Hash for Hooked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.image());
    }
}
impl Key for Hooked {
    type Image = u64;
    fn image(&self) -> u64 {
        assert!(!self.hooks.hash_panics.load(Ordering::SeqCst), "a key that panics");
        self.number
    }
}

/// Runs a test on a table with each kind of index. All keys have the same hooks, and some have rows before:
/// those that `row` gives.
fn for_each_table<P: Protocol, R: Value>(
    engine: &Engine<P>,
    hooks: &'static Hooks,
    keys: Range<u64>,
    row: impl Fn(u64) -> R,
    test: impl Fn(Table<Hooked, R, P>, &dyn Fn(u64) -> Hooked),
) {
    let key = |number| Hooked { number, hooks };
    for is_hashed in [true, false] {
        // The database is gone when the table is made, so that nobody but the test keeps the table.
        let table = Database::on(engine).table(if is_hashed { "hash" } else { "ordered" });
        let builder = if is_hashed { table.hash(10) } else { table };
        test(support::loaded(builder, keys.clone().map(|number| (key(number), row(number)))), &key);
    }
}

/// Makes a transaction lose over a row.
fn conflict<P: Protocol>(engine: &Engine<P>, table: &Table<Hooked, u64, P>, key: Hooked) {
    let update =
        |tx: &mut hotrow::Transaction<'_, P>| table.update_if_present(tx, &key, |row| *row += 1).map(|_| ());
    attempts(engine, update, update);
}

#[test]
fn a_key_may_ask_for_the_hot_keys_when_it_is_shown_at_a_conflict() {
    static HOOKS: Hooks = Hooks::new();
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        for_each_table(
            &engine,
            &HOOKS,
            1..2,
            |_| 0,
            |table, key| {
                let asked = engine.clone();
                HOOKS.set(move || {
                    asked.hot_keys(10);
                    asked.statistics();
                    drop(asked.worker());
                });
                conflict(&engine, &table, key(1));
                let called = HOOKS.clear();
                assert_eq!(called > 0, engine.statistics().aborts > 0);
                assert!(engine.hot_keys(10).iter().all(|hot| hot.key == "1"));
            },
        );
    });
}

#[test]
fn a_key_that_panics_when_it_is_shown_at_a_conflict_harms_nobody() {
    static HOOKS: Hooks = Hooks::new();
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        for_each_table(
            &engine,
            &HOOKS,
            1..2,
            |_| 0,
            |table, key| {
                HOOKS.set(|| panic!("not to be shown"));
                // The transaction that has lost tries again, and commits.
                conflict(&engine, &table, key(1));
                assert_eq!(HOOKS.clear() > 0, engine.statistics().aborts > 0);
                assert!(engine.hot_keys(10).iter().all(|hot| hot.key == "a key that cannot be shown"));
                assert!(engine.transact(|tx| table.get(tx, &key(1))).unwrap() >= Some(1));
            },
        );
    });
}

#[test]
fn a_key_may_run_a_recorded_transaction_of_its_own_when_a_history_asks_for_its_name() {
    static HOOKS: Hooks = Hooks::new();
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let recording = engine.record_history(1 << 20).unwrap();
        for_each_table(
            &engine,
            &HOOKS,
            1..2,
            |_| 7,
            |table, key| {
                let (asked, read, inside) = (engine.clone(), table.clone(), AtomicBool::new(false));
                HOOKS.set(move || {
                    if !inside.swap(true, Ordering::SeqCst) {
                        let mut worker = asked.worker().unwrap();
                        let mut open = worker.begin();
                        assert_eq!(read.get(&mut open, &Hooked { number: 1, hooks: &HOOKS }), Ok(Some(7)));
                        open.commit().unwrap();
                    }
                });
                assert_eq!(engine.transact(|tx| table.get(tx, &key(1))), Ok(Some(7)));
                assert!(HOOKS.clear() > 0);
            },
        );
        assert!(hotrow_check::check(&recording.finish()).unwrap().serializable);
    });
}

#[test]
fn a_key_that_panics_while_an_insertion_is_taken_back_does_not_end_the_process() {
    static HOOKS: Hooks = Hooks::new();
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        for_each_table(
            &engine,
            &HOOKS,
            1..2,
            |number| census.value(number),
            |table, key| {
                // The body's panic passes on, and those that the roll-back meets do not.
                let message = panic_of(|| {
                    engine.transact(|tx| -> Result<(), Abort> {
                        for number in 2..10 {
                            table.insert_if_absent(tx, key(number), census.value(number))?;
                        }
                        HOOKS.hash_panics.store(true, Ordering::SeqCst);
                        panic!("the body's own");
                    })
                });
                assert_eq!(message, "the body's own");
                HOOKS.hash_panics.store(false, Ordering::SeqCst);
                // Where the body has none, those pass on.
                let message = panic_of(|| {
                    engine.transact(|tx| -> Result<(), Abort> {
                        for number in 10..20 {
                            table.insert_if_absent(tx, key(number), census.value(number))?;
                        }
                        HOOKS.hash_panics.store(true, Ordering::SeqCst);
                        Err(Abort::rollback())
                    })
                });
                assert_eq!(message, "a key that panics");
                HOOKS.hash_panics.store(false, Ordering::SeqCst);
                // Records left in the index are dead, and taken out by the next operation that meets them.
                for number in 2..20 {
                    assert!(engine.transact(|tx| table.get(tx, &key(number))).unwrap().is_none());
                    assert!(
                        engine
                            .transact(|tx| table.insert_if_absent(tx, key(number), census.value(0)))
                            .unwrap()
                    );
                }
                drop(table);
                census.settle(&engine, 0);
            },
        );
    });
}

#[test]
fn a_transaction_whose_keys_panic_after_it_has_committed_says_that_it_has() {
    static HOOKS: Hooks = Hooks::new();
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        for_each_table(
            &engine,
            &HOOKS,
            0..4,
            |number| census.value(number),
            |table, key| {
                let deleted = engine.transact(|tx| {
                    for number in 0..3 {
                        assert!(table.delete(tx, &key(number))?);
                    }
                    HOOKS.hash_panics.store(true, Ordering::SeqCst);
                    Ok("deleted")
                });
                HOOKS.hash_panics.store(false, Ordering::SeqCst);
                assert_eq!(deleted, Ok("deleted"));
                for number in 0..4 {
                    let found = engine.transact(|tx| table.get(tx, &key(number))).unwrap();
                    assert_eq!(found.is_some(), number == 3);
                }
                assert!(engine.transact(|tx| table.insert_if_absent(tx, key(1), census.value(1))).unwrap());
                drop(table);
                census.settle(&engine, 0);
            },
        );
    });
}

/// A result whose copies and drops panic when told to.
struct Fragile(&'static AtomicBool);
impl Clone for Fragile {
    fn clone(&self) -> Self {
        assert!(!self.0.load(Ordering::SeqCst), "a copy that panics");
        Self(self.0)
    }
}
impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.0.load(Ordering::SeqCst), "a drop that panics");
    }
}

#[test]
fn a_result_is_handed_out_although_its_copies_panic() {
    static BREAKS: AtomicBool = AtomicBool::new(false);
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let number = TBox::new(&engine, 0u64);
        let result = engine.transact_deferred(|tx| {
            number.set(tx, 1)?;
            let result = tx.known(Fragile(&BREAKS));
            BREAKS.store(true, Ordering::SeqCst);
            Ok(result)
        });
        BREAKS.store(false, Ordering::SeqCst);
        assert!(result.is_ok());
        assert_eq!(engine.transact(|tx| number.get(tx)), Ok(1));
    });
}

#[test]
fn all_values_held_by_deferred_operations_are_dropped_although_one_drop_panics() {
    static BREAKS: AtomicBool = AtomicBool::new(false);
    for_each_protocol!(1, |P| {
        for commits in [true, false] {
            let engine = support::engine::<P>();
            let (number, held) = (TBox::new(&engine, 0u64), Arc::new(()));
            let end = || {
                engine.transact(|tx| {
                    for at in 0..9 {
                        // Every third one panics.
                        let fragile = (at % 3 == 0).then(|| Fragile(&BREAKS));
                        let held = (held.clone(), fragile, held.clone());
                        tx.known(held);
                    }
                    number.set(tx, 1)?;
                    BREAKS.store(true, Ordering::SeqCst);
                    if commits { Ok(()) } else { Err(Abort::rollback()) }
                })
            };
            if commits {
                assert_eq!(end(), Ok(()));
            } else {
                assert_eq!(panic_of(end), "a drop that panics");
            }
            BREAKS.store(false, Ordering::SeqCst);
            assert_eq!(Arc::strong_count(&held), 1);
            assert_eq!(engine.transact(|tx| number.get(tx)), Ok(u64::from(commits)));
        }
    });
}

/// A row that panics when it is asked for its size.
#[derive(Debug, Clone)]
struct Sizeless(Counted);

impl Value for Sizeless {
    type Cell = Boxed<Self>;

    fn heap_bytes(&self) -> usize {
        panic!("not to be measured")
    }
}

#[test]
fn a_row_that_panics_when_it_is_measured_is_installed_and_freed_once() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let census = Census::default();
        let row = |number| Sizeless(census.value(number));
        let value = TBox::new(&engine, row(1));
        let table = Database::on(&engine).table::<u64, Sizeless>("rows").create().unwrap();
        table.bulk_insert([(1, row(1))]).unwrap();
        for number in 2..5 {
            // Several writes: one that is installed already must not be undone because of the next one.
            let committed = engine.transact(|tx| {
                table.insert_if_absent(tx, number, row(number))?;
                table.upsert(tx, 1, row(number))?;
                value.set(tx, row(number))
            });
            assert_eq!(committed, Ok(()));
            let rolled_back = engine.transact(|tx| {
                value.set(tx, row(0))?;
                table.upsert(tx, 1, row(0))?;
                Err::<(), _>(Abort::rollback())
            });
            assert_eq!(rolled_back, Err(hotrow::Error::Rollback(Abort::rollback())));
            let seen =
                engine.transact(|tx| Ok((value.get(tx)?.0.number, table.get(tx, &1)?.unwrap().0.number)));
            assert_eq!(seen, Ok((number, number)));
        }
        assert_eq!(engine.transact(|tx| table.delete(tx, &1)), Ok(true));
        drop((value, table));
        census.settle(&engine, 0);
    });
}
