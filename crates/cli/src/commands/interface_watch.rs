//! State of the interfaces in use. A socket does not report the loss of its interface, so the command reports it and
//! continues, because links come back.

use std::time::{Duration, Instant};

use isolane::Interfaces;

use crate::output::tell;
use crate::settings::NetworkSettings;

/// Polling interval: soon enough for a person, cheap for a machine.
const PERIOD: Duration = Duration::from_secs(1);

/// Interfaces in use with their states.
pub(super) struct InterfaceWatch {
    interfaces: Vec<(String, State)>,
    looked: Instant,
}

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

impl InterfaceWatch {
    /// Interfaces of the settings, or all non-loopback interfaces that are up now.
    pub(super) fn new(network: &NetworkSettings) -> Self {
        let names = match &network.interfaces.value {
            Interfaces::Named(names) => names.clone(),
            _ => isolane_tune::interfaces()
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

    /// Polls the interfaces when due, and reports changes.
    pub(super) fn look(&mut self) {
        if self.looked.elapsed() < PERIOD || self.interfaces.is_empty() {
            return;
        }
        self.looked = Instant::now();
        // Without netlink the state is unknown.
        if let Ok(present) = isolane_tune::interfaces() {
            self.compare(&present).into_iter().for_each(tell);
        }
    }

    /// Sentences on changed states.
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
    fn interfaces_that_go_and_come_are_reported_once() {
        let works = |name: &str| (String::from(name), State::Works);
        let mut watch = InterfaceWatch {
            interfaces: vec![works("a"), works("b")],
            looked: Instant::now(),
        };
        let both = [interface("a", true), interface("b", true)];
        assert_eq!(watch.compare(&both), [""; 0]);
        assert_eq!(watch.compare(&both[..1]), ["interface b is gone"]);
        let down = [interface("a", false)];
        let said = watch.compare(&down);
        assert_eq!(said[0], "interface a is down");
        assert!(said[1].contains("until an interface is back"), "{said:?}");
        assert_eq!(watch.compare(&down), [""; 0]);
        assert_eq!(watch.compare(&both[..1]), ["interface a is up again"]);
    }
}
