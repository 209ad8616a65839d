//! Whether the interfaces a participant uses are still there: a socket does not say that its
//! interface is gone, it only falls silent.

use std::time::{Duration, Instant};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
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
    ///
    /// # Errors
    /// None of the interfaces works any more.
    pub(super) fn look(&mut self) -> Result<(), Failure> {
        if self.looked.elapsed() < PERIOD || self.interfaces.is_empty() {
            return Ok(());
        }
        self.looked = Instant::now();
        // Without netlink it cannot be seen.
        isolane_tune::interfaces().map_or(Ok(()), |present| self.compare(&present))
    }

    fn compare(&mut self, present: &[isolane_tune::Interface]) -> Result<(), Failure> {
        let mut changed = Vec::new();
        for (name, state) in &mut self.interfaces {
            let now = State::of(name, present);
            if now != *state {
                *state = now;
                changed.push(format!("interface {name} is {}", now.word()));
            }
        }
        if self
            .interfaces
            .iter()
            .any(|(_, state)| *state == State::Works)
        {
            changed.into_iter().for_each(tell);
            return Ok(());
        }
        let all: Vec<String> = self
            .interfaces
            .iter()
            .map(|(name, state)| format!("interface {name} is {}", state.word()))
            .collect();
        Err(Failure::new(
            ExitCode::MachineForbids,
            "nothing can be sent or received any more",
            all.join(", "),
        )
        .with_remedy(
            "bring it back (`ip link` shows what there is; ip link set NAME up) and start again",
        ))
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
    fn it_goes_on_while_one_interface_works() {
        let works = |name: &str| (String::from(name), State::Works);
        let mut presence = Presence {
            interfaces: vec![works("a"), works("b")],
            looked: Instant::now(),
        };
        let both = [interface("a", true), interface("b", true)];
        assert!(presence.compare(&both).is_ok());
        assert!(presence.compare(&both[..1]).is_ok());
        assert_eq!(presence.interfaces[1].1, State::Gone);
        let failure = presence.compare(&[interface("a", false)]).unwrap_err();
        assert_eq!(failure.exit_code(), ExitCode::MachineForbids);
        let said = failure.to_string();
        assert!(
            said.contains("interface a is down, interface b is gone"),
            "{said}"
        );
        assert!(said.contains("ip link set"), "{said}");
    }
}
