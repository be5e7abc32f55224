//! Derive macros for the types that Hotrow's objects and tables hold: [`Value`](macro@Value) for rows,
//! [`Key`](macro@Key) for keys, [`Stored`](macro@Stored) for what is stored durably.
//!
//! Use them through the facade, which exports each beside the trait of the same name, and whose guide has examples of each. (There is none
//! here: for tests of a macro's crate all of Hotrow would be compiled once more.) The generated code names the
//! facade by the path `::hotrow`. If the facade has another path, the type gives it with
//! `#[hotrow(crate = "path")]`.

mod attributes;
mod key;
mod stored;
mod value;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `Value`, which decides how a segment holds values of the type.
///
/// # Boxed (the default)
///
/// `#[derive(Clone, Value)]`, optionally with `#[value(boxed)]`, keeps each value behind a pointer. The type must
/// be `Clone + Send + Sync + 'static`. It may be generic; the implementation then holds for type arguments that meet
/// these bounds. The number of bytes that a value owns on the heap (`Value::heap_bytes`) is the sum over the fields
/// that are values themselves, or strings or bytes.
///
/// # Inline
///
/// `#[derive(Clone, Copy, Value)]` with `#[value(inline)]` keeps the value in its segment, as words that are
/// copied one by one. The type must be `Copy`. It must be a struct whose fields are all plain data (integers,
/// floats, `bool`, `char`, arrays and texts of these, other inline types), or an enum without fields that declares
/// its size (`#[repr(u8)]`). It must have no padding and an alignment of at most 8. All of this is checked at
/// compile time. To remove padding from a struct, add a field that fills the gap, or choose field sizes that leave
/// none.
///
/// # Durable databases
///
/// Rows of types that derive [`Stored`](macro@Stored), too, can be kept in a durable database. A generic type says that it does:
/// `#[value(stored)]`; it is a value then for the arguments with which it is stored.
///
/// # Column groups
///
/// In a table, the columns of an inline struct may conflict apart: `#[value(group = "name")]` at a field puts it into a group. Each group
/// has a segment of its own, found with the same lookup, and fields without the attribute are together the rest of the row. A
/// transaction that reads or changes columns of one group (`Table::read_columns`, `update_columns`, `add` and their like) does not
/// conflict with one that changes columns of another. Operations on whole rows put the row together from all its segments. See
/// the guide's chapter on hot rows.
#[proc_macro_derive(Value, attributes(value, hotrow))]
pub fn derive_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    value::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Key` for a struct or an enum: its fields become one order-preserving image, the first field most significant.
///
/// Each field is a part of a key: an integer, a `bool`, a `char`, an array of bytes, a text, a `String` or `Box<str>`, a
/// `Vec<u8>` or `Box<[u8]>`, an option or tuple of parts, or another type that derives `Key`. The type must also be
/// `Clone + Eq + Ord + Hash + Debug + Send + Sync`.
///
/// If all fields have a fixed size, they are packed into as few 64-bit words as they need. Otherwise the image is a string
/// of bytes.
///
/// # The order of the fields
///
/// The image orders keys field by field, in the order in which the fields are declared; those of an enum by their variant
/// first, in the order of declaration. `Ord` must use the same order, so derive it (`#[derive(PartialOrd, Ord)]`).
/// Otherwise an ordered table misplaces its rows. The variants of an enum that gives discriminants are declared in the
/// order of these.
#[proc_macro_derive(Key, attributes(hotrow))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives `Stored` for a struct or an enum: its complete schema, and its values as bytes. The trait's documentation has the
/// attributes.
#[proc_macro_derive(Stored, attributes(stored, hotrow))]
pub fn derive_stored(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    stored::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
