//! Safe code that misbehaves: it may get wrong answers and panics, but no dangling memory, no second drop, no
//! lock left behind.

use crate::support;
use crate::support::{Census, Counted, by_number, elsewhere, for_each_protocol, panic_of};
use hotrow::key::Key;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::thread;
use hotrow::{Database, Engine, Occ, TBox, Table, TableRef, Transaction};
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// Tells whether a type is `Send`: the inherent function, where it applies, goes before the trait's.
struct Probe<T>(PhantomData<T>);
impl<T: Send> Probe<T> {
    fn is_send(&self) -> bool {
        true
    }
}
trait NotSend {
    fn is_send(&self) -> bool {
        false
    }
}
impl<T> NotSend for Probe<T> {}

#[test]
fn a_transaction_cannot_be_sent_to_another_thread() {
    // It pins its thread's epoch, which the thread may use at the same time.
    assert!(!Probe::<Transaction<'static, Occ>>(PhantomData).is_send());
    assert!(!Probe::<&mut Transaction<'static, Occ>>(PhantomData).is_send());
    assert!(Probe::<hotrow::Worker<Occ>>(PhantomData).is_send());
}

/// The state that the keys of one test depend on beside their number.
#[derive(Debug)]
struct Mood {
    salt: AtomicU64,
    panics: AtomicBool,
}

impl Mood {
    const fn new() -> Self {
        Self { salt: AtomicU64::new(0), panics: AtomicBool::new(false) }
    }

    fn salt(&self, salt: u64) {
        self.salt.store(salt, Ordering::SeqCst);
    }

    fn panics(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

/// A key whose hash and image depend on more than itself.
#[derive(Clone, Copy)]
struct Fickle {
    number: u64,
    mood: &'static Mood,
}

impl Fickle {
    fn seen(&self) -> u64 {
        assert!(!self.mood.panics.load(Ordering::SeqCst), "a key that panics");
        self.number.wrapping_add(self.mood.salt.load(Ordering::SeqCst))
    }
}

impl std::fmt::Debug for Fickle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.number.fmt(f)
    }
}
by_number!(Fickle);
impl Hash for Fickle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.seen());
    }
}
impl Key for Fickle {
    type Image = u64;
    fn image(&self) -> u64 {
        self.seen()
    }
}

/// A hash table, so large that it need not grow, and an ordered one.
fn tables<P: hotrow::Protocol>(engine: &Engine<P>) -> [Table<Fickle, Counted, P>; 2] {
    [
        Database::on(engine).table("hash").hash(1_000).create().unwrap(),
        Database::on(engine).table("ordered").create().unwrap(),
    ]
}

#[test]
fn a_key_whose_hash_changes_before_cleanup_leaves_no_freed_row_in_the_index() {
    static MOOD: Mood = Mood::new();
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        for table in tables(&engine) {
            let census = Census::default();
            let key = |number| Fickle { number, mood: &MOOD };
            for number in 0..200 {
                assert!(
                    engine
                        .transact(|tx| table.insert_if_absent(tx, key(number), census.value(number)))
                        .unwrap()
                );
            }
            for number in 0..100 {
                let deleted = engine.transact(|tx| {
                    let deleted = table.delete(tx, &key(number))?;
                    // The commit's cleanup looks for the record elsewhere.
                    MOOD.salt(77_777);
                    Ok(deleted)
                });
                MOOD.salt(0);
                assert!(deleted.unwrap());
            }
            for number in 200..300 {
                let rolled_back = engine.transact(|tx| {
                    table.insert_if_absent(tx, key(number), census.value(number))?;
                    MOOD.salt(77_777);
                    Err::<(), _>(hotrow::Abort::rollback())
                });
                MOOD.salt(0);
                rolled_back.unwrap_err();
            }
            // Epochs pass, so that whatever was retired too early is gone.
            let other = Census::default();
            drop(TBox::new(&engine, other.value(0)));
            other.settle(&engine, 0);
            for number in 0..300 {
                let found =
                    engine.transact(|tx| table.read(tx, &key(number), |row| row.clone().number)).unwrap();
                assert_eq!(found, (100..200).contains(&number).then_some(number));
            }
            for number in 0..300 {
                let fresh = !(100..200).contains(&number);
                assert_eq!(
                    engine.transact(|tx| table.insert_if_absent(tx, key(number), census.value(0))).unwrap(),
                    fresh
                );
            }
            drop(table);
            census.settle(&engine, 0);
        }
    });
}

#[test]
fn a_key_whose_hash_changes_while_the_index_grows_leaves_no_latch_behind() {
    static MOOD: Mood = Mood::new();
    for_each_protocol!(1, |P| {
        MOOD.salt(0);
        let engine = support::engine::<P>();
        let census = Census::default();
        let table = Database::on(&engine).table::<Fickle, Counted>("grows").hash(1).create().unwrap();
        for number in 0..3_000 {
            if number % 50 == 0 {
                MOOD.salt(number);
            }
            engine
                .transact(|tx| {
                    table.insert_if_absent(tx, Fickle { number, mood: &MOOD }, census.value(number))
                })
                .unwrap();
        }
        // Nothing hangs, and every row is there once, wherever it is.
        let mut rows = 0;
        table.for_each(&mut engine.worker().unwrap(), |_, _| rows += 1).unwrap();
        assert!(rows <= 3_000);
        drop(table);
        census.settle(&engine, 0);
    });
}

