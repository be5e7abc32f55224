//! Initial population of TPC-C, revision 5.11, clause 4.3.3.1.
//!
//! `Population` yields the rows of one warehouse or one district at a time, in ascending order of their keys.
//! Every table of every district draws from a random stream of its own, so that the rows depend only on the seed
//! and the scale. Any number of threads may load different districts, in any order, and the database is the same.

use super::random::{Constants, ExactChoice, LAST_NAMES, data, digits, last_name, letters, zip};
use super::schema::{
    Customer, CustomerKey, DISTRICTS_PER_WAREHOUSE, DOLLAR, District, DistrictKey, History, HistoryKey, Item,
    ItemKey, NO_CARRIER, NOT_DELIVERED, NewOrder, NewOrderKey, Order, OrderKey, OrderLine, OrderLineKey,
    Stock, StockKey, Warehouse, WarehouseKey,
};
use hotrow::Text;
use hotrow::sync::random::Random;

/// Payment of each customer when the database is loaded: 10.00.
const LOADED_PAYMENT: i64 = 10 * DOLLAR;

/// Number of rows in the tables, where the specification prescribes the same number for every warehouse.
///
/// All rules of the population hold at every scale; only [`Scale::SPECIFICATION`] is TPC-C's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Rows in ITEM, and in STOCK for each warehouse; at least 1.
    pub items: u32,
    /// Rows in CUSTOMER for each district; at least 1.
    pub customers_per_district: u16,
    /// Rows in ORDER for each district. The specification has one for each customer. With more orders, the
    /// customers take turns; with fewer, some customers have none.
    pub orders_per_district: u32,
}

impl Scale {
    /// The specification's scale (clause 1.2.1 and clause 4.3.3.1).
    pub const SPECIFICATION: Self =
        Self { items: 100_000, customers_per_district: 3_000, orders_per_district: 3_000 };

    /// A hundredth of the specification's customers and orders, a thousandth of its items; for tests.
    pub const SMALL: Self = Self { items: 100, customers_per_district: 30, orders_per_district: 30 };

    /// Returns the number of a district's orders that are delivered when loaded, the oldest ones: seven tenths
    /// (2,100 of 3,000). The others are in NEW-ORDER.
    pub(crate) fn delivered_orders(&self) -> u32 {
        (u64::from(self.orders_per_district) * 7 / 10) as u32
    }
}

impl Default for Scale {
    fn default() -> Self {
        Self::SPECIFICATION
    }
}

/// Random streams of the population, one per table.
#[derive(Clone, Copy)]
enum Stream {
    Item,
    Warehouse,
    Stock,
    District,
    Customer,
    History,
    Order,
    OrderLine,
}

/// Address, as warehouses, districts and customers have it.
struct Address {
    street_1: Text<20>,
    street_2: Text<20>,
    city: Text<20>,
    state: Text<2>,
    zip: Text<10>,
}

impl Address {
    fn draw(random: &mut Random) -> Self {
        Self {
            street_1: letters(random, 10, 20),
            street_2: letters(random, 10, 20),
            city: letters(random, 10, 20),
            state: letters(random, 2, 2),
            zip: zip(random),
        }
    }
}

/// The initial population of a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Population {
    scale: Scale,
    seed: u64,
    constants: Constants,
    loaded_at: i64,
}

impl Population {
    /// Makes the population of a scale and a seed. `loaded_at`, in microseconds, is the date of every loaded row
    /// that has one. A `loaded_at` of 0 would mean null, so it counts as 1.
    pub(crate) fn new(scale: Scale, seed: u64, loaded_at: i64) -> Self {
        let loaded_at = if loaded_at == NOT_DELIVERED { 1 } else { loaded_at };
        Self { scale, seed, constants: Constants::seeded(seed), loaded_at }
    }

    /// The constants of the non-uniform distribution, which the run on this database must use too.
    pub(crate) fn constants(&self) -> Constants {
        self.constants
    }

    fn random(&self, table: Stream, warehouse: u16, district: u8) -> Random {
        Random::stream(self.seed, (table as u64) << 32 | u64::from(warehouse) << 8 | u64::from(district))
    }

