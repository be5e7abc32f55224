//! The twelve consistency conditions of TPC-C, revision 5.11, clause 3.3.2.
//!
//! An [`Audit`] takes all rows of seven tables in any order (ITEM and STOCK are in no condition). It then reports
//! for each condition whether it holds, for every warehouse, district, customer and order. Where the specification
//! accepts a sample (conditions 10 and 12), the audit examines all customers.
//!
//! The audit does not depend on how the rows were read. Only a state in which no transaction is running can pass.
//!
//! If a row refers to a row that is missing, the condition that compares the two fails. A database without
//! warehouses fails as well, so that an audit without input does not pass.

mod conditions;
#[cfg(test)]
mod tests;

use super::population::Scale;
use super::schema::{
    Customer, CustomerKey, District, DistrictKey, History, HistoryKey, NewOrder, NewOrderKey, Order,
    OrderKey, OrderLine, OrderLineKey, Warehouse, WarehouseKey,
};
use std::collections::BTreeMap;

/// Number of orders that the committed Delivery transactions of a run have delivered, by district.
///
/// The workload counts them from the transactions' results, not from the tables, because condition 11 compares the
/// two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeliveredCounts {
    by_district: BTreeMap<DistrictKey, u64>,
}

impl DeliveredCounts {
    /// Returns empty counts.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Counts one order that was delivered in a district.
    pub(crate) fn count(&mut self, district: DistrictKey) {
        *self.by_district.entry(district).or_default() += 1;
    }

    /// Adds the counts of another worker.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (district, count) in &other.by_district {
            *self.by_district.entry(*district).or_default() += count;
        }
    }

    /// Returns the number of orders delivered in a district.
    pub(crate) fn of(&self, district: &DistrictKey) -> u64 {
        self.by_district.get(district).copied().unwrap_or_default()
    }
}

/// Tally of a warehouse's rows.
#[derive(Debug, Default)]
struct WarehouseTally {
    /// `W_YTD`; `None` if the audit has not taken the row.
    year_to_date: Option<i64>,
    /// Sum of `H_AMOUNT` of the payments to the warehouse.
    paid: i64,
}

/// Tally of a district's rows.
#[derive(Debug, Default)]
struct DistrictTally {
    row: Option<DistrictColumns>,
    /// Sum of `H_AMOUNT` of the payments to the district.
    paid: i64,
    customers: BTreeMap<u16, CustomerTally>,
    orders: BTreeMap<u32, OrderTally>,
    /// Rows in ORDER.
    order_rows: u64,
    /// Rows in NEW-ORDER.
    new_order_rows: u64,
    /// Rows in ORDER-LINE.
    order_line_rows: u64,
    /// Sum of `O_OL_CNT`.
    line_counts: u64,
}

/// Columns of DISTRICT in the conditions.
#[derive(Debug)]
struct DistrictColumns {
    year_to_date: i64,
    next_order: u32,
}

/// Tally of a customer's rows.
#[derive(Debug, Default)]
struct CustomerTally {
    row: Option<CustomerColumns>,
    /// Sum of `H_AMOUNT` of the customer's payments.
    paid: i64,
}

/// Columns of CUSTOMER in the conditions.
#[derive(Debug)]
struct CustomerColumns {
    balance: i64,
    year_to_date_payment: i64,
}

/// Tally of an order's rows.
#[derive(Debug, Default)]
struct OrderTally {
    row: Option<OrderColumns>,
    /// True if the order is in NEW-ORDER.
    waits: bool,
    /// Rows in ORDER-LINE.
    lines: u32,
    /// Rows in ORDER-LINE with a delivery date.
    delivered_lines: u32,
    /// Sum of `OL_AMOUNT` of the rows with a delivery date.
    delivered_amount: i64,
}

/// Columns of ORDER in the conditions.
#[derive(Debug)]
struct OrderColumns {
    carrier: u32,
    customer: u16,
    line_count: u8,
}

