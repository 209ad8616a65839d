//! Sources of setting values, so that a configuration can be printed back with the origin of each value.

use core::fmt;
use std::sync::Arc;

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Line of a description file.
    File {
        /// File name as given.
        name: Arc<str>,
        /// Line number, from 1.
        line: usize,
    },
    /// Default.
    Default,
    /// Default that depends on another setting, which is named.
    DefaultFor(&'static str),
    /// Environment variable.
    Environment(&'static str),
    /// Command line option as written (`--domain`).
    CommandLine(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(formatter, "{name}:{line}"),
            Self::Default => formatter.write_str("default"),
            Self::DefaultFor(setting) => write!(formatter, "default for {setting}"),
            Self::Environment(variable) => write!(formatter, "environment {variable}"),
            Self::CommandLine(option) => write!(formatter, "command line {option}"),
        }
    }
}

/// Value with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Source of the value.
    pub source: Source,
}

impl<T> Sourced<T> {
    /// Creates a value with its source.
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    /// Creates a default value.
    pub fn default_value(value: T) -> Self {
        Self::new(value, Source::Default)
    }

    /// Converts the value, keeping the source.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced::new(change(self.value), self.source)
    }
}
