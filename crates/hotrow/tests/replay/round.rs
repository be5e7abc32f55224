//! Rounds: programs on several threads, their history, and its replay.

use super::closure;
use super::failure;
use super::model::Model;
use super::procedure::{PLANNED, Run};
use super::program::{Form, Program, Shape, Source, Step, What, changed};
use super::tables::Tables;
use hotrow::history::{self, Event, History};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{Engine, Error, Procedures, Protocol, Reason, RetryPolicy, Statistics, Worker};
use hotrow_check::{AttemptEnd, serial_order};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Memory for a round's history: never reached here.
const HISTORY_BYTES_MAX: usize = 1 << 28;

/// So many programs on each of so many threads, on tables of their own. Whatever is drawn comes from the seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) threads: u64,
    pub(crate) programs: u64,
}

/// How the execution of a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With what its operations gave.
    Committed(Vec<u64>),
    /// It wanted no effect, and said so in this way.
    Failed(Failing),
}

/// How a program fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failing {
    RolledBack,
    /// A deferred operation panicked.
    Panicked,
    /// Its body did.
    BodyPanicked,
}

impl Ended {
    /// The results of its operations, if it has committed.
    pub(crate) fn committed(&self) -> Option<&Vec<u64>> {
        match self {
            Ended::Committed(numbers) => Some(numbers),
            Ended::Failed(_) => None,
        }
    }
}

/// An execution of a program.
#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) program: Program,
    pub(crate) ended: Ended,
}

/// Executes a program. An error that no program here asks for is given back as words.
pub(crate) fn execute<P: Protocol>(
    tables: &Tables<P>,
    keys: u64,
    worker: &mut Worker<P>,
    program: &Program,
) -> Result<Ended, String> {
    let procedure = Run { refs: tables.refs, keys, program };
    let executed = catch_unwind(AssertUnwindSafe(|| match program.form {
        Form::Procedure => tables.database.execute_on(worker, &procedure),
        Form::EagerProcedure => tables.database.execute_eagerly(worker, &procedure),
        Form::Closure => worker.transact_deferred(|tx| closure::run(tables, keys, program, tx)),
    }));
    match executed {
        Ok(Ok(numbers)) => Ok(Ended::Committed(numbers)),
        Ok(Err(Error::Rollback(_))) => Ok(Ended::Failed(Failing::RolledBack)),
        Ok(Err(Error::Panicked { message })) if message == PLANNED => Ok(Ended::Failed(Failing::Panicked)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) if panic.downcast_ref::<&str>() == Some(&PLANNED) => {
            Ok(Ended::Failed(Failing::BodyPanicked))
        }
        Err(panic) => resume_unwind(panic),
    }
}

/// A new engine of a variant.
pub(crate) fn engine<P: Protocol>(protocol: &str) -> Engine<P> {
    Engine::named(protocol, RetryPolicy::default()).expect("the registry has chosen by name")
}

