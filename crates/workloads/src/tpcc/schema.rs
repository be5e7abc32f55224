//! The nine tables of TPC-C, revision 5.11, clause 1.3: keys and rows.
//!
//! A key holds the columns of a table's primary key, a row all other columns. The specification also finds rows by
//! other columns: a customer by last name, a customer's latest order. These have keys of their own:
//! [`CustomerByNameKey`], [`OrderByCustomerKey`].
//!
//! # Representation
//!
//! - Money is an `i64` of cents; taxes and discounts are `i32`s of ten-thousandths.
//! - A date and time is an `i64` of microseconds. Microsecond 0 stands for null ([`NOT_DELIVERED`]); no event of a
//!   run has this date.
//! - Numbers of warehouses, districts, customers, items, orders and lines start at 1.
//! - Rows are plain data without padding, so that they can be inline in their segments. For this, a few texts have
//!   a capacity a little above the specification's; their documentation gives the specification's length.
//! - Columns that change apart are in groups of their own ([`hotrow::Table::update_columns`]): the year-to-date balances, which Payment adds to;
//!   what New-Order takes of a district; a customer's account. What is left of a row hardly ever changes.
//! - Every key except the two secondary ones fits one 64-bit word; a warehouse number takes 16 bits, an order
//!   number 32.

mod keys;

pub use keys::{
    CustomerByNameKey, CustomerKey, DistrictKey, HistoryKey, ItemKey, NewOrderKey, OrderByCustomerKey,
    OrderKey, OrderLineKey, StockKey, WarehouseKey,
};

use hotrow::{Stored, Text, Value};

/// The unit of money, in cents.
pub const DOLLAR: i64 = 100;

/// Number of districts of a warehouse (clause 1.2.1).
pub(crate) const DISTRICTS_PER_WAREHOUSE: u8 = 10;

/// Largest number of lines of an order (clause 2.4.1.3).
pub(crate) const LINES_MAX: usize = 15;

/// The null of [`OrderLine::delivery_date`]: the order has not been delivered.
pub const NOT_DELIVERED: i64 = 0;

/// The null of [`Order::carrier`]: the order has not been delivered.
pub const NO_CARRIER: u32 = 0;

/// Length to which `C_DATA` is cut when a payment is noted in it (clause 2.5.2.2).
pub(crate) const CUSTOMER_DATA_MAX: usize = 500;

/// A row of WAREHOUSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct Warehouse {
    /// `W_NAME`, up to 10 characters.
    pub name: Text<12>,
    /// `W_STREET_1`.
    pub street_1: Text<20>,
    /// `W_STREET_2`.
    pub street_2: Text<20>,
    /// `W_CITY`.
    pub city: Text<20>,
    /// `W_STATE`.
    pub state: Text<2>,
    /// `W_ZIP`, 9 digits.
    pub zip: Text<10>,
    /// `W_TAX`, in ten-thousandths.
    pub tax: i32,
    /// `W_YTD`: the year-to-date balance, in cents.
    #[value(group = "year_to_date")]
    pub year_to_date: i64,
}

/// A row of DISTRICT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct District {
    /// `D_NAME`, up to 10 characters.
    pub name: Text<16>,
    /// `D_STREET_1`.
    pub street_1: Text<20>,
    /// `D_STREET_2`.
    pub street_2: Text<20>,
    /// `D_CITY`.
    pub city: Text<20>,
    /// `D_STATE`.
    pub state: Text<2>,
    /// `D_ZIP`, 9 digits.
    pub zip: Text<10>,
    /// `D_TAX`, in ten-thousandths. New-Order reads it whenever it takes an order's number.
    #[value(group = "orders")]
    pub tax: i32,
    /// `D_YTD`: the year-to-date balance, in cents.
    #[value(group = "year_to_date")]
    pub year_to_date: i64,
    /// `D_NEXT_O_ID`: the number of the next order.
    #[value(group = "orders")]
    pub next_order: u32,
}

