//! What lanes would stand on.

use isolane_datapath_xdp::napi;
use isolane_datapath_xdp::preflight::Ground;

use crate::facts::{Interface, LaneGround};
use crate::limits::MAX_LANE_GROUNDS;

/// The ground of each interface that could have lanes: up, with an IPv4 address, and no loopback.
pub(super) fn lanes(interfaces: &[Interface]) -> Vec<LaneGround> {
    let could = |interface: &&Interface| {
        interface.is_up && !interface.is_loopback && !interface.addresses.is_empty()
    };
    let ground = |interface: &Interface| {
        let ground = Ground::look(&interface.name);
        let index = ground.device.as_ref().map(|device| device.index);
        LaneGround {
            receive_work: index
                .and_then(|index| napi::state(index).ok())
                .unwrap_or_default(),
            ground,
        }
    };
    let chosen = interfaces.iter().filter(could).take(MAX_LANE_GROUNDS);
    chosen.map(ground).collect()
}
