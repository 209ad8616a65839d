//! Files on disk that isolane owns whole, and their folders.
//!
//! A file is never half written, whenever the process is killed: the text goes to a temporary file, which is synced
//! before it is renamed; then the folder is synced.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::limits::MAX_DOCUMENT_BYTES;
use crate::setting::SettingError;

/// Modes of new files and folders, independent of the umask: readable by all, writable by the owner.
const NEW_FILE_MODE: u32 = 0o644;
const NEW_FOLDER_MODE: u32 = 0o755;

/// Text of a file; `None` if it does not exist.
pub(super) fn read(path: &str) -> Result<Option<String>, SettingError> {
    let path = check(path)?;
    // Follows no link, and does not wait for the writer of a FIFO.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => return Err(not_plain()),
        file => file.map_err(of_system)?,
    };
    let metadata = file.metadata().map_err(of_system)?;
    if !metadata.is_file() {
        return Err(not_plain());
    }
    if metadata.len() > MAX_DOCUMENT_BYTES {
        return Err(SettingError::System(String::from(
            "it is longer than any file of ours, and is not touched",
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(of_system)?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| SettingError::System(String::from("it holds no text, and is not touched")))
}

/// Writes a file, replacing an existing one and keeping its mode and owner.
pub(super) fn write(path: &str, text: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    let put = || -> io::Result<()> {
        let beside = beside(path);
        // A killed process may have left one. The temporary file is always created anew, so that no existing file or
        // link target is written to.
        remove_if_there(&beside)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        let mut mode = NEW_FILE_MODE;
        if let Ok(before) = fs::symlink_metadata(path) {
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
            mode = before.mode() & 0o7777;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_folder_of(path)
    };
    put().map_err(of_system)
}

/// Removes a file, and the temporary file of an interrupted write.
pub(super) fn remove(path: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    let take = || -> io::Result<()> {
        remove_if_there(path)?;
        remove_if_there(&beside(path))?;
        match sync_folder_of(path) {
            // The folder is already gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    };
    take().map_err(of_system)
}

pub(super) fn is_folder(path: &str) -> Result<bool, SettingError> {
    match fs::metadata(check(path)?) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(SettingError::System(String::from("it is no folder"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(of_system(error)),
    }
}

pub(super) fn make_folder(path: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(NEW_FOLDER_MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
    .and_then(|()| sync_folder_of(path))
    .map_err(of_system)
}

/// Removes a folder, if it is empty.
pub(super) fn remove_folder(path: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(of_system(error)),
        Ok(()) => sync_folder_of(path).map_err(of_system),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn not_plain() -> SettingError {
    SettingError::System(String::from("it is no plain file, and is not touched"))
}

/// Path of the temporary file.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.isolane-new"))
}

/// Syncs the entries of the folder that contains `path`.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Accepts absolute paths without `..` outside /sys and /proc, whatever the journal contains.
fn check(path: &str) -> Result<&Path, SettingError> {
    let is_plain = path.starts_with('/') && !path.split('/').any(|part| part == "..");
    let is_kernels = path.starts_with("/sys/") || path.starts_with("/proc/");
    match is_plain && !is_kernels {
        true => Ok(Path::new(path)),
        false => Err(SettingError::Refused(String::from(
            "it is not the full name of a file on disk",
        ))),
    }
}

fn of_system(error: io::Error) -> SettingError {
    SettingError::of_system(&error, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_keeps_its_mode() {
        let folder = std::env::temp_dir().join(format!("isolane-document-{}", std::process::id()));
        let folder = folder.to_str().expect("UTF-8");
        let path = format!("{folder}/isolane.conf");
        assert_eq!(is_folder(folder), Ok(false));
        make_folder(folder).expect("a temporary folder");
        assert_eq!(read(&path), Ok(None));
        write(&path, "a\n").expect("it can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
        write(&path, "b\n").expect("it can be written");
        assert_eq!(read(&path), Ok(Some(String::from("b\n"))));
        let mode = fs::metadata(&path).expect("it exists").mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(remove_folder(folder).is_err(), "something is in it");
        // Temporary file of a killed process.
        fs::write(beside(Path::new(&path)), "c").expect("ours");
        remove(&path).expect("it can be removed");
        remove(&path).expect("again");
        remove_folder(folder).expect("nothing is left in it");
        remove_folder(folder).expect("again");
    }

    #[test]
    fn links_are_neither_read_nor_written_through() {
        let folder = std::env::temp_dir().join(format!("isolane-links-{}", std::process::id()));
        fs::create_dir(&folder).expect("a temporary folder");
        let (path, other) = (folder.join("isolane.conf"), folder.join("other"));
        fs::write(&other, "theirs").expect("ours");
        let name = path.to_str().expect("UTF-8");
        let link = |at: &Path| std::os::unix::fs::symlink(&other, at).expect("a temporary folder");
        link(&path);
        assert_eq!(read(name), Err(not_plain()));
        fs::remove_file(&path).expect("ours");
        link(&beside(&path));
        write(name, "ours").expect("it can be written");
        assert_eq!(read(name), Ok(Some(String::from("ours"))));
        assert_eq!(fs::read_to_string(&other).expect("ours"), "theirs");
        assert!(fs::symlink_metadata(&path).expect("it exists").is_file());
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn what_is_no_plain_file_is_not_touched() {
        assert!(matches!(read("/etc"), Err(SettingError::System(_))));
        assert!(matches!(
            read("/proc/version"),
            Err(SettingError::Refused(_))
        ));
        assert!(matches!(write("a", ""), Err(SettingError::Refused(_))));
    }
}
