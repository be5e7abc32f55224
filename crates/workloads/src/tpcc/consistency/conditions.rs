//! Checks of each condition on an audit's tallies.

use super::super::schema::{DOLLAR, DistrictKey, NO_CARRIER};
use super::{Audit, DeliveredCounts, DistrictTally, OrderTally};
use std::collections::BTreeMap;
use std::fmt;

/// The violations of one condition.
#[derive(Default)]
struct Violations {
    first: Option<String>,
    count: u64,
}

impl Violations {
    /// Records a violation at the place named by `what`.
    fn add(&mut self, what: fmt::Arguments<'_>) {
        self.first.get_or_insert_with(|| what.to_string());
        self.count += 1;
    }

    fn verdict(self) -> Result<(), String> {
        match (self.first, self.count) {
            (None, _) => Ok(()),
            (Some(first), 1) => Err(first),
            (Some(first), count) => Err(format!("{first} (the first of {count} such places)")),
        }
    }
}

/// A condition: its name, and the function that finds its violations.
type Condition = (&'static str, fn(&Audit, &DeliveredCounts, &mut Violations));

/// The conditions, in the specification's order.
const CONDITIONS: [Condition; 12] = [
    ("3.3.2.1 W_YTD = sum(D_YTD)", warehouse_balance_is_that_of_districts),
    ("3.3.2.2 D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)", next_order_follows_the_last),
    ("3.3.2.3 max(NO_O_ID) - min(NO_O_ID) + 1 = count(NEW-ORDER)", new_orders_have_no_gap),
    ("3.3.2.4 sum(O_OL_CNT) = count(ORDER-LINE)", districts_have_all_lines),
    ("3.3.2.5 O_CARRIER_ID is null if and only if the order is in NEW-ORDER", orders_wait_or_have_a_carrier),
    ("3.3.2.6 O_OL_CNT = count(ORDER-LINE) of the order", orders_have_all_lines),
    ("3.3.2.7 OL_DELIVERY_D is null if and only if O_CARRIER_ID is", lines_are_delivered_with_the_order),
    ("3.3.2.8 W_YTD = sum(H_AMOUNT)", warehouse_balance_is_that_of_history),
    ("3.3.2.9 D_YTD = sum(H_AMOUNT)", district_balance_is_that_of_history),
    ("3.3.2.10 C_BALANCE = sum(OL_AMOUNT) - sum(H_AMOUNT)", customer_balance_is_that_of_history),
    ("3.3.2.11 count(ORDER) - count(NEW-ORDER) = delivered orders", delivered_orders_are_counted),
    ("3.3.2.12 C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT)", customer_columns_agree),
];

/// Checks all conditions.
pub(super) fn check(audit: &Audit, delivered: &DeliveredCounts) -> Vec<(String, Result<(), String>)> {
    let check = |(name, find): Condition| {
        let mut violations = Violations::default();
        find(audit, delivered, &mut violations);
        (name.to_owned(), violations.verdict())
    };
    CONDITIONS.into_iter().map(check).collect()
}

/// An amount of cents, displayed as money.
struct Money(i64);

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, cents) = (self.0.unsigned_abs() / DOLLAR as u64, self.0.unsigned_abs() % DOLLAR as u64);
        write!(f, "{sign}{whole}.{cents:02}")
    }
}

/// A district, displayed with its warehouse.
struct DistrictLabel<'a>(&'a DistrictKey);

impl fmt::Display for DistrictLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warehouse {}, district {}", self.0.warehouse, self.0.district)
    }
}

/// A value from a row, displayed as `missing` if there is no such row.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("missing"),
        }
    }
}

fn warehouse_balance_is_that_of_districts(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    let mut sums: BTreeMap<u16, i64> = audit.warehouses.keys().map(|warehouse| (*warehouse, 0)).collect();
    for (key, district) in &audit.districts {
        let sum = sums.entry(key.warehouse).or_default();
        *sum = sum.saturating_add(district.row.as_ref().map_or(0, |row| row.year_to_date));
    }
    if sums.is_empty() {
        violations.add(format_args!("there is no warehouse"));
    }
    for (warehouse, sum) in sums {
        let found = audit.warehouses.get(&warehouse).and_then(|tally| tally.year_to_date);
        if found != Some(sum) {
            violations.add(format_args!(
                "warehouse {warehouse}: W_YTD should be {}, the sum of D_YTD, but is {}",
                Money(sum),
                Known(found.map(Money))
            ));
        }
    }
}

