//! Expansion of fieldless enums to enumerations, encoded as `i32` (XTypes 1.3 §7.4.3.5).

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{DataEnum, DeriveInput, Fields};

use crate::attributes::{Place, TypeAttributes, refuse};

pub(crate) fn expand(input: &DeriveInput, data: &DataEnum) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs, Place::Enum)?;
    let Some(first) = data.variants.first() else {
        return Err(syn::Error::new(
            input.ident.span(),
            "an enumeration has at least one enumerator",
        ));
    };
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            return Err(syn::Error::new_spanned(
                &variant.fields,
                "enums with fields (unions of DDS) are not supported; use a struct",
            ));
        }
        refuse(
            &variant.attrs,
            "an enumerator has no attribute; keys and bounds are of a struct's members",
        )?;
    }

    let types = &attributes.types;
    let name = &input.ident;
    let initial = &first.ident;
    let variants = data.variants.iter().map(|variant| &variant.ident);
    let variants: Vec<_> = variants.collect();
    let words = variants.iter().map(|variant| variant.unraw().to_string());
    let words: Vec<_> = words.collect();
    // Constants, because a pattern cannot contain a cast.
    let values: Vec<_> = (0..variants.len())
        .map(|index| format_ident!("VALUE_{index}"))
        .collect();

    Ok(quote! {
        const _: () = {
            #(
                const #values: i32 = {
                    let value = #name::#variants as i128;
                    ::core::assert!(
                        value >= i32::MIN as i128 && value <= i32::MAX as i128,
                        "an enumerator's value must fit in i32"
                    );
                    value as i32
                };
            )*

            #[automatically_derived]
            impl #types::CdrType for #name {
                const KIND: #types::ElementKind = #types::ElementKind::Other;
                type View<'a> = Self;

                #[inline]
                fn initial() -> Self {
                    Self::#initial
                }

                #[inline]
                fn initial_view<'a>() -> Self::View<'a> {
                    Self::#initial
                }

                #[inline]
                fn encode(
                    &self,
                    encoder: &mut #types::Encoder<'_>,
                ) -> ::core::result::Result<(), #types::CdrError> {
                    encoder.primitive(match self {
                        #(Self::#variants => #values,)*
                    })
                }

                #[inline]
                fn view<'a>(
                    decoder: &mut #types::Decoder<'a>,
                ) -> ::core::result::Result<Self, #types::CdrError> {
                    match decoder.primitive::<i32>()? {
                        #(#values => ::core::result::Result::Ok(Self::#variants),)*
                        unknown => ::core::result::Result::Err(
                            #types::CdrError::UnknownEnumerator(unknown),
                        ),
                    }
                }

                #[inline]
                fn decode(
                    decoder: &mut #types::Decoder<'_>,
                ) -> ::core::result::Result<Self, #types::CdrError> {
                    <Self as #types::CdrType>::view(decoder)
                }

                #[inline]
                fn transcribe_key(
                    _: #types::KeySource,
                    decoder: &mut #types::Decoder<'_>,
                    encoder: &mut #types::Encoder<'_>,
                ) -> ::core::result::Result<(), #types::CdrError> {
                    let value = <Self as #types::CdrType>::view(decoder)?;
                    <Self as #types::CdrType>::encode(&value, encoder)
                }

                #[inline]
                fn measure_key(size: &mut #types::MaxSize) {
                    size.member::<i32>(::core::option::Option::None);
                }

                fn field_kind(
                    path: #types::FieldPath<'_>,
                ) -> ::core::option::Option<#types::FieldKind> {
                    const ENUMERATORS: &[(&str, i32)] = &[#((#words, #values)),*];
                    path.is_at_end().then_some(#types::FieldKind::Enumeration(ENUMERATORS))
                }

                fn field<'a>(
                    view: Self::View<'a>,
                    path: #types::FieldPath<'_>,
                ) -> ::core::option::Option<#types::FieldValue<'a>> {
                    let value = match view {
                        #(Self::#variants => #values,)*
                    };
                    path.is_at_end()
                        .then(|| #types::FieldValue::Integer(::core::convert::From::from(value)))
                }
            }
        };
    })
}
