//! Explored schedules in which operations are stolen.
use hotrow::protocols::{Any, PROTOCOLS};
use hotrow_workloads::explore::{Drawn, Explored, explore};

#[test]
fn explored_schedules_steal_and_break_no_promise() {
    for name in PROTOCOLS.iter().filter(|protocol| protocol.steals).map(|protocol| protocol.name) {
        let (mut sum, mut with_stolen) = (Explored::default(), 0);
        for seed in 0..1_000 {
            match explore::<Any>(&Drawn::new(seed, 100), name, 100, |_| ()) {
                Ok(explored) => {
                    with_stolen += u64::from(explored.stolen > 0);
                    sum.add(&explored);
                }
                Err(violation) => panic!("{name}: {violation}\n{:#?}", violation.drawn),
            }
        }
        assert!(with_stolen > 50, "{name}: in {with_stolen} schedules something was stolen: {sum:?}");
    }
}
