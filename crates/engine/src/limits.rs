//! Every bound of the engine, with its reason.
//!
//! A table whose size a user may choose has its default here and its value in
//! [`Limits`](crate::Limits); what no user needs to choose is a constant.

use core::time::Duration;

use isolane_wire::sequence::SequenceNumber;

/// Locators one first transmission goes to. A writer with more unicast readers than this
/// uses the readers' multicast group, and counts those it does not reach so
/// ([`Counters::destinations_full`](crate::Counters)). Reliable ones among those get a HEARTBEAT of
/// their own, and ask for all; the others get nothing.
pub const MAX_DESTINATIONS: usize = 16;

/// Sequence numbers behind the lowest missing one that a reader keeps track of: the bits an
/// ACKNACK can carry (RTPS 2.5 §9.4.2.6), so that all it knows to be missing can be asked for.
pub const WINDOW: u32 = 256;

/// Bytes sent to a participant for each byte that came in its name, until it has shown that it hears this
/// one: else a forged announcement would make this participant flood the address it names. QUIC allows
/// the same (RFC 9000 §8.1). An announcement, which costs as much as it brings in, and the four questions
/// of SEDP stay below it.
pub const ANSWER_FACTOR: u32 = 3;

/// Times a participant is answered again that goes on announcing itself and has not shown that it hears this
/// one. All answers are lost with a probability of 10^-9 where a tenth of the frames is; more would be said to
/// one that is not there, or between two that hear of each other and of nothing else.
pub const MAX_ANSWERS_AGAIN: u8 = 8;

/// HEARTBEATs that a reader which has never answered is sent by the clock. With the period doubling from
/// 20 ms to 1 s they take three seconds: longer than it takes two participants to find each other over a
/// bad link. Such a reader holds back no history from then on; its first ACKNACK revives it.
pub const MAX_UNANSWERED_HEARTBEATS: u8 = 8;

/// Preemptive ACKNACKs after which a reader counts as matched that says nothing else: peers whose answers to
/// HEARTBEATs cannot be told from those would wait for ever for a first sample.
pub const MAX_PREEMPTIVE_ACKNACKS: u8 = 4;

/// How long the count of a HEARTBEAT or ACKNACK is held against later ones with a lower count. What the
/// network brings twice or late comes within it; after it a lower count is news: else one forged count, or a
/// peer that counts from the beginning again, would silence that peer for good.
pub const COUNT_MEMORY: Duration = Duration::from_secs(1);

/// The last sequence number that is believed: behind it there must be one more to wait for. At a
/// million samples a second a writer is there after 292,000 years.
pub const LAST_SEQUENCE: SequenceNumber = SequenceNumber(i64::MAX - 1);

/// Bytes of one slot for what SPDP or SEDP announces. Cyclone DDS with type information stays
/// below 1 KiB, Fast DDS with a type object below 4 KiB; what is larger is dropped and counted.
pub const DISCOVERY_SLOT_BYTES: usize = 8 * 1024;

/// SPDP announcements that wait for the discovery job. They are repeated, so a full box costs
/// a period, not a peer.
pub const SPDP_INBOX_SLOTS: usize = 16;

/// The longest lease that is believed: a participant that announces an endless one and is heard no
/// more would keep its place for ever.
pub const MAX_LEASE: Duration = Duration::from_secs(300);

/// Time between the step that finds a peer's lease run out and the one that forgets the peer. What
/// waits in the sockets is read meanwhile: after a stop of this process longer than the lease the
/// announcements of all that live wait there. A step that comes later than twice this was itself
/// stopped, or starved, and waits again.
pub const LEASE_GRACE: Duration = Duration::from_millis(100);

/// SEDP announcements of one kind that wait for the discovery job. They are reliable: one that
/// finds no slot is not acknowledged and comes again.
pub const SEDP_CACHE_SLOTS: usize = 32;

/// Bytes in front of a payload that
/// [`Engine::write_best_effort`](crate::Engine::write_best_effort) may fill: RTPS header 20,
/// INFO_TS 12, DATA 24, inline QoS of key hash 20, status 8 and sentinel 4; rounded up to keep
/// the payload on a cache line.
pub const MAX_HEAD_BYTES: usize = 128;

/// Places in which writers that were heard of lately are found without a look-up: more than most participants
/// have topics to read, few enough to lie in a few cache lines. A power of two.
pub const REMEMBERED_WRITERS: usize = 16;

/// Writers that may be registered for one instance at a reader. The standard has no bound; more
/// than this many share the last place, so that an instance ends when the known ones have left.
pub const INSTANCE_WRITERS: usize = 8;

/// Bytes a datagram can carry over UDP and IPv4: 65,535 less 20 and 8.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Bytes of a datagram that several samples share: what one Ethernet frame carries, 1,500 less 20 of IPv4
/// and 8 of UDP. Its loss costs no more than it would have before, and no fragment is made of it.
pub const BATCH_BYTES: usize = 1_472;

/// Between samples that are handed out, a reader that keeps all acknowledges each such part of its
/// slots: often enough for a writer to go on, and seldom enough not to cost a datagram a sample.
pub const TAKEN_SHARE: usize = 8;

/// Bytes of the smallest buffer [`Engine::next_work`](crate::Engine::next_work) needs beside a
/// payload: heads of a repair with its GAP and HEARTBEAT.
pub const WORK_HEAD_BYTES: usize = 256;

/// Samples of a KEEP_ALL history without RESOURCE_LIMITS: the standard says unlimited, memory says
/// otherwise.
pub const DEFAULT_SAMPLES: u16 = 64;

/// Instances of a keyed KEEP_LAST topic without RESOURCE_LIMITS.
pub const DEFAULT_INSTANCES: u16 = 16;

/// Fewest samples out of order that a reliable reader keeps.
pub const MIN_WAITING: u16 = 16;

/// Most samples out of order that a reliable reader keeps: what one ACKNACK can ask for.
pub const MAX_WAITING: u16 = WINDOW as u16;

/// Bytes of a topic or type name (RTPS 2.5 §9.6.3.2: string<256> with its NUL).
pub const MAX_NAME_BYTES: usize = 255;

/// The shortest period of anything the engine does by itself: below it a participant would do
/// nothing else.
pub const MIN_PERIOD: Duration = Duration::from_millis(1);
