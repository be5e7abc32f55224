//! Inputs of the five transactions of TPC-C, revision 5.11, clauses 2.4.1 to 2.8.1, and their mix.
//!
//! An input is complete: running it draws nothing more, so that a retry repeats the same transaction. A
//! `Client` draws inputs.

use super::schema::{CustomerKey, DistrictKey, LINES_MAX, WarehouseKey};
use hotrow::Text;
use hotrow::sync::random::Random;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// A line of a new order (clause 2.4.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineInput {
    /// `OL_I_ID`.
    pub item: u32,
    /// `OL_SUPPLY_W_ID`.
    pub supply_warehouse: u16,
    /// `OL_QUANTITY`, from 1 to 10.
    pub quantity: u16,
}

/// The lines of a new order, at most 15, stored in place.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    lines: [LineInput; LINES_MAX],
    count: u8,
}

impl FromIterator<LineInput> for Lines {
    /// Takes the first 15 lines of `iter`.
    fn from_iter<I: IntoIterator<Item = LineInput>>(iter: I) -> Self {
        let mut lines = Self::default();
        for (place, line) in lines.lines.iter_mut().zip(iter) {
            *place = line;
            lines.count += 1;
        }
        lines
    }
}

impl Deref for Lines {
    type Target = [LineInput];

    fn deref(&self) -> &[LineInput] {
        &self.lines[..usize::from(self.count)]
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The input of New-Order (clause 2.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewOrderInput {
    /// The customer, whose warehouse is the terminal's.
    pub customer: CustomerKey,
    /// The order's lines, 5 to 15.
    pub lines: Lines,
    /// True if the last line asks for an item that does not exist, so that the transaction rolls back: 1 %.
    pub rolls_back: bool,
    /// `O_ENTRY_D`, in microseconds.
    pub entry_date: i64,
}

impl NewOrderInput {
    /// Returns the district that takes the order.
    pub(crate) fn district(&self) -> DistrictKey {
        DistrictKey { warehouse: self.customer.warehouse, district: self.customer.district }
    }

    /// True if the order's own warehouse supplies all lines (`O_ALL_LOCAL`).
    pub(crate) fn all_local(&self) -> bool {
        self.lines.iter().all(|line| line.supply_warehouse == self.customer.warehouse)
    }
}

/// Customer of a transaction, by number or by name (clauses 2.5.1.2 and 2.6.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerChoice {
    /// By number: 40 %.
    Number(u16),
    /// By last name: 60 %. The `n` customers of this name are ordered by first name and counted from 1; the one at
    /// `n / 2`, rounded up, is meant (clause 2.5.2.2).
    LastName(Text<16>),
}

/// The input of Payment (clause 2.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentInput {
    /// The district that is paid; it belongs to the terminal's warehouse.
    pub district: DistrictKey,
    /// The customer's district: the one that is paid or, in 15 % of the cases, one of another warehouse.
    pub customer_district: DistrictKey,
    /// The customer.
    pub customer: CustomerChoice,
    /// `H_AMOUNT`, in cents: 1.00 to 5,000.00.
    pub amount: i64,
    /// `H_DATE`, in microseconds.
    pub date: i64,
}

/// The input of Order-Status (clause 2.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderStatusInput {
    /// The customer's district.
    pub district: DistrictKey,
    /// The customer.
    pub customer: CustomerChoice,
}

/// The input of Delivery (clause 2.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryInput {
    /// The warehouse; each of its districts delivers its oldest new order.
    pub warehouse: WarehouseKey,
    /// `O_CARRIER_ID`, from 1 to 10.
    pub carrier: u32,
    /// `OL_DELIVERY_D`, in microseconds; never [`NOT_DELIVERED`](super::schema::NOT_DELIVERED).
    pub delivery_date: i64,
}

/// The input of Stock-Level (clause 2.8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockLevelInput {
    /// The terminal's district.
    pub district: DistrictKey,
    /// The quantity below which a stock is low, from 10 to 20.
    pub threshold: i32,
}

/// Type of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TransactionKind {
    /// New-Order (clause 2.4).
    NewOrder,
    /// Payment (clause 2.5).
    Payment,
    /// Order-Status (clause 2.6).
    OrderStatus,
    /// Delivery (clause 2.7).
    Delivery,
    /// Stock-Level (clause 2.8).
    StockLevel,
}

impl TransactionKind {
    /// All types, in the specification's order.
    pub(crate) const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];
}

/// A transaction to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// New-Order.
    NewOrder(NewOrderInput),
    /// Payment.
    Payment(PaymentInput),
    /// Order-Status.
    OrderStatus(OrderStatusInput),
    /// Delivery.
    Delivery(DeliveryInput),
    /// Stock-Level.
    StockLevel(StockLevelInput),
}

