//! Checks of the command `isolane` between hosts in network namespaces. They check the demo and its page, the counters
//! that show isolation, and a domain of hundreds of processes.

pub mod demo;
pub mod domain_size;
pub mod isolation;
pub mod page;
