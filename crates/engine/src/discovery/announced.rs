//! The endpoints of peers, as they were announced.
//!
//! Ten thousand of them may be known, and an announcement that is read takes two kilobytes. So a record keeps the
//! announcement as it would be sent, most often three or four hundred bytes, in pieces of a table that has a limit of its
//! own; it is read again when a match is to be judged, or somebody asks. What is compared with every endpoint, its topic,
//! lies beside it as a hash.

use isolane_wire::{
    discovery::EndpointData,
    guid::{EntityId, Guid},
    qos::{Octets, QosPolicies},
    sequence::SequenceNumber,
};

use super::{EndpointKind, RemoteEndpoint};
use crate::{
    content_filter::FilterText,
    limits::DISCOVERY_SLOT_BYTES,
    matching::Refusal,
    table::{Full, Table},
};

/// Bytes of a piece: with the index of the next one two cache lines.
const PIECE_BYTES: usize = 126;

/// Pieces for each endpoint that there is room for: on average its announcement takes no more. With fewer it counts as so
/// many in the share of its participant.
pub(super) const PIECES_PER_ENDPOINT: usize = 4;

/// No piece.
const NONE: u16 = u16::MAX;

/// A part of an announcement.
#[derive(Debug)]
struct Piece {
    next: u16,
    bytes: [u8; PIECE_BYTES],
}

/// An announcement that is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    first: u16,
    length: u16,
    /// USER_DATA, TOPIC_DATA and GROUP_DATA are the first octets of more.
    are_cut: [bool; 3],
}

impl Kept {
    #[cfg(test)]
    pub(crate) const NONE: Self = Self {
        first: NONE,
        length: 0,
        are_cut: [false; 3],
    };

    /// Pieces that it takes.
    pub(super) fn pieces(&self) -> usize {
        usize::from(self.length).div_ceil(PIECE_BYTES)
    }
}

/// An announcement as it is kept, before it has a place.
#[derive(Debug)]
pub(super) struct Written {
    bytes: Scratch,
    length: usize,
    are_cut: [bool; 3],
}

impl Written {
    /// What is announced of an endpoint and its content filter. All that is known of one is bounded below a slot.
    pub(super) fn of(data: &EndpointData, filter: Option<&FilterText>) -> Result<Self, Full> {
        let mut bytes: Scratch = [0; DISCOVERY_SLOT_BYTES];
        let emitted = data.emit_filtered(filter.map(FilterText::value), &mut bytes);
        debug_assert!(emitted.is_ok(), "its parts are bounded");
        Ok(Self {
            length: emitted.map_err(|_| Full)?,
            bytes,
            are_cut: octets(&data.qos).map(Octets::is_cut),
        })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Pieces that it takes.
    pub(super) fn pieces(&self) -> usize {
        self.length.div_ceil(PIECE_BYTES)
    }
}

/// The announcements of all endpoints of peers.
#[derive(Debug)]
pub(crate) struct Announcements {
    pieces: Table<Piece>,
}

fn octets(qos: &QosPolicies) -> [&Octets; 3] {
    [&qos.user_data, &qos.topic_data, &qos.group_data]
}

/// Where an announcement is written, or put together, to be compared and read.
type Scratch = [u8; DISCOVERY_SLOT_BYTES];

impl Announcements {
    /// Room for those of so many endpoints, and some more for topics of the highest level in use.
    pub(crate) fn new(endpoints: usize, is_fixed: bool) -> Self {
        Self {
            pieces: Table::with_kept(endpoints * PIECES_PER_ENDPOINT, is_fixed),
        }
    }

    /// Pieces there is room for, where the topic has the highest level in use or not.
    pub(super) fn free_for(&self, is_highest: bool) -> usize {
        self.pieces.free_for(is_highest)
    }

    /// Keeps what is announced of an endpoint.
    pub(super) fn keep(&mut self, written: &Written) -> Result<Kept, Full> {
        if written.pieces() > self.pieces.free() {
            return Err(Full);
        }
        let mut first = NONE;
        // From the last piece to the first, so that each knows the next.
        for part in written.bytes().chunks(PIECE_BYTES).rev() {
            let mut bytes = [0; PIECE_BYTES];
            bytes[..part.len()].copy_from_slice(part);
            first = self.pieces.insert(Piece { next: first, bytes })?;
        }
        Ok(Kept {
            first,
            length: written.length as u16,
            are_cut: written.are_cut,
        })
    }

    /// Lets an announcement go.
    pub(crate) fn release(&mut self, kept: &Kept) {
        let mut at = kept.first;
        while let Some(piece) = self.pieces.remove(at) {
            at = piece.next;
        }
    }

    fn put_together<'a>(&self, kept: &Kept, scratch: &'a mut Scratch) -> &'a [u8] {
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

    /// Whether an announcement says what is kept.
    pub(super) fn says(&self, kept: &Kept, written: &Written) -> bool {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        written.are_cut == kept.are_cut && self.put_together(kept, &mut scratch) == written.bytes()
    }
}

/// An endpoint of a peer in its table.
#[derive(Debug)]
pub(crate) struct EndpointRecord {
    pub(crate) guid: Guid,
    pub(crate) kind: EndpointKind,
    pub(crate) participant: u16,
    /// Sequence number of its announcement; none: it is described.
    pub(crate) announced_by: Option<SequenceNumber>,
    /// Why matches of it found no place.
    pub(crate) refused: Refusal,
    /// It is known by a description, which holds whatever is announced of it.
    pub(crate) is_described: bool,
    /// The hash of its topic's name.
    pub(crate) topic: u64,
    /// The publisher or subscriber that it belongs to, in its participant.
    pub(crate) group: Option<EntityId>,
    /// What was announced of it, and of its content filter.
    pub(crate) kept: Kept,
}

impl EndpointRecord {
    /// What was announced of its content filter.
    pub(crate) fn filter(&self, announcements: &Announcements) -> Option<FilterText> {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        match self.kind {
            EndpointKind::Writer => None,
            EndpointKind::Reader => {
                FilterText::of(announcements.put_together(&self.kept, &mut scratch))
            }
        }
    }

    /// What was announced of it.
    pub(crate) fn data(&self, announcements: &Announcements) -> EndpointData {
        let mut scratch: Scratch = [0; DISCOVERY_SLOT_BYTES];
        let bytes = announcements.put_together(&self.kept, &mut scratch);
        let parsed = match self.kind {
            EndpointKind::Writer => EndpointData::parse_writer(bytes),
            EndpointKind::Reader => EndpointData::parse_reader(bytes),
        };
        debug_assert!(parsed.is_ok(), "it was emitted by this program");
        let mut data = parsed.unwrap_or_else(|_| EndpointData::new(self.guid));
        // A described one has another name since it was heard.
        data.guid = self.guid;
        let QosPolicies {
            user_data,
            topic_data,
            group_data,
            ..
        } = &mut data.qos;
        for (octets, is_cut) in [user_data, topic_data, group_data]
            .into_iter()
            .zip(self.kept.are_cut)
        {
            if is_cut {
                *octets = core::mem::take(octets).of_more();
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
