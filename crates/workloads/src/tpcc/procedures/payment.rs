//! Payment (clause 2.5): a customer pays; warehouse and district add the payment to their totals.

use super::customer;
use crate::tpcc::input::PaymentInput;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{
    CUSTOMER_DATA_MAX, Customer, CustomerKey, District, History, HistoryKey, Warehouse, WarehouseKey, is_bad,
};
use hotrow::{Context, Operations, Procedure, Profile, Text, column_of};
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

    fn name(&self) -> &'static str {
        "payment"
    }

    fn profile(&self) -> Profile {
        Profile { read_only: false, records: 4, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<i64>, C::Stop> {
        let Self { tables, input, history } = self;
        let PaymentInput { district, amount, date, .. } = *input;

        let warehouse = WarehouseKey { warehouse: district.warehouse };
        let key = cx.value(warehouse);
        let warehouse_name = cx.read_columns(tables.warehouse, key, column_of!(Warehouse, name))?;
        let key = cx.value(district);
        let district_name = cx.read_columns(tables.district, key, column_of!(District, name))?;

        let key = customer::find(cx, tables, input.customer_district, input.customer)?;
        let paid = cx.map(key.clone(), move |key| (key, amount));
        let account = (
            column_of!(Customer, balance),
            column_of!(Customer, year_to_date_payment),
            column_of!(Customer, payment_count),
            column_of!(Customer, credit),
            column_of!(Customer, data),
        );
        let balance = cx.update_columns(
            tables.customer,
            key.clone(),
            account,
            paid,
            move |(balance, year_to_date, payments, credit, data), (key, amount)| {
                *balance -= amount;
                *year_to_date += amount;
                *payments += 1;
                if is_bad(*credit) {
                    note_payment(data, key, district.warehouse, district.district, amount);
                }
                *balance
            },
        )?;

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

        // Nobody needs the totals here. They are what all payments want, so they come last, and are locked for the shortest time.
        let (key, paid) = (cx.value(district), cx.value(amount));
        cx.add(tables.district, key, column_of!(District, year_to_date), paid)?;
        let (key, paid) = (cx.value(warehouse), cx.value(amount));
        cx.add(tables.warehouse, key, column_of!(Warehouse, year_to_date), paid)?;
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
fn note_payment(
    noted: &mut Text<CUSTOMER_DATA_MAX>,
    key: CustomerKey,
    warehouse: u16,
    district: u8,
    amount: i64,
) {
    let mut data = String::with_capacity(600);
    let CustomerKey { warehouse: own_warehouse, district: own_district, customer } = key;
    // Writing to a string cannot fail.
    let _ = write!(
        data,
        "{customer} {own_district} {own_warehouse} {district} {warehouse} {}.{:02} ",
        amount / 100,
        amount % 100
    );
    data.push_str(noted.as_str());
    *noted = Text::prefix_of(&data);
}
