//! Whether the interfaces a participant uses are still there: a socket does not say that its
//! interface is gone, it only falls silent. A command tells it and goes on: links flap, and come back.

use std::time::{Duration, Instant};

use crate::output::tell;
use crate::settings::{Interfaces, NetworkSettings};

/// How often it is looked: soon for a person, rarely for a machine.
const PERIOD: Duration = Duration::from_secs(1);

/// The interfaces in use, and which of them work.
pub(super) struct Presence {
    interfaces: Vec<(String, State)>,
    looked: Instant,
}

/// What is the matter with an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Works,
    Down,
    Gone,
}

impl State {
    fn of(name: &str, present: &[isolane_tune::Interface]) -> Self {
        match present.iter().find(|known| known.name == name) {
            None => Self::Gone,
            Some(interface) if interface.is_up => Self::Works,
            Some(_) => Self::Down,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Works => "up again",
            Self::Down => "down",
            Self::Gone => "gone",
        }
    }
}

impl Presence {
    /// Those of the settings; where they name none, all that are up now and leave the host.
    pub(super) fn new(network: &NetworkSettings) -> Self {
        let names = match &network.interfaces.value {
            Interfaces::Named(names) => names.clone(),
            Interfaces::All => isolane_tune::interfaces()
                .unwrap_or_default()
                .into_iter()
                .filter(|it| it.is_up && !it.is_loopback && !it.addresses.is_empty())
                .map(|interface| interface.name)
                .collect(),
        };
        Self {
            interfaces: names.into_iter().map(|name| (name, State::Works)).collect(),
            looked: Instant::now(),
        }
    }

    /// Looks, if it is time, and tells what has changed.
    pub(super) fn look(&mut self) {
        if self.looked.elapsed() < PERIOD || self.interfaces.is_empty() {
            return;
        }
        self.looked = Instant::now();
        // Without netlink it cannot be seen.
        if let Ok(present) = isolane_tune::interfaces() {
            self.compare(&present).into_iter().for_each(tell);
        }
    }

    /// What has changed, in sentences.
    fn compare(&mut self, present: &[isolane_tune::Interface]) -> Vec<String> {
        let mut changed = Vec::new();
        for (name, state) in &mut self.interfaces {
            let now = State::of(name, present);
            if now != *state {
                *state = now;
                changed.push(format!("interface {name} is {}", now.word()));
            }
        }
        let mut all = self.interfaces.iter();
        if !changed.is_empty() && all.all(|(_, state)| *state != State::Works) {
            changed.push(String::from(
                "nothing can be sent or received until an interface is back; waiting (`ip link` shows what there is, \
                 ip link set NAME up brings it up)",
            ));
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use isolane_tune::Interface;

    use super::*;

    fn interface(name: &str, is_up: bool) -> Interface {
        Interface {
            name: name.into(),
            is_up,
            ..Interface::default()
        }
    }

    #[test]
    fn interfaces_that_go_and_come_are_told_once() {
        let works = |name: &str| (String::from(name), State::Works);
        let mut presence = Presence {
            interfaces: vec![works("a"), works("b")],
            looked: Instant::now(),
        };
        let both = [interface("a", true), interface("b", true)];
        assert_eq!(presence.compare(&both), [""; 0]);
        assert_eq!(presence.compare(&both[..1]), ["interface b is gone"]);
        let down = [interface("a", false)];
        let said = presence.compare(&down);
        assert_eq!(said[0], "interface a is down");
        assert!(said[1].contains("until an interface is back"), "{said:?}");
        assert_eq!(presence.compare(&down), [""; 0]);
        assert_eq!(presence.compare(&both[..1]), ["interface a is up again"]);
    }
}
