//! Seeded bugs (`lab/fuzz/seeded`): each is inserted into a copy of the workspace, and fuzzing must find it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use isolane_support::workspace::Metadata;
use isolane_support::{Result, command};
use serde::Deserialize;

use super::libfuzzer::Fuzzer;
use super::{Report, SeededReport, folder};

/// Seeded bug: text in a source file, and its replacement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    what: String,
    /// Targets that should find the bug, the most likely one first.
    targets: Vec<String>,
    file: PathBuf,
    find: String,
    replace: String,
}

impl Bug {
    /// Returns the source with the bug.
    fn put_into(&self, source: &str) -> Result<String> {
        match source.matches(&self.find).count() {
            1 => Ok(source.replacen(&self.find, &self.replace, 1)),
            count => Err(format!(
                "{}: the text that the bug replaces occurs {count} times instead of once: {}",
                self.file.display(),
                self.find.trim()
            )
            .into()),
        }
    }
}

/// Returns all bugs with their names, in the order of the names.
fn bugs(home: &Path) -> Result<Vec<(String, Bug)>> {
    let mut bugs = Vec::new();
    for entry in fs::read_dir(home.join("seeded"))? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let bug = toml::from_str(&fs::read_to_string(&path)?);
            bugs.push((
                name,
                bug.map_err(|error| format!("{}: {error}", path.display()))?,
            ));
        }
    }
    bugs.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(bugs)
}

/// Inserts one bug at a time, and fuzzes the bug's targets. Each bug takes at most `time`, all its targets together.
pub(super) fn run(metadata: &Metadata, time: Duration) -> Result<Report> {
    let home = metadata.workspace_root.join("lab/fuzz");
    let copy = folder(metadata).join("seeded/tree");
    copy_workspace(&metadata.workspace_root, &copy)?;
    let mut report = Report::default();
    for (name, bug) in bugs(&home)? {
        let path = copy.join(&bug.file);
        let sound = fs::read_to_string(&path)?;
        fs::write(&path, bug.put_into(&sound)?)?;
        let found = look_for(&name, &bug, metadata, &copy, time);
        fs::write(&path, sound)?;
        let found = found?;
        eprintln!(
            "{name}: {}",
            found.found_by.as_deref().unwrap_or("not found")
        );
        report.seeded.push(found);
    }
    Ok(report)
}

fn look_for(
    name: &str,
    bug: &Bug,
    metadata: &Metadata,
    copy: &Path,
    time: Duration,
) -> Result<SeededReport> {
    let work = folder(metadata).join("seeded");
    let grown = work.join("corpus");
    if grown.exists() {
        // Each search starts from the saved corpus.
        fs::remove_dir_all(grown)?;
    }
    let targets: Vec<&str> = bug.targets.iter().map(String::as_str).collect();
    let fuzzer = Fuzzer::build(&copy.join("lab/fuzz"), &work, &targets)?;
    let mut report = SeededReport {
        bug: name.into(),
        what: bug.what.clone(),
        found_by: None,
        inputs: 0,
        seconds: 0.0,
        message: None,
    };
    for target in &bug.targets {
        let ran = fuzzer.run(target, time / bug.targets.len() as u32)?;
        report.inputs += ran.inputs;
        report.seconds += ran.seconds;
        if ran.finding.is_some() {
            report.found_by = Some(target.clone());
            report.message = ran.message;
            break;
        }
    }
    Ok(report)
}

/// Copies all files that git does not ignore.
fn copy_workspace(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let mut list = Command::new("git");
    list.arg("-C").arg(from).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    for name in String::from_utf8(command::output(&mut list)?)?.split_terminator('\0') {
        let source = from.join(name);
        // git also lists deleted files that are not committed yet.
        if source.is_file() {
            let target = to.join(name);
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            fs::copy(source, target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::TARGETS;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn every_bug_can_be_put_into_the_source_as_it_is() {
        let root = workspace();
        let bugs = bugs(&root.join("lab/fuzz")).expect("bugs that can be read");
        assert!(bugs.len() >= 5, "five are promised");
        for (name, bug) in bugs {
            let source = fs::read_to_string(root.join(&bug.file)).expect("the file of the bug");
            let with_bug = bug.put_into(&source);
            let with_bug = with_bug.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_ne!(with_bug, source, "{name}");
            assert!(
                bug.targets
                    .iter()
                    .all(|target| TARGETS.contains(&target.as_str())),
                "{name}: {:?}",
                bug.targets
            );
        }
    }
}
