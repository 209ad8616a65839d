//! Captured frames: reader of a capture file, listener on the interfaces of this host, and writer of a capture file.
//!
//! `pcap_parser` reads pcap (microseconds or nanoseconds, either byte order) and pcapng. Its buffer has a fixed size:
//! reading ends at a block that is longer.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolane_bench::capture::{self as packet_socket, interface_name};
use isolane_model::open_regular;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, EPB_MAGIC, IDB_MAGIC, Linktype, PcapBlockOwned, PcapError, SHB_MAGIC, SPB_MAGIC,
    create_reader,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{CAPTURE_BLOCK_BYTES, CAPTURE_INTERFACES};
use crate::result_file::ResultFile;
use crate::stop;

/// Captured frame, borrowed from its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) link: Linktype,
    /// Captured bytes, at most `original_len`.
    pub(super) bytes: &'a [u8],
    /// Length on the wire in bytes.
    pub(super) original_len: usize,
    /// Time of capture in nanoseconds since 1970; `None` if the source has no time, such as a Simple Packet Block.
    pub(super) time_ns: Option<u64>,
    pub(super) interface: Option<&'a str>,
}

/// Reader of a pcap or pcapng file.
pub(super) struct CaptureFile {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Interfaces,
}

impl CaptureFile {
    /// Opens a capture; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read, or is neither pcap nor pcapng.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String, remedy: &str| {
            let what = format!("cannot read the capture {}", path.display());
            Failure::new(ExitCode::WrongUsage, what, why).with_remedy(remedy)
        };
        let file = match path.as_os_str() == "-" {
            true => rustix::stdio::stdin().try_clone_to_owned().map(File::from),
            false => open_regular(path),
        };
        let file = file.map_err(|error| {
            failed(
                error.to_string(),
                "name a capture; use - for standard input (tcpdump -w - | isolane spy -), or leave the name out to listen \
                 on the interfaces of this host",
            )
        })?;
        let reader = create_reader(
            CAPTURE_BLOCK_BYTES,
            Input {
                file,
                has_header: false,
            },
        )
        .map_err(|_| {
            failed(
                String::from("it is neither pcap nor pcapng"),
                "capture with: tcpdump -i INTERFACE -w FILE.pcap udp",
            )
        })?;
        Ok(Self {
            reader,
            interfaces: Interfaces::default(),
        })
    }

    /// Calls `each` with every frame, in the order of the file, until `each` returns false. Returns whether the file
    /// ends within a block: the capture was stopped, or the file is cut or malformed.
    ///
    /// # Errors
    /// The error of `each`.
    pub(super) fn read(
        mut self,
        mut each: impl FnMut(&Frame<'_>) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        loop {
            let length = match self.reader.next() {
                Ok((length, block)) => {
                    if let Some(frame) = self.interfaces.take(&block)
                        && !each(&frame)?
                    {
                        return Ok(false);
                    }
                    length
                }
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::Incomplete(_)) => match self.reader.refill() {
                    Ok(()) => continue,
                    Err(_) => return Ok(true),
                },
                Err(_) => return Ok(true),
            };
            self.reader.consume(length);
        }
    }
}

/// File or standard input. After a signal, `read` reports the end of the file.
struct Input {
    file: File,
    has_header: bool,
}

/// Returns the minimum length of the first read: a pcap header, or a whole Section Header Block of pcapng. The parser
/// needs the whole header after its first read.
fn header_bytes(begin: &[u8]) -> usize {
    const PCAP_HEADER_BYTES: usize = 24;
    const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
    match begin.split_first_chunk() {
        Some((&SECTION_HEADER, [a, b, c, d, magic, ..])) => {
            let length = match magic {
                0x1a => u32::from_be_bytes([*a, *b, *c, *d]),
                _ => u32::from_le_bytes([*a, *b, *c, *d]),
            };
            usize::try_from(length).unwrap_or(usize::MAX)
        }
        _ => PCAP_HEADER_BYTES,
    }
}

impl Read for Input {
    /// Waits for bytes, and returns the available bytes without waiting for a full buffer. So `spy` shows the frames of
    /// a running capture at once.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const SIGNAL_POLL_NS: i64 = 100_000_000;
        let mut length = 0;
        while length < buffer.len() && !stop::is_wished() {
            let least = if self.has_header {
                1
            } else {
                header_bytes(&buffer[..length])
            };
            let is_enough = length >= least;
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: if is_enough { 0 } else { SIGNAL_POLL_NS },
            };
            let mut polled = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) if is_enough => break,
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.file.read(&mut buffer[length..])? {
                0 => break,
                read => length += read,
            }
        }
        self.has_header = true;
        Ok(length)
    }
}

/// Interfaces of the current section of a pcapng file. A pcap file has one interface.
#[derive(Default)]
struct Interfaces(Vec<Interface>);

struct Interface {
    link: Linktype,
    name: Option<String>,
    /// Maximum number of bytes captured of a frame; 0: no limit.
    snaplen: u32,
    /// Resolution of time stamps; `None` if `u64` cannot express it.
    units_per_second: Option<u64>,
    offset_seconds: i64,
}

