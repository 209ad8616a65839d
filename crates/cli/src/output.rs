//! Writing to the person: results to standard output, everything else to standard error.
//!
//! All text leaves through here, and [`visible`] is applied here alone: names and texts of files, peers and plans
//! cannot command the terminal.

use std::fmt::Display;
use std::fs::{File, Permissions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::builder::StyledStr;
use isolane_model::visible;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tempfile::TempPath;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::stop;
use crate::values::Destination;

/// Between two looks whether a FIFO has a reader.
const READER_POLL: Duration = Duration::from_millis(20);

/// Writes a result to standard output.
///
/// # Errors
/// The output cannot be written, a full disk for example; or its reader has seen enough and closed
/// the pipe ([`Failure::OutputClosed`]), which ends the command without a word.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    write_out(&visible(text))
}

/// Writes help to standard output, styled if that is a terminal. Help is text of this program alone.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_help(help: &StyledStr) -> Result<ExitCode, Failure> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match io::stdout().is_terminal() && !is_plain {
        true => write_out(&help.ansi().to_string()),
        false => write_out(&help.to_string()),
    }
}

fn write_out(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::OutputClosed),
        Err(error) => Err(Failure::new(
            ExitCode::MachineForbids,
            "the result could not be written",
            error.to_string(),
        )),
    }
}

/// Writes a result as JSON to where it was asked for.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn print_json(
    result: &impl serde::Serialize,
    destination: &Destination,
) -> Result<ExitCode, Failure> {
    let failed = |why: String| not_written(destination, why);
    let mut text =
        serde_json::to_string_pretty(result).map_err(|error| failed(error.to_string()))?;
    text.push('\n');
    match destination {
        Destination::StandardOutput => print(&text),
        Destination::File(path) => write_text(&text, path),
    }
}

/// Writes text to a file, in place of what it held. A failure leaves that as it is.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn write_text(text: &str, path: &Path) -> Result<ExitCode, Failure> {
    let written = NewFile::create(path).and_then(|mut file| {
        file.write(text)?;
        file.take_place()
    });
    match written {
        Ok(()) => Ok(ExitCode::Done),
        Err(error) => Err(not_written(
            &Destination::File(path.to_owned()),
            error.to_string(),
        )),
    }
}

/// Makes sure, before the work, that a result can be written to where it was asked for. What the
/// file holds stays.
///
/// # Errors
/// It cannot be written there.
pub(crate) fn check_writable(destination: &Destination) -> Result<(), Failure> {
    match destination {
        Destination::StandardOutput => Ok(()),
        // Opening a pipe and closing it again would tell its reader that nothing comes.
        Destination::File(path) if is_special(path) => Ok(()),
        Destination::File(path) => {
            let is_new = !path.exists();
            let opened = File::options().create(true).append(true).open(path);
            opened.map_err(|error| not_written(destination, error.to_string()))?;
            if is_new {
                // A command that fails before its end leaves no empty file; if this one stays, the
                // result takes its place.
                let _ = std::fs::remove_file(path);
            }
            Ok(())
        }
    }
}

/// Whether it is a pipe, a device or a socket.
pub(crate) fn is_special(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Tells the person something beside the result.
pub(crate) fn tell(what: impl Display) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}", visible(&what.to_string()));
}

/// So many of something: "1 reader", "2 readers".
pub(crate) fn count_of(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// JSON as it is made, a line a value.
pub(crate) enum JsonLines {
    StandardOutput,
    File(NewFile, Destination),
}

impl JsonLines {
    /// Begins a file. An older one keeps its place until the first line is written.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn new(destination: &Destination) -> Result<Self, Failure> {
        match destination {
            Destination::StandardOutput => Ok(Self::StandardOutput),
            Destination::File(path) => NewFile::create(path)
                .map(|file| Self::File(file, destination.clone()))
                .map_err(|error| not_written(destination, error.to_string())),
        }
    }

    /// Writes one value, at once: a stream has readers.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write(&mut self, value: &impl serde::Serialize) -> Result<ExitCode, Failure> {
        let failed = |why: String| not_written(&Destination::StandardOutput, why);
        let mut line = serde_json::to_string(value).map_err(|error| failed(error.to_string()))?;
        line.push('\n');
        match self {
            Self::StandardOutput => print(&line),
            Self::File(file, destination) => file
                .write(&line)
                .and_then(|()| file.take_place())
                .map(|()| ExitCode::Done)
                .map_err(|error| not_written(destination, error.to_string())),
        }
    }

    /// Ends the lines. A file without lines takes its place, too.
    ///
    /// # Errors
    /// It cannot be put there.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Self::StandardOutput => Ok(()),
            Self::File(file, destination) => file
                .take_place()
                .map_err(|error| not_written(destination, error.to_string())),
        }
    }
}

/// A file that is written beside the one whose place it takes, so that a failure leaves the older one as it is. What
/// cannot be replaced is written in place: pipes and devices, and files in folders that this user may not change.
pub(crate) struct NewFile {
    file: File,
    /// The name it has so far, and the one it is to have.
    beside: Option<(TempPath, PathBuf)>,
}

impl NewFile {
    fn create(path: &Path) -> io::Result<Self> {
        let in_place = |file| Self { file, beside: None };
        if is_special(path) {
            return open_special(path).map(in_place);
        }
        // What a link names is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mode = path.metadata().map(|older| older.permissions());
        let made = tempfile::Builder::new()
            .prefix(".isolane-")
            // The umask applies.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")));
        match made {
            Ok(made) => {
                let (file, beside) = made.into_parts();
                if let Ok(mode) = mode {
                    file.set_permissions(mode)?;
                }
                let beside = Some((beside, path));
                Ok(Self { file, beside })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                File::create(&path).map(in_place)
            }
            Err(error) => Err(error),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(visible(text).as_bytes())?;
        self.file.flush()
    }

    /// Takes the place of the older file, if it has not yet.
    fn take_place(&mut self) -> io::Result<()> {
        match self.beside.take() {
            Some((beside, path)) => beside.persist(path).map_err(|error| error.error),
            None => Ok(()),
        }
    }
}

/// Opens a pipe or device for writing. A FIFO that nobody reads is waited for until a signal comes: open(2) itself
/// would go on waiting.
fn open_special(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    loop {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => {
                let flags = rustix::fs::fcntl_getfl(&file)?;
                rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
                return Ok(File::from(file));
            }
            Err(Errno::NXIO) if !stop::is_wished() => thread::sleep(READER_POLL),
            Err(Errno::NXIO) => return Err(io::Error::other("no program reads it")),
            Err(error) => return Err(error.into()),
        }
    }
}

fn not_written(destination: &Destination, why: String) -> Failure {
    Failure::new(
        ExitCode::MachineForbids,
        format!("the result cannot be written to {destination}"),
        why,
    )
    .with_remedy("name a file in a directory that exists and this user may write to, or - for standard output")
}
