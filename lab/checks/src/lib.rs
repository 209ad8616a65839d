//! Checks of the command `isolane` between hosts in network namespaces: the demo and the page it writes, isolation
//! by counters, and a domain of hundreds of processes.

pub mod demo;
pub mod domain_size;
pub mod isolation;
pub mod page;
