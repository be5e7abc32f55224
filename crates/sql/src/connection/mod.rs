//! Connections: the state of one client, between its messages and the plans of its statements.
//!
//! A statement outside of a block is a transaction of its own: a closure that runs again when it loses a conflict ([`executor`]), so
//! that its client never hears of one. So are all statements of one text, and a block that begins and commits in one text ([`simple`]).
//! An open block is a session on the connection's own thread ([`block`]): it has one attempt, and its client gets 40001 if it loses.
//! A statement that only reads runs on a snapshot, which never loses.
//!
//! Plans are made within the transaction that runs them, by the catalog that it sees, and are kept until the catalog has another
//! version ([`prepared`]).

mod activity;
mod block;
mod cancel;
mod command;
mod control;
mod copy;
mod copy_binary;
mod copy_options;
mod copy_rows;
mod copy_text;
mod cursor;
mod depth;
mod errors;
mod executor;
mod hub;
mod portal;
mod prepared;
mod set_words;
mod settings;
mod simple;
mod state;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use activity::{Activities, Activity, Moment};
pub use cancel::Canceller;
pub(crate) use state::{SessionState, now};

use crate::catalog::Catalog;
use crate::error::SqlError;
use crate::hashing::Map;
use crate::instance::Instance;
use crate::outcome::{BlockState, Client};
use crate::plan::Plan;
use block::{Block, Phase};
use cursor::Cursor;
use executor::Executor;
use hotrow::sync::Arc;
use portal::Portal;
use prepared::{Cache, Prepared};
use settings::Settings;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// The largest number of prepared statements of one connection.
const STATEMENTS_MAX: usize = 10_000;

/// The largest number of portals of one connection.
const PORTALS_MAX: usize = 10_000;

/// A client's statements about itself when it connects.
pub struct Start {
    /// The user's name.
    pub user: String,
    /// The database's name. There is one database, whatever it is called.
    pub database: String,
    /// Settings, each with its value.
    pub parameters: Vec<(String, String)>,
    /// The connection's number, by which others know it.
    pub process: i32,
    /// Called when there are notifications to be [taken](Connection::take_notifications), on any thread.
    pub waker: Arc<dyn Fn() + Send + Sync>,
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("user", &self.user)
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

/// A client's connection. It stays on the thread that has made it; what is open is rolled back when it is dropped.
pub struct Connection {
    block: Block,
    executor: Executor,
    statements: Map<String, Rc<Prepared>>,
    portals: Map<String, Portal>,
    cursors: Map<String, Cursor>,
    cache: Cache,
    /// The settings of which the client was told.
    told: Rc<Settings>,
    activity: Arc<Activity>,
}

impl Instance {
    /// Connects a client.
    ///
    /// # Errors
    ///
    /// 22023, 42704 and their like for settings that cannot be.
    pub fn connect(&self, start: Start) -> Result<Connection, SqlError> {
        let defaults = Settings::new(&start.user);
        let mut settings = defaults.clone();
        for (name, value) in &start.parameters {
            // A client's own time zone is no reason to refuse it: it is told that times are in UTC.
            if !Settings::is_other_zone(name, value) {
                settings.set(name, Some(value), &defaults)?;
            }
        }
        let application = settings.get("application_name").unwrap_or_default();
        let activities = &self.shared.activities;
        let activity = activities.enter(start.process, &start.user, &start.database, application);
        let state =
            SessionState::new(start.user, start.database, start.process, settings, self.shared.clone());
        let executor = Executor::new(self.shared.clone(), state, start.waker);
        let told = executor.state.settings();
        executor.reads_only.set(told.reads_only);
        Ok(Connection {
            block: Block::new(),
            executor,
            statements: Map::default(),
            portals: Map::default(),
            cursors: Map::default(),
            cache: Cache::default(),
            told,
            activity,
        })
    }
}

impl Connection {
    /// The settings that a client is told when it has connected, with their values.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        self.told.reported().collect()
    }

    /// A handle by which any thread can cancel the running statement.
    pub fn canceller(&self) -> Canceller {
        Canceller { switch: self.executor.state.switch.clone() }
    }

    /// Tells the connection of an error that its server has found: an open block has failed.
    pub fn fail(&mut self) {
        self.block.fail(&self.executor);
    }

    /// The state of the block, as clients are told.
    pub fn state(&self) -> BlockState {
        self.block.state()
    }

    /// The longest time that the open block may wait for its next statement, if it has a limit.
    pub fn idle_limit(&self) -> Option<Duration> {
        match self.block.state() {
            BlockState::Idle => None,
            BlockState::Open | BlockState::Failed => self.executor.state.settings().idle_timeout(),
        }
    }

    /// Takes the notifications that have come: process, channel and payload of each. There are none while a block is open.
    pub fn take_notifications(&mut self) -> Vec<(i32, String, String)> {
        if self.block.phase() == Phase::Idle { self.executor.mailbox.take() } else { Vec::new() }
    }

    /// Begins a statement, of this text if it is known.
    fn begin_statement(&mut self, text: Option<&str>) {
        self.executor.state.begin_text();
        self.executor.state.begin_statement();
        self.activity.begin(text);
    }

    /// A statement has ended with this result: from now on nobody cancels it, and its result is sent.
    fn settled<R>(&mut self, result: Result<R, SqlError>) -> Result<R, SqlError> {
        match self.executor.state.end_statement() {
            Some(error) if self.block.has_session() => {
                self.block.end_told(error.clone());
                result.and(Err(error))
            }
            _ => result,
        }
    }

    /// Ends a message's statements: an open block has failed if they have. Tells the client, if it listens, what it has to be told besides.
    fn finish<R>(
        &mut self,
        result: Result<R, SqlError>,
        client: Option<&mut dyn Client>,
    ) -> Result<R, SqlError> {
        let result = self.settled(result);
        if result.is_err() {
            self.fail();
        }
        self.activity.end(self.block.state());
        if let Some(client) = client {
            self.tell_changes(client);
        }
        result
    }

    /// Tells the client of notices, and of settings that have changed.
    fn tell_changes(&mut self, client: &mut dyn Client) {
        self.tell_notices(client);
        let settings = self.executor.state.settings();
        if !Rc::ptr_eq(&settings, &self.told) {
            for ((name, value), (_, told)) in settings.reported().zip(self.told.reported()) {
                if value != told {
                    client.parameter(name, &value);
                }
            }
            self.activity.rename(settings.get("application_name").unwrap_or_default());
            self.told = settings;
        }
    }

    fn tell_notices(&self, client: &mut dyn Client) {
        for notice in self.executor.state.take_notices() {
            client.notice(notice);
        }
    }

    /// The catalog as the open block sees it, or as it is.
    fn catalog(&mut self) -> Result<Arc<Catalog>, SqlError> {
        if self.block.has_session() {
            self.block.run(&self.executor, |tx| Ok(self.executor.shared.catalog.get(tx)?))
        } else {
            self.executor.catalog()
        }
    }

    /// Plans a statement.
    fn plan(&mut self, prepared: &Prepared) -> Result<Rc<Plan>, SqlError> {
        let catalog = self.catalog()?;
        prepared.plan(&catalog, &self.executor.state)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.block.roll_back(&self.executor);
        self.executor.hub.leave(&self.executor.mailbox);
        self.executor.shared.activities.leave(&self.activity);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("state", &self.state()).finish_non_exhaustive()
    }
}
