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
use hotrow::{Context, Error, Key, Procedure, Profile, Protocol, TableRef, Value, Worker};
use hotrow_driver::{BaselineRun, BenchError, Check, Observer, Ran, RunOutcome, Workload, load_parts};
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

    /// Runs transactions on tables that have been loaded, and records them if the run is to be recorded.
    fn run(self, run: BaselineRun<'_>, transactions: impl Transactions) -> Result<RunOutcome, BenchError> {
        if run.records() {
            *lock(&self.recording) = Some(self.cluster.record().map_err(load_failed)?);
        }
        run.run_in_store(Loaded { store: self, transactions })
    }

    /// The place where the transactions of a client run, which counts its lost attempts.
    fn site<'a>(&'a self, aborts: &'a mut u64) -> Elsewhere<'a> {
        Elsewhere { cluster: &self.cluster, aborts }
    }
}

/// The transactions of a workload whose tables are in a store.
trait Transactions: Sync {
    /// The state of one worker.
    type Client: Send;

    /// The names of the transactions' types.
    const KINDS: &'static [&'static str];

    /// The client of a worker.
    fn client(&self, worker: usize, seed: u64) -> Self::Client;

    /// Draws a client's next transaction.
    fn draw(&self, client: &mut Self::Client);

    /// Runs the transaction that was drawn.
    fn run(&self, site: &mut Elsewhere<'_>, client: &mut Self::Client) -> Ran;

    /// Checks the data after a run.
    fn check(&self, site: &mut Elsewhere<'_>, clients: &[Self::Client]) -> Vec<Check>;
}

/// A workload that is loaded into a store.
struct Loaded<T> {
    store: InStore,
    transactions: T,
}

impl<P: Protocol, T: Transactions> Workload<P> for Loaded<T> {
    /// With the number of attempts that it has lost.
    type Client = (T::Client, u64);

    fn kinds(&self) -> &'static [&'static str] {
        T::KINDS
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Self::Client {
        (self.transactions.client(worker, seed), 0)
    }

    fn prepare(&self, (client, _): &mut Self::Client) {
        self.transactions.draw(client);
    }

    fn run_one(&self, _worker: &mut Worker<P>, (client, aborts): &mut Self::Client) -> Ran {
        self.transactions.run(&mut self.store.site(aborts), client)
    }

    fn aborts(&self, _worker: &Worker<P>, (_, aborts): &Self::Client) -> u64 {
        *aborts
    }

    fn history(&self) -> Option<History> {
        lock(&self.store.recording).take().map(Recording::finish)
    }

    fn checks(&self, _worker: &mut Worker<P>, clients: Vec<Self::Client>) -> Vec<Check> {
        let clients: Vec<_> = clients.into_iter().map(|(client, _)| client).collect();
        self.transactions.check(&mut self.store.site(&mut 0), &clients)
    }

    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        0
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