#[test]
fn a_panic_in_a_keys_hash_during_cleanup_leaves_no_epoch_pinned() {
    static MOOD: Mood = Mood::new();
    for_each_protocol!(1, |P| {
        MOOD.panics(false);
        let engine = support::engine::<P>();
        for table in tables(&engine) {
            let census = Census::default();
            let key = |number| Fickle { number, mood: &MOOD };
            let mut worker = Engine::<P>::worker(&engine).unwrap();
            worker.transact(|tx| table.insert_if_absent(tx, key(1), census.value(1))).unwrap();
            let deleted = worker.transact(|tx| {
                let deleted = table.delete(tx, &key(1))?;
                MOOD.panics(true);
                Ok(deleted)
            });
            assert_eq!(deleted, Ok(true), "it had committed before");
            MOOD.panics(false);
            // The worker is kept, idle; garbage made by others is collected all the same.
            let (other, another) = (Census::default(), support::engine::<P>());
            elsewhere(|| {
                drop(TBox::new(&another, other.value(0)));
                other.settle(&another, 0);
            });
            // The delete was committed before the panic; and the worker goes on, on whatever thread.
            let worker = &mut worker;
            elsewhere(|| {
                assert!(worker.transact(|tx| table.get(tx, &key(1))).unwrap().is_none());
                assert!(worker.transact(|tx| table.insert_if_absent(tx, key(1), census.value(2))).unwrap());
                assert_eq!(worker.transact(|tx| table.get(tx, &key(1))).unwrap().unwrap().number, 2);
            });
        }
    });
}

#[test]
fn a_panic_in_a_keys_image_while_its_transaction_is_recorded_commits_all_or_nothing() {
    // A history names keys by their images. It asks for none in the middle of a commit.
    static MOOD: Mood = Mood::new();
    for_each_protocol!(1, |P| {
        MOOD.panics(false);
        let engine = support::engine::<P>();
        let recording = engine.record_history(1 << 20).unwrap();
        for table in tables(&engine) {
            let census = Census::default();
            let key = |number| Fickle { number, mood: &MOOD };
            let count = TBox::new(&engine, census.value(0));
            engine.transact(|tx| table.insert_if_absent(tx, key(1), census.value(0))).unwrap();
            panic_of(|| {
                engine.transact(|tx| {
                    count.update(tx, |count| count.number = 9)?;
                    table.update_if_present(tx, &key(1), |row| row.number = 9)?;
                    MOOD.panics(true);
                    Ok(())
                })
            });
            MOOD.panics(false);
            let counted = engine.transact(|tx| count.read(tx, |count| count.number)).unwrap();
            let row = engine.transact(|tx| table.get(tx, &key(1))).unwrap().unwrap();
            assert_eq!((counted, row.number), (0, 0));
            drop((row, table, count));
            census.settle(&engine, 0);
        }
        let report = hotrow_check::check(&recording.finish()).unwrap();
        assert!(report.opaque, "{report}");
    });
}

#[test]
fn a_panic_in_a_keys_hash_during_an_operation_rolls_back() {
    static MOOD: Mood = Mood::new();
    for_each_protocol!(1, |P| {
        MOOD.panics(false);
        let engine = support::engine::<P>();
        for table in tables(&engine) {
            let census = Census::default();
            let key = |number| Fickle { number, mood: &MOOD };
            engine.transact(|tx| table.insert_if_absent(tx, key(1), census.value(1))).unwrap();
            panic_of(|| {
                engine.transact(|tx| {
                    table.update_if_present(tx, &key(1), |row| row.number = 9)?;
                    MOOD.panics(true);
                    let read = table.get(tx, &key(1));
                    MOOD.panics(false);
                    read
                })
            });
            MOOD.panics(false);
            assert_eq!(engine.transact(|tx| table.get(tx, &key(1))).unwrap().unwrap().number, 1);
            drop(table);
            census.settle(&engine, 0);
        }
    });
}

/// Runs a closure when its thread's local values are dropped.
struct AtExit(RefCell<Option<Box<dyn FnOnce()>>>);
impl Drop for AtExit {
    fn drop(&mut self) {
        if let Some(last) = self.0.take() {
            last();
        }
    }
}
thread_local! {
    static EARLY: AtExit = const { AtExit(RefCell::new(None)) };
    static LATE: AtExit = const { AtExit(RefCell::new(None)) };
}

#[test]
fn a_transaction_may_run_while_a_threads_local_values_are_dropped() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let counter = hotrow::sync::Arc::new(TBox::new(&engine, 0u64));
        let (engine, seen) = (&engine, &counter);
        let add = || {
            let (engine, counter) = (engine.clone(), seen.clone());
            move || engine.transact(|tx| counter.update(tx, |n| *n += 1)).unwrap()
        };
        let (early, now, late) = (add(), add(), add());
        // Whatever the order in which the system drops them, one is dropped after the thread's worker.
        thread::spawn(move || {
            EARLY.with(|at_exit| at_exit.0.replace(Some(Box::new(early))));
            now();
            LATE.with(|at_exit| at_exit.0.replace(Some(Box::new(late))));
        })
        .join()
        .unwrap();
        assert_eq!(engine.transact(|tx| counter.get(tx)).unwrap(), 3);
    });
}

#[test]
fn a_table_reference_serves_its_own_database_only() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let (first, second) = (Database::on(&engine), Database::on(&engine));
        let rows: TableRef<u64, u64> = first.table("rows").create().unwrap().reference();
        assert_eq!(first.table_of(rows).name(), "rows");
        panic_of(|| second.table_of(rows).name().to_owned());
    });
}
