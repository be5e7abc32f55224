//! A connection: its messages one after the other, as one state machine over a [`Transport`].
//!
//! The states are those of PostgreSQL: after the start, messages are served as they come. An error in the extended
//! protocol skips all messages until the next Sync. `COPY … FROM STDIN` reads messages while its statement runs; what
//! is left of them after an error is passed over.

use crate::client::Conversation;
use crate::decode::{Flaw, decode};
use crate::engine::{Engine, EngineConnection};
use crate::error::End;
use crate::formats::Formats;
use crate::input::Frame;
use crate::peers::Peer;
use crate::service::Service;
use crate::startup::{Started, start};
use crate::transport::Transport;
use crate::wire::{News, Wire};
use hotrow_sql::{BlockState, SqlError};
use hotrow_sync::clock::now;
use hotrow_sync::hashing::KeyHashing;
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::response::{NotificationResponse, ReadyForQuery, TransactionStatus};
use std::collections::HashMap;

/// A connection that has begun.
pub(crate) struct Session<'a, 'w, E: Engine, T> {
    pub(crate) service: &'a Service<E>,
    pub(crate) peer: &'a Peer,
    pub(crate) wire: &'w mut Wire<'a, T>,
    pub(crate) connection: E::Connection,
    /// The formats of the portals' results, where they are not text.
    pub(crate) portals: HashMap<String, Formats, KeyHashing>,
    /// True from an error in the extended protocol until Sync.
    is_skipping: bool,
    /// True from ReadyForQuery until the next message.
    is_ready: bool,
}

/// Serves a client until it goes or the server stops. Whatever happens, the client has been told when this returns.
pub(crate) fn serve<'a, E: Engine, T: Transport>(
    service: &'a Service<E>,
    peer: &'a Peer,
    wire: &mut Wire<'a, T>,
) {
    let end = match start(service, wire, peer) {
        Ok(Started { connection, _admission }) => {
            let mut session = Session {
                service,
                peer,
                wire,
                connection,
                portals: HashMap::default(),
                is_skipping: false,
                is_ready: false,
            };
            session.run()
        }
        Err(end) => end,
    };
    wire.end(&end);
}

impl<E: Engine, T: Transport> Session<'_, '_, E, T> {
    /// Serves messages until the end.
    fn run(&mut self) -> End {
        let mut result = self.ready();
        while result.is_ok() {
            result = self.next_frame().and_then(|frame| self.handle(frame));
        }
        result.expect_err("the loop ends with an error")
    }

    /// Waits for the next message.
    fn next_frame(&mut self) -> Result<Frame, End> {
        // Only an open block has a limit. It holds for the whole message, so that a client cannot send it byte by byte.
        let deadline = match self.connection.state() {
            BlockState::Idle => None,
            _ => self.connection.idle_limit().map(|limit| now() + limit),
        };
        loop {
            if self.service.is_stopping() {
                return Err(End::shutdown());
            }
            match self.wire.receive(false, deadline)? {
                News::Frame(frame) => {
                    self.is_ready = false;
                    return Ok(frame);
                }
                News::Signal => {
                    if self.is_ready && self.send_notifications()? {
                        self.wire.flush()?;
                    }
                }
                News::Deadline => {
                    let message = "terminating connection due to idle-in-transaction timeout";
                    return Err(End::Fatal(SqlError::new("25P03", message)));
                }
            }
        }
    }

