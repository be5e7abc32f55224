//! Clients: a client draws the inputs of TPC-C's transactions by the rules of revision 5.11, clauses 2.4.1, 2.5.1,
//! 2.6.1, 2.7.1 and 2.8.1.

use super::input::{
    CustomerChoice, DeliveryInput, Input, LineInput, Mix, NewOrderInput, OrderStatusInput, PaymentInput,
    StockLevelInput, TransactionKind,
};
use super::population::Scale;
use super::random::Constants;
use super::schema::{CustomerKey, DISTRICTS_PER_WAREHOUSE, DistrictKey, NOT_DELIVERED, WarehouseKey};
use hotrow::sync::random::Random;

/// Generator of one worker's transactions and their inputs.
///
/// It stands for the terminals that the worker serves, all of one warehouse.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    random: Random,
    mix: Mix,
    scale: Scale,
    constants: Constants,
    warehouses: u16,
    home: u16,
    stock_level_district: u8,
}

impl Client {
    /// Makes the client of a worker on a database of `warehouses` warehouses (0 counts as 1).
    ///
    /// The number of its home warehouse is the worker's number modulo `warehouses`, plus 1. The workers of one
    /// warehouse look at the stock of different districts (clause 2.8.1.1). `constants` must be the ones the
    /// database was loaded with.
    pub(crate) fn new(
        worker: usize,
        warehouses: u16,
        scale: Scale,
        constants: Constants,
        mix: Mix,
        seed: u64,
    ) -> Self {
        /// Base of the clients' random streams, above the population's.
        const STREAMS: u64 = 1 << 48;
        let warehouses = warehouses.max(1);
        let worker = worker as u64;
        let turn = worker / u64::from(warehouses) % u64::from(DISTRICTS_PER_WAREHOUSE);
        Self {
            random: Random::stream(seed, STREAMS + worker),
            mix,
            scale,
            constants,
            warehouses,
            home: (worker % u64::from(warehouses)) as u16 + 1,
            stock_level_district: turn as u8 + 1,
        }
    }

    /// Draws the next transaction. `now`, in microseconds, is its date if it has one. A `now` of 0, the null date,
    /// counts as 1.
    pub(crate) fn next_input(&mut self, now: i64) -> Input {
        let kind = self.mix.draw(&mut self.random);
        self.input(kind, now)
    }

    /// Draws an input for the given transaction.
    pub(crate) fn input(&mut self, kind: TransactionKind, now: i64) -> Input {
        let now = if now == NOT_DELIVERED { 1 } else { now };
        match kind {
            TransactionKind::NewOrder => Input::NewOrder(self.new_order(now)),
            TransactionKind::Payment => Input::Payment(self.payment(now)),
            TransactionKind::OrderStatus => Input::OrderStatus(self.order_status()),
            TransactionKind::Delivery => Input::Delivery(self.delivery(now)),
            TransactionKind::StockLevel => Input::StockLevel(self.stock_level()),
        }
    }

    /// Draws an input of New-Order (clause 2.4.1).
    fn new_order(&mut self, entry_date: i64) -> NewOrderInput {
        let DistrictKey { warehouse, district } = self.some_district(self.home);
        let customer = self.constants.customer(&mut self.random, self.scale.customers_per_district);
        let count = self.random.between(5, 15);
        let rolls_back = self.percent(1);
        let lines = (1..=count)
            .map(|line| LineInput {
                item: if rolls_back && line == count {
                    self.unused_item()
                } else {
                    self.constants.item(&mut self.random, self.scale.items)
                },
                supply_warehouse: if self.percent(1) { self.other_warehouse() } else { self.home },
                quantity: self.random.between(1, 10) as u16,
            })
            .collect();
        NewOrderInput {
            customer: CustomerKey { warehouse, district, customer },
            lines,
            rolls_back,
            entry_date,
        }
    }

