//! Frame memory, and the metadata that the kernel separates from a frame.
//!
//! A relay must restore all of it: a checksum the sending host offloaded to hardware that a veth lacks
//! (`PACKET_VNET_HDR`), and a VLAN tag the kernel removed (`PACKET_AUXDATA`). The receive timestamp (`SO_TIMESTAMPNS`)
//! lets the relay read a frame later than it arrived.

use std::ptr;

use crate::clock::NANOS_PER_SECOND;
use crate::limits::SLOT_BYTES;

/// Bytes reserved in front of a received frame, for the restored VLAN tag.
pub(super) const TAG_BYTES: usize = 4;
/// Length of both MAC addresses, in front of a VLAN tag.
const ADDRESSES_BYTES: usize = 12;
/// Size of `struct virtio_net_hdr`.
pub(super) const OFFLOAD_HEADER_BYTES: usize = 10;
/// Aligned space for a frame's control messages, in 64-bit words (32 bytes for the time, 40 for the tag).
pub(in crate::system) const CONTROL_WORDS: usize = 12;

/// Handle to a frame in memory reserved at start; cheap to move.
pub(crate) struct Frame(pub(super) Box<Slot>);

pub(super) struct Slot {
    pub(super) bytes: [u8; SLOT_BYTES],
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) offload_header: [u8; OFFLOAD_HEADER_BYTES],
    pub(super) control: [u64; CONTROL_WORDS],
    arrived_realtime_ns: Option<u64>,
    /// True when the frame exceeds a slot or holds several segments: invalid on a link with this MTU.
    oversize: bool,
}

impl Frame {
    pub(crate) fn new() -> Frame {
        Frame(Box::new(Slot {
            bytes: [0; SLOT_BYTES],
            start: TAG_BYTES,
            end: TAG_BYTES,
            offload_header: [0; OFFLOAD_HEADER_BYTES],
            control: [0; CONTROL_WORDS],
            arrived_realtime_ns: None,
            oversize: false,
        }))
    }

    /// Frame bytes as on the wire, from the destination address on, without the frame check sequence.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let slot = &*self.0;
        &slot.bytes[slot.start..slot.end]
    }

    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let slot = &mut *self.0;
        &mut slot.bytes[slot.start..slot.end]
    }

    /// Time of arrival at the device, by the kernel's `CLOCK_REALTIME`.
    pub(crate) fn arrived_realtime_ns(&self) -> Option<u64> {
        self.0.arrived_realtime_ns
    }

    pub(crate) fn is_oversize(&self) -> bool {
        self.0.oversize
    }

    /// Returns the offloaded checksum as (first byte to sum, position of the checksum), both relative to
    /// [`Frame::as_bytes`].
    pub(crate) fn take_unfinished_checksum(&mut self) -> Option<(usize, usize)> {
        const NEEDS_CHECKSUM: u8 = 1;
        let [
            flags,
            _,
            _,
            _,
            _,
            _,
            start_low,
            start_high,
            offset_low,
            offset_high,
        ] = self.0.offload_header;
        if flags & NEEDS_CHECKSUM == 0 {
            return None;
        }
        self.0.offload_header[0] = 0;
        // The kernel counts from the untagged start of the frame.
        let tag = TAG_BYTES - self.0.start;
        let start = usize::from(u16::from_ne_bytes([start_low, start_high])) + tag;
        let offset = usize::from(u16::from_ne_bytes([offset_low, offset_high]));
        Some((start, start + offset))
    }

    /// Replaces the frame's content with `bytes`.
    #[cfg(test)]
    pub(crate) fn fill(&mut self, bytes: &[u8]) {
        self.0.start = TAG_BYTES;
        self.0.end = TAG_BYTES + bytes.len();
        self.as_bytes_mut().copy_from_slice(bytes);
    }

    /// Applies the kernel's metadata to a received frame. `asides` were read before: the header points into this
    /// frame's slot, which is exclusively borrowed from here on.
    pub(super) fn settle(&mut self, length: usize, flags: libc::c_int, asides: &Asides) {
        let slot = &mut *self.0;
        let length = length.saturating_sub(OFFLOAD_HEADER_BYTES);
        slot.start = TAG_BYTES;
        slot.end = (TAG_BYTES + length).min(SLOT_BYTES);
        let segmented = slot.offload_header[1] != 0;
        slot.oversize = segmented || flags & libc::MSG_TRUNC != 0;
        slot.arrived_realtime_ns = asides.arrived_realtime_ns;
        if let Some((protocol, tag)) = asides.vlan_tag
            && length >= ADDRESSES_BYTES
        {
            slot.bytes
                .copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES_BYTES, 0);
            slot.start = 0;
            slot.bytes[ADDRESSES_BYTES..ADDRESSES_BYTES + 2]
                .copy_from_slice(&protocol.to_be_bytes());
            slot.bytes[ADDRESSES_BYTES + 2..ADDRESSES_BYTES + 4]
                .copy_from_slice(&tag.to_be_bytes());
        }
    }
}

