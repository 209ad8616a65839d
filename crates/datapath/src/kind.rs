//! Kinds of datapaths: name, options, configuration by name, and requirements on the machine. A configured kind is a
//! factory, from which a participant opens its datapath.
//!
//! Descriptions, command lines, help, documentation, `doctor` and plans know datapaths only by the list of kinds. A
//! program that brings its own datapath adds its kind to the list.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display, Write as _};

use crate::contract::{Datapath, OpenError};
use crate::network::NetworkConfig;

/// Kinds of datapaths that a program offers. `auto` uses the first one whose requirements the machine meets.
pub type Kinds = &'static [&'static dyn DatapathKind];

/// Kind of datapath; one static per crate.
pub trait DatapathKind: Debug + Sync {
    /// Name in descriptions and on command lines, as in [`Datapath::name`]. A description may have a table of this
    /// name in a host's table, so the name must differ from the keys of a host.
    fn name(&self) -> &'static str;

    /// One line for people: what moves the packets, and what it needs.
    fn summary(&self) -> &'static str;

    /// Options, in the order of their documentation.
    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Configures a datapath. Options that are not set have their defaults.
    ///
    /// # Errors
    /// Options that contradict each other.
    fn configure(&self, options: &Options) -> Result<Box<dyn DatapathFactory>, OptionError>;

    /// Reads the facts on which the requirements on an interface of this network namespace depend, as JSON. `None` if
    /// the datapath has no requirements. Changes nothing.
    fn probe(&self, _interface: &str) -> Option<String> {
        None
    }

    /// Compares the requirements with facts that [`probe`](Self::probe) returned, here or on another machine. Pure
    /// function.
    ///
    /// # Errors
    /// Facts of another form.
    fn requirements(&self, _facts: &str) -> Result<Vec<Requirement>, FactsError> {
        Ok(Vec::new())
    }

    /// Returns what these options use of a network device; `None` if the datapath leaves devices to the kernel. Options
    /// that are not set have their defaults.
    ///
    /// # Errors
    /// Options that contradict each other, as for [`configure`](Self::configure).
    fn device_use(&self, _options: &Options) -> Result<Option<DeviceUse>, OptionError> {
        Ok(None)
    }
}

/// Requirement of a datapath on a machine and one of its interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Stable identifier for programs, unique among all kinds of a list: it is part of the finding's id in `doctor`.
    pub id: &'static str,
    /// Whether it is met.
    pub met: Met,
    /// State found, for people.
    pub found: String,
    /// Cost of the state found; empty if none.
    pub cost: String,
    /// Remedy; empty if none is needed.
    pub remedy: String,
}

/// Whether a requirement is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// Met.
    Yes,
    /// The datapath works with a disadvantage.
    Degraded,
    /// The datapath does not work.
    No,
}

/// Facts that are not of the form that [`DatapathKind::probe`] returns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FactsError(pub String);

/// Use of a network device by a datapath that bypasses the kernel's stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Device queue of each level; `None` if the options name no queue, so that all levels use the first.
    pub queues: Option<[u32; 8]>,
    /// True if the device must read and write the frames itself (zero copy).
    pub needs_zero_copy: bool,
    /// VLAN id of sent frames.
    pub vlan: Option<u16>,
}

/// Configured datapath that is not open yet. The typed options of a kind implement this trait.
pub trait DatapathFactory: Debug {
    /// Name of the datapath, as in [`Datapath::name`].
    fn name(&self) -> &'static str;

    /// Requirements that this machine does not meet, with their remedies; `None` if all known requirements are met.
    /// Opens nothing and changes nothing.
    fn unmet(&self, _network: &NetworkConfig) -> Option<String> {
        None
    }

    /// Makes the failure to open a lane a warning instead of an error: the lane then uses another way of this
    /// datapath, such as kernel sockets.
    fn tolerate_lane_failure(&mut self) {}

    /// Opens the datapath; lanes are opened later.
    ///
    /// # Errors
    /// [`OpenError`]; nothing stays open then.
    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError>;
}

/// Option of a datapath.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Key in `[host.NAME.DATAPATH]`, and in `--datapath DATAPATH:KEY=VALUE`.
    pub key: &'static str,
    /// Values.
    pub kind: OptionKind,
    /// Default value, or what the datapath does without a value.
    pub default: OptionDefault,
    /// Meaning and unit, in a few words.
    pub help: &'static str,
    /// Options that setting this one unsets, because its value also determines theirs.
    pub overrides: &'static [&'static str],
    /// True if the value `true` has an effect only where the executor's loop never sleeps.
    pub needs_spin: bool,
    /// True if the option lists levels whose lanes are slower than kernel sockets for samples longer than a datagram. With
    /// `auto`, the default leaves out levels of such samples.
    pub leaves_out_large: bool,
}

