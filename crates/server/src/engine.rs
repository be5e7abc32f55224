//! The engine behind the server, as a trait: the tests of the protocol run against a small one of their own.

use hotrow_sql::values::{Datum, Type};
use hotrow_sql::{BlockState, Client, Field, Outcome, SqlError};
use std::sync::Arc;
use std::time::Duration;

/// A function that another thread may call at any time.
pub(crate) type Signal = Arc<dyn Fn() + Send + Sync>;

/// A client's wishes at the start of its connection.
pub(crate) struct Start {
    /// Its user, whom the server has authenticated.
    pub(crate) user: String,
    /// The database that it asks for.
    pub(crate) database: String,
    /// Settings, by their names.
    pub(crate) parameters: Vec<(String, String)>,
    /// The connection's number.
    pub(crate) process: i32,
    /// Wakes the connection's thread when there are notifications.
    pub(crate) waker: Signal,
}

/// A family of metrics: its name, its help, and the values by their labels.
pub(crate) type MetricFamily = (&'static str, &'static str, Vec<(String, f64)>);

/// An engine that runs statements for many connections.
pub(crate) trait Engine: Clone + Send + Sync + 'static {
    /// The engine's side of a connection, which stays on its thread.
    type Connection: EngineConnection;

    /// Begins a connection.
    fn connect(&self, start: Start) -> Result<Self::Connection, SqlError>;

    /// The engine's own metrics.
    fn metric_families(&self) -> Vec<MetricFamily>;
}

/// The engine's side of a connection. What is open is rolled back when it is dropped.
pub(crate) trait EngineConnection {
    /// The parameters that a client is told of at the start.
    fn parameters(&self) -> Vec<(&'static str, String)>;

    /// Ends the running statement with 57014 when it is called.
    fn canceller(&self) -> Signal;

    /// Runs a text of statements; their results go to `client`.
    fn query(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError>;

    /// Prepares a statement.
    fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Result<(), SqlError>;

    /// The types of a prepared statement's parameters.
    fn parameter_types(&self, statement: &str) -> Result<Arc<[Type]>, SqlError>;

    /// The columns of a prepared statement's result.
    fn describe_statement(&mut self, name: &str) -> Result<Option<Arc<[Field]>>, SqlError>;

    /// Makes a portal of a prepared statement and values for its parameters.
    fn bind(&mut self, portal: &str, statement: &str, parameters: Vec<Datum>) -> Result<(), SqlError>;

    /// The columns of a portal's result.
    fn describe_portal(&mut self, portal: &str) -> Result<Option<Arc<[Field]>>, SqlError>;

    /// Runs a portal until it has given `rows_max` rows, or all of them for 0. True beside the result if there may be
    /// more.
    fn execute(
        &mut self,
        portal: &str,
        rows_max: usize,
        is_last: bool,
        client: &mut dyn Client,
    ) -> Result<(Outcome, bool), SqlError>;

    /// Drops a prepared statement, if there is one of this name.
    fn close_statement(&mut self, name: &str);

    /// Drops a portal, if there is one of this name.
    fn close_portal(&mut self, name: &str);

    /// Ends a pipeline: commits if no block is open.
    fn sync(&mut self) -> Result<(), SqlError>;

    /// Takes note of an error that the server has found itself.
    fn fail(&mut self);

    /// The state of the connection's block.
    fn state(&self) -> BlockState;

    /// The longest time that an open block may wait for its client.
    fn idle_limit(&self) -> Option<Duration>;

    /// Notifications that have arrived: the sender's number, the channel, the payload.
    fn take_notifications(&mut self) -> Vec<(i32, String, String)>;
}
