//! Complete and consistent configuration of a command, made once from arguments, environment and description.
//!
//! A value comes from the command line, else from the environment, else from the description, else from the default
//! here. Its source is recorded ([`Sourced`]), and `-v` prints all settings ([`Settings::describe`]).

mod describe;
mod described;
mod doctor;
mod endpoint;
mod lane;
mod list;
mod measure;
mod network;
mod spy;
#[cfg(test)]
mod tests;
mod top;
mod tune;
mod why;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolane_model::{Problem, Source, Sourced, System};

use crate::arguments::{Arguments, Bench, Command as Raw, CommonArguments, Tune};
use crate::datapaths::kinds;
use crate::failure::Failure;
use crate::values::Destination;

pub(crate) use self::described::DescribedAs;
pub(crate) use self::doctor::DoctorSettings;
pub(crate) use self::endpoint::{AtEnd, EndpointSettings, PublishSettings, SubscribeSettings};
pub(crate) use self::lane::LaneSettings;
pub(crate) use self::list::ListSettings;
pub(crate) use self::measure::{
    BenchRttSettings, BenchThroughputSettings, DemoSettings, RunSettings,
};
use self::network::network;
pub(crate) use self::network::{Interfaces, NetworkSettings};
pub(crate) use self::spy::{SpySettings, SpySource};
pub(crate) use self::top::TopSettings;
pub(crate) use self::tune::{
    AnswerSettings, LearnSettings, PlanSource, PortsSettings, TuneApplySettings,
    TuneExportSettings, TunePlan, TunePlanSettings, TuneSettings, TuneState, TuneVerifySettings,
};
pub(crate) use self::why::WhySettings;

/// Default description of `config`.
const USUAL_DESCRIPTION: &str = "isolane.toml";

/// Lookup of an environment variable; a parameter, so that tests need no environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Configuration of a call of `isolane`.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) command: Command,
    /// Verbosity. 0: results only; 1: settings too; 2: internals too.
    pub(crate) verbosity: u8,
    /// Probable mistakes in the description.
    pub(crate) warnings: Vec<Problem>,
    /// Notes on missing entries of the description.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum Command {
    Demo(DemoSettings),
    Publish(PublishSettings),
    Subscribe(SubscribeSettings),
    List(ListSettings),
    Why(WhySettings),
    Spy(SpySettings),
    Top(TopSettings),
    Doctor(DoctorSettings),
    Tune(TuneSettings),
    Completions(clap_complete::Shell),
    /// Destination of the JSON form, if any.
    Datapaths(Option<Destination>),
    /// Directory of the pages; `None`: print the page.
    Man(Option<PathBuf>),
    Config(ConfigSettings),
    BenchRtt(BenchRttSettings),
    BenchThroughput(BenchThroughputSettings),
    /// Role, as JSON.
    Child(String),
}

impl Command {
    pub(crate) fn json(&self) -> Option<&Destination> {
        match self {
            Self::Demo(demo) => demo.runs.json.as_ref(),
            Self::Subscribe(subscribe) => subscribe.json.as_ref(),
            Self::List(list) => list.json.as_ref(),
            Self::Why(why) => why.json.as_ref(),
            Self::Spy(spy) => spy.json.as_ref(),
            Self::Top(top) => top.json.as_ref(),
            Self::Datapaths(json) => json.as_ref(),
            Self::Doctor(doctor) => doctor.json.as_ref(),
            Self::Tune(tune) => tune.json(),
            Self::Config(ConfigSettings::System(_, json)) => json.as_ref(),
            Self::BenchRtt(rtt) => rtt.runs.json.as_ref(),
            Self::BenchThroughput(throughput) => throughput.runs.json.as_ref(),
            Self::Publish(_)
            | Self::Config(ConfigSettings::Example)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Child(_) => None,
        }
    }

    /// Datapath settings of its participant, if it has one.
    fn lane(&self) -> Option<&LaneSettings> {
        match self {
            Self::Publish(publish) => Some(&publish.endpoint.lane),
            Self::Subscribe(subscribe) => Some(&subscribe.endpoint.lane),
            Self::List(list) => Some(&list.lane),
            Self::Why(why) => Some(&why.lane),
            _ => None,
        }
    }

    /// File of the HTML page, if any.
    pub(crate) fn page(&self) -> Option<&Path> {
        match self {
            Self::Demo(demo) => demo.runs.page.as_deref(),
            Self::BenchRtt(rtt) => rtt.runs.page.as_deref(),
            _ => None,
        }
    }
}

