//! CDR serialization of samples (DDS-XTypes 1.3 §7.4).
//!
//! A structure is encoded as its members in order, each at its alignment, in one of two versions (XCDR1,
//! XCDR2) and either byte order. An [`Encoder`] writes a value to a slice without allocation; if the slice is too
//! short, it returns [`CdrError::NoRoom`]. A [`Decoder`] reads a view, which borrows strings and collections from
//! the slice, or an owned value, whose memory is limited by the bounds of its type.
//!
//! There are three layers, each of which uses only the layers before it:
//! - [`Encapsulation`]: the header that gives version and byte order;
//! - [`Encoder`], [`Decoder`]: primitives, strings, DHEADERs, alignment;
//! - [`CdrType`]: the encoding of a type; [`TopicType`] adds name and key. `#[derive(TopicType)]` implements both
//!   traits for a structure.
//!
//! Other modules use these functions: [`write_payload`], [`view_payload`], [`read_payload`],
//! [`write_key_payload`], [`read_key`], [`key_hash`], [`key_hash_of_payload`].
//!
//! For any input, decoding never panics, has no loop longer than the input, and never allocates beyond the type's
//! bounds. A reader of an appendable type skips members that only a newer writer has, and gives initial
//! values to members that an older writer lacks ([`Members`]). Mutable types, optional members, unions, maps and wide
//! characters are not supported. Payloads of mutable types are refused with [`CdrError::UnknownEncapsulation`].

mod array;
mod decode;
mod encapsulation;
mod encode;
mod error;
mod field;
mod key;
pub mod limits;
#[cfg(feature = "alloc")]
mod loan;
mod max_size;
mod primitive;
mod sequence;
mod string;
mod types;

pub use array::{ArrayElements, ArrayView};
pub use decode::{Decoder, Members, read_payload, read_payload_into, view_payload};
pub use encapsulation::{
    ByteOrder, ENCAPSULATION_BYTES, Encapsulation, EncapsulationId, Extensibility, Representation,
};
pub use encode::{Encoder, write_payload};
pub use error::CdrError;
pub use field::{FieldKind, FieldPath, FieldValue};
/// String of at most `N` bytes, stored inline.
pub use heapless::String as BoundedString;
/// Sequence of at most `N` elements, stored inline.
pub use heapless::Vec as BoundedSequence;
pub use key::{
    KeyHash, KeySource, key_hash, key_hash_of_payload, read_key, read_key_hash,
    write_key_of_payload, write_key_payload,
};
#[cfg(feature = "alloc")]
pub use loan::Loan;
pub use max_size::{MaxSize, max_key_payload_bytes, max_payload_bytes};
pub use primitive::{Char8, Primitive};
pub use sequence::{Elements, SequenceView};
pub use types::{AcceptsBound, CdrType, ElementKind, MemberLength, TopicType};
