//! Values of SQL: types, text and binary forms, comparison, keys, casts, operators.

mod array_text;
mod binary_form;
pub(crate) mod calendar;
mod cast_rules;
pub(crate) mod casts;
mod compare;
mod datum;
pub(crate) mod interval;
mod interval_input;
mod key;
mod modifiers;
pub(crate) mod numeric;
mod operators;
pub(crate) mod resolution;
pub(crate) mod scalar_text;
mod sql_type;
pub(crate) mod text_form;
mod time_input;
mod time_scanner;
mod time_text;

pub use cast_rules::{CastContext, assignment_cast, can_cast, implicit_cast};
pub use casts::{assign, cast};
pub use compare::{compare, compare_as, equals, hash_into, hash_into_as};
pub use datum::Datum;
pub use interval::Interval;
pub use key::{decode_key, encode_key, encode_key_as};
pub use modifiers::{apply_modifier, modifier_of, modifier_text, type_text};
pub use numeric::Numeric;
pub(crate) use operators::{BYTES_MAX, between, power, regular_expression, too_long};
pub use operators::{
    BinaryFunction, Operation, Operator, PrefixOperation, PrefixOperator, binary_operator, like,
    like_any_case, operator_type, resolve_operator, resolve_prefix,
};
pub use resolution::common_type;
pub use sql_type::Type;
