//! Check of payloads: each is read as the type of its writer, and written again.

use std::collections::BTreeMap;

use isolane_derive::TopicType;
use isolane_wire::{
    builtin_data::{EndpointData, ParticipantData, ParticipantMessage, parse_key_guid},
    cdr::{
        Representation, TopicType, key_hash, key_hash_of_payload, read_payload, view_payload,
        write_key_payload, write_payload,
    },
    guid::{EntityId, Guid},
    message::{Data, DataFrag, Header, PayloadKind},
};

use super::lists::Lists;

/// Type of the public interoperability tests, with room for large samples.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(appendable, crate = "isolane_wire::cdr")]
struct ShapeType {
    #[topic(key, bound = 128)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    #[topic(bound = 200_000)]
    additional_payload_size: Vec<u8>,
}

/// Type of the capture with type information.
#[derive(Clone, Debug, PartialEq, TopicType)]
#[topic(final_, crate = "isolane_wire::cdr")]
struct PP {
    number: u32,
    padding: Vec<u8>,
}

/// Number of payloads of one kind, and of the canonical ones among them.
#[derive(Default)]
struct Count {
    all: usize,
    canonical: usize,
}

/// Sample of which some fragments have arrived.
struct Partial {
    bytes: Vec<u8>,
    missing: usize,
}

/// Payloads of a capture.
#[derive(Default)]
pub(super) struct Payloads {
    counts: BTreeMap<&'static str, Count>,
    /// Partial samples by writer and sequence number.
    partial: BTreeMap<(Guid, i64), Partial>,
}

impl Payloads {
    pub(super) fn add(&mut self, name: &str, header: &Header, data: &Data<'_>, lists: &mut Lists) {
        let bytes = data.bytes;
        assert!(!data.non_standard);
        if data.payload == PayloadKind::None {
            assert!(data.key_hash().is_some(), "{name}: whose end is it?");
            return self.count("none, a key hash instead", None);
        }
        let is_key = data.payload == PayloadKind::Key;
        let what = match data.writer {
            _ if is_key && data.writer.is_builtin() => {
                lists.add_announced(bytes);
                let guid = parse_key_guid(bytes).expect("a GUID");
                assert_eq!(guid.prefix, header.prefix, "{name}");
                "key of discovery"
            }
            EntityId::SPDP_WRITER => {
                lists.add_announced(bytes);
                ParticipantData::parse(bytes).expect("a participant");
                "participant"
            }
            EntityId::SEDP_PUBLICATIONS_WRITER => {
                lists.add_announced(bytes);
                EndpointData::parse_writer(bytes).expect("a writer");
                "writer"
            }
            EntityId::SEDP_SUBSCRIPTIONS_WRITER => {
                lists.add_announced(bytes);
                EndpointData::parse_reader(bytes).expect("a reader");
                "reader"
            }
            EntityId::P2P_MESSAGE_WRITER => return self.add_message(header, bytes),
            user if user.is_builtin() => panic!("{name}: {user} is not known"),
            _ if is_key => return self.add_key(bytes),
            _ if name == "fast-fast-typeinfo" => return self.add_sample::<PP>("PP", bytes),
            _ => return self.add_sample::<ShapeType>("ShapeType", bytes),
        };
        self.count(what, None);
    }

    fn add_message(&mut self, header: &Header, bytes: &[u8]) {
        let message = ParticipantMessage::parse(bytes).expect("a message");
        assert_eq!(message.participant, header.prefix);
        let mut written = vec![0; message.buffer_len().next_multiple_of(4)];
        message.emit(&mut written).unwrap();
        self.count("liveliness", Some(written == bytes));
    }

    /// Key of a shape: DHEADER, length of the colour, text, NUL, and up to three zeros, whose number is in the options.
    fn add_key(&mut self, bytes: &[u8]) {
        let padding = usize::from(bytes[3] & 3);
        let colour = &bytes[12..bytes.len() - padding - 1];
        let key = ShapeType {
            color: String::from_utf8(colour.to_vec()).unwrap(),
            x: 0,
            y: 0,
            shapesize: 0,
            additional_payload_size: Vec::new(),
        };
        let hash = key_hash_of_payload::<ShapeType>(bytes, true);
        assert_eq!(hash, key_hash(&key), "{bytes:02x?}");
        let mut written = vec![0; bytes.len() + 64];
        let length = write_key_payload(&key, Representation::Xcdr2, &mut written).unwrap();
        self.count("ShapeType, key", Some(written[..length] == *bytes));
    }

    fn add_sample<T: TopicType + PartialEq + core::fmt::Debug>(
        &mut self,
        what: &'static str,
        bytes: &[u8],
    ) {
        let value = read_payload::<T>(bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(view_payload::<T>(bytes).is_ok(), "{what}: no view");
        let representation = match bytes[1] {
            0 | 1 => Representation::Xcdr1,
            _ => Representation::Xcdr2,
        };
        let mut written = vec![0; bytes.len() + 64];
        let length = write_payload(&value, representation, &mut written).unwrap();
        self.count(what, Some(written[..length] == *bytes));
    }

    pub(super) fn add_fragments(&mut self, header: &Header, data: &DataFrag<'_>) {
        let writer = Guid {
            prefix: header.prefix,
            entity: data.writer,
        };
        let size = data.sample_size as usize;
        let key = (writer, data.sequence.get());
        let partial = self.partial.entry(key).or_insert_with(|| Partial {
            bytes: vec![0; size],
            missing: size,
        });
        assert_eq!(partial.bytes.len(), size);
        partial.bytes[data.sample_offset()..][..data.bytes.len()].copy_from_slice(data.bytes);
        // No capture contains a fragment twice.
        partial.missing -= data.bytes.len();
        let whole = if partial.missing == 0 {
            self.partial.remove(&key)
        } else {
            None
        };
        self.count("DATA_FRAG", None);
        if let Some(whole) = whole {
            self.add_sample::<ShapeType>("ShapeType in fragments", &whole.bytes);
        }
    }

    fn count(&mut self, what: &'static str, is_canonical: Option<bool>) {
        let count = self.counts.entry(what).or_default();
        count.all += 1;
        count.canonical += usize::from(is_canonical == Some(true));
    }

    /// Formats the counts as text, a line per kind.
    pub(super) fn description(&self) -> Vec<String> {
        let line = |(what, count): (&&str, &Count)| match what {
            _ if what.contains("ShapeType") || **what == *"PP" || **what == *"liveliness" => {
                format!("{what}: {}, {} canonical", count.all, count.canonical)
            }
            _ => format!("{what}: {}", count.all),
        };
        let mut lines: Vec<String> = self.counts.iter().map(line).collect();
        if !self.partial.is_empty() {
            lines.push(format!("never whole: {}", self.partial.len()));
        }
        lines
    }
}
