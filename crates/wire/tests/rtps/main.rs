//! Tests of RTPS messages: every submessage in both byte orders, and each rule of validity violated once.

mod acknowledgement;
mod bytes;
mod data;
mod fragments;
mod group;
mod header_extension;
mod info;
mod lists;
mod message;
mod sets;
mod writing;
