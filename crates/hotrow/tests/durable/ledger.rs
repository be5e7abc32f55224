//! A ledger: a workload that notices each commit that is lost, half there, or there without those before it.
//!
//! All transactions change one row, the sequence, and note the number that they gave it in a journal. So the commits that survive
//! a crash must have the numbers 1 to n, all of them; and accounts, visits and the rest must be what these commits make of them.

use hotrow::durable::DurableDatabase;
use hotrow::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use hotrow::sync::random::Random;
use hotrow::sync::thread;
use hotrow::{
    Abort, Database, Direction, Protocol, Stored, TArray, TBox, TCounter, Table, Transaction, UniqueIndex,
    Value, Worker, column_of,
};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;

pub(crate) const ACCOUNTS: u32 = 8;
/// The rows that are loaded beside the transactions, and as many that are inserted in bulk by one of them.
const LOADED: u32 = 40;
const REMAINDERS: usize = 3;

/// Main columns, and two groups that conflict apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub(crate) struct Account {
    owner: u64,
    #[value(group = "money")]
    balance: i64,
    #[value(group = "visits")]
    visits: u64,
    /// The last transaction that has changed the main columns.
    last: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Value, Stored)]
pub(crate) struct Entry {
    sequence: u64,
    from: u32,
    to: u32,
    amount: i64,
    words: String,
}

/// The tables.
pub(crate) struct Ledger<P: Protocol> {
    pub(crate) db: Database<P>,
    sequence: Table<u8, u64, P>,
    accounts: Table<u32, Account, P>,
    journal: Table<(u32, u64), Entry, P>,
    by_sequence: UniqueIndex<u64, (u32, u64), Entry, P>,
    /// A row for each thread whose last transaction had an odd number.
    odd: Table<String, u64, P>,
    /// The number of commits.
    commits: Arc<TCounter<P>>,
    /// The last commit's number, as text; and the number of commits for each remainder.
    latest: Arc<TBox<String, P>>,
    remainders: Arc<TArray<u64, P>>,
}

/// The number of each thread's last acknowledged transaction.
pub(crate) type Acknowledged = Arc<Vec<AtomicU64>>;

pub(crate) fn nothing_acknowledged(threads: usize) -> Acknowledged {
    Arc::new((0..threads).map(|_| AtomicU64::new(0)).collect())
}

/// The numbers so far.
pub(crate) fn now(acknowledged: &Acknowledged) -> Vec<u64> {
    acknowledged.iter().map(|last| last.load(Ordering::SeqCst)).collect()
}

impl<P: Protocol> Ledger<P> {
    /// Opens the ledger of a database; makes it if there is none.
    pub(crate) fn open(db: &Database<P>) -> Self {
        Self::try_open(db).unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`open`](Self::open), on storage that may fail.
    pub(crate) fn try_open(db: &Database<P>) -> Result<Self, Box<dyn Error>> {
        // Recovered whole, or not at all.
        let sequence = db.table("sequence").hash(1).load()?;
        if sequence.is_new() {
            sequence.insert(0, 0)?;
        }
        let sequence = sequence.finish()?;
        let accounts = db.table("accounts").hash(8).load()?;
        if accounts.is_new() {
            for account in 0..ACCOUNTS {
                let new = Account { owner: account.into(), balance: 100, visits: 0, last: 0 };
                accounts.insert(account, new)?;
            }
        }
        let accounts = accounts.finish()?;
        let mut journal = db.table("journal");
        let by_sequence = journal.unique("by_sequence", |_, entry: &Entry| entry.sequence);
        let journal = journal.create()?;
        let odd = db.table("odd").create()?;
        let commits = db.durable_counter("commits", 0)?;
        let latest = db.durable_box("latest", String::from("0"))?;
        let remainders = db.durable_array("remainders", REMAINDERS, |_| 0)?;
        Ok(Self {
            db: db.clone(),
            sequence,
            accounts,
            journal,
            by_sequence,
            odd,
            commits,
            latest,
            remainders,
        })
    }

