//! The state of a connection that plans and functions read: its user, its settings, its clocks, and whether it was told to stop.

use super::cancel::{NEVER, Switch};
use super::hub::{Hub, Mailbox, Pending};
use super::settings::Settings;
use crate::error::SqlError;
use crate::instance::Shared;
use crate::outcome::Notice;
use crate::run::Stop;
use hotrow::sync::Arc;
use hotrow::sync::clock::{nanoseconds, whole_nanoseconds};
use hotrow::{Any, Transaction};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds from 1970 to 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

/// The largest number of notices that one statement may leave.
const NOTICES_MAX: usize = 1_000;

/// The largest number of notifications that wait for one commit.
const PENDING_MAX: usize = 100_000;

/// The current time, in microseconds since 2000-01-01 UTC.
#[allow(clippy::disallowed_methods, reason = "the calendar's time is no time of the clock")]
pub(crate) fn now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX) - EPOCH_SECONDS * 1_000_000
}

/// A connection's state.
pub(crate) struct SessionState {
    /// The instance: where the rows are, and its procedures.
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) process: i32,
    /// The values as they are now.
    settings: RefCell<Rc<Settings>>,
    /// The values that stay after a commit: without those of `SET LOCAL`.
    lasting: RefCell<Rc<Settings>>,
    /// The values to which a rollback goes back.
    before: RefCell<Rc<Settings>>,
    /// The values to which `RESET` goes back.
    pub(super) at_start: Rc<Settings>,
    /// The last value that was drawn from each sequence, by number.
    pub(crate) sequence_values: RefCell<HashMap<u32, i64>>,
    /// The sequence from which a value was drawn last.
    pub(crate) last_sequence: Cell<Option<u32>>,
    /// The start of the transaction, in microseconds since 2000-01-01 UTC.
    pub(crate) transaction_started: Cell<i64>,
    /// The start of the statement, in the same unit.
    pub(crate) statement_started: Cell<i64>,
    /// True if the statement runs again should a guess be wrong: a condition that seems to hold is judged at the commit alone.
    pub(crate) may_guess: Cell<bool>,
    /// True if it has guessed.
    pub(crate) has_guessed: Cell<bool>,
    pub(super) switch: Arc<Switch>,
    /// The time at which the statement is over, in nanoseconds of the clock.
    deadline: Cell<u64>,
    notices: RefCell<Vec<Notice>>,
    pending: RefCell<Vec<Pending>>,
}

/// The error of a statement that was told to stop, or has run for too long.
fn cancelled(is_late: bool) -> SqlError {
    let cause = if is_late { "statement timeout" } else { "user request" };
    SqlError::new("57014", format!("canceling statement due to {cause}"))
}

impl SessionState {
    pub(super) fn new(
        user: String,
        database: String,
        process: i32,
        settings: Settings,
        shared: Arc<Shared>,
    ) -> Self {
        let settings = Rc::new(settings);
        Self {
            shared,
            user,
            database,
            process,
            settings: RefCell::new(settings.clone()),
            lasting: RefCell::new(settings.clone()),
            before: RefCell::new(settings.clone()),
            at_start: settings,
            sequence_values: RefCell::default(),
            last_sequence: Cell::new(None),
            transaction_started: Cell::new(now()),
            statement_started: Cell::new(now()),
            may_guess: Cell::new(false),
            has_guessed: Cell::new(false),
            switch: Switch::new(),
            deadline: Cell::new(NEVER),
            notices: RefCell::default(),
            pending: RefCell::default(),
        }
    }

    /// Fails if the running statement was told to stop, or has run for too long.
    #[inline]
    pub(crate) fn check_cancelled(&self) -> Result<(), SqlError> {
        if self.is_late() || self.switch.is_cancelled() { Err(self.cancelled()) } else { Ok(()) }
    }

    /// Binds a transaction to the running statement: it ends if the statement is cancelled, and waits no longer than `lock_timeout`.
    pub(super) fn bind(&self, tx: &mut Transaction<'_, Any>) -> Result<(), Stop> {
        self.check_cancelled()?;
        self.switch.bind(tx)?;
        self.limit_waits(tx);
        Ok(())
    }

    fn limit_waits(&self, tx: &mut Transaction<'_, Any>) {
        if let Some(time_max) = self.settings.borrow().lock_timeout() {
            tx.set_deadline(time_max);
        }
    }

    fn is_late(&self) -> bool {
        let deadline = self.deadline.get();
        deadline != NEVER && nanoseconds() >= deadline
    }

    /// The error of a statement that was told to stop.
    #[cold]
    pub(crate) fn cancelled(&self) -> SqlError {
        cancelled(self.is_late())
    }

    /// A text of statements begins.
    pub(super) fn begin_text(&self) {
        self.statement_started.set(now());
    }

    /// A statement begins: it may be cancelled, and has a deadline.
    pub(super) fn begin_statement(&self) {
        self.set_deadline();
        self.switch.begin(self.deadline.get());
    }

