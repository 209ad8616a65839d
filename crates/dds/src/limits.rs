//! Bounds of the participant, each with its reason.

use std::time::Duration;

/// Default of [`Qos::max_bytes`](crate::Qos::max_bytes) for types with unbounded strings or sequences: a laser scan or
/// a compressed image fits. Pages are touched when samples fill them.
pub const UNBOUNDED_BYTES: usize = 64 << 10;

/// Minimum default sample size of a bounded, appendable type. Members appended by a newer writer fit as long as the
/// sample fits an Ethernet frame.
pub const APPENDABLE_BYTES: usize = 1_400;

/// Minimum sample size derived from a type. A dispose or unregister fits, also from implementations that pad its key
/// ([`MIN_KEY_PAYLOAD_BYTES`]).
pub const LEAST_BYTES: usize = 64;

/// Bytes of a discovery datagram that are touched before the start.
pub(crate) const ANNOUNCEMENT_BYTES: usize = 1_400;

/// Maximum serialised sample size.
pub const MAX_SAMPLE_BYTES: usize = isolane_rtps::limits::MAX_SAMPLE_BYTES;

/// Maximum serialised sample size in one datagram: the maximum UDP payload without RTPS headers. A datapath with
/// smaller frames has a smaller bound.
pub const MAX_DATAGRAM_SAMPLE_BYTES: usize = 65_000;

/// Minimum fragment size for sending and reassembly.
pub const MIN_FRAGMENT_BYTES: u16 = isolane_rtps::limits::MIN_FRAGMENT_BYTES;

/// Minimum payload of a dispose or unregister.
///
/// Fast DDS (seen in 2.9) takes a payload of up to 16 bytes for the key hash, even if the key hash is present too. Fast
/// DDS then ends an instance that does not exist. Readers stop at the end of the key and ignore the zeros after it.
pub const MIN_KEY_PAYLOAD_BYTES: usize = 20;

/// Divisor of a link's rate for discovery: 5 %.
pub const DISCOVERY_PART: u64 = 20;

/// Jobs of a participant: 9 lanes, 16 priorities of protocol work, housekeeping, recycling of frames, discovery events,
/// and two of an observable participant. The remaining 228 are a callback per reader, listeners, timers and writer
/// handles.
pub const MAX_JOBS: usize = 258;

/// Additional jobs for each local writer and reader beyond the default limits: a callback job of the reader, and a
/// listener job of each.
pub const JOBS_PER_PAIR: usize = 3;

/// Writers of a topic that are compared with a reader that has no matched writer. Each announcement is parsed, in about
/// a microsecond.
pub const COMPARED_WRITERS: usize = 256;

/// Entries of the endpoint table for each remote participant on a described host.
#[cfg(feature = "config")]
pub const ENDPOINTS_PER_PARTICIPANT: u32 = 10;

/// Entries of the match table for each remote participant on a described host, two or three of which discovery uses.
#[cfg(feature = "config")]
pub const MATCHES_PER_PARTICIPANT: u32 = 8;

/// Default receive buffer in bytes requested for each socket (SO_RCVBUF). The kernel limits the value to
/// `net.core.rmem_max`, and doubles it for its own overhead.
///
/// The system's usual 208 KiB are filled by 90 datagrams of 1 KiB. This size holds a reliable writer's history of 256
/// samples, which the writer may send before the reader reads. Sockets of different levels have separate buffers.
pub const RECEIVE_BUFFER_BYTES: usize = 1 << 20;

/// Maximum frames received, samples delivered and steps of protocol work between two polls at the highest level in use.
/// Steps that send samples continue to the bound of a burst. Below that level, [`BURST_TIME`] bounds an activation.
///
/// Jobs as urgent as that level are followed by a poll after this number of items at the latest. After this number of a
/// level's samples, one activation of its protocol work runs if any waits. It delays only that level.
pub const BURST: usize = 16;

/// Default time that more urgent levels may wait for a burst of a lower level.
pub const BURST_TIME: Duration = Duration::from_micros(50);

