//! Rates of transactions over etcd, by turns with conditional puts without Hotrow.
//!
//! ```text
//! .ci/etcd cargo run --release -p hotrow-remote --example rates -- [THREADS] [SECONDS] [PART OF A NAME]
//! ```
//!
//! Each line is the median of five turns. With a part of a name, only the operations that have it are measured.

use hotrow::{Stored, Value, column_of};
use hotrow_remote::{
    At, Cluster, Commit, EtcdOptions, EtcdStore, Freshness, Mutation, Outcome, RemoteTable, Settings, Store,
};
use hotrow_sync::Arc;
use hotrow_sync::clock::{Duration, now};
use hotrow_sync::thread;

const TURNS: usize = 5;

#[derive(Debug, Clone, Copy, Stored, Value)]
#[value(inline)]
struct Counter {
    #[value(group = "count")]
    count: i64,
}

/// The rows and the counter of a run.
struct Subject {
    store: Arc<EtcdStore>,
    cluster: Cluster,
    rows: RemoteTable<u64, i64>,
    counters: RemoteTable<u64, Counter>,
    prefix: Vec<u8>,
}

impl Subject {
    /// A transaction that changes one row of the thread's own.
    fn own_row(&self, thread: u64) {
        self.cluster.transact(|tx| tx.update(&self.rows, &thread, |row| *row += 1)).unwrap();
    }

    /// The same with the store alone: a read, and a put under the condition that nobody was faster.
    fn own_key(&self, thread: u64) {
        self.conditional_put(format!("key {thread}"));
    }

    fn conditional_put(&self, key: String) {
        let key = [&*self.prefix, key.as_bytes()].concat();
        loop {
            let deadline = now() + Duration::from_secs(10);
            let read = self.store.get_many(std::slice::from_ref(&key), At::Newest, deadline).unwrap();
            let found = read.values[0].as_ref();
            let (version, value) = found.map_or((0, 0), |found| {
                (found.version, i64::from_le_bytes(found.value.as_slice().try_into().unwrap()))
            });
            let put = Mutation::Put { key: key.clone(), value: (value + 1).to_le_bytes().to_vec() };
            let commit =
                Commit { keys: vec![(key.clone(), version)], mutations: vec![put], ..Commit::default() };
            if matches!(self.store.commit(&commit, deadline).unwrap(), Outcome::Committed(_)) {
                return;
            }
        }
    }

    fn hot_key(&self, _: u64) {
        self.conditional_put("hot".to_owned());
    }

    fn hot_row(&self, _: u64) {
        self.cluster.transact(|tx| tx.update(&self.rows, &1_000, |row| *row += 1)).unwrap();
    }

    fn hot_addition(&self, _: u64) {
        self.cluster.transact(|tx| tx.add(&self.counters, &1, column_of!(Counter, count), 1)).unwrap();
    }
}

/// The operations a second of so many threads.
fn rate(threads: u64, seconds: u64, operation: impl Fn(u64) + Sync) -> f64 {
    let (began, end) = (now(), now() + Duration::from_secs(seconds));
    let done: u64 = thread::scope(|scope| {
        let run = |thread| {
            let operation = &operation;
            scope.spawn(move || {
                let mut done = 0;
                while now() < end {
                    operation(thread);
                    done += 1;
                }
                done
            })
        };
        let workers: Vec<_> = (0..threads).map(run).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    done as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let argument =
        |at, default| std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"));
    let (threads, seconds) = (argument(1, 8), argument(2, 2));
    let servers = std::env::var("HOTROW_ETCD").expect("HOTROW_ETCD has the addresses of etcd servers");
    let store = EtcdStore::with_options(servers.split(','), EtcdOptions::default()).unwrap();
    let store = Arc::new(store);
    let version = store.read_version(Freshness::Newest, now() + Duration::from_secs(10)).unwrap();
    let mut settings = Settings::default();
    settings.prefix = format!("rates-{version}/").into_bytes();
    let prefix = settings.prefix.clone();
    let cluster = Cluster::with_settings(store.clone(), settings);
    let rows = cluster.table("rows").create_or_open().unwrap();
    let counters = cluster.table("counters").create_or_open().unwrap();
    cluster
        .transact(|tx| {
            (0..threads).try_for_each(|thread| tx.insert(&rows, thread, 0))?;
            tx.insert(&rows, 1_000, 0)?;
            tx.insert(&counters, 1, Counter { count: 0 })
        })
        .unwrap();
    let subject = Subject { store, cluster, rows, counters, prefix };
    type Operation = fn(&Subject, u64);
    let operations: [(&str, Operation); 5] = [
        ("own key, conditional put, /s", Subject::own_key),
        ("own row, transaction, /s", Subject::own_row),
        ("hot key, conditional put, /s", Subject::hot_key),
        ("hot row, transaction, /s", Subject::hot_row),
        ("hot row, addition, /s", Subject::hot_addition),
    ];
    let part = std::env::args().nth(3).unwrap_or_default();
    let operations: Vec<_> = operations.into_iter().filter(|(name, _)| name.contains(&part)).collect();
    let mut rates = vec![Vec::new(); operations.len()];
    for _ in 0..TURNS {
        for ((_, operation), rates) in operations.iter().zip(&mut rates) {
            rates.push(rate(threads, seconds, |thread| operation(&subject, thread)));
        }
    }
    println!("{threads} threads, {TURNS} turns of {seconds} s");
    for ((name, _), rates) in operations.iter().zip(&mut rates) {
        rates.sort_by(f64::total_cmp);
        println!("{:>10.0}  {name}", rates[TURNS / 2]);
    }
}
