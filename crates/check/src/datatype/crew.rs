//! Transactions that run at the same time, again and again until they commit: on threads, or where the caller has them run.

use super::concurrent::{WITNESS, choose, describe_all, state};
use super::serial::{Course, is_serial};
use super::{Datatype, one_of};
use hotrow_core::{Engine, Protocol, SingleSegment, Worker};
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::random::Random;
use hotrow_sync::thread;

/// Number of workers of a crew.
pub(super) const CREW: usize = 3;

/// Transactions of each worker in a round.
const PER_WORKER: usize = 2;

/// The courses of one worker's transactions, by round.
pub(super) type ByRound<D> = Vec<Vec<Course<D>>>;

/// Runs rounds of transactions, each round on an object of its own, and judges each. `run` has each worker of the crew do
/// its part, which it is given, and returns what came of it, by worker.
///
/// # Panics
///
/// If no serial order explains a round.
pub(super) fn rounds<D: Datatype, P: Protocol>(
    engine: &Engine<P>,
    variant: &str,
    (rounds, seed): (u32, u64),
    run: impl FnOnce(&(dyn Fn(usize, &mut Worker<P>) -> ByRound<D> + Sync)) -> Vec<ByRound<D>>,
) {
    let (operations, states) = (D::operations(), D::states());
    let mut choices = Random::seeded(seed);
    let rounds: Vec<_> = (0..rounds)
        .map(|_| {
            let before = one_of(&mut choices, &states).clone();
            (D::make(engine, &before), SingleSegment::new(engine, "witness", 0), before)
        })
        .collect();
    let clock = AtomicU64::new(0);
    let now = || clock.fetch_add(1, Ordering::SeqCst);
    let by_worker = run(&|number, worker| {
        let mut random = Random::stream(seed, number as u64);
        rounds
            .iter()
            .map(|(object, witness, _)| {
                let one = |_| course::<D, P>(worker, (object, witness), &operations, &mut random, &now);
                (0..PER_WORKER).map(one).collect()
            })
            .collect()
    });
    let mut of_workers: Vec<_> = by_worker.into_iter().map(Vec::into_iter).collect();
    let mut worker = engine.worker().expect("the crew has ended");
    for (object, witness, before) in rounds {
        let courses: Vec<_> = of_workers.iter_mut().filter_map(Iterator::next).flatten().collect();
        let before = (before, 0);
        let after = state::<D, P>(&mut worker, &object, &witness);
        let committed: Vec<_> = (0..courses.len()).filter(|number| courses[*number].is_committed).collect();
        assert!(
            is_serial(&courses, &committed, engine.is_strict(), &before, &after),
            "no serial order explains {variant}: {}",
            describe_all(&courses, &before, &after)
        );
    }
}

/// Runs transactions on threads.
pub(super) fn threads<D: Datatype, P: Protocol>(
    engine: &Engine<P>,
    variant: &str,
    rounds_and_seed: (u32, u64),
) {
    rounds::<D, P>(engine, variant, rounds_and_seed, |part| {
        thread::scope(|scope| {
            let start = |number| scope.spawn(move || part(number, &mut engine.worker().expect("a worker")));
            let threads: Vec<_> = (0..CREW).map(start).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    });
}

/// Runs one transaction until it commits or rolls back.
fn course<D: Datatype, P: Protocol>(
    worker: &mut Worker<P>,
    (object, witness): (&D::Object<P>, &SingleSegment<u64, P>),
    operations: &[D::Operation],
    random: &mut Random,
    now: &impl Fn() -> u64,
) -> Course<D> {
    let steps = 1 + random.below(3);
    let with_witness = random.chance(WITNESS.0);
    let program = choose::<D>(random, operations, steps, with_witness);
    let rolls_back = random.chance(0.1);
    let began = now();
    let mut done = Vec::new();
    let result = worker.transact(|tx| {
        done.clear();
        for step in &program {
            done.push((step.clone(), step.run(object, witness, tx)?));
            thread::yield_now();
        }
        if rolls_back { Err(hotrow_core::Abort::because("rolled back")) } else { Ok(()) }
    });
    assert_eq!(result.is_err(), rolls_back, "{result:?}");
    Course { done, is_committed: !rolls_back, began, ended: now() }
}
