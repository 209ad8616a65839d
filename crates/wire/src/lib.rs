//! Bytes: everything isolane reads from and writes to a wire.
//!
//! This crate turns bytes into checked values and back, and does nothing else: no state, no
//! allocation, no clock, no socket. Only it decodes; the engine, `spy` and the twin of the
//! classifier all read through it.
//!
//! The way of a frame, from the outside in:
//! [`ethernet`] (with up to two [`vlan`] tags) → [`ipv4`] → [`udp`] → [`rtps`] message → submessages →
//! [`cdr`] payloads of users, or [`parameter`] lists of [`discovery`] with the [`qos`] in them.
//!
//! Two shapes recur. Frame headers have a *view* (`Frame`, `Packet`, `Datagram`), checked once and
//! then read by accessors, beside a plain *Repr* with `parse`, `emit` and `buffer_len`. RTPS
//! submessages are small, so they are parsed straight into plain values; only payloads, inline QoS
//! and lists stay where they are, borrowed from the frame.
//!
//! Whatever a peer sends, parsing returns a value or an [`Error`]: it never panics, never loops
//! longer than the bytes it was given, and keeps nothing beyond the bounds in [`limits`]. Emitting
//! into a buffer shorter than `buffer_len()` is a mistake of the caller and panics; the functions
//! that take a buffer of unknown length return [`BufferTooSmall`] instead.

#![no_std]
#![forbid(unsafe_code)]

mod bitmap;
mod bytes;
pub mod cdr;
pub mod checksum;
pub mod cooked;
pub mod discovery;
pub mod error;
pub mod ethernet;
pub mod guid;
pub mod ipv4;
pub mod level;
pub mod limits;
pub mod locator;
pub mod parameter;
pub mod qos;
pub mod rtps;
pub mod sequence;
pub mod time;
pub mod udp;
pub mod vlan;

pub use cdr::ByteOrder;
pub use error::{BufferTooSmall, Error};
