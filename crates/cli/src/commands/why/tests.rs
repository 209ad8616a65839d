//! Tests of the reasons that `judge` derives from facts, without a network.

use isolane::{EndpointKind, ReliabilityKind, RemoteEndpoint as Endpoint};
use isolane_tune::PacketFilters;
use isolane_wire::builtin_data::EndpointData;
use isolane_wire::cdr::EncapsulationId;
use isolane_wire::guid::{EntityId, Guid, GuidPrefix};
use isolane_wire::locator::Locator;
use isolane_wire::qos::{DataRepresentationId, LivelinessKind, OwnershipKind};

use super::facts::Who;
use super::*;
use crate::limits::remedy_of_full_tables;

const WRITER: EntityId = EntityId([0, 0, 1, 0x03]);
const READER: EntityId = EntityId([0, 0, 1, 0x04]);

fn who(number: u8, address: [u8; 4]) -> Who {
    Who {
        prefix: GuidPrefix([number; 12]),
        name: format!("program {number}"),
        vendor: String::from("isolane"),
        addresses: vec![address],
        is_validated: true,
        digest: None,
    }
}

fn endpoint(number: u8, kind: EndpointKind, topic: &str) -> Endpoint {
    let entity = match kind {
        EndpointKind::Writer => WRITER,
        EndpointKind::Reader => READER,
    };
    let prefix = GuidPrefix([number; 12]);
    let mut data = EndpointData::new(Guid { prefix, entity });
    data.topic_name = topic.try_into().expect("short");
    data.type_name = "ShapeType".try_into().expect("short");
    data.qos.reliability.kind = ReliabilityKind::Reliable;
    Endpoint { kind, data }
}

/// Facts with a reliable writer of participant 1 and a reader of participant 2, on one network.
fn pair() -> Facts {
    let here = Heard {
        domain: 0,
        participants: vec![who(1, [10, 0, 0, 1]), who(2, [10, 0, 0, 2])],
        endpoints: vec![
            endpoint(1, EndpointKind::Writer, "Square"),
            endpoint(2, EndpointKind::Reader, "Square"),
        ],
    };
    let network = |interface: &str, address| LocalNetwork {
        interface: interface.into(),
        address,
        prefix_bits: 24,
    };
    Facts {
        topic: String::from("Square"),
        full: None,
        unreached_peers: None,
        here,
        elsewhere: Vec::new(),
        networks: vec![
            network("eth0", [10, 0, 0, 3]),
            network("eth1", [10, 1, 0, 3]),
        ],
        ignoring: Vec::new(),
        refusals: Vec::new(),
        described: Vec::new(),
        filters: PacketFilters::default(),
    }
}

fn only(facts: &Facts) -> Reason {
    let mut reasons = judge(facts);
    assert_eq!(reasons.len(), 1, "{reasons:#?}");
    reasons.remove(0)
}

/// The only reason after `change` of the writer's and the reader's announcements.
fn changed(change: impl FnOnce(&mut EndpointData, &mut EndpointData)) -> Reason {
    let mut facts = pair();
    let [writer, reader] = facts.here.endpoints.as_mut_slice() else {
        panic!("a pair")
    };
    change(&mut writer.data, &mut reader.data);
    only(&facts)
}

fn says(reason: &Reason, id: &str, words: &[&str]) {
    assert_eq!(reason.id, id, "{reason:#?}");
    for word in words {
        assert!(reason.sentence.contains(word), "{word}: {reason:#?}");
    }
    assert!(!reason.sentence.contains(". ") && !reason.remedy.is_empty());
}

#[test]
fn a_pair_that_agrees_is_said_to_match() {
    let reason = only(&pair());
    assert_eq!((reason.id, reason.verdict), ("match", Verdict::Yes));
    assert!(reason.writer.is_some() && reason.reader.is_some());
}

