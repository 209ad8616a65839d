//! Datapaths of this program: the value of `--datapath`, and the command `isolane datapaths`, which lists datapaths and
//! their options.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::OnceLock;

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use isolane::{DATAPATHS, Kinds};
use isolane_datapath::kind::{DatapathKind, OptionDefault, OptionSpec, OptionValue};
use isolane_model::DatapathChoice;
use serde::Serialize;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{joined, print_json_or};
use crate::settings::Settings;
use crate::values::Destination;

static KINDS: OnceLock<Kinds> = OnceLock::new();

/// Sets the datapath kinds of this program. Only the first call has an effect.
pub(crate) fn set_kinds(kinds: Kinds) {
    KINDS.get_or_init(|| kinds);
}

/// Datapath kinds of this program, best first.
pub(crate) fn kinds() -> Kinds {
    KINDS.get_or_init(|| DATAPATHS)
}

/// Value of `--datapath`, `NAME[:KEY=VALUE,...]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DatapathArgument {
    pub(crate) choice: DatapathChoice,
    /// Options in the order given, each with its key.
    pub(crate) options: Vec<(&'static str, OptionValue)>,
}

/// Parses the name of a datapath and its options.
fn parse(text: &str) -> Result<DatapathArgument, String> {
    let (name, options) = match text.split_once(':') {
        Some((name, options)) => (name, options.split(',').collect()),
        None => (text, Vec::new()),
    };
    if name == DatapathChoice::AUTO {
        return match options.is_empty() {
            true => Ok(DatapathArgument {
                choice: DatapathChoice::Auto,
                options: Vec::new(),
            }),
            false => Err(String::from(
                "auto has no options: name the datapath that they are for",
            )),
        };
    }
    let kind = kinds().iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| {
        let names = joined(kinds().iter().map(|kind| kind.name()), ", ");
        format!("there is no datapath {name:?}; there are auto, {names}")
    })?;
    let mut argument = DatapathArgument {
        choice: DatapathChoice::Named(kind.name()),
        options: Vec::new(),
    };
    for option in options {
        let (key, value) = parse_option(*kind, option)?;
        if argument.options.iter().any(|(known, _)| *known == key) {
            return Err(format!("{key} is set twice"));
        }
        argument.options.push((key, value));
    }
    Ok(argument)
}

fn parse_option(
    kind: &dyn DatapathKind,
    option: &str,
) -> Result<(&'static str, OptionValue), String> {
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    let spec = kind.options().iter().find(|spec| spec.key == key);
    let spec = spec.ok_or_else(|| {
        let keys = joined(kind.options().iter().map(|spec| spec.key), ", ");
        match keys.is_empty() {
            true => format!("{} has no options", kind.name()),
            false => format!("{} has no option {key:?}; it has {}", kind.name(), keys),
        }
    })?;
    match spec.kind.parse(value) {
        Ok(value) => Ok((spec.key, value)),
        Err(expected) => Err(format!("{key} {expected} ({})", spec.help)),
    }
}

/// Parser of [`DatapathArgument`], with shell completion of the names.
#[derive(Clone)]
pub(crate) struct DatapathParser;

impl TypedValueParser for DatapathParser {
    type Value = DatapathArgument;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<DatapathArgument, clap::Error> {
        parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let auto = PossibleValue::new(DatapathChoice::AUTO);
        let kinds = kinds().iter();
        let kinds = kinds.map(|kind| PossibleValue::new(kind.name()).help(kind.summary()));
        Some(Box::new([auto].into_iter().chain(kinds)))
    }
}

/// JSON form of the list (`--json`).
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    datapaths: Vec<Datapath>,
}

#[derive(Serialize)]
struct Datapath {
    name: &'static str,
    summary: &'static str,
    options: Vec<DatapathOption>,
}

#[derive(Serialize)]
struct DatapathOption {
    key: &'static str,
    /// Valid values as text for people.
    values: String,
    /// Default as a TOML value; `None` if the option is unset by default.
    default: Option<String>,
    help: &'static str,
}

impl DatapathOption {
    fn new(spec: &OptionSpec) -> Self {
        Self {
            key: spec.key,
            values: spec.kind.to_string(),
            default: match spec.default {
                OptionDefault::Value(value) => Some(value.to_string()),
                OptionDefault::Unset(_) => None,
            },
            help: spec.help,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Datapaths {
    /// Write the list as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

impl Datapaths {
    pub(crate) fn run(&self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        print_json_or(&report(), self.json.as_ref(), |_| text())
    }
}

fn report() -> Report {
    let datapaths = kinds().iter().map(|kind| Datapath {
        name: kind.name(),
        summary: kind.summary(),
        options: kind.options().iter().map(DatapathOption::new).collect(),
    });
    Report {
        schema: "isolane/datapaths/1",
        datapaths: datapaths.collect(),
    }
}

fn text() -> String {
    let mut text = String::new();
    for kind in kinds() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", kind.name(), kind.summary());
        for spec in kind.options() {
            let default = match spec.default {
                OptionDefault::Value(value) => value.to_string(),
                OptionDefault::Unset(effect) => effect.to_owned(),
            };
            let _ = writeln!(text, "  {} (default: {default}): {}", spec.key, spec.help);
            let _ = writeln!(text, "      {}", spec.kind);
        }
    }
    text.push_str("auto: the first of these whose requirements this machine meets\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datapath_is_named_with_its_options() {
        assert_eq!(parse("auto").map(|it| it.choice), Ok(DatapathChoice::Auto));
        let xdp = parse("xdp:queue=3,mode=copy,queues=7=1+6=0").expect("all of these exist");
        assert_eq!(xdp.choice, DatapathChoice::Named("xdp"));
        assert_eq!(xdp.options[1], ("mode", OptionValue::Word("copy")));
        let wrong = [
            ("dpdk", "there are auto, xdp, udp"),
            (
                "udp:queue=1",
                "udp has no option \"queue\"; it has segmentation",
            ),
            ("xdp:queu=1", "it has queue, queues"),
            ("xdp:queue=9", "queue must be a whole number from 0 to 7"),
            ("xdp:queue=1,queue=2", "queue is set twice"),
            ("xdp:levels=9", "like 5+6+7"),
            ("auto:queue=1", "name the datapath"),
        ];
        for (text, reason) in wrong {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
