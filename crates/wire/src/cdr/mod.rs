//! CDR: the form in which samples travel (DDS-XTypes 1.3 §7.4).
//!
//! A sample is the members of a structure behind one another, each at its alignment, in one of two
//! versions (XCDR1, XCDR2) and either byte order. A writer lays a value into a slice with an
//! [`Encoder`]: nothing is allocated, and what does not fit is [`CdrError::NoRoom`]. A reader
//! follows the bytes with a [`Decoder`] and gets either a view, which borrows strings and
//! collections from the slice, or a value of its own, whose bounds cap the memory it takes.
//!
//! Three layers, each knowing only those before it:
//! - [`Encapsulation`]: the header that names version and byte order;
//! - [`Encoder`], [`Decoder`]: primitives, strings, DHEADERs, alignment;
//! - [`CdrType`]: what a type does with them; [`TopicType`] adds name and key. Both come from
//!   `#[derive(TopicType)]`, which generates for each structure nothing but the list of its
//!   members.
//!
//! On top are the functions that everybody else calls: [`write_payload`], [`view_payload`],
//! [`read_payload`], [`write_key_payload`], [`read_key`], [`key_hash`], [`key_hash_of_payload`].
//!
//! What a peer sends never panics here, never makes a loop longer than the bytes it sent, and never
//! takes memory beyond the bound of the type. Appendable types tolerate members added by newer
//! writers, and give initial values to those that older writers lack ([`Members`]). Mutable types,
//! optional members, unions, maps and wide characters are not here; their encapsulations are
//! refused as [`CdrError::UnknownEncapsulation`].

#[cfg(feature = "alloc")]
mod alloc;
mod array;
mod decoder;
mod encapsulation;
mod encoder;
mod error;
mod field;
mod key;
pub mod limits;
mod max_size;
mod primitive;
mod sequence;
mod sequence_view;
mod string;
mod topic;
mod value;

pub use array::{ArrayElements, ArrayView};
pub use decoder::{Decoder, Members};
pub use encapsulation::{
    ByteOrder, ENCAPSULATION_BYTES, Encapsulation, EncapsulationId, Extensibility, Representation,
};
pub use encoder::Encoder;
pub use error::CdrError;
pub use field::{FieldKind, FieldPath, FieldValue};
/// A string of at most `N` bytes, in place.
pub use heapless::String as BoundedString;
/// A sequence of at most `N` elements, in place.
pub use heapless::Vec as BoundedSequence;
pub use key::{KeyHash, key_hash, key_hash_of_payload};
pub use max_size::MaxSize;
pub use primitive::{Char8, Primitive};
pub use sequence_view::{Elements, SequenceView};
pub use topic::{
    TopicType, max_key_payload_bytes, max_payload_bytes, read_key, read_key_hash, read_payload,
    read_payload_into, view_payload, write_key_of_payload, write_key_payload, write_payload,
};
pub use value::{CdrType, KeySource, Kind, LocallyBounded, MemberLength};
