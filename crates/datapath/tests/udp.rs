//! The UDP datapath keeps the contract, by unicast on 127.0.0.1.

mod common;

isolane_datapath::conformance!(unicast, common::UdpOnLoopback);
