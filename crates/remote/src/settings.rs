//! Settings of a cluster.

use hotrow_sync::clock::Duration;

/// Settings of a [`Cluster`](crate::Cluster).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The bytes with which all keys in the store begin, so that several clusters, and others, may use one store. Default:
    /// `hotrow/`. No cluster's must begin another one's.
    pub prefix: Vec<u8>,
    /// The most attempts before a transaction ends with a conflict. Default: no limit.
    pub attempts_max: u32,
    /// The time from its beginning after which a transaction ends: calls of the store end then, and no attempt begins later. A body is
    /// not interrupted. Default: 30 seconds.
    pub deadline: Duration,
    /// The longest pause between two attempts. A longer one spares the store under contention. Default: 20 milliseconds.
    pub backoff_max: Duration,
    /// The time for which the marker of a commit is looked up whose answer was lost, even behind the deadline. Then the outcome stays
    /// [unknown](crate::ClusterError::Unknown). Default: 10 seconds.
    pub lookup: Duration,
    /// The number of keys that a scan asks for at a time. Default: 256.
    pub page: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: b"hotrow/".to_vec(),
            attempts_max: u32::MAX,
            deadline: Duration::from_secs(30),
            backoff_max: Duration::from_millis(20),
            lookup: Duration::from_secs(10),
            page: 256,
        }
    }
}