    /// Serves a message.
    fn handle(&mut self, frame: Frame) -> Result<(), End> {
        let kind = frame.kind;
        if self.is_skipping && !matches!(kind, b'S' | b'X') {
            return Ok(());
        }
        if kind == b'F' {
            return self.refuse(SqlError::not_supported("the function call protocol"));
        }
        let message = match decode(frame, self.wire.context()) {
            Ok(message) => message,
            Err(Flaw::Text(error)) if kind == b'Q' => return self.refuse(error),
            Err(Flaw::Text(error)) => return self.extended_error(error),
            Err(flaw) => return Err(flaw.into()),
        };
        let result = match message {
            PgWireFrontendMessage::Query(query) => return self.query(&query.query),
            PgWireFrontendMessage::Sync(_) => return self.sync(),
            PgWireFrontendMessage::Flush(_) => return self.wire.flush(),
            PgWireFrontendMessage::Terminate(_) => return Err(End::Gone),
            // Sent for a COPY that has failed meanwhile.
            PgWireFrontendMessage::CopyData(_)
            | PgWireFrontendMessage::CopyDone(_)
            | PgWireFrontendMessage::CopyFail(_) => return Ok(()),
            PgWireFrontendMessage::Parse(parse) => self.parse(parse)?,
            PgWireFrontendMessage::Bind(bind) => self.bind(bind)?,
            PgWireFrontendMessage::Describe(describe) => self.describe(describe)?,
            PgWireFrontendMessage::Execute(execute) => self.execute(execute)?,
            PgWireFrontendMessage::Close(close) => self.close(close)?,
            _ => return Err(End::violation(format!("invalid frontend message type {kind}"))),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.skip_after(&error),
        }
    }

    /// Runs a text of statements.
    fn query(&mut self, text: &str) -> Result<(), End> {
        let mut conversation = Conversation::new(self.service, self.wire);
        let result = self.peer.running(|| self.connection.query(text, &mut conversation));
        conversation.finish()?;
        if let Err(error) = result {
            self.report(&error)?;
        }
        self.ready()
    }

    /// Ends a pipeline.
    fn sync(&mut self) -> Result<(), End> {
        self.is_skipping = false;
        if let Err(error) = self.peer.running(|| self.connection.sync()) {
            self.report(&error)?;
        }
        self.ready()
    }

    /// Refuses a message outside the extended protocol.
    fn refuse(&mut self, error: SqlError) -> Result<(), End> {
        self.connection.fail();
        self.report(&error)?;
        self.ready()
    }

    /// Refuses a message of the extended protocol for an error that the engine does not know of.
    fn extended_error(&mut self, error: SqlError) -> Result<(), End> {
        self.connection.fail();
        self.skip_after(&error)
    }

    /// Tells the client of an error of the extended protocol; what follows until Sync is skipped.
    fn skip_after(&mut self, error: &SqlError) -> Result<(), End> {
        self.is_skipping = true;
        self.report(error)?;
        // A client may have sent a Flush, which is skipped, too, and wait. A Sync that is here already sends the error itself.
        if self.wire.input.is_sync_next() { Ok(()) } else { self.wire.flush() }
    }

    /// Tells the client of an error of a statement.
    fn report(&mut self, error: &SqlError) -> Result<(), End> {
        if error.code == "57014" && self.service.is_stopping() {
            // It is the server that has cancelled it.
            return Err(End::shutdown());
        }
        self.wire.send_error("ERROR", error)
    }

    /// Tells the client that it may go on, and sends all that waits.
    fn ready(&mut self) -> Result<(), End> {
        let status = match self.connection.state() {
            BlockState::Idle => {
                // Portals end with their transaction.
                self.portals.clear();
                self.send_notifications()?;
                TransactionStatus::Idle
            }
            BlockState::Open => TransactionStatus::Transaction,
            BlockState::Failed => TransactionStatus::Error,
        };
        self.is_ready = true;
        self.wire.send(&ReadyForQuery::new(status))?;
        self.wire.flush()
    }

    /// Adds the notifications that have arrived, unless a block is open; true if there are some.
    fn send_notifications(&mut self) -> Result<bool, End> {
        if self.connection.state() != BlockState::Idle {
            return Ok(false);
        }
        let notifications = self.connection.take_notifications();
        let are_there = !notifications.is_empty();
        for (process, channel, payload) in notifications {
            self.wire.send(&NotificationResponse::new(process, channel, payload))?;
        }
        Ok(are_there)
    }
}
