//! Limits of the commands, with their reasons. The description does not set them.

use isolane_model::HistoryDepth;

/// Default history depth of `sub` in samples. The terminal is slower than a fast writer, whose burst must not be lost.
pub(crate) const READER_HISTORY: HistoryDepth = HistoryDepth::new(64).expect("it is in bounds");

/// Minimum payload of a measurement in bytes: id, nonce and padding length take four bytes each.
pub(crate) const MIN_PAYLOAD_BYTES: u32 = 12;

/// Maximum payload of a measurement in bytes. Other implementations can also send this much in one datagram, with the
/// RTPS headers.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 60_000;

/// Maximum length of a shape's color in bytes: ShapeType declares `string<128>`.
pub(crate) const MAX_COLOR_BYTES: usize = 128;

/// Maximum duration of a run in seconds, one day.
pub(crate) const MAX_SECONDS: i64 = isolane_bench::limits::MAX_RUN_SECONDS as i64;

/// Maximum pings per second. At a higher rate the sender's own work determines the round-trip times.
pub(crate) const MAX_RATE_HZ: i64 = isolane_bench::limits::MAX_RATE_HZ as i64;

/// Maximum number of repetitions of a measurement.
pub(crate) const MAX_REPETITIONS: i64 = 100;

/// Maximum number of colours that `sub` remembers, to name an instance that ends. A person cannot distinguish more.
pub(crate) const MAX_COLORS: usize = 256;

/// Maximum number of problems of a description to print. A person fixes fewer before the next try.
pub(crate) const SHOWN_PROBLEMS: usize = 20;

/// Maximum size in bytes of a file with recorded facts or receive queues. The facts of a machine with a thousand
/// interrupts have some 500 KiB.
pub(crate) const RECORDED_BYTES: u64 = 16 << 20;

/// Maximum number of bytes of `/proc/net/unix` that `top` reads, enough for some 40,000 sockets.
pub(crate) const UNIX_SOCKETS_BYTES: u64 = 4 << 20;

/// Maximum size in bytes of a participant's snapshot together with the received part of the next one. With all jobs and
/// endpoints in use, a snapshot has some 100 KiB.
pub(crate) const SNAPSHOT_BYTES: usize = 4 << 20;

/// Maximum number of participants that `top` observes, and that `ls` asks.
pub(crate) const WATCHED_PARTICIPANTS: usize = 256;

/// Maximum number of characters of a name that `top` shows, so that the other columns stay on the screen.
pub(crate) const SHOWN_NAME_CHARACTERS: usize = 40;

/// Maximum number of a participant's notes that `top` shows.
pub(crate) const SHOWN_NOTES: usize = 4;

/// Maximum length in bytes of a block of a capture. A block holds the largest packet, and perhaps names and comments.
/// `spy` stops reading at a longer block.
pub(crate) const CAPTURE_BLOCK_BYTES: usize = 256 << 10;

/// Maximum number of interfaces in a section of a capture, and of interface names that `spy` remembers.
pub(crate) const CAPTURE_INTERFACES: usize = 256;

/// Maximum length of an IPv4 packet in bytes, because its length field has 16 bits.
pub(crate) const PACKET_BYTES: usize = 65_535;

/// Maximum number of incomplete packets for whose fragments `spy` waits. More can only occur if fragments were lost.
pub(crate) const FRAGMENTED_PACKETS: usize = 64;

/// Maximum number of participants that `spy` remembers from discovery; enough for a large system.
pub(crate) const KNOWN_PARTICIPANTS: usize = 4_096;
/// Maximum number of endpoints that `spy` remembers from discovery, ten for each participant.
pub(crate) const KNOWN_ENDPOINTS: usize = 40_960;

/// Sample memory of `pub` and `sub` without a description, in bytes. Each has one endpoint, whose history the command
/// line can set to thousands of samples.
pub(crate) const SAMPLE_MEMORY: u32 = 64 << 20;

/// Default limit of remote participants in the tables of `ls` and `why`. It is the maximum, because both commands show
/// all participants.
pub(crate) const SEEN_PARTICIPANTS: u32 = isolane_model::limits::MAX_KNOWN_PARTICIPANTS;

/// Remedy that raises the limit.
const RAISE_LIMIT: &str = "raise the limit with --max-participants N, or with `max_participants` of the host in isolane.toml";

/// Remedy for full tables whose limit is the maximum.
const LIMIT_REACHED: &str = "isolane knows 2000 participants at most: name the interface whose participants are meant \
                             (--interface NAME), or divide them among domains";

/// Returns the remedy for full tables. `participants` is their limit of remote participants.
pub(crate) fn remedy_of_full_tables(participants: u32) -> &'static str {
    match participants < isolane_model::limits::MAX_KNOWN_PARTICIPANTS {
        true => RAISE_LIMIT,
        false => LIMIT_REACHED,
    }
}

/// Other domains that `why` observes by default, because programs often use low numbers without a deliberate choice. In
/// each of these domains `why` creates a participant, which announces itself for some seconds.
pub(crate) const OTHER_DOMAINS: std::ops::RangeInclusive<u32> = 0..=4;

/// Maximum number of writer-reader pairs that `why` judges.
pub(crate) const WHY_PAIRS: usize = 1_024;

/// Maximum number of reasons that `why` prints as text. The JSON form contains all reasons.
pub(crate) const SHOWN_REASONS: usize = 16;

/// Maximum number of topics with similar names that `why` reports.
pub(crate) const NEAR_TOPICS: usize = 4;