    /// The next statement of a transaction of several begins: it has the deadline that the settings say now.
    pub(super) fn begin_next(&self, tx: &mut Transaction<'_, Any>) {
        self.set_deadline();
        self.switch.set_deadline(self.deadline.get());
        self.limit_waits(tx);
    }

    fn set_deadline(&self) {
        let timeout = self.settings.borrow().statement_timeout();
        self.deadline.set(match timeout {
            Some(timeout) => nanoseconds().saturating_add(whole_nanoseconds(timeout)),
            None => NEVER,
        });
    }

    /// The statement has ended. An error if its transaction was told to end.
    pub(super) fn end_statement(&self) -> Option<SqlError> {
        let is_late = self.is_late();
        self.deadline.set(NEVER);
        self.switch.end().then(|| cancelled(is_late))
    }

    /// The settings as they are now.
    pub(super) fn settings(&self) -> Rc<Settings> {
        self.settings.borrow().clone()
    }

    /// The value of a setting, if it is known: `current_setting`.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.settings.borrow().get(name)
    }

    /// Sets a setting, for the transaction only if it `is_local`. A rollback undoes it.
    ///
    /// # Errors
    ///
    /// 42704 if it is unknown, 22023 if it cannot have the value.
    pub(crate) fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), SqlError> {
        let mut value = value;
        if let Some(zone) = value
            && Settings::is_other_zone(name, zone)
        {
            let text = format!("time zone \"{zone}\" is not supported");
            self.notice("WARNING", SqlError::new("01000", text).hint("Times are shown in UTC."));
            value = Some("UTC");
        }
        Rc::make_mut(&mut self.settings.borrow_mut()).set(name, value, &self.at_start)?;
        if !is_local {
            Rc::make_mut(&mut self.lasting.borrow_mut()).set(name, value, &self.at_start)?;
        }
        Ok(())
    }

    /// Sets all settings to what they were when the connection began.
    pub(super) fn reset_settings(&self) {
        *self.settings.borrow_mut() = self.at_start.clone();
        *self.lasting.borrow_mut() = self.at_start.clone();
    }

    /// The settings and the number of pending notifications, for a savepoint.
    pub(super) fn mark(&self) -> StateMark {
        let (settings, lasting) = (self.settings(), self.lasting.borrow().clone());
        StateMark { settings, lasting, pending: self.pending.borrow().len() }
    }

    /// Undoes what was set and notified since a mark.
    pub(super) fn roll_back_to(&self, mark: &StateMark) {
        *self.settings.borrow_mut() = mark.settings.clone();
        *self.lasting.borrow_mut() = mark.lasting.clone();
        self.pending.borrow_mut().truncate(mark.pending);
    }

    /// The transaction has committed: what was set stays, and what is to be told is returned.
    pub(super) fn commit(&self) -> Vec<Pending> {
        let lasting = self.lasting.borrow().clone();
        *self.settings.borrow_mut() = lasting.clone();
        *self.before.borrow_mut() = lasting;
        self.pending.take()
    }

    /// The transaction has no effect: nothing was set or notified.
    pub(super) fn roll_back(&self) {
        let before = self.before.borrow().clone();
        *self.settings.borrow_mut() = before.clone();
        *self.lasting.borrow_mut() = before;
        self.pending.borrow_mut().clear();
    }

    /// Tells the client something when the statement has ended.
    pub(crate) fn notice(&self, severity: &'static str, content: SqlError) {
        let mut notices = self.notices.borrow_mut();
        if notices.len() < NOTICES_MAX {
            notices.push(Notice { severity, content });
        }
    }

    /// The notices that nobody has been told yet.
    pub(super) fn take_notices(&self) -> Vec<Notice> {
        self.notices.take()
    }

    /// Tells a channel something when the transaction commits: `pg_notify`.
    ///
    /// # Errors
    ///
    /// 22023 if the channel's name or the payload is too long, 54000 if there is too much to tell.
    pub(crate) fn notify(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        let problem = match (channel.len(), payload.len()) {
            (0, _) => "channel name cannot be empty",
            (64.., _) => "channel name too long",
            (_, 8_000..) => "payload string too long",
            _ => return self.pend(Pending::Notify(channel.to_owned(), payload.to_owned())),
        };
        Err(SqlError::new("22023", problem))
    }

    /// Puts something off until the transaction commits.
    pub(super) fn pend(&self, pending: Pending) -> Result<(), SqlError> {
        let mut all = self.pending.borrow_mut();
        if all.len() >= PENDING_MAX {
            return Err(SqlError::new("54000", "too many notifications in one transaction"));
        }
        // PostgreSQL tells equal ones once.
        if !all.contains(&pending) || all.len() > 100 {
            all.push(pending);
        }
        Ok(())
    }

    /// Checks that what is put off can be done.
    pub(super) fn check_pending(&self, hub: &Hub, mailbox: &Arc<Mailbox>) -> Result<(), SqlError> {
        hub.check(&self.pending.borrow(), mailbox)
    }

    /// True if something is told when the transaction commits.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }
}

/// The state at a savepoint.
#[derive(Clone)]
pub(super) struct StateMark {
    settings: Rc<Settings>,
    lasting: Rc<Settings>,
    pending: usize,
}
