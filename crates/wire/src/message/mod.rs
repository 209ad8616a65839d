//! RTPS messages (RTPS 2.5 §8.3, §9.4): a header, then submessages.
//!
//! Reading: [`Header::parse`], then [`Submessages`], which yields each submessage as a plain value, checked
//! against the standard's validity clauses (§8.3.8). Payloads, inline QoS and locator lists are borrowed from
//! the message.
//!
//! Writing: [`MessageWriter`] appends submessages to a buffer. On the hot path the payload is already in the
//! frame, and a [`SamplePrefix`], or header, INFO_TS and [`DataPrefix`], is written before it. All output is
//! little-endian.

mod acknack;
mod data;
mod gap;
mod header;
mod heartbeat;
mod info;
mod inline_qos;
mod submessage;
mod writer;

pub use acknack::{AckNack, NackFrag};
pub use data::{
    Data, DataFrag, DataFragPrefix, DataPrefix, PayloadKind, SAMPLE_PREFIX_BYTES, SamplePrefix,
};
pub use gap::{Gap, GapGroup};
pub use header::{
    ChecksumKind, HEADER_BYTES, Header, HeaderExtension, MessageChecksum, VENDOR_ID, VERSION,
};
pub use heartbeat::{
    HEARTBEAT_BYTES, HEARTBEAT_FRAG_BYTES, Heartbeat, HeartbeatFrag, HeartbeatGroup,
};
pub use info::{
    INFO_DESTINATION_BYTES, INFO_SOURCE_BYTES, INFO_TIMESTAMP_BYTES, InfoDestination, InfoReply,
    InfoReplyIp4, InfoSource, InfoTimestamp,
};
pub use inline_qos::{CoherentSetInfo, GroupDigest, StatusInfo, group_digest};
pub use submessage::{
    RawSubmessage, SUBMESSAGE_HEADER_BYTES, Submessage, SubmessageId, Submessages,
};
pub use writer::MessageWriter;
