//! Bounds of the system description, each with its reason.

use core::time::Duration;

/// Maximum size of a description file in bytes. The largest plausible one (hundreds of topics, ten commented lines
/// each) is smaller; a larger file was probably given by mistake.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

/// Maximum number of hosts: the analysis considers every pair.
pub const MAX_HOSTS: usize = 256;

/// Maximum number of topics: each reserves memory before start.
pub const MAX_TOPICS: usize = 1024;

/// Highest domain: the ports of a domain begin at 7400 + 250·domain (RTPS 2.5 §9.6.2.3), and ports have 16 bits.
pub const MAX_DOMAIN: u32 = 232;

/// Highest core: `cpu_set_t` has 1024.
pub const MAX_CORE: u16 = 1023;

/// Maximum number of known participants. With ten endpoints each, and announcements of 400 bytes, they fill the
/// library's tables.
pub const MAX_KNOWN_PARTICIPANTS: u32 = 2_000;

/// Maximum sample memory of a participant in bytes.
pub const MAX_SAMPLE_MEMORY: u32 = u32::MAX;

/// Default sample memory of a participant in bytes: the library's default.
pub const DEFAULT_SAMPLE_MEMORY: u32 = 16 << 20;

/// Maximum length of a host name in bytes: it becomes the participant's entity name in discovery.
pub const MAX_HOST_NAME_BYTES: usize = 64;

/// Maximum number of described participants: 64 static peers and the participant itself.
pub const MAX_PARTICIPANTS: usize = 65;

/// Maximum length of a described participant's name in bytes: discovery carries entity names of 63.
pub const MAX_PARTICIPANT_NAME_BYTES: usize = 63;

/// Lowest port of a described participant: lower ones are privileged.
pub const MIN_FIRST_PORT: u32 = 1_024;

/// Ports suggested for described participants: outside of every domain (RTPS 2.5 §9.6.2.3) and far below the
/// ephemeral ports of Linux.
pub const SUGGESTED_PORTS: core::ops::Range<u16> = 7_000..7_400;

/// Highest first port of a described participant: eight ports, one a level, begin there.
pub const MAX_FIRST_PORT: u32 = 65_528;

/// Maximum length of an interface name in bytes: `IFNAMSIZ` is 16 with the NUL.
pub const MAX_INTERFACE_NAME_BYTES: usize = 15;

/// Maximum length of a topic or type name in bytes: discovery carries 256 with the NUL.
pub const MAX_TOPIC_NAME_BYTES: usize = 255;

/// Maximum size of a serialized sample in bytes: with its encapsulation header 16 MiB, the largest that isolane
/// reassembles. All slots of a history or cache have the size of the largest sample.
pub const MAX_SAMPLE_BYTES: u32 = (16 << 20) - 4;

/// Maximum number of samples in a topic's history, all reserved before start.
pub const MAX_SAMPLES: u32 = 65_536;

/// Maximum capacity of a budget in frames.
pub const MAX_BUDGET_FRAMES: u32 = 1_000_000;

/// Minimum period of a budget: shorter ones cost more to replenish than they save.
pub const MIN_BUDGET_PERIOD: Duration = Duration::from_micros(100);

/// Maximum period of a budget: a burst may use all of it at once, and no frame passes for the rest of the period,
/// which must not exceed the lease of most participants.
pub const MAX_BUDGET_PERIOD: Duration = Duration::from_secs(10);

/// Highest priority of a loop's thread: 99 is left to the kernel's own threads.
pub const MAX_THREAD_PRIORITY: u8 = 98;

/// Default priority of the loop's thread on a host with a core for isolane: above other programs, below interrupt and
/// NAPI threads.
pub const DEFAULT_THREAD_PRIORITY: u8 = 70;

/// Maximum period or deadline: an hour exceeds every control period.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);

/// Default `max_samples` of a topic with `history = "all"`.
pub const DEFAULT_KEEP_ALL_SAMPLES: u32 = 64;

/// Default number of instances of a keyed topic without `max_samples`.
pub const DEFAULT_INSTANCES: u32 = 16;

/// Maximum length of a word considered for "did you mean", in bytes: a longer one is no typing error, and edit
/// distance costs the product of the lengths.
pub const MAX_SUGGESTION_BYTES: usize = 64;

/// Maximum bytes of a wrong value that a message repeats.
pub const MAX_QUOTED_BYTES: usize = 40;

/// Maximum bytes of the source lines drawn around a problem: a screen of text.
pub const MAX_DRAWN_BYTES: usize = 2_000;

/// Maximum bytes of a line that a problem repeats.
pub const MAX_EXCERPT_BYTES: usize = 120;

/// Maximum number in `[tune]`: frames of the longest rings, or microseconds far beyond critical latencies.
pub const MAX_TUNED_NUMBER: u32 = 65_536;
