//! One source of a procedure: deferred or at once, the same comes out.

use crate::support;
use crate::support::{for_each_protocol, steps};
use hotrow::sync::random::Random;
use hotrow::{
    Context, Counter, Database, Direction, Engine, Error, IndexRef, Operations, Procedure, Procedures,
    Profile, Protocol, TableRef, Worker,
};
use std::ops::ControlFlow;

/// Enough for every run here.
const HISTORY_BYTES_MAX: usize = 1 << 26;

/// The tables of a shop, as its procedures name them.
#[derive(Clone, Copy)]
struct Shop {
    /// The stock of each product.
    stock: TableRef<u64, u64>,
    /// The number of the next sale of each till.
    next: TableRef<u64, u64>,
    /// By till and number: product, and how many.
    sales: TableRef<(u64, u64), u64>,
    by_product: IndexRef<u64, (u64, u64), u64>,
    prices: TableRef<u64, u64>,
}

/// A sale is kept as `product * 1_000 + amount`.
const PRODUCT: u64 = 1_000;

impl Shop {
    fn new<P: Protocol>(database: &Database<P>) -> Self {
        let stock = database.table("stock").hash(8).rank(3);
        let stock = support::loaded(stock, (0..4).map(|product| (product, 50))).reference();
        let next = support::loaded(database.table("next").rank(1), [(0, 0), (1, 0)]).reference();
        let mut sales = database.table("sales");
        let by_product = sales.secondary("by_product", |_, sale: &u64| sale / PRODUCT);
        let sales = sales.rank(2).create().unwrap().reference();
        let by_product = by_product.reference();
        let prices = database.table("prices").hash(8).immutable();
        let prices = support::loaded(prices, (0..4).map(|product| (product, product + 1))).reference();
        Self { stock, next, sales, by_product, prices }
    }
}

/// Sells something, if there is enough of it. The key of the sale is known when the number is.
struct Sell {
    shop: Shop,
    till: u64,
    product: u64,
    amount: u64,
    /// True if it waits to see what is left, and orders more if that is little.
    restocks: bool,
}

impl Procedure for Sell {
    /// The number, whether the sale was new, and what it costs.
    type Output = ((u64, bool), u64);

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop> {
        let Self { shop, till, product, amount, restocks } = *self;
        let (price_of, stock_of, at) = (cx.value(product), cx.value(product), cx.value(till));
        let price = cx.read(shop.prices, price_of, |price| *price)?;
        let (taken, nothing) = (cx.value(amount), cx.value(()));
        let left = cx.update(shop.stock, stock_of, taken, |stock, taken| {
            *stock = stock.wrapping_sub(taken);
            *stock
        })?;
        let enough = cx.map(left.clone(), |left| left.is_some_and(|left| left < u64::MAX / 2));
        cx.require(enough)?;
        let number = cx.update(shop.next, at, nothing, |next, ()| {
            *next += 1;
            *next - 1
        })?;
        let number = cx.map(number, |number| number.unwrap_or(u64::MAX));
        let key = cx.map(number.clone(), move |number| (till, number));
        let sale = cx.value(product * PRODUCT + amount);
        let new = cx.insert_grouped(shop.sales, till, key, sale)?;
        if restocks && cx.force(left)?.is_some_and(|left| left < 20) {
            let (key, more) = (cx.value(product), cx.value(30));
            cx.commute(shop.stock, key, more, |stock, more| *stock += more)?;
        }
        let costs = cx.map(price, move |price| price.unwrap_or(0) * amount);
        let result = cx.zip(number, new);
        Ok(cx.zip(result, costs))
    }
}

/// Takes the last sale of a till back: which one it is depends on the data, so it is wild.
struct TakeBack {
    shop: Shop,
    till: u64,
}

impl Procedure for TakeBack {
    type Output = bool;

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<bool>, C::Stop> {
        let Self { shop, till } = *self;
        let range = cx.value(((till, 0)..(till + 1, 0)).into());
        let last = cx.scan(shop.sales, range, Direction::Descending, None, |last, key, sale| {
            *last = Some((*key, *sale));
            ControlFlow::Break(())
        })?;
        let Some((key, sale)) = cx.force(last)? else { return Ok(cx.value(false)) };
        let (product, amount) = (cx.value(sale / PRODUCT), cx.value(sale % PRODUCT));
        cx.update(shop.stock, product, amount, |stock, amount| *stock += amount)?;
        let key = cx.value(key);
        cx.delete(shop.sales, key)
    }
}

/// Counts how much of a product was sold, and how much is left. It says that it only reads.
struct Count {
    shop: Shop,
    product: u64,
}

impl Procedure for Count {
    type Output = (u64, Option<u64>);

