//! `#[derive(Key)]`.

use crate::attributes;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Result};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let facade = attributes::facade(input)?;
    let name = &input.ident;
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            return Err(Error::new_spanned(data.enum_token, "only a struct can derive `Key`"));
        }
        Data::Union(data) => {
            return Err(Error::new_spanned(data.union_token, "only a struct can derive `Key`"));
        }
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a generic type cannot derive `Key`, because the size of its image depends on its arguments: use \
             a type for each argument",
        ));
    }
    let part = quote!(#facade::key::KeyPart);
    let bits = fields.iter().map(|field| {
        let ty = &field.ty;
        quote_spanned! { ty.span() => <#ty as #part>::BITS }
    });
    let pack = fields.members().zip(fields).map(|(member, field)| {
        let ty = &field.ty;
        quote_spanned! { ty.span() => <#ty as #part>::pack(&self.#member, packer); }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #part for #name {
            const BITS: usize = 0 #(+ #bits)*;
            #[inline(always)]
            fn pack(&self, packer: &mut #facade::key::Packer<'_>) {
                let _ = &packer;
                #(#pack)*
            }
        }

        #[automatically_derived]
        impl #facade::Key for #name {
            type Image = [u64; #facade::key::words(<Self as #part>::BITS)];
            #[inline(always)]
            fn image(&self) -> Self::Image {
                let mut image = [0; #facade::key::words(<Self as #part>::BITS)];
                #part::pack(self, &mut #facade::key::Packer::new(&mut image));
                image
            }
        }
    })
}
