//! Keys of the nine tables, and the ranges of keys that transactions scan.

use super::{DISTRICTS_PER_WAREHOUSE, Order};
use hotrow::{Key, Stored, Text};
use std::ops::RangeInclusive;

/// Primary key of WAREHOUSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct WarehouseKey {
    /// `W_ID`.
    pub warehouse: u16,
}

/// Primary key of DISTRICT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct DistrictKey {
    /// `D_W_ID`.
    pub warehouse: u16,
    /// `D_ID`, from 1 to 10.
    pub district: u8,
}

impl DistrictKey {
    /// Returns the number of the group of a district's orders. Numbers are dense, so that few groups share a lock.
    pub(crate) fn group(&self) -> u64 {
        u64::from(self.warehouse) * u64::from(DISTRICTS_PER_WAREHOUSE) + u64::from(self.district)
    }
}

/// Primary key of CUSTOMER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct CustomerKey {
    /// `C_W_ID`.
    pub warehouse: u16,
    /// `C_D_ID`.
    pub district: u8,
    /// `C_ID`.
    pub customer: u16,
}

/// Secondary key of CUSTOMER: by last name, in the order of first names (clauses 2.5.2.2 and 2.6.2.2).
///
/// Customers of the same name come in the order of their primary keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct CustomerByNameKey {
    /// `C_W_ID`.
    pub warehouse: u16,
    /// `C_D_ID`.
    pub district: u8,
    /// `C_LAST`.
    pub last: Text<16>,
    /// `C_FIRST`.
    pub first: Text<16>,
}

impl CustomerByNameKey {
    /// Returns the secondary key of a customer.
    pub(crate) fn of(key: &CustomerKey, (last, first): (Text<16>, Text<16>)) -> Self {
        Self { warehouse: key.warehouse, district: key.district, last, first }
    }

    /// Returns the range of keys of one last name in one district, in the order of first names.
    pub(crate) fn named(warehouse: u16, district: u8, last: Text<16>) -> RangeInclusive<Self> {
        let lowest = Self { warehouse, district, last, first: Text::EMPTY };
        lowest..=Self { first: Text::MAX, ..lowest }
    }
}

/// Key of HISTORY, which has no primary key in the specification (clause 1.3.1): the worker that made the payment,
/// and the payment's number among that worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct HistoryKey {
    /// The worker, below [`HistoryKey::LOADERS`].
    pub worker: u32,
    /// The payment's number among the worker's.
    pub sequence: u32,
}

impl HistoryKey {
    /// First of the worker numbers that stand for loading the initial population, one for each warehouse.
    pub const LOADERS: u32 = 1 << 31;

    /// Returns the key of a customer's row in the initial population (clause 4.3.3.1).
    pub(crate) fn loaded(customer: &CustomerKey) -> Self {
        Self {
            worker: Self::LOADERS + u32::from(customer.warehouse),
            sequence: u32::from(customer.district) << 16 | u32::from(customer.customer),
        }
    }
}

/// Primary key of NEW-ORDER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct NewOrderKey {
    /// `NO_W_ID`.
    pub warehouse: u16,
    /// `NO_D_ID`.
    pub district: u8,
    /// `NO_O_ID`.
    pub order: u32,
}

impl NewOrderKey {
    /// The bits of a key's image that do not tell a district: those of the order's number, and eight unused ones.
    pub(crate) const DISTRICT_TAIL_BITS: u32 = 40;

    /// Returns the range of a district's keys. The first key present is the oldest order to deliver (clause
    /// 2.7.4.2).
    pub(crate) fn of_district(district: &DistrictKey) -> RangeInclusive<Self> {
        let lowest = Self { warehouse: district.warehouse, district: district.district, order: 0 };
        lowest..=Self { order: u32::MAX, ..lowest }
    }
}

/// Primary key of ORDER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct OrderKey {
    /// `O_W_ID`.
    pub warehouse: u16,
    /// `O_D_ID`.
    pub district: u8,
    /// `O_ID`.
    pub order: u32,
}

