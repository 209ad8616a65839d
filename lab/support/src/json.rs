//! Output of results: a text, and JSON in the file of `--json FILE`.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use isolane_bench::experiment::sha256;
use isolane_bench::report::{Environment, origin};
use serde::Serialize;

use crate::Result;

/// Writes a result to `file`; `-` is standard output.
pub fn write(result: &impl Serialize, file: &Path) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(result)?;
    text.push(b'\n');
    if file == Path::new("-") {
        stdout().write_all(&text)?;
    } else {
        File::create(file)
            .and_then(|mut opened| opened.write_all(&text))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    Ok(())
}

/// Prints a result with its origin, and writes it as JSON to the requested file. The text goes to standard error if the
/// JSON goes to standard output.
pub fn publish(
    (title, about): (&str, &str),
    (began, scenario): (&Environment, &str),
    text: &str,
    result: &impl Serialize,
    file: Option<&PathBuf>,
) -> Result<()> {
    let origin = origin(title, [began], &sha256(scenario));
    let text = format!("{origin}\n{}\n\n{text}", about.trim());
    match file {
        Some(file) if file == Path::new("-") => eprint!("{text}"),
        _ => print!("{text}"),
    }
    file.map_or(Ok(()), |file| write(result, file))
}