/// The audit of a database: the tallies that the conditions need.
///
/// It takes some hundred bytes for each customer and each order.
#[derive(Debug)]
pub(crate) struct Audit {
    scale: Scale,
    warehouses: BTreeMap<u16, WarehouseTally>,
    districts: BTreeMap<DistrictKey, DistrictTally>,
}

impl Audit {
    /// Makes the audit of a database that was loaded at the given scale.
    pub(crate) fn new(scale: Scale) -> Self {
        Self { scale, warehouses: BTreeMap::new(), districts: BTreeMap::new() }
    }

    /// Takes a row of WAREHOUSE.
    pub(crate) fn warehouse(&mut self, key: &WarehouseKey, row: &Warehouse) {
        self.warehouses.entry(key.warehouse).or_default().year_to_date = Some(row.year_to_date);
    }

    /// Takes a row of DISTRICT.
    pub(crate) fn district(&mut self, key: &DistrictKey, row: &District) {
        let columns = DistrictColumns { year_to_date: row.year_to_date, next_order: row.next_order };
        self.tally(key.warehouse, key.district).row = Some(columns);
    }

    /// Takes a row of CUSTOMER.
    pub(crate) fn customer(&mut self, key: &CustomerKey, row: &Customer) {
        let district = self.tally(key.warehouse, key.district);
        let columns =
            CustomerColumns { balance: row.balance, year_to_date_payment: row.year_to_date_payment };
        district.customers.entry(key.customer).or_default().row = Some(columns);
    }

    /// Takes a row of HISTORY.
    pub(crate) fn history(&mut self, _key: &HistoryKey, row: &History) {
        let warehouse = self.warehouses.entry(row.warehouse).or_default();
        warehouse.paid = warehouse.paid.saturating_add(row.amount);
        let district = self.tally(row.warehouse, row.district);
        district.paid = district.paid.saturating_add(row.amount);
        let customers = &mut self.tally(row.customer_warehouse, row.customer_district).customers;
        let customer = customers.entry(row.customer).or_default();
        customer.paid = customer.paid.saturating_add(row.amount);
    }

    /// Takes a row of NEW-ORDER.
    pub(crate) fn new_order(&mut self, key: &NewOrderKey, _row: &NewOrder) {
        let district = self.tally(key.warehouse, key.district);
        district.new_order_rows += 1;
        district.orders.entry(key.order).or_default().waits = true;
    }

    /// Takes a row of ORDER.
    pub(crate) fn order(&mut self, key: &OrderKey, row: &Order) {
        let district = self.tally(key.warehouse, key.district);
        district.order_rows += 1;
        district.line_counts += u64::from(row.line_count);
        let columns =
            OrderColumns { carrier: row.carrier, customer: row.customer, line_count: row.line_count };
        district.orders.entry(key.order).or_default().row = Some(columns);
    }

    /// Takes a row of ORDER-LINE.
    pub(crate) fn order_line(&mut self, key: &OrderLineKey, row: &OrderLine) {
        let district = self.tally(key.warehouse, key.district);
        district.order_line_rows += 1;
        let order = district.orders.entry(key.order).or_default();
        order.lines += 1;
        if row.is_delivered() {
            order.delivered_lines += 1;
            order.delivered_amount = order.delivered_amount.saturating_add(row.amount);
        }
    }

    /// Returns the name and the verdict of each of the twelve conditions, in the specification's order. The text of
    /// a failure names the first place where the condition does not hold, with the expected and the found value,
    /// and gives the number of such places.
    ///
    /// The specification's condition 11 holds only before the first transaction; after a run, the audit adds the
    /// orders delivered in the run.
    pub(crate) fn finish(self, delivered_in_run: &DeliveredCounts) -> Vec<(String, Result<(), String>)> {
        conditions::check(&self, delivered_in_run)
    }

    fn tally(&mut self, warehouse: u16, district: u8) -> &mut DistrictTally {
        self.districts.entry(DistrictKey { warehouse, district }).or_default()
    }
}
