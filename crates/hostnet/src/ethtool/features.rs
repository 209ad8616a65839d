//! Offloads of a device.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Ethtool, OMIT_REPLY, bit_names, bits_to, of};
use crate::netlink::{AttributeReader, NetlinkError, nest};

const GET: u8 = 11;
const SET: u8 = 12;
/// All features; a bit is set where the device can change it (`hw_features`).
const CHANGEABLE: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
/// Features that cannot be changed.
const FIXED: u16 = 5;

/// State of an offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Feature {
    /// True if the offload is on.
    pub is_on: bool,
    /// True if the offload can be switched.
    pub is_changeable: bool,
}

impl Ethtool {
    /// Offloads by kernel name. Those that are off and fixed are omitted: the kernel lists them although the device
    /// lacks them.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn features(&mut self, interface: &str) -> Result<BTreeMap<String, Feature>, NetlinkError> {
        Ok(self.get(GET, interface, parse)?.unwrap_or_default())
    }

    /// Switches offloads; those the device cannot switch are left unchanged.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn set_features(
        &mut self,
        interface: &str,
        names: &[&str],
        is_on: bool,
    ) -> Result<(), NetlinkError> {
        let wanted = nest(WANTED, &bits_to(names, is_on));
        self.set(SET, &of(interface, OMIT_REPLY).with(wanted))
    }
}

pub(super) fn parse(answer: AttributeReader<'_>) -> BTreeMap<String, Feature> {
    let set = |kind| answer.nest(kind).unwrap_or(AttributeReader(&[]));
    let names = |kind| bit_names(set(kind)).map(|(name, _)| name).collect();
    let [active, fixed]: [BTreeSet<String>; 2] = [names(ACTIVE), names(FIXED)];
    bit_names(set(CHANGEABLE))
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
