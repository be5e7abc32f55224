//! The transaction that is open between two statements: a block that the client has begun, or one that a text or a pipeline of several
//! statements is.
//!
//! ```text
//!          BEGIN ────────────► Open ──error──► Failed
//! Idle ──┤                      ▲  ◄──────────── │  ROLLBACK TO a savepoint
//!          several statements ► Implicit ──error──► Idle
//! ```
//!
//! The session begins at the first statement that needs it, so an open block that has not done anything yet holds nothing. One that has
//! failed keeps its session as long as there is a savepoint to which it can go back.

use super::errors::of_session;
use super::executor::Executor;
use super::state::StateMark;
use crate::error::SqlError;
use crate::outcome::BlockState;
use crate::run::Stop;
use hotrow::{Any, LocalSession, SessionMark, Transaction};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The largest number of savepoints of one block.
const MARKS_MAX: usize = 10_000;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Of several statements, without `BEGIN`.
    Implicit,
    Open,
    Failed,
}

/// A savepoint.
struct Mark {
    name: String,
    mark: SessionMark,
    state: StateMark,
}

/// A connection's block.
pub(super) struct Block {
    phase: Phase,
    session: Option<LocalSession<Any>>,
    marks: Vec<Mark>,
    /// The error that has ended the session of a failed block.
    ended_by: Option<SqlError>,
}

impl Block {
    pub(super) fn new() -> Self {
        Self { phase: Phase::Idle, session: None, marks: Vec::new(), ended_by: None }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// The state that clients are told.
    pub(super) fn state(&self) -> BlockState {
        match self.phase {
            Phase::Idle | Phase::Implicit => BlockState::Idle,
            Phase::Open => BlockState::Open,
            Phase::Failed => BlockState::Failed,
        }
    }

    /// True if a statement has run in it.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Begins a transaction of several statements.
    pub(super) fn begin_implicit(&mut self, executor: &Executor) {
        if self.phase == Phase::Idle {
            self.begin(executor);
            self.phase = Phase::Implicit;
        }
    }

    /// Begins a block, or makes one of what has begun already.
    pub(super) fn begin(&mut self, executor: &Executor) {
        if self.phase == Phase::Idle {
            executor.state.transaction_started.set(executor.state.statement_started.get());
        }
        self.phase = Phase::Open;
    }

    /// A block whose statements have run, and that has failed.
    pub(super) fn begin_failed(&mut self, executor: &Executor) {
        self.begin(executor);
        self.phase = Phase::Failed;
    }

    fn session(&mut self, executor: &Executor) -> Result<&mut LocalSession<Any>, SqlError> {
        if self.session.is_none() {
            let profile = executor.profile(executor.reads_only.get());
            let begun = executor
                .shared
                .database
                .begin_here(format!("connection {}", executor.state.process), profile);
            self.session = Some(begun.map_err(|error| of_session(error, &executor.state))?);
        }
        Ok(self.session.as_mut().expect("the session has begun"))
    }

    /// Runs a part of the transaction. If it fails, what it has written is undone; the caller makes the block [fail](Self::fail).
    pub(super) fn run<R>(
        &mut self,
        executor: &Executor,
        body: impl FnOnce(&mut Transaction<'_, Any>) -> Result<R, Stop>,
    ) -> Result<R, SqlError> {
        let session = self.session(executor)?;
        let ran = catch_unwind(AssertUnwindSafe(|| {
            session.try_run(|tx| {
                executor.state.bind(tx)?;
                body(tx)
            })
        }));
        let result = executor.finished(ran);
        if let Err(error) = &result
            && self.session.as_ref().is_none_or(|session| !session.is_open())
        {
            self.ended_by = Some(error.clone());
            self.end_session();
        }
        result
    }

    /// The session was told to end. An error of a statement's does not change that.
    pub(super) fn end_told(&mut self, error: SqlError) {
        self.ended_by = Some(error);
        self.end_session();
    }

    fn end_session(&mut self) {
        // A panic of a value's destructor is the session's affair.
        let session = self.session.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(session)));
    }

