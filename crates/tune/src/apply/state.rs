//! The folder in which the journal is, and the lock that one `tune` holds at a time.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::StateError;

pub(crate) struct State(PathBuf);

/// While it exists no other `tune` changes anything. The kernel gives it back when the process ends,
/// by whatever end.
pub(crate) struct Lock(#[expect(dead_code, reason = "held for its end")] File);

impl State {
    /// The folder, which is made if need be, and is on the disk then: what is kept in it would be
    /// lost with it.
    pub(crate) fn make(folder: &Path) -> Result<Self, StateError> {
        let make = || -> io::Result<()> {
            let folder = std::path::absolute(folder)?;
            let missing = folder.ancestors().take_while(|folder| !folder.exists());
            let missing: Vec<&Path> = missing.collect();
            fs::create_dir_all(&folder)?;
            for parent in missing.iter().filter_map(|made| made.parent()) {
                File::open(parent)?.sync_all()?;
            }
            Ok(())
        };
        make().map_err(StateError::of(folder))?;
        Ok(Self(folder.to_owned()))
    }

    /// The folder, if there is one.
    pub(super) fn find(folder: &Path) -> Option<Self> {
        folder.is_dir().then(|| Self(folder.to_owned()))
    }

    pub(super) fn journal(&self) -> PathBuf {
        self.0.join("tune.journal")
    }

    /// Takes the lock, or fails at once: two plans at a time would each undo the other. The file
    /// stays, for a lock on a file that others remove locks nothing.
    pub(crate) fn lock(&self) -> Result<Lock, StateError> {
        let path = self.0.join("tune.lock");
        let failed = StateError::of(&path);
        let file = File::create(&path).map_err(&failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(error.into()))?;
        Ok(Lock(file))
    }
}
