//! Tests over each store.

pub(crate) mod bank;
pub(crate) mod contract;
mod counters;
mod databases;
#[cfg(feature = "sim")]
mod explored;
mod groups;
mod hand_stepped;
mod indexes;
mod large_keys;
mod lost_answers;
mod panics;
mod recorded;
pub(crate) mod registry;
mod savepoints;
mod sequences;
mod subtractions;
mod tables;
pub(crate) mod tickets;

use crate::{Cluster, ClusterError, MemoryStore, Settings, Store};
use hotrow::{Stored, Value};
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;

/// A row that is a counter.
#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
pub(crate) struct Counter {
    #[value(group = "count")]
    pub(crate) count: i64,
}

/// A cluster in an empty store without faults.
fn cluster() -> Cluster {
    Cluster::over(Arc::new(MemoryStore::new()))
}

/// Settings for tests: short pauses, small pages.
fn settings() -> Settings {
    Settings { backoff_max: Duration::from_micros(200), page: 7, ..Settings::default() }
}

/// A cluster in a store that others use, too.
fn cluster_over(store: &Arc<impl Store + 'static>) -> Cluster {
    Cluster::with_settings(Arc::clone(store) as Arc<dyn Store>, settings())
}

/// The text of an error.
fn text<T: std::fmt::Debug>(result: Result<T, ClusterError>) -> String {
    result.unwrap_err().to_string()
}
