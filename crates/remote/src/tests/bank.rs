//! A bank under several threads, with faults, judged by sums and by the checker of histories.
//!
//! Accounts are opened and closed, so that ranges change; tombstones are collected all the time. Each transaction also counts itself in
//! a row of its thread, so that a commit that is lost or applied twice is noticed.

use super::{Counter, settings};
use crate::faults::{Faults, FaultyStore};
use crate::mutants::Mutant;
use crate::{
    Cluster, ClusterError, Freshness, MemoryStore, Recording, RemoteTable, Settings, Store, Transaction,
};
use hotrow::column_of;
use hotrow_core::Abort;
use hotrow_sync::clock::{Duration, Instant, now};
use hotrow_sync::random::Random;
use hotrow_sync::{Arc, thread};

/// The money of all accounts.
const TOTAL: i64 = 600;
/// The most accounts at a time.
const ACCOUNTS_MAX: usize = 6;
/// The numbers of accounts.
const NUMBERS: u64 = 12;

/// A client's work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) threads: u64,
    /// The most transactions of each thread.
    pub(crate) transactions: u64,
    /// The time for which no more are begun; `None` if there is no such time.
    pub(crate) end: Option<Instant>,
    pub(crate) seed: u64,
    pub(crate) mix: Mix,
}

impl Load {
    /// So many transactions of each thread.
    pub(crate) fn of(threads: u64, transactions: u64, seed: u64, mix: Mix) -> Self {
        Self { threads, transactions, end: None, seed, mix }
    }
}

/// The kinds of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mix {
    /// All of them.
    All,
    /// Empty accounts are opened and closed, and tombstones are collected.
    Churn,
}

/// The result of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// All was well.
    Sound,
    /// An invariant was broken in the state that it has read.
    Broken,
    /// It has counted itself.
    Counted,
}

impl Mix {
    /// One of them, by the seed.
    pub(crate) fn by_seed(seed: u64) -> Self {
        if seed.is_multiple_of(2) { Self::All } else { Self::Churn }
    }
}

impl Step {
    fn sees(is_sound: bool) -> Self {
        if is_sound { Self::Sound } else { Self::Broken }
    }
}

#[derive(Clone)]
struct Bank {
    cluster: Cluster,
    accounts: RemoteTable<u64, i64>,
    done: RemoteTable<u64, Counter>,
    /// Numbers of accounts, as some transactions have counted them.
    census: RemoteTable<u64, i64>,
}

impl Bank {
    fn open(cluster: Cluster) -> Result<Self, ClusterError> {
        let accounts = cluster.table("accounts").create_or_open()?;
        let done = cluster.table("done").create_or_open()?;
        let census = cluster.table("census").create_or_open()?;
        Ok(Self { cluster, accounts, done, census })
    }

    /// One transaction.
    fn step(&self, worker: u64, random: &mut Random, mix: Mix) -> Result<Step, ClusterError> {
        let (a, b) = (random.below(NUMBERS), random.below(NUMBERS));
        let (kind, amount) = match mix {
            Mix::All => (random.below(100), random.below(3) as i64 * 10),
            Mix::Churn => (random.between(40, 74), 0),
        };
        match kind {
            0..8 => self.cluster.collect().map(|_| Step::Sound),
            8..16 => {
                let freshness = if kind < 12 { Freshness::Any } else { Freshness::Newest };
                let rows = self.cluster.snapshot(freshness, |tx| tx.rows(&self.accounts, ..))?;
                Ok(Step::sees(rows.is_empty() || is_sound(&rows)))
            }
            16..25 => {
                let rows = self.cluster.transact(|tx| tx.rows(&self.accounts, ..))?;
                Ok(Step::sees(is_sound(&rows)))
            }
            25..40 => self.cluster.transact(|tx| {
                let count = tx.rows(&self.accounts, ..)?.len();
                tx.upsert(&self.census, a, count as i64)?;
                self.count(tx, worker, kind % 2 == 0)
            }),
            40..55 => self.cluster.transact(|tx| {
                self.open_account(tx, a, amount)?;
                self.count(tx, worker, kind % 2 == 0)
            }),
            55..75 => {
                let closed = self.cluster.transact(|tx| {
                    self.close_account(tx, a)?;
                    self.count(tx, worker, kind % 2 == 0)
                })?;
                if kind % 2 == 0 {
                    self.cluster.collect()?;
                }
                Ok(closed)
            }
            _ => self.cluster.transact(|tx| {
                self.transfer(tx, a, b, amount)?;
                self.count(tx, worker, kind % 2 == 0)
            }),
        }
    }

