//! The hook that databases call before operations of procedures.

use hotrow::context::Eager;
use hotrow::protocols::Occ;
use hotrow::{Abort, Database, Direction, Engine, KeyRange, Operations, Procedures};
use std::cell::Cell;
use std::ops::ControlFlow;

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Returns the result of an operation, and asserts that the hook was called once before it.
fn hooked<O>(operation: Result<O, Abort>) -> O {
    assert_eq!(CALLS.take(), 1);
    operation.expect("no other transaction conflicts")
}

#[test]
fn the_hook_is_called_once_before_every_operation() {
    let engine = Engine::<Occ>::new();
    let database = Database::on(&engine);
    let mut builder = database.table::<u64, u64>("numbers");
    let index = builder.secondary("halves", |_, row| row / 2);
    let table = builder.create().unwrap();
    let (table, index) = (table.reference(), index.reference());
    database.before_operations(|| CALLS.set(CALLS.get() + 1));
    let mut worker = engine.worker().unwrap();
    let committed = worker.transact(|tx| {
        let cx = &mut Eager::new(&database, tx);
        cx.prefetch(table, [1, 2].into_iter());
        assert!(CALLS.take() == 0, "a prefetch is only a hint");
        assert!(hooked(cx.insert(table, 1, 10)));
        assert!(hooked(cx.insert_grouped(table, 0, 2, 20)));
        assert!(hooked(cx.replace(table, 1, 11)));
        assert_eq!(hooked(cx.read(table, 1, |row| *row)), Some(11));
        assert_eq!(hooked(cx.update(table, 1, 5, |row, more| *row += more)), Some(()));
        hooked(cx.commute(table, 1, 4, |row, more| *row += more));
        let all = KeyRange::from(0..=9);
        let sum = |sum: &mut u64, _: &u64, row: &u64| {
            *sum += row;
            ControlFlow::Continue(())
        };
        assert_eq!(hooked(cx.scan(table, all, Direction::Ascending, 0, sum)), 40);
        let tens = KeyRange::from(10..=10);
        assert_eq!(hooked(cx.scan_index(index, tens, Direction::Ascending, 0, sum)), 3);
        assert!(hooked(cx.delete(table, 2)));
        let add = |sum: &mut u64, row: &mut u64, more: u64| *sum += *row + more;
        assert_eq!(hooked(cx.update_each(table, Some(1), 5, 0, add)), 25);
        assert_eq!(hooked(cx.take_first(table, 0, KeyRange::from(0..=9))), Some(1));
        Ok(())
    });
    committed.expect("no other transaction conflicts");
    assert!(CALLS.take() == 0, "no call before the commit");
}
