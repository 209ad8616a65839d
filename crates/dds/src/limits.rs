//! Every bound of the participant, with its reason.

use std::time::Duration;

/// The largest serialised sample of a type with strings or sequences that have no bound, unless
/// [`Qos::max_bytes`](crate::Qos::max_bytes) says otherwise: a scan of a laser or a compressed image fits. Memory is
/// used as samples fill it.
pub const UNBOUNDED_BYTES: usize = 64 << 10;

/// The largest serialised sample of a bounded, appendable type, where the type comes to less: members that a newer
/// writer has appended fit as long as the sample fits an Ethernet frame.
pub const APPENDABLE_BYTES: usize = 1_400;

/// The smallest bound of a sample that follows from a type. The end of an instance fits, which other implementations
/// make longer than its key ([`MIN_KEY_PAYLOAD_BYTES`]).
pub const LEAST_BYTES: usize = 64;

/// Bytes of a discovery datagram that are touched before the start.
pub(crate) const ANNOUNCEMENT_BYTES: usize = 1_400;

/// The largest serialised sample there can be.
pub const MAX_SAMPLE_BYTES: usize = isolane_engine::limits::MAX_SAMPLE_BYTES;

/// The largest serialised sample that can leave as one datagram: one of UDP, less the heads. A datapath
/// with smaller frames has a smaller bound.
pub const MAX_DATAGRAM_SAMPLE_BYTES: usize = 65_000;

/// The shortest fragments that are sent and put together.
pub const MIN_FRAGMENT_BYTES: u16 = isolane_engine::limits::MIN_FRAGMENT_BYTES;

/// The shortest payload of an instance's end. Fast DDS (seen in 2.9) takes one of up to 16 bytes for the
/// key hash, although the key hash is there too, and then ends an instance nobody knows. Readers stop
/// at the end of the key, so zeros behind it change nothing.
pub const MIN_KEY_PAYLOAD_BYTES: usize = 20;

/// Part of a link's rate that discovery may send: 5 %.
pub const DISCOVERY_PART: u64 = 20;

/// Jobs of a participant: 9 lanes, 16 priorities of protocol work, a callback a reader, timers and
/// remote writers.
pub const MAX_JOBS: usize = 256;

/// Jobs more for each local writer and reader beyond those that the limits have room for by default: a callback, and a
/// listener of each.
pub const JOBS_PER_PAIR: usize = 3;

/// Bytes of receive buffer asked of the kernel for each socket unless the builder says otherwise; it
/// grants twice as many of its own, as far as `net.core.rmem_max` allows. Beside the system's usual
/// 208 KiB, which 90 datagrams of 1 KiB fill, a reliable writer's history of 256 samples fits, so that
/// a burst of it is not dropped and repaired. No socket's buffer takes room from another level's.
pub const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// Datagrams one activation receives or sends, and samples one activation hands out, at the highest level
/// in use; below it, one. What is as urgent as that level is looked for again after as many items at the
/// latest, and after as many of a level's samples its protocol work has its turn, if any waits: then
/// the level itself waits for one activation of it, and nobody else.
pub const BURST: usize = 16;

/// Looks of a loop that spins, seeing rings in memory, before one that asks the system about all
/// sources: what comes by a socket beside the rings waits so many turns of an idle loop, some
/// microseconds.
pub const SPINS_PER_LOOK: u32 = 64;

/// Shortest period of a budget: it is filled up by a timer of the kernel or by a thread, and what these
/// cost is to stay small beside what it saves.
pub const MIN_BUDGET_PERIOD: Duration = Duration::from_micros(100);

/// Longest period of a budget: a burst may take all of it at once, and then nothing comes for so long,
/// the lease of most participants.
pub const MAX_BUDGET_PERIOD: Duration = Duration::from_secs(10);

/// Processes that may look at a participant at once ([`observe`](crate::observe)): a person or two, and a
/// monitor.
pub const MAX_OBSERVERS: usize = 4;

/// Connections that wait at most until they are accepted, once a second: as many as Linux allows by default
/// (net.core.somaxconn). Any user of the host may connect; who it is shows when the connection is accepted.
pub const OBSERVER_BACKLOG: u16 = 4_096;

/// Connections accepted or refused in one step: some 50 microseconds.
pub const OBSERVERS_ACCEPTED: u16 = 16;

/// Observable participants of a process: as many names are tried.
pub const OBSERVED_PARTICIPANTS: u32 = 64;