/// CPU time of a datagram, from which the number of datagrams in a burst follows: sending one of 1,400 bytes costs half
/// of it without segmentation, and the kernel's receive work on the same core the other half. With segmentation, a
/// datagram costs less than a quarter of that.
pub const DATAGRAM_TIME: Duration = Duration::from_micros(6);

/// Rate of a link up to which a burst below a more urgent level is a single datagram: at 100 Mbit/s, a maximal frame
/// alone takes 0.12 ms.
pub const SLOW_LINK_BITS_PER_S: u64 = 100_000_000;

pub use isolane_datapath::limits::USUAL_LINK_BITS_PER_S;

/// Maximum frames per call that receives from a lane below the highest level in use, where a burst may exceed one
/// datagram. If each holds 64 KiB, the call copies for
/// about as long as [`BURST_TIME`].
pub const BULK_FRAMES: u16 = 4;

/// Polls of the rings in memory by a spinning loop before one poll of all sources by a system call. A datagram on a
/// socket waits for this number of idle iterations, some microseconds.
pub const SPINS_PER_LOOK: u32 = 64;

/// Minimum budget period. A kernel timer or a thread refills the budget each period. This must cost little compared to
/// the work that the budget saves.
pub const MIN_BUDGET_PERIOD: Duration = Duration::from_micros(100);

/// Maximum budget period. A burst may use the whole budget at once, after which nothing is received for the rest of the
/// period. So the period must not exceed the lease of most participants.
pub const MAX_BUDGET_PERIOD: Duration = Duration::from_secs(10);

/// Concurrent observers of a participant ([`observe`](crate::observe)): a person or two, and a monitor.
pub const MAX_OBSERVERS: usize = 4;

/// Backlog of connections that are accepted once a second: Linux' default maximum (net.core.somaxconn). Any user of
/// the host may connect; the user is checked on acceptance.
pub const OBSERVER_BACKLOG: u16 = 4_096;

/// Connections accepted or refused per step, which takes some 50 microseconds.
pub const OBSERVERS_ACCEPTED: u16 = 16;

/// Observable participants per process, which is the number of names tried.
pub const OBSERVED_PARTICIPANTS: u32 = 64;

/// Jobs, endpoints, flows or rings written as JSON per activation at priority 0: this delays more urgent jobs by some
/// ten microseconds.
pub const OBSERVED_ITEMS: usize = 8;

/// Readers whose latencies are summarised per activation: 1,024 buckets each are read and cleared, in some microseconds.
pub const OBSERVED_LATENCIES: usize = 4;

/// Discovered participants or endpoints written as a line per activation: each delays more urgent jobs by some ten
/// microseconds.
pub const LISTED_ITEMS: usize = 2;

/// Maximum length in bytes of a list of discovered entities that is read. A list of 20,000 endpoints, the most that a
/// participant knows, with 1 KiB of QoS and names each, has some 40 MiB.
pub const LIST_BYTES: u64 = 64 << 20;

/// Maximum length in bytes of a line of such a list: an announcement has two hexadecimal digits a byte, and the counters
/// of the source have some 4 KiB.
pub const LIST_LINE_BYTES: usize = 3 * isolane_rtps::limits::DISCOVERY_SLOT_BYTES;

/// Bytes sent to an observer per activation.
pub const OBSERVER_SEND_BYTES: usize = 16 << 10;

/// Items (datagrams, samples, steps of protocol work) after which a [`poll`](crate::Participant::poll) ends, and maximum
/// activations of a [`run_until`](crate::Participant::run_until) after its timeout.
pub const ITEMS_PER_POLL: usize = 64;

/// Number of participants at each named peer address that receive announcements. RTPS gives each participant of a host
/// its own port, and their number is unknown. An announcement to all these ports costs some 3 KB every two seconds, and
/// an ICMP error for each unused port.
pub const PARTICIPANTS_PER_PEER: u32 = 10;

/// Maximum destinations of announcements, which are groups and ports of named peers: 32 hosts, with some 100 KB/s of
/// announcements.
pub const ANNOUNCED_PLACES: usize = 32 * PARTICIPANTS_PER_PEER as usize;

/// Delay before protocol work that found no frame tries again, because no event reports frames that become free. Short
/// compared to heartbeat periods, long compared to an iteration of the loop.
pub const FRAME_RETRY: Duration = Duration::from_millis(1);

