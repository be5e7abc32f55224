//! A matching engine for one instrument: bids and asks wait in two priority queues, best price first, then the oldest. A new order trades
//! with the best ones of the other side as long as prices agree, and what is left of it waits.
//!
//! - An order, its trades and both queues change in one transaction. Nobody sees a book whose best bid is above its best ask.
//! - Pushes commute, and do not conflict with a look at the best element unless they come before it. So orders far from the best price
//!   do not abort each other, nor those that trade.
//! - An array adds up how much each trader has bought or sold, by `add`, which reads nothing.
//!
//! Over a mutex ([`OverMutex`](rivals::OverMutex)) one order at a time is matched. That is hard to beat where each order trades, because
//! all trades meet at the best price. Over redb ([`OverRedb`](rivals::OverRedb)) a queue is a table, whose last row is its best.

use crate::Store;
use crate::load::{self, Scenario};
use crate::rivals::order_matching as rivals;
use hotrow::sync::random::Random;
use hotrow::{Abort, Database, Error, Sequence, TArray, TPriorityQueue, Transaction};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

/// Traders.
pub(crate) const TRADERS: usize = 16;

/// The side of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Buy,
    Sell,
}

/// An order that has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) side: Side,
    pub(crate) price: u64,
    pub(crate) pieces: u64,
    pub(crate) trader: usize,
}

/// An order that waits. The greater one comes first: the better price, and of equals the older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// The price of a bid; for an ask, `u64::MAX` less the price.
    pub(crate) rank: u64,
    pub(crate) number: Reverse<u64>,
    pub(crate) pieces: u64,
    pub(crate) trader: usize,
}

impl Waiting {
    pub(crate) fn new(order: &Order, number: u64, pieces: u64) -> Self {
        let rank = match order.side {
            Side::Buy => order.price,
            Side::Sell => u64::MAX - order.price,
        };
        Self { rank, number: Reverse(number), pieces, trader: order.trader }
    }

    /// True if it trades with an order of the other side.
    pub(crate) fn agrees_with(&self, order: &Order) -> bool {
        match order.side {
            Side::Buy => u64::MAX - self.rank <= order.price,
            Side::Sell => self.rank >= order.price,
        }
    }
}

/// The book of an instrument.
struct Book {
    db: Database,
    bids: TPriorityQueue<Waiting>,
    asks: TPriorityQueue<Waiting>,
    /// Pieces that each trader has bought, less those sold.
    positions: TArray<i64>,
    numbers: Sequence,
}

impl Book {
    fn open() -> Result<Self, Error> {
        let db = Database::open()?;
        let bids = TPriorityQueue::named(&db, "bids", []);
        let asks = TPriorityQueue::named(&db, "asks", []);
        let positions = TArray::named(&db, "positions", TRADERS, |_| 0);
        let numbers = Sequence::starting_at(&db, "order numbers", 1);
        Ok(Self { db, bids, asks, positions, numbers })
    }

    /// Takes an order, and returns how many pieces it has traded.
    fn submit(&self, order: &Order) -> Result<u64, Error> {
        self.db.transact(|tx| {
            let (own, other) = match order.side {
                Side::Buy => (&self.bids, &self.asks),
                Side::Sell => (&self.asks, &self.bids),
            };
            let mut left = order.pieces;
            while left > 0
                && let Some(best) = other.peek(tx)?
                && best.agrees_with(order)
            {
                other.pop(tx)?;
                let traded = left.min(best.pieces);
                if best.pieces > traded {
                    other.push(tx, Waiting { pieces: best.pieces - traded, ..best })?;
                }
                self.book_trade(tx, order, best.trader, traded)?;
                left -= traded;
            }
            if left > 0 {
                own.push(tx, Waiting::new(order, self.numbers.next(tx), left))?;
            }
            Ok(order.pieces - left)
        })
    }

