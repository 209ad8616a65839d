//! Why a plan cannot be kept for the next boot.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::setting::SettingError;

/// Why a plan cannot be kept for the next boot. Nothing was changed.
#[derive(Debug)]
pub enum BootError {
    /// The program that would be started: install it elsewhere.
    Program(PathBuf, Unfit),
    /// The folder of the journal, where the plan would be saved: name another one.
    Folder(PathBuf, Unfit),
    /// A plan was saved there earlier, and cannot be read.
    Saved(PathBuf, io::Error),
    /// What stands in the places of its files cannot be read.
    Setting(SettingError),
    /// The system does not tell what runs, or where.
    System(io::Error),
}

/// What is wrong with a file for being needed at boots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// Units are UTF-8.
    NotText,
    /// It has characters that cannot stand in a unit: which.
    Characters(&'static str),
    /// It is in this folder, which is empty behind a boot.
    Temporary(PathBuf),
    /// It is in a file system that is kept in memory.
    InMemory,
    /// What runs is not what has this name: it was removed, or another file has taken it.
    Replaced,
}

impl fmt::Display for Unfit {
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
