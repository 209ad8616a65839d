//! Expansion of structs: their view and their traits.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{DataStruct, DeriveInput, Field, Fields, Type, Visibility};

use crate::attributes::{MemberAttributes, Place, TypeAttributes};
use crate::unsupported::unsupported;

/// Member with its parsed attributes.
struct Member<'a> {
    visibility: &'a Visibility,
    name: &'a Ident,
    ty: &'a Type,
    attributes: MemberAttributes,
}

/// Parsed struct, from which all code is generated.
struct Structure<'a> {
    visibility: &'a Visibility,
    name: &'a Ident,
    view: Ident,
    attributes: TypeAttributes,
    /// Path of the traits.
    types: TokenStream,
    /// `Extensibility` as an expression.
    extensibility: TokenStream,
    members: Vec<Member<'a>>,
}

pub(crate) fn expand(input: &DeriveInput, data: &DataStruct) -> syn::Result<TokenStream> {
    let attributes = TypeAttributes::parse(&input.attrs, Place::Struct)?;
    let types = attributes.types.clone();
    let extensibility = if attributes.is_final {
        quote!(#types::Extensibility::Final)
    } else {
        quote!(#types::Extensibility::Appendable)
    };
    let structure = Structure {
        visibility: &input.vis,
        name: &input.ident,
        view: format_ident!("{}View", input.ident),
        attributes,
        types,
        extensibility,
        members: members(input, data)?,
    };
    Ok([
        structure.view(),
        structure.cdr_type(),
        structure.topic_type(),
        structure.bound_checks(),
    ]
    .into_iter()
    .collect())
}

/// Parses the members; reports the errors of all members at once.
fn members<'a>(input: &DeriveInput, data: &'a DataStruct) -> syn::Result<Vec<Member<'a>>> {
    let Fields::Named(fields) = &data.fields else {
        return Err(syn::Error::new(
            input.ident.span(),
            "members of a topic's type have names: use `struct Name { member: Type }`",
        ));
    };
    if fields.named.is_empty() {
        return Err(syn::Error::new(
            input.ident.span(),
            "a topic's type has at least one member",
        ));
    }
    let mut members = Vec::new();
    let mut errors: Option<syn::Error> = None;
    for field in &fields.named {
        match member(field) {
            Ok(member) => members.extend(member),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    errors.map_or(Ok(members), Err)
}

fn member(field: &Field) -> syn::Result<Option<Member<'_>>> {
    if let Some(reason) = unsupported(&field.ty) {
        return Err(syn::Error::new_spanned(&field.ty, reason));
    }
    let attributes = MemberAttributes::parse(&field.attrs)?;
    Ok(field.ident.as_ref().map(|name| Member {
        visibility: &field.vis,
        name,
        ty: &field.ty,
        attributes,
    }))
}

impl Member<'_> {
    /// Bound of the member, including the default, as a `usize` expression.
    fn bound(&self, types: &TokenStream) -> TokenStream {
        match &self.attributes.bound {
            Some(bound) => quote!(#bound),
            None => quote!(#types::limits::UNBOUNDED),
        }
    }

    /// Stated bound of the member, as an `Option<usize>` expression.
    fn stated_bound(&self) -> TokenStream {
        match &self.attributes.bound {
            Some(bound) => quote!(::core::option::Option::Some(#bound)),
            None => quote!(::core::option::Option::None),
        }
    }
}

impl Structure<'_> {
    fn has_key(&self) -> bool {
        self.members.iter().any(|member| member.attributes.key)
    }

    /// Returns true if the member is in the key: a marked member, or any member if none is marked. The latter concerns
    /// nested structs in a key.
    fn is_in_key(&self, member: &Member<'_>) -> bool {
        member.attributes.key || !self.has_key()
    }

    /// Concatenates the output of `write` for each member: its name, its type, its bound.
    fn each(
        &self,
        write: impl Fn(&Member<'_>, &Ident, &Type, TokenStream) -> TokenStream,
    ) -> TokenStream {
        self.members
            .iter()
            .map(|member| write(member, member.name, member.ty, member.bound(&self.types)))
            .collect()
    }

    /// Quotes a type as a `CdrType`, with the type's span for errors.
    fn as_cdr_type(&self, ty: &Type) -> TokenStream {
        let types = &self.types;
        quote_spanned!(ty.span()=> <#ty as #types::CdrType>)
    }

    fn result(&self, of: TokenStream) -> TokenStream {
        let types = &self.types;
        quote!(::core::result::Result<#of, #types::CdrError>)
    }

    fn view(&self) -> TokenStream {
        let (visibility, view) = (self.visibility, &self.view);
        let documentation = format!(
            "A [`{}`] as it lies in a received sample: nothing is copied, strings and collections \
             are borrowed.",
            self.name
        );
        let fields = self.each(|member, name, ty, _| {
            let visibility = member.visibility;
            let ty = self.as_cdr_type(ty);
            let documentation = format!("`{}::{name}`, borrowed.", self.name);
            quote! {
                #[doc = #documentation]
                #visibility #name: #ty::View<'a>,
            }
        });
        quote! {
            #[doc = #documentation]
            #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
            #visibility struct #view<'a> {
                #fields
            }
        }
    }

    fn cdr_type(&self) -> TokenStream {
        let (types, name, view) = (&self.types, self.name, &self.view);
        let initial_values = self.initial_values();
        let writing = self.writing();
        let reading = self.reading();
        let keys = self.keys();
        let fields = self.fields();
        quote! {
            #[automatically_derived]
            impl #types::CdrType for #name {
                const KIND: #types::ElementKind = #types::ElementKind::Other;
                type View<'a> = #view<'a>;

                #initial_values
                #writing
                #reading
                #keys
                #fields
            }
        }
    }

    fn initial_values(&self) -> TokenStream {
        let view = &self.view;
        let initial = self.each(|_, name, ty, _| {
            let ty = self.as_cdr_type(ty);
            quote!(#name: #ty::initial(),)
        });
        let initial_view = self.each(|_, name, ty, _| {
            let ty = self.as_cdr_type(ty);
            quote!(#name: #ty::initial_view(),)
        });
        let reset = self.each(|_, name, ty, _| {
            let ty = self.as_cdr_type(ty);
            quote!(#ty::reset(&mut self.#name);)
        });
        quote! {
            #[inline]
            fn initial() -> Self {
                Self { #initial }
            }

            #[inline]
            fn initial_view<'a>() -> #view<'a> {
                #view { #initial_view }
            }

            #[inline]
            fn reset(&mut self) {
                #reset
            }
        }
    }

    fn writing(&self) -> TokenStream {
        let (types, extensibility) = (&self.types, &self.extensibility);
        let of_unit = self.result(quote!(()));
        let members = self.each(|_, name, _, bound| quote!(encoder.member(&self.#name, #bound)?;));
        quote! {
            #[inline]
            fn encode(&self, encoder: &mut #types::Encoder<'_>) -> #of_unit {
                encoder.structure(#extensibility, |encoder| {
                    #members
                    ::core::result::Result::Ok(())
                })
            }
        }
    }

    fn reading(&self) -> TokenStream {
        let (types, view, extensibility) = (&self.types, &self.view, &self.extensibility);
        let of_unit = self.result(quote!(()));
        let of_self = self.result(quote!(Self));
        let of_view = self.result(quote!(#view<'a>));
        let viewed = self.each(|_, name, ty, bound| quote!(#name: members.view::<#ty>(#bound)?,));
        let decoded =
            self.each(|_, name, ty, bound| quote!(#name: members.decode::<#ty>(#bound)?,));
        let decoded_into =
            self.each(|_, name, _, bound| quote!(members.decode_into(&mut self.#name, #bound)?;));
        quote! {
            #[inline]
            fn view<'a>(decoder: &mut #types::Decoder<'a>) -> #of_view {
                decoder.structure(#extensibility, |members| {
                    ::core::result::Result::Ok(#view { #viewed })
                })
            }

            #[inline]
            fn decode(decoder: &mut #types::Decoder<'_>) -> #of_self {
                decoder.structure(#extensibility, |members| {
                    ::core::result::Result::Ok(Self { #decoded })
                })
            }

            #[inline]
            fn decode_into(&mut self, decoder: &mut #types::Decoder<'_>) -> #of_unit {
                decoder.structure(#extensibility, |members| {
                    #decoded_into
                    ::core::result::Result::Ok(())
                })
            }
        }
    }

    fn keys(&self) -> TokenStream {
        let (types, extensibility) = (&self.types, &self.extensibility);
        let of_unit = self.result(quote!(()));
        let encoded = self.each(|member, name, _, bound| {
            if self.is_in_key(member) {
                quote!(encoder.key_member(&self.#name, #bound)?;)
            } else {
                TokenStream::new()
            }
        });
        let transcribed = self.each(|member, _, ty, bound| {
            if self.is_in_key(member) {
                quote!(members.transcribe_key::<#ty>(source, encoder, #bound)?;)
            } else {
                quote! {
                    if source == #types::KeySource::Sample {
                        members.view::<#ty>(#bound)?;
                    }
                }
            }
        });
        let of_self = self.result(quote!(Self));
        let decoded = self.each(|member, name, ty, bound| {
            if self.is_in_key(member) {
                return quote!(#name: members.decode_key::<#ty>(source, #bound)?,);
            }
            let initial = self.as_cdr_type(ty);
            quote! {
                #name: {
                    if source == #types::KeySource::Sample {
                        members.view::<#ty>(#bound)?;
                    }
                    #initial::initial()
                },
            }
        });
        let measured = self.each(|member, _, ty, _| {
            if self.is_in_key(member) {
                let bound = member.stated_bound();
                quote!(size.member::<#ty>(#bound);)
            } else {
                TokenStream::new()
            }
        });
        let all_measured = self.each(|member, _, ty, _| {
            let bound = member.stated_bound();
            quote!(size.member::<#ty>(#bound);)
        });
        let lengths = self.each(|member, name, ty, _| {
            let (word, ty) = (name.unraw().to_string(), self.as_cdr_type(ty));
            let bound = member.stated_bound();
            quote! {
                if let ::core::option::Option::Some(length) = #ty::length(&self.#name) {
                    let bound: ::core::option::Option<usize> = #bound;
                    let bound = bound.or(#ty::BOUND);
                    visit(#types::MemberLength { name: #word, length, bound });
                }
                #ty::lengths(&self.#name, visit);
            }
        });
        quote! {
            fn measure(size: &mut #types::MaxSize) {
                size.structure(|size| {
                    size.delimiter(#extensibility);
                    #all_measured
                });
            }

            fn lengths(&self, visit: &mut dyn ::core::ops::FnMut(#types::MemberLength)) {
                #lengths
            }

            #[inline]
            fn encode_as_key(&self, encoder: &mut #types::Encoder<'_>) -> #of_unit {
                encoder.structure(#extensibility, |encoder| {
                    #encoded
                    ::core::result::Result::Ok(())
                })
            }

            #[inline]
            fn transcribe_key(
                source: #types::KeySource,
                decoder: &mut #types::Decoder<'_>,
                encoder: &mut #types::Encoder<'_>,
            ) -> #of_unit {
                decoder.key_structure(source, #extensibility, |members| {
                    encoder.structure(#extensibility, |encoder| {
                        #transcribed
                        ::core::result::Result::Ok(())
                    })
                })
            }

            fn decode_key(
                source: #types::KeySource,
                decoder: &mut #types::Decoder<'_>,
            ) -> #of_self {
                decoder.key_structure(source, #extensibility, |members| {
                    ::core::result::Result::Ok(Self { #decoded })
                })
            }

            #[inline]
            fn measure_key(size: &mut #types::MaxSize) {
                size.structure(|size| {
                    size.delimiter(#extensibility);
                    #measured
                });
            }
        }
    }

    /// Generates access to members by name, for content filters.
    fn fields(&self) -> TokenStream {
        let types = &self.types;
        let kinds = self.each(|_, name, ty, _| {
            let (word, ty) = (name.unraw().to_string(), self.as_cdr_type(ty));
            quote!(#word => #ty::field_kind(rest),)
        });
        let values = self.each(|_, name, ty, _| {
            let (word, ty) = (name.unraw().to_string(), self.as_cdr_type(ty));
            quote!(#word => #ty::field(view.#name, rest),)
        });
        quote! {
            fn field_kind(
                path: #types::FieldPath<'_>,
            ) -> ::core::option::Option<#types::FieldKind> {
                let (name, rest) = path.member()?;
                match name {
                    #kinds
                    _ => ::core::option::Option::None,
                }
            }

            fn field<'a>(
                view: Self::View<'a>,
                path: #types::FieldPath<'_>,
            ) -> ::core::option::Option<#types::FieldValue<'a>> {
                let (name, rest) = path.member()?;
                match name {
                    #values
                    _ => ::core::option::Option::None,
                }
            }
        }
    }

    fn topic_type(&self) -> TokenStream {
        let (types, name, extensibility) = (&self.types, self.name, &self.extensibility);
        let type_name = match &self.attributes.name {
            Some(name) => name.clone(),
            None => name.unraw().to_string(),
        };
        let keyed = self.has_key();
        quote! {
            #[automatically_derived]
            impl #types::TopicType for #name {
                const TYPE_NAME: &'static str = #type_name;
                const KEYED: bool = #keyed;
                const EXTENSIBILITY: #types::Extensibility = #extensibility;
            }
        }
    }

    /// Generates a check that each bound is on a member that accepts one; errors point at the member's type.
    fn bound_checks(&self) -> TokenStream {
        let types = &self.types;
        self.each(|member, _, ty, _| {
            if member.attributes.bound.is_none() {
                return TokenStream::new();
            }
            quote_spanned! {ty.span()=>
                const _: () = {
                    const fn accepts_bound<T: #types::AcceptsBound>() {}
                    accepts_bound::<#ty>();
                };
            }
        })
    }
}
