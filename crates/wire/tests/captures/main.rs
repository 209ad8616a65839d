//! Tests of captures of other implementations, which are stored next to this file. They check the meaning of the
//! messages ([`vendors`], [`announcements`]), the headers around them ([`frames`]), cut or changed messages
//! ([`properties`]), and that every byte of every message is understood ([`read_and_rewrite`]).

mod announcements;
#[path = "../../../../tests/support/conversation.rs"]
mod conversation;
mod frames;
mod pcap;
mod properties;
mod read_and_rewrite;
mod vendors;
