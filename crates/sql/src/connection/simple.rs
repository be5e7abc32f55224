//! Simple queries: texts of one or several statements.
//!
//! As much of a text as possible runs as one closure, which is retried inside when it loses a conflict: one statement, statements
//! without transaction control, or a block that begins and commits in the same text. The client gets the results when it has
//! committed. Other texts run statement by statement in a session.

use super::Connection;
use super::block::Phase;
use super::command::{Command, Modes};
use super::control::in_failed_block;
use super::executor::Work;
use super::prepared::Prepared;
use crate::error::SqlError;
use crate::outcome::{Client, Outcome};
use std::cell::RefCell;
use std::rc::Rc;

/// Statements of a text that run as one transaction.
struct Unit {
    work: Vec<Work>,
    /// The modes of the block that they are, and the tag of its begin.
    block: Option<(Modes, &'static str)>,
    /// Number of statements of the text.
    length: usize,
}

impl Connection {
    /// Runs a text, and gives the client the result of each statement.
    ///
    /// # Errors
    ///
    /// The error of the statement that has failed: those behind it do not run. An open block has failed then. Nothing runs if a part
    /// of the text cannot be parsed (42601).
    pub fn query(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        self.begin_statement(Some(text));
        self.statements.remove("");
        self.portals.remove("");
        let result = match self.cache.simple(text) {
            Ok(statements) if statements.is_empty() => client.outcome(Outcome::Empty),
            Ok(statements) => self.run_text(&statements, client),
            Err(error) => Err(error),
        };
        let result = self.finish(result, Some(client));
        if self.block.phase() == Phase::Idle {
            self.end_portals(result.is_ok());
        }
        result
    }

    fn run_text(&mut self, statements: &[Rc<Prepared>], client: &mut dyn Client) -> Result<(), SqlError> {
        let mut at = 0;
        while at < statements.len() {
            let left = &statements[at..];
            if at > 0 {
                self.executor.state.begin_statement();
            }
            if self.block.phase() == Phase::Idle {
                if let Some(unit) = self.unit(left)? {
                    at += unit.length;
                    self.run_unit(&unit, client)?;
                    continue;
                }
                if statements.len() > 1 && !matches!(left[0].command, Command::Begin { .. }) {
                    self.block.begin_implicit(&self.executor);
                }
            }
            at += 1;
            let mut outcome = self.run_one(&left[0], client);
            if outcome.is_ok() && left.len() == 1 && self.block.phase() == Phase::Implicit {
                outcome = self.block.commit(&self.executor).and(outcome);
            }
            let outcome = self.settled(outcome)?;
            self.tell_notices(client);
            client.outcome(outcome)?;
        }
        Ok(())
    }

    /// The statements in front that can run as one closure.
    fn unit(&self, statements: &[Rc<Prepared>]) -> Result<Option<Unit>, SqlError> {
        let (block, body) = match &statements[0].command {
            Command::Begin { modes, tag } => (Some((*modes, *tag)), &statements[1..]),
            _ => (None, statements),
        };
        let mut work = Vec::new();
        for (at, statement) in body.iter().enumerate() {
            match (&statement.command, self.work(statement)) {
                (Command::Commit { chain: false }, _) if block.is_some() && at > 0 => {
                    return Ok(Some(Unit { work, block, length: at + 2 }));
                }
                (_, Ok(Some(one))) => work.push(one),
                // The statement's own error, in its turn.
                (_, Err(error)) if at == 0 && block.is_none() => return Err(error),
                _ => return Ok(None),
            }
        }
        let length = statements.len();
        Ok(block.is_none().then_some(Unit { work, block, length }))
    }