impl Round {
    /// Runs the round and replays it. What has been counted.
    ///
    /// # Errors
    ///
    /// A description of the difference, at length.
    pub(crate) fn judge<P: Protocol>(self, protocol: &str) -> Result<Statistics, String> {
        let shape = Shape::draw(&mut Random::seeded(self.seed));
        let before = Model::new(shape.keys);
        let engine = engine::<P>(protocol);
        let tables = Tables::new(&engine, &shape, &before);
        let recording = engine.record_history(HISTORY_BYTES_MAX).expect("it is recorded once");
        let executed = self.execute_all(protocol, &engine, &tables, &shape)?;
        let statistics = engine.statistics();
        if self.threads == 1 {
            // Alone, an attempt loses only what it has not said, and the next one runs at once.
            let undeclared = Reason::ALL.iter().position(|reason| *reason == Reason::Undeclared);
            assert_eq!(statistics.aborts, statistics.reasons[undeclared.expect("it is a reason")]);
            assert!(statistics.attempts_max <= 2 && (statistics.aborts == 0 || engine.allows_deferral()));
        }
        let history = recording.finish();
        assert!(history.complete, "the bound on the history was reached");
        let (report, order) = serial_order(&history).map_err(|malformed| malformed.to_string())?;
        let is_as_claimed = report.is(report.claimed());
        let executed = in_history(executed, &history)?;
        let Some(order) = order else {
            let serial: Vec<_> = executed.into_values().flatten().collect();
            let failure =
                failure::Failure { round: self, protocol, shape, serial: &serial, at: serial.len() };
            return Err(failure.tell_of_history(&report, &history));
        };
        let (serial, earliest): (Vec<IdentifiedExecution>, Vec<usize>) = if self.threads == 1 {
            // Alone, the order is known, and failures are a part of it.
            executed.into_values().flatten().zip(0..).collect()
        } else {
            in_order(executed, &order)
        };
        let mut model = before.clone();
        for at in 0..serial.len() {
            let Execution { program, ended } = &serial[at].1;
            let expected = model.run(program);
            if ended.committed() != expected.as_ref() {
                if let Some(state) = at_an_earlier_moment(&before, &serial[..=at], earliest[at]) {
                    model = state;
                    continue;
                }
                let mut state = before;
                serial[..at].iter().for_each(|(_, execution)| _ = state.run(&execution.program));
                let failure = failure::Failure { round: self, protocol, shape, serial: &serial, at };
                let text = failure.tell::<P>(&state, expected.as_deref(), &history);
                return Err(if is_as_claimed { text } else { format!("{text}The history:\n{report}") });
            }
        }
        let mut worker = engine.worker().expect("all others are gone");
        let differences = tables.differences(&mut worker, &model);
        if !differences.is_empty() {
            let failure =
                failure::Failure { round: self, protocol, shape, serial: &serial, at: serial.len() };
            return Err(failure.tell_of_state(&differences));
        }
        if !is_as_claimed {
            let failure =
                failure::Failure { round: self, protocol, shape, serial: &serial, at: serial.len() };
            return Err(failure.tell_of_history(&report, &history));
        }
        Ok(statistics)
    }

    /// Executes all programs. By worker, in the worker's order.
    fn execute_all<P: Protocol>(
        self,
        protocol: &str,
        engine: &Engine<P>,
        tables: &Tables<P>,
        shape: &Shape,
    ) -> Result<BTreeMap<u32, Vec<Execution>>, String> {
        let client = |number: u64| {
            let mut worker = engine.worker().expect("there is room for all threads");
            let mut random = Random::stream(self.seed, number);
            let mut executed = Vec::with_capacity(self.programs as usize);
            for _ in 0..self.programs {
                let program = Program::draw(&mut random, shape);
                let told = |error: String| format!("seed {}: {error}: {program:?}", self.seed);
                let ended = execute(tables, shape.keys, &mut worker, &program).map_err(told)?;
                if let (Ended::Failed(how), false) = (&ended, program.may_fail()) {
                    let before = executed.last();
                    let words =
                        format!("{protocol}: it can only commit, and failed ({how:?}) after {before:?}");
                    return Err(told(words));
                }
                executed.push(Execution { program, ended });
            }
            Ok((worker, executed))
        };
        let clients = thread::scope(|scope| {
            let started: Vec<_> =
                (0..self.threads).map(|number| scope.spawn(move || client(number))).collect();
            let joined =
                started.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.collect::<Result<Vec<_>, String>>()
        })?;
        // All workers are there until the last one has ended, so each has a number of its own.
        Ok(clients.into_iter().map(|(worker, executed)| (worker.id().number(), executed)).collect())
    }
}

/// Which of its worker's attempts, counted from 1, committed an execution, or was the one that failed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptId {
    pub(crate) worker: u32,
    pub(crate) position: u32,
}

type IdentifiedExecution = (AttemptId, Execution);

