//! A rate limiter: each client has a number of requests in each interval, and so have all together.
//!
//! - The numbers that are left are counters (`TCounters`, `TCounter`). A request tests that both are at least one, which is a predicate:
//!   it depends on the answer and not on the number. Then it adds −1 to both, which commutes. So requests do not abort each
//!   other, although all change the same counter, as long as there is enough left.
//! - Both counters change together or not at all: a request that is refused for one of the two reasons takes nothing from the other.
//! - At the beginning of an interval one transaction sets all counters, beside the requests.
//!
//! Two atomics could not do so: a request that has taken one and finds the other empty would have to give the first back, and another
//! one may have been refused meanwhile. Over a mutex ([`OverMutex`](rivals::OverMutex)) it is right, too, and over redb ([`OverRedb`](rivals::OverRedb)).

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::rate_limiter as rivals;
use hotrow::sync::random::Random;
use hotrow::{Database, Error, TCounter, TCounters};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Clients.
pub(crate) const CLIENTS: usize = 64;
/// Requests of one client in an interval.
pub(crate) const OF_EACH: i64 = 1_000;
/// Requests of all clients in an interval.
pub(crate) const OF_ALL: i64 = 20_000;
/// The interval.
pub(crate) const INTERVAL: Duration = Duration::from_millis(10);

/// The limiter.
struct RateLimiter {
    db: Database,
    left_for: TCounters,
    left_for_all: TCounter,
}

impl RateLimiter {
    fn new() -> Result<Self, Error> {
        let db = Database::open()?;
        let left_for = TCounters::named(&db, "requests left, by client", [OF_EACH; CLIENTS]);
        let left_for_all = TCounter::named(&db, "requests left for all", OF_ALL);
        Ok(Self { db, left_for, left_for_all })
    }

    /// Admits a request of a client, or refuses it.
    fn admit(&self, client: usize) -> Result<bool, Error> {
        self.db.transact(|tx| {
            let admitted =
                self.left_for.is_at_least(tx, client, 1)? && self.left_for_all.is_at_least(tx, 1)?;
            if admitted {
                self.left_for.add(tx, client, -1)?;
                self.left_for_all.add(tx, -1)?;
            }
            Ok(admitted)
        })
    }

    /// Begins an interval.
    fn refill(&self) -> Result<(), Error> {
        self.db.transact(|tx| {
            (0..CLIENTS).try_for_each(|client| self.left_for.set(tx, client, OF_EACH))?;
            self.left_for_all.set(tx, OF_ALL)
        })
    }

    /// The numbers that are left: for each client, and for all.
    fn left(&self) -> Result<(Vec<i64>, i64), Error> {
        self.db.transact(|tx| {
            let each = (0..CLIENTS).map(|client| self.left_for.get(tx, client)).collect::<Result<_, _>>()?;
            Ok((each, self.left_for_all.get(tx)?))
        })
    }
}

/// Counts of what was admitted, to check the limiter.
#[derive(Default)]
pub(crate) struct Tally {
    admitted: AtomicU64,
    refills: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self, admitted: bool) -> bool {
        self.admitted.fetch_add(u64::from(admitted), Ordering::Relaxed);
        admitted
    }

    pub(crate) fn count_refill(&self) {
        self.refills.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks that no limit was passed, and that the last interval's counters agree with each other.
    pub(crate) fn check(&self, each: &[i64], all: i64) -> Result<String, String> {
        let admitted = self.admitted.load(Ordering::Relaxed);
        let intervals = 1 + self.refills.load(Ordering::Relaxed);
        let taken: i64 = each.iter().map(|left| OF_EACH - left).sum();
        if admitted > intervals * OF_ALL as u64 || each.iter().any(|left| *left < 0) || taken != OF_ALL - all
        {
            return Err(format!("{admitted} admitted in {intervals} intervals, {taken} taken, {all} left"));
        }
        Ok(format!("{admitted} admitted in {intervals} intervals, and no limit was passed"))
    }
}

/// The client of the next request: one sends half of them.
pub(crate) fn next_client(random: &mut Random) -> usize {
    if random.below(2) == 0 { 0 } else { random.below(CLIENTS as u64) as usize }
}

/// The limiter under load.
struct UnderLoad {
    limiter: RateLimiter,
    tally: Tally,
}

impl Scenario for UnderLoad {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        self.tally.count(self.limiter.admit(next_client(random)).expect("a request"))
    }

    fn beside(&self) -> Option<Duration> {
        self.tally.count_refill();
        self.limiter.refill().expect("an interval begins");
        Some(INTERVAL)
    }

    fn check(&self) -> Result<String, String> {
        let (each, all) = self.limiter.left().map_err(|error| error.to_string())?;
        self.tally.check(&each, all)
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.limiter.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || Ok(Box::new(UnderLoad { limiter: RateLimiter::new()?, tally: Tally::default() })),
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];
