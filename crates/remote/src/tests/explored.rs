//! The bank on virtual cores over a faulty store, in schedules that seeds determine.
//!
//! `HOTROW_SCHEDULES=100000 cargo test --release -p hotrow-remote --features sim --lib explored` explores as many as it says.

use super::bank::{Load, Mix, RecordedBank};
use super::registry::RecordedRegistry;
use super::settings;
use crate::faults::{Faults, FaultyStore};
use crate::mutants::Mutant;
use crate::{Cluster, MemoryStore, Settings};
use hotrow_sim::{Config, Machine, Order, Simulation};
use hotrow_sync::Arc;
use hotrow_sync::clock::Duration;

const CORES: usize = 3;

/// The schedules of one test, unless the environment says another number.
const SCHEDULES: u64 = 300;

fn config(seed: u64) -> Config {
    let mut config = Config::new(Machine::named("drp").unwrap(), CORES);
    config.seed = seed;
    config.order = Order::by_seed(seed, 20_000);
    config.caches = false;
    config.steps_max = Some(5_000_000);
    config
}

/// A cluster over a faulty store.
fn cluster(seed: u64, mutant: Option<Mutant>) -> Cluster {
    let faults = Faults { delay: 0.3, delay_max: Duration::from_micros(50), ..Faults::wild() };
    let store = Arc::new(FaultyStore::new(MemoryStore::new(), seed, faults));
    let hour = Duration::from_secs(3_600);
    let settings = Settings { deadline: hour, lookup: hour, ..settings() };
    Cluster::with_settings(store, settings).mutated(mutant)
}

/// Runs work on virtual cores.
///
/// # Errors
///
/// The first thing that is wrong.
fn on_cores<T: Send>(seed: u64, work: impl Fn(u64) -> Result<T, String> + Sync) -> Result<Vec<T>, String> {
    let outcome = Simulation::new(config(seed)).unwrap().try_run(|core| work(core as u64));
    if !outcome.end.is_finished() {
        return Err(format!("{}\n{}", outcome.end, outcome.trace));
    }
    outcome.results.into_iter().map(|result| result.expect("the core has finished")).collect()
}

/// Explores one schedule of the bank.
///
/// # Errors
///
/// The first thing that is wrong.
fn explore(seed: u64, mutant: Option<Mutant>) -> Result<(), String> {
    let load = Load::of(CORES as u64, 6, seed, Mix::by_seed(seed));
    let bank = RecordedBank::open(cluster(seed, mutant), load)?;
    let done = on_cores(seed, |core| bank.work(core))?;
    bank.judge(&done)
}

/// Explores one schedule of the registry.
///
/// # Errors
///
/// The first thing that is wrong.
fn explore_registry(seed: u64, mutant: Option<Mutant>) -> Result<(), String> {
    let registry = RecordedRegistry::open(cluster(seed, mutant), seed).map_err(|error| error.to_string())?;
    on_cores(seed, |core| registry.work(core, 8))?;
    registry.judge()
}

fn schedules() -> u64 {
    std::env::var("HOTROW_SCHEDULES").map_or(SCHEDULES, |text| text.parse().unwrap())
}

#[test]
fn explored_schedules_are_strictly_serializable() {
    for seed in 0..schedules() {
        explore(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn explored_schedules_keep_indexes_complete() {
    for seed in 0..schedules() {
        explore_registry(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
}

#[test]
fn explored_schedules_catch_mutants() {
    for mutant in Mutant::ALL {
        let caught = (0..5_000).find_map(|seed| Some((seed, explore(seed, Some(mutant)).err()?)));
        let (seed, wrong) = caught.unwrap_or_else(|| panic!("{mutant:?} was not noticed"));
        println!("{mutant:?} is caught by seed {seed}: {wrong}");
    }
    for mutant in [Mutant::AbsencesForgotten, Mutant::FloorForgotten] {
        let caught = (0..5_000).any(|seed| explore_registry(seed, Some(mutant)).is_err());
        assert!(caught, "{mutant:?} was not noticed");
    }
}
