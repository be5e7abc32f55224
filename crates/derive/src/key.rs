//! `#[derive(Key)]`.

use crate::attributes;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DataEnum, DeriveInput, Error, Fields, Path, Result};

/// The body of an implementation of `KeyPart`.
struct Part {
    bits: TokenStream,
    pack: TokenStream,
    encode: TokenStream,
    heap_bytes: TokenStream,
    /// Assertions beside the implementation.
    checks: TokenStream,
}

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let facade = attributes::facade(input)?;
    let name = &input.ident;
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a generic type cannot derive `Key`, because the size of its image depends on its arguments\n\
             use a type of its own for each argument",
        ));
    }
    let keys = quote!(#facade::key);
    let Part { bits, pack, encode, heap_bytes, checks } = match &input.data {
        Data::Struct(data) => of_struct(&data.fields, &facade),
        Data::Enum(data) if data.variants.is_empty() => {
            return Err(Error::new_spanned(
                name,
                "an enum without variants cannot derive `Key`, because it has no values",
            ));
        }
        Data::Enum(data) => of_enum(input, data, &facade)?,
        Data::Union(data) => {
            return Err(Error::new_spanned(data.union_token, "a union cannot derive `Key`: use an enum"));
        }
    };
    let stored = crate::value::stored(&facade, false);
    let made = quote! {
        #keys::DerivedImage<
            { <Self as #keys::KeyPart>::BITS == #keys::LONG },
            { #keys::words(<Self as #keys::KeyPart>::BITS) },
        >
    };
    Ok(quote! {
        #[automatically_derived]
        impl #keys::KeyPart for #name {
            const BITS: usize = #bits;
            #[inline(always)]
            fn pack(&self, packer: &mut #keys::Packer<'_>) {
                let _ = &packer;
                #pack
            }
            #[inline]
            fn encode(&self, encoder: &mut #keys::Encoder) {
                let _ = &encoder;
                #encode
            }
            fn heap_bytes(&self) -> usize {
                #heap_bytes
            }
        }

        #[automatically_derived]
        impl #facade::Key for #name {
            type Image = <#made as #keys::MakeImage>::Image;
            #stored
            #[inline(always)]
            fn image(&self) -> #keys::ImageOf<'_, Self> {
                <#made as #keys::MakeImage>::image(self)
            }
            fn heap_bytes(&self) -> usize {
                #keys::KeyPart::heap_bytes(self)
            }
        }

        #checks
    })
}

/// The number of bits of fields, one after the other.
fn bits_of(fields: &Fields, facade: &Path) -> TokenStream {
    let bits = fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned! { ty.span() => <#ty as #facade::key::KeyPart>::BITS }
    });
    quote!(0usize #(.saturating_add(#bits))*)
}

fn of_struct(fields: &Fields, facade: &Path) -> Part {
    let part = quote!(#facade::key::KeyPart);
    let call = |method: TokenStream, argument: TokenStream| {
        let calls = fields.members().zip(fields).map(|(member, field)| {
            let ty = &field.ty;
            quote_spanned! { ty.span() => <#ty as #part>::#method(&self.#member #argument) }
        });
        calls.collect::<Vec<_>>()
    };
    let (pack, encode) = (call(quote!(pack), quote!(, packer)), call(quote!(encode), quote!(, encoder)));
    let heap_bytes = call(quote!(heap_bytes), quote!());
    Part {
        bits: bits_of(fields, facade),
        pack: quote!(#(#pack;)*),
        encode: quote!(#(#encode;)*),
        heap_bytes: quote!(0usize #(.wrapping_add(#heap_bytes))*),
        checks: TokenStream::new(),
    }
}

/// The number of the variant, then its fields. Where the size is fixed, variants with fewer bits are filled up, so that what
/// follows has its place.
fn of_enum(input: &DeriveInput, data: &DataEnum, facade: &Path) -> Result<Part> {
    let keys = quote!(#facade::key);
    let checks = discriminant_checks(input, data)?;
    let variants = data.variants.len();
    let variant_bits = quote!(#keys::variant_bits(#variants));
    let bits: Vec<_> = data.variants.iter().map(|variant| bits_of(&variant.fields, facade)).collect();
    let arms = |body: &dyn Fn(usize, &Fields, &[syn::Ident]) -> TokenStream| {
        let arms = data.variants.iter().enumerate().map(|(number, variant)| {
            let (ident, members) = (&variant.ident, variant.fields.members());
            let fields: Vec<_> = (0..variant.fields.len()).map(|at| format_ident!("field_{at}")).collect();
            let body = body(number, &variant.fields, &fields);
            quote! { Self::#ident { #(#members: #fields),* } => { #body } }
        });
        quote! { match self { #(#arms)* } }
    };
    let calls = |fields: &Fields, names: &[syn::Ident], method: &TokenStream, argument: &TokenStream| {
        let calls = fields.iter().zip(names).map(|(field, name)| {
            let ty = &field.ty;
            quote_spanned! { ty.span() => <#ty as #keys::KeyPart>::#method(#name #argument) }
        });
        calls.collect::<Vec<_>>()
    };
    let pack = arms(&|number, fields, names| {
        let calls = calls(fields, names, &quote!(pack), &quote!(, packer));
        let used = &bits[number];
        quote! {
            packer.push_variant(#number, #variant_bits);
            #(#calls;)*
            packer.skip(<Self as #keys::KeyPart>::BITS - #variant_bits - (#used));
        }
    });
    let encode = arms(&|number, fields, names| {
        let number = number as u32;
        let calls = calls(fields, names, &quote!(encode), &quote!(, encoder));
        quote! { <u32 as #keys::KeyPart>::encode(&#number, encoder); #(#calls;)* }
    });
    let heap_bytes = arms(&|_, fields, names| {
        let calls = calls(fields, names, &quote!(heap_bytes), &quote!());
        quote! { 0usize #(.wrapping_add(#calls))* }
    });
    Ok(Part {
        bits: quote!(#variant_bits.saturating_add(#keys::most_bits(&[#(#bits),*]))),
        pack,
        encode,
        heap_bytes,
        checks,
    })
}

/// Generates assertions that the variants are declared in the order of their discriminants, because a derived `Ord` has the
/// order of the discriminants, and an image that of the declaration.
fn discriminant_checks(input: &DeriveInput, data: &DataEnum) -> Result<TokenStream> {
    if data.variants.iter().all(|variant| variant.discriminant.is_none()) {
        return Ok(TokenStream::new());
    }
    if let Some(variant) = data.variants.iter().find(|variant| !variant.fields.is_empty()) {
        return Err(Error::new_spanned(
            variant,
            "an enum whose variants have fields cannot derive `Key` if it gives discriminants\n\
             remove them, and declare the variants in the order that keys are to have",
        ));
    }
    let name = &input.ident;
    let idents: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    let checks = idents.windows(2).map(|pair| {
        let (first, second) = (pair[0], pair[1]);
        let message = format!(
            "the variants of `{name}` are not declared in the order of their discriminants, which is that of keys\n\
             declare `{second}` before `{first}`"
        );
        quote_spanned! { second.span() =>
            ::core::assert!((#name::#first as i128) < (#name::#second as i128), #message);
        }
    });
    Ok(quote!(const _: () = { #(#checks)* };))
}
