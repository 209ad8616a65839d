//! Tests of announcements: defaults, bounds, skipped and refused parts; and of the other messages of participants.

mod endpoint;
mod participant;
mod participant_message;
mod qos;
mod support;
