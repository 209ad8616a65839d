//! Fuzz targets for all code of isolane that reads untrusted data.
//!
//! A target is a function of bytes ([`target`]) that panics if a check fails. `cargo xtask fuzz` runs the target under
//! libFuzzer, which is guided by coverage. `tests/replay.rs`, a step of `cargo xtask test --all`, runs the target on
//! the saved corpus, and on mutations of the corpus for a bounded time.
//!
//! ```text
//!   corpus/TARGET ──► target::TARGET(bytes)
//!                       rtps, discovery, cdr, frames   bytes, read as they are
//!                       protocol                         operations on local participants in virtual time
//!                       datapath, participant          operations on frames and participants
//!                       model                          text of a system description
//! ```
//!
//! Operations are read with [`input::Input`], which accepts any bytes. `adversary` builds adversarial messages from
//! valid submessages. `eavesdropper` builds messages of an attacker that has seen earlier messages. The target
//! `protocol` records which protocol states its inputs have reached ([`reached`]).
//!
//! No target opens a socket, because participants use an in-memory network.

mod adversary;
#[path = "../../../tests/support/captures.rs"]
mod captures;
#[path = "../../../tests/support/counting_allocator.rs"]
#[allow(
    unreachable_pub,
    reason = "the file is shared with the tests of other crates"
)]
mod counting_allocator;
mod eavesdropper;
pub mod input;
pub mod limits;
mod policies;
mod protocol;
pub mod runner;
pub mod seeds;
pub mod target;

pub use protocol::{Reached, reached};
