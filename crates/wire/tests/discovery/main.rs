//! Announcements: defaults, bounds, what is skipped and what is refused.

mod endpoint;
mod participant;
mod qos;
mod support;
