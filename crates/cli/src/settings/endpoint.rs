//! Settings of `pub` and `sub`: one writer or reader of a topic.

use std::num::NonZeroU32;
use std::time::Duration;

use isolane_model::{
    Durability, History, Reliability, Source, Sourced, System, Topic, check_topic_name,
};
use isolane_wire::level::Level;

use crate::arguments::{EndpointArguments, PublishArguments, SubscribeArguments};
use crate::failure::Failure;
use crate::limits::{MAX_COLOR_BYTES, READER_HISTORY};
use crate::values::{Destination, Peer, ReceiveBudget, Representation, SampleType};

use super::{
    DescribedAs, LaneSettings, NetworkSettings, hostname, list_or_default, or_default, seconds,
};

/// Default period of a publisher, as in shapes demonstrations.
const DEFAULT_PERIOD: Duration = Duration::from_millis(33);

#[derive(Debug)]
pub(crate) struct PublishSettings {
    pub(crate) endpoint: EndpointSettings,
    pub(crate) color: Sourced<String>,
    pub(crate) size: Sourced<i32>,
    pub(crate) period: Sourced<Duration>,
    /// Samples to write; `None`: until stopped.
    pub(crate) count: Sourced<Option<u64>>,
    pub(crate) at_end: Sourced<AtEnd>,
}

#[derive(Debug)]
pub(crate) struct SubscribeSettings {
    pub(crate) endpoint: EndpointSettings,
    /// Receive budget of the topic; `None`: unlimited.
    pub(crate) budget: Sourced<Option<ReceiveBudget>>,
    /// Samples to receive; `None`: until stopped.
    pub(crate) count: Sourced<Option<u64>>,
    pub(crate) json: Option<Destination>,
}

#[derive(Debug)]
pub(crate) struct EndpointSettings {
    pub(crate) network: NetworkSettings,
    pub(crate) lane: LaneSettings,
    /// Described participant to run as.
    pub(crate) described: Option<DescribedAs>,
    pub(crate) topic: String,
    pub(crate) sample_type: Sourced<SampleType>,
    pub(crate) reliability: Sourced<Reliability>,
    pub(crate) durability: Sourced<Durability>,
    pub(crate) history: Sourced<History>,
    /// Samples to reserve, never less than the history keeps.
    pub(crate) max_samples: Sourced<NonZeroU32>,
    /// Maximum serialised sample size in bytes, without the encapsulation header; `None`: the library's default for the
    /// type.
    pub(crate) max_bytes: Sourced<Option<u32>>,
    pub(crate) level: Sourced<Level>,
    /// Response deadline: maximum time from a sample's arrival to the end of its callback, or until it is taken.
    pub(crate) deadline: Sourced<Option<Duration>>,
    /// QoS DEADLINE: maximum time between two samples.
    pub(crate) separation_max: Option<Duration>,
    pub(crate) peers: Sourced<Vec<Peer>>,
    pub(crate) representation: Sourced<Representation>,
    /// Run time; `None`: until stopped.
    pub(crate) run_for: Sourced<Option<Duration>>,
}

/// Action on the publisher's instance at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// None; deleting the writer unregisters the instance.
    Leave,
    Dispose,
    Unregister,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Writer,
    Reader,
}

/// Arguments with different meanings for writers and readers.
struct OwnArguments {
    kind: Kind,
    reliability: Option<Sourced<Reliability>>,
    history: Option<History>,
    /// Period of a writer from the command line, which overrides the description's.
    period: Option<Duration>,
}

