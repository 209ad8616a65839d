//! Announcements of remote endpoints in compact form.
//!
//! Ten thousand remote endpoints may be known, and a parsed announcement takes two kilobytes. A record therefore stores
//! the serialized announcement, typically 300 to 400 bytes, in chained pieces of a bounded table. The announcement is
//! parsed again for matching and for queries. The topic, which is compared with every endpoint, is stored as a hash in
//! the record.

use isolane_wire::{
    builtin_data::EndpointData,
    guid::{EntityId, Guid},
    qos::{Octets, QosPolicies},
    sequence::SequenceNumber,
};

use crate::{
    content_filter::FilterText,
    discovery::{EndpointKind, RemoteEndpoint},
    limits::DISCOVERY_SLOT_BYTES,
    matching::Refusal,
    slab::{Full, PieceId, RemoteParticipantId, Slab},
};

/// Payload of a piece in bytes: with the index of the next piece it fills two cache lines.
const PIECE_BYTES: usize = 126;

/// Pieces allocated per endpoint; the average announcement takes no more. A shorter announcement is charged to its
/// participant's share as this many pieces.
pub(super) const PIECES_PER_ENDPOINT: usize = 4;

/// End of a chain of pieces.
const NONE: PieceId = PieceId(u16::MAX);

/// Piece of a serialized announcement.
#[derive(Debug)]
struct Piece {
    next: PieceId,
    bytes: [u8; PIECE_BYTES],
}

/// Stored announcement.
#[derive(Debug)]
pub(crate) struct StoredAnnouncement {
    first: PieceId,
    length: u16,
    /// Truncation flags of USER_DATA, TOPIC_DATA and GROUP_DATA.
    are_cut: [bool; 3],
}

impl StoredAnnouncement {
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        first: NONE,
        length: 0,
        are_cut: [false; 3],
    };

    pub(super) fn pieces(&self) -> usize {
        usize::from(self.length).div_ceil(PIECE_BYTES)
    }
}

/// Serialized announcement before it is stored.
#[derive(Debug)]
pub(super) struct SerializedAnnouncement {
    bytes: Scratch,
    length: usize,
    are_cut: [bool; 3],
}

impl SerializedAnnouncement {
    /// Serializes an endpoint's data and content filter. All parts are bounded, so that the result fits a slot.
    pub(super) fn of(data: &EndpointData, filter: Option<&FilterText>) -> Result<Self, Full> {
        let mut bytes: Scratch = [0; DISCOVERY_SLOT_BYTES];
        let emitted = data.emit_filtered(filter.map(FilterText::value), &mut bytes);
        debug_assert!(emitted.is_ok(), "its parts are bounded");
        Ok(Self {
            length: emitted.map_err(|_| Full)?,
            bytes,
            are_cut: octets(&data.qos).map(Octets::is_truncated),
        })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(super) fn pieces(&self) -> usize {
        self.length.div_ceil(PIECE_BYTES)
    }
}

/// Stored announcements of all remote endpoints.
#[derive(Debug)]
pub(crate) struct Announcements {
    pieces: Slab<PieceId, Piece>,
}

fn octets(qos: &QosPolicies) -> [&Octets; 3] {
    [&qos.user_data, &qos.topic_data, &qos.group_data]
}

/// Scratch buffer in which an announcement is serialized or reassembled.
type Scratch = [u8; DISCOVERY_SLOT_BYTES];

impl Announcements {
    /// Reserves pieces for `endpoints` announcements, plus some for topics of the highest level in use.
    pub(crate) fn new(endpoints: usize, is_fixed: bool) -> Self {
        Self {
            pieces: Slab::with_kept(endpoints * PIECES_PER_ENDPOINT, is_fixed),
        }
    }

    /// Free pieces for a topic; with `is_highest` including those reserved for topics of the highest level in use.
    pub(super) fn free_for(&self, is_highest: bool) -> usize {
        self.pieces.free_for(is_highest)
    }