/// A row of CUSTOMER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct Customer {
    /// `C_FIRST`.
    pub first: Text<16>,
    /// `C_MIDDLE`, 2 characters.
    pub middle: Text<4>,
    /// `C_LAST`.
    pub last: Text<16>,
    /// `C_STREET_1`.
    pub street_1: Text<20>,
    /// `C_STREET_2`.
    pub street_2: Text<20>,
    /// `C_CITY`.
    pub city: Text<20>,
    /// `C_STATE`.
    pub state: Text<2>,
    /// `C_ZIP`, 9 digits.
    pub zip: Text<10>,
    /// `C_PHONE`, 16 digits.
    pub phone: Text<16>,
    /// `C_SINCE`.
    pub since: i64,
    /// `C_CREDIT`: `"GC"` for good, `"BC"` for bad; see [`Customer::has_bad_credit`].
    #[value(group = "account")]
    pub credit: Text<4>,
    /// `C_CREDIT_LIM`, in cents.
    pub credit_limit: i64,
    /// `C_DISCOUNT`, in ten-thousandths.
    pub discount: i32,
    /// `C_BALANCE`, in cents.
    #[value(group = "account")]
    pub balance: i64,
    /// `C_YTD_PAYMENT`, in cents.
    #[value(group = "account")]
    pub year_to_date_payment: i64,
    /// `C_PAYMENT_CNT`.
    #[value(group = "account")]
    pub payment_count: u32,
    /// `C_DELIVERY_CNT`.
    #[value(group = "account")]
    pub delivery_count: u32,
    /// `C_DATA`.
    #[value(group = "account")]
    pub data: Text<CUSTOMER_DATA_MAX>,
}

impl Customer {
    /// True if `C_CREDIT` is `"BC"`: payments are then noted in `C_DATA` (clause 2.5.2.2).
    pub fn has_bad_credit(&self) -> bool {
        is_bad(self.credit)
    }
}

/// True if a customer's credit is bad.
pub(crate) fn is_bad(credit: Text<4>) -> bool {
    credit == "BC"
}

/// A row of HISTORY: a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct History {
    /// `H_C_W_ID`: the customer's warehouse.
    pub customer_warehouse: u16,
    /// `H_C_ID`.
    pub customer: u16,
    /// `H_W_ID`: the warehouse that was paid.
    pub warehouse: u16,
    /// `H_C_D_ID`: the customer's district.
    pub customer_district: u8,
    /// `H_D_ID`: the district that was paid.
    pub district: u8,
    /// `H_DATE`.
    pub date: i64,
    /// `H_AMOUNT`, in cents.
    pub amount: i64,
    /// `H_DATA`.
    pub data: Text<24>,
}

/// A row of NEW-ORDER. All its columns are in the key; a row means that the order waits for delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct NewOrder {}

/// A row of ORDER.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct Order {
    /// `O_ENTRY_D`.
    pub entry_date: i64,
    /// `O_CARRIER_ID`, from 1 to 10, or [`NO_CARRIER`].
    pub carrier: u32,
    /// `O_C_ID`.
    pub customer: u16,
    /// `O_OL_CNT`: the number of the order's lines.
    pub line_count: u8,
    /// `O_ALL_LOCAL`: 1 if all lines are supplied by the order's own warehouse, else 0.
    pub all_local: u8,
}

impl Order {
    /// True if the order has a carrier; Delivery sets it.
    pub(crate) fn is_delivered(&self) -> bool {
        self.carrier != NO_CARRIER
    }
}

/// A row of ORDER-LINE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct OrderLine {
    /// `OL_I_ID`.
    pub item: u32,
    /// `OL_SUPPLY_W_ID`.
    pub supply_warehouse: u16,
    /// `OL_QUANTITY`.
    pub quantity: u16,
    /// `OL_DELIVERY_D`, or [`NOT_DELIVERED`].
    pub delivery_date: i64,
    /// `OL_AMOUNT`, in cents.
    pub amount: i64,
    /// `OL_DIST_INFO`.
    pub district_info: Text<24>,
}

impl OrderLine {
    /// True if the line has a delivery date.
    pub(crate) fn is_delivered(&self) -> bool {
        self.delivery_date != NOT_DELIVERED
    }
}

/// A row of ITEM. No transaction changes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct Item {
    /// `I_IM_ID`.
    pub image: u32,
    /// `I_NAME`.
    pub name: Text<24>,
    /// `I_PRICE`, in cents.
    pub price: i64,
    /// `I_DATA`, up to 50 characters.
    pub data: Text<52>,
}

/// A row of STOCK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Value, Stored)]
#[value(inline)]
pub struct Stock {
    /// `S_QUANTITY`.
    pub quantity: i32,
    /// `S_ORDER_CNT`.
    pub order_count: u32,
    /// `S_REMOTE_CNT`.
    pub remote_count: u32,
    /// `S_YTD`: the quantity sold this year.
    pub year_to_date: u64,
    /// `S_DIST_01` to `S_DIST_10`.
    pub district_info: [Text<24>; DISTRICTS_PER_WAREHOUSE as usize],
    /// `S_DATA`, up to 50 characters.
    pub data: Text<52>,
}
