//! Strictness, by example: transactions may take effect in an order that is not that of real time. And the case in which
//! even a protocol that allows this must keep to real time: absence has no timestamps, so two orders could contradict
//! each other.

use hotrow::history::History;
use hotrow::{Abort, Any, Database, Engine, Occ, Protocol, RetryPolicy, TBox, Transaction, Worker};
use hotrow_check::{Level, Report, check};

/// An engine whose transactions give up where they would have to wait for another transaction of this thread.
fn engine<P: Protocol>(protocol: &str) -> Engine<P> {
    Engine::named(protocol, RetryPolicy { attempts_max: 1, ..RetryPolicy::default() }).unwrap()
}

fn committed<P: Protocol>(
    worker: &mut Worker<P>,
    body: impl FnMut(&mut Transaction<'_, P>) -> Result<(), Abort>,
) -> bool {
    worker.transact(body).is_ok()
}

/// Sees to it that the value of `kept` is valid for some logical time: it is read together with a value that has been
/// written several times.
fn prolong<P: Protocol>(engine: &Engine<P>, worker: &mut Worker<P>, kept: &TBox<u64, P>) {
    let other = TBox::named(engine, "other", 0u64);
    for value in 1..=6 {
        assert!(committed(worker, |tx| other.set(tx, value)));
    }
    assert!(committed(worker, |tx| {
        kept.get(tx)?;
        other.get(tx).map(drop)
    }));
}

fn judge(history: &History) -> Report {
    let report = check(history).unwrap();
    assert!(report.is(report.claimed()), "{report}");
    report
}

/// A transaction reads x. Another one changes x and ends; then one begins that changes y, and ends. The first one
/// reads y. Whether all three commit.
fn spanning_reader<P: Protocol>(protocol: &str) -> (bool, Report) {
    let engine = engine::<P>(protocol);
    let (x, y) = (TBox::named(&engine, "x", 0u64), TBox::named(&engine, "y", 0u64));
    let (mut reader, mut writer) = (engine.worker().unwrap(), engine.worker().unwrap());
    prolong(&engine, &mut writer, &x);
    let recording = engine.record_history(1 << 20).unwrap();
    let mut reading = reader.begin();
    let first = x.get(&mut reading);
    let both = committed(&mut writer, |tx| x.set(tx, 1)) && committed(&mut writer, |tx| y.set(tx, 1));
    let second = y.get(&mut reading);
    let all = reading.commit().is_ok() && both;
    if all {
        assert_eq!((first.unwrap(), second.unwrap()), (0, 1), "before the one, after the other");
    }
    (all, judge(&recording.finish()))
}

#[test]
fn tictoc_puts_a_transaction_before_one_that_had_ended_when_it_began() {
    let (all, report) = spanning_reader::<Any>("tictoc");
    assert!(all, "{report}");
    assert!(report.serializable && !report.strictly_serializable, "{report}");
    assert_eq!(report.claimed(), Level::Serializable);
    let words = report.to_string();
    println!("{words}");
    for part in ["NO (and the protocol does not claim to be)", "x[value]", "y[value]", "had ended"] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn protocols_that_claim_strictness_let_one_of_the_three_abort() {
    for (all, report) in [spanning_reader::<Occ>("occ"), spanning_reader::<Any>("tl2")] {
        assert!(!all && report.strictly_serializable, "{report}");
    }
}

/// Why a key is absent after T1.
#[derive(Clone, Copy, PartialEq)]
enum Absence {
    /// T1 finds it absent.
    Observed,
    /// T1 deletes its row. What T2 inserts is a new record, without a past.
    Deletion,
    /// T1 inserts it and deletes it again.
    TakenBack,
}

/// T1 finds a key absent, or makes it so, and changes x, late in logical time. T2 inserts the key: after T1, for T1 has
/// not seen it. T3 reads the key: after T2. But x it has read before T1, and that x is valid for long enough for all
/// that T2 wrote.
fn absence_between<P: Protocol>(protocol: &str, ordered: bool, absence: Absence) -> (bool, bool) {
    let engine = engine::<P>(protocol);
    let table = if ordered {
        Database::on(&engine).table("rows").create().unwrap()
    } else {
        Database::on(&engine).table("rows").hash(10).create().unwrap()
    };
    if absence == Absence::Deletion {
        table.bulk_insert([(7u64, 0u64)]).unwrap();
    }
    let x = TBox::named(&engine, "x", 0u64);
    let (mut reader, mut writer) = (engine.worker().unwrap(), engine.worker().unwrap());
    prolong(&engine, &mut writer, &x);
    let recording = engine.record_history(1 << 20).unwrap();
    let mut t3 = reader.begin();
    let _ = x.get(&mut t3);
    let t1 = committed(&mut writer, |tx| {
        match absence {
            Absence::Observed => assert_eq!(table.get(tx, &7)?, None),
            Absence::Deletion => assert!(table.delete(tx, &7)?),
            Absence::TakenBack => assert!(table.insert_if_absent(tx, 7, 0)? && table.delete(tx, &7)?),
        }
        x.set(tx, 1)
    });
    let t2 = committed(&mut writer, |tx| table.insert_if_absent(tx, 7u64, 7u64).map(drop));
    let _ = table.get(&mut t3, &7);
    let t3 = t3.commit().is_ok();
    judge(&recording.finish());
    (t1 && t2, t3)
}

#[test]
fn an_insertion_after_an_observed_absence_is_later_in_every_order() {
    for ordered in [false, true] {
        assert_eq!(absence_between::<Any>("tictoc", ordered, Absence::Observed), (true, false));
        assert_eq!(absence_between::<Occ>("occ", ordered, Absence::Observed), (true, false));
    }
}

#[test]
fn an_insertion_after_a_deletion_is_later_in_every_order() {
    for ordered in [false, true] {
        assert_eq!(absence_between::<Any>("tictoc", ordered, Absence::Deletion), (true, false));
        assert_eq!(absence_between::<Occ>("occ", ordered, Absence::Deletion), (true, false));
    }
}

#[test]
fn an_insertion_that_was_taken_back_was_an_absence_in_every_order() {
    for ordered in [false, true] {
        assert_eq!(absence_between::<Any>("tictoc", ordered, Absence::TakenBack), (true, false));
        assert_eq!(absence_between::<Occ>("occ", ordered, Absence::TakenBack), (true, false));
    }
}

/// A transaction reads x and inserts a row. Meanwhile another one changes x and inserts a row, into the same table or
/// another one. Whether both commit.
fn insertions_side_by_side<P: Protocol>(protocol: &str, same: bool) -> bool {
    let engine = engine::<P>(protocol);
    let (orders, history) = (
        Database::on(&engine).table("orders").create().unwrap(),
        Database::on(&engine).table("history").create().unwrap(),
    );
    let x = TBox::named(&engine, "x", 0u64);
    let (mut reader, mut writer) = (engine.worker().unwrap(), engine.worker().unwrap());
    prolong(&engine, &mut writer, &x);
    let recording = engine.record_history(1 << 20).unwrap();
    let mut reading = reader.begin();
    let read = x.get(&mut reading);
    let other = if same { &orders } else { &history };
    let changed = committed(&mut writer, |tx| {
        x.set(tx, 1)?;
        other.insert_if_absent(tx, 1u64, 1u64).map(drop)
    });
    let inserted = orders.insert_if_absent(&mut reading, 2, 2);
    let both = reading.commit().is_ok() && changed && inserted.is_ok() && read == Ok(0);
    judge(&recording.finish());
    both
}

#[test]
fn insertions_of_different_keys_leave_tictoc_its_freedom() {
    for same in [false, true] {
        assert!(insertions_side_by_side::<Any>("tictoc", same));
        assert!(!insertions_side_by_side::<Occ>("occ", same));
    }
}
