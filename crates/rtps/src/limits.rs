//! Bounds of the protocol, each with its reason.
//!
//! A table whose size the user may choose has its default here and its value in [`Limits`](crate::Limits). Bounds that
//! no user needs to choose are constants.

use core::time::Duration;

use isolane_wire::{limits::MAX_LOCATORS, sequence::SequenceNumber};

/// Maximum number of addresses of one participant to which a writer sends each sample. An isolane participant has one
/// for each level and one for each topic with its own port; a participant that announces more would multiply the
/// traffic to it. Readers at further addresses are counted ([`Counters::destinations_full`](crate::Counters)): reliable
/// ones get a HEARTBEAT of their own and request all samples, best-effort ones get nothing. The sum over all
/// participants has no such bound.
pub const MAX_DESTINATIONS: usize = 16;

/// Maximum number of addresses of a writer that evaluates content filters: one bit each in
/// [`Destinations::Subset`](crate::Destinations). A writer with more addresses sends everything to all of them, and its
/// readers filter for themselves.
pub const MAX_FILTERED_ADDRESSES: usize = 64;

/// Number of endpoints, and of matches, that each participant may have regardless of others; most have fewer. Beyond
/// it, a participant gets another entry only while it has fewer than are free. So several greedy participants leave
/// room for the next one. An endpoint whose announcement is longer than the average counts as several.
pub const GUARANTEED_ENTRIES: usize = 64;

/// Entries of the endpoint and match tables for each of which one more entry is reserved. When all other entries are
/// taken, topics of the highest level in use get the reserved ones.
pub const RESERVE_RATIO: usize = 8;

/// Number of entries of a table that get no reserve: the user knows the peers of a small table.
pub const UNRESERVED_ENTRIES: usize = 512;

/// Sequence numbers from the lowest missing one on that a reader tracks: the bits of an ACKNACK (RTPS 2.5 §9.4.2.6), so
/// that every number known to be missing can be requested.
pub const WINDOW: u32 = 256;

/// Anti-amplification factor: bytes sent to a participant's unvalidated addresses for each byte received in its name.
/// Without it, a forged announcement would make this participant flood the address named there. QUIC has the same limit
/// (RFC 9000 §8.1). An announcement in return and the four SEDP requests stay below it; the requests for liveliness
/// wait for the next announcement if the received one was short.
pub const AMPLIFICATION_FACTOR: u32 = 3;

/// Rate limit in bytes per second for all unvalidated addresses together, with a burst of one second. About a hundred
/// participants that start at the same instant are answered at once, a thousand within ten seconds.
pub const UNVALIDATED_BYTES_PER_S: u32 = 64 * 1024;

/// Default rate limit of discovery in bytes per second, for links of unknown rate: 5 % of 10 Mbit/s. At this rate a
/// participant announces ten endpoints to a thousand others within a minute.
pub const DISCOVERY_BYTES_PER_S: u64 = 64 * 1024;

/// Maximum number of validated addresses stored per participant: the capacity of a locator list.
pub const MAX_VALIDATED_ADDRESSES: usize = MAX_LOCATORS;

/// Maximum number of repeated answers to a participant that announces itself and has not shown that it receives from
/// this one. With 10 % frame loss, all of them are lost with a probability of 10^-9. Further answers would go to a
/// participant that is gone, or to one that receives announcements and nothing else.
pub const MAX_ANSWERS_AGAIN: u8 = 8;

/// Maximum number of periodic HEARTBEATs to a reader that has never answered. With the period doubling from 20 ms to
/// one second they take three seconds, longer than discovery takes over a bad link. Afterwards the reader no longer
/// holds back history, until it sends its first ACKNACK.
pub const MAX_UNANSWERED_HEARTBEATS: u8 = 8;