#[test]
fn a_reader_whose_participant_answers_from_no_announced_address_may_get_no_samples() {
    let mut facts = pair();
    facts.here.participants[1].is_validated = false;
    let reason = only(&facts);
    says(
        &reason,
        "address-not-validated",
        &["the reader's participant", "addresses that it announces"],
    );
    assert_eq!(reason.verdict, Verdict::Perhaps);
    // Writers of other vendors send samples to addresses that are not validated.
    facts.here.participants[0].vendor = String::from("Cyclone DDS");
    assert_eq!(only(&facts).id, "match");
    let mut facts = pair();
    facts.here.participants[0].is_validated = false;
    assert_eq!(only(&facts).id, "match");
}

#[test]
fn a_policy_is_named_with_both_values() {
    let reason = changed(|writer, _| writer.qos.reliability.kind = ReliabilityKind::BestEffort);
    says(
        &reason,
        "policy",
        &["RELIABILITY", "offers BEST_EFFORT", "requests RELIABLE"],
    );
    assert_eq!(reason.differences[0].name, "RELIABILITY");
    assert_eq!(reason.differences[0].offered, "BEST_EFFORT");
    let reason = changed(|_, reader| reader.qos.deadline = Duration::from_millis(5).into());
    says(
        &reason,
        "policy",
        &["DEADLINE", "offers infinite", "requests 5ms"],
    );
    let reason = changed(|_, reader| reader.qos.liveliness.kind = LivelinessKind::ManualByTopic);
    says(
        &reason,
        "policy",
        &["LIVELINESS", "AUTOMATIC", "MANUAL_BY_TOPIC"],
    );
    let reason = changed(|writer, _| writer.qos.ownership = OwnershipKind::Exclusive);
    says(&reason, "policy", &["OWNERSHIP", "EXCLUSIVE", "SHARED"]);
}

#[test]
fn all_that_differs_is_in_one_sentence() {
    let reason = changed(|writer, reader| {
        writer.type_name = "Shape".try_into().expect("short");
        reader
            .qos
            .partition
            .push("left".try_into().expect("short"))
            .expect("room");
        writer.qos.reliability.kind = ReliabilityKind::BestEffort;
    });
    says(
        &reason,
        "type",
        &[
            "\"Shape\"",
            "\"ShapeType\"",
            "PARTITION",
            "\"left\"",
            "RELIABILITY",
        ],
    );
    assert_eq!(reason.differences.len(), 3);
}

#[test]
fn partition_key_and_representation_are_reasons_of_their_own() {
    let reason = changed(|writer, _| {
        writer
            .qos
            .partition
            .push("left".try_into().expect("short"))
            .expect("room");
    });
    says(
        &reason,
        "partition",
        &["the writer is in \"left\"", "the default one"],
    );
    let reason = changed(|writer, _| writer.guid.entity = EntityId([0, 0, 1, 0x02]));
    says(&reason, "key", &["with a key", "without a key"]);
    let reason = changed(|writer, _| {
        let xcdr2 = DataRepresentationId::XCDR2;
        writer.qos.data_representation.push(xcdr2).expect("room");
    });
    says(&reason, "data-representation", &["XCDR2", "XCDR1"]);
}

#[test]
fn a_name_that_is_nearly_the_same_is_pointed_out() {
    let reason = changed(|_, reader| reader.topic_name = "square".try_into().expect("short"));
    says(
        &reason,
        "topic-name",
        &["no reader of \"Square\"", "1 reader of \"square\""],
    );
    let reason = changed(|_, reader| reader.topic_name = "rt/Square".try_into().expect("short"));
    assert!(reason.remedy.contains("ROS 2"), "{reason:#?}");
}

#[test]
fn one_side_alone_is_said_to_be_alone() {
    let reason = changed(|_, reader| reader.topic_name = "Lidar".try_into().expect("short"));
    says(
        &reason,
        "no-reader",
        &["1 writer", "no reader", "2 participants"],
    );
}

#[test]
fn the_other_side_is_found_in_another_domain() {
    let mut facts = pair();
    let reader = facts.here.endpoints.remove(1);
    facts.elsewhere.push(Heard {
        domain: 4,
        participants: Vec::new(),
        endpoints: vec![reader],
    });
    says(
        &only(&facts),
        "other-domain",
        &["1 writer in domain 0", "1 reader in domain 4"],
    );
}

