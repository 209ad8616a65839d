//! UDP datagrams over IPv4 (RFC 768).

use crate::{
    Error,
    checksum::{Sum, udp_pseudo_header},
};

/// Size of the header in bytes.
pub const HEADER_BYTES: usize = 8;

/// Offset of the checksum in the header, for [`complete`](crate::checksum::complete).
pub const CHECKSUM_OFFSET: usize = 6;

/// UDP datagram whose header was checked: it is complete, and its length fits the buffer.
#[derive(Debug, Clone)]
pub struct Datagram<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Datagram<T> {
    /// Checks a datagram; trailing bytes are ignored. The checksum is verified only by
    /// [`has_valid_checksum`](Self::has_valid_checksum).
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::MalformedHeader`] if the length is less than the header's.
    #[inline]
    pub fn new_checked(buffer: T) -> Result<Self, Error> {
        let available = buffer.as_ref().len();
        if available < HEADER_BYTES {
            return Err(Error::Truncated);
        }
        let datagram = Self { buffer };
        match datagram.total_len() {
            length if length < HEADER_BYTES => Err(Error::MalformedHeader),
            length if length > available => Err(Error::Truncated),
            _ => Ok(datagram),
        }
    }

    #[inline]
    fn u16(&self, position: usize) -> u16 {
        let bytes = self.buffer.as_ref();
        u16::from_be_bytes([bytes[position], bytes[position + 1]])
    }

    /// Source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        self.u16(0)
    }

    /// Destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        self.u16(2)
    }

    /// Size of the datagram including the header in bytes.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(self.u16(4))
    }

    /// Checksum; 0 if there is none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.u16(CHECKSUM_OFFSET)
    }

    /// Verifies the checksum with the packet's addresses. Returns true also if the datagram has no checksum.
    pub fn has_valid_checksum(&self, source: [u8; 4], destination: [u8; 4]) -> bool {
        let datagram = &self.buffer.as_ref()[..self.total_len()];
        let sum = udp_pseudo_header(source, destination, self.u16(4)).with(datagram);
        self.checksum() == 0 || sum.complement() == 0
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> Datagram<&'a T> {
    /// Bytes after the header, up to the end of the datagram.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer.as_ref()[HEADER_BYTES..self.total_len()]
    }
}

/// UDP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Bytes after the header.
    pub payload_len: usize,
}

impl Repr {
    /// Maximum number of bytes after the header, in an IPv4 packet without options.
    pub const MAX_PAYLOAD_BYTES: usize = crate::ipv4::Repr::MAX_PAYLOAD_BYTES - HEADER_BYTES;

    /// Reads the header of a checked datagram.
    #[inline]
    pub fn parse<T: AsRef<[u8]>>(datagram: &Datagram<T>) -> Self {
        Self {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            payload_len: datagram.total_len() - HEADER_BYTES,
        }
    }

    /// Bytes that [`emit`](Self::emit) writes.
    #[inline]
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header without checksum to the front of `buffer` and returns its length.
    ///
    /// # Panics
    /// If the buffer is shorter than [`buffer_len`](Self::buffer_len), or `payload_len` is beyond
    /// [`MAX_PAYLOAD_BYTES`](Self::MAX_PAYLOAD_BYTES).
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let length = self.length();
        let header = &mut buffer[..HEADER_BYTES];
        header[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..6].copy_from_slice(&length.to_be_bytes());
        header[CHECKSUM_OFFSET..].fill(0);
        HEADER_BYTES
    }

    /// Writes the header before a payload that is already in `buffer`, and returns the header's length. The checksum
    /// covers header and payload, so computing it takes a pass over the payload.
    ///
    /// # Panics
    /// If the buffer is shorter than header and payload, or `payload_len` is beyond
    /// [`MAX_PAYLOAD_BYTES`](Self::MAX_PAYLOAD_BYTES).
    pub fn emit_with_checksum(
        &self,
        buffer: &mut [u8],
        source: [u8; 4],
        destination: [u8; 4],
    ) -> usize {
        self.emit(buffer);
        let datagram = &mut buffer[..HEADER_BYTES + self.payload_len];
        let sum: Sum = udp_pseudo_header(source, destination, self.length()).with(datagram);
        // 0 means "no checksum"; 0xffff is equivalent in ones' complement.
        let checksum = match sum.complement() {
            0 => 0xffff,
            checksum => checksum,
        };
        datagram[CHECKSUM_OFFSET..HEADER_BYTES].copy_from_slice(&checksum.to_be_bytes());
        HEADER_BYTES
    }

    #[inline]
    fn length(&self) -> u16 {
        assert!(
            self.payload_len <= Self::MAX_PAYLOAD_BYTES,
            "the payload does not fit into a UDP datagram"
        );
        (HEADER_BYTES + self.payload_len) as u16
    }
}
