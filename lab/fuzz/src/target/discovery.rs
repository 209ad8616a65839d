//! Target `discovery`: parameter lists and announcements. A parsed announcement that is written and read again must be
//! unchanged.

use isolane_wire::{
    ByteOrder,
    builtin_data::{EndpointData, ParticipantData, ParticipantMessage, parse_key_guid},
    parameter::ParameterList,
    qos::{Octets, QosPolicies},
};

/// Size in bytes of a buffer for any parsed announcement, whose lists and names are bounded.
const ANNOUNCEMENT_BYTES: usize = 8 * 1024;

/// Runs the target on a payload of SPDP, SEDP or liveliness.
pub fn discovery(payload: &[u8]) {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        if let Ok((list, length)) = ParameterList::parse(payload, order) {
            assert!(4 <= length && length <= payload.len());
            read_list(&list);
        }
    }
    let _ = parse_key_guid(payload);
    if let Ok(message) = ParticipantMessage::parse(payload) {
        let mut buffer = vec![0; message.buffer_len()];
        let length = message
            .emit(&mut buffer)
            .expect("it has the room it asks for");
        assert_eq!(ParticipantMessage::parse(&buffer[..length]), Ok(message));
    }
    let mut buffer = vec![0; ANNOUNCEMENT_BYTES];
    if let Ok(mut participant) = ParticipantData::parse(payload) {
        let length = participant
            .emit(&mut buffer)
            .expect("what was read can be sent");
        let again = ParticipantData::parse(&buffer[..length]);
        participant.user_data = as_announced(&participant.user_data);
        assert_eq!(again.as_ref(), Ok(&participant));
        let lists = [
            &participant.metatraffic_unicast,
            &participant.metatraffic_multicast,
            &participant.default_unicast,
            &participant.default_multicast,
        ];
        assert!(lists.iter().all(|list| list.len() <= list.capacity()));
    }
    if let Ok(mut writer) = EndpointData::parse_writer(payload) {
        let length = writer.emit(&mut buffer).expect("what was read can be sent");
        let again = EndpointData::parse_writer(&buffer[..length]);
        announce(&mut writer.qos);
        // Emission omits the defaults of the endpoint kind in the GUID.
        if writer.guid.entity.is_writer() {
            assert_eq!(again.as_ref(), Ok(&writer));
        }
    }
    if let Ok(mut reader) = EndpointData::parse_reader(payload) {
        let length = reader.emit(&mut buffer).expect("what was read can be sent");
        let again = EndpointData::parse_reader(&buffer[..length]);
        announce(&mut reader.qos);
        if reader.guid.entity.is_reader() {
            assert_eq!(again.as_ref(), Ok(&reader));
        }
    }
}

/// Changes policies to what a reader gets after they are written.
fn announce(qos: &mut QosPolicies) {
    for octets in [&mut qos.user_data, &mut qos.topic_data, &mut qos.group_data] {
        *octets = as_announced(octets);
    }
}

/// Returns octets as a reader gets them. Truncated octets are written without a mark of the truncation.
fn as_announced(octets: &Octets) -> Octets {
    Octets::of(octets.as_slice()).expect("no more than is kept")
}

/// Checks that every value of a list is complete, and is found by its id.
pub(super) fn read_list(list: &ParameterList<'_>) {
    for parameter in list {
        assert!(parameter.value.len().is_multiple_of(4));
        assert!(list.find(parameter.id).is_some());
    }
}
