//! Folder of a measurement: its plan and each finished run.
//!
//! `manifest.json` states the plan, and `runs.jsonl` has a line for each finished run. A line is written whole and
//! synchronised, so a killed measurement loses at most the run that was being made. A last line without its end is
//! ignored, and cut off when the measurement is resumed. A measuring process has an exclusive lock on `runs.jsonl`
//! (`flock`), so no second process adds runs to the same folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Folder of a measurement.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked file `runs.jsonl`.
    runs: File,
}

impl Folder {
    /// Creates the folder of a new measurement.
    ///
    /// # Errors
    /// [`AlreadyExists`](ErrorKind::AlreadyExists) if the path exists.
    pub fn create(path: &Path, manifest: &impl Serialize) -> io::Result<Folder> {
        fs::create_dir(path)?;
        Folder::begin(path, manifest)
    }

    /// Returns whether the path is a folder whose measurement was killed before it had a manifest. [`Folder::begin`]
    /// uses it again.
    pub fn is_unbegun(path: &Path) -> bool {
        let known = ["runs.jsonl", "manifest.json.new"];
        let is_known = |entry: fs::DirEntry| known.iter().any(|name| entry.file_name() == *name);
        let is_empty = |file: &Path| fs::metadata(file).map_or(true, |file| file.len() == 0);
        let Ok(mut entries) = fs::read_dir(path) else {
            return false;
        };
        entries.all(|entry| entry.is_ok_and(is_known)) && is_empty(&runs_file(path))
    }

    /// Begins a measurement in a folder that exists.
    ///
    /// # Errors
    /// The error of the system, or [`WouldBlock`](ErrorKind::WouldBlock) if another process measures in this folder.
    pub fn begin(path: &Path, manifest: &impl Serialize) -> io::Result<Folder> {
        let folder = Folder {
            path: path.to_owned(),
            runs: locked(&runs_file(path), true)?,
        };
        // Only a folder with a manifest has runs, so it is written last.
        folder.set_manifest(manifest)?;
        Ok(folder)
    }

    /// Opens the folder of an earlier measurement, to add the runs that are missing. `keep` returns whether a run
    /// counts; the lines of the others are removed.
    ///
    /// # Errors
    /// An error of the system, [`WouldBlock`](ErrorKind::WouldBlock) if another process measures in this folder, or
    /// [`InvalidData`](ErrorKind::InvalidData) if a file is not of this version.
    pub fn resume<M: DeserializeOwned, R: Serialize + DeserializeOwned>(
        path: &Path,
        keep: impl FnMut(&R) -> bool,
    ) -> io::Result<(Folder, M, Vec<R>)> {
        let name = runs_file(path);
        let mut file = locked(&name, false)?;
        let (manifest, mut runs) = Folder::read::<M, R>(path)?;
        let all = runs.len();
        runs.retain(keep);
        if runs.len() == all {
            file.set_len(whole_lines(&fs::read(&name)?).len() as u64)?;
        } else {
            // The earlier result has runs that no longer count.
            let _ = fs::remove_file(path.join("report.json"));
            let mut lines = Vec::new();
            for run in &runs {
                lines.extend(line(run)?);
            }
            let new = path.join("runs.jsonl.new");
            write_synchronised(&new, &lines)?;
            let kept = locked(&new, false)?;
            fs::rename(new, name)?;
            file = kept;
        }
        let folder = Folder {
            path: path.to_owned(),
            runs: file,
        };
        Ok((folder, manifest, runs))
    }

    /// Reads the manifest and the finished runs of a measurement.
    ///
    /// # Errors
    /// An error of the system, or [`InvalidData`](ErrorKind::InvalidData) if a file is not of this version.
    pub fn read<M: DeserializeOwned, R: DeserializeOwned>(path: &Path) -> io::Result<(M, Vec<R>)> {
        let manifest = serde_json::from_slice(&fs::read(path.join("manifest.json"))?)?;
        let text = fs::read(runs_file(path))?;
        let lines = whole_lines(&text).split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let runs = lines.map(serde_json::from_slice);
        Ok((manifest, runs.collect::<Result<_, _>>()?))
    }

    /// Replaces the manifest.
    ///
    /// # Errors
    /// The error of the system.
    pub fn set_manifest(&self, manifest: &impl Serialize) -> io::Result<()> {
        self.replace("manifest.json", manifest)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a finished run.
    ///
    /// # Errors
    /// The error of the system.
    pub fn add(&mut self, run: &impl Serialize) -> io::Result<()> {
        let line = line(run)?;
        let before = self.runs.metadata()?.len();
        let written = self.runs.write_all(&line);
        if written.is_err() {
            // A part of a line would spoil the next one.
            let _ = self.runs.set_len(before);
        }
        written.and_then(|()| self.runs.sync_data())
    }

    /// Writes the result of the whole measurement as `report.json`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn finish(&self, report: &impl Serialize) -> io::Result<()> {
        self.replace("report.json", report)
    }

    /// Replaces a file of the folder, which is whole at any time.
    fn replace(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let temporary = self.path.join(format!("{name}.new"));
        write_synchronised(&temporary, &serde_json::to_vec_pretty(value)?)?;
        fs::rename(temporary, self.path.join(name))
    }
}

