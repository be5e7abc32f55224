//! The matching engine over a mutex.

use crate::load::Scenario;
use crate::order_matching::{Side, Sums, TRADERS, Tally, Waiting, next_order};
use hotrow::sync::random::Random;
use std::collections::BinaryHeap;
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
