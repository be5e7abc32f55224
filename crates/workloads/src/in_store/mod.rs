//! Workloads whose tables are in a distributed store.
//!
//! The transactions are the same procedures as in a database of this process, with the same inputs, the same driver and the same checks.

mod tickets;
mod tpcc;
mod ycsb;

pub(crate) use tickets::run as run_tickets;
pub(crate) use tpcc::run as run_tpcc;
pub(crate) use ycsb::run as run_ycsb;

use crate::site::{Failure, Site};
use hotrow::history::History;
use hotrow::sync::{Mutex, lock};
use hotrow::{Context, Error, Key, Procedure, Profile, TableRef, Value};
use hotrow_driver::{BaselineRun, BenchError, Observer, load_parts};
use hotrow_remote::{Cluster, ClusterError, Freshness, Recording, RemoteTable, StoreAddress};
use std::cell::Cell;
use std::fmt::Display;

/// The store of a run, and the recording of what happens there.
struct InStore {
    cluster: Cluster,
    recording: Mutex<Option<Recording>>,
}

impl InStore {
    /// The cluster at an address, in which there must be no tables of these names.
    fn open(address: &str, tables: &[&str]) -> Result<Self, BenchError> {
        let bad = |error: &dyn Display| BenchError::Load(error.to_string());
        let parsed: StoreAddress = address.parse().map_err(|error| bad(&error))?;
        let cluster = parsed.open().map_err(|error| bad(&error))?;
        let taken = cluster.table_names().map_err(load_failed)?;
        if let Some(name) = tables.iter().find(|name| taken.iter().any(|taken| taken == *name)) {
            return Err(BenchError::Load(format!(
                "{address} has a table {name} already: a run wants a store, or a part of one, of its own"
            )));
        }
        Ok(Self::over(cluster))
    }

    fn over(cluster: Cluster) -> Self {
        Self { cluster, recording: Mutex::new(None) }
    }

    /// Begins to record, if the run is to be recorded.
    fn record(&self, run: &BaselineRun<'_>) -> Result<(), BenchError> {
        if run.records() {
            *lock(&self.recording) = Some(self.cluster.record().map_err(load_failed)?);
        }
        Ok(())
    }

    fn history(&self) -> Option<History> {
        lock(&self.recording).take().map(Recording::finish)
    }

    /// The place where the transactions of a client run, which counts its lost attempts.
    fn site<'a>(&'a self, aborts: &'a mut u64) -> Elsewhere<'a> {
        Elsewhere { cluster: &self.cluster, aborts }
    }
}

fn load_failed(error: ClusterError) -> BenchError {
    BenchError::Load(error.to_string())
}

/// A part of a table to be loaded.
type Fill<'f> = Box<dyn Fn() -> Result<(), ClusterError> + Sync + 'f>;

/// Loads parts of tables by several threads.
fn load(threads: usize, observer: &dyn Observer, parts: &[Fill<'_>]) -> Result<(), BenchError> {
    load_parts(parts, threads, observer, |fill| fill().map_err(|error| error.to_string()))
}

/// Inserts rows of so many bytes at most, keys included, some of them in each transaction.
fn insert_all<K: Key, R: Value>(
    cluster: &Cluster,
    table: &RemoteTable<K, R>,
    row_bytes_max: usize,
    rows: impl Iterator<Item = (K, R)>,
) -> Result<(), ClusterError> {
    /// The most keys of a row, with its groups and its entries of indexes, and some room.
    const KEYS: usize = 5;
    let limits = cluster.limits();
    let together = (limits.changes_max / KEYS).min(limits.bytes_max / row_bytes_max).max(1);
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let some: Vec<(K, R)> = rows.by_ref().take(together).collect();
        cluster.transact(|tx| {
            some.iter().try_for_each(|(key, row)| tx.insert(table, key.clone(), row.clone()))
        })?;
    }
    Ok(())
}

/// The tables of a cluster.
struct Elsewhere<'a> {
    cluster: &'a Cluster,
    aborts: &'a mut u64,
}

impl From<ClusterError> for Failure {
    #[cold]
    fn from(error: ClusterError) -> Self {
        let is_rollback = matches!(&error, ClusterError::Transaction(Error::Rollback(_)));
        Self { is_rollback, message: error.to_string() }
    }
}

impl Site for Elsewhere<'_> {
    fn execute<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure> {
        let counted = Counted { procedure, attempts: Cell::new(0) };
        let result = self.cluster.execute(&counted);
        *self.aborts += counted.attempts.get().saturating_sub(1);
        Ok(result?)
    }

    fn execute_eagerly<T: Procedure>(&mut self, procedure: &T) -> Result<T::Output, Failure> {
        self.execute(procedure)
    }

    fn defers(&self) -> bool {
        false
    }

    fn for_each<K: Key, R: Value>(
        &mut self,
        table: TableRef<K, R>,
        mut visit: impl FnMut(&K, &R),
    ) -> Result<u64, Failure> {
        let Some(table) = self.cluster.table_of(table) else {
            return Err(Failure { is_rollback: false, message: format!("{table:?} is not in the store") });
        };
        let rows = self.cluster.snapshot(Freshness::Newest, |tx| tx.rows(&table, ..))?;
        rows.iter().for_each(|(key, row)| visit(key, row));
        Ok(rows.len() as u64)
    }
}

/// A procedure that counts its attempts.
struct Counted<'a, T> {
    procedure: &'a T,
    attempts: Cell<u64>,
}

impl<T: Procedure> Procedure for Counted<'_, T> {
    type Output = T::Output;

    fn profile(&self) -> Profile {
        self.procedure.profile()
    }

    fn name(&self) -> &'static str {
        self.procedure.name()
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<T::Output>, C::Stop> {
        self.attempts.set(self.attempts.get() + 1);
        self.procedure.run(cx)
    }
}
