//! Announcements: defaults, bounds, what is skipped and what is refused; and the other messages of participants.

mod endpoint;
mod participant;
mod participant_message;
mod qos;
mod support;
