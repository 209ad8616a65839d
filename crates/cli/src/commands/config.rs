//! `isolane config`: prints the complete description with the source of each value, or an example.

use std::num::NonZeroU32;

use clap::Args;
use isolane_datapath::kind::{OptionSpec, OptionValue};
use isolane_model::{
    Budget, DatapathSettings, Host, Participant, Source, Sourced, System, Topic, Tuning, Word,
};
use isolane_wire::level::Level;
use serde_json::{Value, json};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output;
use crate::settings::Settings;
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// Print a commented example instead of the description
    #[arg(long)]
    pub(crate) example: bool,
    /// Write the description as JSON to this file, instead of text; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "example")]
    json: Option<Destination>,
}

impl Config {
    /// Prints the description, or the example.
    pub(super) fn run(&self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        // `Settings` has read a description, unless `--example` is given.
        match (&settings.system, &self.json) {
            (None, _) => output::print(isolane_model::example()),
            (Some(system), None) => output::print(&system.to_toml_with_sources()),
            (Some(system), Some(json)) => output::print_json(&of_system(system), json),
        }
    }
}

/// JSON form of the description (`--json`): every value with its source, and times in microseconds.
fn of_system(system: &System) -> Value {
    json!({
        "schema": "isolane/config/3",
        "domain": sourced(system.domain(), |domain| domain.get().into()),
        "tune": of_tuning(system.tuning()),
        "hosts": system.hosts().iter().map(of_host).collect::<Vec<_>>(),
        "topics": system.topics().iter().map(of_topic).collect::<Vec<_>>(),
        "participants": system.participants().iter().map(of_participant).collect::<Vec<_>>(),
    })
}

fn of_host(host: &Host) -> Value {
    let mut host_json = json!({
        "name": sourced(&host.name, |name| name.as_str().into()),
        "interface": sourced(&host.interface, |interface| interface.as_str().into()),
        "core": sourced(&host.core, |core| (*core).into()),
        "priority": sourced(&host.priority, |priority| match priority {
            Some(priority) => (*priority).into(),
            None => "ordinary".into(),
        }),
        "lock_memory": sourced(&host.lock_memory, |lock| (*lock).into()),
        "scheduling": sourced(&host.scheduling, |scheduling| scheduling.word().into()),
        "max_participants": sourced(&host.max_participants, |most| most.map(NonZeroU32::get).into()),
        "fixed_memory": sourced(&host.fixed_memory, |is_fixed| (*is_fixed).into()),
        "sample_memory": sourced(&host.sample_memory, |bytes| bytes.get().into()),
        "datapath": sourced(&host.datapath, |datapath| datapath.word().into()),
        "waiting": sourced(&host.waiting, |waiting| waiting.word().into()),
        "discovery_level": sourced(&host.discovery_level, |level| level.map(Level::get).into()),
        "sample_ports": sourced(&host.sample_ports, |port| (*port).into()),
        "protect": {
            "topics": host.protect.topics.as_ref().map(|budget| json!({
                "capacity": sourced(&budget.capacity, |capacity| capacity.get().into()),
                "period_us": sourced(&budget.period, |period| microseconds(*period).into()),
                "reserved": sourced(&budget.reserved, |reserved| (*reserved).into()),
            })),
            "others": host.protect.others.as_ref().map(|budget| json!({
                "capacity": sourced(&budget.capacity, |capacity| capacity.get().into()),
                "period_us": sourced(&budget.period, |period| microseconds(*period).into()),
            })),
        },
    });
    for settings in host
        .datapaths
        .iter()
        .filter(|it| it.entries().next().is_some())
    {
        host_json[settings.kind().name()] = of_datapath(settings);
    }
    host_json
}

/// Tuning switches by name. Text that is valid JSON becomes a JSON value; other text becomes a string.
fn of_tuning(tuning: &Tuning) -> Value {
    let switch = |(key, written, source): (&str, String, &Source)| {
        let value = serde_json::from_str(&written).unwrap_or(Value::String(written));
        let switch = json!({ "value": value, "source": source.to_string() });
        (key.to_owned(), switch)
    };
    Value::Object(tuning.entries().into_iter().map(switch).collect())
}

/// Options of a datapath by key. A set of levels is a list. Numbers for levels are an object with the level as key.
fn of_datapath(settings: &DatapathSettings) -> Value {
    let option = |(spec, value): (&OptionSpec, &Sourced<Option<OptionValue>>)| {
        let value = sourced(value, |value| value.map_or(Value::Null, option_value));
        (spec.key.to_owned(), value)
    };
    Value::Object(settings.entries().map(option).collect())
}

fn option_value(value: OptionValue) -> Value {
    match value {
        OptionValue::Bool(value) => value.into(),
        OptionValue::Integer(number) => number.into(),
        OptionValue::Word(word) => word.into(),
        OptionValue::Levels(levels) => (0..8).filter(|level| levels >> level & 1 == 1).collect(),
        OptionValue::PerLevel(numbers) => {
            let all = numbers.iter().enumerate();
            let set =
                all.filter_map(|(level, number)| Some((level.to_string(), (*number)?.into())));
            Value::Object(set.collect())
        }
    }
}

fn of_topic(topic: &Topic) -> Value {
    json!({
        "name": sourced(&topic.name, |name| name.as_str().into()),
        "type": sourced(&topic.type_name, |name| name.as_str().into()),
        "keyed": sourced(&topic.keyed, |keyed| (*keyed).into()),
        "level": sourced(&topic.level, |level| level.get().into()),
        "period_us": sourced(&topic.period, |period| period.map(microseconds).into()),
        "deadline_us": sourced(&topic.deadline, |deadline| deadline.map(microseconds).into()),
        "max_bytes": sourced(&topic.max_bytes, |bytes| bytes.get().into()),
        "reliability": sourced(&topic.reliability, |reliability| reliability.word().into()),
        "durability": sourced(&topic.durability, |durability| durability.word().into()),
        "history": sourced(&topic.history, |history| history.to_string().into()),
        "max_samples": sourced(&topic.max_samples, |samples| samples.get().into()),
        "from": sourced(&topic.from, |hosts| hosts.as_slice().into()),
        "to": sourced(&topic.to, |hosts| hosts.as_slice().into()),
        "budget": topic.budget.as_ref().map(of_budget),
    })
}

fn of_participant(participant: &Participant) -> Value {
    json!({
        "name": sourced(&participant.name, |name| name.as_str().into()),
        "host": sourced(&participant.host, |host| host.as_str().into()),
        "address": sourced(&participant.address, |address| address.to_string().into()),
        "port": sourced(&participant.port, |port| (*port).into()),
        "announces": sourced(&participant.announces, |announces| announces.word().into()),
        "writes": sourced(&participant.writes, |topics| topics.as_slice().into()),
        "reads": sourced(&participant.reads, |topics| topics.as_slice().into()),
    })
}

fn of_budget(budget: &Budget) -> Value {
    json!({
        "capacity": sourced(&budget.capacity, |capacity| capacity.get().into()),
        "period_us": sourced(&budget.period, |period| microseconds(*period).into()),
        "over": sourced(&budget.over, |over| over.word().into()),
    })
}

fn sourced<T>(setting: &Sourced<T>, value: impl Fn(&T) -> Value) -> Value {
    let source: &Source = &setting.source;
    json!({ "value": value(&setting.value), "source": source.to_string() })
}

fn microseconds(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
