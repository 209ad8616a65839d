//! Participants and QoS from a system description, `isolane.toml` (cargo feature `config`).
//!
//! [`System`] is the description that [`load_description`] reads. The other types are its parts: hosts, topics,
//! participants and their settings.

use std::{env, ffi::OsString, net::SocketAddrV4, path::Path, rc::Rc};

use isolane_datapath::{InterfaceRateLimit, Interfaces};
use isolane_rtps::EndpointKind;
use isolane_wire::cdr::ENCAPSULATION_BYTES;

use crate::{
    datapaths::DATAPATHS,
    limits::{ENDPOINTS_PER_PARTICIPANT, MATCHES_PER_PARTICIPANT},
    participant::builder::Builder,
    participant::static_discovery::StaticDescription,
    qos::Qos,
};

pub use isolane_model::{
    Announces, Budget, DatapathChoice, DatapathSettings, Domain, DomainError, Durability, History,
    HistoryDepth, Host, HostProtection, InterfaceBudget, OthersBudget, Participant, Problem,
    Reliability, SampleBytes, Scheduling, Severity, Source, Sourced, System, Topic, Waiting,
};

/// Reason why a description does not say how to create a participant or an endpoint.
#[derive(Debug, thiserror::Error)]
pub enum DescriptionError {
    /// The file cannot be read, or is not a valid description.
    #[error("the description is invalid:\n{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// The description has no entry with the given name.
    #[error("the description has no {kind} {name:?}: {}", remedy(kind, .known))]
    Missing {
        /// Kind of entry: host, topic, or participant.
        kind: &'static str,
        /// Name that was looked up.
        name: String,
        /// Names of the described entries of this kind.
        known: Vec<String>,
    },
    /// There is no description to read.
    #[error(
        "{VARIABLE} names no description, and there is no {USUAL_FILE} in the working directory: set {VARIABLE} to the path of one. `isolane config --example` prints one to begin with"
    )]
    NoFile,
    /// The value of the environment variable ISOLANE_DOMAIN is not a domain id.
    #[error("{DOMAIN} is {text:?}: {source}. Set it to such a number, or unset it")]
    Domain {
        /// Value of the variable.
        text: String,
        /// Reason.
        source: DomainError,
    },
    /// The participant was built without a description.
    #[error(
        "the participant was built without a description: build it with Builder::from_environment or from_description"
    )]
    NoDescription,
    /// The participant is described on another host.
    #[error(
        "participant {participant:?} is described on host {described:?}, not on {host:?}: start it there, or change `host` in [participant.{participant}]"
    )]
    OtherHost {
        /// Participant name.
        participant: String,
        /// Host of the participant in the description.
        described: String,
        /// Host that was asked for.
        host: String,
    },
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(|it| format!("{it:#}")).collect();
    lines.join("\n")
}

fn remedy(kind: &str, known: &[String]) -> String {
    match known {
        [] => format!("it describes none: add [{kind}.NAME]"),
        known => format!("name one of these: {}", known.join(", ")),
    }
}

impl DescriptionError {
    fn missing<'a>(
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a String>,
    ) -> Self {
        Self::Missing {
            kind,
            name: name.into(),
            known: known.cloned().collect(),
        }
    }
}

/// Reads a description file, whose hosts may choose among [`DATAPATHS`]. Logs its warnings.
///
/// # Errors
/// [`DescriptionError::Invalid`], with all errors of the file.
pub fn load_description(path: impl AsRef<Path>) -> Result<System, DescriptionError> {
    let system = System::load(path, DATAPATHS).map_err(DescriptionError::Invalid)?;
    for warning in system.warnings() {
        warn!("{warning:#}");
    }
    Ok(system)
}

/// Environment variable that names the description of [`Builder::from_environment`].
const VARIABLE: &str = "ISOLANE_CONFIG";
/// Environment variable with a domain that replaces the described one.
const DOMAIN: &str = "ISOLANE_DOMAIN";
/// Description in the working directory, used without [`VARIABLE`].
const USUAL_FILE: &str = "isolane.toml";

fn missing_host(system: &System, name: &str) -> DescriptionError {
    let hosts = system.hosts().iter();
    DescriptionError::missing("host", name, hosts.map(|it| &it.name.value))
}

fn described_participant<'a>(
    system: &'a System,
    name: &str,
) -> Result<&'a Participant, DescriptionError> {
    system.participant(name).ok_or_else(|| {
        let all = system.participants().iter();
        DescriptionError::missing("participant", name, all.map(|it| &it.name.value))
    })
}

