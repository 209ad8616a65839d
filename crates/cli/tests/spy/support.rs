//! Runs the command, and builds captures in every format.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::command::isolane;

/// Exit code and output of the command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn spy(arguments: &[&str]) -> Command {
    let mut command = isolane(&["spy"]);
    command.args(arguments);
    command
}

pub(crate) fn run(command: &mut Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command starts");
    Said {
        code: status.code().expect("no signal"),
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// Captures of other implementations.
const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/captures");

/// Path of one capture.
pub(crate) fn captured(name: &str) -> PathBuf {
    Path::new(CAPTURES).join(name).with_extension("pcap")
}

/// Names of all captures.
pub(crate) fn captures() -> Vec<String> {
    let folder = std::fs::read_dir(CAPTURES).expect("the captures");
    let names = folder.filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().ok()?;
        name.strip_suffix(".pcap").map(str::to_owned)
    });
    let names: Vec<String> = names.collect();
    assert!(names.len() > 1, "{names:?}");
    names
}

/// File of one test, removed at its end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("isolane-spy-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Frame of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) seconds: u32,
    pub(crate) microseconds: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) original_len: u32,
}

/// The frames of a capture of other implementations: pcap 2.4, microseconds, little-endian, Ethernet.
pub(crate) fn frames(name: &str) -> Vec<Frame> {
    let file = std::fs::read(captured(name)).expect("a capture");
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let length = number(&head[8..12]) as usize;
        frames.push(Frame {
            seconds: number(&head[..4]),
            microseconds: number(&head[4..8]),
            bytes: behind[..length].to_vec(),
            original_len: number(&head[12..]),
        });
        rest = &behind[length..];
    }
    frames
}

/// Frame of one UDP datagram with this payload, between two hosts, with correct checksums.
pub(crate) fn frame_of(payload: &[u8]) -> Frame {
    use isolane_wire::{ethernet, ethernet::MacAddress, ipv4, udp};
    let (source, destination) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let udp = udp::Repr {
        source_port: 7411,
        destination_port: 7411,
        payload_len: payload.len(),
    };
    let ip = ipv4::Repr {
        source,
        destination,
        protocol: ipv4::PROTOCOL_UDP,
        dscp: 56,
        time_to_live: 1,
        dont_fragment: true,
        identification: 1,
        payload_len: udp.buffer_len() + payload.len(),
    };
    let ethernet = ethernet::Repr {
        destination: MacAddress([2; 6]),
        source: MacAddress([4; 6]),
        tags: [].into_iter().collect(),
        ether_type: ethernet::EtherType::IPV4,
    };
    let mut bytes = vec![0; ethernet.buffer_len() + ip.buffer_len() + udp.buffer_len()];
    bytes.extend_from_slice(payload);
    let ip_start = ethernet.emit(&mut bytes);
    let udp_start = ip_start + ip.emit(&mut bytes[ip_start..]);
    udp.emit_with_checksum(&mut bytes[udp_start..], source, destination);
    Frame {
        seconds: 1,
        microseconds: 2,
        original_len: bytes.len() as u32,
        bytes,
    }
}

/// A pcap file, little-endian, in microseconds.
pub(crate) fn pcap(link: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0x0004_0000, link] {
        file.extend(word.to_le_bytes());
    }
    for frame in frames {
        for word in [
            frame.seconds,
            frame.microseconds,
            frame.bytes.len() as u32,
            frame.original_len,
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame.bytes);
    }
    file
}

/// A pcap file, big-endian, in nanoseconds.
pub(crate) fn pcap_of_nanoseconds(link: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(0xa1b2_3c4d_u32.to_be_bytes());
    file.extend([0, 2, 0, 4]);
    for word in [0, 0, 0x0004_0000, link] {
        file.extend(word.to_be_bytes());
    }
    for frame in frames {
        for word in [
            frame.seconds,
            frame.microseconds * 1000,
            frame.bytes.len() as u32,
            frame.original_len,
        ] {
            file.extend(word.to_be_bytes());
        }
        file.extend(&frame.bytes);
    }
    file
}

/// A pcapng file with one interface `eth7` whose times are in nanoseconds.
pub(crate) fn pcapng(link: u16, frames: &[Frame]) -> Vec<u8> {
    let mut file = section(link, 0x0004_0000);
    for frame in frames {
        let time = (u64::from(frame.seconds) * 1_000_000 + u64::from(frame.microseconds)) * 1000;
        let mut packet = Vec::new();
        for word in [
            0,
            (time >> 32) as u32,
            time as u32,
            frame.bytes.len() as u32,
            frame.original_len,
        ] {
            packet.extend(word.to_le_bytes());
        }
        packet.extend(&frame.bytes);
        packet.resize(packet.len().next_multiple_of(4), 0);
        file.extend(block(6, &packet));
    }
    file
}

/// Capture in pcapng of frames without time stamps (Simple Packet Blocks), cut at `snaplen` bytes; 0: not cut.
pub(crate) fn pcapng_without_times(link: u16, snaplen: u32, frames: &[Frame]) -> Vec<u8> {
    let mut file = section(link, snaplen);
    for frame in frames {
        let mut packet = frame.original_len.to_le_bytes().to_vec();
        let limit = if snaplen == 0 {
            usize::MAX
        } else {
            snaplen as usize
        };
        packet.extend(frame.bytes.iter().take(limit));
        packet.resize(packet.len().next_multiple_of(4), 0);
        file.extend(block(3, &packet));
    }
    file
}

/// A Section Header Block and an Interface Description Block.
fn section(link: u16, snaplen: u32) -> Vec<u8> {
    let mut file = block(0x0a0d_0d0a, &{
        let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        section.extend(u64::MAX.to_le_bytes());
        section
    });
    let mut interface = link.to_le_bytes().to_vec();
    interface.extend([0, 0]);
    interface.extend(snaplen.to_le_bytes());
    // if_name, if_tsresol, the end of options.
    interface.extend([2, 0, 4, 0]);
    interface.extend(b"eth7");
    interface.extend([9, 0, 1, 0, 9, 0, 0, 0]);
    interface.extend([0; 4]);
    file.extend(block(1, &interface));
    file
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 12).to_le_bytes();
    let mut block = kind.to_le_bytes().to_vec();
    block.extend(length);
    block.extend(body);
    block.extend(length);
    block
}
