//! Options of stores in etcd.

use hotrow_sync::clock::Duration;
use std::fmt;

/// Options of an [`EtcdStore`](super::EtcdStore).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EtcdOptions {
    /// The most operations, and the most conditions, of a transaction: etcd's `--max-txn-ops`. Default: 128, as etcd's.
    pub operations_max: usize,
    /// The most bytes of a transaction's keys and values. Default: 1,400,000, which etcd's default of 1.5 MiB for a request allows.
    pub bytes_max: usize,
    /// The longest time of a call, after which the next server is asked. Default: 3 seconds.
    pub call_max: Duration,
    /// The user as whom the client authenticates. Default: none.
    pub user: Option<EtcdUser>,
    /// The certificates, for addresses that begin with `https://`.
    pub tls: EtcdTls,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            operations_max: 128,
            bytes_max: 1_400_000,
            call_max: Duration::from_secs(3),
            user: None,
            tls: EtcdTls::default(),
        }
    }
}

/// A user of etcd, and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdUser {
    pub(super) name: String,
    pub(super) password: String,
}

impl EtcdUser {
    /// The user of this name.
    pub fn new(name: impl Into<String>, password: impl Into<String>) -> Self {
        Self { name: name.into(), password: password.into() }
    }
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdUser").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Certificates and names of connections under TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EtcdTls {
    /// The certificates, as PEM, of which one must have signed the servers'. Default: those that the system trusts.
    pub authorities: Option<Vec<u8>>,
    /// The certificate that the client shows. Default: none.
    pub identity: Option<EtcdIdentity>,
    /// The name that the servers' certificates must have. Default: the one in each server's address.
    pub server_name: Option<String>,
}

/// A client's certificate, and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdIdentity {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl EtcdIdentity {
    /// The certificate, perhaps with those that lead to an authority, and its key, both as PEM.
    pub fn new(certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self { certificate: certificate.into(), key: key.into() }
    }
}

impl fmt::Debug for EtcdIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdIdentity").finish_non_exhaustive()
    }
}
