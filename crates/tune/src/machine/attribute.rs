//! Files of sysfs, procfs and debugfs that hold one value.

use std::fs::File;
use std::io::{Read, Write};

use crate::limits::MAX_ATTRIBUTE_BYTES;
use crate::setting::SettingError;

/// What it holds, without white space at its ends; of a list of words with one in brackets
/// (`always [madvise] never`) that one.
pub(super) fn read(path: &str) -> Result<String, SettingError> {
    check(path)?;
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_ATTRIBUTE_BYTES).read_to_end(&mut bytes))
        .map_err(|error| SettingError::of_system(&error, None))?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    Ok(chosen(text).unwrap_or(text).to_owned())
}

/// Writes it at once: the kernel takes each call for a value of its own.
pub(super) fn write(path: &str, text: &str) -> Result<(), SettingError> {
    check(path)?;
    // Nothing is made or emptied: such a file exists, or the kernel has no such thing.
    File::options()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()))
        .map_err(|error| SettingError::of_system(&error, None))
}

fn chosen(text: &str) -> Option<&str> {
    let is_list = text.split_whitespace().count() > 1;
    let mut words = text.split_whitespace();
    words
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'))
        .filter(|_| is_list)
}

/// A plan is a file that anybody may have written: only the kernel's own files are attributes.
fn check(path: &str) -> Result<(), SettingError> {
    let is_kernels = path.starts_with("/sys/") || path.starts_with("/proc/");
    match is_kernels && !path.split('/').any(|part| part == "..") {
        true => Ok(()),
        false => Err(SettingError::Refused(String::from(
            "it is no file of /sys or /proc",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_choice_the_chosen_word_is_read() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("[only]"), None);
        assert_eq!(chosen("1024"), None);
    }

    #[test]
    fn only_the_kernels_files_are_attributes() {
        for path in ["/etc/passwd", "/sys/../etc/passwd", "sys/x", ""] {
            assert!(
                matches!(read(path), Err(SettingError::Refused(_))),
                "{path}"
            );
            assert!(matches!(write(path, ""), Err(SettingError::Refused(_))));
        }
        assert_eq!(read("/proc/sys/no/such"), Err(SettingError::Gone));
        assert_eq!(write("/proc/sys/no/such", "1"), Err(SettingError::Gone));
    }
}
