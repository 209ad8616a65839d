//! IPv4 packets (RFC 791).
//!
//! Fragments are told apart and otherwise left alone: only the kernel puts them together.

use crate::{Error, checksum::Sum};

/// Bytes of a header without options.
pub const HEADER_BYTES: usize = 20;

/// The protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// A packet whose header has been checked to be there whole and to agree with the length.
#[derive(Debug, Clone)]
pub struct Packet<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Checks a packet; what follows its end, such as Ethernet's padding, is ignored. The checksum
    /// is left to [`has_valid_checksum`](Self::has_valid_checksum).
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
        // The check has seen to it that the header is there.
        self.buffer.as_ref()[position..][..N]
            .try_into()
            .unwrap_or([0; N])
    }

    #[inline]
    fn u16(&self, position: usize) -> u16 {
        u16::from_be_bytes(self.array(position))
    }

    /// Bytes of the header with its options.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.byte(0) & 0x0f) * 4
    }

    /// Bytes of the packet, header included.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(self.u16(2))
    }

    /// The differentiated services code point, six bits.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.byte(1) >> 2
    }

    /// The class selector, 0 to 7: the upper three bits of the code point, which were the
    /// precedence once (RFC 2474 §4.2.2).
    #[inline]
    pub fn class_selector(&self) -> u8 {
        self.byte(1) >> 5
    }

    /// Explicit congestion notification, two bits.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.byte(1) & 3
    }

    /// What fragments of one packet have in common.
    #[inline]
    pub fn identification(&self) -> u16 {
        self.u16(4)
    }

    /// Whether it must not be cut.
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.u16(6) & DONT_FRAGMENT != 0
    }

    /// Whether it is part of a larger packet: the first part, which has the UDP header, or a later
    /// one, which has none.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.u16(6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// Whether it is a part of a larger packet, and not the last one.
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.u16(6) & MORE_FRAGMENTS != 0
    }

    /// Where in the larger packet its payload belongs, in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.u16(6) & FRAGMENT_OFFSET) * 8
    }

    /// How many routers it may still pass.
    #[inline]
    pub fn time_to_live(&self) -> u8 {
        self.byte(8)
    }

    /// What it carries.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.byte(9)
    }

    /// Who sent it.
    #[inline]
    pub fn source(&self) -> [u8; 4] {
        self.array(12)
    }

    /// Whom it is for.
    #[inline]
    pub fn destination(&self) -> [u8; 4] {
        self.array(16)
    }

    /// Whether the header's checksum fits it.
    #[inline]
    pub fn has_valid_checksum(&self) -> bool {
        // A header length beyond the packet was refused by the check. Nearly all have no options: a
        // length that the compiler knows makes a third of the instructions.
        let header = &self.buffer.as_ref()[..self.header_len()];
        let sum = match header.as_array::<HEADER_BYTES>() {
            Some(header) => Sum::default().with(header),
            None => Sum::default().with(header),
        };
        sum.complement() == 0
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> Packet<&'a T> {
    /// What follows the header, up to the packet's end.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer.as_ref()[self.header_len()..self.total_len()]
    }
}

/// A header without options, of a packet that is not a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Who sends it.
    pub source: [u8; 4],
    /// Whom it is for.
    pub destination: [u8; 4],
    /// What it carries.
    pub protocol: u8,
    /// The differentiated services code point, six bits.
    pub dscp: u8,
    /// How many routers it may pass.
    pub time_to_live: u8,
    /// Whether it must not be cut.
    pub dont_fragment: bool,
    /// What fragments of it would have in common.
    pub identification: u16,
    /// Bytes that follow the header.
    pub payload_len: usize,
}

impl Repr {
    /// The most bytes that can follow the header.
    pub const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize - HEADER_BYTES;

    /// Reads the header of a checked packet; options are skipped.
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

    /// Writes the header, with its checksum, at the front of `buffer`; returns its length.
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