/// Secondary key of ORDER: the customer whose order it is (clause 2.6.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct OrderByCustomerKey {
    /// `O_W_ID`.
    pub warehouse: u16,
    /// `O_D_ID`.
    pub district: u8,
    /// `O_C_ID`.
    pub customer: u16,
}

impl OrderByCustomerKey {
    /// Returns the secondary key of an order.
    pub(crate) fn of(key: &OrderKey, row: &Order) -> Self {
        Self { warehouse: key.warehouse, district: key.district, customer: row.customer }
    }

    /// Returns the key of a customer's orders; the latest of them has the greatest primary key.
    pub(crate) fn of_customer(customer: &CustomerKey) -> Self {
        let CustomerKey { warehouse, district, customer } = *customer;
        Self { warehouse, district, customer }
    }
}

/// Primary key of ORDER-LINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct OrderLineKey {
    /// `OL_W_ID`.
    pub warehouse: u16,
    /// `OL_D_ID`.
    pub district: u8,
    /// `OL_O_ID`.
    pub order: u32,
    /// `OL_NUMBER`, from 1 to 15.
    pub line: u8,
}

impl OrderLineKey {
    /// The bits of a key's image that do not tell an order: those of the line's number.
    pub(crate) const ORDER_TAIL_BITS: u32 = 8;

    /// Returns the range of keys of an order's lines, in the order of their numbers.
    pub(crate) fn of_order(order: &OrderKey) -> RangeInclusive<Self> {
        Self::of_orders(
            &DistrictKey { warehouse: order.warehouse, district: order.district },
            order.order..=order.order,
        )
    }

    /// Returns the range of keys of the lines of a district's orders with these numbers, in order (clause 2.8.2.2
    /// wants the last 20 orders).
    pub(crate) fn of_orders(district: &DistrictKey, orders: RangeInclusive<u32>) -> RangeInclusive<Self> {
        let DistrictKey { warehouse, district } = *district;
        let lowest = Self { warehouse, district, order: *orders.start(), line: 0 };
        lowest..=Self { order: *orders.end(), line: u8::MAX, ..lowest }
    }
}

/// Primary key of ITEM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct ItemKey {
    /// `I_ID`.
    pub item: u32,
}

/// Primary key of STOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key, Stored)]
pub struct StockKey {
    /// `S_W_ID`.
    pub warehouse: u16,
    /// `S_I_ID`.
    pub item: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_the_keys_they_name_and_no_others() {
        let name = |last: &str, first: &str| CustomerByNameKey {
            warehouse: 1,
            district: 2,
            last: Text::prefix_of(last),
            first: Text::prefix_of(first),
        };
        let bars = CustomerByNameKey::named(1, 2, Text::prefix_of("BAR"));
        assert!(bars.contains(&name("BAR", "")));
        assert!(bars.contains(&name("BAR", "zzzzzzzzzzzzzzzz")));
        assert!(!bars.contains(&name("BARBAR", "a")));
        assert!(!bars.contains(&name("BAQ", "zzz")));

        let order = OrderKey { warehouse: 1, district: 2, order: 3 };
        let lines = OrderLineKey::of_order(&order);
        let line = |order, line| OrderLineKey { warehouse: 1, district: 2, order, line };
        assert!(lines.contains(&line(3, 1)) && lines.contains(&line(3, 15)));
        assert!(!lines.contains(&line(2, 15)) && !lines.contains(&line(4, 1)));
    }

    #[test]
    fn loaded_history_keys_differ_and_never_meet_those_of_workers() {
        let key = |warehouse, district, customer| {
            HistoryKey::loaded(&CustomerKey { warehouse, district, customer })
        };
        assert!(key(1, 1, 1) < key(1, 1, 2) && key(1, 1, 3_000) < key(1, 2, 1));
        assert!(key(1, 10, 3_000) < key(2, 1, 1) && key(1, 1, 1).worker >= HistoryKey::LOADERS);
    }
}
