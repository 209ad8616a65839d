//! Persistence of a file until the next boot.
//!
//! A path that certainly disappears is refused: the unit that names it would fail silently at each boot. A path that
//! may disappear only causes a warning, because robots do boot from USB sticks and run programs from build folders.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{major, minor, statfs};

use super::PathError;

/// Folders that are empty after a boot, on any file system.
const TEMPORARY: [&str; 3] = ["/tmp", "/run", "/dev"];

/// Magic numbers of file systems in memory (linux/magic.h): tmpfs, ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// Marker file of folders that may be emptied (Cache Directory Tagging Specification). cargo marks its build folder.
const CACHE_TAG: &str = "CACHEDIR.TAG";
const CACHE_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Absolute path of a folder, which need not exist yet, with symbolic links resolved.
pub(super) fn resolved(folder: &Path) -> io::Result<PathBuf> {
    let full = std::path::absolute(folder)?;
    let there = existing(&full);
    let rest = full.strip_prefix(there).unwrap_or(Path::new(""));
    let mut resolved = fs::canonicalize(there)?;
    // Joining an empty path would append a slash.
    if !rest.as_os_str().is_empty() {
        resolved.push(rest);
    }
    Ok(resolved)
}

/// Longest existing prefix of a path.
fn existing(path: &Path) -> &Path {
    let mut above = path.ancestors();
    above
        .find(|path| path.exists())
        .unwrap_or_else(|| Path::new("/"))
}

/// Refuses a path that cannot exist after a boot.
pub(super) fn check(path: &Path) -> Result<(), PathError> {
    if let Some(folder) = TEMPORARY.iter().find(|folder| path.starts_with(folder)) {
        return Err(PathError::Temporary(folder.into()));
    }
    // If statfs fails, the path is not known to be in memory.
    let system = statfs(existing(path));
    // The kernel's 32-bit magic number is in a signed word.
    match system.is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u32))) {
        true => Err(PathError::InMemory),
        false => Ok(()),
    }
}

/// Reasons that a path may not exist after a boot, one sentence each.
pub(super) fn warnings(path: &Path) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(folder) = cache_of(path) {
        warnings.push(format!(
            "{} is needed at each boot, and is in {}, a cache folder that a build may empty",
            path.display(),
            folder.display()
        ));
    }
    if is_removable(path) {
        warnings.push(format!(
            "{} is needed at each boot, and is on a removable disk",
            path.display()
        ));
    }
    warnings
}

/// Closest parent folder that is marked as a cache.
fn cache_of(path: &Path) -> Option<&Path> {
    let is_marked = |folder: &&Path| {
        let tag = fs::read(folder.join(CACHE_TAG));
        tag.is_ok_and(|tag| tag.starts_with(CACHE_SIGNATURE))
    };
    path.ancestors().skip(1).find(is_marked)
}

/// Returns whether the path is on a removable disk that is not the system's.
fn is_removable(path: &Path) -> bool {
    let Some(disk) = disk_of(existing(path)) else {
        return false;
    };
    let removable = fs::read_to_string(disk.join("removable"));
    let can_be_taken_out = removable.is_ok_and(|text| text.trim() == "1");
    can_be_taken_out && disk_of(Path::new("/")) != Some(disk)
}

/// sysfs folder of the disk that holds a file; `None` if the file system has no disk or several.
fn disk_of(path: &Path) -> Option<PathBuf> {
    let device = fs::metadata(path).ok()?.dev();
    let name = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let device = fs::canonicalize(name).ok()?;
    // A partition's folder is inside its disk's.
    match device.join("partition").exists() {
        true => device.parent().map(Path::to_owned),
        false => Some(device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_behind_a_boot_is_unfit() {
        for (path, folder) in [
            ("/tmp/isolane", "/tmp"),
            ("/run/user/0/x", "/run"),
            ("/dev/shm/isolane", "/dev"),
        ] {
            assert_eq!(
                check(Path::new(path)),
                Err(PathError::Temporary(folder.into()))
            );
        }
        assert_eq!(check(Path::new("/usr/bin/isolane")), Ok(()));
        assert_eq!(
            check(Path::new("/tmpfiles/isolane")),
            Ok(()),
            "another name"
        );
    }

    #[test]
    fn a_folder_that_is_yet_to_be_made_is_named_in_full_and_without_links() {
        let base = std::env::temp_dir().join(format!("isolane-lasting-{}", std::process::id()));
        fs::create_dir_all(base.join("real")).expect("a temporary folder");
        std::os::unix::fs::symlink("real", base.join("link")).expect("ours");
        let real = fs::canonicalize(base.join("real")).expect("ours");
        let of = |name: &str| resolved(&base.join(name)).expect("it can be named");
        assert_eq!(of("link/a/b"), real.join("a/b"));
        assert_eq!(of("link/../link"), real);
        // Compared as text: two `Path`s that differ in a trailing slash are equal.
        assert_eq!(of("link").as_os_str(), real.as_os_str());
        fs::remove_dir_all(base).expect("ours");
    }

    #[test]
    fn what_lies_where_programs_are_built_is_doubted() {
        let base = std::env::temp_dir().join(format!("isolane-built-{}", std::process::id()));
        fs::create_dir_all(base.join("debug")).expect("a temporary folder");
        let program = base.join("debug/isolane");
        fs::write(base.join(CACHE_TAG), "of another kind").expect("ours");
        assert!(cache_of(&program).is_none());
        let tag = [CACHE_SIGNATURE, b"\n# by a program"].concat();
        fs::write(base.join(CACHE_TAG), tag).expect("ours");
        assert_eq!(cache_of(&program), Some(base.as_path()));
        let warnings = warnings(&program);
        assert!(
            warnings.concat().contains("a build may empty"),
            "{warnings:?}"
        );
        fs::remove_dir_all(base).expect("ours");
    }
}
