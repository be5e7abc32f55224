//! vacation: a travel agency's database (STAMP; sto §5.2 to §5.4).
//!
//! Three tables hold cars, flights and rooms; each entry is a kind of good with a price, a number of units and a number
//! of free units. Customers hold reservations. Clients run three kinds of transactions:
//!
//! - *reserve*: looks at some goods and reserves the dearest of each table for a customer;
//! - *delete customer*: cancels a customer's reservations and removes the customer;
//! - *update tables*: adds units of some goods and removes units of others.
//!
//! Numbers of units are [`Counters`](crate::store::Counters), so that a store decides how two reservations of the same good conflict.

mod agency;
mod client;

use crate::application::{Application, Failure, Statistics};
use crate::options::options;
use crate::runner::{Runner, share};
use crate::store::Store;
use agency::Agency;
use client::{Client, Work};
use hotrow_sync::random::Random;
use hotrow_sync::{Mutex, lock};

options! {
    /// Options of vacation. STAMP's letters are in brackets.
    pub struct VacationOptions {
        /// Entries of each table at the start (-r).
        relations: u32 = 16_384 in 1..=100_000_000,
        /// Transactions of all clients together (-t).
        transactions: u64 = 524_288 in 0..=1_000_000_000_000,
        /// Largest number of goods that a transaction looks at or updates (-n).
        queries: u32 = 2 in 1..=1_000,
        /// Percentage of the entries that clients use (-q); fewer entries mean more contention.
        queried_percent: u32 = 90 in 1..=100,
        /// Percentage of the transactions that reserve (-u); half of the others delete a customer.
        user_percent: u32 = 98 in 0..=100,
        /// Seed of the random numbers.
        seed: u64 = 0 in 0..=0xffff_ffff_ffff_ffff,
    }
    presets {
        "low": "STAMP's low contention for simulators." {
            relations = 16_384, transactions = 4_096, queries = 2, queried_percent = 90, user_percent = 98,
        }
        "high": "STAMP's high contention for simulators." {
            relations = 16_384, transactions = 4_096, queries = 4, queried_percent = 60, user_percent = 90,
        }
        "low-native": "STAMP's low contention; also drp, figure 8, vacation." {
            relations = 1_048_576, transactions = 4_194_304, queries = 2, queried_percent = 90,
            user_percent = 98,
        }
        "high-native": "STAMP's high contention." {
            relations = 1_048_576, transactions = 4_194_304, queries = 4, queried_percent = 60,
            user_percent = 90,
        }
        "one-percent": "Clients use one entry in a hundred: drp, figure 8, vacation-hi." {
            relations = 184_857, transactions = 12_194_304, queries = 4, queried_percent = 1,
            user_percent = 90,
        }
    }
    relations |_| Ok(());
}

/// vacation over a store.
pub struct Vacation<S: Store> {
    store: S,
    agency: Agency<S>,
    options: VacationOptions,
    units_at_start: i64,
    work: Work,
}

impl<S: Store> Application<S> for Vacation<S> {
    type Options = VacationOptions;

    fn prepare(store: S, options: &VacationOptions) -> Self {
        let mut random = Random::seeded(options.seed);
        let agency = Agency::new(&store, options.relations, &mut random);
        let units_at_start = agency.units(&mut store.worker());
        Self { store, agency, options: options.clone(), units_at_start, work: Work::default() }
    }

    fn run<R: Runner<Self>>(&mut self, runner: &R) -> Statistics {
        let workers = runner.workers();
        let total = Mutex::new(Work::default());
        runner.run(self, &|vacation, number| {
            let transactions = share(vacation.options.transactions as usize, number, workers).len();
            let mut client = Client::new(&vacation.options, number as u64);
            let mut worker = vacation.store.worker();
            for _ in 0..transactions {
                client.act::<S>(&mut worker, &vacation.agency);
            }
            lock(&total).add(client.work());
        });
        self.work = lock(&total).clone();
        self.work.statistics()
    }

    fn verify(&self) -> Result<(), Failure> {
        let mut worker = self.store.worker();
        let audit = self.agency.audit(&mut worker)?;
        self.work.check(&audit, self.options.relations, self.units_at_start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::execute;
    use crate::options::Options;
    use crate::plain::{GlobalLock, Sequential};
    use crate::runner::{OneThread, on_threads};
    use crate::store::{Counters as _, Lists as _};

    fn small() -> VacationOptions {
        VacationOptions {
            relations: 60,
            transactions: 2_000,
            queries: 4,
            queried_percent: 50,
            user_percent: 80,
            seed: 3,
        }
    }

    fn after_a_run() -> Vacation<Sequential> {
        let mut vacation = Vacation::prepare(Sequential::default(), &small());
        vacation.run(&OneThread);
        vacation
    }

    #[test]
    fn runs_on_one_thread_and_on_several() {
        let outcome = execute::<Vacation<_>, _, _>(Sequential::default(), &small(), &OneThread);
        assert_eq!(outcome.verification, Ok(()));
        assert!(outcome.statistics.counts().iter().all(|(_, count)| *count > 0), "{outcome:?}");
        let outcome = execute::<Vacation<_>, _, _>(GlobalLock::default(), &small(), &on_threads(3));
        assert_eq!(outcome.verification, Ok(()));
        assert_eq!(outcome.statistics.count("transactions"), 2_000);
    }

    #[test]
    fn the_smallest_agency_works() {
        let options = VacationOptions { relations: 1, queried_percent: 1, transactions: 100, ..small() };
        options.check().unwrap();
        let outcome = execute::<Vacation<_>, _, _>(Sequential::default(), &options, &OneThread);
        assert_eq!(outcome.verification, Ok(()));
    }

    #[test]
    fn a_lost_unit_is_found() {
        let vacation = after_a_run();
        vacation.agency.corrupt(|tables| tables[0].free.add(&mut (), 5, -1));
        assert!(vacation.verify().unwrap_err().to_string().contains("free"));
    }

    #[test]
    fn a_reservation_without_a_unit_is_found() {
        let vacation = after_a_run();
        vacation.agency.corrupt_customers(|customers| customers.insert(&mut (), 7, (1, 9), 50).map(drop));
        assert!(vacation.verify().is_err());
    }

    #[test]
    fn a_miscounted_reservation_is_found() {
        let mut vacation = after_a_run();
        vacation.work.reservations += 1;
        assert!(vacation.verify().unwrap_err().to_string().contains("reservations"));
    }
}
