//! JSON output of results to the file of `--json FILE`.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;

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
