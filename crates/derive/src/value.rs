//! `#[derive(Value)]`.

use crate::attributes::{self, Placement};
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Fields, Path, Result, Type, parse_quote};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let facade = attributes::facade(input)?;
    let attributes::Place { placement, is_stored } = attributes::place(input)?;
    match placement {
        Placement::Boxed => Ok(boxed(input, &facade, is_stored)),
        Placement::Inline => inline(input, &facade),
    }
}

fn boxed(input: &DeriveInput, facade: &Path, is_stored: bool) -> TokenStream {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        // The type arguments decide whether the type meets the trait's bounds, so these become a condition.
        generics.make_where_clause().predicates.push(parse_quote! {
            Self: ::core::clone::Clone + ::core::marker::Send + ::core::marker::Sync + 'static
        });
    }
    let is_generic = !generics.params.is_empty();
    if is_generic && is_stored {
        generics.make_where_clause().predicates.push(parse_quote!(Self: #facade::stored::Stored));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let heap_bytes = heap_bytes(input, facade);
    let stored = (!is_generic || is_stored).then(|| stored(facade, is_stored));
    quote! {
        #[automatically_derived]
        impl #parameters #facade::Value for #name #arguments #conditions {
            type Cell = #facade::cell::Boxed<Self>;
            #stored
            #heap_bytes
        }
    }
}

/// Generates `stored`, of `Value` or `Key`. The compiler is asked whether the type derives `Stored`, unless it is said.
pub(crate) fn stored(facade: &Path, is_said: bool) -> TokenStream {
    let stored = quote!(#facade::stored);
    let form = match is_said {
        true => quote!(::core::option::Option::Some(#stored::StoredForm::of())),
        false => quote! {
            #[allow(unused_imports)]
            use #stored::{IsNotStored as _, IsStored as _};
            (&#stored::Probe::<Self>::new()).stored()
        },
    };
    quote! {
        #[inline]
        #[allow(clippy::needless_borrow)]
        fn stored() -> ::core::option::Option<#stored::StoredForm<Self>> {
            #form
        }
    }
}

/// Generates `Value::heap_bytes` as the sum over the fields. `None` for a type without fields, or whose fields cannot
/// be borrowed one by one.
fn heap_bytes(input: &DeriveInput, facade: &Path) -> Option<TokenStream> {
    let variants: Vec<(TokenStream, &Fields)> = match &input.data {
        Data::Struct(data) => vec![(quote!(Self), &data.fields)],
        Data::Enum(data) if !data.variants.is_empty() => {
            let path = |ident: &syn::Ident| quote!(Self::#ident);
            data.variants.iter().map(|variant| (path(&variant.ident), &variant.fields)).collect()
        }
        Data::Enum(_) | Data::Union(_) => return None,
    };
    if attributes::is_packed(input) || variants.iter().all(|(_, fields)| fields.is_empty()) {
        return None;
    }
    let arms = variants.iter().map(|(path, fields)| {
        let members = fields.members();
        let names: Vec<_> = (0..fields.len()).map(|at| quote::format_ident!("field_{at}")).collect();
        quote! {
            #path { #(#members: #names),* } => 0usize #(.wrapping_add((&#facade::cell::Field(#names)).heap_bytes()))*
        }
    });
    Some(quote! {
        #[inline]
        #[allow(unused_imports, clippy::needless_borrow)]
        fn heap_bytes(&self) -> usize {
            use #facade::cell::{FieldIsUnknown as _, FieldIsValue as _};
            match self { #(#arms),* }
        }
    })
}

/// Generates the implementations of `Value` and `Plain`, and the assertions that make the implementation of `Plain`
/// sound.
fn inline(input: &DeriveInput, facade: &Path) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a generic type cannot be inline, because its arguments decide if it has padding\n\
             use `#[value(boxed)]`, or a type of its own for each argument",
        ));
    }
    let name = &input.ident;
    let no_padding = match &input.data {
        Data::Struct(data) => struct_checks(input, &data.fields, facade),
        Data::Enum(_) => enum_checks(input)?,
        Data::Union(data) => {
            return Err(Error::new_spanned(
                data.union_token,
                "a union cannot be inline, because it may hold padding: use `#[value(boxed)]`",
            ));
        }
    };
    let groups = column_groups(input, facade)?;
    let fields = fields(input, facade);
    let of_groups = groups.is_some().then(|| quote!(, Self));
    let stored = stored(facade, false);
    let too_aligned = format!(
        "`{name}` has an alignment above 8 bytes, the largest of an inline value\nlower it, or use `#[value(boxed)]`"
    );
    Ok(quote! {
        #[automatically_derived]
        impl #facade::Value for #name {
            type Cell = #facade::cell::Inline<Self #of_groups>;
            #fields
            #stored
        }

        #groups

        /// SAFETY: every field is `Plain`, so it has no padding and no pointers; and the fields' sizes add
        /// up to the type's, so there is no padding between or after them. (A field-less enum of a
        /// primitive representation has exactly that primitive's layout.) Both are asserted at compile time.
        #[automatically_derived]
        unsafe impl #facade::cell::Plain for #name {}

        const _: () = {
            #no_padding
            ::core::assert!(::core::mem::align_of::<#name>() <= 8, #too_aligned);
        };
    })
}

/// Generates `Value::FIELDS`. `None` for a type without named fields.
fn fields(input: &DeriveInput, facade: &Path) -> Option<TokenStream> {
    let Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) = &input.data else {
        return None;
    };
    let name = &input.ident;
    let fields = fields.named.iter().map(|field| {
        let (member, ty) = (&field.ident, &field.ty);
        let words = member.as_ref().map(syn::ext::IdentExt::unraw).map(|member| member.to_string());
        quote! {
            #facade::cell::ValueField {
                name: #words,
                offset: ::core::mem::offset_of!(#name, #member),
                bytes: ::core::mem::size_of::<#ty>(),
            }
        }
    });
    Some(quote! {
        const FIELDS: &'static [#facade::cell::ValueField] = &[#(#fields),*];
    })
}

/// Generates the implementation of `ColumnGroups`. `None` for a type whose columns are in no group.
fn column_groups(input: &DeriveInput, facade: &Path) -> Result<Option<TokenStream>> {
    let Data::Struct(data) = &input.data else { return Ok(None) };
    let mut names: Vec<String> = Vec::new();
    let mut columns = Vec::new();
    for (member, field) in data.fields.members().zip(&data.fields) {
        let Some(name) = attributes::group(field)? else { continue };
        let value = name.value();
        let number = names.iter().position(|known| *known == value).unwrap_or(names.len());
        if number == names.len() {
            names.push(value);
        }
        if names.len() > GROUPS_MAX {
            return Err(Error::new_spanned(name, format!("a row has at most {GROUPS_MAX} column groups")));
        }
        columns.push((number, member, &field.ty));
    }
    if columns.is_empty() {
        return Ok(None);
    }
    let name = &input.ident;
    let groups = names.len();
    let columns = columns.iter().map(|(number, member, ty)| {
        quote! {
            (
                #number,
                ::core::mem::offset_of!(#name, #member),
                ::core::mem::size_of::<#ty>(),
                ::core::mem::align_of::<#ty>(),
            )
        }
    });
    let core = quote!(#facade::cell::column_groups);
    Ok(Some(quote! {
        const _: () = {
            const COLUMNS: &[#core::GroupColumn] = &#core::GroupColumn::place([#(#columns),*]);
            const WORDS: ::core::primitive::usize = #core::GroupColumn::words(COLUMNS);

            /// SAFETY: the columns are fields of the struct, which is plain data, and each has got a place of its own.
            #[automatically_derived]
            unsafe impl #core::ColumnGroups<#name> for #name {
                const COLUMNS: &'static [#core::GroupColumn] = COLUMNS;
                const NAMES: &'static [&'static ::core::primitive::str] = &[#(#names),*];
                type Words = [::core::primitive::u64; WORDS];
                type Each<S: ::core::marker::Send + ::core::marker::Sync + 'static> = [S; #groups];
            }
        };
    }))
}

/// The most column groups, as the core has it.
const GROUPS_MAX: usize = 31;

fn struct_checks(input: &DeriveInput, fields: &Fields, facade: &Path) -> TokenStream {
    let name = &input.ident;
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    // The compiler reports a failed bound at the field's type.
    let plain = types.iter().map(|ty| quote_spanned! { ty.span() => __field_is_plain::<#ty>(); });
    let padded = format!(
        "`{name}` has padding, which an inline value must not have\n\
         fill it with a field such as `reserved: [u8; N]`; under `repr(C)`, also order the fields by size\n\
         or use `#[value(boxed)]`"
    );
    quote! {
        const fn __field_is_plain<F: #facade::cell::Plain>() {}
        #(#plain)*
        ::core::assert!(::core::mem::size_of::<#name>() == 0 #(+ ::core::mem::size_of::<#types>())*, #padded);
    }
}

fn enum_checks(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let Data::Enum(data) = &input.data else { unreachable!("called for enums") };
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new_spanned(
            variant,
            "an enum whose variants have fields cannot be inline, because it may hold padding\n\
             use `#[value(boxed)]`",
        ));
    }
    let Some(integer) = attributes::integer_repr(input)? else {
        return Err(Error::new_spanned(
            name,
            "an inline enum needs a fixed size: add `#[repr(u8)]`, or `repr` with another integer type",
        ));
    };
    let of_another_size = format!("`{name}` has another size than `{integer}`, which its `repr` names");
    Ok(quote! {
        ::core::assert!(
            ::core::mem::size_of::<#name>() == ::core::mem::size_of::<#integer>(),
            #of_another_size,
        );
    })
}
