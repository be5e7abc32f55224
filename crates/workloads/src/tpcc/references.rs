//! The nine tables as procedures name them.

use super::schema::{
    Customer, CustomerByNameKey, CustomerKey, District, DistrictKey, History, HistoryKey, Item, ItemKey,
    NewOrder, NewOrderKey, Order, OrderByCustomerKey, OrderKey, OrderLine, OrderLineKey, Stock, StockKey,
    Warehouse, WarehouseKey,
};
use hotrow::{IndexRef, TableRef};

/// The tables and secondary indexes, by their references in procedures.
#[derive(Debug, Clone, Copy)]
pub struct Tables {
    /// WAREHOUSE.
    pub warehouse: TableRef<WarehouseKey, Warehouse>,
    /// DISTRICT.
    pub district: TableRef<DistrictKey, District>,
    /// CUSTOMER.
    pub customer: TableRef<CustomerKey, Customer>,
    /// CUSTOMER by last and first name.
    pub customer_by_name: IndexRef<CustomerByNameKey, CustomerKey, Customer>,
    /// HISTORY.
    pub history: TableRef<HistoryKey, History>,
    /// NEW-ORDER.
    pub new_order: TableRef<NewOrderKey, NewOrder>,
    /// ORDER.
    pub order: TableRef<OrderKey, Order>,
    /// ORDER by customer.
    pub order_by_customer: IndexRef<OrderByCustomerKey, OrderKey, Order>,
    /// ORDER-LINE.
    pub order_line: TableRef<OrderLineKey, OrderLine>,
    /// ITEM, which is immutable.
    pub item: TableRef<ItemKey, Item>,
    /// STOCK.
    pub stock: TableRef<StockKey, Stock>,
}