impl PublishSettings {
    pub(super) fn new(
        network: NetworkSettings,
        arguments: PublishArguments,
        system: Option<&System>,
    ) -> Result<Self, Failure> {
        let described = system.and_then(|system| system.topic(&arguments.endpoint.topic));
        let described_period = described.and_then(|topic| {
            topic
                .period
                .value
                .map(|period| Sourced::new(period, topic.period.source.clone()))
        });
        let color = or_default(arguments.color, "--color", String::from("BLUE"));
        if color.value.len() > MAX_COLOR_BYTES || color.value.contains('\0') {
            return Err(Failure::wrong_usage(
                "this --color cannot be sent",
                format!("ShapeType's color holds {MAX_COLOR_BYTES} bytes and no NUL"),
            ));
        }
        Ok(Self {
            color,
            size: or_default(arguments.size, "--size", 20),
            period: layered(
                arguments.period,
                "--period",
                described_period.as_ref(),
                Sourced::default_value(DEFAULT_PERIOD),
            ),
            count: or_default(arguments.count.map(Some), "--count", None),
            at_end: match (arguments.dispose_at_end, arguments.unregister_at_end) {
                (true, _) => or_default(Some(AtEnd::Dispose), "--dispose-at-end", AtEnd::Leave),
                (_, true) => {
                    or_default(Some(AtEnd::Unregister), "--unregister-at-end", AtEnd::Leave)
                }
                (false, false) => Sourced::default_value(AtEnd::Leave),
            },
            endpoint: EndpointSettings::new(
                network,
                arguments.endpoint,
                OwnArguments {
                    kind: Kind::Writer,
                    reliability: reliability(arguments.reliable, arguments.best_effort),
                    history: arguments.history,
                    period: arguments.period,
                },
                system,
            )?,
        })
    }
}

impl SubscribeSettings {
    pub(super) fn new(
        network: NetworkSettings,
        arguments: SubscribeArguments,
        system: Option<&System>,
    ) -> Result<Self, Failure> {
        let described = system.and_then(|system| system.topic(&arguments.endpoint.topic));
        Ok(Self {
            count: or_default(arguments.count.map(Some), "--count", None),
            budget: layered(
                arguments.budget.map(Some),
                "--budget",
                described.and_then(described_budget).as_ref(),
                Sourced::default_value(None),
            ),
            endpoint: EndpointSettings::new(
                network,
                arguments.endpoint,
                OwnArguments {
                    kind: Kind::Reader,
                    reliability: reliability(arguments.reliable, arguments.best_effort),
                    history: arguments.history,
                    period: None,
                },
                system,
            )?,
            json: arguments.json,
        })
    }
}

impl EndpointSettings {
    fn new(
        mut network: NetworkSettings,
        arguments: EndpointArguments,
        own: OwnArguments,
        system: Option<&System>,
    ) -> Result<Self, Failure> {
        let described = system.and_then(|system| system.topic(&arguments.topic));
        let described_as = DescribedAs::new(arguments.participant, system, &network.domain)?;
        let mut of_lane = arguments.lane;
        if of_lane.host.is_none() {
            of_lane.host = described_as.as_ref().and_then(DescribedAs::host);
        }
        let lane = LaneSettings::new(of_lane, &mut network, system, &hostname())?;
        if let Err(reason) = check_topic_name(&arguments.topic) {
            return Err(Failure::wrong_usage(
                format!(
                    "\"{}\" cannot be the name of a topic",
                    arguments.topic.escape_debug()
                ),
                reason.to_string(),
            ));
        }
        let sample_type = or_default(arguments.sample_type, "--type", SampleType::Shape);
        check_described_type(sample_type.value, described)?;
        let durability = layered(
            arguments.durability,
            "--durability",
            described.map(|topic| &topic.durability),
            Sourced::default_value(Durability::default()),
        );
        let reliability = own.reliability.unwrap_or_else(|| {
            described.map_or_else(
                || default_reliability(own.kind, durability.value),
                |topic| topic.reliability.clone(),
            )
        });
        let history_given = own.history.is_some();
        let history = layered(
            own.history,
            "--history",
            described.map(|topic| &topic.history),
            default_history(own.kind),
        );
        // The description's number belongs to the description's history.
        let max_samples = match described {
            Some(topic) if !history_given => topic.max_samples.clone(),
            _ => history.value.default_max_samples(true),
        };
        Ok(Self {
            network,
            lane,
            described: described_as,
            topic: arguments.topic,
            sample_type,
            reliability,
            durability,
            history,
            max_samples,
            max_bytes: match (arguments.max_bytes, described) {
                (Some(bytes), _) => from_option(Some(bytes), "--max-bytes"),
                (None, Some(Topic { max_bytes, .. })) => {
                    Sourced::new(Some(max_bytes.value.get()), max_bytes.source.clone())
                }
                (None, None) => Sourced::default_value(None),
            },
            level: layered(
                arguments.level,
                "--level",
                described.map(|topic| &topic.level),
                Sourced::default_value(Level::MIN),
            ),
            deadline: described
                .map_or(Sourced::default_value(None), |topic| topic.deadline.clone()),
            separation_max: described.and_then(|topic| {
                let (period, deadline) =
                    (own.period.or(topic.period.value)?, topic.deadline.value?);
                // One sample may be early by the whole deadline, and the next late by it.
                Some(period + deadline)
            }),
            peers: list_or_default(arguments.peer, "--peer", &[]),
            representation: or_default(
                arguments.representation,
                "--representation",
                Representation::Xcdr1,
            ),
            run_for: or_default(
                arguments.seconds.map(|n| Some(seconds(n))),
                "--seconds",
                None,
            ),
        })
    }
}

