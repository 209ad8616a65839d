//! Frames as a pcapng file: a section, an interface for each place where was listened, then the frames.

use std::borrow::Cow;
use std::io::{self, Write};

use pcap_parser::pcapng::{
    EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapNGOption, SectionHeaderBlock,
};
use pcap_parser::{Linktype, ToVec};

/// Of an interface: times are in units of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Of an interface: frames may be as long as they are.
const NO_SNAP_LENGTH: u32 = 0;
/// Of a section: how long it is is not said.
const UNKNOWN_LENGTH: i64 = -1;

/// A frame with its Ethernet header, as the file has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Where it was seen: an index into the names of the interfaces.
    pub(super) interface: u32,
    /// When, in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// As many of its bytes as were copied.
    pub(super) bytes: Vec<u8>,
    /// How many it had.
    pub(super) original_len: usize,
}

/// Writes the frames in the order they are in.
pub(super) fn write(
    file: &mut impl Write,
    interfaces: &[&'static str],
    frames: &[Frame],
) -> io::Result<()> {
    // Types, lengths and ends of options are filled in by the library.
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
    use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
    use pcap_parser::{Block, PcapBlockOwned, PcapError, PcapNGReader};

    use super::*;

    /// The names of the interfaces, and the frames, as a reader finds them.
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
        // Lengths with every padding, a time of more than 32 bits, a frame that was cut.
        let frames = [
            frame(0, 1_795_291_423_488_297_001, 60, 60),
            frame(1, 1_795_291_423_488_297_002, 61, 61),
            frame(0, 0, 62, 1500),
            frame(1, u64::MAX, 63, 63),
        ];
        let mut file = Vec::new();
        write(&mut file, &["host-a", "host-b"], &frames).unwrap();
        let (names, found) = read(&file);
        assert_eq!(names, ["host-a", "host-b"]);
        assert_eq!(found, frames);
    }
}
