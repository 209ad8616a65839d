//! Result files. An existing file keeps its content until the new result is complete.
//!
//! The result is written to a temporary file in the same folder. That file then takes the name, owner and mode of the
//! existing file. Some files are written in place instead: pipes, devices, descriptors of a process (`/dev/stdout`),
//! mount points, and files whose folder or owner prevents a replacement.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use isolane_model::visible;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::stop;

/// Interval between attempts to open a FIFO without a reader.
const READER_POLL: Duration = Duration::from_millis(20);

/// Maximum number of symbolic links followed, as in Linux (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Result file that is being written.
pub(crate) struct ResultFile {
    file: File,
    place: Place,
}

/// Place where the text is written, and the steps that remain.
enum Place {
    /// The file itself; later writes append.
    Final,
    /// The file itself, which still has its older content. The first write removes that content.
    Older,
    /// Temporary file to be renamed to `target`.
    Temporary {
        name: TempPath,
        target: PathBuf,
        older: Option<File>,
    },
}

impl ResultFile {
    /// Opens the file. Its content stays until [`Self::write`] or [`Self::finish`]. Waits until a FIFO has a reader.
    ///
    /// # Errors
    /// The file cannot be written; [`io::ErrorKind::Interrupted`] if a signal came before a FIFO had a reader.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let Some(file) = open_older(path)? else {
            let target = resolved(path)?;
            let (file, name) = temporary_next_to(&target, None)?;
            let older = None;
            let place = Place::Temporary {
                name,
                target,
                older,
            };
            return Ok(Self { file, place });
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            let place = Place::Final;
            return Ok(Self { file, place });
        }
        let target = resolved(path)?;
        if is_descriptor(&target) {
            // Text already written through the descriptor stays.
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags | OFlags::APPEND)?;
            let place = Place::Final;
            return Ok(Self { file, place });
        }
        Ok(match temporary_next_to(&target, Some(&metadata)) {
            Ok((new, name)) => Self {
                file: new,
                place: Place::Temporary {
                    name,
                    target,
                    older: Some(file),
                },
            },
            Err(_) => Self {
                file,
                place: Place::Older,
            },
        })
    }

    /// Returns whether the text goes to a temporary file, so that an existing file is still unchanged.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self.place, Place::Temporary { .. })
    }

    /// Appends text, with control characters made visible.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.write_bytes(visible(text).as_bytes())
    }

    /// Appends bytes unchanged.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if matches!(self.place, Place::Older) {
            self.file.set_len(0)?;
            self.place = Place::Final;
        }
        self.file.write_all(bytes)
    }

    /// Replaces the text in the temporary file. Without a temporary file, appends the text.
    pub(crate) fn rewrite(&mut self, text: &str) -> io::Result<()> {
        if self.is_temporary() {
            self.file.rewind()?;
            self.file.set_len(0)?;
        }
        self.write(text)
    }

    /// Replaces the existing file by the new one. Later writes append to the new file.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.place, Place::Final) {
            Place::Final => Ok(()),
            Place::Older => self.file.set_len(0),
            Place::Temporary {
                name,
                target,
                older,
            } => {
                let Err(refused) = name.persist(target) else {
                    return Ok(());
                };
                // A mount point, or another user's file in a sticky folder, cannot be replaced: copy the text into it.
                let Some(mut older) = older else {
                    return Err(refused.error);
                };
                self.file.rewind()?;
                older.set_len(0)?;
                io::copy(&mut self.file, &mut older)?;
                self.file = older;
                Ok(())
            }
        }
    }
}

/// Checks that a result can be written to `path`. Does not change the file.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    // Opening and closing a pipe would tell its reader that the result has ended.
    match is_special(path) {
        true => Ok(()),
        false => ResultFile::create(path).map(drop),
    }
}

/// Returns whether `path` is a pipe, a device or a socket.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Opens an existing file for writing; `None` if there is none. Polls until a FIFO has a reader, because the kernel
/// restarts a blocking open(2) after a signal.
fn open_older(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => {
                let flags = rustix::fs::fcntl_getfl(&file)?;
                rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
                return Ok(Some(File::from(file)));
            }
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NXIO) if !path.metadata()?.file_type().is_fifo() => {
                return Err(Errno::NXIO.into());
            }
            Err(Errno::NXIO) if stop::is_wished() => return Err(io::ErrorKind::Interrupted.into()),
            Err(Errno::NXIO) => thread::sleep(READER_POLL),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Path after following all symbolic links, except links that are descriptors of a process. The file need not exist.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut path = path.to_owned();
    for _ in 0..=MAX_LINKS {
        let Some(name) = path.file_name() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
        let named = folder.join(name);
        match named.read_link() {
            Ok(target) if !is_descriptor(&named) => path = folder.join(target),
            _ => return Ok(named),
        }
    }
    Err(Errno::LOOP.into())
}

