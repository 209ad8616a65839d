//! Journal folder for tests.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("isolane-tune-{}-{number}", std::process::id());
        // In memory if possible, because each plan syncs to disk several times.
        let memory = PathBuf::from("/dev/shm");
        let base = match memory.is_dir() {
            true => memory,
            false => std::env::temp_dir(),
        };
        Self(base.join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
