//! Time: one-way delays between hosts mean something only where their clocks are kept together.

use super::carrier::{Asked, Carrier};
use super::draft::Draft;

pub(super) fn plan(asked: &Asked<'_>, carrier: &Carrier<'_>, draft: &mut Draft) {
    let Some(stamps) = carrier.device.timestamps else {
        return;
    };
    let clock = match stamps.clock {
        Some(number) if stamps.hardware_rx && stamps.hardware_tx => format!("/dev/ptp{number}"),
        _ => return,
    };
    let name = carrier.name();
    // chrony can follow the device's clock, too (refclock PHC).
    let has_follower = asked.runs("phc2sys") || asked.runs("chronyd");
    if !asked.runs("ptp4l") || !has_follower {
        draft.refuse(
            "clock.ptp",
            format!("{name} stamps frames in hardware ({clock}), and no PTP keeps the clocks of the hosts together"),
            format!(
                "apt install linuxptp; systemctl enable --now ptp4l@{name} phc2sys@{name}, with one host of the network \
                 as master"
            ),
        );
    }
}
