//! The matching engine over a mutex, and over redb.

use crate::load::Scenario;
use crate::order_matching::{Order, Side, Sums, TRADERS, Tally, Waiting, next_order};
use crate::rivals::store::Store;
use hotrow::sync::random::Random;
use redb::{ReadableTable, TableDefinition};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Everything behind one mutex.
pub(crate) struct OverMutex {
    book: Mutex<Book>,
    tally: Tally,
}

#[derive(Default)]
struct Book {
    bids: BinaryHeap<Waiting>,
    asks: BinaryHeap<Waiting>,
    positions: [i64; TRADERS],
    next_number: u64,
}

impl OverMutex {
    pub(crate) fn new() -> Self {
        Self { book: Mutex::new(Book::default()), tally: Tally::default() }
    }
}

impl Scenario for OverMutex {
    fn one(&self, thread: usize, _: u64, random: &mut Random) -> bool {
        let order = next_order(thread, random);
        let book = &mut *self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, other, sign) = match order.side {
            Side::Buy => (&mut book.bids, &mut book.asks, 1),
            Side::Sell => (&mut book.asks, &mut book.bids, -1),
        };
        let mut left = order.pieces;
        while left > 0
            && let Some(best) = other.peek().copied()
            && best.agrees_with(&order)
        {
            other.pop();
            let traded = left.min(best.pieces);
            if best.pieces > traded {
                other.push(Waiting { pieces: best.pieces - traded, ..best });
            }
            book.positions[order.trader] += sign * traded as i64;
            book.positions[best.trader] -= sign * traded as i64;
            left -= traded;
        }
        if left > 0 {
            book.next_number += 1;
            own.push(Waiting::new(&order, book.next_number, left));
        }
        self.tally.count(&order, order.pieces - left)
    }

    fn check(&self) -> Result<String, String> {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        let pieces = |heap: &BinaryHeap<Waiting>| heap.iter().map(|waiting| waiting.pieces).sum();
        self.tally.check(&Sums {
            bids: pieces(&book.bids),
            asks: pieces(&book.asks),
            best_bid: book.bids.peek().copied(),
            best_ask: book.asks.peek().copied(),
            positions: book.positions.iter().sum(),
        })
    }
}

/// Pieces and trader by rank and number. The last one is the best; numbers are reversed, so that of equals it is the oldest.
type Orders = TableDefinition<'static, (u64, u64), (u64, u64)>;
const BIDS: Orders = TableDefinition::new("bids");
const ASKS: Orders = TableDefinition::new("asks");
const POSITIONS: TableDefinition<'_, u64, i64> = TableDefinition::new("positions");

/// A store whose commits do not wait for the device.
pub(crate) struct OverRedb {
    store: Store,
    next_number: AtomicU64,
    tally: Tally,
}

fn waiting((rank, reversed): (u64, u64), (pieces, trader): (u64, u64)) -> Waiting {
    Waiting { rank, number: Reverse(u64::MAX - reversed), pieces, trader: trader as usize }
}

fn row(waiting: &Waiting) -> ((u64, u64), (u64, u64)) {
    ((waiting.rank, u64::MAX - waiting.number.0), (waiting.pieces, waiting.trader as u64))
}

impl OverRedb {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let store = Store::unsynced()?;
        store.fill(BIDS, [])?;
        store.fill(ASKS, [])?;
        store.fill(POSITIONS, (0..TRADERS as u64).map(|trader| (trader, 0)))?;
        Ok(Self { store, next_number: AtomicU64::new(1), tally: Tally::default() })
    }

    fn submit(&self, order: &Order) -> Result<u64, redb::Error> {
        let (own, other, sign) = match order.side {
            Side::Buy => (BIDS, ASKS, 1),
            Side::Sell => (ASKS, BIDS, -1),
        };
        let traded = self.store.write(|tx| {
            let (mut own, mut other) = (tx.open_table(own)?, tx.open_table(other)?);
            let mut positions = tx.open_table(POSITIONS)?;
            let mut add = |trader: usize, pieces: i64| {
                let before = positions.get(trader as u64)?.map_or(0, |position| position.value());
                positions.insert(trader as u64, before + pieces).map(drop)
            };
            let mut left = order.pieces;
            while left > 0 {
                let best = other.last()?.map(|(key, value)| waiting(key.value(), value.value()));
                let Some(best) = best.filter(|best| best.agrees_with(order)) else { break };
                let traded = left.min(best.pieces);
                let (key, _) = row(&best);
                other.remove(key)?;
                if best.pieces > traded {
                    let (key, value) = row(&Waiting { pieces: best.pieces - traded, ..best });
                    other.insert(key, value)?;
                }
                add(order.trader, sign * traded as i64)?;
                add(best.trader, -sign * traded as i64)?;
                left -= traded;
            }
            if left > 0 {
                let number = self.next_number.fetch_add(1, Ordering::Relaxed);
                let (key, value) = row(&Waiting::new(order, number, left));
                own.insert(key, value)?;
            }
            Ok(Some(order.pieces - left))
        })?;
        Ok(traded.unwrap_or(0))
    }

    fn sums(&self) -> Result<Sums, redb::Error> {
        let tx = self.store.read()?;
        let of = |orders: Orders| {
            let orders = tx.open_table(orders)?;
            let mut pieces = 0;
            for entry in orders.iter()? {
                pieces += entry?.1.value().0;
            }
            let best = orders.last()?.map(|(key, value)| waiting(key.value(), value.value()));
            Ok::<_, redb::Error>((pieces, best))
        };
        let ((bids, best_bid), (asks, best_ask)) = (of(BIDS)?, of(ASKS)?);
        let mut positions = 0;
        for entry in tx.open_table(POSITIONS)?.iter()? {
            positions += entry?.1.value();
        }
        Ok(Sums { bids, asks, best_bid, best_ask, positions })
    }
}

impl Scenario for OverRedb {
    fn one(&self, thread: usize, _: u64, random: &mut Random) -> bool {
        let order = next_order(thread, random);
        self.tally.count(&order, self.submit(&order).expect("an order"))
    }

    fn check(&self) -> Result<String, String> {
        self.tally.check(&self.sums().map_err(|error| error.to_string())?)
    }
}
