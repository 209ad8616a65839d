//! Every bound of the engine, with its reason.
//!
//! A table whose size a user may choose has its default here and its value in
//! [`Limits`](crate::Limits); what no user needs to choose is a constant.

use core::time::Duration;

use isolane_wire::{limits::MAX_LOCATORS, sequence::SequenceNumber};

/// Addresses of one participant to which a writer sends each sample. A participant of isolane has one for each level
/// and one for each topic with a port of its own; a participant that announces more would multiply what it is sent.
/// Readers at further addresses are counted ([`Counters::destinations_full`](crate::Counters)): reliable ones get a
/// HEARTBEAT of their own and ask for all, best-effort ones get nothing. All participants together have no such bound.
pub const MAX_DESTINATIONS: usize = 16;

/// Addresses of a writer that asks content filters before it sends: one bit each in
/// [`Destinations::Subset`](crate::Destinations). A writer with more addresses sends everything to all, and its readers
/// filter alone.
pub const MAX_FILTERED_ADDRESSES: usize = 64;

/// Endpoints, and matches, that a participant may have whatever others need: more than most have. Beyond it a
/// participant gets no more of them than are free, so that several greedy ones leave room for the next one. An endpoint
/// whose announcement is longer than the average counts as several.
pub const FREE_SHARE: usize = 64;

/// Places of endpoints, and of matches, for each of which there is one more that is kept for topics of the highest level in
/// use: so these find a place where the others have taken all of theirs.
pub const KEPT_PART: usize = 8;

/// Places of a table that are not counted for that: a small table is for who is known.
pub const COMMON_PLACES: usize = 512;

/// Sequence numbers behind the lowest missing one that a reader keeps track of: the bits an
/// ACKNACK can carry (RTPS 2.5 §9.4.2.6), so that all it knows to be missing can be asked for.
pub const WINDOW: u32 = 256;

/// Bytes sent to a participant's addresses that are not validated for each byte that came in its name: else a forged
/// announcement would make this participant flood the address it names. QUIC allows
/// the same (RFC 9000 §8.1). An announcement, which costs as much as it brings in, and the four questions
/// of SEDP stay below it; those about liveliness wait for the next announcement where it is a short one.
pub const ANSWER_FACTOR: u32 = 3;

/// Bytes a second sent to all addresses together that are not validated, with one second's worth at once: about a
/// hundred participants that start in one instant are answered at once, and a thousand within ten seconds.
pub const UNVALIDATED_BYTES_PER_S: u32 = 64 * 1024;

/// Bytes a second that discovery sends where the rate of the link is not known: 5 % of a link of 10 Mbit/s. With it a
/// participant tells a thousand others of ten endpoints within a minute.
pub const DISCOVERY_BYTES_PER_S: u64 = 64 * 1024;

/// Validated addresses of a participant that are remembered: as many as a list of locators has.
pub const MAX_VALIDATED_ADDRESSES: usize = MAX_LOCATORS;

/// Times a participant is answered again that goes on announcing itself and has not shown that it hears this
/// one. All answers are lost with a probability of 10^-9 where a tenth of the frames is; more would be said to
/// one that is not there, or between two that hear of each other and of nothing else.
pub const MAX_ANSWERS_AGAIN: u8 = 8;

/// HEARTBEATs that a reader which has never answered is sent by the clock. With the period doubling from
/// 20 ms to 1 s they take three seconds: longer than it takes two participants to find each other over a
/// bad link. Such a reader holds back no history from then on; its first ACKNACK revives it.
pub const MAX_UNANSWERED_HEARTBEATS: u8 = 8;

/// Participants for which the HEARTBEATs of SEDP's writers come one `Timing::heartbeat_period` apart at least. With so many
/// times as many the time between two is so many times as long, `Timing::heartbeat_period_max` at most: these HEARTBEATs go
/// to all and are answered by all, and what each participant receives of them is not to grow with their number. RTCP
/// spreads its reports likewise (RFC 3550 §6.2).
pub const PARTICIPANTS_PER_HEARTBEAT_PERIOD: usize = 8;

/// Preemptive ACKNACKs after which a reader counts as matched that says nothing else: peers whose answers to
/// HEARTBEATs cannot be told from those would wait for ever for a first sample.
pub const MAX_PREEMPTIVE_ACKNACKS: u8 = 4;

/// How long the count of a HEARTBEAT or ACKNACK is held against later ones with a lower count. What the
/// network brings twice or late comes within it; after it a lower count is news: else one forged count, or a
/// peer that counts from the beginning again, would silence that peer for good.
pub const COUNT_MEMORY: Duration = Duration::from_secs(1);

