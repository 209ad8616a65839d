//! Reading of small sysfs and procfs files.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use crate::limits::{MAX_ENTRIES, MAX_FILE_BYTES};

/// Trimmed text of a file; `None` if unreadable.
pub(super) fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(whole(path)?.trim().to_owned())
}

/// Exact text of a file; `None` if unreadable.
pub(super) fn whole(path: impl AsRef<Path>) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parsed content of a file; `None` if unreadable or invalid.
pub(super) fn value<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    text(path)?.parse().ok()
}

/// Sorted names of a directory's entries; empty if unreadable.
pub(crate) fn entries(path: impl AsRef<Path>) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(path) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .take(MAX_ENTRIES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Parses a kernel list of numbers, `0-3,6`.
pub(crate) fn number_list(text: &str) -> Vec<u16> {
    ranges(text)
        .into_iter()
        .flat_map(|(first, last)| first..=last)
        .collect()
}

pub(crate) fn ranges(text: &str) -> Vec<(u16, u16)> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.split(',').filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_numbers_and_ranges() {
        assert_eq!(number_list("0-2,6"), [0, 1, 2, 6]);
        assert_eq!(number_list(""), [0_u16; 0]);
        assert_eq!(number_list("(null)"), [0_u16; 0]);
        assert_eq!(ranges("8000-8002,9000"), [(8000, 8002), (9000, 9000)]);
        assert_eq!(number_list("9-3"), [0_u16; 0], "backwards is nothing");
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        assert_eq!(text("/nowhere/at/all"), None);
        assert_eq!(value::<u64>("/proc/version"), None);
        assert!(entries("/nowhere/at/all").is_empty());
    }
}
