//! Wire formats that isolane reads and writes.
//!
//! This crate converts between bytes and checked values. It has no state, clock or socket, and allocates only for
//! `Vec` and `String` members (feature `alloc`). isolane has no other decoder of these formats.
//!
//! Layers of a frame, from the outside in:
//! [`ethernet`] (with up to two [`vlan`] tags) → [`ipv4`] → [`udp`] → [`message`] → submessages →
//! [`cdr`] payloads of users, or [`parameter`] lists of [`builtin_data`] with the [`qos`] in them.
//!
//! Each frame header has a *view* (`Frame`, `Packet`, `Datagram`), which is checked once and then read by
//! accessors. It also has a plain *Repr* with `parse`, `emit` and `buffer_len`. RTPS submessages are parsed to
//! plain values; payloads, inline QoS and lists are borrowed from the frame.
//!
//! Parsing returns a value or an [`Error`] for any input. It never panics, has no loop longer than the input, and
//! stores nothing beyond the bounds in [`limits`]. `emit` panics if its buffer is shorter than `buffer_len()`.
//! Functions without a `buffer_len()` return [`BufferTooSmall`] instead.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod builtin_data;
mod bytes;
pub mod cdr;
pub mod checksum;
pub mod error;
pub mod ethernet;
pub mod guid;
pub mod ipv4;
pub mod level;
pub mod limits;
pub mod linux_sll;
pub mod locator;
pub mod message;
pub mod parameter;
pub mod qos;
pub mod sequence;
pub mod time;
pub mod udp;
pub mod vlan;

pub use cdr::ByteOrder;
pub use error::{BufferTooSmall, Error};