impl Builder {
    /// Creates a builder as [`from_description`](Self::from_description) from the file that the environment variable
    /// ISOLANE_CONFIG names, or from `isolane.toml` in the working directory. The host is the participant's, or the
    /// one with this machine's name, or the only one. The domain is the described one, unless ISOLANE_DOMAIN is set, as
    /// for the command `isolane`.
    ///
    /// ```no_run
    /// use isolane::{Builder, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Brake { pressure: u32 }
    ///
    /// // Domain, interface, core, priority, datapath and limits of the loop are those of the file.
    /// let participant = Builder::from_environment(None)?.build()?;
    /// // So are level, QoS and budget of the topic.
    /// let qos = participant.described_qos("BrakePressure")?;
    /// let reader = participant.create_reader::<Brake>("BrakePressure", &qos)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`load_description`] and [`from_description`](Self::from_description); [`DescriptionError::NoFile`],
    /// [`DescriptionError::Domain`].
    pub fn from_environment(participant: Option<&str>) -> Result<Self, DescriptionError> {
        Self::from_variables(participant, |name| env::var_os(name))
    }

    /// See [`from_environment`](Self::from_environment). `variable` returns the value of an environment variable.
    fn from_variables(
        participant: Option<&str>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, DescriptionError> {
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        let named = variable(VARIABLE);
        if named.is_none() && !Path::new(USUAL_FILE).exists() {
            return Err(DescriptionError::NoFile);
        }
        let system = load_description(named.unwrap_or_else(|| USUAL_FILE.into()))?;
        let mut builder = Self::from_description(&system, None, participant)?;
        if let Some(text) = variable(DOMAIN) {
            let text = text.to_string_lossy().into_owned();
            match text.parse::<Domain>() {
                Ok(domain) => builder.domain = domain.get(),
                Err(source) => return Err(DescriptionError::Domain { text, source }),
            }
        }
        Ok(builder)
    }

    /// Creates a builder in the description's domain, with the settings of `host`. With a `participant`, the described
    /// participants match without discovery, and the new one is that participant, with its name.
    ///
    /// Without a `host`, the participant's host is used; without both, the host with this machine's name, otherwise the
    /// only host.
    ///
    /// ```
    /// use isolane::{Builder, DATAPATHS, DescriptionError, Network, Qos, System, TopicType};
    /// use std::time::Duration;
    ///
    /// #[derive(TopicType)]
    /// struct Brake { pressure: u32 }
    ///
    /// // A program reads the file: isolane::load_description("isolane.toml").
    /// let text = r#"
    ///     [host.left]
    ///     interface = "eth0"
    ///
    ///     [host.right]
    ///     interface = "eth0"
    ///
    ///     [topic.BrakePressure]
    ///     type = "Brake"
    ///     level = 7
    ///     period = "500us"
    ///     deadline = "400us"
    ///     max_bytes = 64
    ///     reliability = "best-effort"
    ///     from = ["left"]
    ///     to = ["right"]
    /// "#;
    /// let system = System::from_toml(text, "isolane.toml", DATAPATHS).map_err(DescriptionError::Invalid)?;
    ///
    /// // Without `memory`, the datapath is the described one.
    /// let network = Network::new(1);
    /// let left = Builder::from_description(&system, Some("left"), None)?.memory(&network, [10, 0, 0, 1]).build()?;
    /// let right = Builder::from_description(&system, Some("right"), None)?.memory(&network, [10, 0, 0, 2]).build()?;
    ///
    /// let qos = Qos::from_description(&system, "BrakePressure")?;
    /// let writer = left.create_writer::<Brake>("BrakePressure", &qos)?;
    /// let reader = right.create_reader::<Brake>("BrakePressure", &qos)?;
    /// while writer.matched_readers() == 0 || reader.matched_writers() == 0 {
    ///     left.run_for(Duration::from_millis(1));
    ///     right.run_for(Duration::from_millis(1));
    /// }
    /// writer.write(&Brake { pressure: 80 })?;
    /// assert!(right.run_until(Duration::from_secs(5), || reader.available() == 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DescriptionError::Missing`], [`DescriptionError::OtherHost`].
    pub fn from_description(
        system: &System,
        host: Option<&str>,
        participant: Option<&str>,
    ) -> Result<Self, DescriptionError> {
        let own = participant.map(|name| described_participant(system, name));
        let own = own.transpose()?;
        let described = match host.or(own.map(|own| own.host.value.as_str())) {
            Some(name) => system
                .host(name)
                .ok_or_else(|| missing_host(system, name))?,
            None => {
                let name = isolane_hostnet::kernel::hostname();
                let of_machine = system.host_of_machine(&name);
                of_machine.ok_or_else(|| missing_host(system, &name))?
            }
        };
        let mut builder = Self::new(system.domain().value.get()).host(described);
        builder.description = Some(Rc::new(system.clone()));
        match own {
            None => Ok(builder),
            Some(own) if own.host.value != described.name.value => {
                Err(DescriptionError::OtherHost {
                    participant: own.name.value.clone(),
                    described: own.host.value.clone(),
                    host: described.name.value.clone(),
                })
            }
            Some(own) => Ok(builder.name(&own.name.value).described_in(system, own)),
        }
    }

    /// Applies the settings of a described host: interface, datapath, waiting, core and priority of the loop's thread,
    /// [limits](Self::host_limits), and the rate limits of all receivers. A [host](Host::new) without an interface keeps
    /// the builder's.
    #[must_use]
    pub fn host(self, host: &Host) -> Self {
        let mut builder = self
            .host_limits(host)
            .datapaths(host.factories())
            .waiting(match host.waiting.value {
                Waiting::Sleep => crate::Waiting::Sleep,
                Waiting::Spin => crate::Waiting::Spin,
            })
            .lock_memory(host.lock_memory.value)
            .require_placement(host.scheduling.value == Scheduling::Required);
        if !host.interface.value.is_empty() {
            let interface = host.interface.value.clone();
            builder = builder.interfaces(Interfaces::Named(vec![interface]));
        }
        if let Some(level) = host.discovery_level.value {
            builder = builder.discovery_level(level);
        }
        if let Some(base) = host.sample_ports.value {
            builder = builder.sample_ports(base);
        }
        if let Some(core) = host.core.value {
            builder = builder.core(core);
        }
        if let Some(priority) = host.priority.value {
            builder = builder.realtime(priority);
        }
        let topics = host.protect.topics.as_ref().map(|topics| {
            let (capacity, period) = (topics.capacity.value, topics.period.value);
            (
                isolane_datapath::Budget { capacity, period },
                topics.reserved.value,
            )
        });
        let foreign = host
            .protect
            .others
            .as_ref()
            .map(|others| isolane_datapath::Budget {
                capacity: others.capacity.value,
                period: others.period.value,
            });
        if topics.is_some() || foreign.is_some() {
            builder = builder.interface_limit(InterfaceRateLimit { topics, foreign });
        }
        builder
    }

    /// Applies only the limits of a described host: `fixed_memory`, the sample memory, and, with `max_participants`, the
    /// tables for remote participants.
    ///
    /// Other limits remain as set by an earlier call of [`limits`](Self::limits). A later call replaces all.
    #[must_use]
    pub fn host_limits(self, host: &Host) -> Self {
        let mut limits = self.limits_so_far();
        limits.fixed_memory = host.fixed_memory.value;
        limits.sample_bytes = host.sample_memory.value.get() as usize;
        if let Some(most) = host.max_participants.value {
            let places = |of_each| u16::try_from(most.get() * of_each).unwrap_or(u16::MAX);
            limits.participants = places(1);
            limits.remote_endpoints = places(ENDPOINTS_PER_PARTICIPANT);
            limits.matches = places(MATCHES_PER_PARTICIPANT);
        }
        self.limits(limits)
    }

    /// Builds the described participant `own`, with all other described participants as its peers.
    #[must_use]
    pub fn described_in(self, system: &System, own: &Participant) -> Self {
        let all = system.participants().iter();
        all.fold(self, |builder, one| {
            let description = StaticDescription::from_description(system, one);
            match one.name.value == own.name.value {
                true => builder.described_as(description),
                false => builder.described_peer(description),
            }
        })
    }
}

impl crate::Participant {
    /// Returns the QoS of a topic in the description that the participant was [built
    /// from](Builder::from_description).
    ///
    /// # Errors
    /// [`DescriptionError::Missing`], [`DescriptionError::NoDescription`].
    pub fn described_qos(&self, topic: &str) -> Result<Qos, DescriptionError> {
        let system = self.description();
        let system = system.ok_or(DescriptionError::NoDescription)?;
        Qos::from_description(system, topic)
    }
}

impl StaticDescription {
    /// Creates the static description of a described participant, with the endpoints of its topics.
    #[must_use]
    pub fn from_description(system: &System, participant: &Participant) -> Self {
        let at = SocketAddrV4::new(participant.address.value, participant.port.value);
        let announces = match participant.announces.value {
            Announces::All => isolane_rtps::Announces::All,
            Announces::Itself => isolane_rtps::Announces::Itself,
            Announces::Nothing => isolane_rtps::Announces::Nothing,
        };
        let mut description = Self::new(&participant.name.value, at).announces(announces);
        for (kind, names) in [
            (EndpointKind::Writer, &participant.writes.value),
            (EndpointKind::Reader, &participant.reads.value),
        ] {
            // The description contains every named topic.
            for topic in names.iter().filter_map(|name| system.topic(name)) {
                let of_type = (topic.type_name.value.as_str(), topic.keyed.value);
                description = description.endpoint(kind, &topic.name.value, of_type, &topic.into());
            }
        }
        description
    }
}

impl Qos {
    /// Returns the QoS of a described topic, for its writers and readers.
    ///
    /// # Errors
    /// [`DescriptionError::Missing`].
    pub fn from_description(system: &System, topic: &str) -> Result<Self, DescriptionError> {
        system.topic(topic).map(Self::from).ok_or_else(|| {
            let topics = system.topics().iter();
            DescriptionError::missing("topic", topic, topics.map(|it| &it.name.value))
        })
    }

