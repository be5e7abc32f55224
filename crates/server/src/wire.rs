//! A client's messages, in and out. What is to be sent waits until a Sync, a Flush, or until there is much of it.

use crate::counters::Counters;
use crate::decode::message_context;
use crate::error::End;
use crate::formats::Formats;
use crate::input::{Frame, Input};
use crate::transport::{Transport, Wake};
use bytes::{BufMut, BytesMut};
use hotrow_sql::values::Datum;
use hotrow_sql::{Field, SqlError};
use hotrow_sync::clock::Instant;
use pgwire::messages::data::{FieldDescription, MESSAGE_TYPE_BYTE_DATA_ROW, RowDescription};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use pgwire::messages::{DecodeContext, Message};

/// So many bytes are not kept waiting.
const WAITING_BYTES_MAX: usize = 64 * 1024;
/// A buffer that has grown beyond this is given back when it is empty.
const KEPT_BYTES_MAX: usize = 2 * WAITING_BYTES_MAX;
/// The longest row, as in PostgreSQL.
const ROW_BYTES_MAX: usize = 0x3fff_ffff;

/// The news that a connection's thread has waited for.
pub(crate) enum News {
    /// A message.
    Frame(Frame),
    /// Another thread has a signal for this one.
    Signal,
    /// The deadline has passed.
    Deadline,
}

/// The messages' way to a client and from it.
pub(crate) struct Wire<'a, T> {
    pub(crate) transport: T,
    pub(crate) input: Input,
    output: BytesMut,
    value: Vec<u8>,
    context: DecodeContext,
    counters: &'a Counters,
    messages: u64,
}

impl<'a, T: Transport> Wire<'a, T> {
    /// A way over `transport`, for messages of up to so many bytes.
    pub(crate) fn new(transport: T, message_bytes_max: usize, counters: &'a Counters) -> Self {
        Self {
            transport,
            input: Input::new(message_bytes_max),
            output: BytesMut::new(),
            value: Vec::new(),
            context: message_context(),
            counters,
            messages: 0,
        }
    }

    /// The context that messages are decoded in.
    pub(crate) fn context(&self) -> &DecodeContext {
        &self.context
    }

    /// Waits for the next message.
    pub(crate) fn receive(&mut self, is_early: bool, deadline: Option<Instant>) -> Result<News, End> {
        loop {
            if let Some(frame) = self.input.frame(is_early)? {
                self.messages += 1;
                return Ok(News::Frame(frame));
            }
            match self.fill(deadline)? {
                Wake::Readable => {}
                Wake::Signal => return Ok(News::Signal),
                Wake::Deadline => return Ok(News::Deadline),
            }
        }
    }

    /// Waits for bytes, and reads them.
    pub(crate) fn fill(&mut self, deadline: Option<Instant>) -> Result<Wake, End> {
        let wake = self.transport.wait(deadline)?;
        if wake == Wake::Readable
            && let Some(count) = self.input.fill(&mut self.transport)?
        {
            self.counters.bytes_received.add(count as u64);
        }
        Ok(wake)
    }

    /// Adds a message to those that wait.
    pub(crate) fn send(&mut self, message: &impl Message) -> Result<(), End> {
        // The one possible error is a message longer than its kind allows: a text of the engine's.
        message.encode(&mut self.output).map_err(|error| {
            End::Fatal(SqlError::new("XX000", format!("a message cannot be sent: {error}")))
        })?;
        if self.output.len() >= WAITING_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Adds bytes that are no message.
    pub(crate) fn send_byte(&mut self, byte: u8) {
        self.output.put_u8(byte);
    }

    /// Sends all that waits.
    pub(crate) fn flush(&mut self) -> Result<(), End> {
        self.counters.messages_received.add(std::mem::take(&mut self.messages));
        if self.output.is_empty() {
            return Ok(());
        }
        self.counters.bytes_sent.add(self.output.len() as u64);
        let result = self.transport.write_all(&self.output);
        if self.output.capacity() > KEPT_BYTES_MAX {
            self.output = BytesMut::new();
        } else {
            self.output.clear();
        }
        Ok(result?)
    }

    /// Adds the description of a result.
    pub(crate) fn send_fields(&mut self, fields: &[Field], formats: &Formats) -> Result<(), End> {
        let describe = |(index, field): (usize, &Field)| {
            FieldDescription::new(
                field.name.to_string(),
                field.table as i32,
                field.column,
                field.ty.oid(),
                field.ty.length(),
                field.modifier,
                formats.of(index).code(),
            )
        };
        self.send(&RowDescription::new(fields.iter().enumerate().map(describe).collect()))
    }

    /// Adds a row of a result. Written by hand: `pgwire`'s message would be one more copy of the values.
    pub(crate) fn send_row(&mut self, row: &[Datum], fields: &[Field], formats: &Formats) -> Result<(), End> {
        let start = self.output.len();
        self.output.put_u8(MESSAGE_TYPE_BYTE_DATA_ROW);
        self.output.put_u32(0);
        self.output.put_u16(row.len() as u16);
        for (index, (value, field)) in row.iter().zip(fields).enumerate() {
            if matches!(value, Datum::Null) {
                self.output.put_i32(-1);
                continue;
            }
            self.value.clear();
            formats.of(index).write(value, field.ty, &mut self.value);
            if self.output.len() - start + self.value.len() > ROW_BYTES_MAX {
                self.output.truncate(start);
                return Err(End::Fatal(SqlError::new("54000", "a row is longer than a message can be")));
            }
            self.output.put_u32(self.value.len() as u32);
            self.output.put_slice(&self.value);
        }
        let length = (self.output.len() - start - 1) as u32;
        self.output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        if self.value.capacity() > KEPT_BYTES_MAX {
            self.value = Vec::new();
        }
        if self.output.len() >= WAITING_BYTES_MAX { self.flush() } else { Ok(()) }
    }

    /// Counts rows that are sent.
    pub(crate) fn count_rows(&self, count: usize) {
        self.counters.rows_sent.add(count as u64);
    }

    /// Adds an error.
    pub(crate) fn send_error(&mut self, severity: &'static str, error: &SqlError) -> Result<(), End> {
        self.counters.error(error.code);
        self.send(&ErrorResponse::new(report(severity, error)))
    }

    /// Adds a notice.
    pub(crate) fn send_notice(&mut self, severity: &'static str, content: &SqlError) -> Result<(), End> {
        self.send(&NoticeResponse::new(report(severity, content)))
    }

    /// Tells the client why its connection ends, as far as it still listens.
    pub(crate) fn end(&mut self, end: &End) {
        if let End::Fatal(error) = end {
            let _ = self.send_error("FATAL", error);
        }
        let _ = self.flush();
    }

    /// The memory held for messages out, in bytes.
    #[cfg(test)]
    pub(crate) fn output_capacity(&self) -> usize {
        self.output.capacity()
    }
}

/// The fields of an error or a notice.
fn report(severity: &'static str, error: &SqlError) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', error.code.to_owned()),
        (b'M', error.message.clone().into_owned()),
    ];
    let position = error.position.map(|position| position.to_string());
    // All tables are in one schema.
    let schema = error.table.as_ref().map(|_| "public".to_owned());
    let others = [
        (b'D', &error.detail),
        (b'H', &error.hint),
        (b'P', &position),
        (b's', &schema),
        (b't', &error.table),
        (b'c', &error.column),
        (b'n', &error.constraint),
    ];
    fields.extend(others.into_iter().filter_map(|(field, text)| Some((field, text.clone()?))));
    fields
}
