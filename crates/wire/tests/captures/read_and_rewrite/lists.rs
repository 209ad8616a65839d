//! Check of parameter lists: each parameter is known, its value ends where its type does, and isolane would write the
//! same list.

use std::collections::BTreeSet;

use isolane_wire::{
    ByteOrder,
    parameter::{MUST_UNDERSTAND, ParameterList, ParameterWriter, VENDOR_SPECIFIC, pid},
};

/// Parameter lists of a capture.
#[derive(Default)]
pub(super) struct Lists {
    announced: usize,
    inline: usize,
    canonical: usize,
    parameters: usize,
    of_vendors: BTreeSet<u16>,
}

impl Lists {
    /// Adds the list of an announcement, in its encapsulation.
    pub(super) fn add_announced(&mut self, payload: &[u8]) {
        assert_eq!(payload[..2], [0, 3], "PL_CDR_LE");
        let bytes = &payload[4..];
        let (list, length) = ParameterList::parse(bytes, ByteOrder::Little).unwrap();
        assert_eq!(length, bytes.len(), "something behind the list");
        self.announced += 1;
        self.add(&list, Some(bytes));
    }

    pub(super) fn add_inline(&mut self, list: &ParameterList<'_>) {
        self.inline += 1;
        // The form of the submessage includes whether the list is canonical.
        self.add(list, None);
    }

    fn add(&mut self, list: &ParameterList<'_>, bytes: Option<&[u8]>) {
        let mut written = vec![0; 4096];
        let mut writer = ParameterWriter::new(&mut written);
        for parameter in list {
            self.parameters += 1;
            let id = parameter.id;
            if id & VENDOR_SPECIFIC == 0 {
                check(id, parameter.value);
            } else {
                self.of_vendors.insert(id);
            }
            let insisting = if parameter.must_understand {
                MUST_UNDERSTAND
            } else {
                0
            };
            writer.put(id | insisting, parameter.value);
        }
        let length = writer.finish().unwrap();
        if let Some(bytes) = bytes {
            assert_eq!(written[..length], *bytes, "a list with another end");
            self.canonical += 1;
        }
    }

    /// Formats the counts as text.
    pub(super) fn description(&self) -> String {
        let ids: Vec<String> = self
            .of_vendors
            .iter()
            .map(|id| format!("{id:04x}"))
            .collect();
        let ids = if ids.is_empty() {
            String::from("none")
        } else {
            ids.join(" ")
        };
        format!(
            "{} announced, {} canonical; {} inline; {} parameters, of vendors {ids}",
            self.announced, self.canonical, self.inline, self.parameters
        )
    }
}

/// Layout of a value in its parameter.
enum Shape {
    /// This number of bytes.
    Bytes(usize),
    /// Length with the NUL, text, NUL.
    Text,
    /// Number of texts, then the texts, each aligned to four bytes.
    Texts,
    /// Number of elements, then the elements of this many bytes each.
    Sequence(usize),
    /// Names and values, then names and bytes: `PropertyQosPolicy` of DDS Security.
    Properties,
    /// Structure in delimited CDR: a length, then the members (DDS-XTypes 1.3 §7.6.3.2).
    Delimited,
}

fn shape(id: u16) -> Shape {
    match id {
        pid::TOPIC_NAME | pid::TYPE_NAME | pid::ENTITY_NAME => Shape::Text,
        pid::PARTITION => Shape::Texts,
        pid::USER_DATA | pid::GROUP_DATA | pid::TOPIC_DATA => Shape::Sequence(1),
        pid::DATA_REPRESENTATION => Shape::Sequence(2),
        pid::PROPERTY_LIST => Shape::Properties,
        pid::TYPE_INFORMATION => Shape::Delimited,
        pid::PRESENTATION => Shape::Bytes(6),
        pid::PROTOCOL_VERSION | pid::VENDOR_ID => Shape::Bytes(2),
        pid::EXPECTS_INLINE_QOS => Shape::Bytes(1),
        pid::TYPE_CONSISTENCY_ENFORCEMENT => Shape::Bytes(7),
        pid::DURABILITY
        | pid::OWNERSHIP
        | pid::DESTINATION_ORDER
        | pid::DOMAIN_ID
        | pid::BUILTIN_ENDPOINT_SET
        | pid::TYPE_MAX_SIZE_SERIALIZED
        | pid::STATUS_INFO => Shape::Bytes(4),
        pid::DEADLINE
        | pid::LATENCY_BUDGET
        | pid::LIFESPAN
        | pid::TIME_BASED_FILTER
        | pid::HISTORY
        | pid::PARTICIPANT_LEASE_DURATION => Shape::Bytes(8),
        pid::RELIABILITY | pid::LIVELINESS | pid::RESOURCE_LIMITS => Shape::Bytes(12),
        pid::PARTICIPANT_GUID | pid::ENDPOINT_GUID | pid::KEY_HASH => Shape::Bytes(16),
        pid::UNICAST_LOCATOR
        | pid::MULTICAST_LOCATOR
        | pid::DEFAULT_UNICAST_LOCATOR
        | pid::DEFAULT_MULTICAST_LOCATOR
        | pid::METATRAFFIC_UNICAST_LOCATOR
        | pid::METATRAFFIC_MULTICAST_LOCATOR => Shape::Bytes(24),
        pid::DURABILITY_SERVICE => Shape::Bytes(28),
        other => panic!("parameter {other:#06x} is not known"),
    }
}

/// Panics unless the value is complete and, except for zeros up to a multiple of four, has nothing else.
fn check(id: u16, value: &[u8]) {
    let mut rest = Rest(value);
    match shape(id) {
        Shape::Bytes(count) => {
            rest.take(count);
        }
        Shape::Text => rest.text(),
        Shape::Texts => {
            for _ in 0..rest.number() {
                rest.text();
                rest.align(value.len());
            }
        }
        Shape::Sequence(bytes) => {
            let count = rest.number();
            rest.take(count * bytes);
        }
        Shape::Properties => {
            for _ in 0..2 * rest.number() {
                rest.text();
                rest.align(value.len());
            }
            // The second sequence may be omitted; in these captures it is always empty.
            if !rest.0.is_empty() {
                assert_eq!(rest.number(), 0);
            }
        }
        Shape::Delimited => {
            let length = rest.number();
            rest.take(length);
        }
    }
    assert!(rest.0.len() < 4, "{id:#06x}: {value:02x?} has a remainder");
}

/// Unread part of a value.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn number(&mut self) -> usize {
        let bytes = self.take(4).try_into().unwrap();
        u32::from_le_bytes(bytes) as usize
    }

    fn text(&mut self) {
        let length = self.number();
        let [text @ .., 0] = self.take(length) else {
            panic!("a text without its end");
        };
        assert!(str::from_utf8(text).is_ok_and(|text| !text.contains('\0')));
    }

    /// Skips to the next multiple of four from the value's beginning.
    fn align(&mut self, whole: usize) {
        let read = whole - self.0.len();
        self.take((read.next_multiple_of(4) - read).min(self.0.len()));
    }
}
