//! Announcements: defaults, bounds, what is skipped and what is refused; and what participants say beside.

mod endpoint;
mod participant;
mod participant_message;
mod qos;
mod support;
