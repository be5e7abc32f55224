//! The knowledge of functions beside their arguments: the clock, the session, the catalog.

use crate::error::SqlError;
use std::time::Duration;

/// The surroundings of a call.
#[derive(Clone, Copy)]
pub struct Environment<'e> {
    /// The start of the transaction: microseconds since 2000-01-01 UTC.
    pub now: i64,
    /// The start of the statement, likewise.
    pub statement_time: i64,
    /// The user.
    pub user: &'e str,
    /// The database.
    pub database: &'e str,
    /// The number of the connection, which `pg_backend_pid` gives.
    pub process: i32,
    /// The catalog.
    pub names: &'e dyn CatalogNames,
    /// The session.
    pub settings: &'e dyn SessionSettings,
}

/// The names and definitions of the catalog's objects. All that is not there has no name.
pub trait CatalogNames {
    /// The name of a table, index, sequence or view.
    fn relation_name(&self, oid: u32) -> Option<String>;

    /// The number of a table, index, sequence or view.
    fn relation_oid(&self, name: &str) -> Option<u32>;

    /// The statement that creates an index (`pg_get_indexdef`); with a column, from 1 on, only that column's expression.
    fn index_definition(&self, index: u32, column: Option<i32>) -> Option<String>;

    /// The text of a constraint (`pg_get_constraintdef`): `PRIMARY KEY (id)`.
    fn constraint_definition(&self, constraint: u32) -> Option<String>;

    /// The name of a schema.
    fn schema_name(&self, oid: u32) -> Option<String> {
        match oid {
            11 => Some("pg_catalog".to_owned()),
            2200 => Some("public".to_owned()),
            _ => None,
        }
    }

    /// The text of an expression that the catalog has stored as such (`pg_get_expr`).
    fn expression_text(&self, stored: &str) -> Option<String> {
        Some(stored.to_owned())
    }

    /// The name of a user.
    fn user_name(&self, oid: u32) -> Option<String> {
        let _ = oid;
        None
    }

    /// The sequence that a column takes its values from (`pg_get_serial_sequence`).
    fn sequence_of_column(&self, table: &str, column: &str) -> Option<String> {
        let _ = (table, column);
        None
    }

    /// The bytes that a table or an index takes; none are counted if it is not known.
    fn size(&self, relation: u32) -> i64 {
        let _ = relation;
        0
    }
}

/// The session, as functions ask it.
pub trait SessionSettings {
    /// The value of a setting (`current_setting`).
    fn setting(&self, name: &str) -> Option<String>;

    /// The time: microseconds since 2000-01-01 UTC.
    fn clock(&self) -> i64;

    /// Waits (`pg_sleep`).
    ///
    /// # Errors
    ///
    /// If the statement is cancelled meanwhile.
    fn sleep(&self, time: Duration) -> Result<(), SqlError>;

    /// Sets a setting, for the transaction only if it `is_local`; to its default without a value (`set_config`).
    ///
    /// # Errors
    ///
    /// 42704 if it is unknown, 22023 if it cannot have the value.
    fn set(&self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), SqlError> {
        let _ = (name, value, is_local);
        Err(SqlError::not_supported("set_config"))
    }

    /// Tells a channel something when the transaction commits (`pg_notify`).
    ///
    /// # Errors
    ///
    /// 22023 if the channel's name or the payload is too long, 54000 if there is too much to tell.
    fn notify(&self, channel: &str, payload: &str) -> Result<(), SqlError> {
        let _ = (channel, payload);
        Err(SqlError::not_supported("pg_notify"))
    }

    /// The text that `version` gives.
    fn version(&self) -> String {
        format!("PostgreSQL 15.0 (Hotrow {})", env!("CARGO_PKG_VERSION"))
    }

    /// The time at which the server began, as [`clock`](Self::clock) has it.
    fn server_started(&self) -> i64 {
        0
    }

    /// The number of the transaction.
    fn transaction(&self) -> i64 {
        1
    }
}