/// Output of `config`.
#[derive(Debug)]
pub(crate) enum ConfigSettings {
    Example,
    /// Description, printed as such, or as JSON to the destination.
    System(Box<System>, Option<Destination>),
}

impl Settings {
    /// Creates the configuration.
    ///
    /// # Errors
    /// Problems of the arguments, the environment or the description.
    pub(crate) fn new(arguments: Arguments, environment: Environment<'_>) -> Result<Self, Failure> {
        let Arguments { common, command } = arguments;
        let verbosity = common.verbose;
        refuse_without_effect(&common, &command)?;
        let described_in = description(&common, &command, environment)?;
        let load = |path: &Sourced<PathBuf>| {
            System::load(&path.value, kinds()).map_err(Failure::Description)
        };
        let mut system = described_in.as_ref().map(load).transpose()?;
        let network = network(&common, system.as_ref(), environment)?;
        if let Some(system) = &mut system {
            system.set_domain(network.domain.clone());
        }
        let warnings = system
            .as_ref()
            .map_or_else(Vec::new, |system| system.warnings().to_vec());
        let described = system.as_ref();
        let mut notes: Vec<String> = described
            .and_then(|system| undescribed_topic(&command, system))
            .into_iter()
            .collect();
        let command = match command {
            Raw::Demo(demo) => Command::Demo(DemoSettings::new(demo)?),
            Raw::Publish(publish) => {
                Command::Publish(PublishSettings::new(network, publish, described)?)
            }
            Raw::Subscribe(subscribe) => {
                Command::Subscribe(SubscribeSettings::new(network, subscribe, described)?)
            }
            Raw::List(list) => Command::List(ListSettings::new(network, list, described)?),
            Raw::Why(why) => Command::Why(WhySettings::new(network, why, described)?),
            Raw::Top(top) => Command::Top(TopSettings::new(network, top)),
            Raw::Doctor(doctor) => Command::Doctor(DoctorSettings::new(
                network,
                doctor,
                system.zip(described_in),
            )?),
            Raw::Tune(raw) => Command::Tune(TuneSettings::new(
                raw.tune,
                network,
                system.zip(described_in),
            )?),
            Raw::Completions(completions) => Command::Completions(completions.shell),
            Raw::Datapaths(datapaths) => Command::Datapaths(datapaths.json),
            Raw::Man(man) => Command::Man(man.directory),
            Raw::Spy(spy) => Command::Spy(SpySettings::new(network, spy)?),
            // The description has been read unless the example is requested.
            Raw::Config(config) => Command::Config(match system {
                Some(system) => ConfigSettings::System(Box::new(system), config.json),
                None => ConfigSettings::Example,
            }),
            Raw::Child(child) => Command::Child(child.role),
            Raw::Bench(raw) => match raw.bench {
                Bench::Rtt(rtt) => Command::BenchRtt(BenchRttSettings::new(rtt)?),
                Bench::Throughput(throughput) => {
                    Command::BenchThroughput(BenchThroughputSettings::new(throughput)?)
                }
            },
        };
        notes.extend(command.lane().and_then(|lane| lane.note.clone()));
        Ok(Self {
            command,
            verbosity,
            warnings,
            notes,
        })
    }
}

/// Host name of this machine; empty if unknown.
fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| String::new(), |name| name.trim_end().to_owned())
}

