//! An RTPS message as items, one a submessage, each with whom it is from and for.

use isolane_model::Word;
use isolane_wire::{
    Error,
    discovery::{EndpointData, ParticipantData, ParticipantMessage, parse_key_guid},
    guid::{EntityId, Guid, GuidPrefix},
    rtps::{Data, HEADER_BYTES, Header, PayloadKind, Submessage, Submessages},
};

/// What a submessage is, as `--kind` and the summary name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// DATA of a user's topic, or of a built-in one that is not discovery.
    Data,
    DataFragment,
    Heartbeat,
    HeartbeatFragment,
    AckNack,
    NackFragment,
    Gap,
    /// DATA that announces a participant.
    Spdp,
    /// DATA that announces a writer or reader.
    Sedp,
    /// DATA by which a participant says that it or its user is alive.
    Liveliness,
    /// What a message says of itself as a whole.
    HeaderExtension,
    /// INFO_TS, INFO_SRC, INFO_DST, INFO_REPLY, INFO_REPLY_IP4.
    Info,
    Pad,
    /// A submessage of a vendor's, of DDS Security, or of a later version.
    Unknown,
    Malformed,
}

impl Word for Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("data", Self::Data),
        ("data-frag", Self::DataFragment),
        ("heartbeat", Self::Heartbeat),
        ("heartbeat-frag", Self::HeartbeatFragment),
        ("acknack", Self::AckNack),
        ("nack-frag", Self::NackFragment),
        ("gap", Self::Gap),
        ("spdp", Self::Spdp),
        ("sedp", Self::Sedp),
        ("liveliness", Self::Liveliness),
        ("header-extension", Self::HeaderExtension),
        ("info", Self::Info),
        ("pad", Self::Pad),
        ("unknown", Self::Unknown),
        ("malformed", Self::Malformed),
    ];
}

/// A submessage.
pub(crate) struct Item<'a> {
    pub(crate) kind: Kind,
    /// Where in the message it begins.
    pub(crate) offset: usize,
    /// The writer it is from or about.
    pub(crate) writer: Option<Guid>,
    /// The reader it is from or for; without an entity: all that match.
    pub(crate) reader: Option<Guid>,
    /// What a built-in writer says, if this is of one that is known.
    pub(crate) announcement: Option<Announcement>,
    pub(crate) submessage: Result<Submessage<'a>, Error>,
    /// The capture ends within it: that it is malformed is no fault of the sender's.
    pub(crate) is_cut: bool,
}

/// What a submessage of discovery, or of liveliness, says.
pub(crate) enum Announcement {
    Participant(Box<ParticipantData>),
    Writer(Box<EndpointData>),
    Reader(Box<EndpointData>),
    /// Somebody leaves.
    End(Option<Guid>),
    /// A participant says something to all others.
    Message {
        participant: GuidPrefix,
        kind: [u8; 4],
        data_len: usize,
    },
    Malformed(Error),
}

/// A message: its header, and its items.
pub(crate) struct Message<'a> {
    pub(crate) header: Header,
    pub(crate) items: Vec<Item<'a>>,
}

impl<'a> Message<'a> {
    /// Takes a payload apart; `is_cut`: not all of it was captured.
    ///
    /// # Errors
    /// What is wrong with the header.
    pub(crate) fn read(payload: &'a [u8], is_cut: bool) -> Result<Self, Error> {
        let header = Header::parse(payload)?;
        let mut source = header.prefix;
        let mut destination = GuidPrefix::UNKNOWN;
        let mut submessages = Submessages::new(payload, HEADER_BYTES);
        let mut items = Vec::new();
        loop {
            let offset = submessages.offset();
            let Some(submessage) = submessages.next() else {
                return Ok(Self { header, items });
            };
            let submessage = match submessage {
                Ok(Submessage::HeaderExtension(extension)) if !is_cut => {
                    extension.verify(payload).and(submessage)
                }
                other => other,
            };
            match submessage {
                Ok(Submessage::InfoSource(info)) => {
                    source = info.prefix;
                    destination = GuidPrefix::UNKNOWN;
                }
                Ok(Submessage::InfoDestination(prefix)) => destination = prefix,
                _ => {}
            }
            let ends_with_capture = is_cut && submessages.offset() == payload.len();
            items.push(Item::new(
                submessage,
                offset,
                [source, destination],
                ends_with_capture,
            ));
        }
    }
}

