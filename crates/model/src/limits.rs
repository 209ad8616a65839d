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

/// Bytes of a host's name: it becomes the participant's entity name in discovery.
pub const MAX_HOST_NAME_BYTES: usize = 64;

/// Bytes of an interface's name: Linux' `IFNAMSIZ` is 16 with the terminating zero.
pub const MAX_INTERFACE_NAME_BYTES: usize = 15;

/// Bytes of a topic's name or type: discovery carries 256 with the terminating zero.
pub const MAX_TOPIC_NAME_BYTES: usize = 255;

/// Bytes of a serialised sample: what one UDP datagram (65,507 bytes over IPv4) carries with room
/// for the RTPS header, submessages, inline QoS and encapsulation. It goes away with fragmentation.
pub const MAX_SAMPLE_BYTES: u32 = 60_000;

/// Samples a topic's history may hold: all of them are reserved before start.
pub const MAX_SAMPLES: u32 = 65_536;

/// Frames a budget may let through in one period.
pub const MAX_BUDGET_FRAMES: u32 = 1_000_000;

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
