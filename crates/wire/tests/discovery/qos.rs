//! Tests of the policies in announcements.

use core::time::Duration;

use isolane_wire::{
    Error,
    builtin_data::EndpointData,
    limits::{MAX_OCTETS, MAX_PARTITION_BYTES, MAX_PARTITIONS},
    locator::Locator,
    parameter::pid,
    qos::{
        DataRepresentationId, DestinationOrderKind, DurabilityKind, DurabilityService, History,
        HistoryKind, Liveliness, LivelinessKind, Octets, OwnershipKind, PolicyId, Presentation,
        PresentationAccessScope, QosPolicies, ReaderDataLifecycle, Reliability, ReliabilityKind,
        ResourceLimits,
    },
    time,
};

use crate::support::{READER, WRITER, payload, writer_with};

#[test]
fn kinds_that_the_standard_does_not_know_are_refused_by_name() {
    for (id, length) in [
        (pid::RELIABILITY, 12),
        (pid::DURABILITY, 4),
        (pid::HISTORY, 8),
        (pid::LIVELINESS, 12),
        (pid::OWNERSHIP, 4),
        (pid::DESTINATION_ORDER, 4),
        (pid::PRESENTATION, 8),
    ] {
        let parsed = writer_with(|list| {
            list.put(id, &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..length]);
        });
        assert_eq!(parsed, Err(Error::InvalidParameter(id)), "{id:#06x}");
    }
}