/// Jobs, endpoints, flows or rings written as JSON in one activation at priority 0: some ten microseconds,
/// which is what anything more urgent may have to wait.
pub const OBSERVED_ITEMS: usize = 8;

/// Bytes sent to an observer in one activation.
pub const OBSERVER_SEND_BYTES: usize = 16 << 10;

/// Activations one [`poll`](crate::Participant::poll) runs at most before it returns to a foreign
/// loop, and one [`run_until`](crate::Participant::run_until) when its time is over.
pub const ACTIVATIONS_PER_POLL: usize = 64;

/// Participants looked for at each named peer address: RTPS gives each participant of a host its own
/// port, and a peer does not say how many it has. An announcement to each costs some 3 KB every two seconds, and an ICMP error for each port that nobody has.
pub const PARTICIPANTS_PER_PEER: u32 = 10;

/// Places a participant announces itself to, each group and each port of a named peer: 32 hosts, whose
/// announcements come to some 100 KB/s.
pub const ANNOUNCED_PLACES: usize = 32 * PARTICIPANTS_PER_PEER as usize;

/// How long protocol work that found no frame waits before it looks for one again: frames come
/// home without a word. Short beside the time between heartbeats, long beside a turn of the loop.
pub const FRAME_RETRY: Duration = Duration::from_millis(1);

/// Between two lines of the log about one kind of trouble, however much there is of it.
pub const LOG_PERIOD: Duration = Duration::from_secs(1);

/// Incompatible pairs that were named in the log and are not named again: more than a system has that
/// is not thoroughly misconfigured, and few enough to be searched.
pub const PAIRS_REMEMBERED: usize = 128;

/// How long a writer of another thread stays at least after its
/// [`RemoteWriter`](crate::RemoteWriter) was dropped: datagrams of it are still on their way, and
/// readers drop those of a writer they no longer know.
pub const REMOTE_GRACE: Duration = Duration::from_millis(100);

/// How long a reliable writer of another thread stays after its [`RemoteWriter`](crate::RemoteWriter)
/// was dropped, so that readers can get and acknowledge what it handed over.
pub const REMOTE_LINGER: Duration = Duration::from_secs(2);

/// Samples a [`RemoteWriter`](crate::RemoteWriter) can have on the way to the executor.
pub const REMOTE_QUEUE: usize = 16;

/// Samples one activation takes from a remote writer's queue.
pub const REMOTE_ITEMS: u16 = 4;

/// Bytes of a filter's expression that are read: some hundred comparisons, more than anybody writes by hand. A
/// peer's reader brings one too.
pub const MAX_FILTER_BYTES: usize = 4 << 10;

/// Conditions that lie in one another: each takes some hundred bytes of stack to read and to judge.
pub const MAX_FILTER_DEPTH: usize = 32;

/// Comparisons of a peer's filter that a writer makes before it sends a sample. A longer one is not made by the
/// writer: that reader gets everything, and filters alone.
pub const PEER_COMPARISONS: usize = 16;

/// Bytes of all patterns of LIKE in such a filter. Each may be compared with each byte of a sample that is filtered,
/// 1,400 at most: some 20,000 comparisons of bytes a reader, tens of microseconds, in the worst case.
pub const PEER_PATTERN_BYTES: usize = 16;

/// Steps of one comparison of such a filter, as the engine counts them
/// ([`MAX_FILTER_STEPS`](isolane_engine::limits::MAX_FILTER_STEPS)): a member is looked up by its name, and compared.
pub(crate) const COMPARISON_STEPS: usize = 64;

/// The same of a byte of a pattern, which is compared with each byte of a sample.
pub(crate) const PATTERN_BYTE_STEPS: usize = 1_400;

const _: () = assert!(
    PEER_COMPARISONS * COMPARISON_STEPS + PEER_PATTERN_BYTES * PATTERN_BYTE_STEPS
        <= isolane_engine::limits::MAX_FILTER_STEPS as usize / 4,
    "a writer can ask four of the dearest"
);

/// Datagrams of its level that a best-effort writer sends before `write` or `flush` returns, where it keeps samples
/// back: what half of its history comes to, and some of others that are before it. More is left to the loop.
pub(crate) const FLUSHED_DATAGRAMS: usize = 16;

/// Conditions of a wait set: each is asked when something has changed, so that many would cost more than a wait set
/// for each purpose.
pub const MAX_WAIT_SET_CONDITIONS: usize = 64;

/// Participants a wait set drives: a thread has one, mostly, and rarely more than one for each core it stands for.
pub const MAX_WAIT_SET_PARTICIPANTS: usize = 8;
