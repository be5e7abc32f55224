//! Delivery (clause 2.7): delivers the oldest new order of each of a warehouse's ten districts.

use crate::tpcc::input::DeliveryInput;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{
    Customer, CustomerKey, DISTRICTS_PER_WAREHOUSE, DistrictKey, NewOrderKey, OrderKey, OrderLineKey,
};
use hotrow::{Context, Operations, Procedure, Profile, column_of};

/// The Delivery transaction (clause 2.7.4), or its part in some of the districts: an implementation may deliver the ten orders
/// in one to ten database transactions (clause 2.7). It returns the order delivered in each district, by position; 0 if there was
/// none.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryProcedure {
    /// Tables of the database.
    pub tables: Tables,
    /// Input of the transaction.
    pub input: DeliveryInput,
    /// First and last district.
    pub districts: (u8, u8),
}

type Delivered = [u32; DISTRICTS_PER_WAREHOUSE as usize];

impl Procedure for DeliveryProcedure {
    type Output = Delivered;

    fn name(&self) -> &'static str {
        "delivery"
    }

    fn profile(&self) -> Profile {
        let (first, last) = self.districts;
        Profile { read_only: false, records: u32::from(last - first + 1) * 13, ..Profile::UNKNOWN }
    }

    fn run<C: Context>(&self, cx: &mut C) -> Result<C::Val<Delivered>, C::Stop> {
        let mut delivered = cx.value(Delivered::default());
        let warehouse = self.input.warehouse.warehouse;
        let (first, last) = self.districts;
        for district in first..=last {
            let order = self.deliver(cx, DistrictKey { warehouse, district })?;
            let both = cx.zip(delivered, order);
            delivered = cx.map(both, move |(mut delivered, order)| {
                delivered[usize::from(district) - 1] = order.map_or(0, |oldest| oldest.order);
                delivered
            });
        }
        Ok(delivered)
    }
}

impl DeliveryProcedure {
    /// Delivers a district's oldest new order. A district without new orders is skipped (clause 2.7.4.2): the first
    /// operation then yields no key, and so does every later one.
    fn deliver<C: Context>(
        &self,
        cx: &mut C,
        key: DistrictKey,
    ) -> Result<C::Val<Option<NewOrderKey>>, C::Stop> {
        let Self { tables, input, .. } = self;
        let DistrictKey { warehouse, district } = key;
        let range = cx.value(NewOrderKey::of_district(&key).into());
        let oldest = cx.take_first(tables.new_order, key.group(), range)?;

        let order = cx.map(oldest.clone(), move |oldest| {
            oldest.map(|NewOrderKey { order, .. }| OrderKey { warehouse, district, order })
        });
        let carrier = cx.value(input.carrier);
        let ordered =
            cx.update_each(tables.order, order.clone(), carrier, None, |ordered, row, carrier| {
                row.carrier = carrier;
                *ordered = Some((row.customer, row.line_count));
            })?;

        let both = cx.zip(order, ordered.clone());
        let lines = cx.map(both, move |(order, ordered)| {
            let line_count = ordered.map_or(0, |(_, line_count)| line_count);
            let order = order.map_or(0, |key| key.order);
            (1..=line_count).map(move |line| OrderLineKey { warehouse, district, order, line })
        });
        let date = cx.value(input.delivery_date);
        let sum = cx.update_each(tables.order_line, lines, date, 0i64, |sum, row, date| {
            row.delivery_date = date;
            *sum += row.amount;
        })?;

        let customer = cx.map(ordered, move |ordered| {
            ordered.map(|(customer, _)| CustomerKey { warehouse, district, customer })
        });
        let account = (column_of!(Customer, balance), column_of!(Customer, delivery_count));
        cx.commute_columns_each(tables.customer, customer, account, sum, |(balance, deliveries), sum| {
            *balance += sum;
            *deliveries += 1;
        })?;
        Ok(oldest)
    }
}