impl<'a> Item<'a> {
    fn new(
        submessage: Result<Submessage<'a>, Error>,
        offset: usize,
        [source, destination]: [GuidPrefix; 2],
        ends_with_capture: bool,
    ) -> Self {
        let guid = |prefix, entity| Some(Guid { prefix, entity });
        let (kind, writer, reader) = match &submessage {
            Ok(Submessage::Data(data)) => (kind_of(data), data.writer, data.reader),
            Ok(Submessage::DataFrag(data)) => (Kind::DataFragment, data.writer, data.reader),
            Ok(Submessage::Heartbeat(it)) => (Kind::Heartbeat, it.writer, it.reader),
            Ok(Submessage::HeartbeatFrag(it)) => (Kind::HeartbeatFragment, it.writer, it.reader),
            Ok(Submessage::Gap(it)) => (Kind::Gap, it.writer, it.reader),
            Ok(Submessage::AckNack(it)) => (Kind::AckNack, it.writer, it.reader),
            Ok(Submessage::NackFrag(it)) => (Kind::NackFragment, it.writer, it.reader),
            other => {
                let kind = match other {
                    Ok(Submessage::Pad) => Kind::Pad,
                    Ok(Submessage::Other { .. }) => Kind::Unknown,
                    Ok(Submessage::HeaderExtension(_)) => Kind::HeaderExtension,
                    Ok(_) => Kind::Info,
                    Err(_) => Kind::Malformed,
                };
                return Self {
                    kind,
                    offset,
                    writer: None,
                    reader: None,
                    announcement: None,
                    is_cut: ends_with_capture && submessage.is_err(),
                    submessage,
                };
            }
        };
        // Readers send ACKNACK and NACK_FRAG; everything else comes from writers.
        let from_reader = matches!(kind, Kind::AckNack | Kind::NackFragment);
        let (writer, reader) = if from_reader {
            (guid(destination, writer), guid(source, reader))
        } else {
            (guid(source, writer), guid(destination, reader))
        };
        let announcement = match &submessage {
            Ok(Submessage::Data(data)) if !ends_with_capture => announcement(data),
            _ => None,
        };
        Self {
            kind,
            offset,
            writer,
            reader,
            announcement,
            submessage,
            is_cut: ends_with_capture,
        }
    }
}

fn kind_of(data: &Data<'_>) -> Kind {
    match data.writer {
        EntityId::SPDP_WRITER => Kind::Spdp,
        EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_WRITER => Kind::Sedp,
        EntityId::P2P_MESSAGE_WRITER => Kind::Liveliness,
        _ => Kind::Data,
    }
}

fn announcement(data: &Data<'_>) -> Option<Announcement> {
    match kind_of(data) {
        Kind::Spdp | Kind::Sedp => {}
        Kind::Liveliness if data.payload == PayloadKind::Data => return Some(message(data.bytes)),
        _ => return None,
    }
    if data.payload != PayloadKind::Data {
        let named = parse_key_guid(data.bytes).or(data.key_hash().map(Guid::from_bytes));
        return Some(Announcement::End(named));
    }
    let read = match data.writer {
        EntityId::SPDP_WRITER => {
            ParticipantData::parse(data.bytes).map(|it| Announcement::Participant(Box::new(it)))
        }
        EntityId::SEDP_PUBLICATIONS_WRITER => {
            EndpointData::parse_writer(data.bytes).map(|it| Announcement::Writer(Box::new(it)))
        }
        _ => EndpointData::parse_reader(data.bytes).map(|it| Announcement::Reader(Box::new(it))),
    };
    Some(read.unwrap_or_else(Announcement::Malformed))
}

fn message(payload: &[u8]) -> Announcement {
    match ParticipantMessage::parse(payload) {
        Ok(message) => Announcement::Message {
            participant: message.participant,
            kind: message.kind,
            data_len: message.data.len(),
        },
        Err(error) => Announcement::Malformed(error),
    }
}
