use super::*;
use crate::clock;
use std::time::Duration;

#[test]
fn regions_commit_or_abort_where_they_are_available_and_are_refused_elsewhere() {
    let mut ran = 0;
    let result = run(|| {
        ran += 1;
        7
    });
    if is_available() {
        assert!(matches!(result, Ok(7) | Err(Abort::System | Abort::Conflict | Abort::Capacity)));
        assert_eq!(run(abort::<9>), Err(Abort::Explicit(9)));
    } else {
        assert_eq!((result, ran), (Err(Abort::Unavailable), 0));
        // An instruction that the processor does not have would end the process.
        abort::<9>();
    }
}

/// Asks again what is asked once in a process.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_processor_without_regions_is_found_out_in_microseconds() {
    let mut shortest = Duration::MAX;
    for _ in 0..100 {
        let begin = clock::now();
        let found = rtm::probe();
        shortest = shortest.min(begin.elapsed());
        assert!(!found || std::is_x86_feature_detected!("rtm"));
    }
    // The shortest of many, because the machine may be busy. 64 aborts take some ten microseconds.
    assert!(shortest < Duration::from_micros(100), "{shortest:?}");
}

#[cfg(feature = "sim")]
mod simulated {
    use super::*;
    use crate::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
    use hotrow_sim::{Config, Machine, Simulation, SimulationReport};
    use std::ptr::null_mut;

    fn simulate<R>(machine: &str, cores: usize, body: impl Fn(usize) -> R) -> SimulationReport<R> {
        let mut config = Config::new(Machine::named(machine).unwrap(), cores);
        if let Some(transactions) = &mut config.machine.transactions {
            transactions.system_aborts_per_s = 0.0;
        }
        Simulation::new(config).unwrap().run(body)
    }

    #[test]
    fn words_of_all_kinds_are_as_before_after_an_abort() {
        let (small, large, pointer) = (AtomicU8::new(1), AtomicU64::new(1), AtomicPtr::new(null_mut::<u8>()));
        let change = || {
            small.fetch_add(1, Ordering::Relaxed);
            large.store(2, Ordering::Relaxed);
            large.compare_exchange(2, 3, Ordering::Relaxed, Ordering::Relaxed).unwrap();
            pointer.swap(std::ptr::dangling_mut(), Ordering::Relaxed);
        };
        let words = || {
            (small.load(Ordering::Relaxed), large.load(Ordering::Relaxed), pointer.load(Ordering::Relaxed))
        };
        simulate("dbx-tc", 1, |_| {
            assert!(is_available());
            let aborted = run(|| {
                change();
                abort::<3>();
            });
            assert_eq!((aborted, words()), (Err(Abort::Explicit(3)), (1, 1, null_mut())));
            assert_eq!(run(change), Ok(()));
            assert_eq!(words(), (2, 3, std::ptr::dangling_mut()));
        });
    }

    #[test]
    fn a_region_is_aborted_at_each_of_its_steps_in_turn_and_leaves_nothing() {
        let mut aborted = 0;
        for step in 0.. {
            let words: Vec<AtomicU64> = (0..5).map(|_| AtomicU64::new(0)).collect();
            let mut config = Config::new(Machine::named("dbx-tc").unwrap(), 1);
            config.region_abort_at = Some(step);
            let outcome = Simulation::new(config).unwrap().run(|_| {
                let change = || words.iter().for_each(|word| word.store(1, Ordering::Relaxed));
                let result = run(change);
                let is_done = words.iter().map(|word| word.load(Ordering::Relaxed)).sum::<u64>();
                assert_eq!(is_done, if result.is_ok() { 5 } else { 0 });
                while run(change).is_err() {}
                result
            });
            assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 1));
            match outcome.results[0] {
                Some(Err(Abort::System)) => aborted += 1,
                result => {
                    assert_eq!(result, Some(Ok(())));
                    // Five stores and the commit. A region that was not aborted was aborted by no step.
                    assert_eq!((aborted, step), (6, 6));
                    break;
                }
            }
        }
    }

    #[test]
    fn a_panic_undoes_the_region_and_does_not_leave_it() {
        let word = AtomicU64::new(0);
        simulate("dbx-tc", 1, |_| {
            let result: Result<(), Abort> = run(|| {
                word.store(1, Ordering::Relaxed);
                std::panic::resume_unwind(Box::new(1));
            });
            assert_eq!((result, word.load(Ordering::Relaxed)), (Err(Abort::Panicked), 0));
        });
    }

    #[test]
    fn machines_without_regions_say_so() {
        simulate("drp", 1, |_| {
            assert!(!is_available());
            assert_eq!(run(|| ()), Err(Abort::Unavailable));
        });
    }
}
