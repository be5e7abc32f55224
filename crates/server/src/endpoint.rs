//! The places where clients connect: addresses of TCP, and sockets in the file system.

use crate::error::ServerError;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A client's connection.
pub(crate) enum Connected {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls the same method of either kind.
macro_rules! either {
    ($this:expr, $socket:ident => $call:expr) => {
        match $this {
            Connected::Tcp($socket) => $call,
            Connected::Unix($socket) => $call,
        }
    };
}

impl Connected {
    /// Has nothing block any more, and small packets sent at once. A client that vanishes without a word is noticed some time.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        if let Self::Tcp(socket) = self {
            socket.set_nodelay(true)?;
            rustix::net::sockopt::set_socket_keepalive(socket, true)?;
        }
        either!(self, socket => socket.set_nonblocking(true))
    }

    /// Closes it for all who hold it.
    pub(crate) fn shut_down(&self) {
        // One that is closed already is what is wanted.
        let _ = either!(self, socket => socket.shutdown(Shutdown::Both));
    }
}

impl Read for &Connected {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(*self, socket => { let mut socket = socket; socket.read(buffer) })
    }
}

impl Write for &Connected {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(*self, socket => { let mut socket = socket; socket.write(bytes) })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Connected {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(self, socket => socket.as_fd())
    }
}

/// A place where clients connect. A socket in the file system goes when it is dropped.
pub(crate) enum Endpoint {
    Tcp(TcpListener),
    Unix { socket: UnixListener, path: PathBuf },
}

impl Endpoint {
    /// Listens at an address, and says at which.
    pub(crate) fn at(address: SocketAddr) -> Result<(Self, SocketAddr), ServerError> {
        let (socket, address) = listen(address)?;
        Ok((Self::Tcp(socket), address))
    }

    /// Listens in a directory, at the name that PostgreSQL's clients expect for a port.
    pub(crate) fn within(directory: &Path, port: u16) -> Result<Self, ServerError> {
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let listen = || {
            // One that nobody listens at has been left by a server that was killed.
            if UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                std::fs::remove_file(&path)?;
            }
            let socket = UnixListener::bind(&path)?;
            // As with an address, all users of the machine may connect.
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        match listen() {
            Ok(socket) => Ok(Self::Unix { socket, path }),
            Err(source) => Err(ServerError::ListenWithin { path, source }),
        }
    }

    /// Its path, if it is in the file system.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Tcp(_) => None,
            Self::Unix { path, .. } => Some(path),
        }
    }

    /// Accepts a client. Says if it is of this machine.
    pub(crate) fn accept(&self) -> io::Result<(Connected, bool)> {
        match self {
            Self::Tcp(socket) => {
                let (client, address) = socket.accept()?;
                Ok((Connected::Tcp(client), address.ip().to_canonical().is_loopback()))
            }
            Self::Unix { socket, .. } => Ok((Connected::Unix(socket.accept()?.0), true)),
        }
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix { socket, .. } => socket.as_fd(),
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if let Self::Unix { path, .. } = self {
            // Somebody may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServerError> {
    let listen = || {
        let socket = TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok((socket, address))
    };
    listen().map_err(|source| ServerError::Listen { address, source })
}