    /// The rows of ITEM.
    pub(crate) fn items(&self) -> impl Iterator<Item = (ItemKey, Item)> + use<> {
        let mut random = self.random(Stream::Item, 0, 0);
        let mut original = ExactChoice::tenth_of(u64::from(self.scale.items));
        (1..=self.scale.items).map(move |item| {
            let random = &mut random;
            let row = Item {
                image: random.between(1, 10_000) as u32,
                name: letters(random, 14, 24),
                // 1.00 to 100.00.
                price: random.between(100, 10_000) as i64,
                data: {
                    let original = original.takes_next(random);
                    data(random, original)
                },
            };
            (ItemKey { item }, row)
        })
    }

    /// The row of WAREHOUSE.
    pub(crate) fn warehouse(&self, warehouse: u16) -> (WarehouseKey, Warehouse) {
        let random = &mut self.random(Stream::Warehouse, warehouse, 0);
        let name = letters(random, 6, 10);
        let Address { street_1, street_2, city, state, zip } = Address::draw(random);
        let tax = random.between(0, 2_000) as i32;
        let year_to_date = i64::from(DISTRICTS_PER_WAREHOUSE) * self.paid_to_district();
        (
            WarehouseKey { warehouse },
            Warehouse { name, street_1, street_2, city, state, zip, tax, year_to_date },
        )
    }

    /// Returns the sum that all customers of a district have paid: 30,000.00 at the specification's scale.
    fn paid_to_district(&self) -> i64 {
        i64::from(self.scale.customers_per_district) * LOADED_PAYMENT
    }

    /// The rows of STOCK of a warehouse.
    pub(crate) fn stock(&self, warehouse: u16) -> impl Iterator<Item = (StockKey, Stock)> + use<> {
        let mut random = self.random(Stream::Stock, warehouse, 0);
        let mut original = ExactChoice::tenth_of(u64::from(self.scale.items));
        (1..=self.scale.items).map(move |item| {
            let random = &mut random;
            let row = Stock {
                quantity: random.between(10, 100) as i32,
                order_count: 0,
                remote_count: 0,
                year_to_date: 0,
                district_info: std::array::from_fn(|_| letters(random, 24, 24)),
                data: {
                    let original = original.takes_next(random);
                    data(random, original)
                },
            };
            (StockKey { warehouse, item }, row)
        })
    }

    /// The rows of DISTRICT of a warehouse.
    pub(crate) fn districts(&self, warehouse: u16) -> impl Iterator<Item = (DistrictKey, District)> + use<> {
        let population = *self;
        (1..=DISTRICTS_PER_WAREHOUSE).map(move |district| {
            let random = &mut population.random(Stream::District, warehouse, district);
            let name = letters(random, 6, 10);
            let Address { street_1, street_2, city, state, zip } = Address::draw(random);
            let row = District {
                name,
                street_1,
                street_2,
                city,
                state,
                zip,
                tax: random.between(0, 2_000) as i32,
                year_to_date: population.paid_to_district(),
                next_order: population.scale.orders_per_district.saturating_add(1),
            };
            (DistrictKey { warehouse, district }, row)
        })
    }

    /// The rows of CUSTOMER of a district. Each of the first thousand customers has its own last name; the others'
    /// names are drawn with the non-uniform distribution.
    pub(crate) fn customers(
        &self,
        district: DistrictKey,
    ) -> impl Iterator<Item = (CustomerKey, Customer)> + use<> {
        let DistrictKey { warehouse, district } = district;
        let Self { constants, loaded_at, .. } = *self;
        let customers = self.scale.customers_per_district;
        let mut random = self.random(Stream::Customer, warehouse, district);
        let mut bad_credit = ExactChoice::tenth_of(u64::from(customers));
        (1..=customers).map(move |customer| {
            let random = &mut random;
            let last = if customer <= LAST_NAMES {
                last_name(u64::from(customer - 1))
            } else {
                constants.load_last_name(random, customers)
            };
            let Address { street_1, street_2, city, state, zip } = Address::draw(random);
            let row = Customer {
                first: letters(random, 8, 16),
                middle: Text::prefix_of("OE"),
                last,
                street_1,
                street_2,
                city,
                state,
                zip,
                phone: digits(random, 16),
                since: loaded_at,
                credit: Text::prefix_of(if bad_credit.takes_next(random) { "BC" } else { "GC" }),
                credit_limit: 50_000 * DOLLAR,
                discount: random.between(0, 5_000) as i32,
                balance: -LOADED_PAYMENT,
                year_to_date_payment: LOADED_PAYMENT,
                payment_count: 1,
                delivery_count: 0,
                data: letters(random, 300, 500),
            };
            (CustomerKey { warehouse, district, customer }, row)
        })
    }