    /// Counts a transaction that will have committed, by a read and a write or by an addition.
    fn count(&self, tx: &mut Transaction<'_>, worker: u64, adds: bool) -> Result<Step, Abort> {
        if adds {
            tx.add(&self.done, &worker, column_of!(Counter, count), 1)?;
        } else {
            tx.update(&self.done, &worker, |done| done.count += 1)?;
        }
        Ok(Step::Counted)
    }

    /// Opens an account with money of the richest one, unless there are too many.
    fn open_account(&self, tx: &mut Transaction<'_>, number: u64, amount: i64) -> Result<(), Abort> {
        let rows = tx.rows(&self.accounts, ..)?;
        let Some((richest, _)) = rows.iter().max_by_key(|(_, balance)| *balance) else { return Ok(()) };
        if rows.len() < ACCOUNTS_MAX && !rows.iter().any(|(other, _)| *other == number) {
            if amount > 0 {
                tx.update(&self.accounts, richest, |balance| *balance -= amount)?;
            }
            tx.insert(&self.accounts, number, amount)?;
        }
        Ok(())
    }

    /// Closes an account, and gives its money to the next one.
    fn close_account(&self, tx: &mut Transaction<'_>, number: u64) -> Result<(), Abort> {
        let Some(balance) = tx.get(&self.accounts, &number)? else { return Ok(()) };
        let others = tx.rows(&self.accounts, number + 1..)?;
        if let Some((next, _)) = others.first() {
            tx.delete(&self.accounts, &number)?;
            if balance != 0 {
                tx.update(&self.accounts, next, |other| *other += balance)?;
            }
        }
        Ok(())
    }

    fn transfer(&self, tx: &mut Transaction<'_>, from: u64, to: u64, amount: i64) -> Result<(), Abort> {
        if from != to && tx.get(&self.accounts, &from)?.is_some() && tx.get(&self.accounts, &to)?.is_some() {
            tx.update(&self.accounts, &from, |balance| *balance -= amount)?;
            tx.update(&self.accounts, &to, |balance| *balance += amount)?;
        }
        Ok(())
    }
}

fn is_sound(rows: &[(u64, i64)]) -> bool {
    rows.iter().map(|(_, balance)| balance).sum::<i64>() == TOTAL && rows.len() <= ACCOUNTS_MAX
}

/// A bank whose history is recorded.
pub(crate) struct RecordedBank {
    bank: SharedBank,
    recording: Recording,
}

/// A bank of several clients.
pub(crate) struct SharedBank {
    /// The bank, as each client has it.
    banks: Vec<Bank>,
    load: Load,
}

impl SharedBank {
    /// Fills an empty cluster, of which each client has a handle.
    ///
    /// # Errors
    ///
    /// An error of the cluster.
    pub(crate) fn open(clients: &[Cluster], load: Load) -> Result<Self, String> {
        let open = || {
            let banks = clients.iter().cloned().map(Bank::open).collect::<Result<Vec<_>, _>>()?;
            let bank = &banks[0];
            bank.cluster.transact(|tx| {
                for number in 0..4 {
                    tx.insert(&bank.accounts, number, TOTAL / 4)?;
                }
                (0..load.threads).try_for_each(|worker| tx.insert(&bank.done, worker, Counter { count: 0 }))
            })?;
            Ok(Self { banks, load })
        };
        open().map_err(|error: ClusterError| error.to_string())
    }

    /// The transactions of a thread, over the client that is its turn. Returns the number of those that were acknowledged and count themselves.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn work(&self, worker: u64) -> Result<i64, String> {
        work(&self.banks[worker as usize % self.banks.len()], worker, self.load)
    }

    /// Judges what is left in the end, when each thread has done so many transactions.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn judge(&self, done: &[i64]) -> Result<(), String> {
        let bank = &self.banks[0];
        let rows = bank.cluster.transact(|tx| Ok((tx.rows(&bank.accounts, ..)?, tx.rows(&bank.done, ..)?)));
        let (accounts, counted) = rows.map_err(|error| error.to_string())?;
        if !is_sound(&accounts) {
            return Err(format!("the accounts are {accounts:?} in the end"));
        }
        let counted: Vec<i64> = counted.into_iter().map(|(_, done)| done.count).collect();
        if counted != done {
            return Err(format!(
                "{done:?} transactions were acknowledged, and {counted:?} have taken effect"
            ));
        }
        Ok(())
    }
}

