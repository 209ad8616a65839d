//! Loading of a system from text, bytes or a file, and the example description.

use std::io::{self, Read};
use std::path::Path;

use isolane_datapath::Kinds;

use crate::file::open_regular;
use crate::limits::MAX_FILE_BYTES;
use crate::problem::Problem;
use crate::read::{read, read_tuning};
use crate::system::System;
use crate::tuning::Tuning;

/// Returns a commented description with every setting.
pub fn example() -> &'static str {
    include_str!("example.toml")
}

impl System {
    /// Parses a description. `file_name` identifies it in sources and problems; `kinds` are the datapaths that hosts
    /// may choose.
    ///
    /// # Errors
    /// All errors in the order of the file, together with the warnings.
    pub fn from_toml(text: &str, file_name: &str, kinds: Kinds) -> Result<Self, Vec<Problem>> {
        read(text.as_bytes(), file_name, kinds)
    }

    /// Parses a description from bytes that may not be UTF-8.
    ///
    /// # Errors
    /// Those of [`System::from_toml`].
    pub fn from_bytes(bytes: &[u8], file_name: &str, kinds: Kinds) -> Result<Self, Vec<Problem>> {
        read(bytes, file_name, kinds)
    }

    /// Reads a description file.
    ///
    /// # Errors
    /// One problem if the file cannot be read, otherwise those of [`System::from_toml`].
    pub fn load(path: impl AsRef<Path>, kinds: Kinds) -> Result<Self, Vec<Problem>> {
        let path = path.as_ref();
        let bytes = read_bounded(path).map_err(|error| vec![unreadable(path, &error)])?;
        read(&bytes, &path.display().to_string(), kinds)
    }
}

impl Tuning {
    /// Reads a file that contains only settings of `[tune]`.
    ///
    /// # Errors
    /// Those of [`System::load`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Vec<Problem>> {
        let path = path.as_ref();
        let bytes = read_bounded(path).map_err(|error| vec![unreadable(path, &error)])?;
        read_tuning(&bytes, &path.display().to_string())
    }

    /// Parses text that contains only settings of `[tune]`; `file_name` identifies it in sources and problems.
    ///
    /// # Errors
    /// Those of [`System::from_toml`].
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        read_tuning(text.as_bytes(), file_name)
    }
}

/// Reads at most one byte more than a description may have, so that a longer file is detected.
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
