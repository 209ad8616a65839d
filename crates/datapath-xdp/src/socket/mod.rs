//! AF_XDP sockets: frames move between a device's queue and the program's UMEM.
//!
//! ```text
//!            ┌── Umem: chunks ──────────────────────────────────────────┐
//!            │                                                          │
//!   owner ──► fill ──► kernel: a frame arrives ──► receive ──► owner     │   Side::Receive
//!   owner ──► transmit ──► kernel: a frame leaves ──► completion ──► owner  Side::Transmit
//! ```
//!
//! A [`Queue`] is one queue of one device, with the fill and completion rings shared by its lanes. Each lane has a
//! [`ReceiveSocket`] and a [`TransmitSocket`] on it, in the same memory. They are separate because waiting for a socket
//! with a transmit ring transmits.
//!
//! A chunk's address is in exactly one place, and the chunk is not accessed while its address is in a ring.
//! [`Umem::over`] requires this; [`Held`] maintains and checks it. Values from a ring are validated: an index out of
//! range is ignored, an address that the kernel did not receive has no owner, and a frame that is not within one chunk
//! is rejected.
//!
//! After opening, nothing here allocates or blocks. Opening a queue may take
//! [`BIND_PATIENCE`](crate::limits::BIND_PATIENCE), if the process that had it has just died.
//!
//! All unsafe code about sockets is in `system_calls` (calls and mappings), `ring` (entries in shared memory) and
//! `umem` (bytes of chunks).

mod error;
mod held;
mod lane;
mod queue;
mod ring;
mod rings;
mod system_calls;
mod umem;

pub use self::error::{OpenError, RingKind};
pub use self::held::{Held, Holding, Side};
pub use self::lane::{BusyPoll, Kicked, ReceiveSocket, Statistics, Stopped, TransmitSocket};
pub use self::queue::{BindMode, Mode, Queue, QueueConfig};
pub use self::rings::{CompletionRing, Descriptor, FillRing, ReceiveRing, TransmitRing};
pub use self::umem::{Chunk, ChunkBytes, Located, Umem, UmemError};