    /// Draws an input of Payment (clause 2.5.1).
    fn payment(&mut self, date: i64) -> PaymentInput {
        let district = self.some_district(self.home);
        let customer_district = if self.percent(15) {
            let other = self.other_warehouse();
            self.some_district(other)
        } else {
            district
        };
        let customer = self.some_customer();
        let amount = self.random.between(100, 500_000) as i64; // 1.00 to 5,000.00
        PaymentInput { district, customer_district, customer, amount, date }
    }

    /// Draws an input of Order-Status (clause 2.6.1).
    fn order_status(&mut self) -> OrderStatusInput {
        OrderStatusInput { district: self.some_district(self.home), customer: self.some_customer() }
    }

    /// Draws an input of Delivery (clause 2.7.1).
    fn delivery(&mut self, delivery_date: i64) -> DeliveryInput {
        let carrier = self.random.between(1, 10) as u32;
        DeliveryInput { warehouse: WarehouseKey { warehouse: self.home }, carrier, delivery_date }
    }

    /// Draws an input of Stock-Level (clause 2.8.1).
    fn stock_level(&mut self) -> StockLevelInput {
        let district = DistrictKey { warehouse: self.home, district: self.stock_level_district };
        StockLevelInput { district, threshold: self.random.between(10, 20) as i32 }
    }

