//! The extended protocol: statements are prepared, bound, described and run by messages of their own.
//!
//! Each function gives an error of the statement as its inner result: the caller tells the client, and skips what
//! follows until Sync.

use crate::client::Conversation;
use crate::engine::{Engine, EngineConnection};
use crate::error::End;
use crate::formats::{Formats, parameters};
use crate::session::Session;
use crate::transport::Transport;
use hotrow_sql::{BlockState, Field, SqlError};
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
    TARGET_TYPE_BYTE_STATEMENT,
};

/// The largest number of portals whose results are not all text, within a transaction.
const PORTALS_MAX: usize = 65_536;

/// The result of a message: an end of the connection, or an error of the statement.
type Reply = Result<Result<(), SqlError>, End>;

/// Goes on with a value, or gives an error of the statement as the reply.
macro_rules! reply {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        }
    };
}

impl<E: Engine, T: Transport> Session<'_, '_, E, T> {
    /// Prepares a statement.
    pub(crate) fn parse(&mut self, parse: Parse) -> Reply {
        let name = parse.name.unwrap_or_default();
        reply!(self.peer.running(|| self.connection.parse(&name, &parse.query, &parse.type_oids)));
        self.wire.send(&ParseComplete::new()).map(Ok)
    }

    /// Makes a portal.
    pub(crate) fn bind(&mut self, bind: Bind) -> Reply {
        let statement = bind.statement_name.unwrap_or_default();
        let portal = bind.portal_name.unwrap_or_default();
        let types = match self.connection.parameter_types(&statement) {
            Ok(types) => types,
            Err(error) => {
                // Asking is no statement, so the engine does not count this as a failure of the block.
                self.connection.fail();
                return Ok(Err(error));
            }
        };
        let values = parameters(&statement, &bind.parameter_format_codes, &bind.parameters, &types);
        let formats =
            values.and_then(|values| Ok((values, Formats::of_codes(&bind.result_column_format_codes)?)));
        let (values, formats) = match formats {
            Ok(read) => read,
            Err(error) => {
                // In a failed block that is the error, whatever the parameters are.
                let is_failed = self.connection.state() == BlockState::Failed;
                self.connection.fail();
                return Ok(Err(if is_failed { failed_block() } else { error }));
            }
        };
        if self.portals.len() >= PORTALS_MAX && !formats.is_text() {
            self.connection.fail();
            return Ok(Err(SqlError::new("54000", "too many portals are open")));
        }
        reply!(self.peer.running(|| self.connection.bind(&portal, &statement, values)));
        if formats.len() > 1 {
            let count = reply!(self.connection.describe_portal(&portal)).map_or(0, |fields| fields.len());
            if !formats.fit(count) {
                let message = format!(
                    "bind message has {} result formats but query has {count} columns",
                    formats.len()
                );
                self.connection.close_portal(&portal);
                self.connection.fail();
                return Ok(Err(SqlError::new("08P01", message)));
            }
        }
        if formats.is_text() {
            self.portals.remove(&portal);
        } else {
            self.portals.insert(portal, formats);
        }
        self.wire.send(&BindComplete::new()).map(Ok)
    }

    /// Describes a statement's parameters and result, or a portal's result.
    pub(crate) fn describe(&mut self, describe: Describe) -> Reply {
        let name = describe.name.unwrap_or_default();
        if describe.target_type == TARGET_TYPE_BYTE_STATEMENT {
            let fields = reply!(self.connection.describe_statement(&name));
            let types = reply!(self.connection.parameter_types(&name));
            self.wire.send(&ParameterDescription::new(types.iter().map(|ty| ty.oid()).collect()))?;
            self.describe_fields(fields.as_deref(), &Formats::default())
        } else {
            let fields = reply!(self.connection.describe_portal(&name));
            let formats = self.portals.get(&name).cloned().unwrap_or_default();
            self.describe_fields(fields.as_deref(), &formats)
        }
    }

    /// Describes a result.
    fn describe_fields(&mut self, fields: Option<&[Field]>, formats: &Formats) -> Reply {
        match fields {
            Some(fields) => self.wire.send_fields(fields, formats).map(Ok),
            None => self.wire.send(&NoData::new()).map(Ok),
        }
    }

    /// Runs a portal.
    pub(crate) fn execute(&mut self, execute: Execute) -> Reply {
        let portal = execute.name.unwrap_or_default();
        // Less than one row means all of them.
        let rows_max = usize::try_from(execute.max_rows).unwrap_or(0);
        let is_last = self.wire.input.is_sync_next();
        let text = Formats::default();
        let formats = self.portals.get(&portal).unwrap_or(&text);
        let mut conversation = Conversation::new(self.service, self.wire);
        let result =
            self.peer.running(|| self.connection.execute(&portal, rows_max, is_last, &mut conversation));
        let result =
            result.map(|(outcome, is_suspended)| conversation.portal_outcome(outcome, formats, is_suspended));
        conversation.finish()?;
        if reply!(result) {
            self.wire.send(&PortalSuspended::new())?;
        }
        Ok(Ok(()))
    }

    /// Drops a statement or a portal; it is no error if there is none.
    pub(crate) fn close(&mut self, close: Close) -> Reply {
        let name = close.name.unwrap_or_default();
        if close.target_type == TARGET_TYPE_BYTE_STATEMENT {
            self.connection.close_statement(&name);
        } else {
            self.connection.close_portal(&name);
            self.portals.remove(&name);
        }
        self.wire.send(&CloseComplete::new()).map(Ok)
    }
}

/// The error of statements in a failed block.
fn failed_block() -> SqlError {
    SqlError::new("25P02", "current transaction is aborted, commands ignored until end of transaction block")
}
