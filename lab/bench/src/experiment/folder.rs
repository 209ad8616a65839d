//! Folder of a measurement: its plan and each finished run.
//!
//! `manifest.json` states the plan, and `runs.jsonl` has a line for each finished run. A line is written whole and
//! synchronised, so a killed measurement loses at most the run that was being made. A last line without its end is
//! ignored, and cut off when the measurement is resumed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Folder of a measurement.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    runs: File,
}

impl Folder {
    /// Creates the folder of a new measurement.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the path exists.
    pub fn create(path: &Path, manifest: &impl Serialize) -> io::Result<Folder> {
        fs::create_dir(path)?;
        let runs = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(runs_file(path))?;
        let text = serde_json::to_vec_pretty(manifest)?;
        // Only a folder with a manifest can be resumed, so it is written last.
        let temporary = path.join("manifest.json.new");
        write_synchronised(&temporary, &text)?;
        fs::rename(temporary, path.join("manifest.json"))?;
        Ok(Folder {
            path: path.to_owned(),
            runs,
        })
    }

    /// Opens the folder of an earlier measurement, to add the runs that are missing.
    ///
    /// # Errors
    /// An error of the system, or [`InvalidData`](io::ErrorKind::InvalidData) if a file is not of this version.
    pub fn resume<M: DeserializeOwned, R: DeserializeOwned>(
        path: &Path,
    ) -> io::Result<(Folder, M, Vec<R>)> {
        let (manifest, runs) = Folder::read(path)?;
        let name = runs_file(path);
        let text = fs::read(&name)?;
        let file = OpenOptions::new().append(true).open(&name)?;
        file.set_len(whole_lines(&text).len() as u64)?;
        let folder = Folder {
            path: path.to_owned(),
            runs: file,
        };
        Ok((folder, manifest, runs))
    }

    /// Reads the manifest and the finished runs of a measurement.
    ///
    /// # Errors
    /// An error of the system, or [`InvalidData`](io::ErrorKind::InvalidData) if a file is not of this version.
    pub fn read<M: DeserializeOwned, R: DeserializeOwned>(path: &Path) -> io::Result<(M, Vec<R>)> {
        let manifest = serde_json::from_slice(&fs::read(path.join("manifest.json"))?)?;
        let text = fs::read(runs_file(path))?;
        let lines = whole_lines(&text).split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let runs = lines.map(serde_json::from_slice);
        Ok((manifest, runs.collect::<Result<_, _>>()?))
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
        let mut line = serde_json::to_vec(run)?;
        line.push(b'\n');
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
        let temporary = self.path.join("report.json.new");
        write_synchronised(&temporary, &serde_json::to_vec_pretty(report)?)?;
        fs::rename(temporary, self.path.join("report.json"))
    }
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
    use std::io::ErrorKind;

    use super::*;

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
            Folder::resume::<String, u32>(&path).expect("a measurement");
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
}