    /// The rows of HISTORY of a district: one payment for each customer.
    pub(crate) fn history(
        &self,
        district: DistrictKey,
    ) -> impl Iterator<Item = (HistoryKey, History)> + use<> {
        let DistrictKey { warehouse, district } = district;
        let loaded_at = self.loaded_at;
        let mut random = self.random(Stream::History, warehouse, district);
        (1..=self.scale.customers_per_district).map(move |customer| {
            let row = History {
                customer_warehouse: warehouse,
                customer,
                warehouse,
                customer_district: district,
                district,
                date: loaded_at,
                amount: LOADED_PAYMENT,
                data: letters(&mut random, 12, 24),
            };
            (HistoryKey::loaded(&CustomerKey { warehouse, district, customer }), row)
        })
    }

    /// The rows of ORDER of a district. The customers follow a random permutation.
    pub(crate) fn orders(&self, district: DistrictKey) -> impl Iterator<Item = (OrderKey, Order)> + use<> {
        let DistrictKey { warehouse, district } = district;
        let Self { scale, loaded_at, .. } = *self;
        let mut random = self.random(Stream::Order, warehouse, district);
        let mut customers: Vec<u16> = (1..=scale.customers_per_district).collect();
        random.shuffle(&mut customers);
        (1..=scale.orders_per_district).zip(customers.into_iter().cycle()).map(move |(order, customer)| {
            let carrier = random.between(1, 10) as u32;
            let row = Order {
                entry_date: loaded_at,
                carrier: if order <= scale.delivered_orders() { carrier } else { NO_CARRIER },
                customer,
                line_count: random.between(5, 15) as u8,
                all_local: 1,
            };
            (OrderKey { warehouse, district, order }, row)
        })
    }

    /// The rows of ORDER-LINE of a district.
    pub(crate) fn order_lines(
        &self,
        district: DistrictKey,
    ) -> impl Iterator<Item = (OrderLineKey, OrderLine)> + use<> {
        let items = self.scale.items;
        let mut random = self.random(Stream::OrderLine, district.warehouse, district.district);
        self.orders(district).flat_map(move |(OrderKey { warehouse, district, order }, row)| {
            let mut line_of_order = |line| {
                let item = random.between(1, u64::from(items)) as u32;
                // 0.01 to 9,999.99.
                let undelivered_amount = random.between(1, 999_999) as i64;
                let (delivery_date, amount) = if row.is_delivered() {
                    (row.entry_date, 0)
                } else {
                    (NOT_DELIVERED, undelivered_amount)
                };
                let row = OrderLine {
                    item,
                    supply_warehouse: warehouse,
                    quantity: 5,
                    delivery_date,
                    amount,
                    district_info: letters(&mut random, 24, 24),
                };
                (OrderLineKey { warehouse, district, order, line }, row)
            };
            (1..=row.line_count).map(&mut line_of_order).collect::<Vec<_>>()
        })
    }

