//! How long the checker takes, and how much memory: `cargo run --release -p hotrow-check --example million`.
//!
//! Makes histories as a correct run would leave them: one with the shape of TPC-C's mix (a million transactions,
//! or as many as the first argument says), and one of a queue that is scanned from its least key over all that
//! were taken before; and two of a run without any control. Prints the report of each with a few of its
//! anomalies, the time, and the process's peak of memory (Linux).

use hotrow_check::{AttemptInProgress, HistoryBuilder, check};
use hotrow_core::history::{Event, History, ReadKind};
use std::collections::VecDeque;
use std::ops::Bound::{Included, Unbounded};

const WORKERS: u32 = 8;
const DISTRICTS: usize = 80;
const CUSTOMERS: usize = 240_000;
const STOCKS: usize = 800_000;
const LINES: usize = 8;

/// Small random numbers (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A district's orders: the keys of their lines, and which are not delivered.
#[derive(Default)]
struct District {
    orders: u32,
    lines: VecDeque<[u32; LINES]>,
    undelivered: VecDeque<(u32, u32)>,
}

struct Shop {
    history: HistoryBuilder,
    random: Random,
    districts: Vec<District>,
    district_keys: Vec<u32>,
    customers: Vec<u32>,
    stocks: Vec<u32>,
    lines: u32,
    queue: u32,
}

fn order(district: usize, order: u32, line: u8) -> [u8; 6] {
    let [a, b, c, d] = order.to_be_bytes();
    [district as u8, a, b, c, d, line]
}

impl Shop {
    fn new() -> Self {
        let mut history = HistoryBuilder::new("synthetic");
        let mut keys = |name: &str, count: usize| {
            let object = history.object(name);
            (0..count as u32).map(|n| history.key(object, &n.to_be_bytes(), &n.to_string())).collect()
        };
        let district_keys = keys("district", DISTRICTS);
        let customers = keys("customer", CUSTOMERS);
        let stocks = keys("stock", STOCKS);
        let lines = history.object("order_line");
        let queue = history.object("new_order");
        let districts = (0..DISTRICTS).map(|_| District::default()).collect();
        let random = Random(88_172_645_463_325_252);
        Shop { history, random, districts, district_keys, customers, stocks, lines, queue }
    }

    fn read_some(&mut self, attempt: AttemptInProgress, count: usize) {
        for _ in 0..count {
            let customer = self.customers[self.random.below(CUSTOMERS)];
            self.history.read(attempt, customer);
        }
    }

    fn update(&mut self, attempt: AttemptInProgress, key: u32) {
        self.history.read(attempt, key);
        self.history.write(attempt, key);
    }

    fn new_order(&mut self, attempt: AttemptInProgress) {
        let at = self.random.below(DISTRICTS);
        self.update(attempt, self.district_keys[at]);
        self.read_some(attempt, 16);
        for _ in 0..LINES {
            let stock = self.stocks[self.random.below(STOCKS)];
            self.update(attempt, stock);
        }
        let number = self.districts[at].orders;
        self.districts[at].orders += 1;
        let insert = |history: &mut HistoryBuilder, object: u32, line: u8| {
            let key = history.absent_key(object, &order(at, number, line), &format!("{at},{number},{line}"));
            history.read(attempt, key);
            history.insert(attempt, key);
            key
        };
        let queued = insert(&mut self.history, self.queue, 0);
        let lines = std::array::from_fn(|line| insert(&mut self.history, self.lines, line as u8));
        let district = &mut self.districts[at];
        district.undelivered.push_back((number, queued));
        district.lines.push_back(lines);
        if district.lines.len() > 20 {
            district.lines.pop_front();
        }
    }

    fn delivery(&mut self, attempt: AttemptInProgress) {
        for at in 0..10 {
            let at = self.random.below(DISTRICTS / 10) * 10 + at;
            let Some((number, key)) = self.districts[at].undelivered.pop_front() else { continue };
            self.range(attempt, self.queue, &order(at, 0, 0), &order(at, number, 0));
            self.update(attempt, key);
            self.history.delete(attempt, key);
        }
    }

