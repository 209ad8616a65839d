//! Check whether isolane would write the same bytes for the content of a submessage, and if not, why.

use std::collections::BTreeMap;

use isolane_wire::{
    message::{
        Data, DataFrag, DataFragPrefix, DataPrefix, InfoDestination, InfoTimestamp, PayloadKind,
        Submessage, SubmessageId,
    },
    parameter::pid,
};

/// Form of a submessage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// Form that isolane writes: little-endian, with a length, sets no wider than necessary, inline QoS in the order
    /// key hash, status. All submessages of the standard in the captures have this form.
    Canonical,
    /// Submessage of a vendor's kind, which isolane skips by its length.
    OfVendor,
}

impl Form {
    /// Returns the form of a submessage with these bytes.
    pub(super) fn of(submessage: &Submessage<'_>, bytes: &[u8]) -> Self {
        if let Submessage::Other { id, .. } = submessage {
            assert!(
                *id >= SubmessageId::FIRST_OF_VENDORS,
                "{id:#04x} is not known"
            );
            return Self::OfVendor;
        }
        assert_eq!(written(submessage), bytes, "{submessage:?}");
        Self::Canonical
    }
}

fn inline_qos_of(data: &Data<'_>) -> Vec<u16> {
    let list = data.inline_qos.iter().flat_map(|list| list.iter());
    list.map(|parameter| parameter.id).collect()
}

/// Returns the bytes that isolane writes for a submessage.
fn written(submessage: &Submessage<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 70_000];
    let length = match submessage {
        Submessage::HeaderExtension(it) => it.emit(&mut buffer),
        Submessage::AckNack(it) => it.emit(&mut buffer),
        Submessage::Heartbeat(it) => it.emit(&mut buffer),
        Submessage::Gap(it) => it.emit(&mut buffer),
        Submessage::InfoTimestamp(it) => InfoTimestamp(*it).emit(&mut buffer),
        Submessage::InfoSource(it) => it.emit(&mut buffer),
        Submessage::InfoDestination(it) => InfoDestination(*it).emit(&mut buffer),
        Submessage::InfoReply(it) => it.emit(&mut buffer),
        Submessage::InfoReplyIp4(it) => it.emit(&mut buffer),
        Submessage::NackFrag(it) => it.emit(&mut buffer),
        Submessage::HeartbeatFrag(it) => it.emit(&mut buffer),
        Submessage::Data(it) => write_data(it, &mut buffer),
        Submessage::DataFrag(it) => write_fragments(it, &mut buffer),
        Submessage::Pad | Submessage::Other { .. } => panic!("{submessage:?} is not written"),
    };
    buffer.truncate(length);
    buffer
}

fn write_data(data: &Data<'_>, buffer: &mut [u8]) -> usize {
    let has_status = inline_qos_of(data).contains(&pid::STATUS_INFO);
    let head = DataPrefix {
        reader: data.reader,
        writer: data.writer,
        sequence: data.sequence,
        key_hash: data.key_hash(),
        status: has_status.then(|| data.status_info()),
        payload: data.payload,
    };
    let head_len = head.buffer_len();
    head.emit(buffer, data.bytes.len());
    buffer[head_len..][..data.bytes.len()].copy_from_slice(data.bytes);
    head_len + data.bytes.len()
}

fn write_fragments(data: &DataFrag<'_>, buffer: &mut [u8]) -> usize {
    let head = DataFragPrefix {
        reader: data.reader,
        writer: data.writer,
        sequence: data.sequence,
        first_fragment: data.first_fragment,
        fragments: data.fragments,
        fragment_size: data.fragment_size,
        sample_size: data.sample_size,
        key_hash: data.key_hash(),
        status: None,
        is_key: data.payload == PayloadKind::Key,
    };
    let head_len = head.buffer_len();
    head.emit(buffer, data.bytes.len());
    buffer[head_len..][..data.bytes.len()].copy_from_slice(data.bytes);
    head_len + data.bytes.len()
}

/// Formats the counts of the forms as text.
pub(super) fn description(forms: &BTreeMap<Form, usize>) -> String {
    let of = |form| forms.get(&form).copied().unwrap_or_default();
    let total: usize = forms.values().sum();
    format!(
        "{total}: {} canonical, {} of vendors",
        of(Form::Canonical),
        of(Form::OfVendor)
    )
}
