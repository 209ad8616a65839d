//! The memory datapath keeps the contract.

#[path = "common/memory.rs"]
mod common;

use common::MemoryNetwork;

isolane_datapath::conformance!(unicast, MemoryNetwork);
isolane_datapath::conformance!(multicast, MemoryNetwork);
