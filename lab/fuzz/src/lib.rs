//! Fuzz targets: everything in isolane that reads what others send or write.
//!
//! A target is a plain function over bytes ([`target`]). It panics when something is wrong, and so
//! runs the same everywhere: under libFuzzer, which finds inputs by the code they reach
//! (`cargo xtask fuzz`), and as an ordinary test on stable Rust, which replays the saved corpus and
//! mutates it for a bounded time (`tests/replay.rs`, a step of `cargo xtask test --all`).
//!
//! ```text
//!   corpus/TARGET ──► target::TARGET(bytes)
//!                       rtps, discovery, cdr, frames   bytes, read as they are
//!                       engine                         operations on engines in virtual time
//!                       datapath, participant          operations on frames and participants
//!                       model                          text of a system description
//! ```
//!
//! Targets that take operations read them with [`input::Input`], which makes sense of any bytes;
//! `compose` builds the messages of a liar from valid pieces, `insider` those of one who listens. The target
//! `engine` knows which states of the protocol its inputs have reached ([`reached`]).
//!
//! Nothing here opens a socket: participants meet on a network in memory.

#[path = "../../../tests/support/captures.rs"]
mod captures;
mod compose;
#[path = "../../../tests/support/counting_allocator.rs"]
#[allow(
    unreachable_pub,
    reason = "the file is shared with the tests of other crates"
)]
mod counting_allocator;
mod engine;
pub mod input;
mod insider;
pub mod limits;
pub mod mutate;
mod policies;
pub mod runner;
pub mod seeds;
pub mod target;

pub use engine::{Reached, reached};