/// Refuses a common option without effect on the command.
fn refuse_without_effect(common: &CommonArguments, command: &Raw) -> Result<(), Failure> {
    const HOSTS_OF_ITS_OWN: &str = "it measures between hosts of its own: there it has no effect";
    let given = [
        !common.interface.is_empty(),
        common.domain.is_some(),
        common.config.is_some(),
    ];
    let (name, why, refused) = match command {
        Raw::Config(_) => (
            "config",
            "each host of a description has an interface of its own",
            [!common.interface.is_empty(), false, false],
        ),
        Raw::Doctor(_) => (
            "doctor",
            "it looks at all interfaces, or at the one the description names for the host",
            [!common.interface.is_empty(), false, false],
        ),
        Raw::Tune(raw) => match &raw.tune {
            Tune::Plan(_) | Tune::Export(_) => (
                "tune",
                "it sets up the interface that the description names for the host, and no other",
                [!common.interface.is_empty(), false, false],
            ),
            Tune::Verify(_) | Tune::Learn(_) | Tune::Answer(_) => return Ok(()),
            Tune::Ports(_) => (
                "tune",
                "ports and queues are the machine's, whatever uses them",
                [false, common.domain.is_some(), common.config.is_some()],
            ),
            Tune::Apply(_) | Tune::Status(_) | Tune::Rollback(_) => {
                ("tune", "all it needs is in its plan", given)
            }
        },
        Raw::Top(_) => (
            "top",
            "it looks at processes of this host, which have told it all they use",
            [!common.interface.is_empty(), false, common.config.is_some()],
        ),
        Raw::Demo(_) => ("demo", HOSTS_OF_ITS_OWN, given),
        Raw::Bench(_) => ("bench", HOSTS_OF_ITS_OWN, given),
        Raw::Completions(_) => ("completions", "it touches no network", given),
        Raw::Datapaths(_) => ("datapaths", "it touches no network", given),
        Raw::Man(_) => ("man", "it touches no network", given),
        _ => return Ok(()),
    };
    let options = ["--interface", "--domain", "--config"];
    match options
        .into_iter()
        .zip(refused)
        .find(|(_, refused)| *refused)
    {
        Some((option, _)) => Err(Failure::wrong_usage(
            format!("`{name}` takes no {option}"),
            why,
        )),
        None => Ok(()),
    }
}

/// Note on a topic missing in the description. It is allowed, for experiments in a described system, but may be a
/// misspelling.
fn undescribed_topic(command: &Raw, system: &System) -> Option<String> {
    let topic = match command {
        Raw::Publish(publish) => &publish.endpoint.topic,
        Raw::Subscribe(subscribe) => &subscribe.endpoint.topic,
        _ => return None,
    };
    let names: Vec<&str> = system
        .topics()
        .iter()
        .map(|topic| topic.name.value.as_str())
        .collect();
    let topic_said = topic.escape_debug();
    match names.as_slice() {
        [] => Some(format!(
            "the description has no topics: defaults apply to {topic_said}"
        )),
        known if known.contains(&topic.as_str()) => None,
        known => Some(format!(
            "the description has no topic {topic_said}, only {}: defaults apply",
            known.join(", ")
        )),
    }
}

/// Path of the description to read, if any.
fn description(
    common: &CommonArguments,
    command: &Raw,
    environment: Environment<'_>,
) -> Result<Option<Sourced<PathBuf>>, Failure> {
    let usual = match command {
        Raw::Config(config) if config.example => return Ok(None),
        // These commands use no description.
        Raw::Child(_) | Raw::Demo(_) | Raw::Bench(_) => return Ok(None),
        Raw::Completions(_) | Raw::Datapaths(_) | Raw::Man(_) | Raw::Top(_) => return Ok(None),
        Raw::Config(_) => Some(PathBuf::from(USUAL_DESCRIPTION)),
        // The description is optional here.
        Raw::Doctor(_) | Raw::Tune(_) => {
            Some(PathBuf::from(USUAL_DESCRIPTION)).filter(|path| path.exists())
        }
        _ => None,
    };
    let from_environment = || environment("ISOLANE_CONFIG").filter(|path| !path.is_empty());
    let named = match &common.config {
        Some(path) => Some(Sourced::new(path.clone(), Source::CommandLine("--config"))),
        None => from_environment()
            .map(|path| Sourced::new(path.into(), Source::Environment("ISOLANE_CONFIG"))),
    };
    match (named, usual) {
        (None, Some(usual)) if !usual.exists() => Err(Failure::wrong_usage(
            format!("cannot read {}", usual.display()),
            "there is no such file here",
        )
        .with_remedy("name a description with --config FILE, or begin with the example:\n\n    isolane config --example > isolane.toml\n")),
        (named, usual) => Ok(named.or(usual.map(Sourced::default_value))),
    }
}

/// Value of the command line, or the default.
fn or_default<T>(given: Option<T>, option: &'static str, default: T) -> Sourced<T> {
    match given {
        Some(value) => Sourced::new(value, Source::CommandLine(option)),
        None => Sourced::default_value(default),
    }
}

/// Values of a repeatable option, or the default.
fn list_or_default<T: Clone>(
    given: Vec<T>,
    option: &'static str,
    default: &[T],
) -> Sourced<Vec<T>> {
    or_default(
        Some(given).filter(|given| !given.is_empty()),
        option,
        default.to_vec(),
    )
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(u64::from(number))
}
