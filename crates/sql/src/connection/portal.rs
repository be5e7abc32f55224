//! The extended protocol: statements that are parsed, bound and executed by messages of their own.

use super::block::Phase;
use super::command::Command;
use super::control::{ends_failed_block, in_failed_block};
use super::executor::Work;
use super::prepared::Prepared;
use super::{Connection, PORTALS_MAX};
use crate::error::SqlError;
use crate::outcome::{Client, Field, Outcome};
use crate::values::{Datum, Type};
use hotrow::sync::Arc;
use std::rc::Rc;
use std::vec;

/// A statement with its parameters, and the rows that it has still to give.
pub(super) struct Portal {
    prepared: Rc<Prepared>,
    parameters: Rc<[Datum]>,
    progress: Progress,
}

enum Progress {
    Ready,
    /// It has run, and more rows are left.
    Suspended(Arc<[Field]>, vec::IntoIter<Box<[Datum]>>),
    Done,
}

impl Connection {
    /// Prepares a statement under a name. The nameless one is replaced.
    ///
    /// # Errors
    ///
    /// 42P05 if the name is taken, 42601 for a text that cannot be parsed or has several statements, and what planning finds.
    pub fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Result<(), SqlError> {
        self.begin_statement(Some(text));
        let result = self.parse_inside(name, text, types);
        self.finish(result, None)
    }

