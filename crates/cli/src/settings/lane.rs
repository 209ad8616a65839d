//! Settings of the datapath: this machine's host entry in the description, xdp lanes, and the common protection of
//! receivers.

use std::num::NonZeroU32;

use isolane::Interfaces;
use isolane_model::{
    DatapathChoice, DatapathSettings, Host, HostProtection, Source, Sourced, System, Waiting, Word,
    format_duration,
};
use isolane_wire::level::Level;

use crate::arguments::LaneArguments;
use crate::datapaths::{DatapathArgument, kinds};
use crate::failure::Failure;
use crate::limits::SAMPLE_MEMORY;
use crate::output::joined;
use crate::values::Peer;

use super::{NetworkSettings, or_default};

#[derive(Clone, Debug)]
pub(crate) struct LaneSettings {
    /// Host entry of this machine in the description.
    pub(crate) host: Option<String>,
    pub(crate) datapath: Sourced<DatapathChoice>,
    /// Behaviour of the loop when no job is ready.
    pub(crate) waiting: Sourced<Waiting>,
    /// Options of the kinds that have some.
    pub(crate) datapaths: Vec<DatapathSettings>,
    /// Host entry with core, priority and memory locking of the loop's thread.
    pub(crate) placement: Option<Host>,
    /// Level of discovery datagrams; `None`: the library's default.
    pub(crate) discovery_level: Sourced<Option<Level>>,
    pub(crate) protect: HostProtection,
    /// Limit of known participants; `None`: the command's default.
    pub(crate) max_participants: Sourced<Option<u32>>,
    pub(crate) fixed_memory: bool,
    /// Sample memory in bytes.
    pub(crate) sample_memory: Sourced<NonZeroU32>,
    /// Unicast discovery addresses.
    pub(crate) peers: Vec<Peer>,
    /// Note that this machine is not in the description.
    pub(crate) note: Option<String>,
}

impl LaneSettings {
    /// Combines the command line with this machine's host entry, which also supplies the interface unless the command
    /// line names one.
    pub(super) fn new(
        arguments: LaneArguments,
        network: &mut NetworkSettings,
        system: Option<&System>,
        hostname: &str,
    ) -> Result<Self, Failure> {
        let host = host(arguments.host.as_deref(), system, hostname)?;
        if let Some(host) = host
            && network.interfaces.source == Source::Default
        {
            let interface = host.interface.clone();
            network.interfaces = interface.map(|name| Interfaces::Named(vec![name]));
        }
        let defaults = || kinds().iter().filter(|kind| !kind.options().is_empty());
        let mut datapaths = host.map_or_else(
            || {
                defaults()
                    .map(|kind| DatapathSettings::new(*kind))
                    .collect()
            },
            |host| host.datapaths.clone(),
        );
        if let Some(argument) = &arguments.datapath {
            set_options(&mut datapaths, argument);
        }
        let datapath = match (&arguments.datapath, host) {
            (Some(argument), _) => Sourced::new(argument.choice, Source::CommandLine("--datapath")),
            (None, Some(host)) => host.datapath.clone(),
            (None, None) => Sourced::default_value(default_choice()),
        };
        let waiting = host.map_or(Sourced::default_value(Waiting::Sleep), |host| {
            host.waiting.clone()
        });
        check_options(&datapaths, datapath.value, waiting.value)?;
        Ok(Self {
            datapath,
            waiting,
            datapaths,
            placement: host.cloned(),
            discovery_level: host.map_or(Sourced::default_value(None), |host| {
                host.discovery_level.clone()
            }),
            protect: host.map(|host| host.protect.clone()).unwrap_or_default(),
            max_participants: match (arguments.max_participants, host) {
                (Some(most), _) => or_default(Some(Some(most)), "--max-participants", None),
                (None, Some(host)) => {
                    let most = host.max_participants.clone();
                    most.map(|most| most.map(NonZeroU32::get))
                }
                (None, None) => Sourced::default_value(None),
            },
            fixed_memory: host.is_some_and(|host| host.fixed_memory.value),
            sample_memory: host.map_or_else(
                || Sourced::default_value(NonZeroU32::new(SAMPLE_MEMORY).expect("a number")),
                |host| host.sample_memory.clone(),
            ),
            host: host.map(|host| host.name.value.clone()),
            peers: arguments.peer,
            note: match host {
                Some(_) => None,
                None => system.and_then(no_host),
            },
        })
    }

