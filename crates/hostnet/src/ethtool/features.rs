//! Offloads of a device.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ethtool, OMIT_REPLY, bit_names, of, one_bit};
use crate::netlink::{Denial, Read, nest};
use serde::{Deserialize, Serialize};

/// An offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feature {
    /// It is on.
    pub is_on: bool,
    /// It can be switched.
    pub is_changeable: bool,
}

const GET: u8 = 11;
const SET: u8 = 12;
/// All there are, and which of them the device can switch.
const CHANGEABLE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
/// Those that nobody may switch.
const FIXED: u16 = 5;

impl Ethtool {
    /// Offloads by the kernel's name. The kernel lists all it knows of; of those that are off and
    /// cannot be switched on the device has nothing, and they are left out.
    pub fn features(&mut self, interface: &str) -> Result<BTreeMap<String, Feature>, Denial> {
        let features = self.get(GET, interface, parse)?;
        Ok(features.unwrap_or_default())
    }

    pub fn set_feature(&mut self, interface: &str, name: &str, is_on: bool) -> Result<(), Denial> {
        let wanted = one_bit(name, is_on);
        self.set(SET, &of(interface, OMIT_REPLY).with(nest(WANTED, &wanted)))
    }
}

pub(super) fn parse(answer: Read<'_>) -> BTreeMap<String, Feature> {
    let names = |kind| -> BTreeSet<String> {
        let set = answer.nest(kind).unwrap_or(Read(&[]));
        bit_names(set).map(|(name, _)| name).collect()
    };
    let (active, fixed) = (names(ACTIVE), names(FIXED));
    let all = answer.nest(CHANGEABLE).unwrap_or(Read(&[]));
    bit_names(all)
        .map(|(name, can_be_switched)| {
            let feature = Feature {
                is_on: active.contains(&name),
                is_changeable: can_be_switched && !fixed.contains(&name),
            };
            (name, feature)
        })
        .filter(|(_, feature)| feature.is_on || feature.is_changeable)
        .collect()
}
