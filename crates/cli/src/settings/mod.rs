//! Settings of a call. Each value is taken from the first of these that has it: command line, environment, description,
//! default.
//!
//! clap parses the options and has most defaults. This module adds the environment and the description
//! ([`Settings::layered`]). It records every value with its source; `-v` prints them ([`Settings::describe`]).

mod lane;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};

use isolane::Interfaces;
use isolane_model::{Domain, Source, Sourced, System, is_interface_name};
use isolane_tune::{Needs, hostname};

use crate::arguments::{Call, Command, CommonArguments, LaneArguments, refused};
use crate::datapaths::kinds;
use crate::failure::{self, Failure};
use crate::output;
use crate::values::Destination;

pub(crate) use self::lane::LaneSettings;

/// Default description of `config`, `doctor` and `tune`.
const USUAL_DESCRIPTION: &str = "isolane.toml";

/// Column at which `-v` prints the source of a value. After a longer value the source follows directly.
const SOURCE_COLUMN: usize = 36;

/// Lookup of an environment variable. Tests pass their own, so that they do not depend on the real environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Settings common to all commands, and the lines that `-v` prints.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) network: NetworkSettings,
    /// Description, with its domain replaced by the domain of this call.
    pub(crate) system: Option<System>,
    lines: Vec<SettingLine>,
    /// Notes on missing entries of the description, printed before the command begins.
    notes: Vec<String>,
    /// Files that the command will write at its end.
    outputs: Vec<Destination>,
}

/// Value of a setting with its source, as `-v` prints it.
#[derive(Clone, Debug)]
pub(crate) struct SettingLine {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) source: String,
}

#[derive(Clone, Debug)]
pub(crate) struct NetworkSettings {
    pub(crate) domain: Sourced<Domain>,
    /// All interfaces except loopback, or the named interfaces without duplicates.
    pub(crate) interfaces: Sourced<Interfaces>,
    /// Number of `-v` options. 0 prints only results, 1 also the settings, 2 also matches, jobs, ledgers and counters.
    pub(crate) verbosity: u8,
}

impl Settings {
    /// Reads the description and resolves the common options.
    ///
    /// # Errors
    /// A common option, an environment variable or the description is invalid.
    pub(crate) fn new(
        call: Call,
        environment: Environment<'_>,
    ) -> Result<(Command, Self), Failure> {
        let common = &call.common;
        refuse_without_effect(common, &call.name)?;
        let described_in = description(common, &call, environment)?;
        let load = |path: &Sourced<PathBuf>| {
            System::load(&path.value, kinds()).map_err(Failure::Description)
        };
        let mut system = described_in.as_ref().map(load).transpose()?;
        let network = NetworkSettings {
            domain: domain(common, system.as_ref(), environment)?,
            interfaces: interfaces(&common.interface)?,
            verbosity: common.verbose,
        };
        if let Some(system) = &mut system {
            system.set_domain(network.domain.clone());
        }
        let mut settings = Self {
            network,
            system,
            lines: Vec::new(),
            notes: Vec::new(),
            outputs: call.outputs,
        };
        settings.set_network();
        match described_in {
            Some(path) => settings.set("description", path.value.display(), &path.source),
            None => settings.set("description", "none", &Source::Default),
        }
        settings.lines.extend(call.options);
        Ok((call.command, settings))
    }

    /// Resolves an option that the description may supply. Takes the value of the command line, else that of the
    /// description, else the default. `option` is the option's name with its dashes.
    pub(crate) fn layered<T: Clone>(
        &mut self,
        option: &'static str,
        given: Option<T>,
        described: Option<&Sourced<T>>,
        default: Sourced<T>,
        show: impl FnOnce(&T) -> String,
    ) -> T {
        let Sourced { value, source } = match (given, described) {
            (Some(value), _) => Sourced::new(value, Source::CommandLine(option)),
            (None, Some(described)) => described.clone(),
            (None, None) => default,
        };
        let name = option.trim_start_matches('-').replace('-', "_");
        self.set(&name, show(&value), &source);
        value
    }

