//! Errors of saving a plan for the next boot.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::setting::SettingError;

/// Reason that a plan cannot be saved for the next boot. Nothing was changed.
#[derive(Debug)]
pub enum BootError {
    /// The program to start does not persist: install it elsewhere.
    Program(PathBuf, PathError),
    /// The journal folder, which would hold the plan, does not persist: choose another one.
    Folder(PathBuf, PathError),
    /// The plan saved earlier in this file cannot be read.
    Saved(PathBuf, io::Error),
    /// The current content of the unit files cannot be read.
    Setting(SettingError),
    /// The system does not report the running program or its path.
    System(io::Error),
}

/// Reason that a path cannot be used at boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The path is not UTF-8, as units are.
    NotText,
    /// The path contains characters, described here, that a unit cannot hold.
    Characters(&'static str),
    /// The path is in this folder, which is empty after a boot.
    Temporary(PathBuf),
    /// The path is on a file system in memory.
    InMemory,
    /// The running program was removed, or another file has taken its name.
    Replaced,
}

impl fmt::Display for PathError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotText => formatter.write_str("its name is not UTF-8, as units of systemd are"),
            Self::Characters(which) => {
                write!(
                    formatter,
                    "its name has {which}, which systemd does not take"
                )
            }
            Self::Temporary(folder) => write!(
                formatter,
                "it is in {}, which is empty after a boot",
                folder.display()
            ),
            Self::InMemory => {
                formatter.write_str("it is in a file system in memory, which is empty after a boot")
            }
            Self::Replaced => {
                formatter.write_str("it was removed or replaced since it was started")
            }
        }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(path, why) => write!(
                formatter,
                "the unit would start {}, and {why}",
                path.display()
            ),
            Self::Folder(path, why) => write!(
                formatter,
                "the plan would be saved in {}, and {why}",
                path.display()
            ),
            Self::Saved(path, error) => write!(
                formatter,
                "the plan that was saved earlier in {} cannot be read: {error}",
                path.display()
            ),
            Self::Setting(error) => error.fmt(formatter),
            Self::System(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for BootError {}

impl From<SettingError> for BootError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error)
    }
}
