//! Conversion of described participants to the library's types.

use std::net::SocketAddrV4;

use isolane::{Announces, Builder, EndpointKind, Qos, StaticDescription};
use isolane_model::{Durability, History, Participant, Reliability, System, Topic};

use crate::limits::ENCAPSULATION_HEADER_BYTES;
use crate::settings::DescribedAs;

/// Configures a participant with its described identity and peers.
pub(super) fn with_described(builder: Builder, described: Option<&DescribedAs>) -> Builder {
    let Some(DescribedAs { name, system }) = described else {
        return builder;
    };
    system.participants().iter().fold(builder, |builder, one| {
        let is_own = one.name.value == name.value;
        let one = described_participant(one, system);
        match is_own {
            true => builder.described_as(one),
            false => builder.described_peer(one),
        }
    })
}

/// Described participant with the endpoints of its topics.
pub(super) fn described_participant(
    participant: &Participant,
    system: &System,
) -> StaticDescription {
    let at = SocketAddrV4::new(participant.address.value, participant.port.value);
    let announces = match participant.announces.value {
        isolane_model::Announces::All => Announces::All,
        isolane_model::Announces::Itself => Announces::Itself,
        isolane_model::Announces::Nothing => Announces::Nothing,
    };
    let mut described = StaticDescription::new(&participant.name.value, at).announces(announces);
    for (kind, names) in [
        (EndpointKind::Writer, &participant.writes.value),
        (EndpointKind::Reader, &participant.reads.value),
    ] {
        // The description contains every named topic.
        for topic in names.iter().filter_map(|name| system.topic(name)) {
            let of_type = (topic.type_name.value.as_str(), topic.keyed.value);
            described = described.endpoint(kind, &topic.name.value, of_type, &qos(topic));
        }
    }
    described
}

/// QoS policies that the description gives to both ends of a topic.
fn qos(topic: &Topic) -> Qos {
    let mut qos = match topic.reliability.value {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable(),
    };
    if topic.durability.value == Durability::TransientLocal {
        qos = qos.transient_local();
    }
    let bounded = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    qos = match topic.history.value {
        History::KeepAll => qos.keep_all(),
        History::KeepLast(depth) => qos.keep_last(bounded(depth.get())),
    };
    qos.level(topic.level.value)
        .max_samples(bounded(topic.max_samples.value.get()))
        .max_bytes(topic.max_bytes.value.get() as usize + ENCAPSULATION_HEADER_BYTES)
}