fn next_order_follows_the_last(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        let last_order =
            district.orders.iter().rfind(|(_, order)| order.row.is_some()).map_or(0, |(order, _)| *order);
        let last_new_order = district.orders.iter().rfind(|(_, order)| order.waits).map(|(order, _)| *order);
        let next = district.row.as_ref().map(|row| row.next_order);
        let follows = next.and_then(|next| next.checked_sub(1)) == Some(last_order);
        if !follows || last_new_order.is_some_and(|last| last != last_order) {
            violations.add(format_args!(
                "{}: with max(O_ID) = {last_order}, D_NEXT_O_ID should be {} and max(NO_O_ID) {last_order}, \
                 if there is any, but they are {} and {}",
                DistrictLabel(key),
                u64::from(last_order) + 1,
                Known(next),
                Known(last_new_order)
            ));
        }
    }
}

fn new_orders_have_no_gap(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        let mut waiting = district.orders.iter().filter(|(_, order)| order.waits).map(|(order, _)| *order);
        let Some(first) = waiting.next() else { continue };
        let last = waiting.next_back().unwrap_or(first);
        let expected = u64::from(last - first) + 1;
        if district.new_order_rows != expected {
            violations.add(format_args!(
                "{}: NEW-ORDER, from order {first} to order {last}, should have {expected} rows, but has {}",
                DistrictLabel(key),
                district.new_order_rows
            ));
        }
    }
}

fn districts_have_all_lines(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        if district.line_counts != district.order_line_rows {
            violations.add(format_args!(
                "{}: ORDER-LINE should have {} rows, the sum of O_OL_CNT, but has {}",
                DistrictLabel(key),
                district.line_counts,
                district.order_line_rows
            ));
        }
    }
}

fn orders_wait_or_have_a_carrier(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, number, order) in orders(audit) {
        let what = match &order.row {
            None if order.waits => "is in NEW-ORDER, but not in ORDER",
            Some(row) if row.carrier == NO_CARRIER && !order.waits => {
                "O_CARRIER_ID is null, but the order is not in NEW-ORDER"
            }
            Some(row) if row.carrier != NO_CARRIER && order.waits => {
                violations.add(format_args!(
                    "{}, order {number}: O_CARRIER_ID should be null, because the order is in \
                     NEW-ORDER, but is {}",
                    DistrictLabel(key),
                    row.carrier
                ));
                continue;
            }
            _ => continue,
        };
        violations.add(format_args!("{}, order {number}: {what}", DistrictLabel(key)));
    }
}

fn orders_have_all_lines(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, number, order) in orders(audit) {
        let expected = order.row.as_ref().map_or(0, |row| u32::from(row.line_count));
        if order.lines != expected {
            violations.add(format_args!(
                "{}, order {number}: ORDER-LINE should have {expected} rows of it, by O_OL_CNT, but has {}",
                DistrictLabel(key),
                order.lines
            ));
        }
    }
}

fn lines_are_delivered_with_the_order(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, number, order) in orders(audit) {
        match &order.row {
            None if order.lines > 0 => violations.add(format_args!(
                "{}, order {number}: has {} rows in ORDER-LINE, but none in ORDER",
                DistrictLabel(key),
                order.lines
            )),
            None => {}
            Some(row) => {
                let expected = if row.carrier == NO_CARRIER { 0 } else { order.lines };
                if order.delivered_lines != expected {
                    violations.add(format_args!(
                        "{}, order {number}: OL_DELIVERY_D should be set in {expected} of its {} lines, \
                         because O_CARRIER_ID is {}, but is set in {}",
                        DistrictLabel(key),
                        order.lines,
                        if row.carrier == NO_CARRIER { "null" } else { "set" },
                        order.delivered_lines
                    ));
                }
            }
        }
    }
}

