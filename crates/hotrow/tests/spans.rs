//! Rows that come and go elsewhere in a table are in nobody's way, under `ic3`.

mod gate;

use gate::{Gate, until};
use hotrow::chopping::Chopping;
use hotrow::sync::atomic::Ordering;
use hotrow::sync::{Arc, thread};
use hotrow::{Any, Context, Counter, Database, KeyRange, Operations, Procedure, Procedures, Table, TableRef};

/// Inserts a row, or takes the first one, and then counts it. Waits in between at a gate.
struct Step {
    rows: TableRef<u64, u64>,
    count: TableRef<u64, u64>,
    /// `None` takes the first row.
    inserts: Option<u64>,
    gate: Arc<Gate>,
}

impl Procedure for Step {
    /// The key of the row taken.
    type Output = Option<u64>;

    fn name(&self) -> &'static str {
        if self.inserts.is_some() { "append" } else { "take" }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Option<u64>>, C::Stop> {
        let taken = if let Some(key) = self.inserts {
            let (at, row) = (cx.value(key), cx.value(key));
            let is_new = cx.insert(self.rows, at, row)?;
            cx.map(is_new, |_| None)
        } else {
            let range = cx.value(KeyRange::from(0..=100));
            cx.take_first(self.rows, 0, range)?
        };
        let (at, gate) = (cx.value(u64::from(self.inserts.is_some())), self.gate.clone());
        cx.update(self.count, at, taken.clone(), move |count, _| {
            gate.wait();
            *count += 1;
        })?;
        Ok(taken)
    }
}

#[test]
fn whoever_takes_the_first_row_comes_after_insertions_up_to_it_and_not_after_others() {
    let db: Database<Any> = Database::builder().protocol("ic3").open().unwrap();
    let table = |name: &str| -> Table<u64, u64, Any> { db.table(name).ordered().create().unwrap() };
    let (rows, count) = (table("rows"), table("count"));
    rows.bulk_insert([10, 20].map(|key| (key, key))).unwrap();
    count.bulk_insert([0, 1].map(|key| (key, 0))).unwrap();
    let step = |inserts, is_open| {
        let gate = if is_open { Gate::open() } else { Gate::new() };
        Step { rows: rows.reference(), count: count.reference(), inserts, gate }
    };
    let trace = |inserts| [db.trace(&step(inserts, true)).unwrap()];
    let chopping = Chopping::new().procedure("append", trace(Some(1))).procedure("take", trace(None));
    assert!(chopping.rank().unwrap().procedures.iter().all(|procedure| procedure.pieces.len() == 2));
    db.chop(&chopping).unwrap();

    let dependencies = || db.statistics().count(&Counter::DEPENDENCIES);
    // The first step goes on when the second has met it or has ended. Then: the row taken, and whether they have met.
    for (first, second, taken, has_met) in [
        (Some(30), None, 10, false),
        (Some(5), None, 5, true),
        (None, Some(40), 20, false),
        (None, Some(25), 30, true),
    ] {
        let before = dependencies();
        let (first, second) = (step(first, false), step(second, true));
        let (first_taken, second_taken) = thread::scope(|scope| {
            let one = scope.spawn(|| db.execute(&first).unwrap());
            until(|| first.gate.arrived.load(Ordering::SeqCst));
            let other = scope.spawn(|| db.execute(&second).unwrap());
            until(|| other.is_finished() || dependencies() > before);
            first.gate.open.store(true, Ordering::SeqCst);
            (one.join().unwrap(), other.join().unwrap())
        });
        assert_eq!(first_taken.or(second_taken), Some(taken));
        assert_eq!(dependencies() - before, u64::from(has_met), "{taken}");
    }
}