fn described_budget(topic: &Topic) -> Option<Sourced<Option<ReceiveBudget>>> {
    let budget = topic.budget.as_ref()?;
    let received = ReceiveBudget {
        capacity: budget.capacity.value,
        period: budget.period.value,
        over: budget.over.value,
    };
    Some(Sourced::new(Some(received), budget.capacity.source.clone()))
}

/// Default reliability (DDS 1.4 §2.2.3.14): a reliable writer and a best-effort reader match any other side. A
/// transient-local reader is reliable, because only a reliable match delivers history.
fn default_reliability(kind: Kind, durability: Durability) -> Sourced<Reliability> {
    match (kind, durability) {
        (Kind::Writer, _) => Sourced::new(Reliability::Reliable, Source::DefaultFor("writers")),
        (Kind::Reader, Durability::TransientLocal) => Sourced::new(
            Reliability::Reliable,
            Source::DefaultFor("transient-local readers"),
        ),
        (Kind::Reader, Durability::Volatile) => {
            Sourced::new(Reliability::BestEffort, Source::DefaultFor("readers"))
        }
    }
}

/// Default history: the standard's for a writer; for a printing reader, enough for a burst.
fn default_history(kind: Kind) -> Sourced<History> {
    match kind {
        Kind::Writer => Sourced::default_value(History::default()),
        Kind::Reader => Sourced::new(
            History::KeepLast(READER_HISTORY),
            Source::DefaultFor("readers"),
        ),
    }
}

fn reliability(reliable: bool, best_effort: bool) -> Option<Sourced<Reliability>> {
    match (reliable, best_effort) {
        (true, _) => Some(from_option(Reliability::Reliable, "--reliable")),
        (_, true) => Some(from_option(Reliability::BestEffort, "--best-effort")),
        (false, false) => None,
    }
}

fn check_described_type(sample_type: SampleType, described: Option<&Topic>) -> Result<(), Failure> {
    match described {
        Some(topic) if topic.type_name.value != sample_type.announced_name() => {
            Err(Failure::wrong_usage(
                format!(
                    "topic {} has the type {}",
                    topic.name.value, topic.type_name.value
                ),
                format!(
                    "{} says so; `pub` and `sub` speak {}",
                    topic.type_name.source,
                    sample_type.announced_name()
                ),
            ))
        }
        _ => Ok(()),
    }
}

fn from_option<T>(value: T, option: &'static str) -> Sourced<T> {
    Sourced::new(value, Source::CommandLine(option))
}

/// Value of the command line, else of the description, else the default.
fn layered<T: Clone>(
    given: Option<T>,
    option: &'static str,
    described: Option<&Sourced<T>>,
    default: Sourced<T>,
) -> Sourced<T> {
    match (given, described) {
        (Some(value), _) => from_option(value, option),
        (None, Some(described)) => described.clone(),
        (None, None) => default,
    }
}