    /// Records the value of a setting. Replaces an earlier value of that name.
    pub(crate) fn set(&mut self, name: &str, value: impl Display, source: &Source) {
        let line = SettingLine {
            name: name.to_owned(),
            value: value.to_string(),
            source: source.to_string(),
        };
        match self.lines.iter_mut().find(|known| known.name == name) {
            Some(known) => *known = line,
            None => self.lines.push(line),
        }
    }

    fn set_network(&mut self) {
        let network = self.network.clone();
        self.set("domain", network.domain.value, &network.domain.source);
        let interfaces = &network.interfaces;
        let names = match &interfaces.value {
            Interfaces::Named(names) => names.join(","),
            _ => String::from("all but loopback"),
        };
        self.set("interfaces", names, &interfaces.source);
        self.set("verbosity", network.verbosity, &Source::CommandLine("-v"));
    }

    /// Resolves the datapath options with this machine's host entry. That entry also supplies the interface, unless the
    /// command line names one.
    pub(crate) fn lane(&mut self, arguments: LaneArguments) -> Result<LaneSettings, Failure> {
        let system = self.system.as_ref();
        let lane = LaneSettings::new(arguments, &mut self.network, system, &hostname())?;
        self.set_network();
        lane.describe(|name, value, source| self.set(name, value, source));
        self.notes.extend(lane.note.clone());
        Ok(lane)
    }

    /// Adds a note to print before the command begins.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Domain to which a command that observes all domains by default is limited; `None` if no domain was named.
    pub(crate) fn chosen_domain(&mut self) -> Option<u32> {
        let domain = self.network.domain.clone();
        if domain.source == Source::Default {
            self.set("domain", "all", &domain.source);
        }
        (domain.source != Source::Default).then(|| domain.value.get())
    }

    /// Refuses an option whose list names a value twice, because the results of both could not be distinguished.
    pub(crate) fn refuse_duplicates(&self) -> Result<(), Failure> {
        for SettingLine { name, value, .. } in &self.lines {
            let words: Vec<&str> = value.split(',').collect();
            let again = |index: &usize| words[..*index].contains(&words[*index]);
            if let Some(index) = (0..words.len()).find(again) {
                return Err(Failure::wrong_usage(
                    format!("--{} names {} twice", name.replace('_', "-"), words[index]),
                    "the results could not be distinguished",
                ));
            }
        }
        Ok(())
    }

    /// Checks that there is a description if `--host` is given.
    pub(crate) fn check_host(&self, host: Option<&String>) -> Result<(), Failure> {
        match (host, &self.system) {
            (Some(_), None) => Err(Failure::wrong_usage(
                "--host names a host of a description, but there is no description",
                "neither --config nor ISOLANE_CONFIG names a description, and there is no isolane.toml here",
            )
            .with_remedy("name a description with --config FILE")),
            _ => Ok(()),
        }
    }

    /// Requirements of this machine's host entry. Without a description, only the domain is known.
    pub(crate) fn needs(&self, host: Option<&str>, hostname: &str) -> Result<Needs, Failure> {
        let Some(system) = &self.system else {
            return Ok(Needs::of_domain(self.network.domain.value.get()));
        };
        Needs::of_system(system, host, hostname).map_err(|hosts| {
            Failure::wrong_usage(
                format!(
                    "the description has no host \"{}\"",
                    host.unwrap_or_default().escape_debug()
                ),
                format!("its hosts are {}", hosts.join(", ")),
            )
            .with_remedy("name one of them: --host NAME")
        })
    }