impl OptionSpec {
    /// Creates an option that neither overrides others nor needs a spinning loop.
    #[must_use]
    pub const fn new(
        key: &'static str,
        kind: OptionKind,
        default: OptionDefault,
        help: &'static str,
    ) -> Self {
        Self {
            key,
            kind,
            default,
            help,
            overrides: &[],
            needs_spin: false,
            leaves_out_large: false,
        }
    }

    /// Names the options that setting this one unsets.
    #[must_use]
    pub const fn overriding(self, overrides: &'static [&'static str]) -> Self {
        Self { overrides, ..self }
    }

    /// Marks the option as a list of levels, slow for samples longer than a datagram.
    #[must_use]
    pub const fn leaving_out_large(self) -> Self {
        Self {
            leaves_out_large: true,
            ..self
        }
    }

    /// Marks the option as one for loops that never sleep.
    #[must_use]
    pub const fn spinning(self) -> Self {
        Self {
            needs_spin: true,
            ..self
        }
    }
}

/// Default of an option.
#[derive(Clone, Copy, Debug)]
pub enum OptionDefault {
    /// Value.
    Value(OptionValue),
    /// No value; the text states the effect.
    Unset(&'static str),
}

/// Set of values of an option.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// True or false.
    Bool,
    /// Whole number.
    Integer {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// Power of two.
    PowerOfTwo {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// One of the words.
    Word(&'static [&'static str]),
    /// Set of levels, at least one.
    Levels,
    /// Whole number for each of some levels.
    IntegerPerLevel {
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
}

/// Value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// True or false.
    Bool(bool),
    /// Whole number.
    Integer(u32),
    /// Word.
    Word(&'static str),
    /// Levels: bit *l* is level *l*.
    Levels(u8),
    /// Number of each level that has one.
    PerLevel([Option<u32>; 8]),
}

/// Option whose value contradicts another one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}; {help}")]
pub struct OptionError {
    /// Key of the option.
    pub key: &'static str,
    /// Contradiction.
    pub what: String,
    /// Remedy.
    pub help: String,
}

/// Values of options that are set, by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(BTreeMap<&'static str, OptionValue>);

impl Options {
    /// Sets an option.
    pub fn set(&mut self, spec: &OptionSpec, value: OptionValue) {
        self.0.insert(spec.key, value);
    }

    /// Returns the value of an option, if set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<OptionValue> {
        self.0.get(key).copied()
    }

    /// Returns the value of a Boolean option, if set.
    #[must_use]
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            OptionValue::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value of a numeric option, if set.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<u32> {
        match self.get(key)? {
            OptionValue::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value of an option with words, if set.
    #[must_use]
    pub fn word(&self, key: &str) -> Option<&'static str> {
        match self.get(key)? {
            OptionValue::Word(value) => Some(value),
            _ => None,
        }
    }

    /// Returns a set of levels, if set: bit *l* is level *l*.
    #[must_use]
    pub fn levels(&self, key: &str) -> Option<u8> {
        match self.get(key)? {
            OptionValue::Levels(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the number of each level; all `None` if the option is not set.
    #[must_use]
    pub fn per_level(&self, key: &str) -> [Option<u32>; 8] {
        match self.get(key) {
            Some(OptionValue::PerLevel(value)) => value,
            _ => [None; 8],
        }
    }
}

impl OptionKind {
    /// Returns whether a value is one of this kind.
    #[must_use]
    pub fn contains(&self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Bool, OptionValue::Bool(_)) => true,
            (Self::Integer { min, max }, OptionValue::Integer(number)) => {
                (min..=max).contains(&number)
            }
            (Self::PowerOfTwo { min, max }, OptionValue::Integer(number)) => {
                (min..=max).contains(&number) && number.is_power_of_two()
            }
            (Self::Word(words), OptionValue::Word(word)) => words.contains(word),
            (Self::Levels, OptionValue::Levels(levels)) => *levels != 0,
            (Self::IntegerPerLevel { min, max }, OptionValue::PerLevel(numbers)) => {
                let mut set = numbers.iter().flatten();
                set.all(|number| (min..=max).contains(&number))
            }
            _ => false,
        }
    }

    /// Parses a value from a command line: `true`, `7`, `copy`, levels as `5+6+7`, numbers of levels as `7=1+6=0`.
    ///
    /// # Errors
    /// Text for people that states the expected values.
    pub fn parse(&self, text: &str) -> Result<OptionValue, String> {
        let number = |text: &str| text.parse().ok();
        let value = match self {
            Self::Bool => text.parse().ok().map(OptionValue::Bool),
            Self::Integer { .. } | Self::PowerOfTwo { .. } => {
                number(text).map(OptionValue::Integer)
            }
            Self::Word(words) => {
                let word = words.iter().find(|word| **word == text);
                word.map(|word| OptionValue::Word(word))
            }
            Self::Levels => text
                .split('+')
                .try_fold(0_u8, |levels, text| {
                    let bit = 1 << text.parse::<u8>().ok().filter(|level| *level < 8)?;
                    (levels & bit == 0).then_some(levels | bit)
                })
                .map(OptionValue::Levels),
            Self::IntegerPerLevel { .. } => text
                .split('+')
                .try_fold([None; 8], |mut all, text| {
                    let (level, text) = text.split_once('=')?;
                    let number: &mut Option<u32> = all.get_mut(level.parse::<usize>().ok()?)?;
                    let is_first = number.replace(text.parse().ok()?).is_none();
                    is_first.then_some(all)
                })
                .map(OptionValue::PerLevel),
        };
        let value = value.filter(|value| self.contains(value));
        value.ok_or_else(|| match self {
            Self::Levels => String::from("must be levels joined by +, like 5+6+7"),
            Self::IntegerPerLevel { min, max } => {
                format!("must be numbers from {min} to {max} for levels, like 7={max} or 7={max}+6={min}")
            }
            _ => format!("must be {self}"),
        })
    }
}

/// Values, for people: `a whole number from 0 to 7`.
impl Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("true or false"),
            Self::Integer { min, max } => write!(f, "a whole number from {min} to {max}"),
            Self::PowerOfTwo { min, max } => write!(f, "a power of two from {min} to {max}"),
            Self::Word(words) => {
                for (index, word) in words.iter().enumerate() {
                    let before = match index {
                        0 => "",
                        _ if index + 1 == words.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}\"{word}\"")?;
                }
                Ok(())
            }
            Self::Levels => f.write_str("a list of levels, like [5, 6, 7]"),
            Self::IntegerPerLevel { min, max } => {
                write!(
                    f,
                    "a table of levels, like {{ 7 = {max} }}, with numbers from {min} to {max}"
                )
            }
        }
    }
}

