//! Names for numbers that travel: vendors, entities of the standard, encapsulations.

use isolane_wire::cdr::EncapsulationId;
use isolane_wire::guid::EntityId;
use isolane_wire::rtps::VENDOR_ID;

/// Vendors as the OMG has registered them ("RTPS vendor IDs", omg.org/dds).
const VENDORS: &[([u8; 2], &str)] = &[
    ([0x01, 0x01], "RTI Connext"),
    ([0x01, 0x02], "OpenSplice"),
    ([0x01, 0x03], "OpenDDS"),
    ([0x01, 0x04], "Mil-DDS"),
    ([0x01, 0x05], "InterCOM DDS"),
    ([0x01, 0x06], "CoreDX"),
    ([0x01, 0x09], "ETRI DDS"),
    ([0x01, 0x0a], "RTI Connext Micro"),
    ([0x01, 0x0b], "Vortex Cafe"),
    ([0x01, 0x0d], "Vortex Lite"),
    ([0x01, 0x0f], "Fast DDS"),
    ([0x01, 0x10], "Cyclone DDS"),
    ([0x01, 0x11], "GurumDDS"),
    ([0x01, 0x12], "RustDDS"),
    ([0x01, 0x14], "Dust DDS"),
    (VENDOR_ID, "isolane"),
];

/// A vendor's name, or its number.
pub(crate) fn vendor(id: [u8; 2]) -> String {
    match VENDORS.iter().find(|(known, _)| *known == id) {
        Some((_, name)) => String::from(*name),
        None => format!("vendor {:02x}.{:02x}", id[0], id[1]),
    }
}

/// What an entity of the standard is for; `None`: a user's, or a vendor's.
pub(super) fn entity(entity: EntityId) -> Option<&'static str> {
    Some(match entity {
        EntityId::PARTICIPANT => "participant",
        EntityId::SPDP_WRITER | EntityId::SPDP_READER => "participants",
        EntityId::SEDP_PUBLICATIONS_WRITER | EntityId::SEDP_PUBLICATIONS_READER => "publications",
        EntityId::SEDP_SUBSCRIPTIONS_WRITER | EntityId::SEDP_SUBSCRIPTIONS_READER => {
            "subscriptions"
        }
        EntityId::P2P_MESSAGE_WRITER | EntityId::P2P_MESSAGE_READER => "liveliness",
        _ => return None,
    })
}

/// How a payload is serialised (RTPS 2.5 §10.5, XTypes 1.3 Table 60), as its first two bytes say.
pub(super) fn encapsulation(payload: &[u8]) -> Option<String> {
    let identifier = EncapsulationId::of_payload(payload)?;
    Some(match identifier.name() {
        Some(name) => name.into(),
        None => format!("encapsulation {identifier}"),
    })
}
