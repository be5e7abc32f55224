//! Payment (clause 2.5): a customer pays; warehouse and district add the payment to their totals.

use super::customer;
use crate::tpcc::input::PaymentInput;
use crate::tpcc::schema::{Customer, CustomerKey, History, HistoryKey, WarehouseKey};
use crate::tpcc::tables::Tables;
use hotrow::{Context, Procedure, Profile, Text};
use std::fmt::Write;

/// The Payment transaction (clause 2.5.2). It returns the customer's new balance, in cents.
#[derive(Debug, Clone, Copy)]
pub struct PaymentProcedure {
    /// Tables of the database.
    pub tables: Tables,
    /// Input of the transaction.
    pub input: PaymentInput,
    /// Key of the row in HISTORY.
    pub history: HistoryKey,
}

impl Procedure for PaymentProcedure {
    type Output = i64;

    fn profile(&self) -> Profile {
        Profile { read_only: false, records: 4, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let Self { tables, input, history } = self;
        let PaymentInput { district, amount, date, .. } = *input;

        let (key, paid) = (cx.value(WarehouseKey { warehouse: district.warehouse }), cx.value(amount));
        let warehouse_name = cx.update(tables.warehouse, key, paid.clone(), |row, amount| {
            row.year_to_date += amount;
            row.name
        })?;
        let key = cx.value(district);
        let district_name = cx.update(tables.district, key, paid, |row, amount| {
            row.year_to_date += amount;
            row.name
        })?;

        let key = customer::find(cx, tables, input.customer_district, input.customer)?;
        let paid = cx.map(key.clone(), move |key| (key, amount));
        let balance = cx.update(tables.customer, key.clone(), paid, move |row, (key, amount)| {
            row.balance -= amount;
            row.year_to_date_payment += amount;
            row.payment_count += 1;
            if row.has_bad_credit() {
                note_payment(row, key, district.warehouse, district.district, amount);
            }
            row.balance
        })?;

        let names = cx.zip(warehouse_name, district_name);
        let parts = cx.zip(key, names);
        let row = cx.map(parts, move |(customer, (warehouse_name, district_name))| History {
            customer_warehouse: customer.warehouse,
            customer: customer.customer,
            warehouse: district.warehouse,
            customer_district: customer.district,
            district: district.district,
            date,
            amount,
            data: history_data(&warehouse_name.unwrap_or_default(), &district_name.unwrap_or_default()),
        });
        let key = cx.value(*history);
        cx.insert(tables.history, key, row)?;
        Ok(cx.map(balance, Option::unwrap_or_default))
    }
}

/// Returns `H_DATA`: both names, with four spaces between them.
fn history_data(warehouse: &Text<12>, district: &Text<16>) -> Text<24> {
    let (warehouse, district) = (warehouse.as_bytes(), district.as_bytes());
    let mut bytes = [b' '; 32];
    bytes[..warehouse.len()].copy_from_slice(warehouse);
    let at = warehouse.len() + 4;
    bytes[at..at + district.len()].copy_from_slice(district);
    std::str::from_utf8(&bytes[..at + district.len()]).map_or(Text::EMPTY, Text::prefix_of)
}

/// Inserts the payment at the front of `C_DATA` and cuts the end off (clause 2.5.2.2).
fn note_payment(row: &mut Customer, key: CustomerKey, warehouse: u16, district: u8, amount: i64) {
    let mut data = String::with_capacity(600);
    let CustomerKey { warehouse: own_warehouse, district: own_district, customer } = key;
    // Writing to a string cannot fail.
    let _ = write!(
        data,
        "{customer} {own_district} {own_warehouse} {district} {warehouse} {}.{:02} ",
        amount / 100,
        amount % 100
    );
    data.push_str(row.data.as_str());
    row.data = Text::prefix_of(&data);
}