#[test]
fn silence_is_said_to_be_silence() {
    let mut facts = pair();
    facts.here.endpoints.clear();
    says(
        &only(&facts),
        "nothing-announced",
        &["2 participants", "no endpoint"],
    );
    facts.here.participants.clear();
    says(
        &only(&facts),
        "nothing-announced",
        &["no participant announced itself in domain 0"],
    );
}

#[test]
fn endpoints_on_networks_that_are_not_connected_are_named_with_both() {
    let mut facts = pair();
    facts.here.participants[1].addresses = vec![[10, 1, 0, 9]];
    says(&only(&facts), "network", &["eth0", "eth1"]);
    // For an address in none of this host's networks, no `network` reason is derived.
    facts.here.participants[1].addresses = vec![[10, 9, 0, 9]];
    assert_eq!(only(&facts).id, "match");
    facts.here.participants[1].addresses = vec![[127, 0, 0, 1]];
    says(
        &only(&facts),
        "network",
        &["the reader is reached only by 127.0.0.1"],
    );
}

#[test]
fn who_ignores_the_other_is_named() {
    let mut facts = pair();
    facts.ignoring.push(Ignoring {
        prefix: GuidPrefix([2; 12]).to_string(),
        entities: vec![facts.here.endpoints[0].data.participant().to_string()],
        topics: Vec::new(),
        too_large: 0,
    });
    says(
        &only(&facts),
        "ignored",
        &["participant of the reader ignores"],
    );
    facts.ignoring[0].entities.clear();
    facts.ignoring[0].topics.push(String::from("Square"));
    says(&only(&facts), "ignored", &["ignores the topic \"Square\""]);
}

#[test]
fn a_reader_that_refuses_an_encapsulation_is_named_with_both_extensibilities() {
    let refused = |identifier: Option<u16>| {
        let mut facts = pair();
        facts.refusals.push(Refusal {
            reader_prefix: GuidPrefix([2; 12]).to_string(),
            topic: String::from("Square"),
            writer: facts.here.endpoints[0].data.guid.to_string(),
            total: 3,
            delivered: 0,
            encapsulation: identifier.map(EncapsulationId),
        });
        facts
    };
    for (identifier, name, types) in [
        (
            0x0009,
            "D_CDR2_LE",
            "the writer's type is appendable and the reader's final",
        ),
        (
            0x0007,
            "CDR2_LE",
            "the writer's type is final and the reader's appendable",
        ),
        (0x0003, "PL_CDR_LE", "mutable"),
        (0x0004, "0x0004", "does not read this encapsulation"),
    ] {
        let reason = only(&refused(Some(identifier)));
        assert_eq!(reason.verdict, Verdict::No);
        says(&reason, "encapsulation", &["3 samples", name, types]);
    }
    let reason = only(&refused(None));
    assert_eq!(reason.verdict, Verdict::No);
    says(&reason, "payload", &["3 samples", "not of its type"]);
    let mut after_others = refused(None);
    after_others.refusals[0].delivered = 7;
    assert_eq!(only(&after_others).verdict, Verdict::Perhaps);
    let mut of_another = refused(Some(0x0009));
    of_another.refusals[0].topic = String::from("Circle");
    assert_eq!(only(&of_another).id, "match");
}

#[test]
fn the_extensibility_of_another_implementations_type_is_said_to_be_unknown_with_what_to_try() {
    assert!(
        !only(&pair()).sentence.contains("unknown"),
        "both are isolane"
    );

    let mut facts = pair();
    facts.here.participants[1].vendor = String::from("Cyclone DDS");
    let reason = only(&facts);
    assert_eq!(reason.verdict, Verdict::Yes);
    says(
        &reason,
        "match",
        &[
            "whether the reader's type is final or appendable is unknown",
            "Cyclone DDS",
        ],
    );
    assert!(
        reason
            .remedy
            .contains("#[topic(appendable)]`, which sends XCDR2"),
        "{reason:#?}"
    );

    let xcdr2 = DataRepresentationId::XCDR2;
    for endpoint in &mut facts.here.endpoints {
        endpoint
            .data
            .qos
            .data_representation
            .push(xcdr2)
            .expect("room");
    }
    let remedy = only(&facts).remedy;
    assert!(
        remedy.contains("other extensibility") && remedy.contains("XCDR1"),
        "{remedy}"
    );

    facts.here.participants.swap(0, 1);
    let [first, second] = &mut facts.here.participants[..] else {
        panic!("two")
    };
    std::mem::swap(&mut first.prefix, &mut second.prefix);
    says(
        &only(&facts),
        "match",
        &["whether the writer's type is final"],
    );
}

