//! Drops that panic. In a process of its own, since retired values are dropped by whoever passes by.

mod support;

use hotrow::object::{Commuting, CommutingSegment};
use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::{Abort, Database, Engine, Occ, RetryPolicy, TArray, TBox, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use support::for_each_protocol;

/// A boxed value whose drop panics when told to.
#[derive(Clone, Value)]
struct Explosive {
    armed: Arc<AtomicBool>,
}

impl Drop for Explosive {
    fn drop(&mut self) {
        assert!(!self.armed.swap(false, Ordering::SeqCst), "a drop that panics");
    }
}

#[test]
fn a_drop_that_panics_undoes_or_breaks_no_transaction() {
    for_each_protocol!(1, |P| {
        let engine = support::engine::<P>();
        let armed = Arc::new(AtomicBool::new(false));
        let table = Database::on(&engine).table::<u64, Explosive>("rows").hash(10).create().unwrap();
        let count = TBox::new(&engine, 0u64);
        table.bulk_insert([(1, Explosive { armed: armed.clone() })]).unwrap();
        let (mut counted, mut exploded) = (0, 0);
        for round in 0..2_000 {
            let row = Explosive { armed: armed.clone() };
            armed.store(round % 10 == 9, Ordering::SeqCst);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                engine.transact(|tx| {
                    table.upsert(tx, 1, row.clone())?;
                    count.update(tx, |n| *n += 1)
                })
            }));
            armed.store(false, Ordering::SeqCst);
            exploded += u64::from(result.is_err());
            counted = engine.transact(|tx| count.get(tx)).unwrap();
            assert!(counted + exploded > round && counted <= round + 1);
        }
        assert!(counted >= 1_800, "{counted}");
    });
}

#[test]
fn a_stopped_attempt_whose_end_panics_leaves_nothing_to_the_next() {
    for_each_protocol!(1, |P| {
        let (engine, elsewhere) = (support::engine::<P>(), support::engine::<P>());
        let (array, foreign) = (TArray::new(&engine, 2, |_| 0u64), TBox::new(&elsewhere, 0u64));
        let armed = Arc::new(AtomicBool::new(false));
        let mut worker = engine.worker().unwrap();
        let mut open = worker.begin();
        let held = Explosive { armed: armed.clone() };
        let deferred = array.defer_update(&mut open, 0, (), move |value, ()| {
            let _ = &held;
            *value += 1;
        });
        deferred.unwrap();
        assert!(foreign.get(&mut open).is_err());
        armed.store(true, Ordering::SeqCst);
        let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(open)));
        armed.store(false, Ordering::SeqCst);
        // Where it was deferred, its closure was dropped just now.
        assert_eq!(dropped.is_err(), support::defers());
        assert_eq!(worker.transact(|tx| array.get(tx, 0)).unwrap(), 0);
    });
}

/// A boxed value that counts its drops, and panics at one of so many of them, when told to.
#[derive(Clone, Value)]
struct Counted {
    number: u64,
    drops: Arc<AtomicU64>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::SeqCst);
        assert!(!self.number.is_multiple_of(10), "a drop that panics");
    }
}

/// Makes epochs pass until so many values have been dropped.
fn settle(drops: &AtomicU64, expected: u64) {
    let engine = Engine::<Occ>::new();
    let churn = TBox::new(&engine, String::new());
    for _ in 0..1_000_000 {
        if drops.load(Ordering::SeqCst) == expected {
            return;
        }
        engine.transact(|tx| churn.set(tx, String::new())).unwrap();
    }
    assert_eq!(drops.load(Ordering::SeqCst), expected, "values that nobody drops any more");
}

