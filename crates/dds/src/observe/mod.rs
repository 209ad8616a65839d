//! Observation of a participant from another process, as by `isolane top`.
//!
//! An [observable](crate::Builder::observable) participant listens on an abstract Unix socket, [`socket_name`].
//! Observers find the socket in `/proc/net/unix` of their network namespace; it ends with the process. A process of the
//! same user or of root connects, sends nothing, and receives one [`Snapshot`] a second, each a line of JSON.
//!
//! ```text
//!   housekeeping, once a second ─> job "observe", priority 0, a bounded step an activation:
//!     accept ─> report ─> look at the datapath ─> write some items of JSON ... ─> send 16 KiB ...
//! ```
//!
//! A second socket, [`discovered_socket_name`], is for `isolane ls`: a process connects, sends nothing, and receives the
//! [list of the participants and endpoints](DiscoveredList) that this participant knows, at once.
//!
//! Observers cannot delay the participant: the job has the lowest priority, its steps are short, and none of its system
//! calls blocks. A client is dropped if it has not read its last snapshot when the next one is due. Without observers
//! the cost is one `accept` a second, two where the loop does not sleep in epoll.

mod discovered_server;
mod discovery_list;
mod json_writer;
mod latency;
mod schema;
mod server;
mod snapshot;

pub(crate) use self::discovered_server::DiscoveredServer;
pub use self::discovery_list::{
    DISCOVERED_SCHEMA, DiscoveredList, ListSource, discovered_socket_name,
};
pub(crate) use self::latency::LatencyHistogram;
pub use self::schema::{
    Counts, EndpointSample, FlowSample, InterfaceSample, JobSample, LaneSample, LatencySample,
    LevelSample, ParticipantSample, RefusedSample, RingSample, Snapshot, WorkSample,
};
pub(crate) use self::server::Observer;
pub use self::snapshot::{protocol_counts, reader_counts, writer_counts};

/// Schema of a snapshot. The number increases when a key changes its meaning.
pub const SCHEMA: &str = "isolane/observe/3";

/// Returns the name of the abstract Unix socket of the `number`th participant of a process: `isolane/PID/N`, with a
/// leading `@` in `/proc/net/unix`.
#[must_use]
pub fn socket_name(pid: u32, number: u32) -> String {
    format!("isolane/{pid}/{number}")
}

/// Parses a socket name without the `@` into process id and number; `None` for other sockets.
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
