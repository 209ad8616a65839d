//! Capture of a cell's network: every frame that leaves or reaches a host, as seen by the host's device.
//!
//! A frame that one host sent and the other did not get was lost by the cable. Frames are kept in memory, since a
//! passing cell's capture is discarded. The capture of a failed cell becomes a pcapng file for `isolane spy`: a
//! section, an interface for each host, then the frames.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, mem};

use isolane_bench::capture::Capture;
use isolane_bench::namespace::{Host, TestHosts};
use isolane_support::Result;
use pcap_parser::pcapng::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SectionHeaderBlock,
};
use pcap_parser::{Linktype, ToVec};

/// Receive timeout of a listener, after which it checks for the end.
const WAIT: Duration = Duration::from_millis(20);
/// Bytes kept for each host: more than its cable carries in both directions in a cell's ten seconds.
const KEPT_BYTES: usize = 128 << 20;

/// A running capture. Dropping it discards the frames.
pub(super) struct Recording {
    stop: Arc<AtomicBool>,
    listeners: Vec<JoinHandle<io::Result<Heard>>>,
}

/// Frames captured on one host.
#[derive(Default)]
struct Heard {
    frames: Vec<Frame>,
    bytes: usize,
    /// Frames dropped here or in the kernel for lack of space.
    missing: u64,
}

/// A finished capture.
pub(super) struct Recorded {
    /// Frames of both hosts in the order of time.
    frames: Vec<Frame>,
    /// Frames that were dropped.
    missing: u64,
}

impl Recording {
    /// Starts the capture on both hosts.
    pub(super) fn start(testbed: &TestHosts) -> Result<Self> {
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

    /// Stops the capture. Frames that passed before the call are in it.
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
    /// Writes the capture to a file; creates the folder if needed.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = BufWriter::new(File::create(path)?);
        write_pcapng(&mut file, &Host::BOTH.map(Host::interface), &self.frames)?;
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

/// Receives frames until the stop flag is set, and then those still queued.
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

/// Interface option if_tsresol: units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Interface field SnapLen: no limit.
const NO_SNAP_LENGTH: u32 = 0;
/// Section field Section Length: unspecified.
const UNKNOWN_LENGTH: i64 = -1;

/// Frame with its Ethernet header, as in the file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Index of the interface.
    pub(super) interface: u32,
    /// Capture time, in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Captured bytes; may be fewer than the frame had.
    pub(super) bytes: Vec<u8>,
    /// Length of the frame on the wire.
    pub(super) original_len: usize,
}

fn write_pcapng(
    file: &mut impl Write,
    interfaces: &[&'static str],
    frames: &[Frame],
) -> io::Result<()> {
    // The library fills in types, lengths and ends of options.
    let section = SectionHeaderBlock {
        block_type: 0,
        block_len1: 0,
        bom: 0,
        major_version: 0,
        minor_version: 0,
        section_len: UNKNOWN_LENGTH,
        options: Vec::new(),
        block_len2: 0,
    };
    append(file, section)?;
    for name in interfaces {
        append(file, interface(name))?;
    }
    for frame in frames {
        append(file, packet(frame))?;
    }
    Ok(())
}

fn interface(name: &'static str) -> InterfaceDescriptionBlock<'static> {
    InterfaceDescriptionBlock {
        block_type: 0,
        block_len1: 0,
        linktype: Linktype::ETHERNET,
        reserved: 0,
        snaplen: NO_SNAP_LENGTH,
        options: vec![PcapNGOption {
            code: OptionCode::IfName,
            len: name.len() as u16,
            value: Cow::Borrowed(name.as_bytes()),
        }],
        block_len2: 0,
        if_tsresol: NANOSECONDS,
        if_tsoffset: 0,
    }
}

fn packet(frame: &Frame) -> EnhancedPacketBlock<'_> {
    EnhancedPacketBlock {
        block_type: 0,
        block_len1: 0,
        if_id: frame.interface,
        ts_high: (frame.time_ns >> 32) as u32,
        ts_low: frame.time_ns as u32,
        caplen: frame.bytes.len() as u32,
        origlen: frame.original_len as u32,
        data: &frame.bytes,
        options: Vec::new(),
        block_len2: 0,
    }
}

fn append(file: &mut impl Write, mut block: impl ToVec) -> io::Result<()> {
    let bytes = block
        .to_vec()
        .map_err(|error| io::Error::other(error.to_string()))?;
    file.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use isolane_bench::namespace::{TestHostsConfig, TestHostsError};
    use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
    use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};

    use super::*;

    #[test]
    fn both_hosts_are_heard_and_become_one_file() {
        let testbed = match TestHosts::without_cable(&TestHostsConfig::default()) {
            Ok(testbed) => testbed,
            Err(TestHostsError::NotPermitted { action, right }) => {
                println!("not permitted: {action} needs {right}; nothing was tested");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let to = SocketAddr::from((Host::B.address(), 7400));
        // A bound receiver keeps the kernel from returning an ICMP error with a copy of the datagram.
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

    /// Interface names and frames of a pcapng file.
    fn read(file: &[u8]) -> (Vec<String>, Vec<Frame>) {
        let mut reader = PcapNGReader::new(1 << 16, file).unwrap();
        let (mut names, mut frames) = (Vec::new(), Vec::new());
        loop {
            let length = match reader.next() {
                Ok((length, PcapBlockOwned::NG(block))) => {
                    match block {
                        Block::InterfaceDescription(it) => {
                            assert_eq!(it.ts_resolution(), Some(1_000_000_000));
                            assert_eq!(it.linktype, Linktype::ETHERNET);
                            names.push(it.if_name().unwrap().unwrap().to_owned());
                        }
                        Block::EnhancedPacket(it) => frames.push(Frame {
                            interface: it.if_id,
                            time_ns: u64::from(it.ts_high) << 32 | u64::from(it.ts_low),
                            bytes: it.packet_data().to_vec(),
                            original_len: it.origlen as usize,
                        }),
                        _ => {}
                    }
                    length
                }
                Ok(_) => panic!("a block of another format"),
                Err(PcapError::Eof) => return (names, frames),
                Err(PcapError::Incomplete(_)) => {
                    reader.refill().unwrap();
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            reader.consume(length);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let frame = |interface, time_ns, len: usize, original_len| Frame {
            interface,
            time_ns,
            bytes: (0..len).map(|byte| byte as u8).collect(),
            original_len,
        };
        // Lengths with every padding, a time of more than 32 bits, a truncated frame.
        let frames = [
            frame(0, 1_795_291_423_488_297_001, 60, 60),
            frame(1, 1_795_291_423_488_297_002, 61, 61),
            frame(0, 0, 62, 1500),
            frame(1, u64::MAX, 63, 63),
        ];
        let mut file = Vec::new();
        write_pcapng(&mut file, &["host-a", "host-b"], &frames).unwrap();
        let (names, found) = read(&file);
        assert_eq!(names, ["host-a", "host-b"]);
        assert_eq!(found, frames);
    }
}
