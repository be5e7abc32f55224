//! Operators: which is meant for operands of two types, and what it computes.

mod arrays;
mod comparisons;
mod numbers;
mod operator;
mod patterns;
mod prefix;
mod table;
mod times;

pub(crate) use arrays::{BYTES_MAX, too_long};
pub(crate) use numbers::power;
pub use operator::{BinaryFunction, Operation, Operator};
pub(crate) use patterns::regular_expression;
pub use patterns::{like, like_any_case};
pub use prefix::{PrefixOperation, PrefixOperator, resolve_prefix};
pub use table::{binary_operator, operator_type, resolve_operator};
pub(crate) use times::between;
