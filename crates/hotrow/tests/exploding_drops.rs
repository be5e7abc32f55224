//! Drops that panic. In a process of its own, since retired values are dropped by whoever passes by.

mod support;

use hotrow::sync::Arc;
use hotrow::sync::atomic::{AtomicBool, Ordering};
use hotrow::{Engine, TBox, Table, Value};
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
        let engine = Engine::<P>::new();
        let armed = Arc::new(AtomicBool::new(false));
        let table = Table::<u64, Explosive, P>::hash(&engine, "rows", 10);
        let count = TBox::new(&engine, 0u64);
        table.load(1, Explosive { armed: armed.clone() });
        let (mut counted, mut exploded) = (0, 0);
        for round in 0..2_000 {
            let row = Explosive { armed: armed.clone() };
            armed.store(round % 10 == 9, Ordering::SeqCst);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                engine.run(|tx| {
                    table.upsert(tx, 1, row.clone())?;
                    count.update(tx, |n| *n += 1)
                })
            }));
            armed.store(false, Ordering::SeqCst);
            exploded += u64::from(result.is_err());
            counted = engine.run(|tx| count.get(tx)).unwrap();
            assert!(counted + exploded > round && counted <= round + 1);
        }
        assert!(counted >= 1_800, "{counted}");
    });
}