    /// Returns true in `percent` of 100 cases.
    fn percent(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn some_district(&mut self, warehouse: u16) -> DistrictKey {
        let district = self.random.between(1, u64::from(DISTRICTS_PER_WAREHOUSE)) as u8;
        DistrictKey { warehouse, district }
    }

    fn some_customer(&mut self) -> CustomerChoice {
        let customers = self.scale.customers_per_district;
        if self.percent(60) {
            CustomerChoice::LastName(self.constants.run_last_name(&mut self.random, customers))
        } else {
            CustomerChoice::Number(self.constants.customer(&mut self.random, customers))
        }
    }

    /// Draws a warehouse other than the home; returns the home if there is no other.
    fn other_warehouse(&mut self) -> u16 {
        if self.warehouses == 1 {
            return self.home;
        }
        let drawn = self.random.between(1, u64::from(self.warehouses) - 1) as u16;
        if drawn < self.home { drawn } else { drawn + 1 }
    }

    /// Returns the number of an item that does not exist.
    fn unused_item(&self) -> u32 {
        self.scale.items.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::last_name;
    use super::super::schema::DOLLAR;
    use super::*;
    use std::collections::HashSet;

    const NOW: i64 = 77;

    fn client(worker: usize, warehouses: u16) -> Client {
        let constants = Constants::seeded(5);
        Client::new(worker, warehouses, Scale::SPECIFICATION, constants, Mix::Full, 5)
    }

    /// Asserts that `count` is `percent` percent of `of`, within a quarter.
    fn assert_share(what: &str, count: usize, of: usize, percent: usize) {
        let expected = of * percent / 100;
        assert!(count.abs_diff(expected) <= expected / 4, "{what}: {count} of {of}, not {percent} %");
    }

    #[test]
    fn new_orders_keep_the_rules_of_clause_2_4_1() {
        let mut client = client(1, 4);
        let orders: Vec<NewOrderInput> = (0..20_000).map(|_| client.new_order(NOW)).collect();
        let mut line_counts = HashSet::new();
        for order in &orders {
            assert_eq!((order.customer.warehouse, order.entry_date), (2, NOW));
            assert!((1..=10).contains(&order.customer.district));
            assert!((1..=3_000).contains(&order.customer.customer));
            line_counts.insert(order.lines.len());
            let (last, before) = order.lines.split_last().unwrap();
            assert_eq!(last.item > 100_000, order.rolls_back);
            assert!(before.iter().all(|line| (1..=100_000).contains(&line.item)));
            assert!(order.lines.iter().all(|line| (1..=10).contains(&line.quantity)));
            assert!(order.lines.iter().all(|line| (1..=4).contains(&line.supply_warehouse)));
        }
        assert_eq!(line_counts, (5..=15).collect());
        assert_share("rollbacks", orders.iter().filter(|order| order.rolls_back).count(), 20_000, 1);
        let lines: Vec<LineInput> = orders.iter().flat_map(|order| order.lines.to_vec()).collect();
        let remote = lines.iter().filter(|line| line.supply_warehouse != 2).count();
        assert_share("remote lines", remote, lines.len(), 1);
    }

    #[test]
    fn payments_keep_the_rules_of_clause_2_5_1() {
        let mut client = client(0, 3);
        let payments: Vec<PaymentInput> = (0..10_000).map(|_| client.payment(NOW)).collect();
        let names: HashSet<_> = (0..1_000).map(last_name).collect();
        for payment in &payments {
            assert_eq!((payment.district.warehouse, payment.date), (1, NOW));
            assert!((DOLLAR..=5_000 * DOLLAR).contains(&payment.amount));
            let home = payment.customer_district.warehouse == 1;
            assert!(!home || payment.customer_district == payment.district);
            match payment.customer {
                CustomerChoice::LastName(name) => assert!(names.contains(&name)),
                CustomerChoice::Number(number) => assert!((1..=3_000).contains(&number)),
            }
        }
        let remote = payments.iter().filter(|payment| payment.customer_district.warehouse != 1).count();
        assert_share("remote customers", remote, 10_000, 15);
        let by_name = |payment: &&PaymentInput| matches!(payment.customer, CustomerChoice::LastName(_));
        assert_share("customers by name", payments.iter().filter(by_name).count(), 10_000, 60);
    }

    #[test]
    fn the_other_transactions_keep_the_rules_of_clauses_2_6_1_to_2_8_1() {
        let mut client = client(13, 2);
        let mut carriers = HashSet::new();
        let mut thresholds = HashSet::new();
        for _ in 0..1_000 {
            let status = client.order_status();
            assert!(status.district.warehouse == 2 && (1..=10).contains(&status.district.district));
            let delivery = client.delivery(NOW);
            assert_eq!((delivery.warehouse.warehouse, delivery.delivery_date), (2, NOW));
            carriers.insert(delivery.carrier);
            let level = client.stock_level();
            assert_eq!(level.district, DistrictKey { warehouse: 2, district: 7 }, "the same each time");
            thresholds.insert(level.threshold);
        }
        assert_eq!(carriers, (1..=10).collect());
        assert_eq!(thresholds, (10..=20).collect());
    }

    #[test]
    fn a_single_warehouse_has_no_remote_customers_and_no_remote_lines() {
        let mut client = client(7, 1);
        assert_eq!(client.home, 1);
        for _ in 0..1_000 {
            assert!(client.new_order(NOW).all_local());
            assert_eq!(client.payment(NOW).customer_district.warehouse, 1);
        }
    }

    #[test]
    fn every_other_warehouse_is_remote_equally_often() {
        let mut client = client(1, 4);
        let mut drawn = [0usize; 5];
        for _ in 0..9_000 {
            drawn[usize::from(client.other_warehouse())] += 1;
        }
        assert_eq!((drawn[0], drawn[2]), (0, 0));
        for warehouse in [1, 3, 4] {
            assert_share("remote warehouse", drawn[warehouse], 9_000, 33);
        }
    }

    #[test]
    fn a_client_depends_on_its_seed_and_its_worker() {
        let inputs = |worker| {
            let mut client = client(worker, 4);
            (0..50).map(|_| client.next_input(NOW)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(5), "two workers of one warehouse");
    }

    #[test]
    fn the_null_date_is_no_date_of_a_delivery() {
        let Input::Delivery(delivery) = client(0, 1).input(TransactionKind::Delivery, NOT_DELIVERED) else {
            panic!("another transaction than asked for");
        };
        assert_ne!(delivery.delivery_date, NOT_DELIVERED);
    }
}
