//! Whether lanes work here.

use super::config::OnFailure;
use super::config::XdpConfig;
use super::{Xdp, XdpOptions};
use isolane_datapath::{Datapath, Lane};
use isolane_wire::level::Level;

/// Why lanes do not work on this machine as it is now, and what to do about it; `None` if they do.
///
/// It is tried: a lane is opened and closed again, on sockets of their own. Attaching is not free
/// (some drivers reset their device), so it is asked once, before a participant is made.
#[must_use]
pub fn why_not(config: &XdpConfig) -> Option<String> {
    let options = XdpOptions {
        on_failure: OnFailure::Refuse,
        ..config.options.clone()
    };
    let levels = Level::ALL.into_iter().rev();
    let mut wanted = levels.filter(|level| options.levels & 1 << level.get() != 0);
    let level = wanted.next()?;
    let config = XdpConfig {
        udp: config.udp.clone(),
        options,
    };
    let opened = Xdp::new(config).and_then(|mut xdp| xdp.open_lane(Lane::Level(level)));
    opened.err().map(|error| error.to_string())
}
