//! Wild transactions that line up early under the protocols that defer operations, for what an attempt before has touched (drp §4, §4.2), in many schedules on
//! virtual cores.

use crate::simulated::pipeline::{SCHEDULES, Tx, add, boxes, deferring, engine, simulate};
use hotrow::operations::Constant;
use hotrow::{Abort, Any, Database, TBox};

/// Longest stop of a core: long enough for others to park.
const STOP_NS_MAX: u64 = 1_000_000;

/// Adds at once, and so makes the transaction wild.
fn add_now(to: &TBox<u64, Any>, tx: &mut Tx<'_>, amount: u64) -> Result<u64, Abort> {
    let value = to.get(tx)?;
    to.set(tx, value + amount)?;
    Ok(value)
}

#[test]
fn wild_and_tame_transactions_in_all_orders_of_ranks_do_not_wait_in_a_circle() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES / 15 {
            let engine = engine(&format!("{}+early", protocol.name));
            let [x, y, z] = boxes(&engine);
            simulate(&engine, 4, seed, STOP_NS_MAX, |core, worker| {
                for _ in 0..3 {
                    let ended = match core {
                        0 => worker
                            .transact(|tx| add_now(&x, tx, 1).and_then(|_| add_now(&z, tx, 1)).map(drop)),
                        1 => worker
                            .transact(|tx| add_now(&z, tx, 1).and_then(|_| add_now(&x, tx, 1)).map(drop)),
                        2 => worker.transact(|tx| add(&x, tx, 1).and_then(|()| add(&z, tx, 1))),
                        // It reads one at once, and defers the others.
                        _ => worker.transact(|tx| {
                            let seen = add_now(&y, tx, 1)?;
                            add(&z, tx, 1)?;
                            if seen > 0 { add(&x, tx, 1) } else { add_now(&x, tx, 1).map(drop) }
                        }),
                    };
                    assert_eq!(ended, Ok(()), "{protocol:?}, schedule {seed}");
                }
            });
            let values = engine.transact(|tx| Ok([x.get(tx)?, y.get(tx)?, z.get(tx)?]));
            assert_eq!(values, Ok([12, 3, 12]), "{protocol:?}, schedule {seed}");
        }
    }
}

#[test]
fn a_wild_transaction_loses_no_more_often_than_it_has_operations_though_others_are_always_in_line() {
    const WILD: u64 = 4;
    for protocol in deferring() {
        for seed in 0..SCHEDULES / 30 {
            let engine = engine(&format!("{}+early", protocol.name));
            let [x, y] = boxes(&engine);
            // Until somebody has left a line, nobody joins it in its body: its segment may be new.
            assert_eq!(
                engine.transact(|tx| add_now(&x, tx, 0).and_then(|_| add_now(&y, tx, 0)).map(drop)),
                Ok(())
            );
            simulate(&engine, 5, seed, STOP_NS_MAX, |core, worker| {
                if core == 0 {
                    for _ in 0..WILD {
                        // Against the order of ranks.
                        let ended = worker
                            .transact(|tx| add_now(&y, tx, 1).and_then(|_| add_now(&x, tx, 1)).map(drop));
                        assert_eq!(ended, Ok(()));
                    }
                } else {
                    for _ in 0..12 {
                        let ended = worker.transact(|tx| add(&x, tx, 1).and_then(|()| add(&y, tx, 1)));
                        assert_eq!(ended, Ok(()));
                    }
                }
            });
            // Tame ones may lose once each where they run at once, which they do not here.
            let aborts = engine.statistics().aborts;
            // Without scouts, each segment may cost an attempt when it is read and another one when it is written.
            let of_each = if engine.is_opaque() { 4 } else { 2 };
            assert!(aborts <= of_each * WILD, "{protocol:?}, schedule {seed}: {aborts} aborts");
            let values = engine.transact(|tx| Ok([x.get(tx)?, y.get(tx)?]));
            assert_eq!(values, Ok([48 + WILD; 2]), "{protocol:?}, schedule {seed}");
        }
    }
}

#[test]
fn insertions_of_a_scout_leave_nothing_behind() {
    for protocol in deferring() {
        for seed in 0..SCHEDULES / 30 {
            let engine = engine(&format!("{}+early", protocol.name));
            let database = Database::on(&engine);
            let rows = database.table::<u64, u64>("rows").rank(1).queues(|_| 0).create().unwrap();
            let mut next = TBox::<u64, Any>::new(&engine, 0);
            next.set_rank(2);
            simulate(&engine, 5, seed, STOP_NS_MAX, |core, worker| {
                for _ in 0..4 {
                    let inserted = if core < 2 {
                        worker.transact(|tx| {
                            let key = add_now(&next, tx, 1)?;
                            rows.insert_if_absent(tx, key, core as u64)
                        })
                    } else {
                        worker.transact_deferred(|tx| {
                            let key = next.defer_update(tx, (), |next, ()| {
                                *next += 1;
                                *next - 1
                            })?;
                            rows.defer_insert_grouped(tx, 0, key, Constant(core as u64))
                        })
                    };
                    assert_eq!(inserted, Ok(true), "{protocol:?}, schedule {seed}");
                }
            });
            let keys = engine.transact(|tx| {
                let mut keys = Vec::new();
                rows.scan(tx, .., hotrow::Direction::Ascending, |key, _| {
                    keys.push(*key);
                    std::ops::ControlFlow::Continue(())
                })?;
                Ok(keys)
            });
            assert_eq!(keys, Ok((0..20).collect()), "{protocol:?}, schedule {seed}");
        }
    }
}
