//! Tests over what other implementations sent, which is stored next to this file: what it means
//! ([`vendors`], [`announcements`]), the headers around it ([`frames`]), what becomes of it when it is cut or
//! changed ([`properties`]), and, message by message, that nothing of it is left over ([`gate`]).

mod announcements;
#[path = "../../../../tests/support/conversation.rs"]
mod conversation;
mod frames;
mod gate;
mod pcap;
mod properties;
mod vendors;