    fn parse_inside(&mut self, name: &str, text: &str, types: &[u32]) -> Result<(), SqlError> {
        if self.statements.contains_key(name) && !name.is_empty() {
            return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        if self.block.phase() == Phase::Failed {
            // Nothing is planned there: only the end of the block may be prepared.
            let statements = self.cache.simple(text)?;
            let command = statements.first().map(|prepared| &prepared.command);
            if statements.len() > 1 || command.is_some_and(|command| !ends_failed_block(command)) {
                return Err(in_failed_block());
            }
            let ends = statements.first().cloned();
            let ends = ends.unwrap_or_else(|| Prepared::simple(Command::Empty));
            return self.add_statement(name, ends);
        }
        let catalog = self.catalog()?;
        let prepared = self.cache.prepared(text, types, &catalog)?;
        if prepared.source().is_some() {
            prepared.plan(&catalog, &self.executor.state)?;
        }
        self.add_statement(name, prepared)
    }

    /// The types of a statement's parameters.
    ///
    /// # Errors
    ///
    /// 26000 if there is no such statement.
    pub fn parameter_types(&self, statement: &str) -> Result<Arc<[Type]>, SqlError> {
        Ok(self.find_statement(statement)?.parameters())
    }

    /// The columns of what a statement gives; none if it gives no rows.
    ///
    /// # Errors
    ///
    /// 26000 if there is no such statement, 25P02 in a block that has failed.
    pub fn describe_statement(&mut self, name: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        let described = self.find_statement(name).cloned().and_then(|prepared| self.describe(&prepared));
        self.finish(described, None)
    }

    fn describe(&mut self, prepared: &Prepared) -> Result<Option<Arc<[Field]>>, SqlError> {
        if self.block.phase() == Phase::Failed && !ends_failed_block(&prepared.command) {
            return Err(in_failed_block());
        }
        if prepared.source().is_some() && prepared.last_plan().is_none() {
            self.plan(prepared)?;
        }
        self.fields_of(prepared)
    }

    /// Binds parameters to a statement. The nameless portal is replaced.
    ///
    /// # Errors
    ///
    /// 26000 if there is no such statement, 42P03 if the portal's name is taken, 08P01 for a wrong number of parameters.
    pub fn bind(&mut self, portal: &str, statement: &str, parameters: Vec<Datum>) -> Result<(), SqlError> {
        let bound = self.bind_inside(portal, statement, parameters);
        self.finish(bound, None)
    }

    fn bind_inside(&mut self, portal: &str, statement: &str, parameters: Vec<Datum>) -> Result<(), SqlError> {
        let prepared = self.find_statement(statement)?.clone();
        if self.block.phase() == Phase::Failed && !ends_failed_block(&prepared.command) {
            return Err(in_failed_block());
        }
        let (given, wanted) = (parameters.len(), prepared.parameters().len());
        if given != wanted {
            return Err(SqlError::new(
                "08P01",
                format!(
                    "bind message supplies {given} parameters, but prepared statement \"{statement}\" requires {wanted}"
                ),
            ));
        }
        if !portal.is_empty() {
            if self.portals.contains_key(portal) || self.cursors.contains_key(portal) {
                return Err(SqlError::new("42P03", format!("cursor \"{portal}\" already exists")));
            }
            if self.portals.len() >= PORTALS_MAX {
                return Err(SqlError::new("53400", "there are too many portals"));
            }
        }
        let bound = Portal { prepared, parameters: parameters.into(), progress: Progress::Ready };
        self.portals.insert(portal.to_owned(), bound);
        Ok(())
    }

    /// The columns of what a portal gives; none if it gives no rows.
    ///
    /// # Errors
    ///
    /// 34000 if there is no such portal, 25P02 in a block that has failed.
    pub fn describe_portal(&mut self, portal: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        let described = if self.is_cursor(portal) {
            self.fields_of_cursor(portal).map(Some)
        } else {
            let prepared = self.find_portal(portal).map(|portal| portal.prepared.clone());
            prepared.and_then(|prepared| self.describe(&prepared))
        };
        self.finish(described, None)
    }

    fn find_portal(&mut self, name: &str) -> Result<&mut Portal, SqlError> {
        let missing = || SqlError::new("34000", format!("portal \"{name}\" does not exist"));
        self.portals.get_mut(name).ok_or_else(missing)
    }

    /// Executes a portal, and returns at most `rows_max` rows (0: all), and whether more are left. `is_last` says that the next
    /// message is the pipeline's end: outside of a block the statement is then a transaction of its own, which is retried inside.
    ///
    /// # Errors
    ///
    /// 34000 if there is no such portal, 55000 if it has run already and gave no rows; and those of the statement.
    pub fn execute(
        &mut self,
        portal: &str,
        rows_max: usize,
        is_last: bool,
        client: &mut dyn Client,
    ) -> Result<(Outcome, bool), SqlError> {
        let text = self.portals.get(portal).and_then(|portal| portal.prepared.text.clone());
        self.begin_statement(text.as_deref());
        let result = self.execute_inside(portal, rows_max, is_last, client);
        self.finish(result, Some(client))
    }

    fn execute_inside(
        &mut self,
        name: &str,
        rows_max: usize,
        is_last: bool,
        client: &mut dyn Client,
    ) -> Result<(Outcome, bool), SqlError> {
        let is_failed = self.block.phase() == Phase::Failed;
        if self.is_cursor(name) {
            return if is_failed { Err(in_failed_block()) } else { self.execute_cursor(name, rows_max) };
        }
        let portal = self.find_portal(name)?;
        let prepared = portal.prepared.clone();
        if is_failed && !ends_failed_block(&prepared.command) {
            return Err(in_failed_block());
        }
        let outcome = match &mut portal.progress {
            Progress::Suspended(fields, rows) => {
                let fields = fields.clone();
                let rows = std::mem::take(rows).collect();
                let tag = String::new();
                Outcome::Rows { fields, rows, tag }
            }
            Progress::Done => {
                return Err(SqlError::new("55000", format!("portal \"{name}\" cannot be run")));
            }
            Progress::Ready => {
                portal.progress = Progress::Done;
                let parameters = portal.parameters.clone();
                self.execute_ready(&prepared, parameters, is_last, client)?
            }
        };
        Ok(self.cut(name, outcome, rows_max))
    }

    fn execute_ready(
        &mut self,
        prepared: &Rc<Prepared>,
        parameters: Rc<[Datum]>,
        is_last: bool,
        client: &mut dyn Client,
    ) -> Result<Outcome, SqlError> {
        let work = match prepared.command {
            Command::Planned(_) => Some(Work::Plan { prepared: prepared.clone(), parameters }),
            Command::Declare { .. } => return self.declare(prepared, parameters),
            _ => self.work(prepared)?,
        };
        let is_alone = match (&work, &prepared.command) {
            (Some(Work::Show(_) | Work::Notify { .. }), _) => false,
            (Some(_), _) | (None, Command::Copy(..)) => is_last,
            // Transaction control, and what has no transaction.
            (None, _) => true,
        };
        if !is_alone {
            self.block.begin_implicit(&self.executor);
        }
        match work {
            Some(work) => self.run_work(&work),
            None => self.run_one(prepared, client),
        }
    }

    /// True if a portal was made by `DECLARE`.
    fn is_cursor(&self, portal: &str) -> bool {
        !self.portals.contains_key(portal) && self.cursors.contains_key(portal)
    }

    /// Keeps the rows behind the first ones in the portal.
    fn cut(&mut self, name: &str, outcome: Outcome, rows_max: usize) -> (Outcome, bool) {
        match outcome {
            Outcome::Rows { fields, rows, .. } if rows_max > 0 && rows.len() > rows_max => {
                let mut rows = rows.into_iter();
                let now = rows.by_ref().take(rows_max).collect();
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.progress = Progress::Suspended(fields.clone(), rows);
                }
                let tag = format!("SELECT {rows_max}");
                (Outcome::Rows { fields, rows: now, tag }, true)
            }
            Outcome::Rows { fields, rows, tag } => {
                // A query that gives its last rows, or is asked once more, gives no more than none.
                if let Some(portal) = self.portals.get_mut(name) {
                    portal.progress = Progress::Suspended(fields.clone(), Vec::new().into_iter());
                }
                let tag = if tag.is_empty() { format!("SELECT {}", rows.len()) } else { tag };
                (Outcome::Rows { fields, rows, tag }, false)
            }
            outcome => (outcome, false),
        }
    }

    /// Forgets a prepared statement, if there is one.
    pub fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Forgets a portal, if there is one.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
        self.cursors.remove(name);
    }

    /// Ends a pipeline: its statements outside of a block are committed, and its portals are gone.
    ///
    /// # Errors
    ///
    /// That of the commit, with which all of them are rolled back.
    pub fn sync(&mut self) -> Result<(), SqlError> {
        let mut result = Ok(());
        if self.block.phase() == Phase::Implicit {
            self.begin_statement(None);
            let committed = self.block.commit(&self.executor).map(|_| ());
            result = self.finish(committed, None);
        }
        if self.block.phase() == Phase::Idle {
            self.end_portals(result.is_ok());
        }
        result
    }
}
