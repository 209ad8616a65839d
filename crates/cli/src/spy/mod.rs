//! What is on the wire, decoded: the parts of `isolane spy` that neither print nor choose where
//! frames come from.
//!
//! The way of a frame: [`file`] or [`live`] (where it comes from) -> [`network`] (Ethernet to UDP, fragments put together) -> [`message`] (RTPS: a
//! message becomes items, one a submessage) -> [`knowledge`] (what discovery has said so far: whose, which topic, which
//! level) -> [`filter`] -> [`record`] (text and JSON) or [`write`] (pcapng), and [`summary`] counts everything on the way.
//! Only `isolane_wire` decodes; nothing here believes a length it has not checked, and every table is bounded.
//!
//! `spy` decodes RTPS only. `--write` keeps the shown frames, and Wireshark decodes them byte by byte.

mod fields;
pub(crate) mod file;
pub(crate) mod filter;
mod fragments;
pub(crate) mod frame;
pub(crate) mod knowledge;
pub(crate) mod live;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod network;
mod notation;
pub(crate) mod qos;
pub(crate) mod record;
pub(crate) mod summary;
pub(crate) mod write;
