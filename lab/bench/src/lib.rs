//! Measurement harness of isolane: two test hosts in network namespaces, the emulated cable between them, disturbing
//! traffic, the recorder of round trips and the report.
//!
//! A [`namespace::TestHosts`] makes three anonymous namespaces. A [`cable`] child process relays every frame between
//! the hosts, and [`background_load`] child processes load the cable. Each end of a round trip fills a recorder of
//! [`record`]; the merged timestamps become [`statistics::Statistics`] and a [`report::Report`]. Every hop keeps a
//! ledger, and a run whose ledgers do not balance is invalid.
//!
//! No packet is sent in the namespace of the calling program. Nothing outlives the process: namespaces are held by file
//! descriptors, and children die with their parent.
//!
//! Unsafe code is limited to the private module `system` and to `namespace` (setns in threads, the hook between fork
//! and exec), behind safe functions.

pub mod background_load;
pub mod cable;
pub mod capture;
pub mod child;
pub mod clock;
pub mod experiment;
pub mod limits;
pub mod multicast_load;
pub mod namespace;
pub mod process;
pub mod record;
pub mod report;
pub mod scenario;
pub mod statistics;
pub mod stop;
mod system;
pub mod traffic_load;
pub mod traffic_source;