/// Time for which a far jump of a writer's sequence numbers waits for a HEARTBEAT from an address of its participant;
/// after that, with no HEARTBEAT that contradicts, one from any address confirms it. A host may send from addresses that
/// it does not announce, and a writer that lives says more than one thing a second.
pub const JUMP_PATIENCE: Duration = COUNT_MEMORY;

/// Matches of readers with writers whose ends were announced, of which is remembered how far they were: should the
/// announcement prove forged, no sample is delivered twice. As many as one peer's endpoints with several readers each.
pub const PARTED_REMEMBERED: usize = 64;

/// The last sequence number that is believed: behind it there must be one more to wait for. At a
/// million samples a second a writer is there after 292,000 years.
pub const LAST_SEQUENCE: SequenceNumber = SequenceNumber(i64::MAX - 1);

/// Bytes of one slot for what SPDP or SEDP announces. Cyclone DDS with type information stays
/// below 1 KiB, Fast DDS with a type object below 4 KiB; what is larger is dropped and counted.
pub const DISCOVERY_SLOT_BYTES: usize = 8 * 1024;

/// SPDP announcements that wait for the discovery job, two of a participant at most and half of them of
/// participants that are not known yet. They are repeated, so a full box costs a period, not a peer.
pub const SPDP_INBOX_SLOTS: usize = 16;

/// The longest lease that is believed: a participant that announces an endless one and is heard no
/// more would keep its place for ever.
pub const MAX_LEASE: Duration = Duration::from_secs(300);

/// Time between the step that finds a peer's lease run out and the one that forgets the peer. What
/// waits in the sockets is read meanwhile: after a stop of this process longer than the lease the
/// announcements of all that live wait there. A step that comes later than twice this was itself
/// stopped, or starved, and waits again.
pub const LEASE_GRACE: Duration = Duration::from_millis(100);

/// Events of discovery that wait to be fetched, where somebody watches: those of a dozen participants with
/// twenty endpoints that appear at once. What comes beyond them is told as missed.
pub const MAX_DISCOVERY_EVENTS: usize = 256;

/// Participants that are described as peers: every sender that is known to nobody is compared with all of them. A
/// system's critical participants are a few dozen.
pub const MAX_STATIC_PEERS: usize = 64;

/// Endpoints of a described participant.
pub const MAX_STATIC_ENDPOINTS: usize = 64;

/// Former starts of a described peer that are remembered: what is late of them, in a queue behind more urgent ones, is
/// not taken for another start. Of more than this nothing waits any longer.
pub const RETIRED_STARTS: usize = 4;

/// For so long: what was still in queues has come by then. One that speaks on was parted from by mistake, as when
/// somebody forged a start of it, and is met again.
pub const START_MEMORY: Duration = Duration::from_secs(1);

/// A described peer is believed to have started again no sooner than so long after the last time: a process that
/// starts over and over, or one who forges that, costs ten partings a second.
pub const START_PAUSE: Duration = Duration::from_millis(100);

/// Participants and endpoints that are ignored. Each announcement is compared with all of them, and the
/// names they have go out of use when their processes end; a program that ignores more than this wants
/// another way of keeping others away.
pub const MAX_IGNORED: usize = 64;

/// Topics that are ignored, which are compared likewise.
pub const MAX_IGNORED_TOPICS: usize = 16;

/// SEDP announcements of one kind that wait for the discovery job. They are reliable: one that
/// finds no slot is not acknowledged and comes again. Once half of them are taken, a participant of which
/// one waits gets no further slot: so one that announces without end takes half of them, and each of sixteen
/// others finds one.
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

/// The largest payload that is sent as one DATA unless an endpoint says otherwise
/// ([`EndpointConfig::max_datagram_bytes`](crate::EndpointConfig)): what one Ethernet frame carries behind header,
/// INFO_TS and the head of a DATA, 56 bytes, rounded down. What is longer leaves in fragments: as one datagram
/// it would be cut by IP, hold the link for all its frames at a stretch, take no lane, and be lost whole with
/// any of them.
pub const WHOLE_BYTES: usize = 1_400;

/// Bytes of a fragment that is sent, unless datagrams are to be shorter. A datagram with one, all that can stand in front of it (header 20,
/// INFO_DST 16, INFO_TS 12, DATA_FRAG with key hash and status 68) and behind it (HEARTBEAT 32, or
/// HEARTBEAT_FRAG 28) fits an Ethernet frame, so that what asks for an answer needs no datagram of its own.
/// A multiple of 32, so that fragments lie in a slot as they lie in their datagram.
pub const FRAGMENT_BYTES: u16 = 1_312;

/// The smallest fragments that are put together: a reader remembers of each whether it has come. Peers are
/// known to cut at 1,024 bytes and above. A sample in smaller ones is rejected, unless all of it lies in one submessage.
pub const MIN_FRAGMENT_BYTES: u16 = 512;

