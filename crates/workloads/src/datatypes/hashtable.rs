//! The microbenchmark of sto §5.3: reads and writes of random keys of a large hash table.

use super::{equal, ran};
use hotrow::sync::random::Random;
use hotrow::{Abort, ConcurrentMap, Database, Protocol, TBoostedMap, THashMap, Transaction, Worker};
use hotrow_driver::{
    BenchError, Check, Observer, OptionError, OptionInfo, OptionValues, Ran, Workload, WorkloadDefinition,
    WorkloadInfo,
};
use serde::Serialize;

/// The implementation of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// A transactional hash map. Under a protocol that locks, it is the paper's pessimistic one.
    HashMap,
    /// A concurrent map of another crate, boosted.
    Boosted,
}

/// The size of the table and the shape of its transactions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HashtableOptions {
    /// Number of keys, at least 1. The paper has ten million.
    pub keys: u64,
    /// Operations per transaction. The paper has 50.
    pub ops: usize,
    /// Share of operations that write what they have read, changed, from 0 to 1. The paper has a tenth.
    pub write_share: f64,
    /// The implementation.
    pub table: Table,
}

/// The number of abstract locks of a boosted table, so that few transactions of 50 operations meet at one.
const LOCKS: usize = 1 << 20;

/// A table of numbers, all zero at first.
pub struct Hashtable<P: Protocol> {
    form: Form<P>,
    options: HashtableOptions,
}

enum Form<P: Protocol> {
    HashMap(THashMap<u64, u64, P>),
    Boosted(TBoostedMap<u64, u64, Inner, P>),
}

/// The map that is boosted.
struct Inner(papaya::HashMap<u64, u64>);

impl ConcurrentMap<u64, u64> for Inner {
    fn get(&self, key: &u64) -> Option<u64> {
        self.0.pin().get(key).copied()
    }

    fn insert(&self, key: u64, value: u64) -> Option<u64> {
        self.0.pin().insert(key, value).copied()
    }

    fn remove(&self, key: &u64) -> Option<u64> {
        self.0.pin().remove(key).copied()
    }
}

/// One worker's next transaction, and its count of committed writes.
pub struct HashtableClient {
    random: Random,
    /// Pairs of a key and a flag; the flag is true if the operation writes.
    operations: Vec<(u64, bool)>,
    writes: u64,
}

impl WorkloadDefinition for HashtableOptions {
    type Loaded<P: Protocol> = Hashtable<P>;

    const INFO: WorkloadInfo = WorkloadInfo {
        name: "hashtable",
        summary: "reads and writes of random keys of a hash table, transactional or boosted",
        source: "sto §5.3",
        runs_procedures: false,
        is_durable: false,
        options: &[
            OptionInfo { name: "keys", value: "N", default: "1000000", summary: "Keys, from 1 to 10^12" },
            OptionInfo {
                name: "ops",
                value: "N",
                default: "50",
                summary: "Operations in a transaction, from 1 to 10000; each reads",
            },
            OptionInfo {
                name: "write-share",
                value: "S",
                default: "0.1",
                summary: "The share of operations that write as well, from 0 to 1",
            },
            OptionInfo {
                name: "table",
                value: "T",
                default: "hash-map",
                summary: "hash-map, or boosted: a concurrent map without transactions, with abstract locks and an undo log",
            },
        ],
        baselines: &[],
        example: "--keys 100000 --table boosted",
    };

    fn parse(values: &OptionValues<'_>) -> Result<Self, OptionError> {
        Ok(Self {
            keys: values.number("keys", 1..=1_000_000_000_000)?,
            ops: values.number("ops", 1..=10_000)?,
            write_share: values.number("write-share", 0.0..=1.0)?,
            table: values.one_of("table", &[("hash-map", Table::HashMap), ("boosted", Table::Boosted)])?,
        })
    }

    fn data_bytes_estimate(&self) -> u64 {
        self.keys.saturating_mul(64)
    }

    fn load<P: Protocol>(
        &self,
        database: &Database<P>,
        _threads: usize,
        _seed: u64,
        observer: &dyn Observer,
    ) -> Result<Hashtable<P>, BenchError> {
        const STEP: u64 = 1 << 16;
        let entries = (0..self.keys).map(|key| (key, 0)).inspect(|(key, _)| {
            if key.is_multiple_of(STEP) {
                observer.loading(*key, self.keys);
            }
        });
        let form = match self.table {
            Table::HashMap => Form::HashMap(THashMap::with_entries(database, entries)),
            Table::Boosted => {
                let inner = Inner(entries.collect::<papaya::HashMap<_, _>>());
                Form::Boosted(TBoostedMap::named(database, "boosted map", inner, LOCKS))
            }
        };
        observer.loading(self.keys, self.keys);
        Ok(Hashtable { form, options: *self })
    }
}

impl<P: Protocol> Form<P> {
    fn get(&self, tx: &mut Transaction<'_, P>, key: u64) -> Result<u64, Abort> {
        let value = match self {
            Self::HashMap(map) => map.get(tx, &key)?,
            Self::Boosted(map) => map.get(tx, &key)?,
        };
        Ok(value.unwrap_or_default())
    }

    fn set(&self, tx: &mut Transaction<'_, P>, key: u64, value: u64) -> Result<(), Abort> {
        match self {
            Self::HashMap(map) => map.insert(tx, key, value).map(drop),
            Self::Boosted(map) => map.insert(tx, key, value).map(drop),
        }
    }
}

impl<P: Protocol> Workload<P> for Hashtable<P> {
    type Client = HashtableClient;

    fn kinds(&self) -> &'static [&'static str] {
        &["hashtable"]
    }

    fn client(&self, worker: usize, _workers: usize, seed: u64) -> HashtableClient {
        let random = Random::stream(seed, worker as u64);
        HashtableClient { random, operations: Vec::with_capacity(self.options.ops), writes: 0 }
    }

    fn prepare(&self, client: &mut HashtableClient) {
        let HashtableOptions { keys, ops, write_share, .. } = self.options;
        let HashtableClient { random, operations, .. } = client;
        operations.clear();
        operations.extend((0..ops).map(|_| (random.below(keys), random.chance(write_share))));
    }

    fn run_one(&self, worker: &mut Worker<P>, client: &mut HashtableClient) -> Ran {
        let HashtableClient { operations, writes, .. } = client;
        let result = worker.transact(|tx| {
            let mut written = 0;
            for (key, writes) in &*operations {
                let value = self.form.get(tx, *key)?;
                if *writes {
                    self.form.set(tx, *key, value + 1)?;
                    written += 1;
                }
            }
            Ok(written)
        });
        ran(result, |written| *writes += written)
    }

    fn checks(&self, worker: &mut Worker<P>, clients: Vec<HashtableClient>) -> Vec<Check> {
        const BATCH: u64 = 1_024;
        let mut sum = 0;
        for first in (0..self.options.keys).step_by(BATCH as usize) {
            let keys = first..self.options.keys.min(first + BATCH);
            let batch = worker.transact(|tx| {
                keys.clone().try_fold(0i128, |sum, key| Ok(sum + i128::from(self.form.get(tx, key)?)))
            });
            match batch {
                Ok(batch) => sum += batch,
                Err(error) => return vec![Check::new("reading all keys", Err(error.to_string()))],
            }
        }
        let writes = clients.iter().map(|client| i128::from(client.writes)).sum();
        vec![equal("sum of values = committed writes", sum, writes)]
    }

    fn payload_bytes(&self, _: &mut Worker<P>) -> u64 {
        self.options.keys * 16
    }
}