/// Number of participants up to which the HEARTBEATs of the SEDP writers are one `Timing::heartbeat_period` apart. The
/// period grows in proportion to the participants, up to `Timing::heartbeat_period_max`. Every participant answers
/// these HEARTBEATs, and the load on each must not grow with their number. RTCP scales its reports likewise (RFC 3550
/// §6.2).
pub const PARTICIPANTS_PER_HEARTBEAT_PERIOD: usize = 8;

/// Preemptive ACKNACKs after which a reader that sends nothing else counts as matched. Some peers answer HEARTBEATs
/// with ACKNACKs that look preemptive, and would wait forever for a first sample.
pub const MAX_PREEMPTIVE_ACKNACKS: u8 = 4;

/// Time for which a HEARTBEAT or ACKNACK with a lower count than the last one is ignored. Duplicates and delayed
/// datagrams arrive within it. Afterwards a lower count is accepted: otherwise one forged count, or a peer that
/// restarts its count, would silence that peer for good.
pub const COUNT_MEMORY: Duration = Duration::from_secs(1);

/// Time for which a far jump of a writer's sequence numbers waits for a HEARTBEAT from an address of its participant.
/// Afterwards, a HEARTBEAT from any address confirms the jump unless another HEARTBEAT has contradicted it. A host may
/// send from addresses that it does not announce, and a live writer sends more than one message a second.
pub const JUMP_PATIENCE: Duration = COUNT_MEMORY;

/// Number of ended matches with disposed writers whose progress is remembered, so that no sample is delivered twice if
/// the dispose was forged. Enough for one peer's endpoints with several readers each.
pub const UNMATCHED_REMEMBERED: usize = 64;

/// Highest sequence number accepted; the next number must exist. At a million samples a second, a writer reaches it
/// after 292,000 years.
pub const LAST_SEQUENCE: SequenceNumber = SequenceNumber(i64::MAX - 1);

/// Slot size in bytes for SPDP and SEDP announcements. Cyclone DDS with type information stays below 1 KiB, Fast DDS
/// with a type object below 4 KiB. Longer announcements are dropped and counted.
pub const DISCOVERY_SLOT_BYTES: usize = 8 * 1024;

/// SPDP announcements queued for the discovery job: at most two of a participant, and at most half of them from unknown
/// participants. SPDP repeats, so a full queue delays a peer by one period.
pub const SPDP_INBOX_SLOTS: usize = 16;

/// Longest lease accepted: a participant that announces an infinite lease and disappears would keep its entry forever.
pub const MAX_LEASE: Duration = Duration::from_secs(300);

/// Time between the step that detects an expired lease and the step that removes the peer. Meanwhile the sockets are
/// read: if this process was stopped for longer than the lease, they hold the announcements of all live peers. If the
/// second step comes after twice this time, the process was stopped or starved again, and the step waits once more.
pub const LEASE_GRACE: Duration = Duration::from_millis(100);

/// Discovery events queued for an observer: those of a dozen participants with twenty endpoints that appear at once.
/// Further events are reported as missed.
pub const MAX_DISCOVERY_EVENTS: usize = 256;

/// Maximum number of statically described peers. Every unknown sender is compared with all of them. A system's critical
/// participants are a few dozen.
pub const MAX_STATIC_PEERS: usize = 64;

/// Maximum number of endpoints of a statically described participant.
pub const MAX_STATIC_ENDPOINTS: usize = 64;

/// Number of previous incarnations remembered of a statically described peer. Their late datagrams, queued behind more
/// urgent ones, are not taken for another restart. Datagrams of older incarnations are no longer queued.
pub const PREVIOUS_INCARNATIONS: usize = 4;

/// Time for which a previous incarnation is remembered; its queued datagrams have arrived by then. An incarnation that
/// still sends was replaced by mistake, for example after a forged restart, and is accepted again.
pub const INCARNATION_MEMORY: Duration = Duration::from_secs(1);

