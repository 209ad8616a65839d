//! Cost of hostile peers for a local participant: no memory, and a bounded number of steps per datagram.
//!
//! One local participant with its own endpoints receives datagrams of every kind of attack. No world surrounds it, so
//! the counts are the participant's alone. A *step* is one call of `poll_transmit`, which returns at most one datagram.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "support/submessages.rs"]
mod submessages;

use std::time::Duration;

use counting_allocator::allocator_calls_of;
use submessages::{
    SEDP_READERS, acknack, assert_balanced, end, endpoint, full_set, gap, head, heartbeat,
    late_joiner, receive, work,
};

use isolane_rtps::{
    ChangeKind, DeliveryMode, EndpointConfig, Limits, LocalParticipant, ParticipantConfig,
    WriteSample,
    limits::{RESERVE_RATIO, SEDP_CACHE_SLOTS, UNRESERVED_ENTRIES},
};
use isolane_sim::{Random, Sample, key_of};
use isolane_wire::{
    BufferTooSmall,
    builtin_data::{BuiltinEndpoints, EndpointData, LocatorList, ParticipantData},
    guid::{EntityId, EntityKind, Guid, GuidPrefix},
    locator::Locator,
    message::{AckNack, DataPrefix, Header, Heartbeat, MessageWriter},
    qos::HistoryKind,
    time::{Instant, Timestamp},
};

const ATTACKER: Locator = Locator::udpv4([10, 0, 9, 9], 7410);

/// Number of writers, and number of readers, of the attacked participant.
const LOCAL: u32 = 4;

/// Limits of the tables that an attack fills. All their memory is allocated at the start.
const LIMITS: Limits = Limits {
    local_endpoints: 64,
    participants: 32,
    remote_endpoints: 640,
    matches: 512,
    fixed_memory: true,
    sample_bytes: 16 << 20,
};

/// Number of endpoints of three participants that are announced before an attack whose steps are counted.
const KNOWN_ENDPOINTS: u64 = 300;

/// Maximum number of samples that one ACKNACK can request (RTPS 2.5 §9.4.2.6); each is one repair.
const ASKED_AT_MOST: u64 = 256;

fn topic(is_keyed: bool) -> EndpointConfig<'static> {
    let mut qos = late_joiner();
    qos.history.kind = HistoryKind::KeepAll;
    qos.resource_limits.max_samples = 64;
    EndpointConfig {
        keyed: is_keyed,
        key_of: is_keyed.then_some(key_of),
        ..endpoint("Attacked", qos)
    }
}

struct Attacked {
    protocol: LocalParticipant,
    now: Instant,
    chance: Random,
    number: u32,
    received: Vec<u8>,
    sent: Vec<u8>,
}

impl Attacked {
    fn new(seed: u64) -> Self {
        let now = Instant::new(1);
        let mut config = ParticipantConfig::new(0, GuidPrefix([1; 12]), seed);
        config.limits = LIMITS;
        let mut protocol = LocalParticipant::new(config, now);
        for nth in 0..LOCAL {
            let topic = topic(nth % 2 == 0);
            let writer = protocol.create_writer(now, &topic).expect("there is room");
            let reader = protocol.create_reader(now, &topic, DeliveryMode::Cache);
            reader.expect("there is room");
            for value in 0..32 {
                let payload = Sample::keyed(1, value).payload();
                let key_hash = topic.keyed.then(|| key_of(&payload, false).ok()).flatten();
                let slot = protocol
                    .reserve(writer, key_hash, 0)
                    .expect("there is room");
                slot[..payload.len()].copy_from_slice(&payload);
                let sample = WriteSample {
                    kind: ChangeKind::Alive,
                    key_hash,
                    timestamp: Timestamp::ZERO,
                };
                let committed = protocol.commit(writer, &sample, payload.len());
                committed.expect("it fits");
            }
        }
        let mut attacked = Self {
            protocol,
            now,
            chance: Random::new(seed),
            number: 0,
            received: vec![0; 4096],
            sent: vec![0; 4096],
        };
        attacked.work();
        attacked
    }

    /// Runs all pending work; returns the number of steps.
    fn work(&mut self) -> u64 {
        work(&mut self.protocol, self.now, &mut self.sent)
    }

    /// Receives a datagram of the attack and runs all work that it causes; returns the number of steps.
    fn suffer(&mut self, attack: Attack) -> u64 {
        self.number += 1;
        let prefix = match attack {
            // Each announcement is from another participant.
            Attack::Participants => prefix(1_000 + self.number),
            _ => prefix(self.number % 3),
        };
        let mut buffer = std::mem::take(&mut self.received);
        let header = Header::new(prefix);
        let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
        let filled = self.fill(attack, prefix, &mut message);
        filled.expect("it fits");
        let length = message.len();
        receive(&mut self.protocol, self.now, ATTACKER, &buffer[..length]);
        self.received = buffer;
        self.work()
    }

    fn edge(&mut self) -> i64 {
        let edges = [
            1,
            2,
            33,
            256,
            1 << 32,
            i64::MAX - 257,
            i64::MAX - 1,
            i64::MAX,
        ];
        self.chance.pick(&edges)
    }

