//! Tests of the family's messages: requests as bytes, and parsed answers.

use super::coalescing::Interrupting;
use super::*;

#[test]
fn only_what_is_given_is_set() {
    let wanted = Coalescing {
        rx_usecs: Some(0),
        adaptive_rx: Some(false),
        ..Coalescing::default()
    };
    // ETHTOOL_A_COALESCE_HEADER { DEV_NAME "eth0", FLAGS }, RX_USECS 0, USE_ADAPTIVE_RX 0
    let mut expected: Vec<u8> = vec![24, 0, 1, 0x80];
    expected.extend([9, 0, 2, 0]);
    expected.extend(*b"eth0\0\0\0\0");
    expected.extend([8, 0, 3, 0, 2, 0, 0, 0]);
    expected.extend([8, 0, 2, 0, 0, 0, 0, 0]);
    expected.extend([5, 0, 11, 0, 0, 0, 0, 0]);
    let request = coalescing::request("eth0", wanted).bytes();
    assert_eq!(request, expected);
    assert_eq!(coalescing::parse(AttributeReader(&request)), wanted);
}

/// Driver model that rejects requests as real drivers do, and counts them.
struct Driver {
    now: Coalescing,
    /// As ice and iavf: rejects times while adaptive moderation is on.
    keeps_moved: bool,
    /// As igc and igb: transmit times follow receive times, and cannot be set.
    has_pairs: bool,
    requests: usize,
}

impl Interrupting for Driver {
    fn now(&mut self) -> Result<Coalescing, NetlinkError> {
        Ok(self.now)
    }

    fn send(&mut self, request: Coalescing) -> Result<(), NetlinkError> {
        self.requests += 1;
        // The kernel passes all fields to the driver, unset ones with their current value.
        let new = Coalescing {
            rx_usecs: request.rx_usecs.or(self.now.rx_usecs),
            tx_usecs: request.tx_usecs.or(self.now.tx_usecs),
            adaptive_rx: request.adaptive_rx.or(self.now.adaptive_rx),
            adaptive_tx: request.adaptive_tx.or(self.now.adaptive_tx),
            ..self.now
        };
        let is_moved = |is_moved: Option<bool>, new, now| is_moved == Some(true) && new != now;
        let sets_moved = is_moved(new.adaptive_rx, new.rx_usecs, self.now.rx_usecs)
            || is_moved(new.adaptive_tx, new.tx_usecs, self.now.tx_usecs);
        let sets_sending = new.tx_usecs != self.now.tx_usecs;
        if self.keeps_moved && sets_moved || self.has_pairs && sets_sending {
            return Err(std::io::Error::from(rustix::io::Errno::INVAL).into());
        }
        self.now = new;
        if self.has_pairs {
            self.now.tx_usecs = self.now.rx_usecs;
        }
        Ok(())
    }
}

#[test]
fn drivers_that_look_at_the_whole_request_take_what_is_set_and_restored() {
    let times = |usecs: u32, tx_usecs: u32, adaptive: Option<bool>| Coalescing {
        rx_usecs: Some(usecs),
        tx_usecs: Some(tx_usecs),
        adaptive_rx: adaptive,
        adaptive_tx: adaptive,
        ..Coalescing::default()
    };
    let states = |is_pair: bool, adaptives: &'static [Option<bool>]| {
        let times_of = move |usecs: u32| match is_pair {
            true => vec![(usecs, usecs)],
            false => vec![(usecs, 0), (usecs, 50)],
        };
        let all = [0, 3, 50].into_iter().flat_map(times_of);
        all.flat_map(move |(rx, tx)| adaptives.iter().map(move |on| times(rx, tx, *on)))
    };
    let kinds = [
        (true, false, &[Some(false), Some(true)][..]),
        (false, true, &[None][..]),
        (true, true, &[Some(false), Some(true)][..]),
    ];
    for (keeps_moved, has_pairs, adaptives) in kinds {
        for now in states(has_pairs, adaptives) {
            for wanted in states(has_pairs, adaptives) {
                let mut driver = Driver {
                    now,
                    keeps_moved,
                    has_pairs,
                    requests: 0,
                };
                coalescing::set(&mut driver, wanted)
                    .unwrap_or_else(|error| panic!("{now:?} to {wanted:?}: {error:?}"));
                assert_eq!(driver.now, wanted, "from {now:?}");
                assert!(driver.requests <= 4);
                assert!(now != wanted || driver.requests == 0, "nothing to say");
            }
        }
    }
}

#[test]
fn who_moves_the_times_stays_as_it_is_if_nothing_is_said_of_it() {
    let mut driver = Driver {
        now: Coalescing {
            rx_usecs: Some(3),
            adaptive_rx: Some(true),
            ..Coalescing::default()
        },
        keeps_moved: true,
        has_pairs: false,
        requests: 0,
    };
    let wanted = Coalescing {
        rx_usecs: Some(9),
        ..Coalescing::default()
    };
    coalescing::set(&mut driver, wanted).expect("the driver takes it");
    let now = (driver.now.rx_usecs, driver.now.adaptive_rx);
    assert_eq!(now, (Some(9), Some(true)));
}

#[test]
fn an_offload_is_what_the_kernel_lists_of_it() {
    let bit = |name: &str, is_set| {
        let mut bit = Attributes::new().with(text(bits::NAME, name));
        if is_set {
            bit = bit.with(flag(bits::VALUE));
        }
        nest(bits::BIT, &bit)
    };
    let set = |kind, list: Attributes| nest(kind, &Attributes::new().with(nest(bits::BITS, &list)));
    let all = Attributes::new()
        .with(bit("rx-gro", true))
        .with(bit("tx-fixed", true))
        .with(bit("rx-always", false))
        .with(bit("rx-never", false));
    let active = Attributes::new()
        .with(bit("rx-gro", false))
        .with(bit("rx-always", false));
    let fixed = Attributes::new().with(bit("tx-fixed", false));
    let answer = Attributes::new()
        .with(set(2, all))
        .with(set(4, active))
        .with(set(5, fixed))
        .bytes();
    let features = parse_features(AttributeReader(&answer));
    let feature = |is_on, is_changeable| Feature {
        is_on,
        is_changeable,
    };
    let known: Vec<(&str, Feature)> = features
        .iter()
        .map(|(name, feature)| (name.as_str(), *feature))
        .collect();
    let expected = [
        ("rx-always", feature(true, false)),
        ("rx-gro", feature(true, true)),
    ];
    assert_eq!(known, expected);
}

#[test]
fn an_interface_that_is_not_there_says_nothing() {
    let mut ethtool = Ethtool::open().expect("a kernel with the family");
    assert!(ethtool.queues("a name that is too long").is_err());
    let error = ethtool.features("no-such-one").unwrap_err();
    assert_eq!(error.error.raw_os_error(), Some(libc::ENODEV));
}
