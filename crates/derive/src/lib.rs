//! `#[derive(TopicType)]`: implements the traits of DDS topic types for Rust types.
//!
//! The macro generates the list of a declaration's members; the traits that the generated code calls
//! (`isolane::types::CdrType`) encode them. So the generated code is short, and the compiler reports an unsupported
//! member type at that type. The macro sees a single declaration, and reads no files or environment.

use proc_macro::TokenStream;
use syn::{Data, DeriveInput, parse_macro_input};

mod attributes;
mod enumeration;
mod structure;
#[cfg(test)]
mod tests;
mod unsupported;

/// Implements `TopicType` for a struct, or `CdrType` for an enumeration used as a member.
///
/// # Structs
/// Members are numbers (`u8` to `u64`, `i8` to `i64`, `f32`, `f64`), `bool`, `Char8`, strings,
/// sequences and arrays of all these, and other types with this derive. They are encoded in the order of
/// declaration, which is also the order of their member ids.
///
/// ```
/// use isolane_derive::TopicType;
/// use isolane_wire::cdr::{
///     BoundedSequence, BoundedString, Representation, key_hash, view_payload, write_payload,
/// };
///
/// /// Brake pressure at one wheel.
/// #[derive(TopicType)]
/// #[topic(name = "vehicle::BrakePressure", crate = "isolane_wire::cdr")]
/// pub struct BrakePressure {
///     /// Wheel; each one is an instance.
///     #[topic(key)]
///     pub wheel: BoundedString<16>,
///     /// Pressure in pascals.
///     pub pressure: f32,
///     /// Latest raw samples of the sensor.
///     pub raw: BoundedSequence<u16, 8>,
/// }
///
/// let sample = BrakePressure {
///     wheel: "front left".try_into().unwrap(),
///     pressure: 4.0e6,
///     raw: BoundedSequence::from_slice(&[812, 815]).unwrap(),
/// };
/// let mut payload = [0; 64];
/// let length = write_payload(&sample, Representation::Xcdr1, &mut payload).unwrap();
///
/// let view = view_payload::<BrakePressure>(&payload[..length]).unwrap();
/// assert_eq!(view.wheel, "front left");
/// assert_eq!(view.raw.iter().max(), Some(815));
/// assert_ne!(key_hash(&sample).unwrap(), [0; 16]);
/// ```
///
/// The macro also generates `BrakePressureView<'a>`, which reads a received sample without copying: the same
/// members, numbers by value, strings as `&'a str`, sequences and arrays as views.
///
/// # Enumerations
/// An enum without fields is encoded as `i32`. The enum must be `Clone`, `Copy` and `Debug`, because views hold
/// its values. The first enumerator is the initial value.
///
/// ```
/// # use isolane_derive::TopicType;
/// #[derive(Clone, Copy, Debug, TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// pub enum Gear {
///     Neutral,
///     Drive = 4,
///     Reverse = -1,
/// }
///
/// #[derive(TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// pub struct Drivetrain {
///     pub gear: Gear,
///     pub wheel_speeds: [f32; 4],
/// }
/// ```
///
/// # Attributes
/// On the type:
///
/// | attribute | meaning |
/// | --- | --- |
/// | `#[topic(name = "module::Type")]` | type name that peers compare; default: the struct's name |
/// | `#[topic(final_)]` | no members can be added; the default, `@final` in IDL |
/// | `#[topic(appendable)]` | members may be added at the end; `@appendable`, the default in IDL |
/// | `#[topic(crate = "path")]` | path of the traits; default `::isolane::types` |
///
/// On a member:
///
/// | attribute | meaning |
/// | --- | --- |
/// | `#[topic(key)]` | part of the key: an instance per value; of a nested struct, its key members, or all if none |
/// | `#[topic(bound = N)]` | maximum bytes of a `String` or elements of a `Vec`; default: no bound |
///
/// A bound also applies to strings and sequences inside a `Vec`, but not to those in nested structs.
///
/// # Refused types
/// Type parameters and lifetimes: a topic has a single wire format.
/// ```compile_fail
/// #[derive(isolane_derive::TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// struct Generic<T> { value: T }
/// ```
/// Members without a DDS type:
/// ```compile_fail
/// #[derive(isolane_derive::TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// struct Letter { letter: char }
/// ```
/// ```compile_fail,E0277
/// struct Plain { a: u8 }
///
/// #[derive(isolane_derive::TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// struct Outer { inner: Plain }
/// ```
/// A bound on a type with its own bound, or without a length:
/// ```compile_fail,E0277
/// #[derive(isolane_derive::TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// struct Counter { #[topic(bound = 3)] count: u32 }
/// ```
/// An enumeration as the type of a topic:
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, Debug, isolane_derive::TopicType)]
/// #[topic(crate = "isolane_wire::cdr")]
/// enum Gear { Neutral }
///
/// fn topic<T: isolane_wire::cdr::TopicType>() {}
/// topic::<Gear>();
/// ```
/// Also refused: unions, enums with fields, tuple structs, and structs without members.
#[proc_macro_derive(TopicType, attributes(topic))]
pub fn derive_topic_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input)
        .unwrap_or_else(|error| error.to_compile_error())
        .into()
}

fn expand(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "the type of a topic cannot be generic: it has one form on the wire",
        ));
    }
    match &input.data {
        Data::Struct(data) => structure::expand(input, data),
        Data::Enum(data) => enumeration::expand(input, data),
        Data::Union(data) => Err(syn::Error::new_spanned(
            data.union_token,
            "a union cannot be read safely from what a peer sends; use a struct",
        )),
    }
}
