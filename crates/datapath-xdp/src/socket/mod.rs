//! AF_XDP sockets: frames move between a device's queue and memory of this program.
//!
//! ```text
//!            ┌── Umem: chunks ──────────────────────────────────────────┐
//!            │                                                          │
//!   owner ──► fill ──► kernel: a frame arrives ──► receive ──► owner     │   Side::Receive
//!   owner ──► transmit ──► kernel: a frame leaves ──► completion ──► owner  Side::Transmit
//! ```
//!
//! A [`Queue`] is one queue of one device: it has the fill ring and the completion ring, which all
//! lanes of the queue share. Each lane has a [`ReceiveSocket`] and a [`TransmitSocket`] on it, in the
//! same memory. They are apart because a program waits for the one and must not for the other:
//! waiting for a socket with a transmit ring transmits.
//!
//! A chunk's address is in exactly one place, and while it is in a ring nobody touches the chunk's
//! bytes: that is what [`Umem::over`] demands, and what [`Held`] keeps and checks. What comes out of
//! a ring is believed only where it can be true: an index that ran away moves nothing, an address
//! that was not given to the kernel belongs to nobody, a frame that lies in no chunk is none.
//!
//! Nothing here allocates or waits after opening. Opening a queue may take
//! [`BIND_PATIENCE`](crate::limits::BIND_PATIENCE), when its last program has just died.
//!
//! All unsafe code about sockets is here: `system` (calls and mappings), `ring` (entries in shared
//! memory), `umem` (bytes of chunks).

mod busy_poll;
mod error;
mod held;
mod queue;
mod receive;
mod ring;
mod rings;
mod statistics;
mod system;
mod transmit;
mod umem;

pub use self::busy_poll::BusyPoll;
pub use self::error::{OpenError, RingKind};
pub use self::held::{Held, Holding, Side};
pub use self::queue::{BindMode, Mode, Queue, QueueConfig};
pub use self::receive::ReceiveSocket;
pub use self::rings::{CompletionRing, Descriptor, FillRing, ReceiveRing, TransmitRing};
pub use self::statistics::Statistics;
pub use self::transmit::{Kicked, Stopped, TransmitSocket};
pub use self::umem::{Chunk, ChunkBytes, Located, Umem, UmemError};
