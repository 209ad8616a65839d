//! Described participant of a command, which matches the others without discovery, and the check of the description's
//! ports against the command's domain.

use isolane_model::{Domain, Source, Sourced, System};

use crate::failure::Failure;

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
        format!("what is described cannot be in domain {} ({})", domain.value, domain.source),
        format!(
            "participant \"{name}\" ({}) has ports {} to {}, and RTPS gives {} to {} to participants of that domain",
            wrong.port.source,
            ports.start,
            ports.end - 1,
            taken.start,
            taken.end - 1
        ),
    )
    .with_remedy(
        "leave that domain out, and the description's own counts; or give its participants ports below 7400, which no \
         domain has",
    ))
}
