//! Results for programs: one place that knows where `--json FILE` goes.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;

use serde::Serialize;

use crate::Result;

/// Writes a result to a file, or to standard output if that is `-`.
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
