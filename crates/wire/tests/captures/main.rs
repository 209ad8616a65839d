//! Tests over what other implementations sent, which lies beside this file: what it means
//! ([`vendors`], [`announcements`]), the headers around it ([`frames`]), and what becomes of it when it is cut or
//! changed ([`properties`]).

mod announcements;
mod frames;
mod pcap;
mod properties;
mod vendors;