/// The executions with their identities, by worker.
fn in_history(
    executed: BTreeMap<u32, Vec<Execution>>,
    history: &History,
) -> Result<BTreeMap<u32, Vec<IdentifiedExecution>>, String> {
    let mut placed = BTreeMap::new();
    for (worker, executions) in executed {
        let events = history.workers.iter().find(|events| events.worker == worker);
        let mut ends = Vec::new();
        let mut position = 0;
        for event in events.into_iter().flat_map(|worker| worker.events()).map_while(Result::ok) {
            match event {
                Event::Begin { .. } => position += 1,
                Event::End { outcome: history::Ended::Committed, .. } => ends.push((position, true)),
                Event::End { outcome: history::Ended::RolledBack, .. } => ends.push((position, false)),
                _ => {}
            }
        }
        if !executions
            .iter()
            .map(|execution| execution.ended.committed().is_some())
            .eq(ends.iter().map(|end| end.1))
        {
            return Err(format!(
                "worker {worker}: its results are not the commits and rollbacks of its history"
            ));
        }
        let ids = ends.into_iter().map(|(position, _)| AttemptId { worker, position });
        placed.insert(worker, ids.zip(executions).collect());
    }
    Ok(placed)
}

/// The state after all executions but the last one, if that one changes nothing and gives, somewhere behind the first
/// `earliest` of them, what it has given. The history allows it to stand there: of a key that came and went while a scan was
/// under way, it does not say which absence the scan has missed (a reader of `tl2` sees the state of its beginning).
fn at_an_earlier_moment(before: &Model, serial: &[IdentifiedExecution], earliest: usize) -> Option<Model> {
    let ((_, last), others) = serial.split_last()?;
    let mut state = before.clone();
    let mut is_explained = false;
    for (at, (_, execution)) in others.iter().enumerate() {
        if at >= earliest && !is_explained {
            let mut unchanged = state.clone();
            let given = unchanged.run(&last.program);
            is_explained = given.as_ref() == last.ended.committed() && unchanged == state;
        }
        state.run(&execution.program);
    }
    is_explained.then_some(state)
}

/// The committed executions in the order of their transactions, and how many at its beginning each of them cannot come
/// before.
fn in_order(
    executed: BTreeMap<u32, Vec<IdentifiedExecution>>,
    order: &[hotrow_check::Placed],
) -> (Vec<IdentifiedExecution>, Vec<usize>) {
    let mut executed: BTreeMap<AttemptId, Execution> = executed.into_values().flatten().collect();
    let mut take = |placed: &hotrow_check::Placed| {
        let transaction = &placed.transaction;
        assert_eq!(transaction.outcome, AttemptEnd::Committed, "no attempt is left unfinished");
        let id = AttemptId { worker: transaction.worker, position: transaction.position };
        ((id, executed.remove(&id).expect("each commit has an execution")), placed.earliest)
    };
    order.iter().map(&mut take).unzip()
}

#[test]
fn only_what_changes_nothing_is_explained_by_an_earlier_state_and_only_by_one_that_the_history_allows() {
    let (table, key) = (1, Source::Known(0));
    let execution = |what, gave| {
        let steps = vec![Step { what, later: false }];
        let program = Program { form: Form::Closure, yields: false, steps };
        let id = AttemptId { worker: 0, position: 0 };
        (id, Execution { program, ended: Ended::Committed(vec![gave]) })
    };
    let writes = |row| execution(What::Upsert { table, key, row: Source::Known(row) }, 0);
    let with = |last| [writes(10), writes(20), writes(30), last];
    let before = Model::new(1);
    let reader = with(execution(What::Read { table, key }, 20));
    let after = at_an_earlier_moment(&before, &reader, 1).expect("it read what the second one wrote");
    assert_eq!(after.rows[table][&0], 30);
    assert_eq!(at_an_earlier_moment(&before, &reader, 2), Some(after));
    assert_eq!(at_an_earlier_moment(&before, &reader, 3), None);
    let nowhere = with(execution(What::Read { table, key }, 40));
    assert_eq!(at_an_earlier_moment(&before, &nowhere, 0), None);
    let gave = changed(20, 1);
    let writer = with(execution(What::Add { table, key, amount: Source::Known(1) }, gave));
    assert_eq!(at_an_earlier_moment(&before, &writer, 0), None);
}
