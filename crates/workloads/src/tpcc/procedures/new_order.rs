//! New-Order (clause 2.4): an order of 5 to 15 lines.

use crate::tpcc::input::NewOrderInput;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{
    Customer, District, Item, ItemKey, NO_CARRIER, NOT_DELIVERED, NewOrder, NewOrderKey, Order, OrderKey,
    OrderLine, OrderLineKey, StockKey, Warehouse, WarehouseKey,
};
use hotrow::{Context, Operations, Procedure, Profile, column_of};

/// The New-Order transaction (clause 2.4.2).
#[derive(Debug, Clone, Copy)]
pub struct NewOrderProcedure {
    /// Tables of the database.
    pub tables: Tables,
    /// Input of the transaction.
    pub input: NewOrderInput,
}

/// Output at the terminal (clause 2.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NewOrderReceipt {
    /// `O_ID`.
    pub order: u32,
    /// Total amount, in cents.
    pub total: i64,
}

impl Procedure for NewOrderProcedure {
    type Output = NewOrderReceipt;

    fn name(&self) -> &'static str {
        "new_order"
    }

    fn profile(&self) -> Profile {
        Profile { read_only: false, records: 3 + 3 * self.input.lines.len() as u32, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<NewOrderReceipt>, C::Stop> {
        let Self { tables, input } = self;
        let district_key = input.district();
        let (warehouse, district) = (district_key.warehouse, district_key.district);
        let customer = input.customer.customer;
        let (entry_date, line_count) = (input.entry_date, input.lines.len() as u8);
        let all_local = input.all_local();

        let lines = input.lines.iter();
        let stock = lines.clone().map(|line| StockKey { warehouse: line.supply_warehouse, item: line.item });
        cx.prefetch(tables.stock, stock);
        let items = lines.map(|line| ItemKey { item: line.item });
        cx.prefetch_columns(tables.item, items, column_of!(Item, price));
        cx.prefetch_columns(tables.customer, std::iter::once(input.customer), column_of!(Customer, discount));

        let key = cx.value(WarehouseKey { warehouse });
        let warehouse_tax = cx.read_columns(tables.warehouse, key, column_of!(Warehouse, tax))?;
        let (key, nothing) = (cx.value(district_key), cx.value(()));
        let columns = (column_of!(District, next_order), column_of!(District, tax));
        let taken = cx.update_columns(tables.district, key, columns, nothing, |(next, tax), ()| {
            let order = *next;
            *next += 1;
            (order, *tax)
        })?;
        let taken = cx.map(taken, Option::unwrap_or_default);
        let key = cx.value(input.customer);
        let discount = cx.read_columns(tables.customer, key, column_of!(Customer, discount))?;

        // The orders of one district form a group: only within it can order numbers, and so keys, collide.
        let group = district_key.group();
        let order = cx.map(taken.clone(), |(order, _)| order);
        let key = cx.map(order.clone(), move |order| OrderKey { warehouse, district, order });
        let row = cx.value(Order {
            entry_date,
            carrier: NO_CARRIER,
            customer,
            line_count,
            all_local: u8::from(all_local),
        });
        cx.insert_grouped(tables.order, group, key, row)?;
        let key = cx.map(order.clone(), move |order| NewOrderKey { warehouse, district, order });
        let row = cx.value(NewOrder {});
        cx.insert_grouped(tables.new_order, group, key, row)?;

        let mut total = cx.value(0i64);
        for (number, line) in input.lines.iter().copied().enumerate() {
            let key = cx.value(ItemKey { item: line.item });
            let price = cx.read_columns(tables.item, key, column_of!(Item, price))?;
            // An item that does not exist rolls the order back, after everything before it has run (clause
            // 2.4.2.3).
            let exists = cx.map(price.clone(), |price| price.is_some());
            cx.require(exists)?;
            let amount = cx.map(price, move |price| price.unwrap_or(0) * i64::from(line.quantity));

            let key = cx.value(StockKey { warehouse: line.supply_warehouse, item: line.item });
            let (nothing, remote) = (cx.value(()), line.supply_warehouse != warehouse);
            let district_info = cx.update(tables.stock, key, nothing, move |row, ()| {
                let quantity = i32::from(line.quantity);
                let refill = if row.quantity >= quantity + 10 { 0 } else { 91 };
                row.quantity += refill - quantity;
                row.year_to_date += u64::from(line.quantity);
                row.order_count += 1;
                row.remote_count += u32::from(remote);
                row.district_info[usize::from(district) - 1]
            })?;

            let key = cx.map(order.clone(), move |order| OrderLineKey {
                warehouse,
                district,
                order,
                line: number as u8 + 1,
            });
            let parts = cx.zip(amount.clone(), district_info);
            let row = cx.map(parts, move |(amount, district_info)| OrderLine {
                item: line.item,
                supply_warehouse: line.supply_warehouse,
                quantity: line.quantity,
                delivery_date: NOT_DELIVERED,
                amount,
                district_info: district_info.unwrap_or_default(),
            });
            cx.insert_grouped(tables.order_line, group, key, row)?;
            let sum = cx.zip(total, amount);
            total = cx.map(sum, |(total, amount)| total + amount);
        }

        let rates = cx.zip(warehouse_tax, discount);
        let parts = cx.zip(taken, rates);
        let parts = cx.zip(total, parts);
        Ok(cx.map(parts, |(total, ((order, district_tax), (warehouse_tax, discount)))| {
            const WHOLE: i64 = 10_000;
            let after_discount = total * (WHOLE - i64::from(discount.unwrap_or(0))) / WHOLE;
            let taxes = i64::from(warehouse_tax.unwrap_or(0)) + i64::from(district_tax);
            NewOrderReceipt { order, total: after_discount * (WHOLE + taxes) / WHOLE }
        }))
    }
}
