//! Finding a customer by number or by last name.

use crate::tpcc::input::CustomerChoice;
use crate::tpcc::references::Tables;
use crate::tpcc::schema::{CustomerByNameKey, CustomerKey, DistrictKey};
use hotrow::{Context, Direction, Operations};
use std::ops::ControlFlow;

/// Returns the customer's key: the one given, or the middle one of the customers with the last name, in the order
/// of first names (position `n / 2` rounded up, counted from 1: clause 2.5.2.2).
pub(super) fn find<C: Context>(
    cx: &mut C,
    tables: &Tables,
    district: DistrictKey,
    choice: CustomerChoice,
) -> Result<C::Val<CustomerKey>, C::Stop> {
    let DistrictKey { warehouse, district } = district;
    match choice {
        CustomerChoice::Number(customer) => Ok(cx.value(CustomerKey { warehouse, district, customer })),
        CustomerChoice::LastName(last) => {
            let range = cx.value(CustomerByNameKey::named(warehouse, district, last).into());
            let found = cx.scan_index(
                tables.customer_by_name,
                range,
                Direction::Ascending,
                Vec::new(),
                |found: &mut Vec<u16>, _, key: &CustomerKey| {
                    found.push(key.customer);
                    ControlFlow::Continue(())
                },
            )?;
            Ok(cx.map(found, move |found| {
                // Customers are never deleted, and every drawn name exists. No customer has number 0.
                let middle = found.len().div_ceil(2).saturating_sub(1);
                let customer = found.get(middle).copied().unwrap_or(0);
                CustomerKey { warehouse, district, customer }
            }))
        }
    }
}
