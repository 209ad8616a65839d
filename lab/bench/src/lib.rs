//! What isolane is measured with: two test hosts in network namespaces, the emulated cable
//! between them, the flood that disturbs it, the recorder of round trips and the report.
//!
//! The way of a measurement: a [`namespace::Testbed`] makes three anonymous namespaces; a
//! [`cable`] child process relays every frame between the hosts; [`flood`] child processes load
//! it; the two ends of a round trip each fill a recorder of [`record`]; the stamps are merged,
//! become [`record::Statistics`], and leave as a [`report::Report`]. Every hop keeps a ledger,
//! and a run whose ledgers do not balance is no result.
//!
//! Nothing here sends a packet in the namespace the program was started in, and nothing outlives
//! the process: namespaces are held by file descriptors only, children die with their parent.
//!
//! Unsafe code lives in the private module `system` and in `namespace` (threads that change theirs, the
//! hook between fork and exec), behind safe calls.

pub mod bulk;
pub mod cable;
pub mod capture;
pub mod child;
pub mod clock;
pub mod flood;
pub mod limits;
pub mod namespace;
mod pace;
pub mod process;
pub mod record;
pub mod report;
pub mod scenario;
pub mod stop;
pub mod storm;
mod system;
pub mod target;