/// Minimum time between two log lines about the same kind of problem.
pub const LOG_PERIOD: Duration = Duration::from_secs(1);

/// Incompatible pairs that are logged once: more than any reasonably configured system has, and few enough for a
/// linear search.
pub const PAIRS_REMEMBERED: usize = 128;

/// Runs of housekeeping, one a second, after which a reader without a matched writer is worth a warning: longer than
/// discovery takes, and than the lease of a participant that was there before.
pub const UNMATCHED: u8 = 10;

/// Time during which a reader repeatedly finds no sample, and the loop does not run, before a warning: longer than a
/// program that runs the loop itself does anything else.
pub const NOT_DRIVEN: Duration = Duration::from_secs(3);

/// Minimum time that a writer handle's endpoint stays after its [`WriterHandle`](crate::WriterHandle) was dropped:
/// readers discard datagrams in flight once they know of a writer's deletion.
pub const HANDLE_GRACE: Duration = Duration::from_millis(100);

/// Maximum time that a reliable writer handle's endpoint stays after its [`WriterHandle`](crate::WriterHandle) was
/// dropped, so that readers can receive and acknowledge its samples.
pub const HANDLE_LINGER: Duration = Duration::from_secs(2);

/// Capacity of the rings of a [`WriterHandle`](crate::WriterHandle) and of a [`ReaderHandle`](crate::ReaderHandle), in
/// samples.
pub const HANDLE_QUEUE: usize = 16;

/// Calls of handles that wait for the participant's thread: more than threads that create endpoints at once. A thread
/// that finds no room tries again. Dropped [`ReaderHandle`](crate::ReaderHandle)s have room in addition.
pub const HANDLE_CALLS: usize = 64;

/// Samples taken from a writer handle's ring per activation.
pub const HANDLE_ITEMS: u16 = 4;

/// Maximum length of a filter expression in bytes: some hundred comparisons, more than people write by hand. Remote
/// readers announce expressions too.
pub const MAX_FILTER_BYTES: usize = 4 << 10;

/// Maximum nesting depth of conditions: each level takes some hundred bytes of stack for parsing and evaluation.
pub const MAX_FILTER_DEPTH: usize = 32;

/// Maximum comparisons of a remote reader's filter that a writer evaluates per sample. With a longer filter, the
/// writer sends everything and the reader filters.
pub const PEER_COMPARISONS: usize = 16;

/// Maximum total length in bytes of the LIKE patterns of a remote reader's filter. Each byte may be compared with each
/// byte of a filtered sample, at most 1,400: at worst some 20,000 comparisons per reader, or tens of microseconds.
pub const PEER_PATTERN_BYTES: usize = 16;

/// Steps of one comparison of a remote reader's filter, in the unit of
/// [`MAX_FILTER_STEPS`](isolane_rtps::limits::MAX_FILTER_STEPS): the member is looked up by its name and compared.
pub(crate) const COMPARISON_STEPS: usize = 64;

/// Steps of a pattern byte, which is compared with each byte of a sample.
pub(crate) const PATTERN_BYTE_STEPS: usize = 1_400;

const _: () = assert!(
    PEER_COMPARISONS * COMPARISON_STEPS + PEER_PATTERN_BYTES * PATTERN_BYTE_STEPS
        <= isolane_rtps::limits::MAX_FILTER_STEPS as usize / 4,
    "a writer can ask four of the dearest"
);

/// Maximum datagrams that a batching best-effort writer sends in `write` or `flush`: a full batch, unless datagrams of
/// other writers were queued before. The loop sends the rest.
pub(crate) const FLUSHED_DATAGRAMS: usize = isolane_rtps::limits::BATCHED_DATAGRAMS;

/// Conditions of a wait set. Each is evaluated after a change, so several wait sets are cheaper than one with many
/// conditions.
pub const MAX_WAIT_SET_CONDITIONS: usize = 64;

/// Participants of a wait set. A thread usually runs one, and rarely more than a few.
pub const MAX_WAIT_SET_PARTICIPANTS: usize = 8;
