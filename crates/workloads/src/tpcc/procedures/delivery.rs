//! Delivery (clause 2.7): the oldest new order of each of a warehouse's ten districts is delivered.

use crate::tpcc::input::DeliveryInput;
use crate::tpcc::schema::{
    CustomerKey, DISTRICTS_PER_WAREHOUSE, DistrictKey, NewOrder, NewOrderKey, OrderKey, OrderLineKey,
};
use crate::tpcc::tables::Tables;
use hotrow::{Context, Direction, Procedure, Profile};
use std::ops::ControlFlow;

/// The Delivery transaction (clause 2.7.4), all districts in one database transaction. Returns the order
/// delivered in each district, by position; 0 where there was none.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryProcedure {
    /// Where.
    pub tables: Tables,
    /// What.
    pub input: DeliveryInput,
}

type Delivered = [u32; DISTRICTS_PER_WAREHOUSE as usize];

impl Procedure for DeliveryProcedure {
    type Output = Delivered;

    fn profile(&self) -> Profile {
        Profile { read_only: false, records: 10 * 13, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Delivered>, C::Stop> {
        let mut delivered = Delivered::default();
        let warehouse = self.input.warehouse.warehouse;
        for district in 1..=DISTRICTS_PER_WAREHOUSE {
            if let Some(order) = self.deliver(cx, DistrictKey { warehouse, district })? {
                delivered[usize::from(district) - 1] = order;
            }
        }
        Ok(cx.value(delivered))
    }
}

impl DeliveryProcedure {
    fn deliver<C: Context>(&self, cx: &mut C, key: DistrictKey) -> Result<Option<u32>, C::Stop> {
        let Self { tables, input } = self;
        let DistrictKey { warehouse, district } = key;
        let range = cx.value(NewOrderKey::of_district(&key).into());
        let oldest = cx.scan(
            tables.new_order,
            range,
            Direction::Ascending,
            None,
            |oldest: &mut Option<NewOrderKey>, key, _: &NewOrder| {
                *oldest = Some(*key);
                ControlFlow::Break(())
            },
        )?;
        // A district without new orders is skipped (clause 2.7.4.2).
        let Some(oldest) = cx.force(oldest)? else { return Ok(None) };
        let key = cx.value(oldest);
        cx.delete(tables.new_order, key)?;

        let order = oldest.order;
        let (key, carrier) = (cx.value(OrderKey { warehouse, district, order }), cx.value(input.carrier));
        let ordered = cx.update(tables.order, key, carrier, |row, carrier| {
            row.carrier = carrier;
            (row.customer, row.line_count)
        })?;
        let (customer, line_count) = cx.force(ordered)?.unwrap_or_default();

        let mut sum = cx.value(0i64);
        for line in 1..=line_count {
            let key = cx.value(OrderLineKey { warehouse, district, order, line });
            let date = cx.value(input.delivery_date);
            let amount = cx.update(tables.order_line, key, date, |row, date| {
                row.delivery_date = date;
                row.amount
            })?;
            let both = cx.zip(sum, amount);
            sum = cx.map(both, |(sum, amount)| sum + amount.unwrap_or(0));
        }
        let key = cx.value(CustomerKey { warehouse, district, customer });
        cx.commute(tables.customer, key, sum, |row, sum| {
            row.balance += sum;
            row.delivery_count += 1;
        })?;
        Ok(Some(order))
    }
}
