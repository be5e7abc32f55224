//! Errors of a server as a whole, and the ends of its connections.

use hotrow_sql::SqlError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// An error of a server's start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// A socket in a directory cannot be listened on.
    #[error("cannot listen on {}", path.display())]
    ListenWithin {
        /// The socket's path.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An address is reachable from other machines, but nothing protects the connections.
    #[error("{address} is reachable from other machines: it needs a certificate (TLS) and passwords")]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// The listener of metrics has neither encryption nor passwords, so it stays on this machine.
    #[error("metrics are served on loopback addresses only, not on {address}")]
    MetricsBeyondLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file with a certificate or a key does not contain one that can be used.
    #[error("{}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The flaw, as a sentence.
        reason: String,
    },
    /// A line of a password file is no verifier.
    #[error("line {line} of the password file: {reason}")]
    Passwords {
        /// The line, from 1 on.
        line: usize,
        /// The flaw, as a sentence.
        reason: &'static str,
    },
    /// An option is out of its range.
    #[error("option {option}: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// The range, as a sentence.
        reason: &'static str,
    },
    /// The system has refused something that the server needs.
    #[error("the system has refused {what}")]
    System {
        /// The thing refused.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The end of a connection.
#[derive(Debug)]
pub(crate) enum End {
    /// The client has gone, or has said good-bye.
    Gone,
    /// The server ends it, and tells why.
    Fatal(SqlError),
}

impl End {
    /// The end of a connection whose client does not keep to the protocol.
    pub(crate) fn violation(message: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        Self::Fatal(SqlError::new("08P01", message))
    }

    /// The end of a connection because the server stops.
    pub(crate) fn shutdown() -> Self {
        Self::Fatal(SqlError::new("57P01", "terminating connection due to administrator command"))
    }
}

impl From<std::io::Error> for End {
    /// Whatever breaks a connection, nobody is there to be told of it.
    fn from(_: std::io::Error) -> Self {
        Self::Gone
    }
}
