//! The ways to a system: from a text, from bytes, from a file; and the example.

use std::io::{self, Read};
use std::path::Path;

use crate::file::open_regular;
use crate::limits::MAX_FILE_BYTES;
use crate::problem::Problem;
use crate::read::{read, read_tuning};
use crate::system::System;
use crate::tuning::Tuning;

/// A commented description that shows every setting.
pub fn example() -> &'static str {
    include_str!("example.toml")
}

impl System {
    /// Reads a description. `file_name` is what sources and problems call it.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the file; at least one is an error, there
    /// may be warnings among them.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        read(text.as_bytes(), file_name)
    }

    /// Reads a description that may not even be text.
    ///
    /// # Errors
    /// As [`System::from_toml`].
    pub fn from_bytes(bytes: &[u8], file_name: &str) -> Result<Self, Vec<Problem>> {
        read(bytes, file_name)
    }

    /// Reads a description file.
    ///
    /// # Errors
    /// One problem if the file cannot be read, otherwise as [`System::from_toml`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Vec<Problem>> {
        let path = path.as_ref();
        let bytes = read_bounded(path).map_err(|error| vec![unreadable(path, &error)])?;
        read(&bytes, &path.display().to_string())
    }
}

impl Tuning {
    /// Reads a file with the switches of `[tune]` and nothing else.
    ///
    /// # Errors
    /// As [`System::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Vec<Problem>> {
        let path = path.as_ref();
        let bytes = read_bounded(path).map_err(|error| vec![unreadable(path, &error)])?;
        read_tuning(&bytes, &path.display().to_string())
    }

    /// Reads the same from a text; `file_name` is what sources and problems call it.
    ///
    /// # Errors
    /// As [`System::from_toml`].
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        read_tuning(text.as_bytes(), file_name)
    }
}

/// Reads one byte more than a description may have at most, which is how too long is noticed.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?
        .take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    let what = format!("cannot read {}: {error}", path.display());
    let help = match error.kind() {
        io::ErrorKind::NotFound => {
            "name an existing description, or write one: isolane config --example > isolane.toml"
        }
        io::ErrorKind::PermissionDenied => "make the file readable for this user",
        _ => "give the path of a description file",
    };
    Problem::of_file(what, Some(help.to_owned()))
}
