//! YCSB, as plor §6.1 runs it: transactions of reads and writes of records under a zipfian distribution.
//!
//! One table with a hash index maps numbers to values of a configurable size. A transaction is small (4 operations)
//! or, one in ten, big (16). The zipfian distribution draws each of its records, no record twice. The transaction
//! touches them in the order in which they were drawn, not sorted. Each operation reads the value, replaces it
//! without reading it (a *blind write*, as YCSB's updates are), or changes a part of it (a *read-modify-write*).
//!
//! The presets are YCSB's core workloads A, B, C and F (Cooper and others, "Benchmarking Cloud Serving Systems with
//! YCSB", SoCC 2010) with the paper's transactions; B has the paper's theta. D and E, which insert and scan, are
//! missing.

mod audit;
pub(crate) mod client;
pub mod keys;
pub mod options;
pub mod procedure;
pub mod rows;

pub use options::{Preset, YcsbOptions};

use crate::site::{Failure, Here, Site};
use crate::traces::trace;
use audit::Audit;
use client::YcsbClient;
use hotrow::protocols::Occ;
use hotrow::{Database, ProcedureTrace, Protocol, TableRef, Worker};
use hotrow_driver::{BenchError, Check, End, Observer, Ran, Workload, finish, load_parts};
use procedure::{ReadSum, YcsbProcedure};
use rows::{Long, Row, Short, Standard};

/// The names of the transactions' types.
pub(crate) const KINDS: &[&str] = &["small", "big"];

/// The loaded table of records and its options.
pub struct Ycsb<P: Protocol> {
    database: Database<P>,
    table: Records,
    options: YcsbOptions,
}

/// The table, by the type of its rows. One workload serves all, so that the driver is compiled once.
#[derive(Debug, Clone, Copy)]
pub enum Records {
    /// Values of up to [`SHORT_BYTES_MAX`](rows::SHORT_BYTES_MAX) bytes.
    Short(TableRef<u64, Short>),
    /// Values of [`STANDARD_BYTES`](rows::STANDARD_BYTES).
    Standard(TableRef<u64, Standard>),
    /// Values of any other size.
    Long(TableRef<u64, Long>),
}

/// Number of records that a thread loads at a time.
const CHUNK: u64 = 4_096;

impl<P: Protocol> Ycsb<P> {
    /// Returns the database.
    pub fn database(&self) -> &Database<P> {
        &self.database
    }

    /// Returns its table.
    pub fn table(&self) -> Records {
        self.table
    }

    /// The place where the transactions of a worker run.
    #[inline(always)]
    fn here<'a>(&'a self, worker: &'a mut Worker<P>) -> Here<'a, P> {
        Here { database: &self.database, worker }
    }
}

#[inline]
fn procedure<'c, R: Row>(
    options: &YcsbOptions,
    client: &'c YcsbClient,
    table: TableRef<u64, R>,
) -> YcsbProcedure<'c, R> {
    let value_bytes = options.value_bytes;
    YcsbProcedure { table, operations: client.operations(), value_bytes, stamp: client.stamp() }
}

/// Runs the transaction that a client has drawn. Every run goes through this function.
#[inline]
pub(crate) fn run(
    site: &mut impl Site,
    table: Records,
    options: &YcsbOptions,
    client: &mut YcsbClient,
) -> Ran {
    let ended = match table {
        Records::Short(table) => site.execute(&procedure(options, client, table)),
        Records::Standard(table) => site.execute(&procedure(options, client, table)),
        Records::Long(table) => site.execute(&procedure(options, client, table)),
    };
    let end = match ended {
        Ok(ReadSum { sum, missing: 0 }) => {
            // The sum is discarded; without `black_box` the compiler could remove the reads.
            std::hint::black_box(sum);
            client.commit();
            End::Committed
        }
        Ok(ReadSum { missing, .. }) => End::Failed(format!("{missing} records are missing")),
        Err(failure) => End::Failed(failure.message),
    };
    Ran { kind: client.is_big().into(), end }
}

/// Checks all values after a run.
pub(crate) fn check(
    site: &mut impl Site,
    table: Records,
    options: &YcsbOptions,
    clients: &[YcsbClient],
) -> Vec<Check> {
    let committed = clients.iter().map(|client| &client.committed).collect();
    let mut audit = Audit::new(options.records, committed);
    let inspected = match table {
        Records::Short(table) => inspect(site, table, options, &mut audit),
        Records::Standard(table) => inspect(site, table, options, &mut audit),
        Records::Long(table) => inspect(site, table, options, &mut audit),
    };
    match inspected {
        Ok(_) => audit.finish(),
        Err(failure) => vec![Check::new("reading all records", Err(failure.message))],
    }
}

fn inspect<R: Row>(
    site: &mut impl Site,
    table: TableRef<u64, R>,
    options: &YcsbOptions,
    audit: &mut Audit<'_>,
) -> Result<u64, Failure> {
    site.for_each(table, |key, row| audit.record(*key, row.inspect(options.value_bytes)))
}

impl Ycsb<Occ> {
    /// Traces transactions, so many that all their ways are among them.
    fn traces(&self) -> Result<Vec<ProcedureTrace>, BenchError> {
        const TRANSACTIONS: usize = 40;
        let mut client = YcsbClient::new(0, &self.options, 1);
        let traces = (0..TRANSACTIONS).map(|_| {
            client.draw(&self.options);
            match self.table {
                Records::Short(table) => self.trace(&client, table),
                Records::Standard(table) => self.trace(&client, table),
                Records::Long(table) => self.trace(&client, table),
            }
        });
        traces.collect()
    }

    fn trace<R: Row>(
        &self,
        client: &YcsbClient,
        table: TableRef<u64, R>,
    ) -> Result<ProcedureTrace, BenchError> {
        trace(&self.database, &procedure(&self.options, client, table))
    }
}

/// Makes the table and inserts all records with several threads.
fn fill<R: Row, P: Protocol>(
    database: &Database<P>,
    options: &YcsbOptions,
    threads: usize,
    observer: &dyn Observer,
) -> Result<TableRef<u64, R>, BenchError> {
    let YcsbOptions { records, value_bytes, .. } = *options;
    let table = database.table("records").hash(records as usize).load().expect("a new name");
    let chunks: Vec<_> =
        (0..records).step_by(CHUNK as usize).map(|begin| begin..(begin + CHUNK).min(records)).collect();
    load_parts(&chunks, threads, observer, |chunk| {
        let mut all = chunk.clone().map(|key| table.insert(key, R::filled(value_bytes, 0)));
        all.try_for_each(|loaded| loaded.map_err(|error| error.to_string()))
    })?;
    Ok(finish(table)?.reference())
}

impl<P: Protocol> Workload<P> for Ycsb<P> {
    type Client = YcsbClient;

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> YcsbClient {
        YcsbClient::new(worker, &self.options, seed)
    }

    #[inline]
    fn prepare(&self, client: &mut YcsbClient) {
        client.draw(&self.options);
    }

    #[inline]
    fn run_one(&self, worker: &mut Worker<P>, client: &mut YcsbClient) -> Ran {
        run(&mut self.here(worker), self.table, &self.options, client)
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<YcsbClient>) -> Vec<Check> {
        check(&mut self.here(worker), self.table, &self.options, &clients)
    }

    /// Computes the size from the options: records neither come nor go, as the checks confirm.
    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        self.options.records * (size_of::<u64>() as u64 + u64::from(self.options.value_bytes))
    }
}
