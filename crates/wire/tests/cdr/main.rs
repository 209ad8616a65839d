//! CDR as peers see it: bytes laid out by hand and taken from captures, samples that evolve, keys,
//! bounds, and whatever bytes may come.

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