    /// The rows of NEW-ORDER of a district: its latest orders, which are not delivered.
    pub(crate) fn new_orders(
        &self,
        district: DistrictKey,
    ) -> impl Iterator<Item = (NewOrderKey, NewOrder)> + use<> {
        let DistrictKey { warehouse, district } = district;
        (self.scale.delivered_orders() + 1..=self.scale.orders_per_district)
            .map(move |order| (NewOrderKey { warehouse, district, order }, NewOrder {}))
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::ORIGINAL;
    use super::*;
    use std::collections::HashSet;

    const DISTRICT: DistrictKey = DistrictKey { warehouse: 3, district: 4 };

    fn small() -> Population {
        Population::new(Scale::SMALL, 11, 1_000)
    }

    /// A population of one district at the specification's scale.
    fn full() -> Population {
        Population::new(Scale::SPECIFICATION, 11, 1_000)
    }

    fn assert_ascending<K: Ord + Copy, R>(rows: impl Iterator<Item = (K, R)>, count: usize) {
        let keys: Vec<K> = rows.map(|(key, _)| key).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn every_table_has_its_rows_in_ascending_order_of_keys() {
        let population = small();
        assert_ascending(population.items(), 100);
        assert_ascending(population.stock(3), 100);
        assert_ascending(population.districts(3), 10);
        assert_ascending(population.customers(DISTRICT), 30);
        assert_ascending(population.history(DISTRICT), 30);
        assert_ascending(population.orders(DISTRICT), 30);
        assert_ascending(population.new_orders(DISTRICT), 9);
        let lines: usize = population.orders(DISTRICT).map(|(_, order)| usize::from(order.line_count)).sum();
        assert_ascending(population.order_lines(DISTRICT), lines);
    }

    #[test]
    fn a_district_depends_on_the_seed_and_on_nothing_else() {
        let rows = |population: Population, district| {
            let customers: Vec<_> = population.customers(district).map(|(_, row)| row).collect();
            let lines: Vec<_> = population.order_lines(district).map(|(_, row)| row).collect();
            (customers, lines)
        };
        let first = rows(small(), DISTRICT);
        assert_eq!(first, rows(small(), DISTRICT));
        assert_ne!(first, rows(small(), DistrictKey { district: 5, ..DISTRICT }));
        assert_ne!(first, rows(Population::new(Scale::SMALL, 12, 1_000), DISTRICT));
    }

    #[test]
    fn customers_are_those_of_the_specification() {
        let mut names = HashSet::new();
        let mut bad = 0;
        for (key, row) in full().customers(DISTRICT) {
            if key.customer <= 1_000 {
                assert_eq!(row.last, last_name(u64::from(key.customer) - 1));
            }
            names.insert(row.last);
            bad += u32::from(row.has_bad_credit());
            assert!(row.has_bad_credit() || row.credit == "GC");
            assert!((8..=16).contains(&row.first.len()) && row.middle == "OE");
            assert!((300..=500).contains(&row.data.len()));
            assert!((0..=5_000).contains(&row.discount));
            assert_eq!((row.balance, row.year_to_date_payment), (-10 * DOLLAR, 10 * DOLLAR));
        }
        assert_eq!((names.len(), bad), (1_000, 300));
    }

    #[test]
    fn orders_visit_each_customer_once_and_seven_tenths_are_delivered() {
        let population = full();
        let mut customers = HashSet::new();
        for (key, row) in population.orders(DISTRICT) {
            assert!(customers.insert(row.customer));
            assert_eq!(row.is_delivered(), key.order < 2_101);
            assert!(row.carrier <= 10 && (5..=15).contains(&row.line_count) && row.all_local == 1);
        }
        assert_eq!(customers.len(), 3_000);
        let waiting: Vec<u32> = population.new_orders(DISTRICT).map(|(key, _)| key.order).collect();
        assert_eq!(waiting, (2_101..=3_000).collect::<Vec<_>>());
        for (key, row) in population.order_lines(DISTRICT) {
            assert_eq!(row.is_delivered(), key.order < 2_101);
            assert_eq!(row.amount == 0, key.order < 2_101);
            assert!((1..=100_000).contains(&row.item) && row.quantity == 5);
            assert_eq!((row.supply_warehouse, row.district_info.len()), (3, 24));
        }
    }

    #[test]
    fn a_tenth_of_items_and_stock_is_original() {
        let population = small();
        let original = |data: Text<52>| data.as_str().contains(ORIGINAL);
        assert_eq!(population.items().filter(|(_, row)| original(row.data)).count(), 10);
        assert_eq!(population.stock(1).filter(|(_, row)| original(row.data)).count(), 10);
        for (_, row) in population.items() {
            assert!((DOLLAR..=100 * DOLLAR).contains(&row.price) && (14..=24).contains(&row.name.len()));
        }
        assert!(population.stock(1).all(|(_, row)| (10..=100).contains(&row.quantity)));
    }

    #[test]
    fn the_balances_of_warehouses_and_districts_are_what_their_customers_paid() {
        let (_, warehouse) = full().warehouse(1);
        assert_eq!(warehouse.year_to_date, 300_000 * DOLLAR);
        for (_, district) in full().districts(1) {
            assert_eq!((district.year_to_date, district.next_order), (30_000 * DOLLAR, 3_001));
            assert!((0..=2_000).contains(&district.tax));
        }
    }

    #[test]
    fn more_orders_than_customers_make_the_customers_take_turns() {
        let scale = Scale { items: 10, customers_per_district: 3, orders_per_district: 7 };
        let population = Population::new(scale, 1, 0);
        let customers: Vec<u16> = population.orders(DISTRICT).map(|(_, row)| row.customer).collect();
        assert_eq!(customers.len(), 7);
        assert_eq!(customers[..3], customers[3..6]);
        assert!(
            population
                .order_lines(DISTRICT)
                .filter(|(key, _)| key.order <= 4)
                .all(|(_, row)| row.is_delivered())
        );
    }
}