    fn profile(&self) -> Profile {
        Profile::READ_ONLY
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Self::Output>, C::Stop> {
        let Self { shop, product } = *self;
        let range = cx.value((product..=product).into());
        let keys = cx.scan_index(
            shop.by_product,
            range,
            Direction::Ascending,
            Vec::new(),
            |keys: &mut Vec<_>, _, key| {
                keys.push(*key);
                ControlFlow::Continue(())
            },
        )?;
        let mut sold = cx.value(0);
        for key in cx.force(keys)? {
            let key = cx.value(key);
            let amount = cx.read(shop.sales, key, |sale| sale % PRODUCT)?;
            let both = cx.zip(sold, amount);
            sold = cx.map(both, |(sold, amount)| sold + amount.unwrap_or(0));
        }
        let product = cx.value(product);
        let stock = cx.read(shop.stock, product, |stock| *stock)?;
        Ok(cx.zip(sold, stock))
    }
}

/// How a procedure is run.
#[derive(Debug, Clone, Copy)]
enum How {
    AsTheProtocolDoes,
    Eagerly,
}

impl How {
    fn run<P: Protocol, T: Procedure>(
        self,
        database: &Database<P>,
        worker: &mut Worker<P>,
        procedure: &T,
    ) -> Result<T::Output, Error> {
        match self {
            How::AsTheProtocolDoes => database.execute_on(worker, procedure),
            How::Eagerly => database.execute_eagerly(worker, procedure),
        }
    }
}

fn shop<P: Protocol>(engine: &Engine<P>) -> (Database<P>, Shop) {
    let database = Database::on(engine);
    let shop = Shop::new(&database);
    (database, shop)
}

#[test]
fn a_procedure_gives_the_same_under_every_protocol_deferred_or_at_once() {
    for_each_protocol!(1, |P| {
        for how in [How::AsTheProtocolDoes, How::Eagerly] {
            let engine = support::engine::<P>();
            let (database, shop) = shop(&engine);
            let mut worker = engine.worker().unwrap();
            let mut sell = |till, product, amount, restocks| {
                how.run(&database, &mut worker, &Sell { shop, till, product, amount, restocks })
            };
            assert_eq!(sell(0, 1, 20, false), Ok(((0, true), 40)));
            assert_eq!(sell(1, 1, 20, false), Ok(((0, true), 40)));
            let refused = sell(0, 1, 20, false);
            assert!(matches!(refused, Err(Error::Rollback(_))), "{how:?}: {refused:?}");
            assert_eq!(sell(0, 1, 5, true), Ok(((1, true), 10)), "no number was lost");
            assert_eq!(sell(0, 1, 20, true), Ok(((2, true), 40)), "there is more now");
            assert_eq!(sell(1, 3, 50, false), Ok(((1, true), 200)));
            let refused = sell(0, 9, 1, false);
            assert!(matches!(refused, Err(Error::Rollback(_))), "no such product: {refused:?}");
            let tame = engine.statistics().count(&Counter::TAME_COMMITS);
            let deferred = crate::support::defers() && matches!(how, How::AsTheProtocolDoes);
            assert_eq!(tame, if deferred { 3 } else { 0 }, "those that forced nothing");

            let mut take_back = |till| how.run(&database, &mut worker, &TakeBack { shop, till });
            assert_eq!((take_back(0), take_back(1)), (Ok(true), Ok(true)));
            let mut count = |product| how.run(&database, &mut worker, &Count { shop, product });
            assert_eq!(
                (count(1), count(3), count(9)),
                (Ok((45, Some(65))), Ok((0, Some(50))), Ok((0, None)))
            );
            let statistics = engine.statistics();
            assert_eq!((statistics.commits, statistics.rollbacks), (10, 2));
        }
    });
}

#[test]
fn nothing_is_sold_twice_by_procedures_that_are_deferred_and_such_that_are_not() {
    const THREADS: u64 = 4;
    for_each_protocol!(THREADS as u32, |P| {
        let engine = support::engine::<P>();
        let (database, shop) = shop(&engine);
        let recording = engine.record_history(HISTORY_BYTES_MAX).unwrap();
        support::on_threads(&engine, THREADS, |thread, worker| {
            let mut random = Random::stream(29, thread);
            for _ in 0..60 {
                let how = if random.chance(0.7) { How::AsTheProtocolDoes } else { How::Eagerly };
                let (till, product, amount) = (random.below(2), random.below(4), 1 + random.below(3));
                match random.below(8) {
                    0 => {
                        how.run(&database, worker, &TakeBack { shop, till }).unwrap();
                    }
                    1 => {
                        let (sold, stock) = how.run(&database, worker, &Count { shop, product }).unwrap();
                        assert_eq!((sold + stock.unwrap_or(1_000)) % 30, 50 % 30);
                    }
                    kind => {
                        let sell = Sell { shop, till, product, amount, restocks: kind < 4 };
                        match how.run(&database, worker, &sell) {
                            Ok(((_, new), costs)) => assert!(new && costs == (product + 1) * amount),
                            Err(error) => assert!(matches!(error, Error::Rollback(_)), "{error}"),
                        }
                    }
                }
            }
        });
        steps::judge(&recording.finish());
        let mut worker = engine.worker().unwrap();
        for product in 0..4 {
            let (sold, stock) = database.execute_on(&mut worker, &Count { shop, product }).unwrap();
            assert_eq!((sold + stock.unwrap_or(1_000)) % 30, 50 % 30, "restocked by thirty");
        }
    });
}
