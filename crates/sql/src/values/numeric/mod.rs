//! `numeric`: decimal numbers of any length.

mod arithmetic;
mod conversion;
mod logarithm;
mod number;
mod text;

pub(crate) use arithmetic::division_by_zero;
pub use number::Numeric;
