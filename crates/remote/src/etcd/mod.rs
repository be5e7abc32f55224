//! A store in etcd.
//!
//! # How
//!
//! | contract | etcd |
//! |---|---|
//! | version | the store's revision; of a key: its `mod_revision` |
//! | newest read | a linearizable range; its header has the revision |
//! | read at a version | a range at that revision, answered by the server asked if it has the revision already |
//! | several keys | one transaction of ranges, without conditions |
//! | commit | one transaction: `mod(key) == version` for each key; `mod(range) < read_at + 1` for each range, which etcd compares with all keys that are in it, and so does not notice deletions |
//! | addition | `put` of the sum, under the condition that the key has the version at which it was read; repeated alone if only that has failed |
//! | watch | a watch from the next revision on |
//! | several calls at once | small reads and small commits of several threads go together: as ranges, and as transactions in a transaction |
//! | hold | a key with a lease ([`EtcdStore::compact_below`] respects it) |
//!
//! Calls block the thread and are served by one thread of this store's own. They must not be made on a thread of an asynchronous runtime;
//! `spawn_blocking` gives another one.
//!
//! ```no_run
//! use hotrow_remote::{Cluster, EtcdStore};
//! use std::sync::Arc;
//!
//! let store = EtcdStore::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"])?;
//! let cluster = Cluster::over(Arc::new(store));
//! let stock = cluster.table::<String, u32>("stock").create_or_open()?;
//! cluster.transact(|tx| tx.update(&stock, "tea", |pieces| *pieces -= 1))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Credentials and TLS
//!
//! ```no_run
//! use hotrow_remote::etcd::{EtcdIdentity, EtcdOptions, EtcdStore, EtcdUser};
//!
//! let mut options = EtcdOptions::default();
//! options.user = Some(EtcdUser::new("shop", std::env::var("SHOP_PASSWORD")?));
//! options.tls.authorities = Some(std::fs::read("ca.pem")?);
//! options.tls.identity = Some(EtcdIdentity::new(std::fs::read("client.pem")?, std::fs::read("client.key")?));
//! let store = EtcdStore::with_options(["https://10.0.0.1:2379", "https://10.0.0.2:2379"], options)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A cluster uses keys under its prefix. Those of holds lie under `hotrow-hold/`, and `hotrow-compacted` is next to them; a user who may not
//! read and write these has no [snapshots](crate::Cluster::snapshot). A token that has expired is renewed.
//!
//! # Servers that fail
//!
//! A call that is not answered goes on to the next server. A read is repeated there; a commit has an unknown outcome, and its marker is
//! looked up. All that lasts until the deadline of the transaction, whose error then names the server and the reason.
//!
//! Others are errors at once, because they do not pass by themselves ([`StoreError::Denied`]): a certificate that one side does not trust, a wrong
//! password, a lack of permission, a server of gRPC that is none of etcd, and etcd's alarm that it has no space left. Then the transaction had no
//! effect.

mod adding;
mod authenticating;
mod client;
mod codec;
mod committing;
mod connecting;
mod failing;
mod gathering;
mod holding;
mod inner;
mod messages;
mod options;
#[cfg(test)]
pub(crate) mod tests;

pub use options::{EtcdIdentity, EtcdOptions, EtcdTls, EtcdUser};

use crate::store::{
    At, Commit, Freshness, Hold, Limits, Outcome, Page, Read, Span, Store, StoreError, Version,
};
use adding::KnownCounters;
use client::Client;
use gathering::Gatherer;
use hotrow_sync::clock::Instant;
use hotrow_sync::{Arc, Mutex};
use inner::{Inner, revision, version};
use messages::{WatchCreateRequest, WatchRequest, WatchResponse};
use std::{fmt, io};
use tonic::codec::Streaming;
use tonic::{Code, Status};

const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// A [`Store`] in an etcd cluster.
pub struct EtcdStore {
    inner: Arc<Inner>,
}

