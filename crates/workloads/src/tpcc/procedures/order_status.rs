//! Order-Status (clause 2.6): reads a customer's last order.

use super::customer;
use crate::tpcc::input::OrderStatusInput;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{Customer, OrderByCustomerKey, OrderKey, OrderLine, OrderLineKey};
use hotrow::{Context, Direction, KeyRange, Operations, Procedure, Profile, column_of};
use std::ops::ControlFlow;

/// The Order-Status transaction (clause 2.6.2).
#[derive(Debug, Clone, Copy)]
pub struct OrderStatusProcedure {
    /// Tables of the database.
    pub tables: Tables,
    /// Input of the transaction.
    pub input: OrderStatusInput,
}

/// Output at the terminal, abridged (clause 2.6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderSummary {
    /// `C_BALANCE`, in cents.
    pub balance: i64,
    /// `O_ID` of the last order; 0 if the customer has none.
    pub order: u32,
    /// `O_CARRIER_ID`.
    pub carrier: u32,
    /// Number of lines found.
    pub lines: u32,
    /// Sum of their amounts, in cents.
    pub amount: i64,
}

impl Procedure for OrderStatusProcedure {
    type Output = OrderSummary;

    fn name(&self) -> &'static str {
        "order_status"
    }

    fn profile(&self) -> Profile {
        Profile { read_only: true, records: 12, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<OrderSummary>, C::Stop> {
        let Self { tables, input } = self;
        let customer = customer::find(cx, tables, input.district, input.customer)?;
        let balance = cx.read_columns(tables.customer, customer.clone(), column_of!(Customer, balance))?;
        let name = (column_of!(Customer, first), column_of!(Customer, middle), column_of!(Customer, last));
        cx.read_columns(tables.customer, customer.clone(), name)?;
        let range = cx.map(customer, |customer| {
            let key = OrderByCustomerKey::of_customer(&customer);
            KeyRange::from(key..=key)
        });
        let last = cx.scan_index(
            tables.order_by_customer,
            range,
            Direction::Descending,
            None,
            |last: &mut Option<OrderKey>, _, key: &OrderKey| {
                *last = Some(*key);
                ControlFlow::Break(())
            },
        )?;
        let balance = cx.map(balance, Option::unwrap_or_default);
        let Some(order_key) = cx.force(last)? else {
            return Ok(cx.map(balance, |balance| OrderSummary { balance, ..OrderSummary::default() }));
        };
        let key = cx.value(order_key);
        let order = cx.read(tables.order, key, |row| (row.entry_date, row.carrier))?;
        let range = cx.value(OrderLineKey::of_order(&order_key).into());
        let lines = cx.scan(
            tables.order_line,
            range,
            Direction::Ascending,
            (0, 0),
            |(lines, amount): &mut (u32, i64), _, row: &OrderLine| {
                *lines += 1;
                *amount += row.amount;
                ControlFlow::Continue(())
            },
        )?;
        let parts = cx.zip(order, lines);
        let parts = cx.zip(balance, parts);
        Ok(cx.map(parts, move |(balance, (order, (lines, amount)))| OrderSummary {
            balance,
            order: order_key.order,
            carrier: order.map_or(0, |(_, carrier)| carrier),
            lines,
            amount,
        }))
    }
}
