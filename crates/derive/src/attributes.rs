//! Parser of the `#[topic(...)]` attributes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, LitStr, Path};

/// Maximum length of a type name in discovery, in bytes.
const MAX_TYPE_NAME_BYTES: usize = 255;

/// Item that carries an attribute; the allowed keys depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Struct,
    Enum,
}

pub(crate) struct TypeAttributes {
    /// `name = "..."`.
    pub(crate) name: Option<String>,
    /// True for final, the default; false for `appendable`.
    pub(crate) is_final: bool,
    /// Path of the traits.
    pub(crate) types: TokenStream,
}

impl TypeAttributes {
    pub(crate) fn parse(attributes: &[Attribute], place: Place) -> syn::Result<Self> {
        let mut name = None;
        let mut extensibility = None;
        let mut types = None;
        for_each_item(attributes, |item| {
            let of_struct = place == Place::Struct;
            if item.path.is_ident("name") && of_struct {
                let literal: LitStr = item.value()?.parse()?;
                once(&mut name, type_name(&literal)?, &item)
            } else if item.path.is_ident("appendable") && of_struct {
                once(&mut extensibility, false, &item)
            } else if item.path.is_ident("final_") && of_struct {
                once(&mut extensibility, true, &item)
            } else if item.path.is_ident("crate") {
                let literal: LitStr = item.value()?.parse()?;
                once(&mut types, literal.parse::<Path>()?, &item)
            } else if item.path.is_ident("mutable") {
                Err(item.error("mutable types are not supported; use `appendable`"))
            } else if of_struct {
                Err(item.error(
                    "expected `name = \"...\"`, `appendable`, `final_` or `crate = \"...\"`",
                ))
            } else {
                Err(item.error("expected `crate = \"...\"`; an enum has no other attribute"))
            }
        })?;
        Ok(Self {
            name,
            is_final: extensibility.unwrap_or(true),
            types: types.map_or_else(|| quote!(::isolane::types), |path| quote!(#path)),
        })
    }
}

#[derive(Default)]
pub(crate) struct MemberAttributes {
    /// `key`.
    pub(crate) key: bool,
    /// `bound = N`.
    pub(crate) bound: Option<Expr>,
}

impl MemberAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> syn::Result<Self> {
        let mut key = None;
        let mut bound = None;
        for_each_item(attributes, |item| {
            if item.path.is_ident("key") {
                once(&mut key, true, &item)
            } else if item.path.is_ident("bound") {
                let value = item
                    .value()
                    .map_err(|_| item.error("a bound needs its value: `bound = 1024`"))?;
                once(&mut bound, value.parse()?, &item)
            } else {
                Err(item.error("expected `key` or `bound = N`"))
            }
        })?;
        Ok(Self {
            key: key.unwrap_or(false),
            bound,
        })
    }
}

/// Returns an error for the first attribute: enumerators may have none.
pub(crate) fn refuse(attributes: &[Attribute], message: &str) -> syn::Result<()> {
    match topic(attributes).next() {
        Some(attribute) => Err(syn::Error::new(attribute.span(), message)),
        None => Ok(()),
    }
}

fn topic(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("topic"))
}

fn for_each_item(
    attributes: &[Attribute],
    mut item: impl FnMut(ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    topic(attributes).try_for_each(|attribute| attribute.parse_nested_meta(&mut item))
}

fn once<T>(slot: &mut Option<T>, value: T, item: &ParseNestedMeta<'_>) -> syn::Result<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(item.error("this is said twice")),
    }
}

fn type_name(literal: &LitStr) -> syn::Result<String> {
    let name = literal.value();
    let error = |message: String| Err(syn::Error::new(literal.span(), message));
    if name.is_empty() {
        return error("a type needs a name; leave this out for the struct's own".into());
    }
    if name.contains('\0') {
        return error("a type's name cannot contain NUL".into());
    }
    if name.len() > MAX_TYPE_NAME_BYTES {
        return error(format!(
            "a type's name has at most {MAX_TYPE_NAME_BYTES} bytes"
        ));
    }
    Ok(name)
}