/// Minimum time between two accepted restarts of a statically described peer. A process in a restart loop, or a sender
/// that forges restarts, costs ten replacements a second.
pub const MIN_RESTART_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum number of ignored participants and endpoints. Each announcement is compared with all of them, and their
/// GUIDs become unused when their processes end. A program that ignores more needs another way to exclude peers.
pub const MAX_IGNORED: usize = 64;

/// Maximum number of ignored topics. Each announcement is compared with all of them.
pub const MAX_IGNORED_TOPICS: usize = 16;

/// SEDP announcements of one kind queued for the discovery job. They are reliable: one that finds no slot is not
/// acknowledged and is sent again. Once half of the slots are taken, a participant with one queued announcement gets no
/// further slot. So a participant that announces endlessly takes half of them, and sixteen others get one each.
pub const SEDP_CACHE_SLOTS: usize = 32;

/// Bytes in front of a payload that [`LocalParticipant::write_best_effort`](crate::LocalParticipant::write_best_effort)
/// may fill: RTPS header 20, INFO_TS 12, DATA 24, inline QoS of key hash 20, status 8 and sentinel 4; rounded up to
/// keep the payload on a cache line.
pub const MAX_HEAD_BYTES: usize = 128;

/// Entries of the cache that finds recently heard writers without a hash lookup. Most participants read fewer topics,
/// and so few entries fit a few cache lines. A power of two.
pub const REMEMBERED_WRITERS: usize = 16;

/// Maximum number of writers registered for one instance at a reader. The standard has no bound. Further writers share
/// the last entry, so the instance ends when the known writers have left.
pub const INSTANCE_WRITERS: usize = 8;

/// Maximum size in bytes of a UDP payload over IPv4: 65,535 less 20 and 8.
pub const MAX_DATAGRAM_BYTES: usize = 65_507;

/// Maximum size in bytes of a datagram shared by several samples: one Ethernet frame, 1,500 less 20 (IPv4) and 8 (UDP).
/// Its loss costs no more frames than that of a single sample, and IP does not fragment it.
pub const BATCH_BYTES: usize = 1_472;

/// Default for the largest payload sent as one DATA ([`EndpointConfig::max_datagram_bytes`](crate::EndpointConfig)):
/// one Ethernet frame less header, INFO_TS and DATA head (56 bytes), rounded down. Longer payloads are sent as
/// DATA_FRAG. As one datagram they would be fragmented by IP, hold the link for all their frames, use no lane, and be
/// lost whole with any frame.
pub const MAX_DATA_PAYLOAD_BYTES: usize = 1_400;

/// Default maximum fragment size in bytes. A fragment, everything in front of it (header 20, INFO_DST 16, INFO_TS 12, DATA_FRAG
/// with key hash and status 68) and behind it (HEARTBEAT 32, or HEARTBEAT_FRAG 28) fits an Ethernet frame, so that a
/// request for an answer needs no separate datagram.
pub const FRAGMENT_BYTES: u16 = 1_312;

/// Smallest fragment size in bytes accepted for reassembly, because a reader has one bit for each fragment. Known peers
/// use 1,024 bytes and above. A sample in smaller fragments is rejected, unless one submessage carries all of it.
pub const MIN_FRAGMENT_BYTES: u16 = 512;

/// Largest sample in bytes. It bounds memory (a writer and a reader take several times as much), not the time that a
/// critical topic waits.
pub const MAX_SAMPLE_BYTES: usize = 16 << 20;

/// Number of samples that a reader reassembles at a time. Writers send one sample after the other, so as many large
/// writers can send to a reader at the same time. If more do, samples are repaired or lost.
pub const ASSEMBLIES: usize = 4;

/// Time without a new fragment after which an incomplete sample gives its slot to another: longer than repair takes
/// over a bad link, where HEARTBEATs come every 20 ms as long as the reader answers.
pub const ASSEMBLY_PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of inline QoS kept for a sample under reassembly: key hash, status and sentinel take 32.
pub const MAX_INLINE_QOS_BYTES: usize = 128;