    fn book_trade(
        &self,
        tx: &mut Transaction<'_>,
        order: &Order,
        other: usize,
        pieces: u64,
    ) -> Result<(), Abort> {
        let (buyer, seller) = match order.side {
            Side::Buy => (order.trader, other),
            Side::Sell => (other, order.trader),
        };
        self.positions.add(tx, buyer, pieces as i64)?;
        self.positions.add(tx, seller, -(pieces as i64))
    }

    /// Takes all orders out, best ones first, and adds everything up.
    fn close(&self) -> Result<Sums, Error> {
        let drain = |queue: &TPriorityQueue<Waiting>| {
            let best = self.db.transact(|tx| queue.peek(tx))?;
            let mut pieces = 0;
            while let Some(waiting) = self.db.transact(|tx| queue.pop(tx))? {
                pieces += waiting.pieces;
            }
            Ok::<_, Error>((pieces, best))
        };
        let ((bids, best_bid), (asks, best_ask)) = (drain(&self.bids)?, drain(&self.asks)?);
        let positions = self.db.transact(|tx| {
            (0..TRADERS).map(|trader| self.positions.get(tx, trader)).sum::<Result<i64, Abort>>()
        })?;
        Ok(Sums { bids, asks, best_bid, best_ask, positions })
    }
}

/// What a book has in the end.
pub(crate) struct Sums {
    pub(crate) bids: u64,
    pub(crate) asks: u64,
    pub(crate) best_bid: Option<Waiting>,
    pub(crate) best_ask: Option<Waiting>,
    pub(crate) positions: i64,
}

/// Counts of pieces, to check a book.
#[derive(Default)]
pub(crate) struct Tally {
    bought: AtomicU64,
    sold: AtomicU64,
    traded: AtomicU64,
}

impl Tally {
    pub(crate) fn count(&self, order: &Order, traded: u64) -> bool {
        let of_side = if order.side == Side::Buy { &self.bought } else { &self.sold };
        of_side.fetch_add(order.pieces, Ordering::Relaxed);
        self.traded.fetch_add(traded, Ordering::Relaxed);
        traded > 0
    }

    /// Checks that each piece waits or was traded, that all positions cancel out, and that the book is not crossed.
    pub(crate) fn check(&self, sums: &Sums) -> Result<String, String> {
        let [bought, sold, traded] =
            [&self.bought, &self.sold, &self.traded].map(|count| count.load(Ordering::Relaxed));
        let crossed =
            sums.best_bid.zip(sums.best_ask).is_some_and(|(bid, ask)| bid.rank >= u64::MAX - ask.rank);
        if bought != sums.bids + traded || sold != sums.asks + traded || sums.positions != 0 || crossed {
            return Err(format!("{bought} bought, {sold} sold, {traded} traded; crossed: {crossed}"));
        }
        Ok(format!("{traded} traded, {} bid and {} asked, positions cancel out", sums.bids, sums.asks))
    }
}

/// The next order: around a price of a thousand.
pub(crate) fn next_order(thread: usize, random: &mut Random) -> Order {
    let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
    let away = random.below(20);
    let price = if side == Side::Buy { 1_005 - away } else { 995 + away };
    Order { side, price, pieces: 1 + random.below(10), trader: thread % TRADERS }
}

/// The book under load.
struct UnderLoad {
    book: Book,
    tally: Tally,
}

impl Scenario for UnderLoad {
    fn one(&self, thread: usize, _: u64, random: &mut Random) -> bool {
        let order = next_order(thread, random);
        self.tally.count(&order, self.book.submit(&order).expect("an order"))
    }

    fn check(&self) -> Result<String, String> {
        self.tally.check(&self.book.close().map_err(|error| error.to_string())?)
    }

    fn conflicts(&self) -> Option<String> {
        Some(load::report(&self.book.db))
    }
}

pub(crate) const STORES: &[Store] = &[
    Store {
        name: "hotrow",
        make: || Ok(Box::new(UnderLoad { book: Book::open()?, tally: Tally::default() })),
    },
    Store { name: "mutex", make: || Ok(Box::new(rivals::OverMutex::new())) },
    Store { name: "redb", make: || Ok(Box::new(rivals::OverRedb::new()?)) },
];
