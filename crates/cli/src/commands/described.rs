//! Described participants: the one to run as, and the conversion to the library's types.

use std::net::SocketAddrV4;

use isolane::{Announces, Builder, Described, EndpointKind, Qos};
use isolane_model::{
    Domain, Durability, History, Participant, Reliability, Source, Sourced, System, Topic,
};

use crate::failure::Failure;
use crate::limits::ENCAPSULATION_HEADER_BYTES;

/// Participant of a description, with the whole description.
#[derive(Clone, Debug)]
pub(crate) struct DescribedAs {
    pub(crate) name: Sourced<String>,
    pub(crate) system: System,
}

impl DescribedAs {
    /// Participant with the given name; `None` without a name.
    pub(super) fn new(
        name: Option<String>,
        system: Option<&System>,
        domain: &Sourced<Domain>,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = name else {
            return Ok(None);
        };
        let Some(system) = system else {
            return Err(Failure::wrong_usage(
                "--participant names a participant of a description, and there is none",
                "neither --config nor ISOLANE_CONFIG names one",
            )
            .with_remedy("name a description with --config FILE"));
        };
        if system.participant(&name).is_none() {
            let all = system.participants().iter();
            let names: Vec<&str> = all.map(|it| it.name.value.as_str()).collect();
            let why = match names.as_slice() {
                [] => String::from("it describes none: [participant.NAME]"),
                names => format!("its participants are {}", names.join(", ")),
            };
            let name = name.escape_debug();
            return Err(Failure::wrong_usage(
                format!("the description has no participant \"{name}\""),
                why,
            )
            .with_remedy("name one of these, or describe it: isolane config --example shows how"));
        }
        check_ports(system, domain)?;
        Ok(Some(Self {
            name: Sourced::new(name, Source::CommandLine("--participant")),
            system: system.clone(),
        }))
    }

    pub(super) fn host(&self) -> Option<String> {
        let participant = self.system.participant(&self.name.value)?;
        Some(participant.host.value.clone())
    }
}

/// Checks that no described participant has a port that RTPS assigns in the command's domain. The description was
/// checked for its own domain, and the command's may differ.
pub(super) fn check_ports(system: &System, domain: &Sourced<Domain>) -> Result<(), Failure> {
    let taken = domain.value.ports();
    let mut participants = system.participants().iter();
    let Some(wrong) = participants.find(|participant| {
        let ports = participant.ports();
        u32::from(ports.start) < taken.end && taken.start < u32::from(ports.end)
    }) else {
        return Ok(());
    };
    let (name, ports) = (&wrong.name.value, wrong.ports());
    Err(Failure::wrong_usage(
        format!("the described participants cannot be in domain {} ({})", domain.value, domain.source),
        format!(
            "participant \"{name}\" ({}) has ports {} to {}, and RTPS assigns {} to {} to participants of that domain",
            wrong.port.source,
            ports.start,
            ports.end - 1,
            taken.start,
            taken.end - 1
        ),
    )
    .with_remedy(
        "leave that domain out, and the description's own applies; or give its participants ports below 7400, which no \
         domain has",
    ))
}

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
pub(super) fn described_participant(participant: &Participant, system: &System) -> Described {
    let at = SocketAddrV4::new(participant.address.value, participant.port.value);
    let announces = match participant.announces.value {
        isolane_model::Announces::All => Announces::All,
        isolane_model::Announces::Itself => Announces::Itself,
        isolane_model::Announces::Nothing => Announces::Nothing,
    };
    let mut described = Described::new(&participant.name.value, at).announces(announces);
    for (kind, names) in [
        (EndpointKind::Writer, &participant.writes.value),
        (EndpointKind::Reader, &participant.reads.value),
    ] {
        // The description contains every named topic.
        for topic in names.iter().filter_map(|name| system.topic(name)) {
            let of_type = (topic.type_name.value.as_str(), topic.keyed.value);
            described = described.endpoint(kind, &topic.name.value, of_type, &topic_qos(topic));
        }
    }
    described
}

/// QoS policies that the description gives to both ends of a topic.
fn topic_qos(topic: &Topic) -> Qos {
    let bounded = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    qos(
        topic.reliability.value,
        topic.durability.value,
        topic.history.value,
    )
    .level(topic.level.value)
    .max_samples(bounded(topic.max_samples.value.get()))
    .max_bytes(topic.max_bytes.value.get() as usize + ENCAPSULATION_HEADER_BYTES)
}

pub(super) fn qos(reliability: Reliability, durability: Durability, history: History) -> Qos {
    let mut qos = match reliability {
        Reliability::BestEffort => Qos::best_effort(),
        Reliability::Reliable => Qos::reliable(),
    };
    if durability == Durability::TransientLocal {
        qos = qos.transient_local();
    }
    match history {
        History::KeepAll => qos.keep_all(),
        History::KeepLast(depth) => qos.keep_last(u16::try_from(depth.get()).unwrap_or(u16::MAX)),
    }
}