/// Fragments of a first transmission between two HEARTBEAT_FRAGs: the bits of a NACK_FRAG (RTPS 2.5 §9.4.2.8), so that
/// the repair of a long sample begins before its end.
pub const FRAGMENTS_PER_HEARTBEAT: u32 = 256;

/// Samples that a best-effort writer of large samples keeps until they are sent. HISTORY is about sent samples; here it
/// only decides whether a further sample is refused (KEEP_ALL) or replaces the oldest (KEEP_LAST).
pub const STAGED_SAMPLES: u16 = 16;

/// Bytes shared by the long samples of an endpoint whose type is unbounded: about a dozen samples of 20 KB, or four of
/// 64 KiB. The participant's sample memory bounds the sum over all endpoints.
pub const LONG_BYTES: usize = 256 << 10;

/// Maximum bytes that long samples share at a KEEP_ALL endpoint of an unbounded type with RESOURCE_LIMITS. Half is for
/// samples in flight, half for those that the user writes or takes.
pub const MAX_LONG_BYTES: usize = 2 * MAX_FLIGHT_BYTES;

/// Largest `max_payload_bytes` at which long samples share [`LONG_BYTES`] or [`MAX_LONG_BYTES`]. Above, they share
/// [`WAITING_BYTES`].
pub const USUAL_LONG_BYTES: usize = 64 << 10;

/// Bytes that out-of-order samples may take at a reader, in addition to the four that are always kept. Large samples
/// are few, and one that finds no slot is requested again. Samples deferred by TIME_BASED_FILTER may take as many
/// bytes; one that finds no slot is filtered, and not delivered later.
pub const WAITING_BYTES: usize = 4 << 20;

/// Minimum number of out-of-order or deferred samples kept by a reliable reader of large samples: as many as it
/// reassembles.
pub const MIN_LARGE_WAITING: u16 = ASSEMBLIES as u16;

/// Part of its slots, as a divisor, that must be taken before a KEEP_ALL reader acknowledges. It acknowledges often
/// enough for the writer to continue, and seldom enough not to cost a datagram per sample.
pub const TAKEN_SHARE: usize = 8;

/// Unacknowledged payload bytes at which a KEEP_ALL writer stops sending, if two samples are unacknowledged: bandwidth
/// times delay of 10 Gbit/s and 0.2 ms. With UDP_GRO they fit a socket of 416 KiB, what an unprivileged program gets
/// where `net.core.rmem_max` is Linux' default. Without it, 200 single fragments take 461 KB there.
pub const FLIGHT_BYTES: usize = 256 << 10;

/// Maximum to which that limit grows. In full datagrams of one writer, so many bytes fit the socket buffer of 2 MiB that
/// an isolane reader gets where the kernel grants it.
pub const MAX_FLIGHT_BYTES: usize = 1 << 20;

/// Minimum time between two increases of the limit, and between a request for repair and the next increase.
pub const FLIGHT_GROWTH: Duration = Duration::from_millis(100);

/// Minimum size in bytes of the buffer for [`LocalParticipant::poll_transmit`](crate::LocalParticipant::poll_transmit),
/// in addition to a payload: the heads of a repair with its GAP and HEARTBEAT.
pub const WORK_HEAD_BYTES: usize = 256;

/// Bytes of the slots of a KEEP_ALL history or cache without RESOURCE_LIMITS: bandwidth times delay of 10 Gbit/s and
/// 0.2 ms. With fewer bytes, a writer of bulk data waits for acknowledgements.
pub const DEFAULT_HISTORY_BYTES: usize = 256 << 10;

/// Minimum number of samples of such a history or cache, where samples are larger than 4 KiB. The standard says
/// unlimited; memory is not.
pub const DEFAULT_SAMPLES: u16 = 64;

