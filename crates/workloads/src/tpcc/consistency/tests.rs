use super::super::population::Population;
use super::super::schema::{NO_CARRIER, NOT_DELIVERED};
use super::*;

const WAREHOUSES: u16 = 2;

/// A database as plain maps that tests mutate.
struct Database {
    warehouses: BTreeMap<WarehouseKey, Warehouse>,
    districts: BTreeMap<DistrictKey, District>,
    customers: BTreeMap<CustomerKey, Customer>,
    history: BTreeMap<HistoryKey, History>,
    new_orders: BTreeMap<NewOrderKey, NewOrder>,
    orders: BTreeMap<OrderKey, Order>,
    order_lines: BTreeMap<OrderLineKey, OrderLine>,
    delivered: DeliveredCounts,
}

impl Database {
    fn loaded() -> Self {
        let population = Population::new(Scale::SMALL, 3, 1_000);
        let warehouses = 1..=WAREHOUSES;
        let districts: BTreeMap<_, _> = warehouses.clone().flat_map(|w| population.districts(w)).collect();
        let keys = || districts.keys().copied();
        Self {
            warehouses: warehouses.map(|warehouse| population.warehouse(warehouse)).collect(),
            customers: keys().flat_map(|key| population.customers(key)).collect(),
            history: keys().flat_map(|key| population.history(key)).collect(),
            new_orders: keys().flat_map(|key| population.new_orders(key)).collect(),
            orders: keys().flat_map(|key| population.orders(key)).collect(),
            order_lines: keys().flat_map(|key| population.order_lines(key)).collect(),
            districts,
            delivered: DeliveredCounts::new(),
        }
    }

    /// Returns the verdicts. The rows go in from the last to the first, because the audit must not depend on their
    /// order.
    fn verdicts(&self) -> Vec<(String, Result<(), String>)> {
        let mut audit = Audit::new(Scale::SMALL);
        self.order_lines.iter().rev().for_each(|(key, row)| audit.order_line(key, row));
        self.orders.iter().rev().for_each(|(key, row)| audit.order(key, row));
        self.new_orders.iter().rev().for_each(|(key, row)| audit.new_order(key, row));
        self.history.iter().rev().for_each(|(key, row)| audit.history(key, row));
        self.customers.iter().rev().for_each(|(key, row)| audit.customer(key, row));
        self.districts.iter().rev().for_each(|(key, row)| audit.district(key, row));
        self.warehouses.iter().rev().for_each(|(key, row)| audit.warehouse(key, row));
        audit.finish(&self.delivered)
    }

    /// Returns the numbers of the conditions that fail.
    fn failures(&self) -> Vec<usize> {
        let verdicts = self.verdicts();
        (1..=12).filter(|condition| verdicts[condition - 1].1.is_err()).collect()
    }