/// Opens a file of lines for appending, with an exclusive lock.
fn locked(file: &Path, is_new: bool) -> io::Result<File> {
    let opened = OpenOptions::new().append(true).create(is_new).open(file)?;
    let refused = || {
        io::Error::new(
            ErrorKind::WouldBlock,
            "another process measures in this folder",
        )
    };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(refused()),
        Err(error) => return Err(error.into()),
    }
    // Another process may have replaced the file before this lock.
    let is_same = fs::metadata(file)?.ino() == opened.metadata()?.ino();
    is_same.then_some(opened).ok_or_else(refused)
}

/// Line of a run.
fn line(run: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(run)?;
    line.push(b'\n');
    Ok(line)
}

fn runs_file(path: &Path) -> PathBuf {
    path.join("runs.jsonl")
}

fn write_synchronised(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Bytes up to the end of the last whole line.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    &text[..end.map_or(0, |end| end + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    type Opened = io::Result<(Folder, String, Vec<u32>)>;

    #[test]
    fn a_torn_line_is_cut_off_and_its_run_is_missing() {
        let outer = tempfile::tempdir().expect("a folder");
        let path = outer.path().join("result");
        let mut folder = Folder::create(&path, &"plan").expect("it is new");
        for number in [1, 2] {
            folder.add(&number).expect("room");
        }
        drop(folder);
        let mut file = OpenOptions::new().append(true).open(runs_file(&path));
        let torn = file.as_mut().expect("it is there").write_all(b"[3");
        torn.expect("room");
        let again = Folder::create(&path, &"plan").expect_err("it exists");
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);

        let (mut folder, manifest, runs) =
            Folder::resume::<String, u32>(&path, |_| true).expect("a measurement");
        assert_eq!((manifest.as_str(), runs), ("plan", vec![1, 2]));
        folder.add(&3).expect("room");
        let (_, runs) = Folder::read::<String, u32>(&path).expect("a measurement");
        assert_eq!(runs, [1, 2, 3]);
    }

    #[test]
    fn a_folder_that_is_no_measurement_is_an_error() {
        let outer = tempfile::tempdir().expect("a folder");
        assert!(Folder::read::<String, u32>(outer.path()).is_err());
        let path = outer.path().join("result");
        let mut folder = Folder::create(&path, &"plan").expect("it is new");
        folder.add(&"not a number").expect("room");
        let error = Folder::read::<String, u32>(&path).expect_err("another version");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_second_process_is_refused_while_the_first_one_measures() {
        let outer = tempfile::tempdir().expect("a folder");
        let path = outer.path().join("result");
        let mut folder = Folder::create(&path, &"plan").expect("it is new");
        folder.add(&1).expect("room");
        let second: Opened = Folder::resume(&path, |_| true);
        assert_eq!(second.expect_err("locked").kind(), ErrorKind::WouldBlock);
        let third = Folder::begin(&path, &"plan").expect_err("locked");
        assert_eq!(third.kind(), ErrorKind::WouldBlock);
        drop(folder);
        let resumed: Opened = Folder::resume(&path, |_| false);
        let (_folder, _, runs) = resumed.expect("the first process has ended");
        assert!(runs.is_empty());
        let other: Opened = Folder::resume(&path, |_| true);
        let error = other.expect_err("the new file is locked too");
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn the_lines_of_runs_that_do_not_count_are_removed() {
        let outer = tempfile::tempdir().expect("a folder");
        let path = outer.path().join("result");
        let mut folder = Folder::create(&path, &"plan").expect("it is new");
        for number in [1, 2, 3] {
            folder.add(&number).expect("room");
        }
        folder.finish(&"all").expect("room");
        drop(folder);
        let resumed: Opened = Folder::resume(&path, |number| *number != 2);
        let (mut folder, _, runs) = resumed.expect("a measurement");
        assert_eq!(runs, [1, 3]);
        assert!(!path.join("report.json").exists(), "it has run 2");
        folder.add(&2).expect("room");
        let (_, runs) = Folder::read::<String, u32>(&path).expect("a measurement");
        assert_eq!(runs, [1, 3, 2]);
    }

    #[test]
    fn a_folder_without_a_manifest_and_without_runs_is_used_again() {
        let outer = tempfile::tempdir().expect("a folder");
        let path = outer.path();
        assert!(Folder::is_unbegun(path), "killed after mkdir");
        fs::write(runs_file(path), "").expect("room");
        fs::write(path.join("manifest.json.new"), "{").expect("room");
        assert!(Folder::is_unbegun(path), "killed before the manifest");
        let folder = Folder::begin(path, &"plan").expect("it has not begun");
        assert!(!Folder::is_unbegun(path), "it has a manifest");
        drop(folder);
        fs::remove_file(path.join("manifest.json")).expect("it is there");
        fs::write(runs_file(path), "1\n").expect("room");
        assert!(!Folder::is_unbegun(path), "it has runs");
        fs::write(runs_file(path), "").expect("room");
        fs::write(path.join("thesis.tex"), "").expect("room");
        assert!(!Folder::is_unbegun(path), "it is another folder");
        assert!(!Folder::is_unbegun(&path.join("none")));
    }
}