#[test]
fn a_drop_that_panics_keeps_no_other_value_from_being_dropped() {
    for_each_protocol!(1, |P| {
        for ordered in [false, true] {
            let engine = support::engine::<P>();
            let drops = Arc::new(AtomicU64::new(0));
            let value = |number| Counted { number, drops: drops.clone() };
            let table = match ordered {
                true => Database::on(&engine).table::<u64, Counted>("rows").create().unwrap(),
                false => Database::on(&engine).table::<u64, Counted>("rows").hash(10).create().unwrap(),
            };
            // Replaced one by one, deleted one by one, and dropped with the table.
            for key in 0..300 {
                assert!(engine.transact(|tx| table.insert_if_absent(tx, key, value(key))).unwrap());
            }
            for key in 0..100 {
                assert!(engine.transact(|tx| table.replace_if_present(tx, &key, value(key))).unwrap());
            }
            settle(&drops, 100);
            for key in 0..100 {
                assert!(engine.transact(|tx| table.delete(tx, &key)).unwrap());
            }
            settle(&drops, 200);
            drop(table);
            settle(&drops, 400);
            // Two of one array explode.
            drop(TArray::new(&engine, 20, |index| value(index as u64)));
            settle(&drops, 420);
        }
    });
}

/// The effect of a change's drop.
type OnDrop = std::sync::Arc<dyn Fn() + Send + Sync>;

/// An amount to be added. The first of its clones does something when it is dropped.
#[derive(Default)]
struct Change {
    amount: u64,
    on_drop: Option<OnDrop>,
}

impl Clone for Change {
    fn clone(&self) -> Self {
        Self { amount: self.amount, on_drop: None }
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(code) = self.on_drop.take() {
            code();
        }
    }
}

struct Sum;

impl Commuting for Sum {
    type Value = u64;
    type Change = Change;
    type Condition = ();

    fn holds(&self, (): &(), _: Option<&Change>, _: &u64) -> bool {
        true
    }

    fn apply(&self, change: Change, value: &mut u64) {
        *value += change.amount;
    }
}

/// Adds one to a sum, and does this when the change is dropped.
fn add<P: hotrow::Protocol>(
    sum: &CommutingSegment<Sum, P>,
    tx: &mut hotrow::Transaction<'_, P>,
    on_drop: &OnDrop,
) -> Result<(), Abort> {
    sum.enter(tx)?.change(|change| {
        change.amount += 1;
        change.on_drop = Some(on_drop.clone());
    })
}

#[test]
fn a_change_that_commutes_is_dropped_when_nothing_is_locked_and_its_panic_breaks_no_commit() {
    for_each_protocol!(2, |P| {
        let deadline = Some(Duration::from_secs(2));
        let engine = support::engine_with::<P>(RetryPolicy { deadline, ..RetryPolicy::default() });
        let sum = Arc::new(CommutingSegment::of(&engine, "sum", Sum, 0));
        // Another thread uses the object while the change of an attempt that is undone is dropped.
        let (e, s) = (engine.clone(), sum.clone());
        let reads: OnDrop = std::sync::Arc::new(move || {
            let read = support::elsewhere(|| e.transact(|tx| s.enter(tx)?.read(|seen| *seen.value)));
            assert_eq!(read, Ok(0));
        });
        let refused = engine.transact(|tx| {
            let part: Result<(), Abort> = tx.savepoint(|tx| {
                add(&sum, tx, &reads)?;
                Err(Abort::rollback())
            })?;
            assert!(part.is_err());
            add(&sum, tx, &reads)?;
            Err::<(), _>(Abort::rollback())
        });
        assert!(refused.is_err());
        // The panic of a rollback is passed on, and that of a commit is contained.
        let panics: OnDrop = std::sync::Arc::new(|| panic!("a drop that panics"));
        let roll_back = || {
            engine.transact(|tx| {
                add(&sum, tx, &panics)?;
                Err::<(), _>(Abort::rollback())
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(roll_back)).is_err());
        let logged = CommutingSegment::of(&engine, "logged", Sum, 0).logged(Box::new(|_, _, _| Ok(())));
        let other = TBox::new(&engine, 0u64);
        let commit = || {
            engine.transact(|tx| {
                add(&logged, tx, &panics)?;
                other.set(tx, 1)
            })
        };
        let _ = catch_unwind(AssertUnwindSafe(commit));
        let now = support::elsewhere(|| {
            engine.transact(|tx| Ok((logged.enter(tx)?.read(|seen| *seen.value)?, other.get(tx)?)))
        });
        assert_eq!(now, Ok((1, 1)));
    });
}
