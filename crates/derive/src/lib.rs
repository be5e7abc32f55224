//! Derive macros for the types that Hotrow's objects and tables hold: [`Value`](macro@Value) for rows,
//! [`Key`](macro@Key) for keys.
//!
//! Use them through the facade, which exports each beside the trait of the same name. The generated code
//! names the facade by the path `::hotrow`; a type that is defined where the facade is known by another name
//! says so with `#[hotrow(crate = "path")]`.

mod attributes;
mod key;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `Value`: how a segment holds values of the type.
///
/// # Boxed, the default
///
/// `#[derive(Clone, Value)]`, or `#[value(boxed)]` in so many words, keeps each value behind a pointer. The
/// type must be `Clone + Send + Sync + 'static`, and may be generic (the implementation then holds for those
/// arguments that make it so).
///
/// # Inline
///
/// `#[derive(Clone, Copy, Value)]` with `#[value(inline)]` keeps the value in its segment, as words that are
/// copied one by one. The type must be `Copy`; it must be a struct whose fields are all plain data
/// (integers, floats, `bool`, `char`, arrays and texts of these, other inline types), or an enum without
/// fields that says how large it is (`#[repr(u8)]`); it must have no padding and an alignment of at most 8.
/// All of this is checked when compiling. A struct with padding is mended by a further field that fills the
/// gap, or by fields whose sizes leave none.
///
/// ```
/// use hotrow::Value;
///
/// #[derive(Clone, Copy, Value)]
/// #[value(inline)]
/// struct Account {
///     balance: i64,
///     withdrawals: u32,
///     overdraws: u32,
/// }
///
/// #[derive(Clone, Value)]
/// struct Article {
///     title: String,
///     text: String,
/// }
/// ```
#[proc_macro_derive(Value, attributes(value, hotrow))]
pub fn derive_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    value::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Key` for a struct: its fields become one order-preserving image, the first field in the most
/// significant bits, in as few 64-bit words as they need.
///
/// Each field is a part of a key: an integer, a `bool`, a `char`, an array of bytes, a text, or another
/// struct that derives `Key`. The type must also be `Clone + Eq + Ord + Hash + Debug + Send + Sync`.
///
/// # The order of the fields
///
/// The image orders keys field by field, in the order in which the fields are declared. `Ord` must do the
/// same, so derive it (`#[derive(PartialOrd, Ord)]`); a hand-written `Ord` that compares otherwise makes an
/// ordered table misplace its rows.
///
/// ```
/// use hotrow::Key;
///
/// #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Key)]
/// struct OrderKey {
///     warehouse: u16,
///     district: u8,
///     order: u32,
/// }
/// ```
#[proc_macro_derive(Key, attributes(hotrow))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
