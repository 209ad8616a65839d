//! Common part of `isolane pub` and `isolane sub`: options of a writer or a reader. Their values come from the command
//! line, the description or the defaults.

mod match_report;
mod publish;
pub(super) mod shape;
mod subscribe;

use std::num::NonZeroU32;
use std::time::Duration;

use clap::Args;
use isolane::Qos;
use isolane::limits::UNBOUNDED_BYTES;
use isolane_model::limits::MAX_SAMPLE_BYTES;
use isolane_model::{
    Durability, History, Reliability, Source, Sourced, System, Topic, Word, check_topic_name,
    format_duration,
};
use isolane_wire::cdr::ENCAPSULATION_BYTES;
use isolane_wire::level::Level;

use self::match_report::Side;
pub(crate) use self::publish::Publish;
pub(crate) use self::subscribe::Subscribe;
#[cfg(test)]
pub(crate) use self::subscribe::SubscribeSettings;
use super::participant::DescribedAs;
use crate::arguments::LaneArguments;
use crate::failure::Failure;
use crate::limits::READER_HISTORY;
use crate::settings::{LaneSettings, NetworkSettings, Settings};
use crate::values::{Representation, level, seconds, word};

/// Announced type name of the topics of `pub` and `sub`.
const TYPE_NAME: &str = "ShapeType";

/// Maximum serialised size of their samples in bytes, without the encapsulation header, by default.
const DEFAULT_BYTES: u32 = (UNBOUNDED_BYTES - ENCAPSULATION_BYTES) as u32;

/// Options of a writer or a reader.
#[derive(Debug, Args)]
pub(crate) struct EndpointArguments {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// Set DURABILITY: volatile or transient-local [default: volatile]
    ///
    /// With transient-local, late joiners get the history. If the topic is described, the description has the defaults
    /// of this option and those below.
    #[arg(long, value_name = "WORD", value_parser = word::<Durability>())]
    durability: Option<Durability>,
    /// Set the level, 0 to 7; 7 is the most critical [default: 0]
    ///
    /// The level is announced as TRANSPORT_PRIORITY.
    #[arg(long, value_name = "0..7", value_parser = level)]
    level: Option<Level>,
    /// Limit a serialized sample to this many bytes [default: 65532]
    ///
    /// The limit is at most 16777212. It does not count the encapsulation header.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SAMPLE_BYTES)))]
    max_bytes: Option<u32>,
    /// Set RELIABILITY to reliable: lost samples are sent again
    ///
    /// This is the default of `pub`, and of `sub` with transient-local.
    #[arg(long, conflicts_with = "best_effort")]
    reliable: bool,
    /// Set RELIABILITY to best effort: each sample is sent once
    ///
    /// A best-effort writer does not match a reliable reader. This is the default of `sub`.
    #[arg(long)]
    best_effort: bool,
    /// Keep this many samples of each instance [default: pub 1, sub 64]
    ///
    /// 1 to 65536, or all.
    #[arg(long, value_name = "N|all")]
    history: Option<History>,
    /// Write samples as xcdr1 or xcdr2; no effect on sub
    ///
    /// Programs with any ShapeType accept xcdr1. xcdr2 is for programs that declare it appendable.
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Representation>(),
        default_value = "xcdr1"
    )]
    representation: Representation,
    /// Stop after this many seconds [default: no limit]
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Run as [participant.NAME] of the description, on its host
    ///
    /// Described peers match without discovery.
    #[arg(long, value_name = "NAME")]
    participant: Option<String>,
    #[command(flatten)]
    lane: LaneArguments,
}

/// Complete settings of a writer or a reader.
#[derive(Debug)]
pub(crate) struct EndpointSettings {
    pub(crate) network: NetworkSettings,
    pub(crate) lane: LaneSettings,
    /// Participant of the description as which the command runs; `None`: an undescribed participant.
    pub(crate) described: Option<DescribedAs>,
    pub(crate) topic: String,
    pub(crate) level: Level,
    pub(crate) qos: Qos,
    pub(crate) is_reliable: bool,
    pub(crate) is_volatile: bool,
    /// Run time; `None`: until the count is reached or a signal arrives.
    pub(crate) run_for: Option<Duration>,
}

