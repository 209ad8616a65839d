//! Links that a plan interrupts. Many drivers reset the device when rings, queues or moderation change, and the link
//! returns seconds later. Until then, sent frames are lost.

use std::io;
use std::time::Instant;

use crate::facts::Interface;
use crate::limits::{LINK_POLL_INTERVAL, LINK_TIMEOUT};
use crate::probe::interfaces;

/// Names of interfaces that had a carrier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(Vec<String>);

impl Links {
    /// Interfaces that have a carrier now.
    ///
    /// # Errors
    /// The system error.
    pub fn now() -> io::Result<Self> {
        let with_carrier = interfaces()?.into_iter();
        let with_carrier = with_carrier.filter(|interface| interface.has_carrier);
        Ok(Self(with_carrier.map(|interface| interface.name).collect()))
    }

    /// Waits until all interfaces that still exist have a carrier again, [`LINK_TIMEOUT`] has passed, or `is_stopped`
    /// returns true. Returns the interfaces without a carrier.
    ///
    /// # Errors
    /// The system error.
    pub fn wait(&self, is_stopped: &dyn Fn() -> bool) -> io::Result<Vec<String>> {
        let end = Instant::now() + LINK_TIMEOUT;
        let is_over = || is_stopped() || Instant::now() >= end;
        self.wait_by(interfaces, &is_over)
    }

    fn wait_by(
        &self,
        mut now: impl FnMut() -> io::Result<Vec<Interface>>,
        is_over: &dyn Fn() -> bool,
    ) -> io::Result<Vec<String>> {
        loop {
            let mut down = now()?;
            // A removed interface does not come back.
            down.retain(|interface| !interface.has_carrier && self.0.contains(&interface.name));
            if down.is_empty() || is_over() {
                return Ok(down.into_iter().map(|interface| interface.name).collect());
            }
            std::thread::sleep(LINK_POLL_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 2] = ["lo", "eth0"];

    fn had(names: &[&str]) -> Links {
        Links(names.iter().map(|name| String::from(*name)).collect())
    }

    /// The two interfaces of the test, of which those in `names` have a carrier.
    fn with_carrier(names: &[&str]) -> Vec<Interface> {
        let interface = |name: &str| Interface {
            name: name.into(),
            has_carrier: names.contains(&name),
            ..Interface::default()
        };
        ALL.into_iter().map(interface).collect()
    }

    #[test]
    fn a_link_that_comes_back_is_waited_for() {
        let mut looks = [
            with_carrier(&["lo"]),
            with_carrier(&["lo"]),
            with_carrier(&ALL),
        ]
        .into_iter();
        let down = had(&ALL).wait_by(|| Ok(looks.next().expect("no look too many")), &|| false);
        assert!(down.expect("looks").is_empty());
        assert!(looks.next().is_none(), "it was waited for");
    }

    #[test]
    fn one_that_stays_away_is_reported() {
        let down = had(&ALL).wait_by(|| Ok(with_carrier(&["lo"])), &|| true);
        assert_eq!(down.expect("looks"), ["eth0"]);
    }

    #[test]
    fn one_that_vanished_or_had_none_before_is_not_waited_for() {
        let down = had(&["lo", "veth7"]).wait_by(|| Ok(with_carrier(&["lo"])), &|| false);
        assert!(down.expect("looks").is_empty());
    }
}