    fn stock_level(&mut self, attempt: AttemptInProgress) {
        let at = self.random.below(DISTRICTS);
        let district = &self.districts[at];
        let first = district.orders.saturating_sub(20);
        let (low, high) = (order(at, first, 0), order(at, district.orders, 0));
        self.range(attempt, self.lines, &low, &high);
        let district = &self.districts[at];
        district.lines.iter().flatten().for_each(|key| {
            self.history.read(attempt, *key);
        });
    }

    fn range(&mut self, attempt: AttemptInProgress, object: u32, low: &[u8], high: &[u8]) {
        let now = self.history.now();
        let (low, high) = (Included(low), Included(high));
        self.history
            .event(attempt, Event::Range { object, low, high, from: now.saturating_sub(30), to: now });
    }

    fn run(mut self, transactions: usize) -> History {
        for n in 0..transactions {
            let attempt = self.history.begin(n as u32 % WORKERS);
            match self.random.below(100) {
                0..48 => self.new_order(attempt),
                48..92 => {
                    self.read_some(attempt, 30);
                    for _ in 0..4 {
                        let customer = self.customers[self.random.below(CUSTOMERS)];
                        self.update(attempt, customer);
                    }
                }
                92..96 => self.delivery(attempt),
                _ => self.stock_level(attempt),
            }
            self.history.commit(attempt);
        }
        self.history.finish()
    }
}

/// A queue of so many keys, each taken after a scan over all that were taken before.
fn queue(length: usize) -> History {
    let mut history = HistoryBuilder::new("synthetic");
    let object = history.object("queue");
    let attempt = history.begin(0);
    let keys: Vec<u32> = (0..length as u32)
        .map(|n| {
            let key = history.absent_key(object, &n.to_be_bytes(), &n.to_string());
            history.insert(attempt, key);
            key
        })
        .collect();
    history.commit(attempt);
    for (n, key) in (0u32..).zip(keys) {
        let attempt = history.begin(n % WORKERS);
        let (now, high) = (history.now(), n.to_be_bytes());
        let (low, high) = (Unbounded, Included(&high[..]));
        history.event(attempt, Event::Range { object, low, high, from: now, to: now });
        let version = history.read(attempt, key);
        history.event(attempt, Event::Read { key, version, kind: ReadKind::Value });
        history.delete(attempt, key);
        history.commit(attempt);
    }
    history.finish()
}

/// A run without any control: of `together` transactions at a time each reads and writes some of a few keys
/// before any other's writes are there.
fn broken(transactions: usize, together: u32) -> History {
    let mut random = Random(7);
    let mut history = HistoryBuilder::new("synthetic");
    let object = history.object("box");
    let keys: Vec<u32> =
        (0..10_000u32).map(|n| history.key(object, &n.to_be_bytes(), &n.to_string())).collect();
    for _ in 0..transactions as u32 / together {
        let attempts: Vec<_> = (0..together).map(|worker| history.begin(worker)).collect();
        let first = random.below(keys.len() - 64);
        for attempt in &attempts {
            for _ in 0..10 {
                history.read(*attempt, keys[first + random.below(64)]);
            }
        }
        for attempt in &attempts {
            for _ in 0..4 {
                history.write(*attempt, keys[first + random.below(64)]);
            }
            history.commit(*attempt);
        }
    }
    history.finish()
}

/// The peak of this process's memory in MiB, where the system tells it.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn judge(name: &str, history: &History) {
    let bytes: usize = history.workers.iter().map(|worker| worker.bytes.len()).sum();
    println!(
        "== {name}: {} MiB of events, {} keys, peak {} MiB",
        bytes >> 20,
        history.keys.len(),
        peak_mib()
    );
    let begin = hotrow_sync::clock::now();
    let report = check(history);
    let seconds = begin.elapsed().as_secs_f64();
    match report {
        Ok(mut report) => {
            report.not_listed += report.anomalies.drain(3.min(report.anomalies.len())..).count() as u64;
            println!("{report}");
        }
        Err(error) => println!("{error}"),
    }
    println!("judged in {seconds:.2} s, peak {} MiB\n", peak_mib());
}

fn main() {
    let transactions = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    judge("broken, in small groups", &broken(transactions / 4, 4));
    judge("broken, in large groups", &broken(transactions / 4, 20_000));
    judge("queue", &queue(transactions / 10));
    judge("tpcc-like", &Shop::new().run(transactions));
}
