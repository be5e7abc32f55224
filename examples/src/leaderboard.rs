//! A leaderboard: points by player, and the best ten in order.
//!
//! - A secondary index has the players by their points. It changes with the row, in the same transaction.
//! - The best ten are read on a snapshot: the page shows one moment, whoever scores meanwhile, and nobody who scores aborts for it.
//! - A player's rank is the number of entries before it in the index, at the same moment.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) the page stops all who score. Over redb ([`OverRedb`](rivals::OverRedb), whose commits
//! do not wait for the device here) they score one after the other.

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::leaderboard as rivals;
use hotrow::sync::random::Random;
use hotrow::{Database, Direction, Error, SecondaryIndex, Table};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Players.
pub(crate) const PLAYERS: u64 = 10_000;
/// Players on the page.
pub(crate) const BEST: usize = 10;

/// The leaderboard.
struct Leaderboard {
    db: Database,
    points: Table<u64, u64>,
    by_points: SecondaryIndex<u64, u64, u64>,
}

impl Leaderboard {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        let mut points = db.table("points").hash(PLAYERS as usize);
        let by_points = points.secondary("by points", |_, points: &u64| *points);
        let points = points.create()?;
        points.bulk_insert((0..PLAYERS).map(|player| (player, 0)))?;
        Ok(Self { db, points, by_points })
    }

    /// Adds points to a player's.
    fn score(&self, player: u64, points: u64) -> Result<u64, Error> {
        self.db.transact(|tx| {
            self.points.update(tx, &player, |sum| {
                *sum += points;
                *sum
            })
        })
    }

    /// The best players with their points, and how many have more points than `player`.
    fn page(&self, player: u64) -> Result<(Vec<(u64, u64)>, usize), Error> {
        self.db.snapshot()?.transact(|tx| {
            let best = self.by_points.collect(tx, .., Direction::Descending, BEST)?;
            let points = self.points.get(tx, &player)?.unwrap_or(0);
            let before = self.by_points.count(tx, points + 1..)?;
            Ok((best, before))
        })
    }

    /// The sum of all points, and the same by the index.
    fn sums(&self) -> Result<(u64, u64), Error> {
        self.db.snapshot_strict()?.transact(|tx| {
            let mut by_index = 0;
            self.by_points.scan_keys(tx, .., Direction::Ascending, |points, _| {
                by_index += points;
                ControlFlow::Continue(())
            })?;
            let mut by_rows = 0;
            for player in 0..PLAYERS {
                by_rows += self.points.get(tx, &player)?.unwrap_or(0);
            }
            Ok((by_rows, by_index))
        })
    }
}

/// The next thing: a page in a hundred, otherwise points for a player. One in ten plays is by one of a few.
pub(crate) enum Next {
    Page(u64),
    Score(u64, u64),
}

pub(crate) fn next(random: &mut Random) -> Next {
    let player = if random.below(10) == 0 { random.below(4) } else { random.below(PLAYERS) };
    if random.below(100) == 0 { Next::Page(player) } else { Next::Score(player, 1 + random.below(100)) }
}

/// Checks a page: the best come first.
pub(crate) fn check_page(best: &[(u64, u64)]) {
    assert!(best.len() == BEST && best.is_sorted_by(|one, other| one.1 >= other.1), "{best:?}");
}

/// Checks that all points are there.
pub(crate) fn check(scored: u64, by_rows: u64, by_index: u64) -> Result<String, String> {
    if (by_rows, by_index) == (scored, scored) {
        Ok(format!("{scored} points in rows and index"))
    } else {
        Err(format!("{scored} scored, {by_rows} in rows, {by_index} in the index"))
    }
}

/// The leaderboard under load.
struct UnderLoad {
    leaderboard: Leaderboard,
    scored: AtomicU64,
}

impl Scenario for UnderLoad {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        match next(random) {
            Next::Page(player) => check_page(&self.leaderboard.page(player).expect("a page").0),
            Next::Score(player, points) => {
                self.leaderboard.score(player, points).expect("points");
                self.scored.fetch_add(points, Ordering::Relaxed);
            }
        }
        true
    }

    fn check(&self) -> Result<String, String> {
        let (by_rows, by_index) = self.leaderboard.sums().map_err(|error| error.to_string())?;
        check(self.scored.load(Ordering::Relaxed), by_rows, by_index)
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.leaderboard.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || Ok(Box::new(UnderLoad { leaderboard: Leaderboard::open()?, scored: AtomicU64::new(0) })),
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];