    /// Asserts that exactly these conditions fail, and that the text of the first failure has all these parts.
    fn assert_fails(&self, conditions: &[usize], text: &[&str]) {
        let verdicts = self.verdicts();
        assert_eq!(self.failures(), conditions, "{verdicts:#?}");
        let error = verdicts[conditions[0] - 1].1.as_ref().unwrap_err();
        for part in text {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    }

    /// Delivers the oldest order of a district, as the Delivery transaction does.
    fn deliver(&mut self, district: DistrictKey) {
        let (key, _) = self.new_orders.range(NewOrderKey::of_district(&district)).next().unwrap();
        let order = OrderKey { warehouse: key.warehouse, district: key.district, order: key.order };
        let key = *key;
        self.new_orders.remove(&key);
        let row = self.orders.get_mut(&order).unwrap();
        row.carrier = 7;
        let mut amount = 0;
        for (_, line) in self.order_lines.range_mut(OrderLineKey::of_order(&order)) {
            line.delivery_date = 2_000;
            amount += line.amount;
        }
        let customer = CustomerKey {
            warehouse: district.warehouse,
            district: district.district,
            customer: row.customer,
        };
        self.customers.get_mut(&customer).unwrap().balance += amount;
        self.delivered.count(district);
    }

    /// Makes a payment, as the Payment transaction does.
    fn pay(&mut self, district: DistrictKey, customer: CustomerKey, amount: i64) {
        let warehouse = WarehouseKey { warehouse: district.warehouse };
        self.warehouses.get_mut(&warehouse).unwrap().year_to_date += amount;
        self.districts.get_mut(&district).unwrap().year_to_date += amount;
        let row = self.customers.get_mut(&customer).unwrap();
        row.balance -= amount;
        row.year_to_date_payment += amount;
        let history = History {
            customer_warehouse: customer.warehouse,
            customer: customer.customer,
            warehouse: district.warehouse,
            customer_district: customer.district,
            district: district.district,
            date: 2_000,
            amount,
            data: Default::default(),
        };
        let sequence = self.history.len() as u32;
        self.history.insert(HistoryKey { worker: 0, sequence }, history);
    }
}

const DISTRICT: DistrictKey = DistrictKey { warehouse: 2, district: 3 };
const CUSTOMER: CustomerKey = CustomerKey { warehouse: 2, district: 3, customer: 4 };

fn order(order: u32) -> OrderKey {
    OrderKey { warehouse: 2, district: 3, order }
}

fn new_order(order: u32) -> NewOrderKey {
    NewOrderKey { warehouse: 2, district: 3, order }
}

#[test]
fn the_initial_population_passes_all_twelve_conditions() {
    let verdicts = Database::loaded().verdicts();
    assert_eq!(verdicts.len(), 12);
    for (number, (name, verdict)) in (1..).zip(&verdicts) {
        assert!(name.starts_with(&format!("3.3.2.{number} ")));
        assert_eq!(*verdict, Ok(()), "{name}");
    }
}

#[test]
fn payments_and_deliveries_keep_all_twelve_conditions() {
    let mut database = Database::loaded();
    database.pay(DISTRICT, CUSTOMER, 1_234);
    database.pay(DistrictKey { warehouse: 1, district: 10 }, CUSTOMER, 99);
    for _ in 0..9 {
        database.deliver(DISTRICT);
    }
    assert_eq!(database.delivered.of(&DISTRICT), 9);
    assert!(!database.new_orders.contains_key(&new_order(30)), "all orders of the district are delivered");
    assert_eq!(database.failures(), [0usize; 0]);
}

#[test]
fn condition_1_a_warehouse_balance_beside_the_sum_of_its_districts() {
    let mut database = Database::loaded();
    database.districts.get_mut(&DISTRICT).unwrap().year_to_date += 5;
    database.assert_fails(&[1, 9], &["warehouse 2:", "should be 3000.05", "is 3000.00"]);
}

#[test]
fn condition_2_a_lost_increment_of_the_next_order_number() {
    let mut database = Database::loaded();
    database.districts.get_mut(&DISTRICT).unwrap().next_order -= 1;
    database.assert_fails(&[2], &["warehouse 2, district 3:", "should be 31", "they are 30 and 30"]);
}

#[test]
fn condition_3_a_gap_among_the_new_orders() {
    let mut database = Database::loaded();
    database.new_orders.remove(&new_order(25));
    database.assert_fails(&[3, 5, 11], &["warehouse 2, district 3:", "should have 9 rows, but has 8"]);
}

#[test]
fn condition_4_a_district_with_a_line_too_few() {
    let mut database = Database::loaded();
    let line = OrderLineKey { warehouse: 2, district: 3, order: 7, line: 5 };
    let lines = database.order_lines.range(OrderLineKey::of_orders(&DISTRICT, 0..=u32::MAX)).count();
    database.order_lines.remove(&line);
    let expected = format!("should have {lines} rows, the sum of O_OL_CNT, but has {}", lines - 1);
    database.assert_fails(&[4, 6], &["warehouse 2, district 3:", &expected]);
}

#[test]
fn condition_5_a_carrier_of_an_order_that_waits() {
    let mut database = Database::loaded();
    // The order has no lines; otherwise condition 7 would fail as well.
    database.order_lines.retain(|key, _| (key.warehouse, key.district, key.order) != (2, 3, 28));
    database.orders.get_mut(&order(28)).unwrap().line_count = 0;
    database.orders.get_mut(&order(28)).unwrap().carrier = 9;
    database.assert_fails(&[5], &["warehouse 2, district 3, order 28:", "should be null", "is 9"]);
    database.orders.get_mut(&order(28)).unwrap().carrier = NO_CARRIER;
    assert_eq!(database.failures(), [0usize; 0]);
    database.orders.get_mut(&order(2)).unwrap().carrier = NO_CARRIER;
    database.assert_fails(&[5, 7], &["district 3, order 2:", "is null, but the order is not in NEW-ORDER"]);
}

#[test]
fn condition_6_two_orders_that_swapped_a_line() {
    let mut database = Database::loaded();
    let line = OrderLineKey { warehouse: 2, district: 3, order: 7, line: 5 };
    let row = database.order_lines.remove(&line).unwrap();
    database.order_lines.insert(OrderLineKey { order: 8, line: 16, ..line }, row);
    let count = database.orders[&order(7)].line_count;
    let expected = format!("should have {count} rows of it, by O_OL_CNT, but has {}", count - 1);
    database
        .assert_fails(&[6], &["warehouse 2, district 3, order 7:", &expected, "the first of 2 such places"]);
}

#[test]
fn condition_7_a_line_that_was_not_delivered_with_its_order() {
    let mut database = Database::loaded();
    let line = OrderLineKey { warehouse: 2, district: 3, order: 7, line: 5 };
    // The line's amount is zero, because it was delivered when loaded: no balance changes.
    database.order_lines.get_mut(&line).unwrap().delivery_date = NOT_DELIVERED;
    let count = database.orders[&order(7)].line_count;
    let found = format!("is set in {}", count - 1);
    database.assert_fails(&[7], &["warehouse 2, district 3, order 7:", &found]);
}

#[test]
fn condition_8_a_payment_lost_by_its_warehouse() {
    let mut database = Database::loaded();
    database.warehouses.get_mut(&WarehouseKey { warehouse: 2 }).unwrap().year_to_date -= 5;
    database.districts.get_mut(&DISTRICT).unwrap().year_to_date -= 5;
    let verdicts = database.verdicts();
    assert_eq!(verdicts[0].1, Ok(()), "the warehouse still agrees with its districts");
    assert_eq!(database.failures(), [8, 9]);
    let error = verdicts[7].1.as_ref().unwrap_err();
    assert!(error.contains("warehouse 2:") && error.contains("should be 3000.00"), "{error}");
    assert!(error.contains("is 2999.95"), "{error}");
}

#[test]
fn condition_9_a_payment_noted_at_another_district() {
    let mut database = Database::loaded();
    database.districts.get_mut(&DISTRICT).unwrap().year_to_date += 5;
    database.districts.get_mut(&DistrictKey { district: 4, ..DISTRICT }).unwrap().year_to_date -= 5;
    database.assert_fails(&[9], &["warehouse 2, district 3:", "should be 300.00", "is 300.05", "of 2 such"]);
}

#[test]
fn condition_10_a_balance_that_does_not_match_the_payments() {
    let mut database = Database::loaded();
    let row = database.customers.get_mut(&CUSTOMER).unwrap();
    row.balance -= 5;
    row.year_to_date_payment += 5;
    let place = "warehouse 2, district 3, customer 4:";
    database.assert_fails(&[10], &[place, "should be -10.00", "0.00 delivered less 10.00 paid", "is -10.05"]);
}

#[test]
fn condition_11_a_delivery_that_nobody_counted() {
    let mut database = Database::loaded();
    database.deliver(DISTRICT);
    database.delivered = DeliveredCounts::new();
    database.assert_fails(&[11], &["warehouse 2, district 3:", "should have 29 rows", "but has 30"]);
    database.delivered.count(DISTRICT);
    database.delivered.count(DistrictKey { warehouse: 9, district: 1 });
    database.assert_fails(&[11], &["warehouse 9, district 1:", "no such district"]);
}

#[test]
fn condition_12_a_year_to_date_payment_that_does_not_match_the_balance() {
    let mut database = Database::loaded();
    database.customers.get_mut(&CUSTOMER).unwrap().year_to_date_payment += 5;
    let place = "warehouse 2, district 3, customer 4:";
    database.assert_fails(&[12], &[place, "should be 0.00", "is 0.05"]);
}

#[test]
fn missing_rows_fail_the_conditions_that_need_them() {
    let mut database = Database::loaded();
    database.orders.remove(&order(30));
    assert_eq!(database.failures(), [2, 4, 5, 6, 7, 11]);
    let mut database = Database::loaded();
    database.customers.remove(&CUSTOMER);
    assert_eq!(database.failures(), [10, 12]);
    let mut database = Database::loaded();
    database.customers.clear();
    database.history.clear();
    assert_eq!(database.failures(), [8, 9, 10, 12]);
    let mut database = Database::loaded();
    database.warehouses.clear();
    assert_eq!(database.failures(), [1, 8]);
    let mut database = Database::loaded();
    database.districts.remove(&DISTRICT);
    assert_eq!(database.failures(), [1, 2, 9]);
}

#[test]
fn an_audit_that_nobody_fed_does_not_pass() {
    let verdicts = Audit::new(Scale::SMALL).finish(&DeliveredCounts::new());
    assert_eq!(verdicts[0].1, Err("there is no warehouse".to_owned()));
}

#[test]
fn counts_of_several_workers_add_up() {
    let mut counts = DeliveredCounts::new();
    counts.count(DISTRICT);
    let mut other = DeliveredCounts::new();
    other.count(DISTRICT);
    other.count(DistrictKey { district: 1, ..DISTRICT });
    counts.merge(&other);
    assert_eq!((counts.of(&DISTRICT), counts.of(&DistrictKey { district: 1, ..DISTRICT })), (2, 1));
    assert_eq!(counts.of(&DistrictKey { district: 9, ..DISTRICT }), 0);
}
