//! Decoding of RTPS traffic for `isolane spy`.
//!
//! A frame passes [`capture`] (from a file or an interface), [`network`] (Ethernet to UDP, fragments put together),
//! [`message`] (one item a submessage; [`discovery`] adds topic and level), [`filter`], and [`record`] (text, JSON and the
//! counts of the summary) or the capture writer. Only `isolane_wire` decodes. No length is used before it is checked, and
//! every table has a bound.
//!
//! `spy` decodes RTPS only. `--write` keeps the shown frames, and Wireshark decodes them byte by byte.

pub(crate) mod capture;
pub(crate) mod discovery;
pub(crate) mod filter;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod network;
pub(crate) mod record;