    fn transfer(
        &self,
        tx: &mut Transaction<'_, P>,
        thread: u32,
        number: u64,
        random: &mut Random,
    ) -> Result<(), Abort> {
        let [from, to] = [0; 2].map(|_| random.below(ACCOUNTS.into()) as u32);
        let amount = random.below(10) as i64;
        let sequence = self.sequence.update(tx, &0, |number| {
            *number += 1;
            *number
        })?;
        let balance = column_of!(Account, balance);
        self.accounts.add(tx, &from, balance, -amount)?;
        match random.below(3) {
            0 => self.accounts.add(tx, &to, balance, amount)?,
            1 => self.accounts.update(tx, &to, |account| account.balance += amount)?,
            _ => {
                let before = self.accounts.read_columns(tx, &to, balance)?.expect("no account is deleted");
                self.accounts.update_columns(tx, &to, balance, |now| *now = before + amount)?;
            }
        }
        self.accounts.add(tx, &to, column_of!(Account, visits), 1)?;
        self.accounts.update(tx, &from, |account| account.last = sequence)?;
        self.commits.add(tx, 1)?;
        match random.below(2) {
            0 => self.latest.set(tx, sequence.to_string())?,
            _ => self.latest.apply(tx, move |latest| *latest = sequence.to_string())?,
        }
        self.remainders.add(tx, sequence as usize % REMAINDERS, 1)?;
        let words = "x".repeat(random.below(40) as usize);
        self.journal.insert(tx, (thread, number), Entry { sequence, from, to, amount, words })?;
        let name = format!("thread {thread}");
        if number % 2 == 1 {
            self.odd.insert(tx, name, number)?;
        } else {
            self.odd.delete(tx, name.as_str())?;
        }
        Ok(())
    }

    /// Runs transactions on several threads until `must_end`. Each goes on from its last number. `told` hears of each that was
    /// acknowledged. Ends at the first one that is not.
    pub(crate) fn run(
        &self,
        seed: u64,
        acknowledged: &Acknowledged,
        must_end: &AtomicBool,
        told: &(dyn Fn(u32, u64) + Sync),
    ) {
        thread::scope(|scope| {
            for thread in 0..acknowledged.len() as u32 {
                scope.spawn(move || {
                    let Ok(mut worker) = self.db.worker() else { return };
                    self.run_one(&mut worker, thread, seed, acknowledged, must_end, told);
                });
            }
        });
    }

    /// Loads and drops tables until `must_end`, or until that fails.
    pub(crate) fn load_beside(&self, must_end: &AtomicBool) {
        while !must_end.load(Ordering::Relaxed) && self.load_and_drop().is_some() {}
    }

    /// Loads a table, unless it is there, inserts as many rows at once, and drops it. `None` if that has failed.
    fn load_and_drop(&self) -> Option<()> {
        let loading = self.db.table::<u32, u64>("loaded").load().ok()?;
        let is_new = loading.is_new();
        if is_new {
            (0..LOADED).for_each(|key| loading.insert(key, 7).unwrap());
        }
        let table = loading.finish().ok()?;
        if is_new {
            table.bulk_insert((LOADED..2 * LOADED).map(|key| (key, 7))).ok()?;
        }
        self.db.drop_table(&table).ok()
    }

    /// Checks that what was loaded, and what was inserted at once, is there whole or not at all.
    fn check_loaded(&self) {
        let loading = self.db.table::<u32, u64>("loaded").load().unwrap();
        if !loading.is_new() {
            let loaded = loading.finish().unwrap();
            let rows =
                self.db.transact(|tx| loaded.collect(tx, .., Direction::Ascending, usize::MAX)).unwrap();
            assert!([LOADED, 2 * LOADED].contains(&(rows.len() as u32)), "{} rows are loaded", rows.len());
            let is_right = |(at, (key, row)): (u32, &(u32, u64))| *key == at && *row == 7;
            assert!((0..).zip(&rows).all(is_right), "{rows:?}");
        }
    }

    fn run_one(
        &self,
        worker: &mut Worker<P>,
        thread: u32,
        seed: u64,
        acknowledged: &Acknowledged,
        must_end: &AtomicBool,
        told: &(dyn Fn(u32, u64) + Sync),
    ) {
        let mut random = Random::stream(seed, thread.into());
        let Some(numbers) = self.numbers(worker) else { return };
        let mut number = numbers.get(&thread).copied().unwrap_or(0);
        while !must_end.load(Ordering::Relaxed) {
            if random.below(8) == 0 {
                // One that leaves nothing.
                let lost = worker.transact(|tx| {
                    self.transfer(tx, thread, number + 1, &mut random)?;
                    Err::<(), _>(Abort::rollback())
                });
                assert!(lost.is_err());
            }
            number += 1;
            if worker.transact(|tx| self.transfer(tx, thread, number, &mut random)).is_err() {
                return;
            }
            acknowledged[thread as usize].store(number, Ordering::SeqCst);
            told(thread, number);
        }
    }

