//! Frames of all captures in a folder, and the RTPS messages in them. They are seeds for other tests, so truncated
//! frames are skipped.

use std::fs;
use std::io;
use std::path::Path;

use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::Packet;
use isolane_wire::udp::Datagram;

/// Header sizes of a pcap file and of each packet.
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;

/// Ethernet frames of all pcap files, in an order that does not depend on that of the folder.
pub(crate) fn frames(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "pcap")
        {
            let file = fs::read(path)?;
            let mut rest = file.get(FILE_HEADER_BYTES..).unwrap_or_default();
            while let Some((head, behind)) = rest.split_first_chunk::<PACKET_HEADER_BYTES>() {
                let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
                let Some((frame, behind)) = behind.split_at_checked(length) else {
                    break;
                };
                frames.push(frame.to_vec());
                rest = behind;
            }
        }
    }
    frames.sort();
    Ok(frames)
}

/// Returns the RTPS message in a frame.
pub(crate) fn rtps_message(frame: &[u8]) -> Option<&[u8]> {
    let frame = Frame::new_checked(frame).ok()?;
    if frame.ether_type() != EtherType::IPV4 {
        return None;
    }
    let packet = Packet::new_checked(frame.payload()).ok()?;
    let payload = Datagram::new_checked(packet.payload()).ok()?.payload();
    payload.starts_with(b"RTPS").then_some(payload)
}