/// Maximum number of samples of such a history or cache. With more samples under way than a reader tracks, one loss
/// makes the reader drop all samples beyond its window, and the writer repairs them.
pub const MAX_DEFAULT_SAMPLES: u16 = WINDOW as u16;

/// Instances of a keyed KEEP_LAST topic without RESOURCE_LIMITS.
pub const DEFAULT_INSTANCES: u16 = 16;

/// Ends of an instance kept in addition to its HISTORY depth: one dispose and one unregister.
pub const EXTRA_INSTANCE_ENDS: u16 = 2;

/// Bytes that ends of instances may take in the history of a KEEP_LAST writer, in addition to its values. Up to this
/// bound each instance has room for one end; at least one end always fits. An end is a key, but takes a slot like any
/// other change. With slots of an Ethernet frame, the bound is reached with 180 instances.
pub const ENDS_BYTES: usize = 256 << 10;

/// Minimum number of out-of-order samples kept by a reliable reader.
pub const MIN_WAITING: u16 = 16;

/// Maximum number of out-of-order samples kept by a reliable reader: the bits of one ACKNACK.
pub const MAX_WAITING: u16 = WINDOW as u16;

/// Maximum number of instances that a deleted keyed writer unregisters: the first ones that it has written and not
/// unregistered. Their DATA take at most 40 datagrams. For further instances, readers learn from discovery that the
/// writer is gone.
pub const REGISTERED_INSTANCES: u16 = 256;

/// Maximum size in bytes of a serialised key kept by such a writer, with the encapsulation header: enough for a string
/// of 128 bytes. An instance with a longer key is not kept.
pub const REGISTERED_KEY_BYTES: usize = 144;

/// Maximum length in bytes of a topic or type name (RTPS 2.5 §9.6.3.2: string<256> with its NUL).
pub const MAX_NAME_BYTES: usize = 255;

/// Instances processed in one step of an endpoint's timed policies. The step delays a critical sample by a few
/// microseconds; a thousand instances due together take sixty steps.
pub(crate) const TIMED_QOS_ITEMS: usize = 16;

/// Samples checked for LIFESPAN in one such step, at a reader or in a writer's history. Each costs little more than a
/// comparison, so a cache of a thousand that expires at once takes sixteen steps.
pub(crate) const EXPIRY_ITEMS: usize = 64;

/// Delay from a time stamp to reception above which the stamp counts as one of a different clock. On a working
/// real-time system a datagram is read sooner.
pub(crate) const PLAUSIBLE_DELAY: Duration = Duration::from_millis(500);

/// Number of a writer's samples that must all arrive older than their LIFESPAN before its clock is taken to be behind.
/// A burst queued in a socket is shorter. If the samples are older by another [`PLAUSIBLE_DELAY`], one suffices.
pub(crate) const AGED_SAMPLES: u8 = 8;

/// Window for the minimum age of a writer's samples: a few periods of most topics. A clock step shows after two
/// windows.
pub(crate) const LEAST_AGE_WINDOW: Duration = Duration::from_secs(10);

/// Instances of a keyed topic without RESOURCE_LIMITS that are tracked for DEADLINE or TIME_BASED_FILTER. Samples of
/// further instances are counted ([`Counters::unwatched`](crate::Counters)), not tracked, and pass.
pub const WATCHED_INSTANCES: u16 = 256;

/// Maximum number of distinct content filters that a writer evaluates; readers with equal filters share one. It equals
/// the maximum number of addresses of one participant, so that each address may have a filter of its own. Further
/// readers get all samples and filter for themselves.
pub const MAX_FILTERS: usize = MAX_DESTINATIONS;

/// Maximum number of steps that all filters of a writer take for one sample, each about as long as comparing two bytes.
/// With the most expensive filters of peers, a sample is delayed by about 0.1 ms before it is sent. If a filter would
/// exceed the sum, only its reader evaluates it. One activation takes at most as many steps for all its samples.
pub const MAX_FILTER_STEPS: u32 = 100_000;

