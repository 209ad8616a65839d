//! Wire formats that isolane reads and writes.
//!
//! This crate converts between bytes and checked values. It has no state, allocation, clock or socket. It is
//! the only decoder in isolane: the protocol, `spy` and the classifier's reference model use it.
//!
//! Layers of a frame, from the outside in:
//! [`ethernet`] (with up to two [`vlan`] tags) → [`ipv4`] → [`udp`] → [`message`] → submessages →
//! [`cdr`] payloads of users, or [`parameter`] lists of [`builtin_data`] with the [`qos`] in them.
//!
//! Frame headers have a *view* (`Frame`, `Packet`, `Datagram`), checked once and then read by accessors, and a
//! plain *Repr* with `parse`, `emit` and `buffer_len`. RTPS submessages are parsed to plain values; payloads,
//! inline QoS and lists are borrowed from the frame.
//!
//! Parsing returns a value or an [`Error`] for any input: it never panics, never loops longer than its input,
//! and stores nothing beyond the bounds in [`limits`]. Emitting into a buffer shorter than `buffer_len()` is a
//! programming error and panics; functions that take a buffer of unknown length return [`BufferTooSmall`].

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
