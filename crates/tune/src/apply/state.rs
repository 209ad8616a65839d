//! Journal folder, and the lock that one `tune` process holds.
//!
//! Root writes the journal's values to the machine. So the folder and its files must belong to root or to this user,
//! and be writable by nobody else. Symbolic links are not followed. The checked folder is held by a descriptor, and its
//! files are opened relative to this descriptor, so that replacing the folder has no effect.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FlockOperation, Mode, OFlags, flock, mkdirat, open, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::StateError;

/// Mode of the folder, independent of the umask.
const FOLDER_MODE: u32 = 0o700;
/// Mode of its files, independent of the umask.
const FILE_MODE: u32 = 0o600;

pub(super) const JOURNAL: &str = "tune.journal";
const LOCK: &str = "tune.lock";

/// Journal folder, held by a descriptor.
pub(crate) struct State {
    folder: File,
    /// Path for messages.
    path: PathBuf,
}

/// Lock that keeps any other `tune` from changing settings. The kernel releases it when the process ends.
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its end")] File);

impl State {
    /// Opens the folder, creating it if needed. A new folder is synced to disk, so that a crash does not lose its
    /// files.
    pub(crate) fn make(folder: &Path) -> Result<Self, StateError> {
        make(folder).map_err(StateError::of(folder))?;
        let state = Self::find(folder)?;
        state.ok_or_else(|| StateError::of(folder)(io::ErrorKind::NotFound.into()))
    }

    /// Opens the folder; `None` if it does not exist. Fails if it is unreadable, a symbolic link or not a folder, or if
    /// others can write to it.
    pub(super) fn find(folder: &Path) -> Result<Option<Self>, StateError> {
        // With a trailing slash, a link would be followed.
        let path: PathBuf = folder.components().collect();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32)
            .open(&path);
        let checked = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(unsafe_state(
                "it is a symbolic link, or not a folder".to_owned(),
            )),
            opened => opened.and_then(|opened| {
                check_owner(&opened.metadata()?)?;
                Ok(opened)
            }),
        };
        let folder = checked.map_err(StateError::of(folder))?;
        Ok(Some(Self { folder, path }))
    }

    /// Path of a file in the folder, for messages: files are opened by name.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.path_of(JOURNAL)
    }

    /// Takes the lock, or fails at once: two concurrent plans would undo each other. The lock file is never removed,
    /// because a lock on a removed file excludes no other process.
    pub(crate) fn lock(&self) -> Result<Lock, StateError> {
        let path = self.path_of(LOCK);
        let failed = StateError::of(&path);
        let file = self
            .open(LOCK, OFlags::RDWR | OFlags::CREATE)
            .map_err(&failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(error.into()))?;
        Ok(Lock(file))
    }

    /// Opens or creates a file that only root and this user can have written. Fails with
    /// [`io::ErrorKind::InvalidInput`] for a symbolic link, for anything but a regular file, or if others can write to
    /// it.
    pub(super) fn open(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // NONBLOCK also avoids waiting for the writer of a FIFO.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.folder, name, flags, Mode::from_raw_mode(FILE_MODE));
        let file = match opened {
            Err(Errno::LOOP) => return Err(unsafe_state("it is a symbolic link".to_owned())),
            opened => File::from(opened?),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(unsafe_state("it is not a regular file".to_owned()));
        }
        check_owner(&metadata)?;
        Ok(file)
    }

    /// Returns whether `name` refers to `file`. Fails with [`io::ErrorKind::NotFound`] if no file has this name.
    pub(super) fn is_named(&self, file: &File, name: &str) -> io::Result<bool> {
        let own = file.metadata()?;
        let named = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok((own.dev(), own.ino()) == (named.st_dev, named.st_ino))
    }

    pub(super) fn is_free(&self, name: &str) -> bool {
        let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!(found, Err(Errno::NOENT))
    }

    /// Renames a file, replacing any file of the new name.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Syncs the folder's entries to disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        folder_at(&self.folder, Path::new("."))?.sync_all()
    }
}

