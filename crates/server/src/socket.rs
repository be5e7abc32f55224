//! A client's socket, with or without TLS, and the bell that wakes the thread that waits for it.

use crate::endpoint::Connected;
use crate::transport::{Transport, Wake};
use hotrow_sync::clock::{Instant, now};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A signal to a thread that waits with `poll`.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// A silent one.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes whoever waits, or the next one who does.
    pub(crate) fn ring(&self) {
        // The one possible error is that it has been rung 2^64 times: it wakes all the same.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it silent again.
    fn silence(&self) {
        // The one possible error is that it is silent.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits for one of several files; which of them, by their order. None if the deadline has passed.
pub(crate) fn wait_for(files: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<Option<usize>> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
        // A limit that is longer than the system can count is none.
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(files, limit.as_ref()) {
            Ok(0) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(files.iter().position(|file| !file.revents().is_empty())),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The shared socket as a stream of its own.
struct Shared(Arc<Connected>);

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Stream {
    Plain,
    Tls(Box<StreamOwned<ServerConnection, Shared>>),
}

/// A client's socket. It never blocks by itself, so that each wait can have a deadline, also in the middle of a record
/// of TLS.
pub(crate) struct Socket {
    socket: Arc<Connected>,
    stream: Stream,
    bell: Arc<Bell>,
    tls: Option<Arc<ServerConfig>>,
    is_local: bool,
}

impl Socket {
    /// Takes over a socket that has been accepted.
    pub(crate) fn new(
        socket: Arc<Connected>,
        bell: Arc<Bell>,
        tls: Option<Arc<ServerConfig>>,
        is_local: bool,
    ) -> io::Result<Self> {
        socket.prepare()?;
        Ok(Self { socket, stream: Stream::Plain, bell, tls, is_local })
    }

    /// Waits until something can be written.
    fn wait_writable(&self) -> io::Result<()> {
        wait_for(&mut [PollFd::new(&*self.socket, PollFlags::OUT)], None).map(drop)
    }
}

impl Transport for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Plain => (&*self.socket).read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = match &mut self.stream {
                Stream::Plain => (&*self.socket).write(bytes),
                Stream::Tls(stream) => stream.write(bytes),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_writable()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Records that wait within TLS.
        while let Stream::Tls(stream) = &mut self.stream {
            match stream.flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_writable()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Wake> {
        let mut wanted = PollFlags::IN;
        if let Stream::Tls(stream) = &mut self.stream {
            // Bytes that have been decrypted already are not seen by `poll`.
            if stream.conn.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0) {
                return Ok(Wake::Readable);
            }
            if stream.conn.wants_write() {
                wanted |= PollFlags::OUT;
            }
        }
        let mut files = [PollFd::new(&*self.socket, wanted), PollFd::new(&*self.bell, PollFlags::IN)];
        Ok(match wait_for(&mut files, deadline)? {
            Some(0) => Wake::Readable,
            Some(_) => {
                self.bell.silence();
                Wake::Signal
            }
            None => Wake::Deadline,
        })
    }

    fn offers_tls(&self) -> bool {
        self.tls.is_some()
    }

    fn start_tls(&mut self) -> io::Result<()> {
        let tls = self.tls.take().ok_or(ErrorKind::Unsupported)?;
        let connection = ServerConnection::new(tls).map_err(io::Error::other)?;
        self.stream = Stream::Tls(Box::new(StreamOwned::new(connection, Shared(Arc::clone(&self.socket)))));
        Ok(())
    }

    fn is_private(&self) -> bool {
        self.is_local || matches!(self.stream, Stream::Tls(_))
    }
}

impl Drop for Socket {
    /// Says good-bye in TLS, if that can be done at once, and closes the connection for all who hold the socket.
    fn drop(&mut self) {
        if let Stream::Tls(stream) = &mut self.stream {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
        self.socket.shut_down();
    }
}