impl RecordedBank {
    /// Fills an empty cluster.
    ///
    /// # Errors
    ///
    /// An error of the cluster.
    pub(crate) fn open(cluster: Cluster, load: Load) -> Result<Self, String> {
        let recording = cluster.record().map_err(|error| error.to_string())?;
        Ok(Self { bank: SharedBank::open(&[cluster], load)?, recording })
    }

    /// As [`SharedBank::work`].
    pub(crate) fn work(&self, worker: u64) -> Result<i64, String> {
        self.bank.work(worker)
    }

    /// Judges the bank and its history, when each thread has done so many transactions.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn judge(self, done: &[i64]) -> Result<(), String> {
        self.bank.judge(done)?;
        judge(self.recording)
    }
}

/// Judges a history that has ranges.
///
/// # Errors
///
/// The first thing that is wrong.
pub(crate) fn judge(recording: Recording) -> Result<(), String> {
    let history = recording.finish();
    if !history.complete {
        return Err("the outcome of a transaction is unknown".to_owned());
    }
    let report = hotrow_check::check(&history).map_err(|malformed| malformed.to_string())?;
    if !report.strictly_serializable {
        return Err(report.to_string());
    }
    if report.counts.range_reads == 0 {
        return Err("the history has no range".to_owned());
    }
    Ok(())
}

/// Runs the bank over an empty cluster, with threads.
///
/// # Errors
///
/// The first thing that is wrong.
pub(crate) fn run(cluster: Cluster, load: Load) -> Result<(), String> {
    let bank = RecordedBank::open(cluster, load)?;
    let done: Result<Vec<i64>, String> = thread::scope(|scope| {
        let bank = &bank;
        let workers: Vec<_> =
            (0..load.threads).map(|worker| scope.spawn(move || bank.work(worker))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    bank.judge(&done?)
}

/// The transactions of a thread. Returns the number of those that were acknowledged and count themselves.
fn work(bank: &Bank, worker: u64, load: Load) -> Result<i64, String> {
    let mut random = Random::stream(load.seed, worker);
    let mut done = 0;
    for _ in 0..load.transactions {
        if load.end.is_some_and(|end| now() >= end) {
            break;
        }
        match bank.step(worker, &mut random, load.mix).map_err(|error| error.to_string())? {
            Step::Sound => {}
            Step::Counted => done += 1,
            Step::Broken => return Err("a state has another sum, or too many accounts".to_owned()),
        }
    }
    Ok(done)
}

/// The bank over a faulty store.
fn run_with_faults(seed: u64, mutant: Option<Mutant>) -> Result<(), String> {
    let faults = Faults { delay: 0.3, delay_max: Duration::from_micros(200), ..Faults::wild() };
    let store: Arc<dyn Store> = Arc::new(FaultyStore::new(MemoryStore::new(), seed, faults));
    let settings =
        Settings { deadline: Duration::from_secs(120), lookup: Duration::from_secs(60), ..settings() };
    run(Cluster::with_settings(store, settings).mutated(mutant), Load::of(4, 60, seed, Mix::by_seed(seed)))
}

#[test]
fn a_bank_over_a_faulty_store_is_strictly_serializable() {
    for seed in 0..24 {
        run_with_faults(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn a_bank_over_a_store_without_faults_is_strictly_serializable() {
    let cluster = Cluster::with_settings(Arc::new(MemoryStore::new()), settings());
    run(cluster, Load::of(4, 300, 1, Mix::All)).unwrap();
}

/// Checks that a mistake is noticed.
fn assert_caught(mutant: Mutant) {
    let caught = (0..200).find_map(|seed| run_with_faults(seed, Some(mutant)).err());
    let caught = caught.unwrap_or_else(|| panic!("{mutant:?} was not noticed"));
    assert!(!caught.contains("does not answer"), "{caught}");
    println!("{mutant:?}: {}", caught.lines().take(9).collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_forgotten_range_is_caught() {
    assert_caught(Mutant::RangeForgotten);
}

#[test]
fn a_forgotten_key_is_caught() {
    assert_caught(Mutant::KeysForgotten);
}

#[test]
fn a_forgotten_fence_is_caught() {
    assert_caught(Mutant::FenceForgotten);
}

#[test]
fn deletions_without_tombstones_are_caught() {
    assert_caught(Mutant::NoTombstones);
}

#[test]
fn a_blind_repetition_is_caught() {
    assert_caught(Mutant::BlindRepetition);
}

#[test]
fn a_lookup_that_prevents_nothing_is_caught() {
    assert_caught(Mutant::LookupWithoutWrite);
}
