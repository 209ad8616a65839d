//! Scenarios from end to end: short runs whose ledgers must balance.

#[path = "../cable/support.rs"]
#[allow(dead_code, reason = "the scenarios need some of it")]
mod support;

mod inside;
mod lanes;
mod rtt;
mod throughput;

/// Scenarios share two cores, so only one runs at a time.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
