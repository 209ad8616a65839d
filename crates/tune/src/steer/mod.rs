//! Prediction of a device's receive queues: computed from the hash key, or learnt from observed queues if the key is
//! unreadable. This module sends nothing and accesses no device.
//!
//! It serves NICs without flow rules. Each level has separate UDP ports, so there are two ways to a separate queue: an
//! RSS table in which the entries of its ports map there ([`reserve`]); or, with a fixed table, ports whose entries map
//! to that queue ([`on_queue`]).

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
