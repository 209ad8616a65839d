//! Settings of a participant's datapath and discovery, from this machine's host entry and the command line.

use std::num::NonZeroU32;

use isolane::Interfaces;
use isolane_model::{
    DatapathChoice, DatapathSettings, Host, Source, Sourced, System, Waiting, Word, format_duration,
};

use crate::arguments::LaneArguments;
use crate::datapaths::{DatapathArgument, kinds};
use crate::failure::Failure;
use crate::limits::SAMPLE_MEMORY;
use crate::output::joined;
use crate::values::Peer;

use super::NetworkSettings;

#[derive(Clone, Debug)]
pub(crate) struct LaneSettings {
    /// This machine's host entry in the description, or defaults. Values of the command line replace both.
    pub(crate) host: Host,
    /// True if `host` comes from the description.
    pub(crate) is_described: bool,
    /// Addresses to which SPDP announcements are sent by unicast (`--peer`).
    pub(crate) peers: Vec<Peer>,
    /// Note to the user if the description has no entry of this machine.
    pub(crate) note: Option<String>,
}

impl LaneSettings {
    /// Combines the command line with this machine's host entry. The entry also supplies the interface, unless the
    /// command line names one.
    pub(super) fn new(
        arguments: LaneArguments,
        network: &mut NetworkSettings,
        system: Option<&System>,
        hostname: &str,
    ) -> Result<Self, Failure> {
        let described = host(arguments.host.as_deref(), system, hostname)?;
        if let Some(host) = described
            && network.interfaces.source == Source::Default
        {
            let interface = host.interface.clone();
            network.interfaces = interface.map(|name| Interfaces::Named(vec![name]));
        }
        let mut host = described.cloned().unwrap_or_else(undescribed);
        if let Some(argument) = &arguments.datapath {
            let source = Source::CommandLine("--datapath");
            host.choose_datapath(Sourced::new(argument.choice, source));
            set_options(&mut host.datapaths, argument);
        }
        if let Some(most) = arguments.max_participants {
            let source = Source::CommandLine("--max-participants");
            host.max_participants = Sourced::new(NonZeroU32::new(most), source);
        }
        check_options(&host)?;
        Ok(Self {
            host,
            is_described: described.is_some(),
            peers: arguments.peer,
            note: match described {
                Some(_) => None,
                None => system.and_then(no_host),
            },
        })
    }

    /// Calls `line` with the name, value and source of each setting.
    pub(super) fn describe(&self, mut line: impl FnMut(&str, String, &Source)) {
        let host = &self.host;
        let (name, source) = match self.is_described {
            true => (host.name.value.clone(), &Source::DefaultFor("this machine")),
            false => (String::from("none described"), &Source::Default),
        };
        line("host", name, source);
        let datapath = &host.datapath;
        line("datapath", datapath.value.word().into(), &datapath.source);
        if self.is_described {
            let said = host.core.value;
            let said = said.map_or(String::from("any"), |core| core.to_string());
            line("core", said, &host.core.source);
            let said = host.priority.value;
            let said = said.map_or(String::from("ordinary"), |priority| priority.to_string());
            line("priority", said, &host.priority.source);
            let locked = &host.lock_memory;
            line("lock_memory", locked.value.to_string(), &locked.source);
            let scheduling = &host.scheduling;
            line(
                "scheduling",
                scheduling.value.word().into(),
                &scheduling.source,
            );
        }
        let level = &host.discovery_level;
        let class = level.value.map(|level| level.get().to_string());
        let class = class.unwrap_or_else(|| String::from("the highest in use minus 1, at least 1"));
        line("discovery_level", class, &level.source);
        if let Some(port) = host.sample_ports.value {
            line("sample_ports", port.to_string(), &host.sample_ports.source);
        }
        if let Some(most) = host.max_participants.value {
            let source = &host.max_participants.source;
            line("max_participants", most.to_string(), source);
        }
        let memory = &host.sample_memory;
        line("sample_memory", memory.value.to_string(), &memory.source);
        let waiting = &host.waiting;
        line("waiting", waiting.value.word().into(), &waiting.source);
        for settings in host.chosen_datapaths() {
            for (spec, value) in settings.entries() {
                if let Some(set) = value.value {
                    let key = format!("{}.{}", settings.kind().name(), spec.key);
                    line(&key, set.to_string(), &value.source);
                }
            }
        }
        if let Some(topics) = &host.protect.topics {
            let said = format!(
                "{} in {}, {} reserved",
                topics.capacity.value,
                format_duration(topics.period.value),
                topics.reserved.value
            );
            line("protect.topics", said, &topics.capacity.source);
        }
        if let Some(others) = &host.protect.others {
            let period = format_duration(others.period.value);
            let said = format!("{} in {period}", others.capacity.value);
            line("protect.others", said, &others.capacity.source);
        }
    }
}

/// Host entry for a machine without one: kernel sockets, if this program has them, and memory for long histories.
fn undescribed() -> Host {
    let mut host = Host::new(kinds());
    if let Some(kind) = kinds().iter().find(|kind| kind.name() == "udp") {
        host.datapath.value = DatapathChoice::Named(kind.name());
    }
    host.sample_memory.value = NonZeroU32::new(SAMPLE_MEMORY).expect("a number");
    host
}

/// Sets the datapath options that the command line gives.
fn set_options(datapaths: &mut [DatapathSettings], argument: &DatapathArgument) {
    let mut datapaths = datapaths.iter_mut();
    let chosen = datapaths.find(|it| argument.choice == DatapathChoice::Named(it.kind().name()));
    let Some(chosen) = chosen else {
        return;
    };
    // Setting one option may unset another. In the order that the datapath kind lists them, no option of this call
    // unsets another option of this call.
    for spec in chosen.kind().options() {
        let mut given = argument.options.iter();
        if let Some((key, value)) = given.find(|(key, _)| *key == spec.key) {
            chosen.set(key, Sourced::new(*value, Source::CommandLine("--datapath")));
        }
    }
}

/// Refuses datapath options that contradict each other, or that have no effect because the event loop sleeps.
fn check_options(host: &Host) -> Result<(), Failure> {
    for settings in host.chosen_datapaths() {
        let (kind, options) = (settings.kind(), settings.options());
        let reason = match (kind.configure(&options), settings.needs_spin()) {
            (Err(error), _) => error.to_string(),
            (Ok(_), Some(key)) if host.waiting.value == Waiting::Sleep => {
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

/// Host entry with the name `wanted`. Without a name, the entry with this machine's name, else the only entry.
fn host<'a>(
    wanted: Option<&str>,
    system: Option<&'a System>,
    hostname: &str,
) -> Result<Option<&'a Host>, Failure> {
    let Some(system) = system else {
        return match wanted {
            Some(_) => Err(Failure::wrong_usage(
                "--host names a host of a description, but there is no description",
                "neither --config nor ISOLANE_CONFIG names a description",
            )
            .with_remedy("name a description with --config FILE")),
            None => Ok(None),
        };
    };
    let Some(wanted) = wanted else {
        return Ok(system.host_of_machine(hostname));
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

/// Note that the description has hosts, but none of them is this machine.
fn no_host(system: &System) -> Option<String> {
    names(system).next()?;
    Some(format!(
        "this machine is none of the description's hosts ({}): their interface, datapath and \
             protection are not used. --host NAME says which it is",
        joined(names(system), ", ")
    ))
}