    /// The number of each thread's last transaction. `None` if the log has failed already.
    fn numbers(&self, worker: &mut Worker<P>) -> Option<HashMap<u32, u64>> {
        let all = worker.transact(|tx| self.journal.collect(tx, .., Direction::Ascending, usize::MAX));
        // In the order of keys: the last one of a thread stays.
        Some(all.ok()?.into_iter().map(|((thread, number), _)| (thread, number)).collect())
    }

    /// Checks that the ledger is what a first part of all commits makes of it, and that all that was acknowledged is in it. Returns the
    /// number of commits.
    pub(crate) fn check(&self, acknowledged: &[u64]) -> u64 {
        self.check_loaded();
        let mut worker = self.db.worker().unwrap();
        let (last, accounts, journal, odd) = worker
            .transact(|tx| {
                let accounts = (0..ACCOUNTS).map(|account| self.accounts.get(tx, &account));
                let accounts = accounts.collect::<Result<Vec<_>, _>>()?;
                Ok((
                    self.sequence.get(tx, &0)?.expect("the sequence is there"),
                    accounts,
                    self.journal.collect(tx, .., Direction::Ascending, usize::MAX)?,
                    self.odd.collect(tx, .., Direction::Ascending, usize::MAX)?,
                ))
            })
            .unwrap();
        let mut expected: Vec<_> = (0..ACCOUNTS)
            .map(|account| Account { owner: account.into(), balance: 100, visits: 0, last: 0 })
            .collect();
        let mut numbers: HashMap<u32, u64> = HashMap::new();
        let mut sequences = Vec::new();
        for ((thread, number), Entry { sequence, from, to, amount, .. }) in &journal {
            expected[*from as usize].balance -= amount;
            expected[*to as usize].balance += amount;
            expected[*to as usize].visits += 1;
            let last = &mut expected[*from as usize].last;
            *last = (*last).max(*sequence);
            let before = numbers.insert(*thread, *number).unwrap_or(0);
            assert_eq!(before + 1, *number, "a transaction of thread {thread} is lost between others");
            sequences.push(*sequence);
        }
        sequences.sort_unstable();
        assert!(
            sequences.iter().copied().eq(1..=last),
            "{} commits survive, and not the first {last}",
            sequences.len()
        );
        let accounts: Vec<_> =
            accounts.into_iter().map(|account| account.expect("no account is lost")).collect();
        assert_eq!(accounts, expected, "a commit is half there");
        let mut names: Vec<_> = numbers
            .iter()
            .filter(|(_, number)| **number % 2 == 1)
            .map(|(thread, number)| (format!("thread {thread}"), *number))
            .collect();
        names.sort();
        assert_eq!(odd, names);
        let (commits, latest, remainders) = worker
            .transact(|tx| {
                let remainders =
                    (0..REMAINDERS).map(|at| self.remainders.get(tx, at)).collect::<Result<Vec<_>, _>>()?;
                Ok((self.commits.get(tx)?, self.latest.get(tx)?, remainders))
            })
            .unwrap();
        assert_eq!((commits as u64, latest), (last, last.to_string()), "an object has lost a commit");
        let of =
            |remainder| (1..=last).filter(|number| *number as usize % REMAINDERS == remainder).count() as u64;
        assert_eq!(remainders, (0..REMAINDERS).map(of).collect::<Vec<_>>());
        for (thread, told) in acknowledged.iter().enumerate() {
            let there = numbers.get(&(thread as u32)).copied().unwrap_or(0);
            assert!(there >= *told, "thread {thread} was told of {told} transactions, and {there} are there");
        }
        for ((thread, number), entry) in &journal {
            let found = worker.transact(|tx| self.by_sequence.get_key(tx, &entry.sequence)).unwrap();
            assert_eq!(found, Some((*thread, *number)), "the index is built anew");
        }
        last
    }
}
