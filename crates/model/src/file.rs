//! Files named by users, opened so that no path can block the program or exhaust its memory.

use std::fs::{File, FileType};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading, close-on-exec.
///
/// FIFOs, devices, sockets and directories are refused before they are opened, because opening some devices has side
/// effects. The opened file is checked again. Opening never waits for another process (`O_NONBLOCK`, open(2)).
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    check_regular(std::fs::metadata(path)?.file_type())?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    check_regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// Reads a regular file of at most `max_bytes` bytes.
///
/// # Errors
/// The file cannot be read, is not a regular file ([`open_regular`]), or is longer than `max_bytes`.
pub fn read_regular(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_opened(open_regular(path)?, max_bytes)
}

/// Reads an opened file of at most `max_bytes` bytes.
///
/// # Errors
/// The file cannot be read, or is longer than `max_bytes`.
pub fn read_opened(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    // `length` is no bound of the read: the file may grow, and procfs files report length 0.
    if length <= max_bytes {
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    }
    match length.max(bytes.len() as u64) > max_bytes {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {max_bytes} bytes"),
        )),
        false => Ok(bytes),
    }
}

/// Reads a regular file of at most `max_bytes` bytes as text.
///
/// # Errors
/// Those of [`read_regular`], or the file is not UTF-8.
pub fn read_regular_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let bytes = read_regular(path, max_bytes)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn check_regular(kind: FileType) -> io::Result<()> {
    let name = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("it is {name}; only regular files are read"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_the_allowed_length_are_read() {
        let folder = std::env::temp_dir().join(format!("isolane-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let fifo = folder.join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
        let refusal = |path: &Path| open_regular(path).unwrap_err().to_string();
        assert!(refusal(&fifo).contains("a FIFO"));
        assert!(refusal(&folder).contains("a directory"));
        assert!(refusal(Path::new("/dev/zero")).contains("a device"));
        let file = folder.join("file");
        std::fs::write(&file, "12345").unwrap();
        assert_eq!(read_regular(&file, 5).unwrap(), b"12345");
        let error = read_regular(&file, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(read_regular(Path::new("/proc/self/status"), 10).is_err());
        std::fs::write(&file, [0xff]).unwrap();
        assert!(read_regular_text(&file, 5).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
