//! Opacity, by example: an attempt that must abort may have seen a state that never was.

use hotrow::history::History;
use hotrow::{Any, Engine, Occ, Protocol, RetryPolicy, TBox};

/// Two accounts of which one is always the other's double. An attempt reads the first, another transaction
/// changes both, the attempt reads the second, and then it has to end.
fn overtaken_reader<P: Protocol>(protocol: &str) -> (Option<(u64, u64)>, History) {
    let engine = Engine::<P>::named(protocol, RetryPolicy::default()).unwrap();
    let single = TBox::named(&engine, "single", 1u64);
    let double = TBox::named(&engine, "double", 2u64);
    let recording = engine.record_history(1 << 20).unwrap();
    let (mut reader, mut writer) = (engine.worker().unwrap(), engine.worker().unwrap());
    let mut reading = reader.begin();
    let first = single.get(&mut reading).unwrap();
    writer
        .transact(|tx| {
            single.set(tx, 5)?;
            double.set(tx, 10)
        })
        .unwrap();
    let second = double.get(&mut reading);
    assert!(reading.commit().is_err(), "it cannot commit on what it has seen");
    (second.ok().map(|second| (first, second)), recording.finish())
}

#[test]
fn occ_lets_an_attempt_that_will_abort_see_two_states() {
    let (seen, history) = overtaken_reader::<Occ>("occ");
    assert_eq!(seen, Some((1, 10)), "ten is not twice one");
    let report = hotrow_check::check(&history).unwrap();
    assert!(report.strictly_serializable, "{report}");
    assert!(!report.opaque, "{report}");
    let words = report.to_string();
    println!("{words}");
    for part in ["single[value]", "double[value]"] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn tl2_stops_such_an_attempt_before_it_sees_the_second() {
    let (seen, history) = overtaken_reader::<Any>("tl2");
    assert_eq!(seen, None);
    let report = hotrow_check::check(&history).unwrap();
    assert!(report.opaque, "{report}");
}