#[test]
fn a_negative_duration_is_refused() {
    let parsed = writer_with(|list| {
        list.put(pid::DEADLINE, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    });
    assert_eq!(parsed, Err(Error::InvalidParameter(pid::DEADLINE)));
}

#[test]
fn an_absent_reliability_means_reliable_of_writers_and_best_effort_of_readers() {
    assert_eq!(
        writer_with(|_| ()).unwrap().qos.reliability.kind,
        ReliabilityKind::Reliable
    );
    let reader = EndpointData::parse_reader(&payload(|list| {
        list.put(pid::ENDPOINT_GUID, &READER.to_bytes());
        list.put_str(pid::TOPIC_NAME, "Square");
        list.put_str(pid::TYPE_NAME, "ShapeType");
    }));
    let reader = reader.unwrap();
    assert_eq!(reader.qos, QosPolicies::reader_default());
    assert_eq!(reader.qos.reliability.kind, ReliabilityKind::BestEffort);
    assert!(!reader.is_keyed());
    assert_eq!(EndpointData::new(READER).qos, QosPolicies::reader_default());
    assert_eq!(EndpointData::new(WRITER).qos, QosPolicies::writer_default());
}

#[test]
fn the_defaults_are_those_of_the_standard() {
    let qos = QosPolicies::default();
    assert_eq!(qos.durability, DurabilityKind::Volatile);
    assert_eq!(
        qos.reliability.max_blocking_time.to_core(),
        Some(Duration::from_millis(100))
    );
    assert_eq!(
        (qos.history.kind, qos.history.depth),
        (HistoryKind::KeepLast, 1)
    );
    let limits = qos.resource_limits;
    assert_eq!((limits.max_samples, limits.max_instances), (-1, -1));
    assert_eq!(limits.max_samples_per_instance, -1);
    assert_eq!(qos.deadline, time::Duration::INFINITE);
    assert_eq!(qos.lifespan, time::Duration::INFINITE);
    assert_eq!(qos.liveliness.kind, LivelinessKind::Automatic);
    assert_eq!(qos.liveliness.lease, time::Duration::INFINITE);
    assert_eq!(qos.latency_budget, time::Duration::ZERO);
    assert_eq!(qos.time_based_filter, time::Duration::ZERO);
    assert_eq!(qos.ownership, OwnershipKind::Shared);
    assert_eq!((qos.ownership_strength, qos.transport_priority), (0, 0));
    assert_eq!(
        qos.destination_order,
        DestinationOrderKind::ByReceptionTimestamp
    );
    assert_eq!(qos.presentation, Presentation::default());
    assert!(qos.partition.is_empty() && qos.data_representation.is_empty());
}

/// QoS in which every policy differs from its default.
fn unusual_qos() -> QosPolicies {
    let seconds = |seconds| time::Duration::from(Duration::from_secs(seconds));
    QosPolicies {
        reliability: Reliability {
            kind: ReliabilityKind::BestEffort,
            max_blocking_time: seconds(1),
        },
        durability: DurabilityKind::Persistent,
        durability_service: DurabilityService {
            cleanup_delay: seconds(2),
            history: History {
                kind: HistoryKind::KeepAll,
                depth: 3,
            },
            resource_limits: ResourceLimits {
                max_samples: 4,
                max_instances: 5,
                max_samples_per_instance: 6,
            },
        },
        history: History {
            kind: HistoryKind::KeepLast,
            depth: 7,
        },
        resource_limits: ResourceLimits {
            max_samples: 8,
            max_instances: 9,
            max_samples_per_instance: 10,
        },
        deadline: seconds(11),
        latency_budget: seconds(12),
        liveliness: Liveliness {
            kind: LivelinessKind::ManualByTopic,
            lease: seconds(13),
        },
        ownership: OwnershipKind::Exclusive,
        ownership_strength: -14,
        destination_order: DestinationOrderKind::BySourceTimestamp,
        presentation: Presentation {
            access_scope: PresentationAccessScope::Group,
            coherent: true,
            ordered: true,
        },
        partition: ["", "a", "abc", "four", "a*"]
            .into_iter()
            .map(|name| name.try_into().unwrap())
            .collect(),
        lifespan: seconds(15),
        time_based_filter: seconds(16),
        // This policy is not announced.
        reader_data_lifecycle: ReaderDataLifecycle::default(),
        data_representation: [DataRepresentationId::XCDR2, DataRepresentationId::XML]
            .into_iter()
            .collect(),
        transport_priority: 17,
        user_data: Octets::of(&[0; MAX_OCTETS]).unwrap(),
        topic_data: Octets::of(&[18]).unwrap(),
        group_data: Octets::of(b"three").unwrap(),
    }
}

#[test]
fn of_longer_user_data_the_first_octets_are_kept_and_said_to_be_a_part() {
    let announced = |count: usize| {
        let mut value = (count as u32).to_le_bytes().to_vec();
        value.extend((0..count).map(|at| at as u8));
        value
    };
    for (id, count, is_truncated) in [
        (pid::USER_DATA, MAX_OCTETS, false),
        (pid::USER_DATA, MAX_OCTETS + 1, true),
        (pid::TOPIC_DATA, 1000, true),
        (pid::GROUP_DATA, 1000, true),
    ] {
        let qos = writer_with(|list| {
            list.put(id, &announced(count));
        });
        let qos = qos.unwrap().qos;
        let octets = match id {
            pid::USER_DATA => &qos.user_data,
            pid::TOPIC_DATA => &qos.topic_data,
            _ => &qos.group_data,
        };
        assert_eq!(octets.as_slice(), &announced(MAX_OCTETS)[4..]);
        assert_eq!(
            (octets.is_truncated(), qos.octets_cut()),
            (is_truncated, is_truncated.into())
        );
    }
    assert_eq!(Octets::of(&[0; MAX_OCTETS + 1]), None);
}

#[test]
fn user_data_that_ends_before_its_length_is_refused() {
    let parsed = writer_with(|list| {
        list.put(pid::USER_DATA, &[5, 0, 0, 0, b'f', b'o', b'u', b'r']);
    });
    assert_eq!(parsed, Err(Error::InvalidParameter(pid::USER_DATA)));
}

#[test]
fn every_policy_survives_the_way_there_and_back() {
    for guid in [WRITER, READER] {
        let sent = EndpointData {
            topic_name: "Square".try_into().unwrap(),
            type_name: "shapes::ShapeType".try_into().unwrap(),
            qos: unusual_qos(),
            unicast: [Locator::udpv4([10, 0, 0, 1], 40_000)]
                .into_iter()
                .collect(),
            multicast: [Locator::udpv4([239, 255, 23, 0], 7401)]
                .into_iter()
                .collect(),
            expects_inline_qos: true,
            ..EndpointData::new(guid)
        };
        let mut buffer = [0; 2048];
        let length = sent.emit(&mut buffer).unwrap();
        let parse = if guid == WRITER {
            EndpointData::parse_writer
        } else {
            EndpointData::parse_reader
        };
        assert_eq!(parse(&buffer[..length]), Ok(sent));
    }
}

/// PARTITION with these names.
fn partition(names: &[String]) -> Result<usize, Error> {
    let mut value = (names.len() as u32).to_le_bytes().to_vec();
    for name in names {
        value.extend_from_slice(&(name.len() as u32 + 1).to_le_bytes());
        value.extend_from_slice(name.as_bytes());
        value.push(0);
        value.resize(value.len().next_multiple_of(4), 0);
    }
    let data = writer_with(|list| {
        list.put(pid::PARTITION, &value);
    });
    data.map(|data| data.qos.partition.len())
}

#[test]
fn partitions_have_bounds_and_beyond_them_the_endpoint_is_refused() {
    let name = || "p".repeat(MAX_PARTITION_BYTES);
    assert_eq!(partition(&[]), Ok(0));
    assert_eq!(partition(&vec![name(); MAX_PARTITIONS]), Ok(MAX_PARTITIONS));
    let exceeded = Err(Error::BoundExceeded(pid::PARTITION));
    assert_eq!(
        partition(&vec![String::new(); MAX_PARTITIONS + 1]),
        exceeded
    );
    assert_eq!(partition(&[name() + "p"]), exceeded);
}

#[test]
fn a_count_of_partitions_or_representations_beyond_the_value_is_refused() {
    for id in [pid::PARTITION, pid::DATA_REPRESENTATION] {
        let parsed = writer_with(|list| {
            list.put(id, &[0xff, 0xff, 0xff, 0xff]);
        });
        assert_eq!(parsed, Err(Error::InvalidParameter(id)));
    }
}

#[test]
fn representations_beyond_the_bound_are_skipped() {
    let data = writer_with(|list| {
        list.put(
            pid::DATA_REPRESENTATION,
            &[6, 0, 0, 0, 2, 0, 0, 0, 1, 0, 7, 0, 8, 0, 9, 0],
        );
    });
    let found: Vec<_> = data
        .unwrap()
        .qos
        .data_representation
        .iter()
        .map(|id| id.0)
        .collect();
    assert_eq!(found, [2, 0, 1, 7]);
}

#[test]
fn policies_are_named_as_in_the_standard() {
    assert_eq!(PolicyId::RELIABILITY.to_string(), "RELIABILITY");
    assert_eq!(PolicyId(0).name(), "UNKNOWN");
    let written = format!("{:?} {:?}", PolicyId::DURABILITY, PolicyId(0));
    assert_eq!(written, "DURABILITY PolicyId(0)");
}
