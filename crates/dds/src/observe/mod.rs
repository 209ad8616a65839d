//! What a participant tells those who look at it from another process: `isolane top`.
//!
//! A participant that is [observable](crate::Builder::observable) listens at an abstract Unix socket,
//! [`socket_name`]: it is found in `/proc/net/unix` of the same network namespace and leaves nothing
//! behind, whatever ends the process. Whoever is the same user, or root, connects, sends nothing, and
//! gets a [`Snapshot`] a second, each a line of JSON.
//!
//! ```text
//!   housekeeping, once a second ─> job "observe", priority 0, a bounded step an activation:
//!     accept ─> report ─> look at the datapath ─> write some items of JSON ... ─> send 16 KiB ...
//! ```
//!
//! Nobody who looks can hold anything up: the job is the least urgent there is, each of its steps is
//! short, no system call of it waits, and a client that has not read its last snapshot when the next
//! one is due is dropped. While nobody looks it costs an `accept` a second.

mod form;
mod server;
mod snapshot;
mod text;

pub use self::form::{
    Counts, EndpointSample, FlowSample, InterfaceSample, JobSample, LaneSample, LevelSample,
    ParticipantSample, RefusedSample, RingSample, Snapshot, WorkSample,
};
pub(crate) use self::server::Observer;

/// What a snapshot is; a number that rises when a key changes its meaning.
pub const SCHEMA: &str = "isolane/observe/2";

/// The name of the abstract Unix socket of the `number`th participant of a process: `isolane/PID/N`,
/// in `/proc/net/unix` with an `@` in front of it.
#[must_use]
pub fn socket_name(pid: u32, number: u32) -> String {
    format!("isolane/{pid}/{number}")
}

/// Process and number of a socket with that name, without the `@`; `None` if it is another's.
///
/// ```
/// use isolane::observe::{parse_socket_name, socket_name};
///
/// assert_eq!(parse_socket_name(&socket_name(4_711, 1)), Some((4_711, 1)));
/// assert_eq!(parse_socket_name("isolane/4711"), None);
/// assert_eq!(parse_socket_name("/run/isolane/1/2"), None);
/// ```
#[must_use]
pub fn parse_socket_name(name: &str) -> Option<(u32, u32)> {
    let (pid, number) = name.strip_prefix("isolane/")?.split_once('/')?;
    Some((pid.parse().ok()?, number.parse().ok()?))
}