impl Input {
    /// Returns the type of the transaction.
    pub(crate) fn kind(&self) -> TransactionKind {
        match self {
            Self::NewOrder(_) => TransactionKind::NewOrder,
            Self::Payment(_) => TransactionKind::Payment,
            Self::OrderStatus(_) => TransactionKind::OrderStatus,
            Self::Delivery(_) => TransactionKind::Delivery,
            Self::StockLevel(_) => TransactionKind::StockLevel,
        }
    }
}

/// Shares of the types among the transactions drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mix {
    /// New-Order 45 %, Payment 43 %, the others 4 % each (clause 5.2.3).
    #[default]
    Full,
    /// New-Order only.
    NewOrder,
    /// New-Order and Payment, 45 to 43.
    NewOrderAndPayment,
    /// Payment only.
    Payment,
    /// Order-Status only.
    OrderStatus,
    /// Delivery only. It runs out of orders: each warehouse has 9,000 to deliver.
    Delivery,
    /// Stock-Level only.
    StockLevel,
}

/// Error for a name that no mix has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no TPC-C mix {name:?}; the mixes are full, new-order, new-order+payment, payment, order-status, delivery and stock-level"
)]
pub struct UnknownMix {
    /// The name asked for.
    pub name: String,
}

impl Mix {
    /// All mixes.
    pub(crate) const ALL: [Self; 7] = [
        Self::Full,
        Self::NewOrder,
        Self::NewOrderAndPayment,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// Returns the name in options and results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::NewOrder => "new-order",
            Self::NewOrderAndPayment => "new-order+payment",
            Self::Payment => "payment",
            Self::OrderStatus => "order-status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock-level",
        }
    }

    /// Returns the relative frequency of each type, in the order of [`TransactionKind::ALL`].
    pub(crate) fn weights(self) -> [u64; 5] {
        match self {
            Self::Full => [45, 43, 4, 4, 4],
            Self::NewOrder => [1, 0, 0, 0, 0],
            Self::NewOrderAndPayment => [45, 43, 0, 0, 0],
            Self::Payment => [0, 1, 0, 0, 0],
            Self::OrderStatus => [0, 0, 1, 0, 0],
            Self::Delivery => [0, 0, 0, 1, 0],
            Self::StockLevel => [0, 0, 0, 0, 1],
        }
    }

    /// Draws the type of the next transaction.
    pub(crate) fn draw(self, random: &mut Random) -> TransactionKind {
        let weights = self.weights();
        let mut drawn = random.below(weights.iter().sum());
        for (kind, weight) in TransactionKind::ALL.into_iter().zip(weights) {
            if drawn < weight {
                return kind;
            }
            drawn -= weight;
        }
        TransactionKind::NewOrder
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mix {
    type Err = UnknownMix;

    fn from_str(name: &str) -> Result<Self, UnknownMix> {
        let mix = Self::ALL.into_iter().find(|mix| mix.name() == name);
        mix.ok_or_else(|| UnknownMix { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_fifteenth_are_left_out() {
        let line = |item| LineInput { item, supply_warehouse: 1, quantity: 2 };
        let lines: Lines = (1..=20).map(line).collect();
        assert_eq!(lines.len(), 15);
        assert_eq!(lines[14], line(15));
        assert_eq!((1..=2).map(line).collect::<Lines>()[..], [line(1), line(2)]);
    }

    #[test]
    fn an_order_is_all_local_until_one_line_comes_from_elsewhere() {
        let line = |supply_warehouse| LineInput { item: 1, supply_warehouse, quantity: 2 };
        let order = |lines: &[LineInput]| NewOrderInput {
            customer: CustomerKey { warehouse: 3, district: 1, customer: 1 },
            lines: lines.iter().copied().collect(),
            rolls_back: false,
            entry_date: 1,
        };
        assert!(order(&[line(3), line(3)]).all_local());
        assert!(!order(&[line(3), line(2)]).all_local());
        assert_eq!(order(&[]).district(), DistrictKey { warehouse: 3, district: 1 });
    }

    #[test]
    fn mixes_are_found_by_their_names_and_draw_by_their_weights() {
        for mix in Mix::ALL {
            assert_eq!(mix.to_string().parse(), Ok(mix));
            let random = &mut Random::seeded(1);
            let mut drawn = [0u64; 5];
            for _ in 0..20_000 {
                drawn[mix.draw(random) as usize] += 1;
            }
            let sum: u64 = mix.weights().iter().sum();
            for (drawn, weight) in drawn.into_iter().zip(mix.weights()) {
                let expected = 20_000 * weight / sum;
                assert!(drawn.abs_diff(expected) <= expected / 5, "{mix}: {drawn} instead of {expected}");
            }
        }
        let error = "new_order".parse::<Mix>().unwrap_err();
        assert!(
            error.to_string().contains("\"new_order\"") && error.to_string().contains("new-order+payment")
        );
    }
}
