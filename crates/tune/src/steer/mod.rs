//! Where a device's receive hash brings datagrams: computed where its key can be read, learnt from where
//! datagrams land where it cannot. Nothing here sends anything or touches a device.
//!
//! For NICs without steering rules: a level has UDP ports of its own, so what brings its flows to
//! a queue of their own is either the receive table, in which the entries their ports pick lead there
//! ([`reserve`]), or, where the table is fixed, a choice of ports that pick entries of that queue
//! ([`on_queue`]).

mod learn;
mod ports;
mod rounds;
mod table;
mod toeplitz;

pub use learn::{Contradiction, Learner};
pub use ports::{Hashing, apart, on_queue};
pub use rounds::{Round, probed_ports, rounds};
pub use table::{reserve, shared};
pub use toeplitz::{KEY_BYTES, Tuple, entry, hash};
