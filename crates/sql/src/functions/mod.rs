//! Functions and aggregates of SQL.

mod accumulators;
mod aggregate;
mod arrays;
mod catalog;
mod digest;
mod environment;
mod formatting;
mod function;
mod number_format;
mod numbers;
mod privileges;
mod registry;
mod search;
mod strings;
mod system;
#[cfg(test)]
mod tests;
mod time_fields;
mod time_format;
mod times;
mod variances;

pub use accumulators::Accumulator;
pub use aggregate::{Aggregate, is_aggregate, lookup_aggregate};
pub use environment::{CatalogNames, Environment, SessionSettings};
pub use function::{Function, Parameter, Volatility};
pub use registry::{is_function, lookup};
