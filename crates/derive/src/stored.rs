//! `#[derive(Stored)]`.

use crate::attributes;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, LitStr, Result, Type, parse_quote,
};

/// The facts that `#[stored(...)]` tells of a type, a field or a variant.
#[derive(Default)]
struct Options {
    /// The type as which values are stored.
    form: Option<Type>,
    codec: Option<Type>,
    default: Option<Expr>,
    aliases: Vec<LitStr>,
}

/// The place of an attribute.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Type,
    NamedField,
    NumberedField,
    Variant,
}

impl Place {
    /// The options that it knows.
    fn known(self) -> &'static str {
        match self {
            Self::Type => "a type has the option `as = \"TYPE\"`",
            Self::NamedField => {
                "a field has the options `default`, `default = EXPRESSION`, `alias = \"NAME\"` and `with = \"CODEC\"`"
            }
            Self::NumberedField => "a field without a name has the option `with = \"CODEC\"`",
            Self::Variant => "a variant has the option `alias = \"NAME\"`",
        }
    }
}

fn options(attributes: &[Attribute], place: Place) -> Result<Options> {
    let mut options = Options::default();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("stored")) {
        attribute.parse_nested_meta(|meta| {
            let again = || Err(meta.error("this option is given twice"));
            if meta.path.is_ident("as") && place == Place::Type {
                if options.form.replace(meta.value()?.parse::<LitStr>()?.parse()?).is_some() {
                    return again();
                }
            } else if meta.path.is_ident("with") && matches!(place, Place::NamedField | Place::NumberedField)
            {
                if options.codec.replace(meta.value()?.parse::<LitStr>()?.parse()?).is_some() {
                    return again();
                }
            } else if meta.path.is_ident("default") && place == Place::NamedField {
                let default = if meta.input.peek(syn::Token![=]) {
                    meta.value()?.parse()?
                } else {
                    parse_quote!(::core::default::Default::default())
                };
                if options.default.replace(default).is_some() {
                    return again();
                }
            } else if meta.path.is_ident("alias") && matches!(place, Place::NamedField | Place::Variant) {
                options.aliases.push(meta.value()?.parse()?);
            } else {
                return Err(meta.error(format!("unknown option: {}", place.known())));
            }
            Ok(())
        })?;
    }
    Ok(options)
}

/// The fields of a struct or variant.
struct Parts {
    fields: Vec<Part>,
}

struct Part {
    /// `name`, or its number.
    member: syn::Member,
    name: String,
    ty: Type,
    codec: TokenStream,
    options: Options,
}

