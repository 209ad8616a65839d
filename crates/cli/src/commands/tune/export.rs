//! `isolane tune export`: a plan in another tool's format.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use isolane_tune::{Exported, ExportedFile};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, tell, write_text};
use crate::settings::TuneExportSettings;

use super::source::planned;

/// Prints the files, or writes them below a folder.
pub(super) fn run(settings: &TuneExportSettings) -> Result<ExitCode, Failure> {
    let plan = planned(&settings.from)?;
    let exported = isolane_tune::export(&plan, settings.format.into());
    for (id, omission) in &exported.missing {
        tell(format!("note: {id} is left out: {}", omission.reason()));
    }
    match &settings.to {
        Some(folder) => {
            for file in &exported.files {
                write(file, folder)?;
            }
            Ok(ExitCode::Done)
        }
        None => print(&text(&exported)),
    }
}

/// Text of a single file, or of several with their paths.
fn text(exported: &Exported) -> String {
    match exported.files.as_slice() {
        [only] => only.text.clone(),
        files => {
            let file = |file: &ExportedFile| format!("#### {}\n{}\n", file.path, file.text);
            files.iter().map(file).collect()
        }
    }
}

fn write(file: &ExportedFile, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(file.path.trim_start_matches('/'));
    let failed = |error: io::Error| not_written(file, folder, &error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    write_text(&file.text, &path)?;
    let mode = if file.is_executable { 0o755 } else { 0o644 };
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(failed)
}

fn not_written(file: &ExportedFile, folder: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ExitCode::MachineForbids,
        format!("{} cannot be written below {}", file.path, folder.display()),
        error.to_string(),
    )
}
