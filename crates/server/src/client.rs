//! The client as the engine sees it while a statement runs.

use crate::decode::decode;
use crate::engine::Engine;
use crate::error::End;
use crate::formats::Formats;
use crate::service::Service;
use crate::transport::Transport;
use crate::wire::{News, Wire};
use bytes::Bytes;
use hotrow_sql::values::Datum;
use hotrow_sql::{Client, Field, Notice, Outcome, SqlError};
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyInResponse, CopyOutResponse};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse};
use pgwire::messages::startup::ParameterStatus;

/// The talk with a client about one text or one portal. An end of the connection is kept until the engine returns.
pub(crate) struct Conversation<'s, 'w, 'a, E, T> {
    service: &'s Service<E>,
    wire: &'w mut Wire<'a, T>,
    end: Option<End>,
    /// True from the beginning of a COPY's data to their end.
    is_copying: bool,
}

impl<'s, 'w, 'a, E: Engine, T: Transport> Conversation<'s, 'w, 'a, E, T> {
    /// A talk that begins.
    pub(crate) fn new(service: &'s Service<E>, wire: &'w mut Wire<'a, T>) -> Self {
        Self { service, wire, end: None, is_copying: false }
    }

    /// The connection's end, if it has come meanwhile.
    pub(crate) fn finish(self) -> Result<(), End> {
        self.end.map_or(Ok(()), Err)
    }

    /// Tells the client the result of a portal; true if it is suspended.
    pub(crate) fn portal_outcome(&mut self, outcome: Outcome, formats: &Formats, is_suspended: bool) -> bool {
        match outcome {
            Outcome::Rows { fields, rows, tag } => {
                self.say(|wire| send_rows(wire, &fields, &rows, formats));
                if !is_suspended {
                    self.complete(tag);
                }
            }
            other => self.tell(other),
        }
        is_suspended
    }

    /// Tells the client the result of a statement, with all that the simple protocol needs.
    fn tell(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Empty => self.say(|wire| wire.send(&EmptyQueryResponse::new())),
            Outcome::Done { tag } => self.complete(tag),
            Outcome::Rows { fields, rows, tag } => {
                let text = Formats::default();
                self.say(|wire| wire.send_fields(&fields, &text));
                self.say(|wire| send_rows(wire, &fields, &rows, &text));
                self.complete(tag);
            }
            Outcome::CopyOut { columns, is_binary, data, tag } => {
                let (format, formats) = copy_formats(columns, is_binary);
                self.say(|wire| {
                    wire.send(&CopyOutResponse::new(format, columns as i16, formats))?;
                    for chunk in data {
                        wire.send(&CopyData::new(Bytes::from(chunk)))?;
                    }
                    wire.send(&CopyDone::new())
                });
                self.complete(tag);
            }
        }
    }

    /// Tells the client that a statement has run.
    fn complete(&mut self, tag: String) {
        self.service.counters.statement(&tag);
        self.say(|wire| wire.send(&CommandComplete::new(tag)));
    }

    /// Sends something, unless the connection has ended.
    fn say(&mut self, send: impl FnOnce(&mut Wire<'a, T>) -> Result<(), End>) {
        if self.end.is_none() {
            self.end = send(self.wire).err();
        }
    }

    /// Ends the connection.
    fn hang_up(&mut self, end: End) -> SqlError {
        let error = match &end {
            End::Gone => lost(),
            End::Fatal(error) => error.clone(),
        };
        self.end.get_or_insert(end);
        error
    }

    /// An error if the connection has ended.
    fn check(&self) -> Result<(), SqlError> {
        match &self.end {
            None => Ok(()),
            Some(_) => Err(lost()),
        }
    }
}

impl<E: Engine, T: Transport> Client for Conversation<'_, '_, '_, E, T> {
    fn outcome(&mut self, outcome: Outcome) -> Result<(), SqlError> {
        self.tell(outcome);
        self.check()
    }

    fn begin_copy_in(&mut self, columns: usize, is_binary: bool) -> Result<(), SqlError> {
        let (format, formats) = copy_formats(columns, is_binary);
        self.say(|wire| {
            wire.send(&CopyInResponse::new(format, columns as i16, formats))?;
            wire.flush()
        });
        self.is_copying = true;
        self.check()
    }

    fn copy_data(&mut self) -> Result<Option<Vec<u8>>, SqlError> {
        self.check()?;
        while self.is_copying {
            let frame = match self.wire.receive(false, None) {
                Ok(News::Frame(frame)) => frame,
                Ok(News::Signal | News::Deadline) if self.service.is_stopping() => {
                    return Err(self.hang_up(End::shutdown()));
                }
                Ok(News::Signal | News::Deadline) => continue,
                Err(end) => return Err(self.hang_up(end)),
            };
            let kind = frame.kind;
            match kind {
                b'd' | b'c' | b'f' => {}
                // They ask for nothing while data come, as in PostgreSQL.
                b'H' | b'S' => continue,
                _ => {
                    let message = format!("unexpected message type 0x{kind:02X} during COPY from stdin");
                    return Err(self.hang_up(End::violation(message)));
                }
            }
            match decode(frame, self.wire.context()) {
                Ok(PgWireFrontendMessage::CopyData(chunk)) => return Ok(Some(chunk.data.into())),
                Ok(PgWireFrontendMessage::CopyFail(fail)) => {
                    self.is_copying = false;
                    return Err(SqlError::new("57014", format!("COPY from stdin failed: {}", fail.message)));
                }
                Ok(_) => self.is_copying = false,
                Err(flaw) => return Err(self.hang_up(flaw.into())),
            }
        }
        Ok(None)
    }

    fn notice(&mut self, notice: Notice) {
        self.say(|wire| wire.send_notice(notice.severity, &notice.content));
    }

    fn parameter(&mut self, name: &str, value: &str) {
        self.say(|wire| wire.send(&ParameterStatus::new(name.to_owned(), value.to_owned())));
    }
}

/// Sends the rows of a result.
fn send_rows<T: Transport>(
    wire: &mut Wire<'_, T>,
    fields: &[Field],
    rows: &[Box<[Datum]>],
    formats: &Formats,
) -> Result<(), End> {
    wire.count_rows(rows.len());
    rows.iter().try_for_each(|row| wire.send_row(row, fields, formats))
}

/// The formats in a message that begins COPY.
fn copy_formats(columns: usize, is_binary: bool) -> (i8, Vec<i16>) {
    let format = i8::from(is_binary);
    (format, vec![i16::from(format); columns])
}

/// The error of a client that is gone.
fn lost() -> SqlError {
    SqlError::new("08006", "connection to client lost")
}
