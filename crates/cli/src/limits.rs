//! Every bound of the command line that the description does not set, with its reason.

use isolane::BusyPoll;
use isolane_model::HistoryDepth;

/// Samples of an instance `sub` holds until they are printed, when nobody says how many: what a fast
/// writer sends while a terminal scrolls.
pub(crate) const READER_HISTORY: HistoryDepth = HistoryDepth::new(64).expect("it is in bounds");

/// Smallest payload of a measurement: id, nonce and the length of the padding, four bytes each.
pub(crate) const MIN_PAYLOAD_BYTES: u32 = 12;

/// Largest payload of a measurement: what other implementations can send in one datagram too, with room
/// for the heads of RTPS.
pub(crate) const MAX_PAYLOAD_BYTES: u32 = 60_000;

/// Bytes of a shape's color: ShapeType declares `string<128>`.
pub(crate) const MAX_COLOR_BYTES: usize = 128;

/// Seconds of a run: a day is longer than anybody watches one.
pub(crate) const MAX_SECONDS: i64 = 86_400;

/// Pings a second: beyond it the sender measures itself.
pub(crate) const MAX_RATE_HZ: i64 = 100_000;

/// Repetitions of a measurement: more is another measurement.
pub(crate) const MAX_REPETITIONS: i64 = 100;

/// Colours `sub` remembers, so that it can name an instance that ends: more than anybody tells
/// apart.
pub(crate) const MAX_COLORS: usize = 256;

/// How the loop drives the device where it busy polls: frames of one look, as many as a burst of the
/// highest level four times, so that the others do not wait long for it.
pub(crate) const BUSY_POLL: BusyPoll = BusyPoll {
    microseconds: 20,
    budget: 64,
};

/// Problems of a description that are printed: more than a person mends before the next try.
pub(crate) const SHOWN_PROBLEMS: usize = 20;

/// Bytes of recorded facts or placements: those of a machine with a thousand interrupts have some 500 KiB.
pub(crate) const RECORDED_BYTES: u64 = 16 << 20;

/// Bytes of `/proc/net/unix` that `top` reads: some 40,000 sockets.
pub(crate) const UNIX_SOCKETS_BYTES: u64 = 4 << 20;

/// Bytes of a participant's snapshot, and of what has come of the next: one with all its jobs and
/// endpoints in use has some 100 KiB.
pub(crate) const SNAPSHOT_BYTES: usize = 4 << 20;

/// Participants that `top` looks at: more than anybody looks through.
pub(crate) const WATCHED_PARTICIPANTS: usize = 256;

/// Characters of a name that `top` shows: with more, the columns beside it would leave the screen.
pub(crate) const SHOWN_NAME_CHARACTERS: usize = 40;

/// Notes of a participant that `top` shows.
pub(crate) const SHOWN_NOTES: usize = 4;

/// Bytes of the longest block of a capture: the largest packet with room for a name or a comment.
/// The file ends, for `spy`, at a longer one.
pub(crate) const CAPTURE_BLOCK_BYTES: usize = 256 << 10;

/// Interfaces of a capture's section, or names of interfaces that are kept: a host has fewer.
pub(crate) const CAPTURE_INTERFACES: usize = 256;

/// Bytes of an IP packet's payload: its length field has 16 bits.
pub(crate) const PACKET_BYTES: usize = 65_535;

/// Packets that `spy` waits for the missing fragments of: more than are on their way at a time,
/// unless fragments were lost.
pub(crate) const FRAGMENTED_PACKETS: usize = 64;

/// Participants that `spy` remembers from discovery: as many as a large system has.
pub(crate) const KNOWN_PARTICIPANTS: usize = 4_096;
/// Endpoints that `spy` remembers from discovery.
pub(crate) const KNOWN_ENDPOINTS: usize = 40_960;

/// Bytes of memory that the samples of `pub` and `sub` have where no description says: each has one endpoint, and
/// histories of thousands of samples are asked for by a number on the command line.
pub(crate) const SAMPLE_MEMORY: u32 = 64 << 20;

/// Participants that `pub` and `sub` know at most unless somebody says otherwise: the library's default.
pub(crate) const USUAL_PARTICIPANTS: u32 = 1_000;

/// The same of `ls` and `why`, which are there to see who is there: as many as can be said.
pub(crate) const SEEN_PARTICIPANTS: u32 = isolane_model::limits::MAX_KNOWN_PARTICIPANTS;

/// What raises it.
const RAISE_LIMIT: &str =
    "know more with --max-participants N, or `max_participants` of the host in isolane.toml";

/// What to do where it cannot be raised.
const LIMIT_REACHED: &str = "isolane knows 2000 participants at most: name the interface whose participants are meant \
                             (--interface NAME), or divide them among domains";

/// What to do when tables for so many participants were full.
pub(crate) fn remedy_of_full_tables(participants: u32) -> &'static str {
    match participants < isolane_model::limits::MAX_KNOWN_PARTICIPANTS {
        true => RAISE_LIMIT,
        false => LIMIT_REACHED,
    }
}

/// Endpoints that are known for each participant that is.
pub(crate) const ENDPOINTS_PER_PARTICIPANT: u32 = 10;

/// Matches for each of them: two or three are discovery's.
pub(crate) const MATCHES_PER_PARTICIPANT: u32 = 8;

/// What stands in front of a serialised sample: its representation and options (RTPS 2.5 §10.2). A
/// description's `max_bytes` is without it.
pub(crate) const ENCAPSULATION_HEADER_BYTES: usize = 4;

/// Domains that `why` listens to beside the one it is asked about: those that people use who never chose one. Each
/// takes a participant that announces itself there for some seconds.
pub(crate) const OTHER_DOMAINS: std::ops::RangeInclusive<u32> = 0..=4;

/// Pairs of a writer and a reader that `why` judges: more than anybody reads through.
pub(crate) const WHY_PAIRS: usize = 1_024;

/// Reasons that `why` prints as text; as JSON it writes all.
pub(crate) const SHOWN_REASONS: usize = 16;

/// Topics that are nearly called as the one that `why` is asked about.
pub(crate) const NEAR_TOPICS: usize = 4;
