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
        file => file.map_err(from_io)?,
    };
    let metadata = file.metadata().map_err(from_io)?;
    if !metadata.is_file() {
        return Err(not_plain());
    }
    if metadata.len() > MAX_DOCUMENT_BYTES {
        return Err(SettingError::System(String::from(
            "it is longer than any file that isolane writes",
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_DOCUMENT_BYTES)
        .read_to_end(&mut bytes)
        .map_err(from_io)?;
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| SettingError::System(String::from("it is not a text file")))
}

/// Writes a file. It replaces an existing one atomically and keeps its mode and owner; a symbolic link of this name is
/// replaced too, and its target stays as it is.
pub(super) fn write(path: &str, text: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    let put = || -> io::Result<()> {
        let temporary_path = temporary_path(path);
        // A killed process may have left a temporary file. The file is always created anew, so that no existing file or
        // link target is written to.
        remove_if_there(&temporary_path)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary_path)?;
        let mut mode = NEW_FILE_MODE;
        // A symbolic link is replaced, not followed. Its mode, 0777, would make the new file writable by everyone.
        if let Some(before) = fs::symlink_metadata(path).ok().filter(|it| it.is_file()) {
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
            mode = before.mode() & 0o7777;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary_path, path)?;
        sync_folder_of(path)
    };
    put().map_err(from_io)
}

/// Removes a file, and the temporary file of an interrupted write.
pub(super) fn remove(path: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    let take = || -> io::Result<()> {
        remove_if_there(path)?;
        remove_if_there(&temporary_path(path))?;
        match sync_folder_of(path) {
            // The folder is already gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    };
    take().map_err(from_io)
}

pub(super) fn is_folder(path: &str) -> Result<bool, SettingError> {
    match fs::metadata(check(path)?) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(SettingError::System(String::from("it is not a folder"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(from_io(error)),
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
    .map_err(from_io)
}

/// Removes a folder, if it is empty.
pub(super) fn remove_folder(path: &str) -> Result<(), SettingError> {
    let path = check(path)?;
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(from_io(error)),
        Ok(()) => sync_folder_of(path).map_err(from_io),
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn not_plain() -> SettingError {
    SettingError::System(String::from("it is not a regular file"))
}

/// Path of the temporary file.
fn temporary_path(path: &Path) -> PathBuf {
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
            "it is not an absolute path of a file on disk",
        ))),
    }
}

fn from_io(error: io::Error) -> SettingError {
    SettingError::from_io(&error, None)
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
        fs::write(temporary_path(Path::new(&path)), "c").expect("ours");
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
        link(&temporary_path(&path));
        write(name, "ours").expect("it can be written");
        assert_eq!(read(name), Ok(Some(String::from("ours"))));
        assert_eq!(fs::read_to_string(&other).expect("ours"), "theirs");
        assert!(fs::symlink_metadata(&path).expect("it exists").is_file());
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn a_symbolic_link_is_replaced_and_its_target_stays() {
        let folder = std::env::temp_dir().join(format!("isolane-replace-{}", std::process::id()));
        fs::create_dir(&folder).expect("a temporary folder");
        let (path, other) = (folder.join("isolane.conf"), folder.join("other"));
        fs::write(&other, "theirs").expect("ours");
        std::os::unix::fs::symlink(&other, &path).expect("a temporary folder");
        let name = path.to_str().expect("UTF-8");
        write(name, "ours").expect("it can be written");
        assert_eq!(fs::read_to_string(&other).expect("ours"), "theirs");
        let metadata = fs::symlink_metadata(&path).expect("it exists");
        assert!(metadata.is_file(), "the link is gone");
        assert_eq!(
            metadata.mode() & 0o7777,
            NEW_FILE_MODE,
            "not the link's mode"
        );
        assert_eq!(read(name), Ok(Some(String::from("ours"))));
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
