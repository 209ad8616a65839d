//! Attribute files of sysfs, procfs and debugfs.

use std::fs::File;
use std::io::{Read, Write};

use isolane_hostnet::kernel::chosen_word;
use rustix::fs::fstatfs;
use rustix::io::Errno;

use crate::limits::MAX_ATTRIBUTE_BYTES;
use crate::setting::SettingError;

/// Magic numbers of file systems that hold only kernel files (linux/magic.h): sysfs, procfs, debugfs, tracefs, and both
/// versions of cgroups.
const FILE_SYSTEMS: [u32; 6] = [
    0x6265_6572,
    0x9fa0,
    0x6462_6720,
    0x7472_6163,
    0x6367_7270,
    0x0027_e0eb,
];

/// Reads an attribute, without surrounding white space. Of a list of choices (`always [madvise] never`) it returns the
/// chosen word.
pub(super) fn read(path: &str) -> Result<String, SettingError> {
    check(path)?;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(from_io)?;
    check_kernels(&file)?;
    file.take(MAX_ATTRIBUTE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(from_io)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    Ok(selected_choice(text).unwrap_or(text).to_owned())
}

/// Writes an attribute in one system call: the kernel parses each call as a whole value.
pub(super) fn write(path: &str, text: &str) -> Result<(), SettingError> {
    check(path)?;
    // Neither created nor truncated: a missing file means that the kernel lacks the setting.
    let mut file = File::options().write(true).open(path).map_err(from_io)?;
    check_kernels(&file)?;
    file.write_all(format!("{text}\n").as_bytes())
        .map_err(|error| match is_of_interrupt(path) {
            true => of_interrupt(&error),
            false => from_io(error),
        })
}

/// Returns whether this is an interrupt's affinity file.
fn is_of_interrupt(path: &str) -> bool {
    path.starts_with("/proc/irq/") && path.ends_with("/smp_affinity_list")
}

/// Maps errors of an affinity write: EIO, and EPERM since Linux 6.11, for a managed interrupt; EINVAL if the controller
/// cannot move it; ENOSPC if the cores have no free vector.
fn of_interrupt(error: &std::io::Error) -> SettingError {
    match Errno::from_io_error(error) {
        Some(Errno::IO | Errno::PERM | Errno::INVAL | Errno::NOSPC) => {
            SettingError::Immovable(error.to_string())
        }
        _ => SettingError::from_io(error, None),
    }
}

/// Chosen word of a list of choices; `None` for a single word.
fn selected_choice(text: &str) -> Option<&str> {
    let is_list = text.split_whitespace().count() > 1;
    chosen_word(text).filter(|_| is_list)
}

/// Restricts attributes to the kernel's file trees, because a plan is an untrusted file.
fn check(path: &str) -> Result<(), SettingError> {
    let is_kernels = path.starts_with("/sys/") || path.starts_with("/proc/");
    match is_kernels && !path.split('/').any(|part| part == "..") {
        true => Ok(()),
        false => Err(not_kernels()),
    }
}

/// Checks the opened file, since its path may be a link or lead to another mounted file system.
fn check_kernels(file: &File) -> Result<(), SettingError> {
    let system = fstatfs(file).map_err(|error| from_io(error.into()))?;
    // The kernel's 32-bit magic number is in a signed word.
    match FILE_SYSTEMS.contains(&(system.f_type as u32)) {
        true => Ok(()),
        false => Err(not_kernels()),
    }
}

fn not_kernels() -> SettingError {
    SettingError::Refused(String::from("it is not a kernel file in /sys or /proc"))
}

fn from_io(error: std::io::Error) -> SettingError {
    SettingError::from_io(&error, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_choice_the_chosen_word_is_read() {
        assert_eq!(selected_choice("always [madvise] never"), Some("madvise"));
        assert_eq!(selected_choice("[only]"), None);
        assert_eq!(selected_choice("1024"), None);
    }

    #[test]
    fn what_was_opened_must_be_the_kernels() {
        let own = File::open("/proc/self/stat").expect("procfs");
        assert_eq!(check_kernels(&own), Ok(()));
        // procfs links to files that are not the kernel's.
        for path in ["/proc/self/exe", "/proc/self/cwd/Cargo.toml"] {
            assert_eq!(read(path), Err(not_kernels()), "{path}");
        }
        let path = std::env::temp_dir().join(format!("isolane-attribute-{}", std::process::id()));
        std::fs::write(&path, "theirs").expect("a temporary file");
        let file = File::open(&path).expect("ours");
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
        assert_eq!(write(&link, "ours"), Err(not_kernels()));
        let text = std::fs::read_to_string(&path).expect("ours");
        std::fs::remove_file(&path).expect("ours");
        assert_eq!(text, "theirs");
    }

    #[test]
    fn an_interrupt_that_the_kernel_has_placed_is_distinguished_from_a_lack_of_rights() {
        let path = "/proc/irq/24/smp_affinity_list";
        assert!(is_of_interrupt(path) && !is_of_interrupt("/proc/irq/default_smp_affinity"));
        for refused in [Errno::IO, Errno::PERM, Errno::INVAL, Errno::NOSPC] {
            let said = of_interrupt(&refused.into());
            assert!(matches!(said, SettingError::Immovable(_)), "{refused}");
        }
        let no_right = of_interrupt(&Errno::ACCESS.into());
        assert!(matches!(no_right, SettingError::Refused(_)));
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
