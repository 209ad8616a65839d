//! RTPS messages (RTPS 2.5 §8.3, §9.4): a header, then submessages.
//!
//! Reading: [`Header::parse`], then [`Submessages`], which yields each submessage as a plain value, checked
//! against the standard's validity clauses (§8.3.8). Payloads, inline QoS and locator lists are borrowed from
//! the message.
//!
//! Writing: [`MessageWriter`] appends submessages to a buffer. On the hot path the payload is already in the
//! frame, and a [`SampleHead`], or header, INFO_TS and [`DataHead`], is written before it. All output is
//! little-endian.

mod acknack;
mod data;
mod data_fragment;
mod gap;
mod header;
mod header_extension;
mod heartbeat;
mod heartbeat_fragment;
mod info_destination;
mod info_reply;
mod info_reply_ip4;
mod info_source;
mod info_timestamp;
mod message_checksum;
mod nack_fragment;
mod sample_head;
mod set_mark;
mod status_info;
mod submessage;
mod writer;

pub use acknack::AckNack;
pub use data::{Data, DataHead, PayloadKind};
pub use data_fragment::{DataFrag, DataFragHead};
pub use gap::{Gap, GapGroup};
pub use header::{HEADER_BYTES, Header, VENDOR_ID, VERSION};
pub use header_extension::HeaderExtension;
pub use heartbeat::{HEARTBEAT_BYTES, Heartbeat, HeartbeatGroup};
pub use heartbeat_fragment::{HEARTBEAT_FRAG_BYTES, HeartbeatFrag};
pub use info_destination::{INFO_DESTINATION_BYTES, InfoDestination};
pub use info_reply::InfoReply;
pub use info_reply_ip4::InfoReplyIp4;
pub use info_source::{INFO_SOURCE_BYTES, InfoSource};
pub use info_timestamp::{INFO_TIMESTAMP_BYTES, InfoTimestamp};
pub use message_checksum::{ChecksumKind, MessageChecksum};
pub use nack_fragment::NackFrag;
pub use sample_head::{SAMPLE_HEAD_BYTES, SampleHead};
pub use set_mark::{GroupDigest, SetMark, group_digest};
pub use status_info::StatusInfo;
pub use submessage::{SUBMESSAGE_HEADER_BYTES, Submessage, SubmessageId, Submessages, Undecoded};
pub use writer::MessageWriter;
