//! Statements that a connection serves itself: transaction control, settings, prepared statements of SQL, notifications.

use super::block::{Phase, not_in_blocks, only_in_blocks};
use super::command::{Allowed, Command, Modes, Planned};
use super::executor::{Work, show_fields};
use super::hub::Pending;
use super::prepared::Prepared;
use super::{Connection, STATEMENTS_MAX};
use crate::error::SqlError;
use crate::outcome::{Field, Outcome};
use hotrow::sync::Arc;
use std::rc::Rc;

fn done(tag: &str) -> Outcome {
    Outcome::Done { tag: tag.to_owned() }
}

/// The error of a statement in a block that has failed.
pub(super) fn in_failed_block() -> SqlError {
    SqlError::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}

fn no_such_statement(name: &str) -> SqlError {
    SqlError::new("26000", format!("prepared statement \"{name}\" does not exist"))
}

/// True if a statement is allowed in a block that has failed.
pub(super) fn ends_failed_block(command: &Command) -> bool {
    matches!(
        command,
        Command::Commit { .. } | Command::Rollback { .. } | Command::RollbackTo(_) | Command::Empty
    )
}

impl Connection {
    /// The statement as one that can run within a transaction, and run again. `None` if it is of another kind.
    pub(super) fn work(&self, prepared: &Rc<Prepared>) -> Result<Option<Work>, SqlError> {
        Ok(Some(match &prepared.command {
            Command::Planned(_) => Work::Plan { prepared: prepared.clone(), parameters: Rc::new([]) },
            Command::Execute { name, arguments } => {
                let body = self.find_statement(name)?.clone();
                if body.source().is_none() {
                    return Err(SqlError::not_supported("EXECUTE of a statement without a plan"));
                }
                let arguments = arguments.as_ref().map(copy_of);
                Work::Execute { name: name.clone(), prepared: body, arguments }
            }
            Command::Show(name) => Work::Show(name.clone()),
            Command::Notify { channel, payload } => {
                Work::Notify { channel: channel.clone(), payload: payload.clone() }
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn find_statement(&self, name: &str) -> Result<&Rc<Prepared>, SqlError> {
        self.statements.get(name).ok_or_else(|| no_such_statement(name))
    }

    /// Adds a prepared statement.
    pub(super) fn add_statement(&mut self, name: &str, prepared: Rc<Prepared>) -> Result<(), SqlError> {
        if !name.is_empty() {
            if self.statements.contains_key(name) {
                return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
            }
            if self.statements.len() >= STATEMENTS_MAX {
                return Err(SqlError::new("53400", "there are too many prepared statements"));
            }
        }
        self.statements.insert(name.to_owned(), prepared);
        Ok(())
    }

    /// The columns of what a statement gives; none if it gives no rows.
    pub(super) fn fields_of(&self, prepared: &Prepared) -> Result<Option<Arc<[Field]>>, SqlError> {
        let planned = |prepared: &Prepared| prepared.last_plan().and_then(|plan| plan.fields.clone());
        Ok(match &prepared.command {
            Command::Planned(_) => planned(prepared),
            Command::Execute { name, .. } => planned(self.find_statement(name)?),
            Command::Show(name) => Some(show_fields(name.as_deref())),
            Command::Fetch { name, moves: false, .. } => Some(self.fields_of_cursor(name)?),
            _ => None,
        })
    }

    /// Runs a statement that is no [work](Self::work).
    pub(super) fn control(&mut self, command: &Command) -> Result<Outcome, SqlError> {
        if self.block.phase() == Phase::Failed && !ends_failed_block(command) {
            return Err(in_failed_block());
        }
        let outcome = match command {
            Command::Empty => Outcome::Empty,
            Command::Begin { modes, tag } => self.begin(*modes, tag)?,
            Command::Commit { chain } => return self.commit(*chain),
            Command::Rollback { chain } => return self.roll_back(*chain),
            Command::Savepoint(name) => {
                self.block.set_mark(name, &self.executor)?;
                done("SAVEPOINT")
            }
            Command::Release(name) => {
                self.block.release(name, &self.executor)?;
                done("RELEASE")
            }
            Command::RollbackTo(name) => {
                self.block.roll_back_to(name, &self.executor)?;
                done("ROLLBACK")
            }
            Command::SetTransaction(modes) => {
                self.warn_outside("SET TRANSACTION");
                self.set_modes(*modes)?;
                done("SET")
            }
            Command::SetCharacteristics(modes) => {
                if let Some(reads_only) = modes.read_only {
                    let value = if reads_only { "on" } else { "off" };
                    self.set("default_transaction_read_only", Some(value), false)?;
                }
                done("SET")
            }
            Command::Set { name, value, is_local, tag } => {
                if *is_local {
                    self.warn_outside("SET LOCAL");
                }
                self.set(name, value.as_deref(), *is_local)?;
                done(tag)
            }
            Command::ResetAll => {
                self.executor.state.reset_settings();
                done("RESET")
            }
            Command::DiscardAll => self.discard_all()?,
            Command::Discard(tag) => {
                if *tag == "DISCARD SEQUENCES" {
                    self.forget_sequences();
                }
                done(tag)
            }
            Command::Listen(channel) => {
                self.executor.state.pend(Pending::Listen(channel.clone()))?;
                done("LISTEN")
            }
            Command::Unlisten(channel) => {
                self.executor.state.pend(Pending::Unlisten(channel.clone()))?;
                done("UNLISTEN")
            }
            Command::Prepare { name, types, body } => {
                let prepared = Prepared::kept(Command::Planned(copy_of_source(body)), types.clone(), None);
                if self.statements.contains_key(name) {
                    return self.add_statement(name, prepared).map(|()| done("PREPARE"));
                }
                self.plan(&prepared)?;
                self.add_statement(name, prepared)?;
                done("PREPARE")
            }
            Command::Deallocate(name) => self.deallocate(name.as_deref())?,
            Command::Accepted { tag, place } => {
                match (place, self.block.phase()) {
                    (Allowed::OutsideOfBlocks, phase) if phase != Phase::Idle => {
                        return Err(not_in_blocks(tag));
                    }
                    (Allowed::InBlocks, Phase::Idle) => return Err(only_in_blocks(tag)),
                    _ => {}
                }
                done(tag)
            }
            Command::Fetch { name, fetch, moves } => self.fetch(name, *fetch, *moves)?,
            Command::Close(name) => self.close(name.as_deref())?,
            Command::Planned(_)
            | Command::Copy(..)
            | Command::Declare { .. }
            | Command::Execute { .. }
            | Command::Show(_)
            | Command::Notify { .. } => {
                return Err(SqlError::not_supported("this statement at this place"));
            }
        };
        self.end_alone()?;
        Ok(outcome)
    }

    /// Outside of a block a statement is a transaction of its own.
    fn end_alone(&mut self) -> Result<(), SqlError> {
        if self.block.phase() != Phase::Idle {
            return Ok(());
        }
        let checked = self.executor.check_pending();
        match &checked {
            Ok(()) => self.executor.committed(),
            Err(_) => self.executor.rolled_back(),
        }
        checked
    }

    fn warn(&self, code: &'static str, message: String) {
        self.executor.state.notice("WARNING", SqlError::new(code, message));
    }

    /// Warns if a statement has no effect, because there is no block.
    fn warn_outside(&self, what: &str) {
        if self.block.phase() == Phase::Idle {
            self.warn("25P01", format!("{what} can only be used in transaction blocks"));
        }
    }

    fn begin(&mut self, modes: Modes, tag: &str) -> Result<Outcome, SqlError> {
        if self.block.phase() == Phase::Open {
            self.warn("25001", "there is already a transaction in progress".to_owned());
        }
        self.block.begin(&self.executor);
        self.set_modes(modes)?;
        Ok(done(tag))
    }

    /// Sets what the open transaction has declared about itself.
    pub(super) fn set_modes(&mut self, modes: Modes) -> Result<(), SqlError> {
        match modes.read_only {
            Some(false) if self.executor.reads_only.get() && self.block.has_session() => {
                Err(SqlError::new("25001", "transaction read-write mode must be set before any query"))
            }
            Some(reads_only) if self.block.phase() != Phase::Idle => {
                self.executor.reads_only.set(reads_only);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A block with the modes of the one that has ended.
    fn begin_again(&mut self, reads_only: bool) {
        self.block.begin(&self.executor);
        self.executor.reads_only.set(reads_only);
    }

    /// Ends the portals of the transaction that has ended.
    pub(super) fn end_portals(&mut self, has_committed: bool) {
        self.portals.clear();
        self.end_cursors(has_committed);
    }

    fn commit(&mut self, chain: bool) -> Result<Outcome, SqlError> {
        let reads_only = self.executor.reads_only.get();
        let is_block = matches!(self.block.phase(), Phase::Open | Phase::Failed);
        if !is_block {
            if chain {
                return Err(only_in_blocks("COMMIT AND CHAIN"));
            }
            self.warn("25P01", "there is no transaction in progress".to_owned());
        }
        let ended = self.block.commit(&self.executor);
        self.end_portals(ended == Ok(true));
        let has_committed = ended?;
        if chain {
            self.begin_again(reads_only);
        }
        Ok(done(if has_committed { "COMMIT" } else { "ROLLBACK" }))
    }

    fn roll_back(&mut self, chain: bool) -> Result<Outcome, SqlError> {
        let reads_only = self.executor.reads_only.get();
        let is_block = matches!(self.block.phase(), Phase::Open | Phase::Failed);
        if !is_block {
            if chain {
                return Err(only_in_blocks("ROLLBACK AND CHAIN"));
            }
            self.warn("25P01", "there is no transaction in progress".to_owned());
        }
        self.end_portals(false);
        self.block.roll_back(&self.executor);
        if chain {
            self.begin_again(reads_only);
        }
        Ok(done("ROLLBACK"))
    }

    fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), SqlError> {
        if name.eq_ignore_ascii_case("transaction_read_only") {
            let reads_only = match value {
                None => self.executor.state.settings().reads_only,
                Some(value) => super::settings::boolean(value).ok_or_else(|| {
                    SqlError::new("22023", "parameter \"transaction_read_only\" requires a Boolean value")
                })?,
            };
            return self.set_modes(Modes { read_only: Some(reads_only) });
        }
        self.executor.state.set(name, value, is_local)
    }

    fn forget_sequences(&self) {
        self.executor.state.sequence_values.borrow_mut().clear();
        self.executor.state.last_sequence.set(None);
    }

    fn discard_all(&mut self) -> Result<Outcome, SqlError> {
        if self.block.phase() != Phase::Idle {
            return Err(not_in_blocks("DISCARD ALL"));
        }
        self.portals.clear();
        self.cursors.clear();
        self.statements.clear();
        self.cache.clear();
        self.forget_sequences();
        self.executor.state.reset_settings();
        self.executor.state.pend(Pending::Unlisten(None))?;
        Ok(done("DISCARD ALL"))
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<Outcome, SqlError> {
        match name {
            None => {
                self.statements.clear();
                Ok(done("DEALLOCATE ALL"))
            }
            Some(name) => {
                self.statements.remove(name).ok_or_else(|| no_such_statement(name))?;
                Ok(done("DEALLOCATE"))
            }
        }
    }
}

fn copy_of_source(planned: &Planned) -> Planned {
    Planned { statement: planned.statement.clone(), verb: planned.verb.clone() }
}

fn copy_of(planned: &Planned) -> Rc<Prepared> {
    Prepared::simple(Command::Planned(copy_of_source(planned)))
}
