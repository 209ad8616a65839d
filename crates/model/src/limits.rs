//! Every bound of the system description, with its reason.

use core::time::Duration;

/// Bytes of a description file. The largest plausible one (hundreds of topics, ten commented lines
/// each) stays below; a file beyond it is something else given by mistake.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

/// Hosts of one description: the analysis looks at every pair.
pub const MAX_HOSTS: usize = 256;

/// Topics of one description: each reserves memory before start.
pub const MAX_TOPICS: usize = 1024;

/// Highest domain: RTPS 2.5 §9.6.2.3 puts a domain's ports at 7400 + 250·domain and above, and a
/// port is 16 bits wide.
pub const MAX_DOMAIN: u32 = 232;

/// Highest core: `cpu_set_t` counts 1024.
pub const MAX_CORE: u16 = 1023;

/// Participants that one may know: with ten endpoints each, whose announcements take 400 bytes, as many as the library's
/// tables have places.
pub const MAX_KNOWN_PARTICIPANTS: u32 = 2_000;

/// Bytes of memory that the samples of a participant may have.
pub const MAX_SAMPLE_MEMORY: u32 = u32::MAX;

/// What they have unless the host says otherwise, in bytes: the library's default.
pub const DEFAULT_SAMPLE_MEMORY: u32 = 16 << 20;

/// Bytes of a host's name: it becomes the participant's entity name in discovery.
pub const MAX_HOST_NAME_BYTES: usize = 64;

/// Participants that are described: the library knows 64 peers by description, and itself.
pub const MAX_PARTICIPANTS: usize = 65;

/// Bytes of a described participant's name: it becomes the entity name in discovery, which carries 63.
pub const MAX_PARTICIPANT_NAME_BYTES: usize = 63;

/// The lowest port of a described participant: those below are the system's.
pub const MIN_FIRST_PORT: u32 = 1_024;

/// Where a described participant finds ports that no domain has (RTPS 2.5 §9.6.2.3), far below those that Linux gives
/// away of itself.
pub const SUGGESTED_PORTS: core::ops::Range<u16> = 7_000..7_400;

/// The highest: eight ports, one a level, follow from it.
pub const MAX_FIRST_PORT: u32 = 65_528;

/// Bytes of an interface's name: Linux' `IFNAMSIZ` is 16 with the terminating zero.
pub const MAX_INTERFACE_NAME_BYTES: usize = 15;

/// Bytes of a topic's name or type: discovery carries 256 with the terminating zero.
pub const MAX_TOPIC_NAME_BYTES: usize = 255;

/// Bytes of a serialised sample: with its encapsulation header 16 MiB, the most isolane puts together of
/// fragments. All slots of a history or cache have the size of the largest.
pub const MAX_SAMPLE_BYTES: u32 = (16 << 20) - 4;

/// Samples a topic's history may hold: all of them are reserved before start.
pub const MAX_SAMPLES: u32 = 65_536;

/// Frames a budget may let through in one period.
pub const MAX_BUDGET_FRAMES: u32 = 1_000_000;

/// Shortest period of a budget: below it, filling it up costs more than it saves.
pub const MIN_BUDGET_PERIOD: Duration = Duration::from_micros(100);

/// Longest period of a budget: a burst may take all of it at once, and then nothing comes for so long,
/// the lease of most participants.
pub const MAX_BUDGET_PERIOD: Duration = Duration::from_secs(10);

/// Highest queue of a network device that lanes are on.
pub const MAX_QUEUE: u32 = 7;

/// Entries of the smallest ring: a burst, twice.
pub const MIN_RING_ENTRIES: u32 = 32;

/// Entries of the largest ring: twice that of common devices.
pub const MAX_RING_ENTRIES: u32 = 16_384;

/// Frames shared with the kernel for one queue at most, 128 MiB.
pub const MAX_RECEIVE_FRAMES: u32 = 65_536;

/// Frames of a queue that only the most critical lane may take, when nobody says: four bursts of it.
pub const DEFAULT_CRITICAL_RESERVE: u32 = 64;

/// Highest VLAN: 4,095 is reserved (IEEE 802.1Q).
pub const MAX_VLAN: u32 = 4_094;

/// Most urgent priority of a loop's thread: 99 is left to the kernel's own threads.
pub const MAX_THREAD_PRIORITY: u8 = 98;

/// Priority of the loop's thread on a host with a core of its own: above other programs, below interrupts' and
/// receive threads.
pub const DEFAULT_THREAD_PRIORITY: u8 = 70;

/// Longest period or deadline: an hour is beyond anything that is controlled by it.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);

/// `max_samples` of a topic with `history = "all"` that gives none.
pub const DEFAULT_KEEP_ALL_SAMPLES: u32 = 64;

/// Instances a keyed topic gets room for when it gives no `max_samples`.
pub const DEFAULT_INSTANCES: u32 = 16;

/// Bytes of a word that is compared with the known ones for "did you mean": longer ones are no
/// slip of the finger, and edit distance costs the product of the lengths.
pub const MAX_SUGGESTION_BYTES: usize = 64;

/// Bytes of a wrong value that a message repeats.
pub const MAX_QUOTED_BYTES: usize = 40;

/// Bytes of the lines that are drawn around a problem: a screen of text.
pub const MAX_DRAWN_BYTES: usize = 2_000;

/// Bytes of a line that a problem repeats.
pub const MAX_EXCERPT_BYTES: usize = 120;

/// The largest number of `[tune]`: frames of the longest rings, and microseconds beyond which nothing is critical.
pub const MAX_TUNED_NUMBER: u32 = 65_536;
