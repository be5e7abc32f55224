//! Reading: bytes become frames, whose lengths are checked before memory is taken for them.

use crate::error::End;
use crate::transport::Transport;
use bytes::{Buf, BytesMut};
use std::io::{self, ErrorKind};

/// The longest packet before a client is authenticated, as in PostgreSQL.
pub(crate) const EARLY_BYTES_MAX: usize = 10_000;
/// The longest message of the kinds that hold a name and little more, as in PostgreSQL.
const SMALL_BYTES_MAX: usize = 10_000;
/// One read asks for so much at first, and for more when it is filled.
const READ_BYTES: usize = 4 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;
/// An empty buffer that has grown beyond this is given back.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// A whole message: its kind, its length, its body.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The kind, a letter.
    pub(crate) kind: u8,
    /// All bytes, from the kind on.
    pub(crate) bytes: BytesMut,
}

impl Frame {
    /// The bytes after the kind and the length.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[5..]
    }
}

/// Bytes received and not yet used.
pub(crate) struct Input {
    buffer: BytesMut,
    read_bytes: usize,
    message_bytes_max: usize,
}

impl Input {
    /// An empty one, for messages of up to so many bytes.
    pub(crate) fn new(message_bytes_max: usize) -> Self {
        Self { buffer: BytesMut::new(), read_bytes: READ_BYTES, message_bytes_max }
    }

    /// Reads once; the number of bytes, or none if there are none yet. The client's end is an error.
    pub(crate) fn fill(&mut self, transport: &mut impl Transport) -> io::Result<Option<usize>> {
        let old = self.buffer.len();
        if old == 0 && self.buffer.capacity() > KEPT_BYTES_MAX {
            self.buffer = BytesMut::new();
        }
        self.buffer.resize(old + self.read_bytes, 0);
        let result = loop {
            match transport.read(&mut self.buffer[old..]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(old + *result.as_ref().unwrap_or(&0));
        match result {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                // A client that sends much is read in larger pieces, and one that does not costs little.
                self.read_bytes = match count {
                    _ if count == self.read_bytes => (2 * count).min(READ_BYTES_MAX),
                    _ if count < self.read_bytes / 4 => READ_BYTES,
                    _ => self.read_bytes,
                };
                Ok(Some(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// True if nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The memory held, in bytes.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The next packet of the kind that has no letter, if it is there as a whole: its length, a code, and the rest.
    pub(crate) fn packet(&mut self) -> Result<Option<BytesMut>, End> {
        let Some(mut head) = self.buffer.get(..4) else { return Ok(None) };
        let length = head.get_u32() as usize;
        if !(8..=EARLY_BYTES_MAX).contains(&length) {
            return Err(End::violation("invalid length of startup packet"));
        }
        Ok((self.buffer.len() >= length).then(|| self.buffer.split_to(length)))
    }

    /// The next message, if it is there as a whole. Before the client is authenticated, only short ones are taken.
    pub(crate) fn frame(&mut self, is_early: bool) -> Result<Option<Frame>, End> {
        let Some(&kind) = self.buffer.first() else { return Ok(None) };
        let bytes_max = match kind {
            _ if is_early => {
                if kind != b'p' {
                    return Err(End::violation(format!(
                        "expected password response, got message type {kind}"
                    )));
                }
                EARLY_BYTES_MAX
            }
            b'Q' | b'P' | b'B' | b'd' | b'F' => self.message_bytes_max,
            b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => {
                SMALL_BYTES_MAX.min(self.message_bytes_max)
            }
            _ => return Err(End::violation(format!("invalid frontend message type {kind}"))),
        };
        let Some(mut head) = self.buffer.get(1..5) else { return Ok(None) };
        let length = head.get_u32() as usize;
        if !(4..=bytes_max).contains(&length) {
            return Err(End::violation("invalid message length"));
        }
        Ok((self.buffer.len() > length).then(|| Frame { kind, bytes: self.buffer.split_to(1 + length) }))
    }

    /// True if the next message is a Sync, and is there.
    pub(crate) fn is_sync_next(&self) -> bool {
        self.buffer.starts_with(b"S\0\0\0\x04")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> Input {
        let mut input = Input::new(1000);
        input.buffer.extend_from_slice(bytes);
        input
    }

    #[test]
    fn a_frame_waits_until_it_is_whole() {
        let message = b"Q\0\0\0\x06x\0S\0\0\0\x04";
        for length in 0..7 {
            assert!(input(&message[..length]).frame(false).unwrap().is_none());
        }
        let mut whole = input(message);
        let frame = whole.frame(false).unwrap().unwrap();
        assert_eq!((frame.kind, frame.body()), (b'Q', &b"x\0"[..]));
        assert!(whole.is_sync_next());
    }

    #[test]
    fn a_length_out_of_range_is_refused_before_its_bytes_arrive() {
        assert!(input(b"Q\0\0\x03\xe8").frame(false).unwrap().is_none());
        for bytes in [&b"Q\0\0\x03\xe9"[..], b"Q\xff\xff\xff\xff", b"Q\0\0\0\x03", b"S\x7f\xff\xff\xff"] {
            assert!(matches!(input(bytes).frame(false), Err(End::Fatal(error)) if error.code == "08P01"));
        }
        for bytes in [&b"\0\0\0\x07"[..], b"\0\0\x27\x11", b"\xff\xff\xff\xff"] {
            assert!(matches!(input(bytes).packet(), Err(End::Fatal(error)) if error.code == "08P01"));
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_at_its_first_byte() {
        assert!(input(b"z").frame(false).is_err());
        assert!(input(b"p").frame(false).is_err());
        assert!(input(b"Q").frame(true).is_err());
        assert!(input(b"p").frame(true).unwrap().is_none());
    }
}
