//! One capture of other implementations, message by message, with times and addresses. IP fragments are reassembled as
//! a kernel would. Unlike [`captures`](super::captures), this module is for tests that need every message: a message
//! that cannot be read is a failure.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::{PROTOCOL_UDP, Packet};
use isolane_wire::udp::Datagram;
use miniz_oxide::inflate::decompress_to_vec;

/// All captures. Those of large samples are complete.
pub(crate) const CONVERSATIONS: [&str; 13] = [
    "big-cyc-whole",
    "big-fast-whole",
    "cyc-cyc",
    "cyc-fast",
    "dust-cyc",
    "fast-cyc",
    "fast-fast-typeinfo",
    "fin-c-d",
    "fin-c-u",
    "fin-d-d",
    "fin-d-u",
    "fin-f-d",
    "fin-f-u",
];

/// Header sizes of a pcap file and of each packet.
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;
/// Header of a gzip file without a name, and sizes of its header and trailer.
const GZIP_HEADER: [u8; 4] = [0x1f, 0x8b, 8, 0];
const GZIP_HEADER_BYTES: usize = 10;
const GZIP_TRAILER_BYTES: usize = 8;

/// RTPS message of a capture.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// Time by the clock of the capturing host, in microseconds.
    pub(crate) time_us: u64,
    pub(crate) source: [u8; 4],
    pub(crate) source_port: u16,
    pub(crate) message: Vec<u8>,
}

/// Capture of two participants.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The RTPS messages, in order.
    pub(crate) said: Vec<Said>,
    /// Number of all frames.
    pub(crate) frames: usize,
    /// Frames that hold an IP fragment.
    pub(crate) ip_fragments: usize,
    /// IP packets that lack fragments, because the capture ends before them.
    pub(crate) incomplete: usize,
    /// Frames that carry no UDP over IPv4.
    pub(crate) other_frames: usize,
}

/// Reads one of [`CONVERSATIONS`] from a folder.
pub(crate) fn conversation(folder: &Path, name: &str) -> Conversation {
    let file = read(folder, name);
    // pcap 2.4, microseconds, little-endian; link type Ethernet.
    assert_eq!(number(&file[..4]), 0xa1b2_c3d4, "{name}: not a pcap file");
    assert_eq!(number(&file[20..24]), 1, "{name}: not Ethernet");
    let mut conversation = Conversation::default();
    let mut packets = Packets::default();
    let mut rest = &file[FILE_HEADER_BYTES..];
    while let Some((head, behind)) = rest.split_first_chunk::<PACKET_HEADER_BYTES>() {
        let captured = number(&head[8..12]) as usize;
        assert_eq!(
            captured,
            number(&head[12..]) as usize,
            "{name}: a frame was cut"
        );
        let time_us = u64::from(number(&head[..4])) * 1_000_000 + u64::from(number(&head[4..8]));
        let (frame, behind) = behind.split_at(captured);
        rest = behind;
        conversation.add(&mut packets, time_us, frame);
    }
    assert!(rest.is_empty(), "{name}: the file ends within a packet");
    conversation.incomplete = packets.0.len();
    conversation
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    let path = folder.join(name);
    if let Ok(plain) = fs::read(path.with_extension("pcap")) {
        return plain;
    }
    let path = path.with_extension("pcap.gz");
    let file = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(file[..4], GZIP_HEADER, "{name}: made without `gzip -n`?");
    let compressed = &file[GZIP_HEADER_BYTES..file.len() - GZIP_TRAILER_BYTES];
    decompress_to_vec(compressed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// Packets of which some fragments have arrived; the captures have fragments in order.
#[derive(Default)]
struct Packets(HashMap<([u8; 4], u16), Vec<u8>>);

impl Conversation {
    fn add(&mut self, packets: &mut Packets, time_us: u64, frame: &[u8]) {
        self.frames += 1;
        let frame = Frame::new_checked(frame).expect("an Ethernet frame");
        if frame.ether_type() != EtherType::IPV4 {
            self.other_frames += 1;
            return;
        }
        let packet = Packet::new_checked(frame.payload()).expect("an IPv4 packet");
        if packet.protocol() != PROTOCOL_UDP {
            self.other_frames += 1;
            return;
        }
        let mut payload = packet.payload().to_vec();
        if packet.is_fragment() {
            self.ip_fragments += 1;
            let key = (packet.source(), packet.identification());
            let parts = packets.0.entry(key).or_default();
            assert_eq!(parts.len(), packet.fragment_offset(), "parts out of order");
            parts.append(&mut payload);
            if packet.more_fragments() {
                return;
            }
            payload = packets.0.remove(&key).unwrap_or_default();
        }
        let datagram = Datagram::new_checked(&payload[..]).expect("a UDP datagram");
        assert!(datagram.payload().starts_with(b"RTPS"), "another protocol");
        self.said.push(Said {
            time_us,
            source: packet.source(),
            source_port: datagram.source_port(),
            message: datagram.payload().to_vec(),
        });
    }
}
