//! Bounds of the command line that the description does not set, with their reasons.

use isolane_model::HistoryDepth;

/// Default history of `sub` in samples: enough for the burst of a fast writer while the terminal scrolls.
pub(crate) const READER_HISTORY: HistoryDepth = HistoryDepth::new(64).expect("it is in bounds");

/// Minimum payload of a measurement: id, nonce and the length of the padding, four bytes each.
pub(crate) const MIN_PAYLOAD_BYTES: u32 = 12;

/// Maximum payload of a measurement: what other implementations can send in one datagram too, with room for RTPS
/// headers.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 60_000;

/// Maximum length of a shape's color in bytes: ShapeType declares `string<128>`.
pub(crate) const MAX_COLOR_BYTES: usize = 128;

/// Maximum duration of a run in seconds: a day.
pub(crate) const MAX_SECONDS: i64 = 86_400;

/// Maximum pings per second: beyond it the sender measures itself.
pub(crate) const MAX_RATE_HZ: i64 = 100_000;

/// Maximum number of repetitions of a measurement.
pub(crate) const MAX_REPETITIONS: i64 = 100;

/// Colours that `sub` remembers, to name an instance that ends; more than a person can distinguish.
pub(crate) const MAX_COLORS: usize = 256;

/// Problems of a description that are printed; more than a person fixes before the next try.
pub(crate) const SHOWN_PROBLEMS: usize = 20;

/// Maximum size in bytes of a file of recorded facts or of receive queues. The facts of a machine with a thousand
/// interrupts have some 500 KiB.
pub(crate) const RECORDED_BYTES: u64 = 16 << 20;

/// Bytes of `/proc/net/unix` that `top` reads: some 40,000 sockets.
pub(crate) const UNIX_SOCKETS_BYTES: u64 = 4 << 20;

/// Maximum size in bytes of a participant's snapshot and of the received part of the next. With all jobs and endpoints
/// in use a snapshot has some 100 KiB.
pub(crate) const SNAPSHOT_BYTES: usize = 4 << 20;

/// Maximum number of participants that `top` observes.
pub(crate) const WATCHED_PARTICIPANTS: usize = 256;

/// Characters of a name that `top` shows, so that the other columns stay on the screen.
pub(crate) const SHOWN_NAME_CHARACTERS: usize = 40;

/// Notes of a participant that `top` shows.
pub(crate) const SHOWN_NOTES: usize = 4;

/// Maximum length of a capture's block in bytes: the largest packet, and room for a name or a comment. `spy` ends the
/// file at a longer one.
pub(crate) const CAPTURE_BLOCK_BYTES: usize = 256 << 10;

/// Maximum number of interfaces per capture section, and of remembered interface names.
pub(crate) const CAPTURE_INTERFACES: usize = 256;

/// Maximum payload of an IP packet in bytes: its length field has 16 bits.
pub(crate) const PACKET_BYTES: usize = 65_535;

/// Incomplete packets for whose fragments `spy` waits; more are in flight only if fragments were lost.
pub(crate) const FRAGMENTED_PACKETS: usize = 64;

/// Participants that `spy` remembers from discovery; sufficient for a large system.
pub(crate) const KNOWN_PARTICIPANTS: usize = 4_096;
/// Endpoints that `spy` remembers from discovery.
pub(crate) const KNOWN_ENDPOINTS: usize = 40_960;

/// Sample memory of `pub` and `sub` without a description, in bytes. Each has one endpoint, and its history can be set
/// to thousands of samples on the command line.
pub(crate) const SAMPLE_MEMORY: u32 = 64 << 20;

/// Default limit of participants known to `ls` and `why`: the maximum, because they show all participants.
pub(crate) const SEEN_PARTICIPANTS: u32 = isolane_model::limits::MAX_KNOWN_PARTICIPANTS;

/// Remedy that raises the limit.
const RAISE_LIMIT: &str = "raise the limit with --max-participants N, or with `max_participants` of the host in isolane.toml";

/// Remedy when the limit cannot be raised.
const LIMIT_REACHED: &str = "isolane knows 2000 participants at most: name the interface whose participants are meant \
                             (--interface NAME), or divide them among domains";

/// Remedy for full tables with a limit of `participants`.
pub(crate) fn remedy_of_full_tables(participants: u32) -> &'static str {
    match participants < isolane_model::limits::MAX_KNOWN_PARTICIPANTS {
        true => RAISE_LIMIT,
        false => LIMIT_REACHED,
    }
}

/// Other domains that `why` observes by default: those used without a deliberate choice. In each, `why` creates a
/// participant, which announces itself there for some seconds.
pub(crate) const OTHER_DOMAINS: std::ops::RangeInclusive<u32> = 0..=4;

/// Maximum number of writer-reader pairs that `why` judges.
pub(crate) const WHY_PAIRS: usize = 1_024;

/// Reasons that `why` prints as text; JSON has all.
pub(crate) const SHOWN_REASONS: usize = 16;

/// Topics with similar names that `why` reports.
pub(crate) const NEAR_TOPICS: usize = 4;
