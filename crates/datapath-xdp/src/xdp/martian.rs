//! Martian address filter (RFC 1812 §5.3.7): refuses source addresses that no datagram from the network may have.
//!
//! The kernel drops such datagrams when it routes them to a socket ("martian source"). A lane's frames bypass the
//! kernel's routing, so lanes refuse the same sources: 0/8, 127/8, the multicast range, the limited broadcast, the
//! broadcast addresses of this host's networks, and the addresses of this host. The last two are routes of the kernel's
//! table `local`; lanes follow their changes. The sysctls `accept_local` and `route_localnet` have no effect on lanes.

use crate::routing::Router;

/// Bitmap of the /6 blocks (64 million addresses each) that contain a reserved address: those of 0/8, of 127/8, and all
/// from 224.0.0.0 on.
const RESERVED_BLOCKS: u64 = 1 | 1 << 31 | 0xff << 56;

/// Number of trailing address bits tested by the first, cheap check.
const LAST_BITS: u32 = 6;
const LAST_MASK: u32 = (1 << LAST_BITS) - 1;

/// Sources that a lane refuses.
#[derive(Debug, Default)]
pub(super) struct MartianFilter {
    /// Local and broadcast routes of this host: address and prefix length.
    local: Vec<(u32, u8)>,
    /// Bitmap of the values of the last six bits of local addresses.
    local_last: u64,
    /// Generation of [`Router`] from which `local` was read.
    generation: u64,
}

impl MartianFilter {
    /// Reads the local routes again, if any route changed.
    pub(super) fn follow(&mut self, router: &Router) {
        if self.generation != router.generation() {
            self.generation = router.generation();
            self.set(router.local_networks());
        }
    }

    fn set(&mut self, local: impl Iterator<Item = ([u8; 4], u8)>) {
        self.local.clear();
        self.local_last = 0;
        for (address, prefix_bits) in local {
            let network = u32::from_be_bytes(address);
            // `is_reserved` covers this network.
            if prefix_bits >= 8 && is_reserved(network) {
                continue;
            }
            let open_bits = 32 - u32::from(prefix_bits.min(32));
            let addresses = 1 << open_bits.min(LAST_BITS);
            let first = network & LAST_MASK & !(addresses - 1);
            self.local_last |= u64::MAX >> (64 - addresses) << first;
            self.local.push((network, prefix_bits));
        }
    }

    /// Returns whether a datagram from this address is refused. Two bit tests clear most addresses.
    #[inline]
    pub(super) fn refuses(&self, source: u32) -> bool {
        let block = RESERVED_BLOCKS >> (source >> 26);
        let last = self.local_last >> (source & LAST_MASK);
        (block | last) & 1 != 0 && self.refuses_exactly(source)
    }

    /// Compares a source with each local route.
    #[inline(never)]
    pub(super) fn refuses_exactly(&self, source: u32) -> bool {
        is_reserved(source)
            || self.local.iter().any(|(network, prefix_bits)| {
                let open_bits = 32 - u32::from((*prefix_bits).min(32));
                (source ^ network).checked_shr(open_bits).unwrap_or(0) == 0
            })
    }
}

/// Returns whether an address is in 0/8, 127/8 or the multicast range, or is the limited broadcast.
fn is_reserved(source: u32) -> bool {
    matches!(source >> 24, 0 | 127 | 224..=239) || source == u32::MAX
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Filter of a host with these local routes.
    pub(in crate::xdp) fn filter(local: &[([u8; 4], u8)]) -> MartianFilter {
        let mut filter = MartianFilter::default();
        filter.set(local.iter().copied());
        filter
    }

    fn refuses(filter: &MartianFilter, source: [u8; 4]) -> bool {
        filter.refuses(u32::from_be_bytes(source))
    }

    #[test]
    fn invalid_sources_are_refused_on_every_host() {
        let filter = MartianFilter::default();
        let invalid = [
            [0, 0, 0, 0],
            [0, 255, 255, 255],
            [127, 0, 0, 1],
            [127, 255, 255, 254],
            [224, 0, 0, 1],
            [239, 255, 0, 1],
            [255, 255, 255, 255],
        ];
        for source in invalid {
            assert!(refuses(&filter, source), "{source:?}");
        }
        let others = [
            [1, 0, 0, 0],
            [10, 0, 0, 1],
            [126, 255, 255, 255],
            [128, 0, 0, 0],
            [223, 255, 255, 255],
            [240, 0, 0, 1],
            [255, 255, 255, 254],
        ];
        for source in others {
            assert!(!refuses(&filter, source), "{source:?}");
        }
    }

    #[test]
    fn all_addresses_of_the_host_are_refused_and_no_others() {
        let local = [
            ([10, 0, 0, 2], 32),
            ([192, 0, 2, 64], 27),
            ([127, 0, 0, 0], 8),
        ];
        let mut filter = filter(&local);
        for source in [[10, 0, 0, 2], [192, 0, 2, 64], [192, 0, 2, 95]] {
            assert!(refuses(&filter, source), "{source:?}");
        }
        // The first has the same last bits as a local address.
        for source in [
            [10, 0, 0, 66],
            [10, 0, 0, 1],
            [192, 0, 2, 63],
            [192, 0, 2, 96],
        ] {
            assert!(!refuses(&filter, source), "{source:?}");
        }
        filter.set([([10, 0, 0, 3], 32)].into_iter());
        assert!(refuses(&filter, [10, 0, 0, 3]));
        assert!(!refuses(&filter, [10, 0, 0, 2]), "no longer the host's");
    }

    proptest! {
        #[test]
        fn what_two_bits_let_pass_is_not_refused(
            local in prop::collection::vec((any::<[u8; 4]>(), 0..=32_u8), 0..4),
            source in any::<u32>(),
            near in any::<prop::sample::Index>(),
            bits in 0..512_u32,
        ) {
            let filter = filter(&local);
            let mut sources = vec![source];
            if !local.is_empty() {
                sources.push(u32::from_be_bytes(near.get(&local).0) ^ bits);
            }
            for source in sources {
                prop_assert_eq!(filter.refuses(source), filter.refuses_exactly(source));
            }
        }
    }
}
