//! Datapath settings of a host: the chosen kind, and the options of each kind.

use isolane_datapath::kind::{DatapathKind, OptionDefault, OptionSpec, OptionValue, Options};

use crate::source::{Source, Sourced};
use crate::word::Word;

/// Choice of the datapath between network and protocol. Only opening the datapath shows if the machine supports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DatapathChoice {
    /// First kind whose requirements the machine meets.
    #[default]
    Auto,
    /// Kind with this name.
    Named(&'static str),
}

impl DatapathChoice {
    /// Keyword of [`DatapathChoice::Auto`].
    pub const AUTO: &'static str = "auto";

    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => Self::AUTO,
            Self::Named(name) => name,
        }
    }
}

/// Behaviour of a participant's loop while it is idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// Sleep.
    #[default]
    Sleep,
    /// Poll without pause; needs a dedicated core.
    Spin,
}

impl Word for Waiting {
    const WORDS: &'static [(&'static str, Self)] = &[("sleep", Self::Sleep), ("spin", Self::Spin)];
}

/// Source of a default without the levels of large samples.
const LARGE_SAMPLES: Source = Source::DefaultFor("max_bytes of topics");

/// Options of a kind of datapath on a host, `[host.NAME.DATAPATH]`.
#[derive(Clone, Debug)]
pub struct DatapathSettings {
    kind: &'static dyn DatapathKind,
    /// Values in the order of the kind's options; `None` for an option that is not set.
    values: Vec<Sourced<Option<OptionValue>>>,
}

impl DatapathSettings {
    /// Creates settings in which every option has its default.
    pub fn new(kind: &'static dyn DatapathKind) -> Self {
        let default = |spec: &OptionSpec| match spec.default {
            OptionDefault::Value(value) => Some(value),
            OptionDefault::Unset(_) => None,
        };
        let values = kind.options().iter();
        let values = values.map(|spec| Sourced::default_value(default(spec)));
        Self {
            kind,
            values: values.collect(),
        }
    }

    /// Kind of the datapath.
    pub fn kind(&self) -> &'static dyn DatapathKind {
        self.kind
    }

    /// Iterates over the options and their values.
    pub fn entries(
        &self,
    ) -> impl Iterator<Item = (&'static OptionSpec, &Sourced<Option<OptionValue>>)> {
        self.kind.options().iter().zip(&self.values)
    }

    /// Sets the option with this key, and unsets the options that it overrides. Does nothing without such an option.
    pub fn set(&mut self, key: &str, value: Sourced<OptionValue>) {
        let options = self.kind.options();
        let Some(index) = options.iter().position(|spec| spec.key == key) else {
            return;
        };
        for (spec, other) in options.iter().zip(&mut self.values) {
            if options[index].overrides.contains(&spec.key) {
                *other = Sourced::new(None, value.source.clone());
            }
        }
        self.values[index] = value.map(Some);
    }

    /// Removes these levels (bit *l* is level *l*) from the default where this kind is slower for large samples. A level that another option names stays, and so do options that were set.
    pub(crate) fn leave_out(&mut self, levels: u8) {
        let specs = self.kind.options().iter().enumerate();
        for (place, spec) in specs.filter(|(_, spec)| spec.leaves_out_large) {
            let is_default = [Source::Default, LARGE_SAMPLES].contains(&self.values[place].source);
            let OptionDefault::Value(all) = spec.default else {
                continue;
            };
            if !is_default {
                continue;
            }
            self.values[place] = Sourced::default_value(Some(all));
            for bit in (0..8).map(|level| 1 << level) {
                let before = self.values[place].clone();
                if let Some(OptionValue::Levels(all)) = before.value
                    && levels & bit != 0
                {
                    let left = OptionValue::Levels(all & !bit);
                    self.values[place] = Sourced::new(Some(left), LARGE_SAMPLES);
                    if self.kind.configure(&self.options()).is_err() {
                        self.values[place] = before;
                    }
                }
            }
        }
    }

    /// Returns the key of a set option that has an effect only with [`Waiting::Spin`], if any.
    pub fn needs_spin(&self) -> Option<&'static str> {
        let is_set =
            |value: &Sourced<Option<OptionValue>>| value.value == Some(OptionValue::Bool(true));
        let mut spinning = self.entries().filter(|(spec, _)| spec.needs_spin);
        spinning
            .find(|(_, value)| is_set(value))
            .map(|(spec, _)| spec.key)
    }

    /// Returns the values, for [`DatapathKind::configure`].
    pub fn options(&self) -> Options {
        let mut options = Options::default();
        for (spec, value) in self.entries() {
            if let Some(value) = value.value {
                options.set(spec, value);
            }
        }
        options
    }
}