    /// A statement has failed.
    pub(super) fn fail(&mut self, executor: &Executor) {
        match self.phase {
            Phase::Idle | Phase::Failed => {}
            Phase::Implicit => self.roll_back(executor),
            Phase::Open => {
                self.phase = Phase::Failed;
                if self.marks.is_empty() {
                    self.end_session();
                    executor.shared.clean_up(&executor.changes);
                }
            }
        }
    }

    /// Commits. True if there was something that could be committed: a block that has failed is rolled back.
    pub(super) fn commit(&mut self, executor: &Executor) -> Result<bool, SqlError> {
        if self.phase == Phase::Failed {
            self.roll_back(executor);
            return Ok(false);
        }
        if let Err(error) = executor.check_pending() {
            self.roll_back(executor);
            return Err(error);
        }
        let result = match self.session.take() {
            None => Ok(()),
            Some(session) => {
                let ran = catch_unwind(AssertUnwindSafe(|| session.commit()));
                executor.finished(ran.map(|ended| ended.map_err(|error| error.map_rollback(Stop::Abort))))
            }
        };
        self.end();
        match &result {
            Ok(()) => executor.committed(),
            Err(_) => executor.rolled_back(),
        }
        result.map(|()| true)
    }

    /// Rolls back.
    pub(super) fn roll_back(&mut self, executor: &Executor) {
        self.end_session();
        self.end();
        executor.rolled_back();
    }

    fn end(&mut self) {
        *self = Self::new();
    }

    /// `SAVEPOINT`.
    pub(super) fn set_mark(&mut self, name: &str, executor: &Executor) -> Result<(), SqlError> {
        if self.phase != Phase::Open {
            return Err(only_in_blocks("SAVEPOINT"));
        }
        if self.marks.len() >= MARKS_MAX {
            return Err(SqlError::new("54000", "too many savepoints in one transaction"));
        }
        let mark = self.session(executor)?.savepoint();
        let mark = mark.map_err(|error| self.session_error(error, executor))?;
        self.marks.push(Mark { name: name.to_owned(), mark, state: executor.state.mark() });
        Ok(())
    }

    /// The error of the session itself, which may have ended by it.
    fn session_error(&mut self, error: hotrow::Error, executor: &Executor) -> SqlError {
        let error = of_session(error, &executor.state);
        if self.session.as_ref().is_none_or(|session| !session.is_open()) {
            self.ended_by = Some(error.clone());
            self.end_session();
        }
        error
    }

    fn find_mark(&self, name: &str) -> Result<usize, SqlError> {
        let found = self.marks.iter().rposition(|mark| mark.name == name);
        found.ok_or_else(|| SqlError::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    /// `RELEASE`.
    pub(super) fn release(&mut self, name: &str, executor: &Executor) -> Result<(), SqlError> {
        if self.phase != Phase::Open {
            return Err(only_in_blocks("RELEASE SAVEPOINT"));
        }
        let at = self.find_mark(name)?;
        let mark = self.marks[at].mark;
        let released = self.session(executor)?.release(mark);
        released.map_err(|error| self.session_error(error, executor))?;
        self.marks.truncate(at);
        Ok(())
    }

    /// `ROLLBACK TO`, which is the way out of a block that has failed.
    pub(super) fn roll_back_to(&mut self, name: &str, executor: &Executor) -> Result<(), SqlError> {
        if !matches!(self.phase, Phase::Open | Phase::Failed) {
            return Err(only_in_blocks("ROLLBACK TO SAVEPOINT"));
        }
        let at = self.find_mark(name)?;
        if let Some(error) = &self.ended_by {
            return Err(error.clone());
        }
        let mark = self.marks[at].mark;
        let undone = self.session(executor)?.roll_back_to(mark);
        undone.map_err(|error| self.session_error(error, executor))?;
        self.marks.truncate(at + 1);
        executor.state.roll_back_to(&self.marks[at].state);
        self.phase = Phase::Open;
        Ok(())
    }
}

/// The error of a statement outside of a block.
pub(super) fn only_in_blocks(what: &str) -> SqlError {
    SqlError::new("25P01", format!("{what} can only be used in transaction blocks"))
}

/// The error of a statement within a block.
pub(super) fn not_in_blocks(what: &str) -> SqlError {
    SqlError::new("25001", format!("{what} cannot run inside a transaction block"))
}