impl Interfaces {
    /// Returns the frame of a packet block. Blocks that describe a section or an interface change `self`; other blocks
    /// are ignored.
    fn take<'a>(&'a mut self, block: &'a PcapBlockOwned<'_>) -> Option<Frame<'a>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.0.push(Interface {
                    link: header.network,
                    name: None,
                    snaplen: 0,
                    units_per_second: Some(match header.is_nanosecond_precision() {
                        true => 1_000_000_000,
                        false => 1_000_000,
                    }),
                    offset_seconds: 0,
                });
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let interface = self.0.first()?;
                let seconds = u64::from(packet.ts_sec) * interface.units_per_second?;
                let units = seconds + u64::from(packet.ts_usec);
                Some(interface.frame(packet.data, packet.origlen, Some(units)))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.0.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                if self.0.len() < CAPTURE_INTERFACES {
                    let name = description.if_name().and_then(Result::ok);
                    self.0.push(Interface {
                        link: description.linktype,
                        name: name.map(String::from),
                        snaplen: description.snaplen,
                        units_per_second: description.ts_resolution(),
                        offset_seconds: description.ts_offset(),
                    });
                }
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.0.get(packet.if_id as usize)?;
                let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Some(interface.frame(packet.packet_data(), packet.origlen, Some(units)))
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let interface = self.0.first()?;
                let bytes = packet.packet_data();
                // The block does not state the captured length. Bytes beyond the snapshot length are padding.
                let captured = match interface.snaplen as usize {
                    0 => bytes,
                    limit => &bytes[..bytes.len().min(limit)],
                };
                Some(interface.frame(captured, packet.origlen, None))
            }
            PcapBlockOwned::NG(_) => None,
        }
    }
}

impl Interface {
    fn frame<'a>(&'a self, bytes: &'a [u8], original_len: u32, units: Option<u64>) -> Frame<'a> {
        Frame {
            link: self.link,
            bytes,
            original_len: original_len as usize,
            time_ns: units.and_then(|units| self.time_ns(units)),
            interface: self.name.as_deref(),
        }
    }

    fn time_ns(&self, units: u64) -> Option<u64> {
        let nanoseconds = i128::from(units) * 1_000_000_000 / i128::from(self.units_per_second?);
        u64::try_from(nanoseconds + i128::from(self.offset_seconds) * 1_000_000_000).ok()
    }
}

/// Listener on interfaces of this host.
pub(super) struct Live {
    socket: packet_socket::Capture,
    /// Interfaces to listen on; empty: all.
    interfaces: Vec<String>,
    /// Names by interface index, at most `CAPTURE_INTERFACES`; `None` for an unknown index.
    names: BTreeMap<u32, Option<String>>,
}

impl Live {
    /// Listens on the interfaces of these names. Without names, listens on all interfaces.
    ///
    /// # Errors
    /// CAP_NET_RAW is missing, or an interface does not exist.
    pub(super) fn open(interfaces: &[String]) -> Result<Self, Failure> {
        let present = isolane_tune::interfaces().map_err(cannot_listen)?;
        let is_missing = |name: &&String| present.iter().all(|it| it.name != **name);
        if let Some(missing) = interfaces.iter().find(is_missing) {
            return Err(cannot_listen(format!("there is no interface {missing}")));
        }
        let socket = packet_socket::Capture::open(match interfaces {
            [only] => Some(only),
            _ => None,
        });
        Ok(Self {
            socket: socket.map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => lacks_right(),
                _ => cannot_listen(error),
            })?,
            interfaces: interfaces.to_vec(),
            names: BTreeMap::new(),
        })
    }

    /// Calls `each` with the next frame of a chosen interface. Returns false if no frame is waiting.
    ///
    /// # Errors
    /// The error of `each`, or the interface is gone or down.
    pub(super) fn take(
        &mut self,
        each: impl FnOnce(&Frame<'_>) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Some(frame) = self.socket.take_frame().map_err(cannot_listen)? else {
            return Ok(false);
        };
        if self.names.len() == CAPTURE_INTERFACES {
            self.names.clear();
        }
        let name = self.names.entry(frame.interface);
        let name = name.or_insert_with(|| interface_name(frame.interface));
        // The socket listens on one interface or on all, so frames are filtered if several interfaces are named.
        let is_chosen = self.interfaces.len() < 2
            || name.as_ref().is_some_and(|it| self.interfaces.contains(it));
        if is_chosen {
            each(&Frame {
                link: match frame.link {
                    packet_socket::Link::Ethernet => Linktype::ETHERNET,
                    packet_socket::Link::None => Linktype::RAW,
                },
                bytes: frame.bytes,
                original_len: frame.original_len,
                time_ns: frame.time_ns,
                interface: name.as_deref(),
            })?;
        }
        Ok(true)
    }

    /// Waits for a frame or a signal.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub(super) fn wait(&self, at_most: Duration) -> Result<(), Failure> {
        self.socket.wait(at_most).map_err(cannot_listen)
    }

    /// Number of frames that the kernel dropped since the start. Call this function regularly, because the kernel's
    /// counter has 32 bits.
    pub(super) fn dropped(&mut self) -> Option<u64> {
        self.socket.dropped().ok()
    }
}