    /// Returns a QoS with the described RELIABILITY, DURABILITY and HISTORY.
    #[must_use]
    pub fn of_kinds(reliability: Reliability, durability: Durability, history: History) -> Self {
        let mut qos = match reliability {
            Reliability::BestEffort => Self::best_effort(),
            Reliability::Reliable => Self::reliable(),
        };
        if durability == Durability::TransientLocal {
            qos = qos.transient_local();
        }
        match history {
            History::KeepAll => qos.keep_all(),
            History::KeepLast(depth) => qos.keep_last(bounded(depth.get())),
        }
    }
}

impl From<&Topic> for Qos {
    fn from(topic: &Topic) -> Self {
        let kinds = (topic.reliability.value, topic.durability.value);
        let mut qos = Self::of_kinds(kinds.0, kinds.1, topic.history.value)
            .level(topic.level.value)
            .max_samples(bounded(topic.max_samples.value.get()))
            .max_bytes(topic.max_bytes.value.get() as usize + ENCAPSULATION_BYTES);
        if let Some(deadline) = topic.deadline.value {
            qos = qos.response_deadline(deadline);
            if let Some(period) = topic.period.value {
                // The gap is longest if the first sample has no delay and the next one the whole deadline.
                qos = qos.deadline(period + deadline);
            }
        }
        if let Some(bound) = topic.burst_bound.value {
            qos = qos.burst_bound(bound);
        }
        if let Some(budget) = &topic.budget {
            let (capacity, period) = (budget.capacity.value, budget.period.value);
            let limit = isolane_datapath::Budget { capacity, period };
            qos = qos.budget(limit, budget.over.value);
        }
        qos
    }
}

/// Returns the number, at most the maximum of a policy: descriptions allow 65,536, policies 65,535.
fn bounded(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use isolane_datapath::memory::Network;

    use super::*;

    const TEXT: &str = r#"
        domain = 3
        [host.left]
        interface = "lo"
        [topic.Brake]
        type = "Brake"
        level = 7
        max_bytes = 64
        reliability = "best-effort"
        from = ["left"]
        to = ["left"]
    "#;

    /// Builds a participant with ISOLANE_DOMAIN set to this text.
    fn built(domain: &str) -> Result<crate::Participant, DescriptionError> {
        let path = env::temp_dir().join(format!("isolane-{}-{domain}.toml", std::process::id()));
        fs::write(&path, TEXT).expect("a temporary file");
        let builder = Builder::from_variables(None, |name| match name {
            VARIABLE => Some(path.clone().into()),
            _ => Some(domain.into()),
        });
        fs::remove_file(&path).expect("the file exists");
        let network = Network::new(1);
        let builder = builder?.memory(&network, [10, 0, 0, 1]);
        Ok(builder.build().expect("a participant"))
    }

    #[test]
    fn the_environment_names_the_description_and_may_replace_its_domain() {
        for (text, domain) in [("", 3), ("5", 5)] {
            let participant = built(text).expect("described");
            assert_eq!(participant.core().state.borrow().protocol.domain(), domain);
            let qos = participant.described_qos("Brake").expect("described");
            assert!(!qos.is_reliable());
        }
        let error = built("many").err().expect("no domain").to_string();
        assert!(
            error.contains("ISOLANE_DOMAIN is \"many\": a domain is a number from 0 to 232"),
            "{error}"
        );
    }
}