/// Kernel metadata of a received frame.
#[derive(Default)]
pub(in crate::system) struct Asides {
    pub(in crate::system) arrived_realtime_ns: Option<u64>,
    /// Protocol and tag control information of the removed VLAN tag.
    pub(in crate::system) vlan_tag: Option<(u16, u16)>,
}

impl Asides {
    /// Reads the control messages of a frame. `header` was filled by recvmsg or recvmmsg.
    pub(in crate::system) fn of(header: &libc::msghdr) -> Asides {
        let mut asides = Asides::default();
        // SAFETY: the kernel filled `header`, so its control pointer and length describe complete
        // control messages, in memory the caller still borrows.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: not null, so it points to a complete control message, see above.
            let kind = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
            // SAFETY: as above; the kernel puts a value of the type read here behind a header of
            // each kind, at no particular alignment.
            unsafe {
                let data = libc::CMSG_DATA(message);
                match kind {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = ptr::read_unaligned(data.cast::<libc::timespec>());
                        let ns = time.tv_sec as u64 * NANOS_PER_SECOND + time.tv_nsec as u64;
                        asides.arrived_realtime_ns = Some(ns);
                    }
                    (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                        let data = ptr::read_unaligned(data.cast::<libc::tpacket_auxdata>());
                        asides.vlan_tag = vlan_tag(&data);
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        asides
    }
}

fn vlan_tag(data: &libc::tpacket_auxdata) -> Option<(u16, u16)> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = if data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        libc::ETH_P_8021Q as u16
    } else {
        data.tp_vlan_tpid
    };
    Some((protocol, data.tp_vlan_tci))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_was_taken_out_is_put_back_behind_the_addresses() {
        let mut frame = Frame::new();
        let received: Vec<u8> = (0..60).collect();
        frame.fill(&received);
        let asides = Asides {
            arrived_realtime_ns: Some(7),
            vlan_tag: Some((0x8100, 0xe001)),
        };
        frame.settle(OFFLOAD_HEADER_BYTES + received.len(), 0, &asides);
        let (addresses, rest) = received.split_at(ADDRESSES_BYTES);
        let tagged = [addresses, &[0x81, 0, 0xe0, 1], rest].concat();
        assert_eq!(frame.as_bytes(), tagged);
        assert_eq!(frame.arrived_realtime_ns(), Some(7));
        assert!(!frame.is_oversize());
    }

    #[test]
    fn a_frame_that_was_cut_or_is_several_segments_is_oversize() {
        let mut frame = Frame::new();
        frame.settle(
            OFFLOAD_HEADER_BYTES + 60,
            libc::MSG_TRUNC,
            &Asides::default(),
        );
        assert!(frame.is_oversize());
        frame.settle(OFFLOAD_HEADER_BYTES + 60, 0, &Asides::default());
        assert!(!frame.is_oversize());
        frame.0.offload_header[1] = 1;
        frame.settle(OFFLOAD_HEADER_BYTES + 60, 0, &Asides::default());
        assert!(frame.is_oversize());
    }
}