#[test]
fn samples_too_large_for_a_reader_of_this_host_are_said_with_the_setting() {
    let mut facts = pair();
    facts.ignoring.push(Ignoring {
        prefix: GuidPrefix([2; 12]).to_string(),
        entities: Vec::new(),
        topics: Vec::new(),
        too_large: 30,
    });
    let reason = only(&facts);
    says(&reason, "too-large", &["30 samples were larger"]);
    assert_eq!(reason.verdict, Verdict::Perhaps);
    assert!(reason.remedy.contains("--max-bytes"), "{reason:?}");
}

#[test]
fn a_packet_filter_that_cannot_be_read_is_a_perhaps_unless_something_else_explains_it() {
    let mut facts = pair();
    let why = String::from("nft says: not permitted");
    for read_by in [vec![], vec!["nft"]] {
        facts.filters = PacketFilters::unreadable(why.clone());
        facts.filters.read_by = read_by;
        let reasons = judge(&facts);
        assert_eq!(reasons[0].verdict, Verdict::Perhaps);
        says(&reasons[0], "firewall-unreadable", &["not permitted"]);
    }
    facts.here.endpoints[0].data.qos.reliability.kind = ReliabilityKind::BestEffort;
    assert_eq!(only(&facts).id, "policy");
}

#[test]
fn announced_addresses_of_an_endpoint_come_before_its_participants() {
    let mut facts = pair();
    let near = Locator::udpv4([10, 1, 0, 7], 7_777);
    facts.here.endpoints[1]
        .data
        .unicast
        .push(near)
        .expect("room");
    says(&only(&facts), "network", &["at 10.1.0.7"]);
}

/// Facts with two participants that write and read a described topic. Both have announced themselves.
fn described() -> Facts {
    let one = |number: u8, kind, address| DescribedHere {
        name: format!("part {number}"),
        said_in: format!("isolane.toml:{number}"),
        address,
        kinds: vec![kind],
        is_announced: true,
        prefix: GuidPrefix([
            number, number, number, number, number, number, number, number, 0, 0, 0, 0,
        ]),
        digest: u64::from(number),
    };
    let mut facts = pair();
    facts.here.endpoints.clear();
    for (number, who) in (1..).zip(&mut facts.here.participants) {
        who.digest = Some(number);
    }
    facts.described = vec![
        one(1, EndpointKind::Writer, [10, 0, 0, 1]),
        one(2, EndpointKind::Reader, [10, 0, 0, 2]),
    ];
    facts
}

#[test]
fn described_participants_that_are_there_and_agree_are_said_to_know_each_other() {
    let reason = only(&described());
    assert_eq!(reason.verdict, Verdict::Yes);
    says(
        &reason,
        "described",
        &["part 1", "isolane.toml:2", "10.0.0.2"],
    );
}

#[test]
fn a_described_participant_that_is_not_there_or_follows_another_description_is_named() {
    let mut facts = described();
    facts.here.participants.pop();
    says(
        &only(&facts),
        "described-absent",
        &["part 2", "isolane.toml:2", "reader"],
    );

    for digest in [None, Some(7)] {
        let mut facts = described();
        facts.here.participants[0].digest = digest;
        let reason = only(&facts);
        assert_eq!(reason.verdict, Verdict::No);
        says(
            &reason,
            "described-otherwise",
            &["part 1", "than isolane.toml:"],
        );
    }

    let mut facts = described();
    facts.described[0].is_announced = false;
    let reason = only(&facts);
    assert_eq!(reason.verdict, Verdict::Perhaps);
    says(&reason, "described-silent", &["part 1"]);

    let mut facts = described();
    facts.described.pop();
    says(&only(&facts), "described-one-sided", &["no reader"]);
}