    fn fill(
        &mut self,
        attack: Attack,
        prefix: GuidPrefix,
        message: &mut MessageWriter<'_>,
    ) -> Result<(), BufferTooSmall> {
        let list = full_set(self.edge().min(i64::MAX - 257));
        let writers = [
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            EntityId::user(1, EntityKind::WRITER_WITH_KEY),
            EntityId::user(1, EntityKind::WRITER_NO_KEY),
        ];
        let writer = self.chance.pick(&writers);
        let mut payload = [0; 1024];
        match attack {
            Attack::Participants | Attack::Leases => {
                let mut data = ParticipantData::new(prefix);
                data.metatraffic_unicast = LocatorList::from_iter([ATTACKER]);
                data.builtin_endpoints = BuiltinEndpoints::PUBLICATIONS_ANNOUNCER
                    | BuiltinEndpoints::PUBLICATIONS_DETECTOR
                    | BuiltinEndpoints::SUBSCRIPTIONS_ANNOUNCER
                    | BuiltinEndpoints::SUBSCRIPTIONS_DETECTOR;
                let leases = [Duration::ZERO, Duration::from_secs(1), Duration::MAX];
                data.lease = self.chance.pick(&leases);
                let length = data.emit(&mut payload)?;
                message.data(&head(EntityId::SPDP_WRITER, 1), &payload[..length])?;
            }
            Attack::Endpoints => {
                let is_writer = self.number.is_multiple_of(2);
                let kinds = [
                    EntityKind::READER_NO_KEY,
                    EntityKind::READER_WITH_KEY,
                    EntityKind::WRITER_NO_KEY,
                    EntityKind::WRITER_WITH_KEY,
                ];
                let kind = kinds[2 * usize::from(is_writer) + self.chance.below(2) as usize];
                let entity = EntityId::user(self.chance.below(1_000) as u32, kind);
                let mut data = EndpointData::new(Guid { prefix, entity });
                data.topic_name = "Attacked".try_into().unwrap_or_default();
                data.type_name = "sim::Sample".try_into().unwrap_or_default();
                data.qos = topic(false).qos;
                let length = data.emit(&mut payload)?;
                let sedp = writers[usize::from(!is_writer)];
                let number = i64::from(self.number);
                let head = head(sedp, 1 + number / 6);
                let head = DataPrefix {
                    status: end(sedp, 1).status.filter(|_| self.chance.chance(0.2)),
                    ..head
                };
                message.data(&head, &payload[..length])?;
            }
            Attack::Heartbeats => {
                let range = (self.edge(), self.edge());
                message.heartbeat(&Heartbeat {
                    is_final: self.chance.chance(0.5),
                    ..heartbeat(writer, range, self.number as i32)
                })?;
            }
            Attack::Gaps => {
                message.gap(&gap(writer, self.edge(), list))?;
            }
            Attack::AckNacks => {
                let pair = self.chance.pick(&SEDP_READERS);
                message.acknack(&AckNack {
                    is_final: self.chance.chance(0.5),
                    ..acknack(pair, list, self.number as i32)
                })?;
            }
            Attack::Data => {
                message.data(&head(writer, self.edge()), &payload[..32])?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Participants,
    Endpoints,
    Leases,
    Heartbeats,
    Gaps,
    AckNacks,
    Data,
}

const ATTACKS: [Attack; 7] = [
    Attack::Participants,
    Attack::Endpoints,
    Attack::Leases,
    Attack::Heartbeats,
    Attack::Gaps,
    Attack::AckNacks,
    Attack::Data,
];

fn prefix(number: u32) -> GuidPrefix {
    let mut prefix = [7; 12];
    prefix[8..].copy_from_slice(&number.to_be_bytes());
    GuidPrefix(prefix)
}

#[test]
fn attacks_of_every_kind_take_no_memory() {
    for seed in 0..3 {
        let mut attacked = Attacked::new(seed);
        let calls = allocator_calls_of(|| {
            for _ in 0..100_000 {
                let attack = attacked.chance.pick(&ATTACKS);
                attacked.suffer(attack);
                // Leases expire meanwhile, and HEARTBEATs become due.
                attacked.now = attacked.now + Duration::from_millis(2);
            }
        });
        assert_eq!(calls, 0, "allocations with seed {seed}");
        let protocol = &attacked.protocol;
        let counters = protocol.counters();
        // The counters show that the attack took place.
        assert!(counters.leases_expired > 0, "{counters:?}");
        assert!(counters.participants_displaced > 1_000, "{counters:?}");
        assert!(protocol.remote_participants().count() <= 32);
        let kept = (640 - UNRESERVED_ENTRIES) / RESERVE_RATIO;
        assert!(protocol.remote_endpoints().count() <= 640 + kept);
        assert_balanced(protocol);
    }
}

#[test]
fn a_datagram_of_an_attack_calls_for_a_bounded_number_of_steps() {
    for attack in ATTACKS {
        let mut attacked = Attacked::new(1);
        // Some participants with endpoints are known first, so that the attack has targets.
        for _ in 0..KNOWN_ENDPOINTS {
            attacked.suffer(Attack::Leases);
            attacked.suffer(Attack::Endpoints);
        }
        let mut most = 0;
        for _ in 0..5_000 {
            // No time passes, so no timer expires.
            most = most.max(attacked.suffer(attack));
        }
        // Each local endpoint may have to answer, to match, or to end a match, and discovery checks once more for work.
        // An ACKNACK may request as many samples as it can name. A GAP releases earlier announcements that waited for
        // the missing ones.
        let further = match attack {
            Attack::AckNacks => ASKED_AT_MOST,
            Attack::Heartbeats | Attack::Gaps | Attack::Data => SEDP_CACHE_SLOTS as u64,
            // A new participant may replace one of the three known ones. Its endpoints are then removed, with their
            // matches.
            Attack::Participants => KNOWN_ENDPOINTS / 3 * u64::from(1 + LOCAL),
            _ => 0,
        };
        let bound = further + u64::from(4 * LOCAL) + 8;
        assert!(most > 0, "{attack:?} calls for nothing");
        assert!(most <= bound, "{attack:?}: {most} steps");
        println!("{attack:?}: at most {most} steps");
    }
}
