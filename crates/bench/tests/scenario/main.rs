//! Scenarios from end to end: short runs whose ledgers must balance.

#[path = "../cable/support.rs"]
#[allow(dead_code)]
mod support;

mod rtt;
mod throughput;
