//! Stock-Level (clause 2.8): counts the items of a district's last 20 orders that are low in stock. It only reads.

use crate::tpcc::input::StockLevelInput;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{District, OrderLine, OrderLineKey, Stock, StockKey};
use hotrow::{Context, Direction, Isolation, Operations, Procedure, Profile, column_of};
use std::ops::ControlFlow;

/// The Stock-Level transaction (clause 2.8.2). It returns the number of distinct items below the threshold.
#[derive(Debug, Clone, Copy)]
pub struct StockLevelProcedure {
    /// Tables of the database.
    pub tables: Tables,
    /// Input of the transaction.
    pub input: StockLevelInput,
    /// Isolation level. The specification (clause 2.8.2.3) requires only read committed, and plor §6.1 runs it so.
    pub isolation: Isolation,
}

/// Number of orders examined (clause 2.8.2.2).
const LAST_ORDERS: u32 = 20;

/// Number of STOCK rows fetched together.
const FETCHED_TOGETHER: usize = 8;

impl Procedure for StockLevelProcedure {
    type Output = u32;

    fn name(&self) -> &'static str {
        "stock_level"
    }

    fn profile(&self) -> Profile {
        /// One district, and the lines and stock rows of 20 orders of 10 lines.
        const RECORDS: u32 = 1 + 2 * 10 * LAST_ORDERS;
        Profile { read_only: true, isolation: self.isolation, records: RECORDS, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<u32>, C::Stop> {
        let Self { tables, input, .. } = self;
        let StockLevelInput { district, threshold } = *input;
        let key = cx.value(district);
        let next = cx.read_columns(tables.district, key, column_of!(District, next_order))?;
        let range = cx.map(next, move |next| {
            let next = next.unwrap_or(1);
            let orders = next.saturating_sub(LAST_ORDERS)..=next.saturating_sub(1);
            OrderLineKey::of_orders(&district, orders).into()
        });
        let items = cx.scan(
            tables.order_line,
            range,
            Direction::Ascending,
            Vec::with_capacity(256),
            |items: &mut Vec<u32>, _, row: &OrderLine| {
                items.push(row.item);
                ControlFlow::Continue(())
            },
        )?;
        let items = cx.map(items, |mut items| {
            items.sort_unstable();
            items.dedup();
            items
        });
        let mut low = cx.value(0u32);
        let stock_key = |item: &u32| StockKey { warehouse: district.warehouse, item: *item };
        for items in cx.force(items)?.chunks(FETCHED_TOGETHER) {
            cx.prefetch_columns(tables.stock, items.iter().map(stock_key), column_of!(Stock, quantity));
            for item in items {
                let key = cx.value(stock_key(item));
                let quantity = cx.read_columns(tables.stock, key, column_of!(Stock, quantity))?;
                let both = cx.zip(low, quantity);
                low = cx.map(both, move |(low, quantity)| {
                    low + u32::from(quantity.is_some_and(|quantity| quantity < threshold))
                });
            }
        }
        Ok(low)
    }
}
