//! Frames become messages. The layout is checked first: `pgwire` trusts the counts and lengths within a message, and
//! puts replacement characters where text is not UTF-8.

use crate::error::End;
use crate::input::Frame;
use hotrow_sql::SqlError;
use pgwire::messages::{DecodeContext, PgWireFrontendMessage, ProtocolVersion};

/// A flaw of a message.
#[derive(Debug)]
pub(crate) enum Flaw {
    /// It does not keep to the protocol: the connection ends.
    Layout(&'static str),
    /// A text in it is not UTF-8: an error like one of the statement.
    Text(SqlError),
}

/// The context of messages after the start of a connection.
pub(crate) fn message_context() -> DecodeContext {
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_2);
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = false;
    context
}

/// The message in a frame.
pub(crate) fn decode(mut frame: Frame, context: &DecodeContext) -> Result<PgWireFrontendMessage, Flaw> {
    check(frame.kind, frame.body())?;
    match PgWireFrontendMessage::decode(&mut frame.bytes, context) {
        Ok(Some(message)) if frame.bytes.is_empty() => Ok(message),
        _ => Err(Flaw::Layout("invalid message format")),
    }
}

/// Checks that a message's body is laid out as its kind says.
fn check(kind: u8, body: &[u8]) -> Result<(), Flaw> {
    let mut cursor = Cursor(body);
    match kind {
        b'Q' => cursor.text()?,
        b'P' => {
            cursor.text()?;
            cursor.text()?;
            let count = cursor.count()?;
            cursor.skip(4 * count)?;
        }
        b'B' => {
            cursor.text()?;
            cursor.text()?;
            let count = cursor.count()?;
            cursor.skip(2 * count)?;
            for _ in 0..cursor.count()? {
                match cursor.number()? {
                    -1 => {}
                    length => cursor.skip(
                        usize::try_from(length)
                            .map_err(|_| Flaw::Layout("insufficient data left in message"))?,
                    )?,
                }
            }
            let count = cursor.count()?;
            cursor.skip(2 * count)?;
        }
        b'C' | b'D' => {
            if !matches!(cursor.0.first(), Some(b'S' | b'P')) {
                return Err(Flaw::Layout("invalid subtype of a CLOSE or DESCRIBE message"));
            }
            cursor.skip(1)?;
            cursor.text()?;
        }
        b'E' => {
            cursor.text()?;
            cursor.skip(4)?;
        }
        b'd' => return Ok(()),
        // A reason for giving up need not be UTF-8: it is only shown.
        b'f' => {
            cursor.string()?;
        }
        b'H' | b'S' | b'X' | b'c' => {}
        _ => return Err(Flaw::Layout("invalid frontend message type")),
    }
    if cursor.0.is_empty() { Ok(()) } else { Err(Flaw::Layout("invalid message format")) }
}

/// The bytes of a body that have not been looked at.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    /// Passes over so many bytes.
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), Flaw> {
        self.0 = self.0.get(count..).ok_or(Flaw::Layout("insufficient data left in message"))?;
        Ok(())
    }

    /// A number of things.
    fn count(&mut self) -> Result<usize, Flaw> {
        let bytes = self.0;
        self.skip(2)?;
        Ok(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    /// A signed number.
    pub(crate) fn number(&mut self) -> Result<i32, Flaw> {
        let bytes = self.0;
        self.skip(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A string that ends with a zero.
    pub(crate) fn string(&mut self) -> Result<&'a [u8], Flaw> {
        let bytes = self.0;
        let length =
            bytes.iter().position(|&byte| byte == 0).ok_or(Flaw::Layout("invalid string in message"))?;
        self.skip(length + 1)?;
        Ok(&bytes[..length])
    }

    /// Passes over such a string of UTF-8.
    fn text(&mut self) -> Result<(), Flaw> {
        text(self.string()?).map(drop).map_err(Flaw::Text)
    }
}

/// Text that a client has sent: UTF-8 without zeros.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, SqlError> {
    let (position, length) = match std::str::from_utf8(bytes) {
        Ok(text) => match bytes.iter().position(|&byte| byte == 0) {
            None => return Ok(text),
            Some(position) => (position, 1),
        },
        Err(error) => {
            let position = error.valid_up_to();
            // As many bytes as the first of them announces, as PostgreSQL shows them.
            let announced = match bytes[position] {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            (position, announced)
        }
    };
    let end = bytes.len().min(position + length);
    let shown: Vec<String> = bytes[position..end].iter().map(|byte| format!("0x{byte:02x}")).collect();
    Err(SqlError::new("22021", format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" "))))
}

impl From<Flaw> for End {
    /// The end of a connection that cannot go on after a flaw.
    fn from(flaw: Flaw) -> Self {
        match flaw {
            Flaw::Layout(message) => Self::violation(message),
            Flaw::Text(error) => Self::Fatal(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, body: &[u8]) -> Frame {
        let mut bytes = vec![kind];
        bytes.extend((body.len() as u32 + 4).to_be_bytes());
        bytes.extend(body);
        Frame { kind, bytes: bytes[..].into() }
    }

    #[test]
    fn every_truncation_of_a_bind_is_refused() {
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\0";
        let context = message_context();
        assert!(decode(frame(b'B', body), &context).is_ok());
        for length in 0..body.len() {
            assert!(
                matches!(decode(frame(b'B', &body[..length]), &context), Err(Flaw::Layout(_))),
                "{length}"
            );
        }
        let mut longer = body.to_vec();
        longer.push(0);
        assert!(matches!(decode(frame(b'B', &longer), &context), Err(Flaw::Layout(_))));
    }

    #[test]
    fn a_negative_length_of_a_parameter_is_refused() {
        assert!(decode(frame(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"), &message_context()).is_err());
        assert!(decode(frame(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xff\0\0"), &message_context()).is_ok());
    }

    #[test]
    fn text_that_is_not_utf8_is_shown_as_postgresql_shows_it() {
        let message = |bytes: &[u8]| text(bytes).unwrap_err().message.clone().into_owned();
        assert_eq!(message(b"a\xff"), "invalid byte sequence for encoding \"UTF8\": 0xff");
        assert_eq!(message(b"a\xe4b"), "invalid byte sequence for encoding \"UTF8\": 0xe4 0x62");
        assert_eq!(message(b"a\0b"), "invalid byte sequence for encoding \"UTF8\": 0x00");
        assert!(matches!(decode(frame(b'Q', b"\xff\0"), &message_context()), Err(Flaw::Text(_))));
    }
}