/// Creates a folder and its missing parents, and syncs each to disk.
fn make(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let mut above = folder.ancestors();
    let there = above.find(|path| path.exists()).unwrap_or(Path::new("/"));
    let missing = folder.strip_prefix(there).unwrap_or(Path::new(""));
    // Anything but a folder, such as a FIFO, fails at once.
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = File::from(open(there, flags, Mode::empty())?);
    for name in missing {
        let name = Path::new(name);
        let mode = Mode::from_raw_mode(FOLDER_MODE);
        let is_made = match mkdirat(&at, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let made = folder_at(&at, name)?;
        if is_made {
            made.set_permissions(Permissions::from_mode(FOLDER_MODE))?;
            at.sync_all()?;
        }
        at = made;
    }
    Ok(())
}

fn folder_at(folder: &File, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?.into())
}

/// Fails if the owner is neither root nor this user, or if others can write.
fn check_owner(metadata: &Metadata) -> io::Result<()> {
    let (owner, own) = (metadata.uid(), geteuid().as_raw());
    if owner != 0 && owner != own {
        return Err(unsafe_state(format!(
            "it belongs to user {owner}, who could have changed it"
        )));
    }
    let mode = metadata.mode() & 0o7777;
    match mode & 0o022 {
        0 => Ok(()),
        _ => Err(unsafe_state(format!(
            "others can write to it (its mode is {mode:04o})"
        ))),
    }
}

fn unsafe_state(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, mkfifoat};

    use super::*;
    use crate::test_folder::Folder;

    fn mode_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    fn folder_and_lock_are_for_their_owner_alone() {
        let folder = Folder::new();
        let path = folder.0.join("a/b");
        let state = State::make(&path).expect("a temporary folder");
        let lock = state.lock();
        assert!(lock.is_ok());
        assert_eq!(mode_of(&path), 0o700);
        assert_eq!(mode_of(&path.join("tune.lock")), 0o600);
        set_mode(&path, 0o777);
        let refused = State::find(&path).err().expect("others can write to it");
        assert!(
            refused.to_string().contains("its mode is 0777"),
            "{refused}"
        );
        State::make(&path).err().expect("nor is it mended unasked");
    }

    #[test]
    fn no_link_is_followed_and_a_fifo_is_not_waited_for() {
        let folder = Folder::new();
        let state = State::make(&folder.0).expect("a temporary folder");
        let (lock, victim) = (folder.0.join("tune.lock"), folder.0.join("victim"));
        fs::write(&victim, "theirs").expect("ours");
        symlink(&victim, &lock).expect("ours");
        let refused = state.lock().err().expect("it is a link");
        assert!(refused.to_string().contains("symbolic link"), "{refused}");
        assert_eq!(fs::read_to_string(&victim).expect("ours"), "theirs");
        fs::remove_file(&lock).expect("ours");
        mkfifoat(CWD, &lock, Mode::RUSR | Mode::WUSR).expect("ours");
        let refused = state.lock().err().expect("it is a FIFO");
        assert!(refused.to_string().contains("regular file"), "{refused}");
        // The link itself, with and without a trailing slash.
        let link = folder.0.join("link");
        symlink(folder.0.join("."), &link).expect("ours");
        for path in [link.clone(), PathBuf::from(format!("{}/", link.display()))] {
            let refused = State::find(&path).err().expect("it is a link");
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_taken_for_nothing() {
        let folder = Folder::new();
        assert!(State::find(&folder.0).expect("there is none").is_none());
        fs::write(&folder.0, "a file").expect("a temporary folder");
        assert!(State::find(&folder.0).is_err());
        assert!(State::find(&folder.0.join("below")).is_err());
        fs::remove_file(&folder.0).expect("ours");
    }

    #[test]
    fn a_fifo_in_the_place_of_the_folder_is_refused_at_once() {
        let folder = Folder::new();
        fs::create_dir(&folder.0).expect("a temporary folder");
        let fifo = folder.0.join("state");
        mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).expect("ours");
        for path in [fifo.clone(), fifo.join("below")] {
            let (made, is_made) = std::sync::mpsc::channel();
            std::thread::spawn(move || made.send(State::make(&path).err()));
            // Opening the FIFO would wait for a writer for ever.
            let refused = is_made.recv_timeout(std::time::Duration::from_secs(20));
            let refused = refused.expect("it does not wait").expect("no folder");
            assert!(refused.to_string().contains("Not a directory"), "{refused}");
        }
    }
}
