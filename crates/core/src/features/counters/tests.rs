use super::*;
use crate::kernel::statistics::{CounterValue, NamedCounters, NamedCounts};
use crate::testing::Unprotected;

/// All counters of the capabilities, whatever the protocol.
fn all() -> Named {
    let mut all = [None; COUNTERS_MAX];
    for (place, counter) in lists::<Unprotected>().into_iter().flatten().enumerate() {
        all[place] = Some(counter);
    }
    all
}

const OWN: CounterPlace = const { Counter::OWN_OPERATIONS.place::<Unprotected>() };
const STOLEN: CounterPlace = const { Counter::STOLEN_OPERATIONS.place::<Unprotected>() };
const STOLEN_US: CounterPlace = const { Counter::STOLEN_MEAN_US.place::<Unprotected>() };

fn value(counts: &NamedCounts, name: &str) -> CounterValue {
    counts.iter().find(|(counter, _)| counter.name() == name).expect("named").1
}

#[test]
fn counters_have_names_and_places_of_their_own() {
    let names: Vec<_> = all().iter().flatten().map(|counter| counter.name()).collect();
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    assert!(names.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')));
}

#[test]
fn shares_and_means_come_from_counts_and_durations() {
    let counters = NamedCounters::default();
    let none = counters.read(&all());
    assert_eq!(value(&none, "stolen_share"), CounterValue::Share(None));
    assert_eq!(value(&none, "stolen_mean_us"), CounterValue::MeanUs(None));
    for _ in 0..7 {
        counters.count(OWN);
    }
    for _ in 0..25 {
        counters.count(STOLEN);
    }
    for _ in 0..4 {
        counters.measure(STOLEN_US, 3_360);
    }
    let counts = counters.read(&all());
    assert_eq!(counts.count(&Counter::STOLEN_OPERATIONS), 25);
    assert_eq!(value(&counts, "own_operations"), CounterValue::Count(7));
    assert_eq!(value(&counts, "stolen_share"), CounterValue::Share(Some(25.0 / 32.0)));
    assert_eq!(value(&counts, "stolen_mean_us"), CounterValue::MeanUs(Some(3.36)));
    assert_eq!(value(&counts, "own_mean_us"), CounterValue::MeanUs(None));
    let mut twice = none;
    twice += counts;
    twice += counts;
    assert_eq!(twice - counts, counts);
}

#[test]
fn a_protocol_shows_only_counters_of_capabilities_that_it_has() {
    let counters = NamedCounters::default();
    counters.count(OWN);
    let counts = counters.read(&named(&Unprotected));
    assert_eq!(counts.iter().count(), 0);
    assert_eq!(counts.count(&Counter::OWN_OPERATIONS), 0);
}
