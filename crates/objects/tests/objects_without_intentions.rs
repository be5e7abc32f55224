//! Objects that have no deferred operations (legacy objects, drp §3 and §4.1) in the transactions of others that have: a
//! place in line like everybody, held until the commit.

use hotrow_core::{
    Abort, Counter, Engine, EpochBox, Item, Object, ObjectMeta, Pin, Protocol, RetryPolicy, SavedWrite,
    Saver, Segment, Transaction, Variants as _,
};
use hotrow_objects::TBox;
use hotrow_protocols::Drp;
use hotrow_sync::thread;
use std::ptr::NonNull;

/// A register as one would have written it before there was anything deferred.
struct Register<P: Protocol>(EpochBox<Shared<P>>);

#[repr(C)]
struct Shared<P: Protocol> {
    segment: Segment<u64, P>,
    meta: ObjectMeta,
}

impl<P: Protocol> Register<P> {
    fn new(engine: &Engine<P>) -> Self {
        let meta = ObjectMeta::new(engine.id(), "register");
        Self(EpochBox::new(Shared { segment: Segment::new(0), meta }))
    }

    fn get(&self, tx: &mut Transaction<'_, P>) -> Result<u64, Abort> {
        let tx = tx.enter(&self.0.meta)?;
        // SAFETY: the segment is the register's, which passes `install` and `undo` on to `Segment`; both live in an
        // `EpochBox`; `enter` was called.
        unsafe { self.0.segment.read(tx, &*self.0, |value| *value) }
    }

    fn set(&self, tx: &mut Transaction<'_, P>, value: u64) -> Result<(), Abort> {
        let tx = tx.enter(&self.0.meta)?;
        // SAFETY: as in `get`.
        unsafe { self.0.segment.write(tx, &*self.0, value) }
    }
}

// SAFETY: all items are for the one segment and were made by `Segment`'s operations, whose `install` and `undo` consume
// the payload; the shared state is in an `EpochBox`; operations call `enter`.
unsafe impl<P: Protocol> Object<P> for Shared<P> {
    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    unsafe fn describe(&self, _: NonNull<P::Header>) -> String {
        String::from("value")
    }

    unsafe fn identify(&self, _: NonNull<P::Header>) -> u64 {
        0
    }

    unsafe fn install(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<u64, P>::install(item, pin) };
    }

    unsafe fn undo(&self, item: &mut Item<P>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<u64, P>::undo(item, pin) };
    }

    unsafe fn save(&self, item: &Item<P>, saver: &Saver<'_, P>) -> SavedWrite {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<u64, P>::save(item, saver) }
    }

    unsafe fn restore(&self, item: &mut Item<P>, saved: Option<SavedWrite>, pin: &Pin) {
        // SAFETY: the caller's promise, passed on.
        unsafe { Segment::<u64, P>::restore(item, saved, pin) };
    }
}

const ROUNDS: u64 = 400;

#[test]
fn their_writes_and_deferred_operations_elsewhere_commit_together() {
    for variant in Drp::VARIANTS {
        let engine = Engine::<Drp>::named(variant.name, RetryPolicy::default()).unwrap();
        let (register, boxed) = (Register::new(&engine), TBox::new(&engine, 0u64));
        thread::scope(|scope| {
            for number in 1..=3 {
                let (engine, register, boxed) = (&engine, &register, &boxed);
                scope.spawn(move || {
                    let mut worker = engine.worker().unwrap();
                    for round in 0..ROUNDS {
                        let value = round * 10 + number;
                        let written = worker.run(|tx| {
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
                    .run(|tx| {
                        let old = register.get(tx)?;
                        Ok([old, boxed.get(tx)?])
                    })
                    .unwrap();
                assert_eq!(old, new, "{}: half of a transaction", variant.name);
                // Wild, as it has read; and then it defers.
                worker
                    .run(|tx| {
                        let value = register.get(tx)? + 10;
                        register.set(tx, value)?;
                        boxed.defer_update(tx, (), move |boxed, ()| *boxed += 10).map(drop)
                    })
                    .unwrap();
            }
        });
        let ends = engine.run(|tx| Ok((register.get(tx)?, boxed.get(tx)?))).unwrap();
        assert_eq!(ends.0, ends.1, "{}", variant.name);
        let statistics = engine.statistics();
        let tame = (statistics.count(&Counter::TAME_COMMITS), statistics.count(&Counter::TAME_ABORTS));
        assert_eq!(tame.1, 0, "{}", variant.name);
        if ["tame", "deferred-2pl"].iter().any(|always_defers| variant.name.contains(always_defers)) {
            assert_eq!(tame.0, 3 * ROUNDS, "{}", variant.name);
        }
    }
}
