//! Bounds of the system description, each with its reason.

use core::time::Duration;

/// Maximum size of a description file in bytes. A description with hundreds of topics, of ten commented lines each, is
/// smaller. A larger file was probably given by mistake.
pub const MAX_FILE_BYTES: usize = 256 * 1024;

/// Maximum number of hosts. The analysis considers every pair of hosts.
pub const MAX_HOSTS: usize = 256;

/// Maximum number of topics. Each topic reserves memory before start.
pub const MAX_TOPICS: usize = 1024;

/// Highest domain. The ports of a domain begin at 7400 + 250·domain (RTPS 2.5 §9.6.2.3), and ports have 16 bits.
pub const MAX_DOMAIN: u32 = 232;

/// Highest core number. `cpu_set_t` has bits for 1024 cores.
pub const MAX_CORE: u16 = 1023;

/// Maximum number of remote participants that a participant knows. With ten endpoints each, and announcements of 400
/// bytes, they fill the library's tables.
pub const MAX_KNOWN_PARTICIPANTS: u32 = 2_000;

/// Maximum sample memory of a participant in bytes.
pub const MAX_SAMPLE_MEMORY: u32 = u32::MAX;

/// Default sample memory of a participant in bytes: the library's default.
pub const DEFAULT_SAMPLE_MEMORY: u32 = 16 << 20;

/// Maximum length of a host name in bytes. The name becomes the participant's entity name in discovery.
pub const MAX_HOST_NAME_BYTES: usize = 64;

/// Maximum number of described participants: 64 static peers and the participant itself.
pub const MAX_PARTICIPANTS: usize = 65;

/// Maximum length of a described participant's name in bytes. Discovery carries entity names of this length.
pub const MAX_PARTICIPANT_NAME_BYTES: usize = 63;

/// Lowest port of a described participant. Lower ports are privileged.
pub const MIN_FIRST_PORT: u32 = 1_024;

/// Ports suggested for described participants: outside of every domain (RTPS 2.5 §9.6.2.3) and far below the
/// ephemeral ports of Linux.
pub const SUGGESTED_PORTS: core::ops::Range<u16> = 7_000..7_400;

/// Highest first port of a described participant, which uses eight ports, one for each level.
pub const MAX_FIRST_PORT: u32 = 65_528;

/// Highest first port of the [`SAMPLE_PORTS`](isolane_datapath::SAMPLE_PORTS) fixed ports for samples.
pub const MAX_SAMPLE_PORTS: u32 = u16::MAX as u32 - (isolane_datapath::SAMPLE_PORTS as u32 - 1);

/// Maximum length of an interface name in bytes: `IFNAMSIZ` is 16 with the NUL.
pub const MAX_INTERFACE_NAME_BYTES: usize = 15;

/// Maximum length of a topic or type name in bytes. Discovery carries 256 bytes, including the NUL.
pub const MAX_TOPIC_NAME_BYTES: usize = 255;

/// Maximum size of a serialized sample in bytes. With its encapsulation header, such a sample has 16 MiB, the most that
/// isolane reassembles. All slots of a history or cache have the size of the largest sample.
pub const MAX_SAMPLE_BYTES: u32 = (16 << 20) - 4;

/// Maximum size in bytes of a serialized sample that fits one Ethernet frame: 1,400 with its encapsulation header.
pub const ETHERNET_SAMPLE_BYTES: u32 = 1_400 - 4;

/// Maximum number of samples in a topic's history, all reserved before start.
pub const MAX_SAMPLES: u32 = 65_536;

/// Maximum capacity of a budget in frames.
pub const MAX_BUDGET_FRAMES: u32 = 1_000_000;

/// Minimum period of a budget. With a shorter period, replenishment takes more time than the budget saves.
pub const MIN_BUDGET_PERIOD: Duration = Duration::from_micros(100);

/// Maximum period of a budget. A burst may use the whole budget at once; no frame passes in the rest of the period. So
/// the period must not exceed the lease of most participants.
pub const MAX_BUDGET_PERIOD: Duration = Duration::from_secs(10);

/// Highest SCHED_FIFO priority of a loop's thread. Priority 99 is left to the kernel's own threads.
pub const MAX_THREAD_PRIORITY: u8 = 98;

/// Default SCHED_FIFO priority of the loop's thread on a host with a core for isolane. The thread runs before other
/// programs, but after interrupt and NAPI threads.
pub const DEFAULT_THREAD_PRIORITY: u8 = 70;

/// Maximum period or deadline. An hour is longer than every control period.
pub const MAX_DURATION: Duration = Duration::from_secs(3600);

/// Bytes of the samples of a topic with `history = "all"` and without `max_samples`: the library's default.
pub const DEFAULT_KEEP_ALL_BYTES: u32 = 256 << 10;

/// Minimum and maximum of the default `max_samples` of a topic with `history = "all"`: the library's. For samples above
/// 64 KiB the library reserves fewer if the type is bounded, which the description does not say.
pub const DEFAULT_KEEP_ALL_SAMPLES: (u32, u32) = (64, 256);

/// Default number of instances of a keyed topic without `max_samples`.
pub const DEFAULT_INSTANCES: u32 = 16;

/// Maximum length in bytes of a word for which "did you mean" suggests another. A longer word is no typing error, and
/// the time to compute an edit distance grows with the product of the lengths.
pub const MAX_SUGGESTION_BYTES: usize = 64;

/// Maximum number of bytes of a wrong value that a message repeats.
pub const MAX_QUOTED_BYTES: usize = 40;

/// Maximum number of bytes of a line that a problem repeats.
pub const MAX_EXCERPT_BYTES: usize = 120;

/// Maximum number in `[tune]`. As frames, it is the length of the longest rings; as microseconds, it is far longer than
/// critical latencies.
pub const MAX_TUNED_NUMBER: u32 = 65_536;