fn cannot_listen(why: impl Display) -> Failure {
    let what = "cannot listen to the interfaces";
    Failure::forbidden(what, why)
        .with_remedy("`ip link` shows which interfaces there are, and whether they are up")
}

fn lacks_right() -> Failure {
    cannot_listen("this process lacks the right CAP_NET_RAW").with_remedy(
        "run it as root (sudo isolane spy ...), give the program the right once (sudo setcap cap_net_raw+ep \
         \"$(command -v isolane)\"), or read a capture: isolane spy FILE.pcap",
    )
}

/// Writer of a pcapng file.
pub(super) struct CaptureWriter {
    file: ResultFile,
    path: PathBuf,
    /// Interfaces of the section: link type, name and snapshot length. After `CAPTURE_INTERFACES` of them, the next
    /// interface begins another section.
    interfaces: Vec<(Linktype, Option<String>, u32)>,
}

impl CaptureWriter {
    /// Creates the file. An existing file at `path` stays until the first frame is written.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let file = ResultFile::create(path).map_err(|error| not_written(path, &error))?;
        let mut writer = Self {
            file,
            path: path.into(),
            interfaces: Vec::new(),
        };
        writer.begin_section()?;
        Ok(writer)
    }

    /// Adds a frame. After the first frame the file is visible at its path.
    pub(super) fn write(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        let (captured, original) = (frame.bytes.len() as u32, frame.original_len as u32);
        if let Some(time) = frame.time_ns {
            let number = self.describe_interface(frame, 0)?;
            let words = [number, (time >> 32) as u32, time as u32, captured, original];
            self.block(EPB_MAGIC, &words, frame.bytes)?;
        } else {
            // A Simple Packet Block has no time stamp, captured length or interface: the first interface applies.
            let snaplen = if captured < original { captured } else { 0 };
            if self.number_of(frame, snaplen) != Some(0) {
                self.begin_section()?;
            }
            self.describe_interface(frame, snaplen)?;
            self.block(SPB_MAGIC, &[original], frame.bytes)?;
        }
        self.finish()
    }

    /// Completes the file. It is visible at its path then, even without frames.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        let finished = self.file.finish();
        finished.map_err(|error| not_written(&self.path, &error))
    }

    fn number_of(&self, frame: &Frame<'_>, snaplen: u32) -> Option<u32> {
        let mut interfaces = self.interfaces.iter();
        let found = interfaces.position(|(link, name, limit)| {
            (*link, name.as_deref(), *limit) == (frame.link, frame.interface, snaplen)
        });
        found.map(|number| number as u32)
    }

    /// Returns the number of the frame's interface in the section. If the section does not describe the interface yet,
    /// writes the description first.
    fn describe_interface(&mut self, frame: &Frame<'_>, snaplen: u32) -> Result<u32, Failure> {
        if let Some(number) = self.number_of(frame, snaplen) {
            return Ok(number);
        }
        if self.interfaces.len() == CAPTURE_INTERFACES {
            self.begin_section()?;
        }
        // Options if_tsresol (nanoseconds), if_name and the end.
        let mut options = vec![9, 0, 1, 0, 9, 0, 0, 0];
        if let Some(name) = frame.interface {
            options.extend([2, 0]);
            options.extend((name.len() as u16).to_le_bytes());
            options.extend(name.as_bytes());
            options.resize(options.len().next_multiple_of(4), 0);
        }
        options.extend([0; 4]);
        self.block(IDB_MAGIC, &[frame.link.0 as u32, snaplen], &options)?;
        let name = frame.interface.map(String::from);
        self.interfaces.push((frame.link, name, snaplen));
        Ok(self.interfaces.len() as u32 - 1)
    }

    fn begin_section(&mut self) -> Result<(), Failure> {
        self.interfaces.clear();
        // Byte order, version 1.0, unknown length.
        self.block(SHB_MAGIC, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX], &[])
    }

    /// Writes a block: type, length, content with padding, length (draft-ietf-opsawg-pcapng, 3.1), little-endian.
    fn block(&mut self, block_type: u32, words: &[u32], bytes: &[u8]) -> Result<(), Failure> {
        let padded = bytes.len().next_multiple_of(4);
        let length = (12 + 4 * words.len() + padded) as u32;
        let words = [&[block_type, length], words].concat();
        let mut block: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        block.extend(bytes);
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        let written = self.file.write_bytes(&block);
        written.map_err(|error| not_written(&self.path, &error))
    }
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    let what = format!("the capture cannot be written to {}", path.display());
    Failure::forbidden(what, error)
        .with_remedy("name a file in a directory that exists and this user may write to")
}