/// TOML value.
impl Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Word(word) => write!(f, "\"{word}\""),
            Self::Levels(levels) => {
                f.write_char('[')?;
                let mut separator = "";
                for level in (0..8).filter(|level| levels >> level & 1 == 1) {
                    write!(f, "{separator}{level}")?;
                    separator = ", ";
                }
                f.write_char(']')
            }
            Self::PerLevel(numbers) => {
                f.write_str("{ ")?;
                let mut separator = "";
                for (level, number) in numbers.iter().enumerate() {
                    if let Some(number) = number {
                        write!(f, "{separator}{level} = {number}")?;
                        separator = ", ";
                    }
                }
                f.write_str(" }")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_printed_and_bounded() {
        let queue = OptionKind::Integer { min: 0, max: 7 };
        let ring = OptionKind::PowerOfTwo { min: 32, max: 64 };
        let queues = OptionKind::IntegerPerLevel { min: 0, max: 7 };
        let cases: [(OptionKind, &str, Result<&str, &str>); 11] = [
            (queue, "7", Ok("7")),
            (queue, "8", Err("must be a whole number from 0 to 7")),
            (ring, "64", Ok("64")),
            (ring, "48", Err("must be a power of two from 32 to 64")),
            (OptionKind::Word(&["copy", "auto"]), "copy", Ok("\"copy\"")),
            (
                OptionKind::Word(&["copy", "auto"]),
                "zero",
                Err("must be \"copy\" or \"auto\""),
            ),
            (OptionKind::Levels, "7+5", Ok("[5, 7]")),
            (
                OptionKind::Levels,
                "8",
                Err("must be levels joined by +, like 5+6+7"),
            ),
            (queues, "7=1+6=0", Ok("{ 6 = 0, 7 = 1 }")),
            (
                OptionKind::Levels,
                "7+7",
                Err("must be levels joined by +, like 5+6+7"),
            ),
            (
                queues,
                "7=1+7=2",
                Err("must be numbers from 0 to 7 for levels, like 7=7 or 7=7+6=0"),
            ),
        ];
        for (kind, text, expected) in cases {
            let parsed = kind.parse(text).map(|value| value.to_string());
            let expected = expected.map(String::from).map_err(String::from);
            assert_eq!(parsed, expected, "{text}");
        }
    }
}
