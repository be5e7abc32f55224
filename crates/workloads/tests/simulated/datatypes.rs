//! Every datatype in explored schedules, beside its model.

use crate::models::*;
use hotrow::object::{Commuting, CommutingSegment};
use hotrow::{Abort, Engine, Protocol, Transaction};
use hotrow_check::datatype::{Datatype, explore_datatype};
use std::ops::Range;
use std::panic::catch_unwind;

fn explore<D: Datatype>(seeds: Range<u64>) {
    let schedules = seeds.end - seeds.start;
    let aborts = explore_datatype::<D>(seeds);
    println!("attempts lost in {schedules} schedules: {aborts:?}");
    assert!(
        aborts.iter().any(|(_, aborts)| *aborts > schedules / 8),
        "schedules without conflicts: {aborts:?}"
    );
}

macro_rules! explored {
    ($($name:ident: $model:ty,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn has_a_serial_order_in_every_schedule() {
                explore::<$model>(0..50);
            }

            #[test]
            #[ignore = "long: run with -- --ignored"]
            fn has_a_serial_order_in_every_schedule_of_many() {
                explore::<$model>(0..10_000);
            }
        })*
    };
}

for_each_model!(explored);

/// Units of which each transaction takes one if there is one. It may forget that there has to be one still at its commit.
struct Units<const FORGETS: bool>;

impl<const FORGETS: bool> Commuting for Units<FORGETS> {
    type Value = i64;
    type Change = i64;
    /// The least and the greatest number of units for which it holds.
    type Condition = (i64, i64);

    fn holds(&self, condition: &(i64, i64), _: Option<&i64>, units: &i64) -> bool {
        FORGETS || *condition == (0, 0) || (condition.0..=condition.1).contains(units)
    }

    fn apply(&self, change: i64, units: &mut i64) {
        *units += change;
    }
}

impl<const FORGETS: bool> Datatype for Units<FORGETS> {
    type Model = i64;
    type Operation = ();
    type Output = bool;
    type Object<P: Protocol> = CommutingSegment<Self, P>;

    fn states() -> Vec<i64> {
        vec![2, 3]
    }

    fn operations() -> Vec<()> {
        vec![()]
    }

    fn apply(units: &mut i64, (): &()) -> bool {
        let is_there = *units > 0;
        *units -= i64::from(is_there);
        is_there
    }

    fn make<P: Protocol>(engine: &Engine<P>, units: &i64) -> Self::Object<P> {
        CommutingSegment::of(engine, "units", Self, *units)
    }

    fn operate<P: Protocol>(
        object: &Self::Object<P>,
        tx: &mut Transaction<'_, P>,
        (): &(),
    ) -> Result<bool, Abort> {
        let look = |seen: hotrow::object::Seen<'_, Self>| (*seen.value, seen.change.copied().unwrap_or(0));
        let is_there = object.enter(tx)?.test(look, |(units, own), condition| {
            let is_there = units + own > 0;
            let (least, most) = if *condition == (0, 0) { (i64::MIN, i64::MAX) } else { *condition };
            *condition = if is_there { (least.max(1 - own), most) } else { (least, most.min(-own)) };
            is_there
        })?;
        if is_there {
            object.enter(tx)?.change(|change| *change -= 1)?;
        }
        Ok(is_there)
    }

    fn state<P: Protocol>(object: &Self::Object<P>, tx: &mut Transaction<'_, P>) -> Result<i64, Abort> {
        object.enter(tx)?.read(|seen| *seen.value + seen.change.copied().unwrap_or_default())
    }
}

#[test]
fn a_condition_that_is_forgotten_is_found() {
    explore::<Units<false>>(0..50);
    let panic = catch_unwind(|| explore::<Units<true>>(0..50)).expect_err("it is found");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert!(message.starts_with("no serial order explains occ, seed "), "{message}");
}
