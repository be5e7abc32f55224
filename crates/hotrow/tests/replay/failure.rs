//! The report on a replay that differs: enough to run it again, and a smaller program if one fails alone.

use super::model::Model;
use super::program::{Program, Shape, TABLES};
use super::round::{AttemptId, Ended, Execution, Round, engine, execute};
use super::tables::Tables;
use hotrow::Protocol;
use hotrow::history::{Event, History};
use hotrow_check::Report;
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// Transactions shown before the one that differs.
const SHOWN: usize = 12;

/// A replay that differs from the run.
pub(crate) struct Failure<'a> {
    pub(crate) round: Round,
    pub(crate) protocol: &'a str,
    pub(crate) shape: Shape,
    /// All executions in their serial order.
    pub(crate) serial: &'a [(AttemptId, Execution)],
    /// The one that differs, or the end.
    pub(crate) at: usize,
}

impl Failure<'_> {
    /// The execution gave something else than expected.
    pub(crate) fn tell<P: Protocol>(
        &self,
        state: &Model,
        expected: Option<&[u64]>,
        history: &History,
    ) -> String {
        let (id, Execution { program, ended }) = &self.serial[self.at];
        let mut text = self.head("an execution differs from its replay");
        let _ = writeln!(text, "state before: {state:?}\nprogram: {program:?}");
        let _ = writeln!(text, "expected {expected:?}\ngot      {ended:?}");
        tell_events(&mut text, history, *id);
        match self.smaller::<P>(state, program) {
            Some((state, program, got)) => {
                let expected = state.clone().run(&program);
                let _ = writeln!(
                    text,
                    "It differs when it runs alone, too. Smaller, from {state:?}:\n{program:?}\nexpected \
                     {expected:?}, got {got}"
                );
            }
            None => text.push_str("Alone, it does not differ.\n"),
        }
        self.tail(text)
    }

    /// All executions are as expected, and what they have left is not.
    pub(crate) fn tell_of_state(&self, differences: &[String]) -> String {
        let mut text = self.head("the final state differs from that of the replay");
        differences.iter().for_each(|difference| _ = writeln!(text, "{difference}"));
        self.tail(text)
    }

    /// The history is not what the protocol claims.
    pub(crate) fn tell_of_history(&self, report: &Report, history: &History) -> String {
        let mut text = self.head("the history is not what the protocol claims");
        let _ = writeln!(text, "{report}");
        let first = report.anomalies.iter().flat_map(|anomaly| &anomaly.steps).take(3);
        let ids = first
            .flat_map(|step| [step.first, step.second])
            .map(|transaction| AttemptId { worker: transaction.worker, position: transaction.position });
        for id in ids.collect::<BTreeSet<_>>() {
            if let Some((_, Execution { program, ended })) = self.serial.iter().find(|one| one.0 == id) {
                let _ = writeln!(text, "{id}: {program:?}\n  gave {ended:?}");
            }
            tell_events(&mut text, history, id);
        }
        text
    }

    fn head(&self, what: &str) -> String {
        format!("{}: {what}\n{:?}, {:?}\n", self.protocol, self.round, self.shape)
    }

    fn tail(&self, mut text: String) -> String {
        let first = self.at.saturating_sub(SHOWN);
        let _ = writeln!(text, "before it, in the serial order:");
        for (id, Execution { program, ended }) in &self.serial[first..self.at] {
            let _ = writeln!(text, "  {id}: {program:?}\n    gave {ended:?}");
        }
        text
    }

    /// The smallest program and state found that differ when nothing else runs, and what they gave.
    fn smaller<P: Protocol>(&self, state: &Model, program: &Program) -> Option<(Model, Program, String)> {
        let mut found = (state.clone(), program.clone(), self.alone::<P>(state, program)?);
        while let Some(smaller) = self.one_smaller::<P>(&found.0, &found.1) {
            found = smaller;
        }
        Some(found)
    }

    fn one_smaller<P: Protocol>(&self, state: &Model, program: &Program) -> Option<(Model, Program, String)> {
        let shorter = (0..program.steps.len()).map(|step| (state.clone(), program.without(step)));
        let parts = (0..=TABLES).map(|part| (state.without(part), program.clone()));
        let candidates = shorter.chain(parts.filter(|(smaller, _)| smaller != state));
        candidates
            .into_iter()
            .find_map(|(state, program)| self.alone::<P>(&state, &program).map(|got| (state, program, got)))
    }

    /// Executes a program alone. What it gave, or left, if that is not what the model says.
    fn alone<P: Protocol>(&self, state: &Model, program: &Program) -> Option<String> {
        let engine = engine::<P>(self.protocol);
        let tables = Tables::new(&engine, &self.shape, state);
        let mut worker = engine.worker().expect("it is the only one");
        let mut model = state.clone();
        let expected = model.run(program);
        let got = execute(&tables, self.shape.keys, &mut worker, program);
        if got.as_ref().map(Ended::committed) != Ok(expected.as_ref()) {
            return Some(format!("{got:?}"));
        }
        let differences = tables.differences(&mut worker, &model);
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction {}.{}", self.worker, self.position)
    }
}

fn tell_events(text: &mut String, history: &History, id: AttemptId) {
    let _ = writeln!(text, "events of {id}:");
    for event in events(history, id) {
        let _ = writeln!(text, "  {}", words(history, event));
    }
}

/// The events of an attempt.
fn events(history: &History, AttemptId { worker, position }: AttemptId) -> Vec<Event<'_>> {
    let mut attempts = 0;
    let worker = history.workers.iter().find(|events| events.worker == worker);
    let events = worker.into_iter().flat_map(|worker| worker.events()).map_while(Result::ok);
    let within = events.filter(|event| {
        attempts += u32::from(matches!(event, Event::Begin { .. }));
        attempts == position
    });
    within.collect()
}

/// An event, and the key that it is about.
fn words(history: &History, event: Event<'_>) -> String {
    let key = match event {
        Event::Read { key, .. }
        | Event::Write { key, .. }
        | Event::Intend { key }
        | Event::OwnRead { key }
        | Event::Change { key } => Some(key),
        _ => None,
    };
    let name = key.and_then(|key| history.keys.get(key)).map(|name| {
        let object = &history.objects[name.object as usize];
        format!(" of {object}[{}]", String::from_utf8_lossy(name.text))
    });
    format!("{event:?}{}", name.unwrap_or_default())
}
