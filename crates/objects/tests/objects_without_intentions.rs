//! Objects that have no deferred operations (legacy objects, drp §3 and §4.1) in the transactions of others that have: a
//! place in line like everybody, held until the commit.

use hotrow_core::{Abort, Counter, Engine, Protocol, RetryPolicy, SingleSegment, Transaction};
use hotrow_objects::TBox;
use hotrow_protocols::{Any, PROTOCOLS};
use hotrow_sync::thread;

/// A register as one would have written it before there was anything deferred.
struct Register<P: Protocol>(SingleSegment<u64, P>);

impl<P: Protocol> Register<P> {
    fn new(engine: &Engine<P>) -> Self {
        Self(SingleSegment::new(engine, "register", 0))
    }

    fn get(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        self.0.enter(tx)?.read(|value| *value)
    }

    fn set(&self, tx: &mut Transaction<'_, P>, value: u64) -> Result<(), Abort> {
        self.0.enter(tx)?.write(value)
    }
}

const ROUNDS: u64 = 400;

#[test]
fn their_writes_and_deferred_operations_elsewhere_commit_together() {
    for protocol in PROTOCOLS.iter().filter(|protocol| protocol.defers) {
        let engine = Engine::<Any>::named(protocol.name, RetryPolicy::default()).unwrap();
        let (register, boxed) = (Register::new(&engine), TBox::new(&engine, 0u64));
        thread::scope(|scope| {
            for number in 1..=3 {
                let (engine, register, boxed) = (&engine, &register, &boxed);
                scope.spawn(move || {
                    let mut worker = engine.worker().unwrap();
                    for round in 0..ROUNDS {
                        let value = round * 10 + number;
                        let written = worker.transact(|tx| {
                            // In both orders: the register has no rank of its own.
                            if number == 1 {
                                register.set(tx, value)?;
                            }
                            boxed.defer_set(tx, value)?;
                            register.set(tx, value)
                        });
                        assert_eq!(written, Ok(()));
                    }
                });
            }
            let mut worker = engine.worker().unwrap();
            for _ in 0..ROUNDS {
                let [old, new] = worker
                    .transact(|tx| {
                        let old = register.get(tx)?;
                        Ok([old, boxed.get(tx)?])
                    })
                    .unwrap();
                assert_eq!(old, new, "{}: half of a transaction", protocol.name);
                // Wild, as it has read; and then it defers.
                worker
                    .transact(|tx| {
                        let value = register.get(tx)? + 10;
                        register.set(tx, value)?;
                        boxed.defer_update(tx, (), move |boxed, ()| *boxed += 10).map(drop)
                    })
                    .unwrap();
            }
        });
        let ends = engine.transact(|tx| Ok((register.get(tx)?, boxed.get(tx)?))).unwrap();
        assert_eq!(ends.0, ends.1, "{}", protocol.name);
        let statistics = engine.statistics();
        let tame = (statistics.count(&Counter::TAME_COMMITS), statistics.count(&Counter::TAME_ABORTS));
        assert_eq!(tame.1, 0, "{}", protocol.name);
        if ["tame", "deferred-2pl"].iter().any(|always_defers| protocol.name.contains(always_defers)) {
            assert_eq!(tame.0, 3 * ROUNDS, "{}", protocol.name);
        }
    }
}