fn warehouse_balance_is_that_of_history(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (warehouse, tally) in &audit.warehouses {
        if tally.year_to_date != Some(tally.paid) {
            violations.add(format_args!(
                "warehouse {warehouse}: W_YTD should be {}, the sum of H_AMOUNT, but is {}",
                Money(tally.paid),
                Known(tally.year_to_date.map(Money))
            ));
        }
    }
}

fn district_balance_is_that_of_history(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        let found = district.row.as_ref().map(|row| row.year_to_date);
        if found != Some(district.paid) {
            violations.add(format_args!(
                "{}: D_YTD should be {}, the sum of H_AMOUNT, but is {}",
                DistrictLabel(key),
                Money(district.paid),
                Known(found.map(Money))
            ));
        }
    }
}

fn customer_balance_is_that_of_history(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        let delivered = delivered_amounts(district);
        for (number, customer) in &district.customers {
            let delivered = delivered.get(number).copied().unwrap_or_default();
            let expected = delivered.saturating_sub(customer.paid);
            let found = customer.row.as_ref().map(|row| row.balance);
            if found != Some(expected) {
                violations.add(format_args!(
                    "{}, customer {number}: C_BALANCE should be {}, which is {} delivered less {} paid, \
                     but is {}",
                    DistrictLabel(key),
                    Money(expected),
                    Money(delivered),
                    Money(customer.paid),
                    Known(found.map(Money))
                ));
            }
        }
        add_orders_without_customer(key, district, violations);
    }
}

fn delivered_orders_are_counted(audit: &Audit, delivered: &DeliveredCounts, violations: &mut Violations) {
    let loaded = u64::from(audit.scale.delivered_orders());
    for (key, district) in &audit.districts {
        let in_run = delivered.of(key);
        // The sum, not a difference: orders may be missing from the district.
        let expected = district.new_order_rows + loaded + in_run;
        if district.order_rows != expected {
            violations.add(format_args!(
                "{}: ORDER should have {expected} rows, which are {} in NEW-ORDER, {loaded} delivered when \
                 loaded and {in_run} delivered since, but has {}",
                DistrictLabel(key),
                district.new_order_rows,
                district.order_rows
            ));
        }
    }
    for key in delivered.by_district.keys().filter(|key| !audit.districts.contains_key(*key)) {
        violations.add(format_args!(
            "{}: orders were delivered, but there is no such district",
            DistrictLabel(key)
        ));
    }
}

fn customer_columns_agree(audit: &Audit, _: &DeliveredCounts, violations: &mut Violations) {
    for (key, district) in &audit.districts {
        let delivered = delivered_amounts(district);
        for (number, customer) in &district.customers {
            let expected = delivered.get(number).copied().unwrap_or_default();
            let found = customer.row.as_ref().map(|row| row.balance.saturating_add(row.year_to_date_payment));
            if found != Some(expected) {
                violations.add(format_args!(
                    "{}, customer {number}: C_BALANCE + C_YTD_PAYMENT should be {}, the amount \
                     delivered, but is {}",
                    DistrictLabel(key),
                    Money(expected),
                    Known(found.map(Money))
                ));
            }
        }
        add_orders_without_customer(key, district, violations);
    }
}

/// Iterates over all orders of all districts.
fn orders(audit: &Audit) -> impl Iterator<Item = (&DistrictKey, u32, &OrderTally)> {
    audit
        .districts
        .iter()
        .flat_map(|(key, district)| district.orders.iter().map(move |(number, order)| (key, *number, order)))
}

/// Returns, for each customer of a district, the sum of `OL_AMOUNT` of the delivered lines.
fn delivered_amounts(district: &DistrictTally) -> BTreeMap<u16, i64> {
    let mut amounts = BTreeMap::<u16, i64>::new();
    for order in district.orders.values() {
        if let Some(row) = &order.row {
            let amount = amounts.entry(row.customer).or_default();
            *amount = amount.saturating_add(order.delivered_amount);
        }
    }
    amounts
}

fn add_orders_without_customer(key: &DistrictKey, district: &DistrictTally, violations: &mut Violations) {
    for (number, order) in &district.orders {
        if let Some(row) = &order.row
            && !district.customers.contains_key(&row.customer)
        {
            violations.add(format_args!(
                "{}, order {number}: is of customer {}, who is missing",
                DistrictLabel(key),
                row.customer
            ));
        }
    }
}