/// Default number of steps of a filter.
pub(crate) const FILTER_STEPS: u32 = MAX_FILTER_STEPS / 4;

/// Changes evaluated by filters in one step of first transmission, repair or history. If they are small, they fill most
/// of a shared datagram.
pub(crate) const FILTERED_RUN: usize = 16;

/// Liveliness assertions per lease: two of three may be lost.
pub(crate) const ASSERTIONS_PER_LEASE: u32 = 3;

/// Slot size in bytes for a participant message: 24 for liveliness (RTPS 2.5 §9.6.3.1), and as many for vendor data.
pub const MESSAGE_SLOT_BYTES: usize = 48;

/// Out-of-order participant messages that wait for earlier ones; they are consumed as they arrive.
pub const MESSAGE_CACHE_SLOTS: u16 = 16;

/// Full datagrams of [`BATCH_BYTES`] for which a best-effort writer with a LATENCY_BUDGET waits; of larger datagrams, as
/// many as have the same bytes, but one at least. A writer whose history is half full does not wait.
pub const BATCHED_DATAGRAMS: usize = 16;

/// Minimum number of samples that a best-effort writer with a LATENCY_BUDGET keeps until they are sent together. At most
/// half of them wait.
pub const BATCHED_SAMPLES: u16 = 128;

/// Maximum number of these samples. Half of them fill [`BATCHED_DATAGRAMS`] if they are the smallest ones.
pub const MAX_BATCHED_SAMPLES: u16 = 1_024;

/// Longest time for which a sample is held back for batching, whatever LATENCY_BUDGET says. A longer time gains
/// nothing, and a writer that forgets to flush would seem dead.
pub const MAX_HOLD: Duration = Duration::from_secs(1);

/// Maximum number of publishers, and of subscribers, of a participant. Their members are scanned when a sample arrives
/// or a set ends; a program with more groups hardly has a set in each.
pub const MAX_GROUPS: u16 = 32;

/// Time after which a reader repeats its request for the progress of a group's writers: the initial HEARTBEAT period.
/// It doubles with each unanswered request.
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Upper bound of the time between two such requests, as for HEARTBEATs. It bounds the cost of a writer silent for
/// good.
pub(crate) const ASK_AGAIN_MAX: Duration = Duration::from_secs(1);

/// Requests after which a writer that answers without its group's progress counts as unable to report it. With the
/// doubling time they take three seconds; so many are not lost in a row.
pub(crate) const UNANSWERED_QUESTIONS: u8 = 8;

/// Writers of a peer's publisher that are compared with those named by the ends of its sets, when one of them is gone.
/// With more writers, a missing part of a set is not detected.
pub(crate) const MAX_KNOWN_WRITERS: usize = 128;

/// Time for which a sample of a coherent set waits for other sets to end when every slot for such samples is taken. An
/// incomplete sample keeps its reassembly slot as long.
pub(crate) const SET_PATIENCE: Duration = ASSEMBLY_PATIENCE;

/// Minimum number of coherent-set ends for which a writer's history has room, in addition to one for each sample. They
/// have no payload. A writer without a part in its group's sets keeps nothing else, and late readers need the ends to
/// judge whether a set is complete.
pub(crate) const MIN_SET_ENDS: u16 = 64;

/// Shortest period of any periodic work of the protocol; with a shorter one a participant would do nothing else.
pub const MIN_PERIOD: Duration = Duration::from_millis(1);

const _: () = {
    const HEARTBEAT: usize = isolane_wire::message::HEARTBEAT_BYTES;
    const AROUND: usize = 20 + 16 + 12 + 68 + HEARTBEAT;
    assert!(
        AROUND + FRAGMENT_BYTES as usize <= BATCH_BYTES,
        "a datagram with a fragment fits an Ethernet frame"
    );
    assert!(MAX_DATA_PAYLOAD_BYTES + 20 + 12 + 24 <= BATCH_BYTES);
};
