//! Frames out of a capture: pcap (micro- or nanoseconds, either byte order) and pcapng.

use std::io::Read;
use std::path::Path;

use isolane_model::open_regular;
use isolane_wire::cooked::Version;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, InterfaceDescriptionBlock, Linktype, PcapBlockOwned, PcapError, create_reader,
};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::frame::{Frame, Link};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{CAPTURE_BLOCK_BYTES, CAPTURE_INTERFACES};
use crate::stop;

/// Between two looks whether a signal has come.
const SIGNAL_POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A capture that is being read.
pub(crate) struct CaptureFile {
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Those of the section that is being read; a pcap has one.
    interfaces: Vec<Interface>,
    /// Fractions of a second are nanoseconds (pcap only).
    nanoseconds: bool,
}

/// An interface that frames were captured on.
struct Interface {
    link: Link,
    name: Option<String>,
    /// Units of time a second; `None`: not one this reader understands.
    units_per_second: Option<u64>,
    offset_seconds: i64,
}

/// How reading ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// After the last frame.
    Whole,
    /// In the middle of one: whoever captured was stopped, or the copy is cut.
    BrokenOff,
}

impl CaptureFile {
    /// Opens a capture; `-` is standard input.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |why: String| {
            let what = format!("cannot read the capture {}", path.display());
            Failure::new(ExitCode::WrongUsage, what, why)
        };
        let input: Box<dyn Read + Send> = if path.as_os_str() == "-" {
            Box::new(StandardInput)
        } else {
            let file = open_regular(path).map_err(|error| {
                failed(error.to_string()).with_remedy(
                    "name a capture; use - for standard input (tcpdump -w - | isolane spy -), or leave the name out to \
                     listen on the interfaces of this host",
                )
            })?;
            Box::new(file)
        };
        let none = || {
            failed(String::from("it is neither pcap nor pcapng"))
                .with_remedy("capture with: tcpdump -i INTERFACE -w FILE.pcap udp")
        };
        let reader = create_reader(CAPTURE_BLOCK_BYTES, WholeReads(input)).map_err(|_| none())?;
        Ok(Self {
            reader,
            interfaces: Vec::new(),
            nanoseconds: false,
        })
    }

    /// Gives every frame to `each`, in the order of the file, until it returns false.
    ///
    /// # Errors
    /// What `each` returned, or that the file cannot be read on.
    pub(crate) fn read(
        mut self,
        mut each: impl FnMut(Frame<'_>) -> Result<bool, Failure>,
    ) -> Result<End, Failure> {
        loop {
            // A frame that is not there whole ends the file: nothing behind it can be found.
            let (length, goes_on) = match self.reader.next() {
                Ok((length, block)) => {
                    let goes_on = match take(&block, &mut self.interfaces, &mut self.nanoseconds) {
                        Some(frame) => each(frame)?,
                        None => true,
                    };
                    (length, goes_on)
                }
                Err(PcapError::Eof) => return Ok(End::Whole),
                Err(PcapError::Incomplete(_)) => {
                    if self.reader.refill().is_err() {
                        return Ok(End::BrokenOff);
                    }
                    continue;
                }
                Err(_) => return Ok(End::BrokenOff),
            };
            if !goes_on {
                return Ok(End::Whole);
            }
            self.reader.consume(length);
        }
    }
}

/// Standard input. A signal that asks to end is its end, also while nothing comes.
struct StandardInput;

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let input = rustix::stdio::stdin();
        while !stop::is_wished() {
            let mut waited = [PollFd::new(&input, PollFlags::IN)];
            match rustix::event::poll(&mut waited, Some(&SIGNAL_POLL)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(rustix::io::read(input, buffer)?),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}

/// Reads as much as there is room for: the parser takes a short read for all there is.
struct WholeReads(Box<dyn Read + Send>);

impl Read for WholeReads {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut length = 0;
        while length < buffer.len() {
            match self.0.read(&mut buffer[length..])? {
                0 => break,
                read => length += read,
            }
        }
        Ok(length)
    }
}

/// The frame of a block, if it is one's; what other blocks say is remembered.
fn take<'a>(
    block: &'a PcapBlockOwned<'_>,
    interfaces: &'a mut Vec<Interface>,
    nanoseconds: &mut bool,
) -> Option<Frame<'a>> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *nanoseconds = header.is_nanosecond_precision();
            interfaces.push(Interface {
                link: link(header.network),
                name: None,
                units_per_second: None,
                offset_seconds: 0,
            });
            None
        }
        PcapBlockOwned::Legacy(block) => {
            let unit = if *nanoseconds { 1 } else { 1_000 };
            let time = u64::from(block.ts_sec) * 1_000_000_000 + u64::from(block.ts_usec) * unit;
            Some(Frame {
                link: interfaces.first()?.link,
                bytes: block.data,
                original_len: block.origlen as usize,
                time_ns: Some(time),
                interface: None,
            })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < CAPTURE_INTERFACES {
                interfaces.push(Interface::of(description));
            }
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interfaces.get(packet.if_id as usize)?;
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            Some(Frame {
                link: interface.link,
                bytes: packet.packet_data(),
                original_len: packet.origlen as usize,
                time_ns: interface.time_ns(units),
                interface: interface.name.as_deref(),
            })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = interfaces.first()?;
            Some(Frame {
                link: interface.link,
                bytes: packet.packet_data(),
                original_len: packet.origlen as usize,
                time_ns: None,
                interface: interface.name.as_deref(),
            })
        }
        PcapBlockOwned::NG(_) => None,
    }
}

impl Interface {
    fn of(description: &InterfaceDescriptionBlock<'_>) -> Self {
        let name = description.if_name().and_then(Result::ok);
        Self {
            link: link(description.linktype),
            name: name.map(String::from),
            units_per_second: description.ts_resolution(),
            offset_seconds: description.ts_offset(),
        }
    }

    fn time_ns(&self, units: u64) -> Option<u64> {
        let per_second = u128::from(self.units_per_second?);
        let nanoseconds = u128::from(units) * 1_000_000_000 / per_second;
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        u64::try_from(i128::try_from(nanoseconds).ok()? + offset).ok()
    }
}

fn link(link: Linktype) -> Link {
    match link {
        Linktype::ETHERNET => Link::Ethernet,
        Linktype::LINUX_SLL => Link::Cooked(Version::One),
        Linktype::LINUX_SLL2 => Link::Cooked(Version::Two),
        Linktype::RAW | Linktype::IPV4 => Link::Ip,
        Linktype::NULL | Linktype::LOOP => Link::Loopback,
        Linktype(other) => Link::Unknown(other),
    }
}
