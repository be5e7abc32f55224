//! Numbers that no two transactions share, and for which none waits.

use crate::support::{self, for_each_concurrent_protocol, for_each_protocol, on_threads, overtake};
use hotrow::{Abort, Database, Engine, Protocol, Sequence};

#[test]
fn threads_draw_different_numbers_and_gaps_come_of_rollbacks_only() {
    for_each_protocol!(2, |P| {
        let engine = support::engine::<P>();
        let numbers = Sequence::starting_at(&engine, "numbers", 100);
        let rows = Database::on(&engine).table::<u64, u64>("rows").create().unwrap();
        let drawn = on_threads(&engine, 2, |thread, worker| {
            let mut drawn = Vec::new();
            for round in 0..200 {
                let mut last = 0;
                let ended = worker.transact(|tx| {
                    last = numbers.next(tx);
                    rows.insert(tx, last, thread)?;
                    if round % 4 == 3 { Err(Abort::rollback()) } else { Ok(last) }
                });
                assert_eq!(ended.is_err(), round % 4 == 3);
                drawn.extend(ended);
            }
            assert!(drawn.is_sorted_by(|first, second| first < second), "a thread's numbers ascend");
            drawn
        });
        let mut drawn = drawn.concat();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 300, "no key existed, and no number was drawn twice");
        assert!(drawn[0] >= 100);
        // Each number went to one attempt.
        let statistics = engine.statistics();
        let attempts = statistics.commits + statistics.rollbacks + statistics.aborts;
        assert_eq!(next_of(&engine, &numbers), 100 + attempts);
    });
}

fn next_of<P: Protocol>(engine: &Engine<P>, numbers: &Sequence) -> u64 {
    engine.transact(|tx| Ok(numbers.next(tx))).unwrap()
}

#[test]
fn a_number_that_an_open_transaction_has_drawn_holds_nobody_off() {
    for_each_concurrent_protocol!(2, |P| {
        let engine = support::impatient::<P>();
        let numbers = Sequence::starting_at(&engine, "numbers", 1);
        let drawn = engine.transact(|tx| {
            let first = numbers.next(tx);
            assert!(overtake(&engine, |tx| {
                assert_eq!(numbers.next(tx), 2);
                Ok(())
            }));
            Ok((first, numbers.next(tx)))
        });
        assert_eq!(drawn, Ok((1, 3)));
        assert_eq!(engine.statistics().aborts, 0);
    });
}