/// The largest sample there can be. What a critical topic waits for at most does not depend on it, memory
/// does: a writer and a reader take several times as much.
pub const MAX_SAMPLE_BYTES: usize = 16 << 20;

/// Samples of which a reader can have a part at a time. Writers send one after the other, so that is as many
/// large writers as can send to it at the same time; of more, samples are repaired or lost.
pub const ASSEMBLIES: usize = 4;

/// How long an incomplete sample that another would take the place of is kept without a new fragment: longer
/// than repair takes over a bad link, whose HEARTBEATs come every 20 ms as long as the reader answers.
pub const ASSEMBLY_PATIENCE: Duration = Duration::from_millis(500);

/// Bytes of inline QoS that are kept of a sample in fragments: key hash, status and sentinel are 32.
pub const MAX_INLINE_QOS_BYTES: usize = 128;

/// Fragments of a first transmission after which a HEARTBEAT_FRAG tells how far it is: the bits a NACK_FRAG
/// can carry (RTPS 2.5 §9.4.2.8), so that the repair of a long sample begins before its end.
pub const FRAGMENTS_PER_HEARTBEAT: u32 = 256;

/// Samples that a best-effort writer of large samples keeps until they are sent. What HISTORY says is about
/// samples that were sent; here it decides only whether a further one is refused (KEEP_ALL) or takes the
/// place of the oldest (KEEP_LAST).
pub const STAGED_SAMPLES: u16 = 16;

/// Bytes that long samples of an endpoint share, where a type without bounds makes some longer than an Ethernet frame:
/// some dozen of 20 KB, or four of 64 KiB. Endpoints with many of them are bounded by the participant's sample memory.
pub const LONG_BYTES: usize = 256 << 10;

/// The longest sample up to which they share that; where longer ones are asked for, they share
/// [`WAITING_BYTES`].
pub const USUAL_LONG_BYTES: usize = 64 << 10;

/// Bytes that samples out of order may take at a reader, beyond the four that are always kept:
/// large ones are few, and one that finds no place is asked for again. As many may be taken by what
/// TIME_BASED_FILTER keeps back; one that finds no place there is filtered, and not shown later.
pub const WAITING_BYTES: usize = 4 << 20;

/// Fewest samples out of order, or kept back, that a reliable reader of large samples keeps: as many as it
/// puts together.
pub const MIN_LARGE_WAITING: u16 = ASSEMBLIES as u16;

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

/// Ends of an instance that lie beside as many samples as HISTORY says: it is disposed, and its writers leave.
pub const ENDS_BESIDE: u16 = 2;

/// Bytes that ends of instances may take in the history of a KEEP_LAST writer beside its values, one for each instance
/// otherwise, and one in any case: an end is a key, but lies in a slot like any other. A hundred and eighty
/// instances of samples that fit an Ethernet frame have one each.
pub const ENDS_BYTES: usize = 256 << 10;

/// Fewest samples out of order that a reliable reader keeps.
pub const MIN_WAITING: u16 = 16;

/// Most samples out of order that a reliable reader keeps: what one ACKNACK can ask for.
pub const MAX_WAITING: u16 = WINDOW as u16;

/// Instances of a keyed writer that it unregisters when it is deleted: the first that it has written and not unregistered.
/// Their DATA fill 40 datagrams at most. Of further ones readers learn that their writer is gone.
pub const REGISTERED_INSTANCES: u16 = 256;

/// Bytes of the serialised key that such a writer keeps of an instance, with the encapsulation header: a string of 128
/// bytes is a key. An instance with a longer one is not kept.
pub const REGISTERED_KEY_BYTES: usize = 144;

/// Bytes of a topic or type name (RTPS 2.5 §9.6.3.2: string<256> with its NUL).
pub const MAX_NAME_BYTES: usize = 255;

/// Instances that one step of an endpoint's clock looks at: what keeps back a critical sample stays within a
/// few microseconds, and a thousand instances that fall due together take sixty steps.
pub(crate) const CLOCK_ITEMS: usize = 16;

/// Samples that one such step looks at for their LIFESPAN, at a reader or in a writer's history: each costs little
/// more than a comparison, so a cache of a thousand that expires at once takes sixteen steps.
pub(crate) const EXPIRY_ITEMS: usize = 64;

/// Delay of a datagram, and of a receiver that is behind, beyond which a time stamp is of another clock: reading one
/// datagram takes no longer on a machine that does anything in time.
pub(crate) const PLAUSIBLE_DELAY: Duration = Duration::from_millis(500);

/// Samples of a writer that must all be older than their LIFESPAN before a clock is taken to be behind by less than
/// [`PLAUSIBLE_DELAY`] more: a burst that waited in a socket is shorter.
pub(crate) const AGED_SAMPLES: u8 = 8;

