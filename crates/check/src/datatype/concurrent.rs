//! Transactions whose steps are taken by turns, on one thread.

use super::serial::{Course, Models, Step, is_serial};
use super::{Datatype, Effort, one_of};
use hotrow_core::{Engine, OpenTransaction, Protocol, RetryPolicy, SingleSegment, Worker};
use hotrow_sync::random::Random;
use std::time::Duration;

/// The steps of a transaction.
pub(super) type Program<D> = Vec<Step<D>>;

/// The chance that the witness takes part, and then that of each step to be of it.
pub(super) const WITNESS: (f64, f64) = (0.3, 0.4);

/// For each combination, the number of transactions that run within another one, for each of two kinds of that.
const WITHIN_EACH: u32 = 5;

/// The chance of an operation to be undone.
const UNDONE: f64 = 0.12;

/// Chooses steps.
pub(super) fn choose<D: Datatype>(
    random: &mut Random,
    operations: &[D::Operation],
    steps: u64,
    witness: bool,
) -> Program<D> {
    let one = |_| {
        if witness && random.chance(WITNESS.1) {
            if random.chance(0.5) { Step::Get } else { Step::Set(1 + random.below(1 << 10)) }
        } else if random.chance(UNDONE) {
            Step::Undo(one_of(random, operations).clone())
        } else {
            Step::Do(one_of(random, operations).clone())
        }
    };
    (0..steps).map(one).collect()
}

/// The most transactions of one schedule.
const TRANSACTIONS_MAX: usize = 3;

/// Runs small transactions in many orders of their steps.
pub(super) fn schedules<D: Datatype, P: Protocol>(variant: &str, is_opaque: bool, effort: Effort) {
    // Nobody else goes on while a transaction waits, so it gives up at once.
    let policy = RetryPolicy { deadline: Some(Duration::ZERO), ..RetryPolicy::default() };
    let engine = Engine::<P>::named(variant, policy).expect("a variant of the protocol");
    let mut random = Random::seeded(effort.seed);
    let (operations, states) = (D::operations(), D::states());
    let mut workers: Vec<_> = (0..TRANSACTIONS_MAX).map(|_| engine.worker().expect("a worker")).collect();
    let mut check = |before: &Models<D>, programs: &[Program<D>], schedule: &[usize]| {
        let object = D::make(&engine, &before.0);
        let witness = SingleSegment::new(&engine, "witness", 0);
        let courses = run::<D, P>(&mut workers, (&object, &witness), programs, schedule);
        let after = state::<D, P>(&mut workers[0], &object, &witness);
        let describe =
            || format!("{variant}: {}, in turns {schedule:?}", describe_all(&courses, before, &after));
        let committed: Vec<_> = (0..programs.len()).filter(|number| courses[*number].is_committed).collect();
        let explained = is_serial(&courses, &committed, engine.is_strict(), before, &after);
        assert!(explained, "no serial order explains {}", describe());
        let turns = schedule.windows(2).filter(|turns| turns[0] != turns[1]).count() + 1;
        assert!(
            turns > programs.len() || committed.len() == programs.len(),
            "aborted without need: {}",
            describe()
        );
        if is_opaque {
            for aborted in (0..programs.len()).filter(|number| !courses[*number].is_committed) {
                let with_it: Vec<_> = committed.iter().copied().chain([aborted]).collect();
                let explained = is_serial(&courses, &with_it, engine.is_strict(), before, &after);
                assert!(explained, "what an aborted one saw is not opaque: {}", describe());
            }
        }
    };
    for _ in 0..effort.combinations * WITHIN_EACH {
        let before = (one_of(&mut random, &states).clone(), 0);
        let mut one = || Step::Do(one_of(&mut random, &operations).clone());
        // The other transaction runs as a whole, before the last operation or behind it.
        let other = vec![one(), Step::Set(1)];
        check(&before, &[vec![Step::Get, one()], other.clone()], &[0, 1, 1, 1, 0, 0]);
        check(&before, &[vec![one(), one(), Step::Get], other], &[0, 0, 1, 1, 1, 0, 0]);
    }
    for _ in 0..effort.combinations {
        let before = (one_of(&mut random, &states).clone(), 0);
        let witness = random.chance(WITNESS.0);
        let transactions = 2 + usize::from(random.chance(0.25));
        let programs: Vec<Program<D>> = (0..transactions)
            .map(|_| {
                let length = 1 + random.below(if transactions == 2 { 3 } else { 2 });
                choose::<D>(&mut random, &operations, length, witness)
            })
            .collect();
        for _ in 0..effort.schedules_max {
            let mut schedule: Vec<usize> = programs
                .iter()
                .enumerate()
                .flat_map(|(number, program)| std::iter::repeat_n(number, program.len() + 1))
                .collect();
            random.shuffle(&mut schedule);
            check(&before, &programs, &schedule);
        }
    }
}

/// Returns the state of the object and its witness, while nobody else is there.
pub(super) fn state<D: Datatype, P: Protocol>(
    worker: &mut Worker<P>,
    object: &D::Object<P>,
    witness: &SingleSegment<u64, P>,
) -> Models<D> {
    let state = worker.transact(|tx| Ok((D::state(object, tx)?, witness.enter(tx)?.read(|value| *value)?)));
    state.expect("nobody else is there")
}

/// Tells the courses of transactions, for a failure.
pub(super) fn describe_all<D: Datatype>(
    courses: &[Course<D>],
    before: &Models<D>,
    after: &Models<D>,
) -> String {
    let courses: Vec<_> = courses.iter().map(Course::describe).collect();
    format!("from {before:?}:\n{}\nleft {after:?}", courses.join("\n"))
}

/// A transaction that is being stepped.
struct Stepped<'w, D: Datatype, P: Protocol> {
    /// Until its first step.
    worker: Option<&'w mut Worker<P>>,
    open: Option<OpenTransaction<'w, P>>,
    course: Course<D>,
}

/// Runs one schedule: the numbers of the transactions whose turns the steps are. The last step of each is to commit.
fn run<D: Datatype, P: Protocol>(
    workers: &mut [Worker<P>],
    (object, witness): (&D::Object<P>, &SingleSegment<u64, P>),
    programs: &[Program<D>],
    schedule: &[usize],
) -> Vec<Course<D>> {
    let mut transactions: Vec<Stepped<'_, D, P>> = workers
        .iter_mut()
        .zip(programs)
        .map(|(worker, _)| Stepped {
            worker: Some(worker),
            open: None,
            course: Course { done: Vec::new(), is_committed: false, began: 0, ended: 0 },
        })
        .collect();
    for (time, &turn) in (0..).zip(schedule) {
        let Stepped { worker, open, course } = &mut transactions[turn];
        if let Some(worker) = worker.take() {
            course.began = time;
            *open = Some(worker.begin());
        }
        let Some(mut running) = open.take() else { continue };
        course.ended = time;
        match programs[turn].get(course.done.len()) {
            None => {
                let result = running.commit();
                course.is_committed = result.is_ok();
                if let Err(error) = result {
                    assert!(error.is_retryable(), "{error}");
                }
            }
            Some(step) => match step.run(object, witness, &mut running) {
                Ok(learned) => {
                    course.done.push((step.clone(), learned));
                    *open = Some(running);
                }
                // The protocol has aborted it. What it has written is undone at once, so that it is in nobody's way.
                Err(_) => {
                    let result = running.roll_back();
                    assert!(result.is_err_and(|error| error.is_retryable()), "an operation failed by itself");
                }
            },
        }
    }
    transactions.into_iter().map(|transaction| transaction.course).collect()
}
