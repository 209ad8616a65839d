//! Where a value comes from. Every setting carries it, so that a configuration can be printed back
//! complete, with the reason for each line of it.

use core::fmt;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A line of a description file.
    File {
        /// The file's name as it was given.
        name: Arc<str>,
        /// Its line, from 1.
        line: usize,
    },
    /// Nobody said anything.
    Default,
    /// Nobody said anything, and the default depends on another setting, named here.
    DefaultFor(&'static str),
    /// An environment variable, named here.
    Environment(&'static str),
    /// An option of the command line, named here as it is written (`--domain`).
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

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

impl<T> Sourced<T> {
    /// A value with its source.
    pub fn new(value: T, source: Source) -> Self {
        Self { value, source }
    }

    /// A value nobody gave.
    pub fn default_value(value: T) -> Self {
        Self::new(value, Source::Default)
    }

    /// The same source, another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced::new(change(self.value), self.source)
    }
}