/// For how long the least age of a writer's samples counts: a few periods of most topics. A clock that is set shows
/// after two of them.
pub(crate) const LEAST_AGE_WINDOW: Duration = Duration::from_secs(10);

/// Instances of a keyed topic without RESOURCE_LIMITS whose DEADLINE is watched, or whose samples pass a
/// TIME_BASED_FILTER. What exceeds it is counted ([`Counters::unwatched`](crate::Counters)), is not watched,
/// and passes.
pub const WATCHED_INSTANCES: u16 = 256;

/// Different content filters that a writer asks before it sends, however many of its readers have each: as many as
/// it has addresses of discovered readers, so that each may want something else. Readers beyond get all, and filter alone.
pub const MAX_FILTERS: usize = MAX_DESTINATIONS;

/// Steps that all filters of a writer together take for one sample at most, each about as long as comparing two
/// bytes: about a tenth of a millisecond, which is what a sample may cost in front of its sending where peers
/// bring the dearest filters there are. One that would exceed it is its reader's alone. So many steps, too, are taken
/// at most by what is asked in one activation, unless a single sample takes them.
pub const MAX_FILTER_STEPS: u32 = 100_000;

/// Steps of a filter that says nothing of them.
pub(crate) const FILTER_STEPS: u32 = MAX_FILTER_STEPS / 4;

/// Changes that filters are asked about in one step of first sending, repair or history: most of what fits a shared
/// datagram of small samples.
pub(crate) const FILTERED_RUN: usize = 16;

/// Messages within one lease that say that writers are alive: two of three may be lost.
pub(crate) const ASSERTIONS_PER_LEASE: u32 = 3;

/// Bytes of a slot for a participant's message: 24 for one of liveliness (RTPS 2.5 §9.6.3.1), and as many
/// again for what a vendor may say.
pub const MESSAGE_SLOT_BYTES: usize = 48;

/// Messages of participants that wait for earlier ones of the same; they are taken as they come.
pub const MESSAGE_CACHE_SLOTS: u16 = 16;

/// Samples that a best-effort writer with a LATENCY_BUDGET keeps until they leave together: some datagrams of the
/// smallest samples. Half of them wait at most.
pub const BATCHED_SAMPLES: u16 = 128;

/// The longest time that a sample is kept back for others, whatever LATENCY_BUDGET says: beyond it nothing is gained,
/// and a writer that forgets to flush would seem dead.
pub const MAX_HOLD: Duration = Duration::from_secs(1);

/// Publishers, and as many subscribers, of a participant. Their members are looked through when one of their
/// samples comes or a set ends; a program that has more groups than this has hardly a set in each.
pub const MAX_GROUPS: u16 = 32;

/// After so long a reader asks again how far the writers of a group are that it waits for: as often as a
/// HEARTBEAT that is not answered is repeated at first. The time doubles with each question that is not answered.
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The longest time between two such questions, as between two HEARTBEATs: what a writer that is silent for good costs.
pub(crate) const ASK_AGAIN_MAX: Duration = Duration::from_secs(1);

/// Questions after which a writer that answers, and never says how far its group is, counts as one that cannot. With
/// the time between them doubling they take three seconds: more than are lost in a row.
pub(crate) const UNANSWERED_QUESTIONS: u8 = 8;

/// Writers of a peer's publisher that are compared with those that the ends of its sets name, when one of them has gone.
/// Of more nobody can tell whether a set lacks its part.
pub(crate) const MAX_KNOWN_WRITERS: usize = 128;

/// How long a sample of a coherent set that finds every slot for such samples taken waits for other sets to end: as
/// long as an incomplete sample is waited for.
pub(crate) const SET_PATIENCE: Duration = ASSEMBLY_PATIENCE;

/// Fewest ends of coherent sets that a writer's history has room for, beside as many as samples. They have no payload;
/// a writer without a part in the sets of its group has nothing else to keep, and late readers judge by them whether a
/// set is whole.
pub(crate) const MIN_SET_ENDS: u16 = 64;

/// The shortest period of anything the engine does by itself: below it a participant would do
/// nothing else.
pub const MIN_PERIOD: Duration = Duration::from_millis(1);

const _: () = {
    const HEARTBEAT: usize = isolane_wire::rtps::HEARTBEAT_BYTES;
    const AROUND: usize = 20 + 16 + 12 + 68 + HEARTBEAT;
    assert!(
        AROUND + FRAGMENT_BYTES as usize <= BATCH_BYTES,
        "a datagram with a fragment fits an Ethernet frame"
    );
    assert!(WHOLE_BYTES + 20 + 12 + 24 <= BATCH_BYTES);
};
