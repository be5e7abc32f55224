//! The leaderboard over a mutex, and over redb.

use crate::leaderboard::{BEST, Next, PLAYERS, check, check_page, next};
use crate::load::Scenario;
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, TableDefinition};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Everything behind one mutex.
pub(crate) struct OverMutex {
    board: Mutex<Board>,
    scored: AtomicU64,
}

struct Board {
    points: Vec<u64>,
    /// Points and player.
    by_points: BTreeSet<(u64, u64)>,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        let board = Board {
            points: vec![0; PLAYERS as usize],
            by_points: (0..PLAYERS).map(|player| (0, player)).collect(),
        };
        Self { board: Mutex::new(board), scored: AtomicU64::new(0) }
    }
}

impl Scenario for OverMutex {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        let next = next(random);
        let board = &mut *self.board.lock().unwrap_or_else(PoisonError::into_inner);
        match next {
            Next::Page(player) => {
                let best = board.by_points.iter().rev().take(BEST).map(|(points, player)| (*player, *points));
                check_page(&best.collect::<Vec<_>>());
                let points = board.points[player as usize];
                std::hint::black_box(board.by_points.range((points + 1, 0)..).count());
            }
            Next::Score(player, points) => {
                let sum = &mut board.points[player as usize];
                board.by_points.remove(&(*sum, player));
                *sum += points;
                board.by_points.insert((*sum, player));
                self.scored.fetch_add(points, Ordering::Relaxed);
            }
        }
        true
    }

    fn check(&self) -> Result<String, String> {
        let board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let by_index = board.by_points.iter().map(|(points, _)| points).sum();
        check(self.scored.load(Ordering::Relaxed), board.points.iter().sum(), by_index)
    }
}

const POINTS: TableDefinition<'_, u64, u64> = TableDefinition::new("points");
const BY_POINTS: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("by points");

/// A store whose commits do not wait for the device.
pub(crate) struct OverRedb {
    store: Store,
    scored: AtomicU64,
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(POINTS, (0..PLAYERS).map(|player| (player, 0)))?;
        store.fill(BY_POINTS, (0..PLAYERS).map(|player| ((0, player), ())))?;
        Ok(Self { store, scored: AtomicU64::new(0) })
    }

    fn score(&self, player: u64, points: u64) -> Result<(), redb::Error> {
        self.store.write(|tx| {
            let (mut rows, mut index) = (tx.open_table(POINTS)?, tx.open_table(BY_POINTS)?);
            let before = rows.get(player)?.map_or(0, |points| points.value());
            index.remove((before, player))?;
            index.insert((before + points, player), ())?;
            rows.insert(player, before + points)?;
            Ok(Some(()))
        })?;
        Ok(())
    }

    fn page(&self, player: u64) -> Result<Vec<(u64, u64)>, redb::Error> {
        let tx = self.store.read()?;
        let (rows, index) = (tx.open_table(POINTS)?, tx.open_table(BY_POINTS)?);
        let mut best = Vec::new();
        for entry in index.iter()?.rev().take(BEST) {
            let (points, player) = entry?.0.value();
            best.push((player, points));
        }
        let points = rows.get(player)?.map_or(0, |points| points.value());
        std::hint::black_box(index.range((points + 1, 0)..)?.count());
        Ok(best)
    }

    fn sums(&self) -> Result<(u64, u64), redb::Error> {
        let tx = self.store.read()?;
        let (mut by_rows, mut by_index) = (0, 0);
        for entry in tx.open_table(POINTS)?.iter()? {
            by_rows += entry?.1.value();
        }
        for entry in tx.open_table(BY_POINTS)?.iter()? {
            by_index += entry?.0.value().0;
        }
        Ok((by_rows, by_index))
    }
}

impl Scenario for OverRedb {
    fn one(&self, _: usize, _: u64, random: &mut Random) -> bool {
        match next(random) {
            Next::Page(player) => check_page(&self.page(player).expect("a page")),
            Next::Score(player, points) => {
                self.score(player, points).expect("points");
                self.scored.fetch_add(points, Ordering::Relaxed);
            }
        }
        true
    }

    fn check(&self) -> Result<String, String> {
        let (by_rows, by_index) = self.sums().map_err(|error| error.to_string())?;
        check(self.scored.load(Ordering::Relaxed), by_rows, by_index)
    }
}