impl Parts {
    fn new(fields: &Fields, stored: &TokenStream) -> Result<Self> {
        let part = |(member, field): (syn::Member, &Field)| {
            let (name, place) = match &member {
                syn::Member::Named(name) => (name.unraw().to_string(), Place::NamedField),
                syn::Member::Unnamed(index) => (index.index.to_string(), Place::NumberedField),
            };
            let options = options(&field.attrs, place)?;
            let ty = field.ty.clone();
            let codec = match &options.codec {
                Some(codec) => quote_spanned! { codec.span() => <#codec as #stored::Codec<#ty>> },
                None => quote_spanned! { ty.span() => <#ty as #stored::Stored> },
            };
            Ok(Part { member, name, ty, codec, options })
        };
        let fields = fields.members().zip(fields).map(part).collect::<Result<Vec<_>>>()?;
        let mut names: Vec<(String, proc_macro2::Span)> = Vec::new();
        for part in &fields {
            let aliases = part.options.aliases.iter().map(|alias| (alias.value(), alias.span()));
            for (name, span) in [(part.name.clone(), part.ty.span())].into_iter().chain(aliases) {
                if names.iter().any(|(known, _)| *known == name) {
                    return Err(Error::new(
                        span,
                        format!("`{name}` is already the name or an alias of another field"),
                    ));
                }
                names.push((name, span));
            }
        }
        Ok(Self { fields })
    }

    /// A `Vec` of `Field`s.
    fn schema(&self, stored: &TokenStream) -> TokenStream {
        let fields = self.fields.iter().map(|Part { name, ty, codec, options, .. }| {
            let aliases = &options.aliases;
            let default = options.default.as_ref().map(|default| {
                quote! { .default(|to| { let value: #ty = #default; #codec::put(&value, to); }) }
            });
            quote! { #stored::Field::new(#name, #codec::schema(types)) #(.alias(#aliases))* #default }
        });
        quote! { ::std::vec![#(#fields),*] }
    }

    fn get(&self) -> TokenStream {
        let fields =
            self.fields.iter().map(|Part { member, codec, .. }| quote! { #member: #codec::get(from)? });
        quote! { { #(#fields),* } }
    }

    fn names(&self) -> Vec<Ident> {
        (0..self.fields.len()).map(|at| format_ident!("field_{at}")).collect()
    }
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let facade = attributes::facade(input)?;
    let stored = quote!(#facade::stored);
    let Options { form, .. } = options(&input.attrs, Place::Type)?;
    let (fields, body) = match (&form, &input.data) {
        (Some(form), _) => (quote!(), as_form(form, &stored)),
        (None, Data::Struct(data)) => {
            of_struct(input, &Parts::new(&data.fields, &stored)?, &data.fields, &stored)
        }
        (None, Data::Enum(data)) => (quote!(), of_enum(input, data, &stored)?),
        (None, Data::Union(data)) => {
            return Err(Error::new_spanned(data.union_token, "a union cannot derive `Stored`: use an enum"));
        }
    };
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#stored::Stored));
    }
    if let Some(lifetime) = generics.lifetimes().next() {
        return Err(Error::new_spanned(
            lifetime,
            "a stored type has no lifetimes, because it owns all that it has: use `String` for `&str`, say",
        ));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #parameters #stored::Stored for #name #arguments #conditions {
            #fields
            #body
        }
    })
}

/// The signatures of the trait's functions, around their bodies.
fn functions(
    stored: &TokenStream,
    schema: &TokenStream,
    put: &TokenStream,
    get: &TokenStream,
) -> TokenStream {
    quote! {
        fn schema(types: &mut #stored::SchemaBuilder) -> #stored::Type {
            #schema
        }

        #[inline]
        fn put(&self, to: &mut #stored::Writer<'_>) {
            #put
        }

        #[inline]
        fn get(from: &mut #stored::Reader<'_>) -> ::core::result::Result<Self, #stored::Malformed> {
            #get
        }
    }
}

fn as_form(form: &Type, stored: &TokenStream) -> TokenStream {
    let codec =
        quote_spanned! { form.span() => <#stored::With<#stored::AsForm<#form>> as #stored::Codec<Self>> };
    let (schema, put, get) =
        (quote!(#codec::schema(types)), quote!(#codec::put(self, to)), quote!(#codec::get(from)));
    functions(stored, &schema, &put, &get)
}

fn of_struct(
    input: &DeriveInput,
    parts: &Parts,
    fields: &Fields,
    stored: &TokenStream,
) -> (TokenStream, TokenStream) {
    let content = parts.schema(stored);
    let schema = quote! { types.define::<Self>(|types| #stored::Definition::Struct(#content)) };
    // Fields of a packed struct cannot be borrowed.
    let is_packed = attributes::is_packed(input);
    let put_one = |Part { member, codec, .. }: &Part| match is_packed {
        true => quote! { #codec::put(&{ self.#member }, to) },
        false => quote! { #codec::put(&self.#member, to) },
    };
    let puts: Vec<_> = parts.fields.iter().map(put_one).collect();
    let put = quote! { to.nested(|to| { let _ = &to; #(#puts;)* }) };
    let get = parts.get();
    let get = quote! { from.nested(|from| { let _ = &from; ::core::result::Result::Ok(Self #get) }) };
    let apart = match fields {
        Fields::Named(named) if !named.named.is_empty() => {
            let count = puts.len();
            let numbers = 0..count;
            quote! {
                const FIELDS: ::core::primitive::usize = #count;

                #[inline]
                fn put_field(&self, field: ::core::primitive::usize, to: &mut #stored::Writer<'_>) {
                    to.nested(|to| match field {
                        #(#numbers => #puts,)*
                        _ => (),
                    });
                }
            }
        }
        _ => quote!(),
    };
    (apart, functions(stored, &schema, &put, &get))
}

fn of_enum(input: &DeriveInput, data: &syn::DataEnum, stored: &TokenStream) -> Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(
            &input.ident,
            "an enum without variants cannot derive `Stored`, because it has no values",
        ));
    }
    let (mut variants, mut puts, mut gets) = (Vec::new(), Vec::new(), Vec::new());
    let mut names: Vec<String> = Vec::new();
    for (number, variant) in data.variants.iter().enumerate() {
        let (ident, number) = (&variant.ident, number as u64);
        let options = options(&variant.attrs, Place::Variant)?;
        let (name, aliases) = (ident.unraw().to_string(), &options.aliases);
        for (known, span) in [(name.clone(), ident.span())]
            .into_iter()
            .chain(aliases.iter().map(|alias| (alias.value(), alias.span())))
        {
            if names.contains(&known) {
                return Err(Error::new(
                    span,
                    format!("`{known}` is already the name or an alias of another variant"),
                ));
            }
            names.push(known);
        }
        let parts = Parts::new(&variant.fields, stored)?;
        let content = parts.schema(stored);
        variants.push(quote! { #stored::Variant::new(#name, #content) #(.alias(#aliases))* });
        let (fields, members) = (parts.names(), parts.fields.iter().map(|part| &part.member));
        let codecs = parts.fields.iter().map(|part| &part.codec);
        puts.push(quote! {
            Self::#ident { #(#members: #fields),* } => { to.number(#number); #(#codecs::put(#fields, to);)* }
        });
        let get = parts.get();
        gets.push(quote! { #number => Self::#ident #get });
    }
    let schema =
        quote! { types.define::<Self>(|types| #stored::Definition::Enum(::std::vec![#(#variants),*])) };
    let put = quote! { to.nested(|to| match self { #(#puts)* }) };
    let get = quote! {
        from.nested(|from| ::core::result::Result::Ok(match from.number()? {
            #(#gets,)*
            number => return ::core::result::Result::Err(#stored::Malformed::variant(number)),
        }))
    };
    Ok(functions(stored, &schema, &put, &get))
}
