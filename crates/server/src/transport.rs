//! The bytes' way between a connection and its client, as a trait: a socket, or a script of a test.

use hotrow_sync::clock::Instant;
use std::io;

/// The reason why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    /// There may be something to read, or the client is gone.
    Readable,
    /// Another thread has something for this one.
    Signal,
    /// The deadline has passed.
    Deadline,
}

/// A stream of bytes to a client and from it.
pub(crate) trait Transport {
    /// Reads what is there. Never blocks: `WouldBlock` if there is nothing yet, 0 at the client's end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of this, and blocks until it is written.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Waits until there may be something to read, until a signal, or until the deadline.
    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Wake>;

    /// True if a client may ask for TLS.
    fn offers_tls(&self) -> bool;

    /// Goes on in TLS; the handshake happens with the next bytes.
    fn start_tls(&mut self) -> io::Result<()>;

    /// True if nobody on the way can read the bytes: TLS, or the client is on this machine.
    fn is_private(&self) -> bool;
}

impl<T: Transport> Transport for &mut T {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read(buffer)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        (**self).write_all(bytes)
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Wake> {
        (**self).wait(deadline)
    }

    fn offers_tls(&self) -> bool {
        (**self).offers_tls()
    }

    fn start_tls(&mut self) -> io::Result<()> {
        (**self).start_tls()
    }

    fn is_private(&self) -> bool {
        (**self).is_private()
    }
}
