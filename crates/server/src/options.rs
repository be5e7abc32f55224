//! Options of a server.

use crate::error::ServerError;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The longest message that an option may allow.
const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The shortest limit for messages that still allows for all that the protocol needs.
const MESSAGE_BYTES_MIN: usize = 10_000;

/// The files of a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that it is signed with, in PEM form, the server's own first.
    pub certificate: PathBuf,
    /// Its private key, in PEM form.
    pub key: PathBuf,
}

/// The options of a [`Server`](crate::Server).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerOptions {
    /// The address to listen on; 127.0.0.1:5432 by default. With port 0 the system chooses one. An address that other
    /// machines reach needs [`tls`](Self::tls) and [`passwords`](Self::passwords).
    pub address: SocketAddr,
    /// The directory with one more socket for clients of this machine, which PostgreSQL's programs find by the port: `.s.PGSQL.5432`; none
    /// by default.
    pub directory: Option<PathBuf>,
    /// The address for `GET /metrics`, a loopback address; none by default.
    pub metrics: Option<SocketAddr>,
    /// The certificate; none by default. With one, clients may ask for TLS, and those of other machines must.
    pub tls: Option<TlsFiles>,
    /// The file with the users and the verifiers of their passwords, one `user:SCRAM-SHA-256$…` a line; none by
    /// default. With one, every client must give a password; without, every client is trusted.
    pub passwords: Option<PathBuf>,
    /// The largest number of connections, 1,000 by default. Each takes a thread.
    pub connections_max: usize,
    /// The longest message that is accepted, in bytes: 64 MB by default, 256 MB at most. A connection takes about
    /// twice as much memory while it receives one.
    pub message_bytes_max: usize,
    /// The time that a client may take from its connection to its first statement: 60 s by default.
    pub startup_limit: Duration,
    /// The time that connections may take to end when the server stops: 5 s by default.
    pub stop_limit: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 5432),
            directory: None,
            metrics: None,
            tls: None,
            passwords: None,
            connections_max: 1_000,
            message_bytes_max: 64 * 1024 * 1024,
            startup_limit: Duration::from_secs(60),
            stop_limit: Duration::from_secs(5),
        }
    }
}

impl ServerOptions {
    /// Checks the ranges, and that no address is open to strangers.
    pub(crate) fn check(&self) -> Result<(), ServerError> {
        let out_of_range = |option, reason| Err(ServerError::Option { option, reason });
        if self.connections_max == 0 {
            return out_of_range("connections_max", "must be at least 1");
        }
        if !(MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(&self.message_bytes_max) {
            return out_of_range("message_bytes_max", "must be between 10,000 bytes and 256 MB");
        }
        if self.startup_limit.is_zero() {
            return out_of_range("startup_limit", "must not be 0");
        }
        if !self.address.ip().is_loopback() && (self.tls.is_none() || self.passwords.is_none()) {
            return Err(ServerError::Unprotected { address: self.address });
        }
        match self.metrics {
            Some(address) if !address.ip().is_loopback() => {
                Err(ServerError::MetricsBeyondLoopback { address })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_needs_tls_and_passwords() {
        let tls = Some(TlsFiles { certificate: "c".into(), key: "k".into() });
        let passwords = Some(PathBuf::from("p"));
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
            let mut options = ServerOptions { address: address.parse().unwrap(), ..ServerOptions::default() };
            assert!(matches!(options.check(), Err(ServerError::Unprotected { .. })));
            options.tls = tls.clone();
            assert!(matches!(options.check(), Err(ServerError::Unprotected { .. })));
            options.passwords = passwords.clone();
            assert!(options.check().is_ok());
            options.tls = None;
            assert!(matches!(options.check(), Err(ServerError::Unprotected { .. })));
        }
        assert!(ServerOptions::default().check().is_ok());
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let refused = |change: fn(&mut ServerOptions)| {
            let mut options = ServerOptions::default();
            change(&mut options);
            options.check().is_err()
        };
        assert!(refused(|options| options.connections_max = 0));
        assert!(refused(|options| options.message_bytes_max = 257 << 20));
        assert!(refused(|options| options.message_bytes_max = 9_999));
        assert!(refused(|options| options.metrics = Some("0.0.0.0:9000".parse().unwrap())));
        assert!(!refused(|options| options.message_bytes_max = 256 << 20));
    }
}
