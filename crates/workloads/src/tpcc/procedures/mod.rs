//! The five transactions of TPC-C (clauses 2.4 to 2.8), each written once for every protocol and context.

mod customer;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

pub use delivery::DeliveryProcedure;
pub use new_order::{NewOrderProcedure, NewOrderReceipt};
pub use order_status::{OrderStatusProcedure, OrderSummary};
pub use payment::PaymentProcedure;
pub use stock_level::StockLevelProcedure;
