//! The microbenchmark of stealdb §4.2: a transaction increments one random record in each of 32 tables.
//!
//! All tables have the same number of records under an ordered index: integers that are zero at first. (StealDB is
//! built on Silo, whose indexes are trees.) There is one type of transaction. It touches the tables in a fixed
//! order. From the first table it draws among the *hot* records only: with one hot record, any two transactions
//! conflict over their first operation, and over the other operations hardly ever.
//!
//! The increments do not depend on each other. Protocols that run operations of a transaction in parallel need this
//! independence. The procedure shows it, because no key depends on the result of an operation.

mod options;
pub mod procedure;

pub use options::Tables32Options;

use hotrow::sync::random::Random;
use hotrow::{Database, Error, Loading, Procedures, Protocol, Worker};
use hotrow_driver::{BenchError, Check, End, Observer, Ran, Workload, finish, load_parts};
use procedure::{IncrementProcedure, Integers};

/// The loaded tables and their options.
pub struct Tables32<P: Protocol> {
    database: Database<P>,
    tables: Vec<Integers>,
    options: Tables32Options,
}

/// One worker's next transaction, and its count of committed transactions.
#[derive(Debug, Clone)]
pub struct Tables32Client {
    random: Random,
    keys: Vec<u64>,
    committed: u64,
}

impl Tables32Client {
    /// Returns the keys of the transaction that was drawn last, one per table.
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }
}

impl<P: Protocol> Tables32<P> {
    /// Returns the database.
    pub fn database(&self) -> &Database<P> {
        &self.database
    }

    /// Returns the tables, in the order in which transactions touch them.
    pub fn tables(&self) -> &[Integers] {
        &self.tables
    }

    /// Sums the contents of the tables.
    fn count(&self, worker: &mut Worker<P>) -> Result<Counted, Error> {
        let mut counted = Counted { rows: 0, sums: Vec::with_capacity(self.tables.len()), cold: 0 };
        for (number, table) in self.tables.iter().enumerate() {
            let mut sum: u64 = 0;
            let mut cold: u64 = 0;
            counted.rows += self.database.table_of(*table).for_each(worker, |key, row| {
                sum = sum.wrapping_add(*row);
                if *key >= self.options.hot_records {
                    cold = cold.wrapping_add(*row);
                }
            })?;
            counted.sums.push(sum);
            if number == 0 {
                counted.cold = cold;
            }
        }
        Ok(counted)
    }
}

/// Contents of all tables after a run, as sums.
struct Counted {
    /// Number of rows in all tables.
    rows: u64,
    /// Sum of each table's integers.
    sums: Vec<u64>,
    /// Sum of the first table's integers that no transaction draws.
    cold: u64,
}

/// Makes the tables with all records, with several threads, each of which loads one table at a time.
fn fill<P: Protocol>(
    database: &Database<P>,
    tables: u32,
    records: u64,
    threads: usize,
    observer: &dyn Observer,
) -> Result<Vec<Integers>, BenchError> {
    let make = |number| database.table(format!("integers{number}")).load().expect("a new name");
    let tables: Vec<Loading<u64, u64, P>> = (0..tables).map(make).collect();
    load_parts(&tables, threads, observer, |table| {
        (0..records).try_for_each(|key| table.insert(key, 0)).map_err(|error| error.to_string())
    })?;
    tables.into_iter().map(|table| Ok(finish(table)?.reference())).collect()
}

impl<P: Protocol> Workload<P> for Tables32<P> {
    type Client = Tables32Client;

    fn kinds(&self) -> &'static [&'static str] {
        &["increment"]
    }

    fn database_of_procedures(&self) -> Option<&Database<P>> {
        Some(&self.database)
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> Tables32Client {
        let keys = Vec::with_capacity(self.tables.len());
        Tables32Client { random: Random::stream(seed, worker as u64), keys, committed: 0 }
    }

    fn prepare(&self, client: &mut Tables32Client) {
        let Tables32Options { records, hot_records, .. } = self.options;
        let Tables32Client { random, keys, .. } = client;
        keys.clear();
        keys.extend(
            (0..self.tables.len())
                .map(|number| if number == 0 { hot_records } else { records })
                .map(|chosen_from| random.below(chosen_from)),
        );
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut Tables32Client) -> Ran {
        let procedure = IncrementProcedure { tables: &self.tables, keys: &client.keys };
        let end = match self.database.execute_on(worker, &procedure) {
            Ok(0) => {
                client.committed += 1;
                End::Committed
            }
            Ok(missing) => End::Failed(format!("{missing} records are missing")),
            Err(error) => End::Failed(error.to_string()),
        };
        Ran { kind: 0, end }
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<Tables32Client>) -> Vec<Check> {
        let committed: u64 = clients.iter().map(|client| client.committed).sum();
        let Counted { rows, sums, cold } = match self.count(worker) {
            Ok(counted) => counted,
            Err(error) => return vec![Check::new("reading all records", Err(error.to_string()))],
        };
        let expected = u64::from(self.options.tables) * self.options.records;
        let all_there =
            if rows == expected { Ok(()) } else { Err(format!("{rows} records of {expected} are there")) };
        let counted = match sums.iter().enumerate().find(|(_, sum)| **sum != committed) {
            None => Ok(()),
            Some((number, sum)) => {
                Err(format!("the sum of table {number} is {sum}, {committed} transactions have committed"))
            }
        };
        let untouched = if cold == 0 {
            Ok(())
        } else {
            Err(format!("cold records of the first table were incremented {cold} times"))
        };
        vec![
            Check::new("all records are there", all_there),
            Check::new("sum of each table = committed transactions", counted),
            Check::new("only hot records of the first table were changed", untouched),
        ]
    }

    /// Computes the size from the options: records neither come nor go, as the checks confirm.
    fn payload_bytes(&self, _worker: &mut Worker<P>) -> u64 {
        let Tables32Options { tables, records, .. } = self.options;
        u64::from(tables) * records * 2 * size_of::<u64>() as u64
    }
}
