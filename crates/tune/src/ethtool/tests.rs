//! Messages of the family: requests as bytes, answers as they are read.

use super::*;
use crate::facts::{Coalescing, Feature};

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
    assert_eq!(coalescing::parse(Read(&request)), wanted);
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
    let features = features::parse(Read(&answer));
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
