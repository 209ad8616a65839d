//! UDP datagrams over IPv4 (RFC 768).

use crate::{
    Error,
    checksum::{Sum, udp_pseudo_header},
};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 8;

/// Where the checksum stands in the header; with the header's own position, what
/// [`complete`](crate::checksum::complete) needs.
pub const CHECKSUM_OFFSET: usize = 6;

/// A datagram whose header has been checked to be there whole and to agree with the length.
#[derive(Debug, Clone)]
pub struct Datagram<T: AsRef<[u8]>> {
    buffer: T,
}

impl<T: AsRef<[u8]>> Datagram<T> {
    /// Checks a datagram; what follows its end is ignored. The checksum is left to
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

    /// The sender's port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        self.u16(0)
    }

    /// The receiver's port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        self.u16(2)
    }

    /// Bytes of the datagram, header included.
    #[inline]
    pub fn total_len(&self) -> usize {
        usize::from(self.u16(4))
    }

    /// The checksum; 0: there is none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        self.u16(CHECKSUM_OFFSET)
    }

    /// Whether the checksum fits the datagram and the addresses of its packet, or there is none.
    pub fn has_valid_checksum(&self, source: [u8; 4], destination: [u8; 4]) -> bool {
        let datagram = &self.buffer.as_ref()[..self.total_len()];
        let sum = udp_pseudo_header(source, destination, self.u16(4)).with(datagram);
        self.checksum() == 0 || sum.complement() == 0
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> Datagram<&'a T> {
    /// What follows the header, up to the datagram's end.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.buffer.as_ref()[HEADER_BYTES..self.total_len()]
    }
}

/// A datagram's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// The sender's port.
    pub source_port: u16,
    /// The receiver's port.
    pub destination_port: u16,
    /// Bytes that follow the header.
    pub payload_len: usize,
}

impl Repr {
    /// The most bytes that can follow the header in an IPv4 packet without options.
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

    /// Writes the header, without a checksum, at the front of `buffer`; returns its length.
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

    /// Writes the header, with a checksum over it and the payload that already follows it in
    /// `buffer`; returns the header's length. Costs a pass over the payload.
    ///
    /// # Panics
    /// If the buffer is shorter than header and payload; else as [`emit`](Self::emit).
    pub fn emit_with_checksum(
        &self,
        buffer: &mut [u8],
        source: [u8; 4],
        destination: [u8; 4],
    ) -> usize {
        self.emit(buffer);
        let datagram = &mut buffer[..HEADER_BYTES + self.payload_len];
        let sum: Sum = udp_pseudo_header(source, destination, self.length()).with(datagram);
        // Zero would mean "none"; its other form in ones' complement sums up alike.
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