/// Returns whether `path` is a descriptor of a process: `/proc/PID/fd/N` (proc_pid_fd(5)).
fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc") && path.parent().is_some_and(|folder| folder.ends_with("fd"))
}

/// Creates a temporary file in the folder of `target`, with the owner and mode of the existing file `older`.
fn temporary_next_to(target: &Path, older: Option<&Metadata>) -> io::Result<(File, TempPath)> {
    let made = tempfile::Builder::new()
        .prefix(".isolane-")
        // The umask removes permissions from this mode.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(target.parent().unwrap_or(Path::new("/")))?;
    let (new, name) = made.into_parts();
    if let Some(older) = older {
        let own = new.metadata()?;
        if (own.uid(), own.gid()) != (older.uid(), older.gid()) {
            fchown(&new, Some(older.uid()), Some(older.gid()))?;
        }
        new.set_permissions(older.permissions())?;
    }
    Ok((new, name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn written(path: &Path, text: &str) {
        let mut file = ResultFile::create(path).expect("a file");
        file.write(text).expect("room");
        file.finish().expect("a place");
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn links_stay_and_the_file_that_they_name_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link, dangling, missing] =
            ["file", "link", "dangling", "missing"].map(|name| folder.path().join(name));
        fs::write(&file, "older").expect("a file");
        symlink("file", &link).expect("a link");
        symlink("missing", &dangling).expect("a link");
        check_writable(&link).expect("it can be written");
        check_writable(&dangling).expect("it can be written");
        assert_eq!(names(folder.path()), ["dangling", "file", "link"]);
        assert_eq!(fs::read_to_string(&file).expect("a file"), "older");
        written(&link, "one");
        written(&dangling, "two");
        assert_eq!(fs::read_link(&link).expect("a link"), Path::new("file"));
        assert_eq!(
            fs::read_link(&dangling).expect("a link"),
            Path::new("missing")
        );
        assert_eq!(fs::read_to_string(&file).expect("a file"), "one");
        assert_eq!(fs::read_to_string(&missing).expect("a file"), "two");
        assert_eq!(
            names(folder.path()),
            ["dangling", "file", "link", "missing"]
        );
    }

    #[test]
    fn a_result_that_is_not_finished_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result");
        fs::write(&path, "older").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("ours");
        let mut file = ResultFile::create(&path).expect("a file");
        file.rewrite("a long first part").expect("room");
        file.rewrite("the whole").expect("room");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "older");
        file.finish().expect("a place");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "the whole");
        file.write(", and more").expect("room");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "the whole, and more");
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["result"]);
    }

    #[test]
    fn a_file_that_cannot_be_renamed_to_is_written_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("result");
        fs::write(&path, "the older one, which is longer").expect("a file");
        let mut file = ResultFile::create(&path).expect("a file");
        file.write("one\n").expect("room");
        // rename(2) to a missing folder fails; this simulates a mount point, for which it fails too.
        let Place::Temporary { target, .. } = &mut file.place else {
            panic!("a temporary file");
        };
        *target = folder.path().join("no folder/result");
        file.finish().expect("the older file takes it");
        file.write("two\n").expect("room");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "one\ntwo\n");
        assert_eq!(names(folder.path()), ["result"]);
    }

    #[test]
    fn a_descriptor_is_written_behind_what_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("output");
        let mut output = File::create(&path).expect("a file");
        output.write_all(b"text\n").expect("room");
        let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&output));
        written(Path::new(&descriptor), "result\n");
        let text = fs::read_to_string(&path).expect("a file");
        assert_eq!(text, "text\nresult\n");
    }

    #[test]
    fn names_that_no_file_can_have_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let round = folder.path().join("round");
        symlink("round", &round).expect("a link");
        let slash = format!("{}/new/", folder.path().display());
        let missing = folder.path().join("no folder/result");
        for path in [&round, Path::new(&slash), &missing, folder.path()] {
            assert!(check_writable(path).is_err(), "{}", path.display());
        }
        assert_eq!(names(folder.path()), ["round"]);
    }
}
