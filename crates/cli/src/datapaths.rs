//! Datapaths of this program, and the value of `--datapath`.

use std::ffi::OsStr;
use std::sync::OnceLock;

use clap::builder::{PossibleValue, TypedValueParser};
use isolane::{DATAPATHS, Kinds};
use isolane_datapath::kind::{DatapathKind, OptionValue};
use isolane_model::DatapathChoice;

static KINDS: OnceLock<Kinds> = OnceLock::new();

/// Sets the kinds of this program; only the first call has an effect.
pub(crate) fn set_kinds(kinds: Kinds) {
    KINDS.get_or_init(|| kinds);
}

/// Kinds of this program, best first.
pub(crate) fn kinds() -> Kinds {
    KINDS.get_or_init(|| DATAPATHS)
}

/// Value of `--datapath`, `NAME[:KEY=VALUE,...]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DatapathArgument {
    pub(crate) choice: DatapathChoice,
    /// Options by key.
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
        let names: Vec<&str> = kinds().iter().map(|kind| kind.name()).collect();
        format!(
            "there is no datapath {name:?}; there are auto, {}",
            names.join(", ")
        )
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
        let keys: Vec<&str> = kind.options().iter().map(|spec| spec.key).collect();
        match keys.is_empty() {
            true => format!("{} has no options", kind.name()),
            false => format!(
                "{} has no option {key:?}; it has {}",
                kind.name(),
                keys.join(", ")
            ),
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
            ("udp:queue=1", "udp has no options"),
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
