//! A registry with indexes under several threads, with faults, judged by its indexes and by the checker of histories.
//!
//! Few people share fewer names, so that inserting and renaming often find a name taken. Each has a purse, from which all take as long as there
//! is enough, and into which they put.

use crate::faults::{Faults, FaultyStore};
use crate::mutants::Mutant;
use crate::tests::settings;
use crate::{
    Cluster, ClusterError, MemoryStore, Recording, RemoteIndex, RemoteTable, RemoteUniqueIndex, Settings,
    Transaction,
};
use hotrow::{Stored, Value, column_of};
use hotrow_core::Abort;
use hotrow_sync::clock::Duration;
use hotrow_sync::random::Random;
use hotrow_sync::{Arc, thread};
use hotrow_tables::{Direction, DuplicateKey, MissingRow};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const PEOPLE: u64 = 6;
const NAMES: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Stored, Value)]
#[value(inline)]
struct Person {
    name: u64,
    #[value(group = "age")]
    age: u64,
    #[value(group = "purse")]
    purse: i64,
}

/// A registry whose history is recorded.
pub(crate) struct RecordedRegistry {
    cluster: Cluster,
    people: RemoteTable<u64, Person>,
    by_name: RemoteUniqueIndex<u64, u64, Person>,
    by_age: RemoteIndex<u64, u64, Person>,
    recording: Recording,
    seed: u64,
}

/// The error of a transaction that is not wanted any more.
#[derive(Debug, thiserror::Error)]
#[error("not wanted")]
struct NotWanted;

impl RecordedRegistry {
    pub(crate) fn open(cluster: Cluster, seed: u64) -> Result<Self, ClusterError> {
        let recording = cluster.record()?;
        let mut builder = cluster.table::<u64, Person>("people");
        let by_name = builder.unique_on("by_name", column_of!(Person, name), |_, name| name);
        let by_age = builder.secondary_on("by_age", column_of!(Person, age), |_, age| age);
        let people = builder.create_or_open()?;
        Ok(Self { cluster, people, by_name, by_age, recording, seed })
    }

    /// The transactions of a thread.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn work(&self, worker: u64, transactions: u64) -> Result<(), String> {
        let mut random = Random::stream(self.seed, worker);
        for _ in 0..transactions {
            let (kind, key, other) = (random.below(12), random.below(PEOPLE), random.below(NAMES));
            match self.step(kind, key, other) {
                Ok(true) => {}
                Ok(false) => return Err("an index and its table differ, or a purse is below zero".to_owned()),
                Err(error) if error.downcast_ref::<DuplicateKey>().is_some() => {}
                Err(error) if error.downcast_ref::<MissingRow>().is_some() => {}
                Err(error) if error.downcast_ref::<NotWanted>().is_some() => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// One transaction. False if an index and its table differ, or a purse is below zero.
    fn step(&self, kind: u64, key: u64, other: u64) -> Result<bool, ClusterError> {
        let Self { cluster, people, by_name, .. } = self;
        if kind == 0 {
            return cluster.collect().map(|_| true);
        }
        cluster.transact(|tx| match kind {
            1..4 => {
                let person = Person { name: other, age: key % 3, purse: 2 };
                tx.insert_if_absent(people, key, person).map(|_| true)
            }
            4 => tx.delete(people, &key).map(|_| true),
            5 => {
                tx.update_columns(people, &key, column_of!(Person, name), |name| *name = other).map(|()| true)
            }
            6 => tx.update_columns(people, &key, column_of!(Person, age), |age| *age = other).map(|()| true),
            7 => {
                // Takes the name from whoever has it.
                if let Some(owner) = by_name.get_key(tx, &other)? {
                    tx.delete(people, &owner)?;
                }
                tx.upsert(people, key, Person { name: other, age: other, purse: 1 }).map(|_| true)
            }
            8 => {
                if tx.subtract_if_enough(people, &key, column_of!(Person, purse), 1)? {
                    tx.add(people, &(other % PEOPLE), column_of!(Person, purse), 1)?;
                }
                Ok(true)
            }
            9 => {
                let renamed = tx.savepoint(|tx| tx.update(people, &key, |person| person.name = other))?;
                match renamed {
                    Ok(()) => Ok(true),
                    Err(_) => tx.delete(people, &key).map(|_| true),
                }
            }
            _ => self.is_complete(tx, kind == 10),
        })
    }

    /// Compares the indexes with the table, which is read before or afterwards, and looks into the purses.
    fn is_complete(&self, tx: &mut Transaction<'_>, is_first: bool) -> Result<bool, Abort> {
        let rows =
            |tx: &mut Transaction<'_>| Ok::<_, Abort>(tx.rows(&self.people, ..)?.into_iter().collect());
        let before: BTreeMap<u64, Person> = if is_first { rows(tx)? } else { BTreeMap::new() };
        let (mut named, mut aged) = (BTreeMap::new(), BTreeMap::new());
        self.by_name.scan(tx, .., Direction::Ascending, |name, key, person| {
            named.insert(*key, Person { name: *name, ..*person });
            ControlFlow::Continue(())
        })?;
        self.by_age.scan(tx, .., Direction::Descending, |age, key, person| {
            aged.insert(*key, Person { age: *age, ..*person });
            ControlFlow::Continue(())
        })?;
        let all = if is_first { before } else { rows(tx)? };
        Ok(named == all && aged == all && all.values().all(|person| person.purse >= 0))
    }

    /// Judges the registry and its history.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub(crate) fn judge(self) -> Result<(), String> {
        let is_complete = self.cluster.transact(|tx| self.is_complete(tx, true));
        if !is_complete.map_err(|error| error.to_string())? {
            return Err("an index and its table differ in the end, or a purse is below zero".to_owned());
        }
        let history = self.recording.finish();
        if !history.complete {
            return Err("the outcome of a transaction is unknown".to_owned());
        }
        let report = hotrow_check::check(&history).map_err(|malformed| malformed.to_string())?;
        if report.strictly_serializable { Ok(()) } else { Err(report.to_string()) }
    }
}

/// Runs the registry with threads over a faulty store.
fn run(seed: u64, mutant: Option<Mutant>) -> Result<(), String> {
    let faults = Faults { delay: 0.3, delay_max: Duration::from_micros(200), ..Faults::wild() };
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), seed, faults));
    let settings =
        Settings { deadline: Duration::from_secs(120), lookup: Duration::from_secs(60), ..settings() };
    let cluster = Cluster::with_settings(store, settings).mutated(mutant);
    let registry = RecordedRegistry::open(cluster, seed).map_err(|error| error.to_string())?;
    let done: Result<(), String> = thread::scope(|scope| {
        let registry = &registry;
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || registry.work(worker, 50))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap())
    });
    done?;
    registry.judge()
}

#[test]
fn a_registry_over_a_faulty_store_is_strictly_serializable() {
    for seed in 0..16 {
        run(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

/// Checks that a mistake is noticed.
fn assert_caught(mutant: Mutant) {
    let caught = (0..200).find_map(|seed| run(seed, Some(mutant)).err());
    let caught = caught.unwrap_or_else(|| panic!("{mutant:?} was not noticed"));
    assert!(!caught.contains("does not answer"), "{caught}");
    println!("{mutant:?}: {caught}");
}

#[test]
fn a_forgotten_absence_is_caught() {
    assert_caught(Mutant::AbsencesForgotten);
}

#[test]
fn a_forgotten_floor_is_caught() {
    assert_caught(Mutant::FloorForgotten);
}