impl fmt::Debug for EtcdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdStore").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl EtcdStore {
    /// A store in the etcd cluster with servers at these addresses, such as `http://127.0.0.1:2379`. Connections are made when they are
    /// needed.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if an address is none, or the system gives no thread.
    pub fn new<A: Into<String>>(servers: impl IntoIterator<Item = A>) -> io::Result<Self> {
        Self::with_options(servers, EtcdOptions::default())
    }

    /// As [`new`](Self::new), with options.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_options<A: Into<String>>(
        servers: impl IntoIterator<Item = A>,
        options: EtcdOptions,
    ) -> io::Result<Self> {
        let servers: Vec<String> = servers.into_iter().map(Into::into).collect();
        let client = Client::new(&servers, &options)?;
        let (reads, commits) = (Gatherer::of_reads(&client), Gatherer::of_commits(&client));
        let (counters, lease) = (KnownCounters::default(), Mutex::new(None));
        let inner = Inner { client, reads, commits, options, counters, lease };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Lets etcd forget states below a version, as far as no client holds one. Returns the lowest version that can be read for
    /// certain.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unreachable`].
    pub fn compact_below(&self, below: Version, deadline: Instant) -> Result<Version, StoreError> {
        holding::compact_below(&self.inner, below, deadline)
    }
}

impl Store for EtcdStore {
    fn limits(&self) -> Limits {
        let EtcdOptions { operations_max, bytes_max, .. } = self.inner.options;
        Limits { conditions_max: operations_max, changes_max: operations_max, bytes_max }
    }

    fn read_version(&self, freshness: Freshness, deadline: Instant) -> Result<Version, StoreError> {
        self.inner.read_version(freshness, deadline)
    }

    fn get_many(&self, keys: &[Vec<u8>], at: At, deadline: Instant) -> Result<Read, StoreError> {
        self.limits().check_keys(keys).map_err(|reason| StoreError::Refused { reason })?;
        self.inner.get_many(keys, at, deadline)
    }

    fn range(&self, span: &Span, at: At, limit: usize, deadline: Instant) -> Result<Page, StoreError> {
        self.inner.page(span, at, limit, deadline)
    }

    fn commit(&self, commit: &Commit, deadline: Instant) -> Result<Outcome, StoreError> {
        self.limits().check(commit).map_err(|reason| StoreError::Refused { reason })?;
        self.inner.commit(commit, deadline)
    }

    fn watch(
        &self,
        keys: &[Vec<u8>],
        spans: &[Span],
        from: Version,
        deadline: Instant,
    ) -> Result<Option<Version>, StoreError> {
        let create = |key: &Vec<u8>, range_end: &[u8]| {
            let (key, range_end) = (key.clone(), range_end.to_vec());
            WatchRequest {
                create: Some(WatchCreateRequest { key, range_end, start_revision: revision(from + 1) }),
            }
        };
        let of_keys = keys.iter().map(|key| create(key, &[]));
        let of_spans =
            spans.iter().filter(|span| !span.is_empty()).map(|span| create(&span.start, &span.end));
        let requests: Vec<_> = of_keys.chain(of_spans).collect();
        let watched = self.inner.client.stream(WATCH, requests, deadline, first_event);
        match watched.map_err(|error| error.of_read(from))? {
            Some(None) => Err(StoreError::Compacted { version: from }),
            Some(changed) => Ok(changed),
            None => Ok(None),
        }
    }

    fn hold(&self, at: Version, deadline: Instant) -> Result<Hold, StoreError> {
        holding::hold(&self.inner, at, deadline)
    }
}

/// The version of the first change of a watch; `None` if the changes are not known any more.
async fn first_event(mut answers: Streaming<WatchResponse>) -> Result<Option<Version>, Status> {
    loop {
        let answer = answers.message().await?;
        let answer = answer.ok_or_else(|| Status::unavailable("etcd has ended the watch"))?;
        if answer.compact_revision > 0 {
            return Ok(None);
        }
        if answer.canceled {
            let reason = answer.cancel_reason;
            let is_denied = reason.contains("permission denied");
            let code = if is_denied { Code::PermissionDenied } else { Code::Unavailable };
            return Err(Status::new(code, format!("etcd has ended the watch: {reason}")));
        }
        let changes = answer.events.into_iter().filter_map(|event| event.kv);
        if let Some(changed) = changes.map(|kv| kv.mod_revision).max() {
            return Ok(Some(version(changed)));
        }
    }
}