    /// Stores a serialized announcement.
    pub(super) fn keep(
        &mut self,
        written: &SerializedAnnouncement,
    ) -> Result<StoredAnnouncement, Full> {
        if written.pieces() > self.pieces.free() {
            return Err(Full);
        }
        let mut first = NONE;
        // Insertion starts from the last piece, since each piece stores the index of the next.
        for part in written.bytes().chunks(PIECE_BYTES).rev() {
            let mut bytes = [0; PIECE_BYTES];
            bytes[..part.len()].copy_from_slice(part);
            first = self.pieces.insert(Piece { next: first, bytes })?;
        }
        Ok(StoredAnnouncement {
            first,
            length: written.length as u16,
            are_cut: written.are_cut,
        })
    }

    /// Frees the pieces of an announcement.
    pub(crate) fn release(&mut self, kept: &StoredAnnouncement) {
        let mut at = kept.first;
        while let Some(piece) = self.pieces.remove(at) {
            at = piece.next;
        }
    }

    fn put_together<'a>(&self, kept: &StoredAnnouncement, scratch: &'a mut Scratch) -> &'a [u8] {
        let bytes = &mut scratch[..usize::from(kept.length)];
        let mut at = kept.first;
        for part in bytes.chunks_mut(PIECE_BYTES) {
            let Some(piece) = self.pieces.get(at) else {
                break;
            };
            part.copy_from_slice(&piece.bytes[..part.len()]);
            at = piece.next;
        }
        bytes
    }

    /// Returns whether a serialized announcement equals the stored one.
    pub(super) fn says(&self, kept: &StoredAnnouncement, written: &SerializedAnnouncement) -> bool {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        written.are_cut == kept.are_cut && self.put_together(kept, &mut scratch) == written.bytes()
    }
}

/// Remote endpoint in its table.
#[derive(Debug)]
pub(crate) struct EndpointRecord {
    pub(crate) guid: Guid,
    pub(crate) kind: EndpointKind,
    pub(crate) participant: RemoteParticipantId,
    /// Sequence number of its SEDP announcement; `None` if statically described.
    pub(crate) announced_by: Option<SequenceNumber>,
    /// Reason why matches of it were refused.
    pub(crate) refused: Refusal,
    /// True for a statically described endpoint, whose announcements are ignored.
    pub(crate) is_described: bool,
    /// Hash of its topic name.
    pub(crate) topic: u64,
    /// Entity id of its publisher or subscriber.
    pub(crate) group: Option<EntityId>,
    /// Stored announcement with its content filter.
    pub(crate) kept: StoredAnnouncement,
}

impl EndpointRecord {
    pub(crate) fn filter(&self, announcements: &Announcements) -> Option<FilterText> {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        match self.kind {
            EndpointKind::Writer => None,
            EndpointKind::Reader => {
                FilterText::of(announcements.put_together(&self.kept, &mut scratch))
            }
        }
    }

    /// Parses its stored announcement.
    pub(crate) fn data(&self, announcements: &Announcements) -> EndpointData {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        let bytes = announcements.put_together(&self.kept, &mut scratch);
        let parsed = match self.kind {
            EndpointKind::Writer => EndpointData::parse_writer(bytes),
            EndpointKind::Reader => EndpointData::parse_reader(bytes),
        };
        debug_assert!(parsed.is_ok(), "it was emitted by this program");
        let mut data = parsed.unwrap_or_else(|_| EndpointData::new(self.guid));
        // The prefix of a described endpoint changes when its first datagram arrives.
        data.guid = self.guid;
        let QosPolicies {
            user_data,
            topic_data,
            group_data,
            ..
        } = &mut data.qos;
        for (octets, is_truncated) in [user_data, topic_data, group_data]
            .into_iter()
            .zip(self.kept.are_cut)
        {
            if is_truncated {
                *octets = core::mem::take(octets).truncated();
            }
        }
        data
    }

    pub(crate) fn show(&self, announcements: &Announcements) -> RemoteEndpoint {
        RemoteEndpoint {
            data: self.data(announcements),
            kind: self.kind,
        }
    }
}
