//! Rust types without a DDS type, and their replacements.
//!
//! The compiler refuses every type without `CdrType`, but reports an error for each use in the generated code.
//! For commonly tried types, this module reports a single error that names the replacement.

use syn::Type;

/// Returns the error message for an unsupported type recognizable by its syntax. Also checks element types of
/// arrays and collections.
pub(crate) fn unsupported(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(_) => Some(
            "a member owns its value: use a `BoundedString` or `String` for `&str`, a \
             `BoundedSequence` or `Vec` for a slice",
        ),
        Type::Tuple(_) => {
            Some("a tuple has no form in DDS: use a struct with #[derive(TopicType)]")
        }
        Type::Slice(_) => Some("a slice has no size: use a `BoundedSequence` or `Vec`"),
        Type::Ptr(_) | Type::TraitObject(_) | Type::ImplTrait(_) | Type::Never(_) => {
            Some("this type has no form in DDS")
        }
        Type::Array(array) => unsupported(&array.elem),
        Type::Paren(inner) => unsupported(&inner.elem),
        Type::Group(inner) => unsupported(&inner.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            of_name(&last.ident.to_string()).or_else(|| inside(&last.arguments))
        }
        _ => None,
    }
}

fn of_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "usize" | "isize" => {
            "the size of this number differs between machines: use `u32`, `u64`, `i32` or `i64`"
        }
        "u128" | "i128" => "DDS has no 128-bit numbers: use `[u8; 16]` or two `u64`",
        "char" => "DDS has no Unicode character: use `Char8` for one byte, or a string",
        "str" => "a member owns its value: use a `BoundedString` or `String`",
        "Option" => {
            "optional members are not supported: use a sequence of at most one element, or a flag next to the value"
        }
        "Box" | "Rc" | "Arc" => "a member holds its value itself: leave the pointer out",
        "HashMap" | "BTreeMap" | "HashSet" | "BTreeSet" | "VecDeque" => {
            "this collection has no form in DDS: use a sequence of structs"
        }
        _ => return None,
    })
}

fn inside(arguments: &syn::PathArguments) -> Option<&'static str> {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(ty) => unsupported(ty),
        _ => None,
    })
}
