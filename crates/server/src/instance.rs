//! Hotrow's SQL as the engine behind the server.

use crate::engine::{Engine, EngineConnection, MetricFamily, Signal, Start};
use hotrow_sql::values::{Datum, Type};
use hotrow_sql::{BlockState, Client, Connection, Field, Instance, Outcome, SqlError};
use std::sync::Arc;
use std::time::Duration;

impl Engine for Instance {
    type Connection = Connection;

    fn connect(&self, start: Start) -> Result<Connection, SqlError> {
        let Start { user, database, parameters, process, waker } = start;
        Instance::connect(self, hotrow_sql::Start { user, database, parameters, process, waker })
    }

    fn metric_families(&self) -> Vec<MetricFamily> {
        self.metrics()
    }
}

impl EngineConnection for Connection {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        Connection::parameters(self)
    }

    fn canceller(&self) -> Signal {
        let canceller = Connection::canceller(self);
        Arc::new(move || canceller.cancel())
    }

    fn query(&mut self, text: &str, client: &mut dyn Client) -> Result<(), SqlError> {
        Connection::query(self, text, client)
    }

    fn parse(&mut self, name: &str, text: &str, types: &[u32]) -> Result<(), SqlError> {
        Connection::parse(self, name, text, types)
    }

    fn parameter_types(&self, statement: &str) -> Result<Arc<[Type]>, SqlError> {
        Connection::parameter_types(self, statement)
    }

    fn describe_statement(&mut self, name: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        Connection::describe_statement(self, name)
    }

    fn bind(&mut self, portal: &str, statement: &str, parameters: Vec<Datum>) -> Result<(), SqlError> {
        Connection::bind(self, portal, statement, parameters)
    }

    fn describe_portal(&mut self, portal: &str) -> Result<Option<Arc<[Field]>>, SqlError> {
        Connection::describe_portal(self, portal)
    }

    fn execute(
        &mut self,
        portal: &str,
        rows_max: usize,
        is_last: bool,
        client: &mut dyn Client,
    ) -> Result<(Outcome, bool), SqlError> {
        Connection::execute(self, portal, rows_max, is_last, client)
    }

    fn close_statement(&mut self, name: &str) {
        Connection::close_statement(self, name);
    }

    fn close_portal(&mut self, name: &str) {
        Connection::close_portal(self, name);
    }

    fn sync(&mut self) -> Result<(), SqlError> {
        Connection::sync(self)
    }

    fn fail(&mut self) {
        Connection::fail(self);
    }

    fn state(&self) -> BlockState {
        Connection::state(self)
    }

    fn idle_limit(&self) -> Option<Duration> {
        Connection::idle_limit(self)
    }

    fn take_notifications(&mut self) -> Vec<(i32, String, String)> {
        Connection::take_notifications(self)
    }
}