impl EndpointArguments {
    /// Resolves the options with the topic of the description, if it has that topic. A writer's `--period` is `period`,
    /// which replaces the period of the description.
    fn resolve(
        self,
        side: Side,
        period: Option<Duration>,
        settings: &mut Settings,
    ) -> Result<EndpointSettings, Failure> {
        let is_writer = side == Side::Writer;
        let system = settings.system.clone();
        let domain = &settings.network.domain;
        let described_as = DescribedAs::new(self.participant, system.as_ref(), domain)?;
        let mut lane = self.lane;
        if lane.host.is_none() {
            lane.host = described_as.as_ref().and_then(DescribedAs::host);
        }
        let lane = settings.lane(lane)?;
        check_topic(&self.topic)?;
        if let Some(note) = system
            .as_ref()
            .and_then(|system| undescribed_topic(&self.topic, system))
        {
            settings.note(note);
        }
        let topic = system.as_ref().and_then(|system| system.topic(&self.topic));
        check_described_type(topic)?;
        let durability = settings.layered(
            "--durability",
            self.durability,
            topic.map(|topic| &topic.durability),
            Sourced::default_value(Durability::default()),
            |durability| durability.word().into(),
        );
        let (option, reliability) = match [self.reliable, self.best_effort] {
            [true, _] => ("--reliable", Some(Reliability::Reliable)),
            [_, true] => ("--best-effort", Some(Reliability::BestEffort)),
            [false, false] => ("--reliable", None),
        };
        let reliability = match (reliability, topic) {
            (Some(given), _) => Sourced::new(given, Source::CommandLine(option)),
            (None, Some(topic)) => topic.reliability.clone(),
            (None, None) => default_reliability(is_writer, durability),
        };
        let word = reliability.value.word();
        settings.set("reliability", word, &reliability.source);
        let has_own_history = self.history.is_some();
        let history = settings.layered(
            "--history",
            self.history,
            topic.map(|topic| &topic.history),
            default_history(is_writer),
            History::to_string,
        );
        let max_bytes = topic.map(|topic| topic.max_bytes.clone().map(|it| Some(it.get())));
        let max_bytes = settings.layered(
            "--max-bytes",
            self.max_bytes.map(Some),
            max_bytes.as_ref(),
            Sourced::default_value(None),
            |bytes| bytes.unwrap_or(DEFAULT_BYTES).to_string(),
        );
        // The description's `max_samples` applies only together with the description's history.
        let max_samples: Sourced<NonZeroU32> = match topic {
            Some(topic) if !has_own_history => topic.max_samples.clone(),
            _ => history.default_max_samples(true, max_bytes.unwrap_or(DEFAULT_BYTES)),
        };
        settings.set("max_samples", max_samples.value, &max_samples.source);
        let level = settings.layered(
            "--level",
            self.level,
            topic.map(|topic| &topic.level),
            Sourced::default_value(Level::MIN),
            |level| level.get().to_string(),
        );
        let deadline = topic.map(|topic| topic.deadline.clone());
        let deadline = deadline.unwrap_or(Sourced::default_value(None));
        let shown = deadline.value.map_or(String::from("none"), format_duration);
        settings.set("deadline", shown, &deadline.source);
        // `deadline` bounds the response time of a sample. If one sample arrives at once and the next one only at its
        // deadline, they are period + deadline apart. This sum is the period of the QoS policy DEADLINE.
        let period = period.or(topic.and_then(|topic| topic.period.value));
        let separation_max = period.zip(deadline.value).map(|(period, by)| period + by);
        let shown = separation_max.map_or(String::from("none"), format_duration);
        settings.set("qos_deadline", shown, &deadline.source);

        let mut qos = Qos::of_kinds(reliability.value, durability, history)
            .max_samples(u16::try_from(max_samples.value.get()).unwrap_or(u16::MAX))
            .level(level)
            .representation(match self.representation {
                Representation::Xcdr1 => isolane::Representation::Xcdr1,
                Representation::Xcdr2 => isolane::Representation::Xcdr2,
            });
        if let Some(bytes) = max_bytes {
            qos = qos.max_bytes(bytes as usize + ENCAPSULATION_BYTES);
        }
        if let Some(deadline) = deadline.value {
            qos = qos.response_deadline(deadline);
        }
        if let Some(period) = separation_max {
            qos = qos.deadline(period);
        }
        Ok(EndpointSettings {
            network: settings.network.clone(),
            lane,
            described: described_as,
            topic: self.topic,
            level,
            qos,
            is_reliable: reliability.value == Reliability::Reliable,
            is_volatile: durability == Durability::Volatile,
            run_for: self.seconds,
        })
    }
}

/// Checks that a topic can have this name.
pub(super) fn check_topic(topic: &str) -> Result<(), Failure> {
    check_topic_name(topic).map_err(|reason| {
        let what = format!("\"{}\" cannot be the name of a topic", topic.escape_debug());
        Failure::wrong_usage(what, reason.to_string())
    })
}

/// Note on a topic that the description does not contain. Such a topic is allowed, for experiments in a described
/// system, but its name may be misspelt.
fn undescribed_topic(topic: &str, system: &System) -> Option<String> {
    let names = system.topics().iter();
    let names: Vec<&str> = names.map(|topic| topic.name.value.as_str()).collect();
    let shown = topic.escape_debug();
    match names.as_slice() {
        [] => Some(format!(
            "the description has no topics: defaults apply to {shown}"
        )),
        known if known.contains(&topic) => None,
        known => Some(format!(
            "the description has no topic {shown}, only {}: defaults apply",
            known.join(", ")
        )),
    }
}

/// Default reliability (DDS 1.4 §2.2.3.14). A reliable writer matches any reader, and a best-effort reader any writer.
/// A transient-local reader is reliable, because only a reliable match delivers history.
fn default_reliability(is_writer: bool, durability: Durability) -> Sourced<Reliability> {
    let (reliability, endpoints) = match (is_writer, durability) {
        (true, _) => (Reliability::Reliable, "writers"),
        (false, Durability::TransientLocal) => (Reliability::Reliable, "transient-local readers"),
        (false, Durability::Volatile) => (Reliability::BestEffort, "readers"),
    };
    Sourced::new(reliability, Source::DefaultFor(endpoints))
}

/// Default history. A writer has the default of DDS. A reader keeps more, because it prints more slowly than a burst
/// arrives.
fn default_history(is_writer: bool) -> Sourced<History> {
    match is_writer {
        true => Sourced::default_value(History::default()),
        false => Sourced::new(
            History::KeepLast(READER_HISTORY),
            Source::DefaultFor("readers"),
        ),
    }
}

fn check_described_type(topic: Option<&Topic>) -> Result<(), Failure> {
    let Some(topic) = topic.filter(|topic| topic.type_name.value != TYPE_NAME) else {
        return Ok(());
    };
    let (name, type_name) = (&topic.name.value, &topic.type_name);
    Err(Failure::wrong_usage(
        format!("topic {name} has the type {}", type_name.value),
        format!(
            "{} gives it that type, but `pub` and `sub` use {TYPE_NAME}",
            type_name.source
        ),
    ))
}
