//! Tests of CDR as on the wire: bytes written by hand and from captures, types that evolve, keys, bounds, and arbitrary
//! bytes.

mod appendable;
mod bounds;
mod captures;
mod fields;
mod keys;
mod layout;
mod properties;
mod sizes;
mod standard_collections;
mod support;
mod views;
