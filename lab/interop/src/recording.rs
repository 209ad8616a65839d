//! What crosses a cell's network: every frame that leaves or reaches a host, as the host's device sees it.
//!
//! What one host sent and the other did not get was lost by the cable. Frames are kept in memory, since
//! most recordings are thrown away with the cell that passed; of one that failed they become a file that
//! `isolane spy` reads.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use isolane_bench::capture::Capture;
use isolane_bench::namespace::{Host, Testbed};

use super::pcapng::{self, Frame};
use isolane_support::Result;

/// How long a listener waits for a frame until it sees whether it shall stop.
const WAIT: Duration = Duration::from_millis(20);
/// What is kept of each host, in bytes: what its cable carries both ways in a cell's ten seconds is
/// less, so that nothing is missing unless somebody else sends, too.
const KEPT_BYTES: usize = 128 << 20;

/// A recording that goes on. Dropped, it ends, and nothing is kept.
pub(super) struct Recording {
    stop: Arc<AtomicBool>,
    listeners: Vec<JoinHandle<io::Result<Heard>>>,
}

/// What was heard on one host.
#[derive(Default)]
struct Heard {
    frames: Vec<Frame>,
    bytes: usize,
    /// Frames there was no room for, here or in the kernel.
    missing: u64,
}

/// A recording that has ended.
pub(super) struct Recorded {
    /// Of both hosts, by time.
    frames: Vec<Frame>,
    /// Frames that should be among them, and are not.
    missing: u64,
}

impl Recording {
    /// Listens on both hosts from now on.
    pub(super) fn start(testbed: &Testbed) -> Result<Self> {
        let mut recording = Self {
            stop: Arc::default(),
            listeners: Vec::new(),
        };
        for (interface, host) in (0..).zip(Host::BOTH) {
            let capture = testbed.run(host, || Capture::open(Some(host.interface())))??;
            let stop = Arc::clone(&recording.stop);
            let listener = thread::spawn(move || listen(capture, interface, &stop));
            recording.listeners.push(listener);
        }
        Ok(recording)
    }

    /// Ends it. What has passed before the call is in it.
    pub(super) fn end(mut self) -> Result<Recorded> {
        self.stop.store(true, Ordering::Release);
        let (mut frames, mut missing) = (Vec::new(), 0);
        for listener in mem::take(&mut self.listeners) {
            let heard = listener.join().expect("a listener does not panic")?;
            frames.extend(heard.frames);
            missing += heard.missing;
        }
        frames.sort_by_key(|frame| frame.time_ns);
        Ok(Recorded { frames, missing })
    }
}

impl Recorded {
    /// Writes it to a file, whose folder is made if need be.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = BufWriter::new(File::create(path)?);
        pcapng::write(&mut file, &Host::BOTH.map(Host::interface), &self.frames)?;
        Ok(file.flush()?)
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} frames", self.frames.len())?;
        match self.missing {
            0 => Ok(()),
            missing => write!(formatter, ", {missing} more are missing"),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
    }
}

/// Takes frames until it shall stop, and then those that are there still.
fn listen(mut capture: Capture, interface: u32, stop: &AtomicBool) -> io::Result<Heard> {
    let mut heard = Heard::default();
    loop {
        let is_last = stop.load(Ordering::Acquire);
        while let Some(frame) = capture.take_frame()? {
            heard.keep(Frame {
                interface,
                time_ns: frame.time_ns.unwrap_or_default(),
                bytes: frame.bytes.to_vec(),
                original_len: frame.original_len,
            });
        }
        if is_last {
            heard.missing += capture.dropped()?;
            return Ok(heard);
        }
        capture.wait(WAIT)?;
    }
}

impl Heard {
    fn keep(&mut self, frame: Frame) {
        if self.bytes + frame.bytes.len() > KEPT_BYTES {
            self.missing += 1;
            return;
        }
        self.bytes += frame.bytes.len();
        self.frames.push(frame);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use isolane_bench::namespace::{TestbedConfig, TestbedError};

    use super::*;

    #[test]
    fn both_hosts_are_heard_and_become_one_file() {
        let testbed = match Testbed::without_cable(&TestbedConfig::default()) {
            Ok(testbed) => testbed,
            Err(TestbedError::NotPermitted { action, right }) => {
                println!("not permitted: {action} needs {right}; nothing was tested");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let to = SocketAddr::from((Host::B.address(), 7400));
        // Somebody is there, so that no error with a copy of the datagram comes back.
        let _receiver = testbed
            .run(Host::B, || UdpSocket::bind(to).unwrap())
            .unwrap();
        let recording = Recording::start(&testbed).unwrap();
        const MARK: &[u8] = b"a datagram that both ends see";
        testbed
            .run(Host::A, || {
                let socket = UdpSocket::bind((Host::A.address(), 0)).unwrap();
                socket.send_to(MARK, to).unwrap();
            })
            .unwrap();
        let recorded = recording.end().unwrap();
        assert_eq!(recorded.missing, 0);
        assert!(recorded.frames.is_sorted_by_key(|frame| frame.time_ns));
        let folder = std::env::temp_dir().join(format!("xtask-{}-recording", std::process::id()));
        let path = folder.join("cell.pcapng");
        recorded.write(&path).unwrap();
        let file = fs::read(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let seen = file.windows(MARK.len()).filter(|bytes| *bytes == MARK);
        assert_eq!(seen.count(), 2, "once on each host");
        for host in Host::BOTH {
            let name = host.interface().as_bytes();
            assert!(file.windows(name.len()).any(|bytes| bytes == name));
        }
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let frame = |len| Frame {
            interface: 0,
            time_ns: 0,
            bytes: vec![0; len],
            original_len: len,
        };
        let mut heard = Heard::default();
        heard.keep(frame(KEPT_BYTES));
        heard.keep(frame(1));
        assert_eq!((heard.frames.len(), heard.missing), (1, 1));
    }
}