    fn run_unit(&mut self, unit: &Unit, client: &mut dyn Client) -> Result<(), SqlError> {
        if let Some((modes, _)) = unit.block {
            self.executor.reads_only.set(modes.read_only.unwrap_or(self.executor.reads_only.get()));
        }
        let outcomes = RefCell::new(Vec::with_capacity(unit.work.len()));
        let result = self.plan_queries(&unit.work).and_then(|only_reads| {
            self.executor.retried(only_reads, |tx| {
                outcomes.borrow_mut().clear();
                for (at, work) in unit.work.iter().enumerate() {
                    if at > 0 {
                        self.executor.state.begin_next(tx);
                    }
                    let outcome = self.executor.run(tx, work)?;
                    outcomes.borrow_mut().push(outcome);
                }
                Ok(())
            })
        });
        let result = self.settled(result);
        self.tell_notices(client);
        let tag = |tag: &str| Outcome::Done { tag: tag.to_owned() };
        if let Some((_, begin)) = unit.block {
            client.outcome(tag(begin))?;
        }
        let mut outcomes = outcomes.into_inner();
        if result.is_err() && unit.block.is_none() && outcomes.len() == unit.work.len() {
            // The commit has failed, which the client hears of instead of the last statement's result.
            outcomes.pop();
        }
        for outcome in outcomes {
            client.outcome(outcome)?;
        }
        match result {
            Ok(()) if unit.block.is_some() => client.outcome(tag("COMMIT")),
            Err(error) if unit.block.is_some() => {
                self.block.begin_failed(&self.executor);
                Err(error)
            }
            result => result,
        }
    }

    /// Plans queries before they run, so that it is known whether they only read: then they run on a snapshot. True if all of them do.
    fn plan_queries(&self, all: &[Work]) -> Result<bool, SqlError> {
        let is_query = |work: &Work| match work {
            Work::Plan { prepared, .. } => prepared.is_query(),
            Work::Execute { prepared, .. } => prepared.is_query(),
            Work::Show(_) => true,
            Work::Notify { .. } => false,
        };
        if !all.iter().all(is_query) {
            return Ok(false);
        }
        let mut catalog = None;
        for work in all {
            let (first, second) = match work {
                Work::Plan { prepared, .. } => (Some(prepared), None),
                Work::Execute { prepared, arguments, .. } => (Some(prepared), arguments.as_ref()),
                Work::Show(_) | Work::Notify { .. } => (None, None),
            };
            for prepared in first.into_iter().chain(second) {
                if prepared.last_plan().is_none() {
                    if catalog.is_none() {
                        catalog = Some(self.executor.catalog()?);
                    }
                    // Of several statements, the first ones may give results before a later one fails.
                    let planned =
                        catalog.as_ref().map(|catalog| prepared.plan(catalog, &self.executor.state));
                    match planned {
                        Some(Err(error)) if all.len() == 1 => return Err(error),
                        Some(Err(_)) => return Ok(false),
                        _ => {}
                    }
                }
            }
        }
        Ok(all.iter().all(|work| self.executor.only_reads(work)))
    }

    /// Runs one statement alone: in the open block, or as a transaction of its own.
    pub(super) fn run_one(
        &mut self,
        prepared: &Rc<Prepared>,
        client: &mut dyn Client,
    ) -> Result<Outcome, SqlError> {
        if self.block.phase() == Phase::Failed && !super::control::ends_failed_block(&prepared.command) {
            return Err(in_failed_block());
        }
        if let Command::Copy(_, options) = &prepared.command {
            return self.copy(prepared, options, client);
        }
        if let Command::Declare { .. } = &prepared.command {
            return self.declare(prepared, Rc::new([]));
        }
        match self.work(prepared)? {
            Some(work) => self.run_work(&work),
            None => self.control(&prepared.command),
        }
    }

    /// Runs a statement in the open block, or as a transaction of its own.
    pub(super) fn run_work(&mut self, work: &Work) -> Result<Outcome, SqlError> {
        match (work, self.block.phase()) {
            (_, Phase::Failed) => Err(in_failed_block()),
            (_, Phase::Idle) => {
                let only_reads = self.plan_queries(std::slice::from_ref(work))?;
                self.executor.retried(only_reads, |tx| self.executor.run(tx, work))
            }
            // These need no session.
            (Work::Show(_) | Work::Notify { .. }, _) => self.executor.run_outside(work),
            _ => self.block.run(&self.executor, |tx| self.executor.run(tx, work)),
        }
    }
}