    /// Prints warnings, notes and, with `-v`, the settings. Then checks that the results can be written, and installs
    /// the printer of log records.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        let warnings = self.system.as_ref().map_or(&[][..], System::warnings);
        if !warnings.is_empty() {
            output::tell(failure::draw(warnings));
        }
        for note in &self.notes {
            output::tell(format!("note: {note}"));
        }
        if self.network.verbosity > 0 {
            output::tell(self.describe().trim_end());
        }
        self.outputs.iter().try_for_each(output::check_writable)?;
        output::install_log(self.network.verbosity);
        Ok(())
    }

    /// All settings with their sources, one line each.
    fn describe(&self) -> String {
        let mut text = String::new();
        for SettingLine {
            name,
            value,
            source,
        } in &self.lines
        {
            // Names and paths are untrusted. Escaping keeps each setting on one line.
            let setting = format!("{name} = {}", value.escape_debug());
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{setting:SOURCE_COLUMN$} # {source}");
        }
        text
    }
}

/// Refuses a common option that has no effect on the command.
fn refuse_without_effect(common: &CommonArguments, command: &str) -> Result<(), Failure> {
    let (refused, why) = refused(command);
    let is_given = |option: &&&str| match **option {
        "interface" => !common.interface.is_empty(),
        "domain" => common.domain.is_some(),
        _ => common.config.is_some(),
    };
    let name = command.split(' ').next().unwrap_or_default();
    match refused.iter().find(is_given) {
        Some(option) => Err(Failure::wrong_usage(
            format!("`{name}` takes no --{option}"),
            why,
        )),
        None => Ok(()),
    }
}

/// Path of the description to read, if any.
fn description(
    common: &CommonArguments,
    call: &Call,
    environment: Environment<'_>,
) -> Result<Option<Sourced<PathBuf>>, Failure> {
    let usual = Path::new(USUAL_DESCRIPTION);
    let usual = match &call.command {
        Command::Config(config) if config.example => return Ok(None),
        // These commands use no description.
        Command::Child(_) | Command::Demo(_) | Command::Bench(_) => return Ok(None),
        Command::Completions(_) | Command::Man(_) | Command::Top(_) => return Ok(None),
        Command::Datapaths(_) => return Ok(None),
        Command::Config(_) => Some(usual),
        // These commands work without a description.
        Command::Doctor(_) | Command::Tune(_) => Some(usual).filter(|path| path.exists()),
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
        (named, usual) => Ok(named.or(usual.map(|path| Sourced::default_value(path.into())))),
    }
}

fn domain(
    common: &CommonArguments,
    system: Option<&System>,
    environment: Environment<'_>,
) -> Result<Sourced<Domain>, Failure> {
    let text = environment("ISOLANE_DOMAIN").filter(|text| !text.is_empty());
    let from_environment = text.as_deref().map(domain_of_environment).transpose()?;
    Ok(match (common.domain, from_environment, system) {
        (Some(domain), _, _) => Sourced::new(domain, Source::CommandLine("--domain")),
        (None, Some(domain), _) => Sourced::new(domain, Source::Environment("ISOLANE_DOMAIN")),
        (None, None, Some(system)) => system.domain().clone(),
        (None, None, None) => Sourced::default_value(Domain::default()),
    })
}

fn domain_of_environment(text: &OsStr) -> Result<Domain, Failure> {
    let text = text.to_string_lossy();
    text.parse::<Domain>().map_err(|error| {
        Failure::wrong_usage(
            format!("ISOLANE_DOMAIN is \"{}\"", text.escape_debug()),
            error.to_string(),
        )
        .with_remedy("set it to such a number, unset it, or give --domain")
    })
}

fn interfaces(named: &[String]) -> Result<Sourced<Interfaces>, Failure> {
    if named.is_empty() {
        return Ok(Sourced::default_value(Interfaces::All));
    }
    if let Some(wrong) = named.iter().find(|name| !is_interface_name(name)) {
        return Err(Failure::wrong_usage(
            format!("--interface \"{}\"", wrong.escape_debug()),
            "no interface can have that name",
        )
        .with_remedy("`ip link` lists the interfaces of this machine"));
    }
    let mut once: Vec<String> = Vec::with_capacity(named.len());
    for name in named {
        if !once.contains(name) {
            once.push(name.clone());
        }
    }
    Ok(Sourced::new(
        Interfaces::Named(once),
        Source::CommandLine("--interface"),
    ))
}
