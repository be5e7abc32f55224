//! The attributes of the macros: `#[value(...)]` and `#[hotrow(crate = "path")]`.

use syn::{Attribute, Data, DeriveInput, Error, Field, Ident, LitStr, Path, Result, parse_quote};

/// The placement of values in a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Placement {
    /// Behind a pointer.
    #[default]
    Boxed,
    /// In place.
    Inline,
}

/// The path by which the generated code names the facade.
pub(crate) fn facade(input: &DeriveInput) -> Result<Path> {
    let mut facade = None;
    for attribute in named(&input.attrs, "hotrow") {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("unknown option: the only one is `#[hotrow(crate = \"path\")]`"));
            }
            let path: LitStr = meta.value()?.parse()?;
            if facade.replace(path.parse::<Path>()?).is_some() {
                return Err(meta.error("`crate` is given twice"));
            }
            Ok(())
        })?;
    }
    refuse_inside(input, "hotrow")?;
    Ok(facade.unwrap_or_else(|| parse_quote!(::hotrow)))
}

/// The options that `#[value(...)]` gives a type.
pub(crate) struct Place {
    pub(crate) placement: Placement,
    /// True if a generic type is said to be stored, because it cannot be asked.
    pub(crate) is_stored: bool,
}

pub(crate) fn place(input: &DeriveInput) -> Result<Place> {
    let (mut placement, mut is_stored): (Option<Placement>, _) = (None, false);
    for attribute in named(&input.attrs, "value") {
        if attribute.meta.require_list()?.tokens.is_empty() {
            return Err(Error::new_spanned(attribute, "expected `#[value(inline)]` or `#[value(boxed)]`"));
        }
        attribute.parse_nested_meta(|meta| {
            let named = if meta.path.is_ident("inline") {
                Placement::Inline
            } else if meta.path.is_ident("boxed") {
                Placement::Boxed
            } else if meta.path.is_ident("stored") && !input.generics.params.is_empty() {
                is_stored = true;
                return Ok(());
            } else {
                return Err(meta.error("unknown option: write `#[value(inline)]` or `#[value(boxed)]`"));
            };
            if placement.replace(named).is_some() {
                return Err(meta
                    .error("more than one placement: write either `#[value(inline)]` or `#[value(boxed)]`"));
            }
            Ok(())
        })?;
    }
    let placement = placement.unwrap_or_default();
    if let (Data::Struct(data), Placement::Inline) = (&input.data, placement) {
        data.fields.iter().try_for_each(|field| group(field).map(drop))?;
    } else {
        refuse_inside(input, "value")?;
    }
    Ok(Place { placement, is_stored })
}

/// The column group that `#[value(group = "name")]` names for a field of an inline struct.
pub(crate) fn group(field: &Field) -> Result<Option<LitStr>> {
    let mut group = None;
    for attribute in named(&field.attrs, "value") {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("group") {
                return Err(
                    meta.error("unknown option: the only one of a field is `#[value(group = \"name\")]`")
                );
            }
            let name: LitStr = meta.value()?.parse()?;
            if name.value().is_empty() {
                return Err(Error::new_spanned(
                    name,
                    "empty name: a column group needs a name, such as `group = \"hot\"`",
                ));
            }
            if group.replace(name).is_some() {
                return Err(meta.error("more than one group: a column is in one group only"));
            }
            Ok(())
        })?;
    }
    Ok(group)
}

fn named<'a>(attributes: &'a [Attribute], name: &'a str) -> impl Iterator<Item = &'a Attribute> {
    attributes.iter().filter(move |attribute| attribute.path().is_ident(name))
}

/// Returns an error for an attribute on a field or a variant, where it would have no effect.
fn refuse_inside(input: &DeriveInput, name: &str) -> Result<()> {
    match &input.data {
        Data::Struct(data) => data.fields.iter().try_for_each(|field| refuse(&field.attrs, name)),
        Data::Enum(data) => data.variants.iter().try_for_each(|variant| {
            refuse(&variant.attrs, name)?;
            variant.fields.iter().try_for_each(|field| refuse(&field.attrs, name))
        }),
        Data::Union(data) => data.fields.named.iter().try_for_each(|field| refuse(&field.attrs, name)),
    }
}

fn refuse(attributes: &[Attribute], name: &str) -> Result<()> {
    match named(attributes, name).next() {
        None => Ok(()),
        Some(attribute) => {
            let except = if name == "value" {
                "\na field takes `#[value(group = \"name\")]` only, in a struct with `#[value(inline)]`"
            } else {
                ""
            };
            Err(Error::new_spanned(attribute, format!("`#[{name}(...)]` belongs on the type{except}")))
        }
    }
}

/// The integer type that `#[repr(...)]` names, if any.
pub(crate) fn integer_repr(input: &DeriveInput) -> Result<Option<Ident>> {
    const INTEGERS: [&str; 10] = ["u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize"];
    let mut repr = None;
    for attribute in named(&input.attrs, "repr") {
        attribute.parse_nested_meta(|meta| {
            if let Some(ident) = meta.path.get_ident()
                && INTEGERS.iter().any(|integer| ident == integer)
            {
                repr = Some(ident.clone());
            }
            if meta.input.peek(syn::token::Paren) {
                // The argument of `align(8)` or `packed(2)` is skipped.
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(repr)
}

/// True if the type's fields may lie at addresses that are not aligned, so that they cannot be borrowed.
pub(crate) fn is_packed(input: &DeriveInput) -> bool {
    named(&input.attrs, "repr").any(|attribute| {
        let options = attribute.meta.require_list().map(|list| list.tokens.to_string());
        options.is_ok_and(|options| options.contains("packed"))
    })
}