    /// Reports the settings with their sources.
    pub(super) fn describe(&self, mut line: impl FnMut(&str, String, &Source)) {
        let (host, source) = match &self.host {
            Some(host) => (host.clone(), &Source::DefaultFor("this machine")),
            None => (String::from("none described"), &Source::Default),
        };
        line("host", host, source);
        let datapath = &self.datapath;
        line("datapath", datapath.value.word().into(), &datapath.source);
        if let Some(placement) = &self.placement {
            let Host {
                core,
                priority,
                lock_memory,
                scheduling,
                ..
            } = placement;
            let said = core
                .value
                .map_or(String::from("any"), |core| core.to_string());
            line("core", said, &core.source);
            let said = priority.value;
            let said = said.map_or(String::from("ordinary"), |priority| priority.to_string());
            line("priority", said, &priority.source);
            line(
                "lock_memory",
                lock_memory.value.to_string(),
                &lock_memory.source,
            );
            line(
                "scheduling",
                scheduling.value.word().into(),
                &scheduling.source,
            );
        }
        let level = &self.discovery_level;
        let class = level.value.map(|level| level.get().to_string());
        let class = class.unwrap_or_else(|| String::from("the highest in use minus 1, at least 1"));
        line("discovery_level", class, &level.source);
        if let Some(most) = self.max_participants.value {
            let source = &self.max_participants.source;
            line("max_participants", most.to_string(), source);
        }
        let memory = &self.sample_memory;
        line("sample_memory", memory.value.to_string(), &memory.source);
        let waiting = &self.waiting;
        line("waiting", waiting.value.word().into(), &waiting.source);
        for settings in &self.datapaths {
            let name = settings.kind().name();
            let is_chosen = matches!(datapath.value, DatapathChoice::Auto)
                || datapath.value == DatapathChoice::Named(name);
            for (spec, value) in settings.entries().filter(|_| is_chosen) {
                if let Some(set) = value.value {
                    let key = format!("{name}.{}", spec.key);
                    line(&key, set.to_string(), &value.source);
                }
            }
        }
        if let Some(topics) = &self.protect.topics {
            let said = format!(
                "{} in {}, {} reserved",
                topics.capacity.value,
                format_duration(topics.period.value),
                topics.reserved.value
            );
            line("protect.topics", said, &topics.capacity.source);
        }
        if let Some(others) = &self.protect.others {
            let period = format_duration(others.period.value);
            let said = format!("{} in {period}", others.capacity.value);
            line("protect.others", said, &others.capacity.source);
        }
    }
}

/// Datapath without a description: kernel sockets, if this program has them.
fn default_choice() -> DatapathChoice {
    match kinds().iter().find(|kind| kind.name() == "udp") {
        Some(kind) => DatapathChoice::Named(kind.name()),
        None => DatapathChoice::Auto,
    }
}

/// Sets the options of the command line.
fn set_options(datapaths: &mut [DatapathSettings], argument: &DatapathArgument) {
    let mut datapaths = datapaths.iter_mut();
    let chosen = datapaths.find(|it| argument.choice == DatapathChoice::Named(it.kind().name()));
    let Some(chosen) = chosen else {
        return;
    };
    // In the order of the kind, so that an option that overrides another one does not unset its value of this call.
    for spec in chosen.kind().options() {
        let mut given = argument.options.iter();
        if let Some((key, value)) = given.find(|(key, _)| *key == spec.key) {
            chosen.set(key, Sourced::new(*value, Source::CommandLine("--datapath")));
        }
    }
}

/// Refuses options of the chosen datapaths that contradict each other or the loop.
fn check_options(
    datapaths: &[DatapathSettings],
    choice: DatapathChoice,
    waiting: Waiting,
) -> Result<(), Failure> {
    let is_chosen = |name| choice == DatapathChoice::Auto || choice == DatapathChoice::Named(name);
    for kind in kinds().iter().filter(|kind| is_chosen(kind.name())) {
        let settings = datapaths.iter().find(|it| it.kind().name() == kind.name());
        let options = settings.map(DatapathSettings::options).unwrap_or_default();
        let needs_spin = settings.and_then(DatapathSettings::needs_spin);
        let reason = match (kind.configure(&options), needs_spin) {
            (Err(error), _) => error.to_string(),
            (Ok(_), Some(key)) if waiting == Waiting::Sleep => {
                format!(
                    "{key} has no effect while the loop sleeps; set waiting = \"spin\" in [host.NAME]"
                )
            }
            _ => continue,
        };
        let what = format!("the datapath {} cannot have these options", kind.name());
        return Err(Failure::wrong_usage(what, reason));
    }
    Ok(())
}

/// Host entry with the given name, else with this machine's name, else the only one.
fn host<'a>(
    wanted: Option<&str>,
    system: Option<&'a System>,
    hostname: &str,
) -> Result<Option<&'a Host>, Failure> {
    let Some(system) = system else {
        return match wanted {
            Some(_) => Err(Failure::wrong_usage(
                "--host names a host of a description, and there is none",
                "neither --config nor ISOLANE_CONFIG names one",
            )
            .with_remedy("name a description with --config FILE")),
            None => Ok(None),
        };
    };
    let Some(wanted) = wanted else {
        let only = match system.hosts() {
            [only] => Some(only),
            _ => None,
        };
        return Ok(system.host(hostname).or(only));
    };
    system.host(wanted).map(Some).ok_or_else(|| {
        Failure::wrong_usage(
            format!("the description has no host \"{}\"", wanted.escape_debug()),
            format!("its hosts are {}", joined(names(system), ", ")),
        )
        .with_remedy("name one of them: --host NAME")
    })
}

fn names(system: &System) -> impl Iterator<Item = &str> {
    let hosts = system.hosts().iter();
    hosts.map(|host| host.name.value.as_str())
}

/// Note for a description without an entry of this machine.
fn no_host(system: &System) -> Option<String> {
    names(system).next()?;
    Some(format!(
        "this machine is none of the description's hosts ({}): their interface, datapath and \
             protection are not used. --host NAME says which it is",
        joined(names(system), ", ")
    ))
}
