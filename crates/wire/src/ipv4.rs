//! IPv4 packets (RFC 791).
//!
//! Fragments are detected, but not reassembled; the kernel reassembles them.

use crate::{Error, checksum::Sum};

/// Size of the header without options in bytes.
pub const HEADER_BYTES: usize = 20;

/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// IPv4 packet whose header was checked: it is complete, and its lengths fit the buffer.
#[derive(Debug, Clone)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks a packet; trailing bytes such as Ethernet padding are ignored. The checksum is verified only by
    /// [`has_valid_checksum`](Self::has_valid_checksum).
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::MalformedHeader`] if the version is not 4 or the lengths
    /// contradict each other.
    #[inline]
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let bytes = buffer.as_ref();
        if bytes.len() < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        let packet = Self { buffer };
        let (header_len, total_len) = (packet.header_len(), packet.total_len());
        if packet.byte(0) >> 4 != 4 || header_len < HEADER_BYTES || total_len < header_len {
            return Err(Error::MalformedHeader);
        }
        if total_len > packet.buffer.as_ref().len() {
            return Err(Error::Truncated);
        }
        Ok(packet)
    }

    #[inline]
    fn byte(&self, position: usize) -> u8 {
        self.buffer.as_ref()[position]
    }

    #[inline]
    fn array<const N: usize>(&self, position: usize) -> [u8; N] {
        // `new_checked` verified that the header is complete.
        self.buffer.as_ref()[position..][..N]
            .try_into()
            .unwrap_or([0; N])
    }

    #[inline]
    fn u16(&self, position: usize) -> u16 {
        u16::from_be_bytes(self.array(position))
    }

    /// Size of the header including options in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.byte(0) & 0x0f) * 4
    }

    /// Size of the packet including the header in bytes.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(self.u16(2))
    }

    /// Differentiated services code point, six bits.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.byte(1) >> 2
    }

    /// Class selector, 0 to 7: the upper three bits of the code point, formerly the IP precedence (RFC 2474
    /// §4.2.2).
    #[inline]
    pub fn class_selector(&self) -> u8 {
        self.byte(1) >> 5
    }

    /// Explicit congestion notification, two bits.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.byte(1) & 3
    }

    /// Identification, common to all fragments of a packet.
    #[inline]
    pub fn identification(&self) -> u16 {
        self.u16(4)
    }

    /// DF flag.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.u16(6) & DONT_FRAGMENT != 0
    }

    /// Returns true for a fragment: the first one, which contains the UDP header, or a later one.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.u16(6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// MF flag: the packet is a fragment, but not the last one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.u16(6) & MORE_FRAGMENTS != 0
    }

    /// Offset of the payload in the reassembled packet, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.u16(6) & FRAGMENT_OFFSET) * 8
    }

    /// Remaining hops.
    #[inline]
    pub fn time_to_live(&self) -> u8 {
        self.byte(8)
    }

    /// IP protocol number of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.byte(9)
    }

    /// Source address.
    #[inline]
    pub fn source(&self) -> [u8; 4] {
        self.array(12)
    }

    /// Destination address.
    #[inline]
    pub fn destination(&self) -> [u8; 4] {
        self.array(16)
    }

    /// Verifies the header checksum.
    #[inline]
    pub fn has_valid_checksum(&self) -> bool {
        // `new_checked` refused header lengths beyond the packet. A header without options has a length known at
        // compile time, which takes a third of the instructions.
        let header = &self.buffer.as_ref()[..self.header_len()];
        let sum = match header.as_array::<HEADER_BYTES>() {
            Some(header) => Sum::default().with(header),
            None => Sum::default().with(header),
        };
        sum.complement() == 0
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> Packet<&'a T> {
    /// Bytes after the header, up to the end of the packet.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer.as_ref()[self.header_len()..self.total_len()]
    }
}

/// IPv4 header without options, of a packet that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Source address.
    pub source: [u8; 4],
    /// Destination address.
    pub destination: [u8; 4],
    /// IP protocol number of the payload.
    pub protocol: u8,
    /// Differentiated services code point, six bits.
    pub dscp: u8,
    /// Maximum number of hops.
    pub time_to_live: u8,
    /// DF flag.
    pub dont_fragment: bool,
    /// Identification, common to all fragments of a packet.
    pub identification: u16,
    /// Bytes after the header.
    pub payload_len: usize,
}

impl Repr {
    /// Maximum number of bytes after the header.
    pub const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize - HEADER_BYTES;

    /// Reads the header of a checked packet, skipping options.
    ///
    /// # Errors
    /// [`Error::Checksum`]; [`Error::Fragment`].
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, Error> {
        if !packet.has_valid_checksum() {
            return Err(Error::Checksum);
        }
        if packet.is_fragment() {
            return Err(Error::Fragment);
        }
        Ok(Self {
            source: packet.source(),
            destination: packet.destination(),
            protocol: packet.protocol(),
            dscp: packet.dscp(),
            time_to_live: packet.time_to_live(),
            dont_fragment: packet.dont_fragment(),
            identification: packet.identification(),
            payload_len: packet.total_len() - packet.header_len(),
        })
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header with its checksum to the front of `buffer` and returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len), or `payload_len` is beyond
    /// [`MAX_PAYLOAD_BYTES`](Self::MAX_PAYLOAD_BYTES).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        assert!(
            self.payload_len <= Self::MAX_PAYLOAD_BYTES,
            "the payload does not fit into an IPv4 packet"
        );
        let total_len = (HEADER_BYTES + self.payload_len) as u16;
        let fragmentation = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let header = &mut buffer[..HEADER_BYTES];
        header[0] = 4 << 4 | (HEADER_BYTES / 4) as u8;
        header[1] = self.dscp << 2;
        header[2..4].copy_from_slice(&total_len.to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6..8].copy_from_slice(&fragmentation.to_be_bytes());
        header[8] = self.time_to_live;
        header[9] = self.protocol;
        header[10..12].fill(0);
        header[12..16].copy_from_slice(&self.source);
        header[16..20].copy_from_slice(&self.destination);
        let checksum = Sum::default().with(header).complement();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        HEADER_BYTES
    }
}