/// Reason about an endpoint of the described topic that was discovered.
fn said_of_discovered(facts: &Facts) -> Reason {
    let mut reasons = judge(facts).into_iter();
    let found = reasons.find(|reason| reason.id == "not-described");
    found.expect("it was discovered")
}

#[test]
fn one_that_was_discovered_meets_none_that_is_described_and_these_meet_all_the_same() {
    let mut facts = described();
    let reader = endpoint(3, EndpointKind::Reader, "Square");
    facts.here.endpoints.push(reader);
    let ids: Vec<&str> = judge(&facts).iter().map(|reason| reason.id).collect();
    assert_eq!(ids, ["not-described", "described"]);
    let reason = said_of_discovered(&facts);
    assert_eq!(reason.verdict, Verdict::No);
    says(&reason, "not-described", &["reader", "discovered"]);
    assert!(reason.remedy.contains("describe its participant"));

    let writer = endpoint(4, EndpointKind::Writer, "Square");
    facts.here.endpoints.push(writer);
    let reason = said_of_discovered(&facts);
    says(
        &reason,
        "not-described",
        &["1 of the discovered writers match it"],
    );
}

#[test]
fn the_likely_purpose_of_a_discovered_endpoint_is_named() {
    // The described reader is absent, so the discovered one was probably started without --participant.
    let mut facts = described();
    facts.here.participants.remove(1);
    let reader = endpoint(3, EndpointKind::Reader, "Square");
    facts.here.endpoints.push(reader);
    let reason = said_of_discovered(&facts);
    assert!(reason.remedy.contains("--participant part 2"), "{reason:?}");

    // The participant is the described one, but this writer is not described.
    let mut facts = described();
    let writer = endpoint(2, EndpointKind::Writer, "Square");
    facts.here.endpoints.push(writer);
    let reason = said_of_discovered(&facts);
    says(
        &reason,
        "not-described",
        &["writer", "\"part 2\" (reader, described in"],
    );
    assert!(reason.remedy.contains("`writes`"), "{reason:?}");
}

/// Full tables of a command whose limit is `participants`.
fn full_tables(participants: u32) -> FullTables {
    FullTables {
        refused: String::from("12 endpoints"),
        remedy: remedy_of_full_tables(participants),
    }
}

#[test]
fn a_limit_that_cannot_be_raised_is_not_advised_to_be() {
    let mut facts = pair();
    facts.here.endpoints.remove(1);
    facts.full = Some(full_tables(2_000));
    let reasons = judge(&facts);
    let full = reasons.iter().find(|reason| reason.id == "table-full");
    let remedy = &full.expect("it is said").remedy;
    assert!(!remedy.contains("--max-participants"), "{remedy}");
    assert!(remedy.contains("--interface"), "{remedy}");
}

#[test]
fn who_is_missing_may_have_found_the_tables_of_this_command_full_or_was_not_asked() {
    let mut facts = pair();
    facts.here.endpoints.remove(1);
    facts.full = Some(full_tables(1_999));
    facts.unreached_peers = Some(String::from(
        "of each --peer the ports of its first 10 participants were asked",
    ));
    let reasons = judge(&facts);
    let found = |id| reasons.iter().find(|reason| reason.id == id);
    let full = found("table-full").expect("it is said");
    assert_eq!(full.verdict, Verdict::No);
    assert!(full.sentence.contains("12 endpoints"), "{}", full.sentence);
    assert!(
        full.remedy.contains("--max-participants"),
        "{}",
        full.remedy
    );
    assert!(found("no-reader").is_none(), "that is not known");
    assert_eq!(
        found("not-asked").expect("it is said").verdict,
        Verdict::Perhaps
    );
    // Writer and reader were discovered, so full tables are no reason.
    let mut facts = pair();
    facts.full = Some(full_tables(1_999));
    assert!(judge(&facts).iter().all(|reason| reason.id != "table-full"));
}
