//! Counted halves of a sample's paths.

/// Half of a round of `crates/dds/examples/budget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Writing.
    Give = 0,
    /// Receiving.
    Get = 1,
    /// Both together: a path there and back.
    Both = 2,
}

impl Side {
    /// Returns true when it is, or includes, this one of [`FUNCTIONS`].
    pub(super) const fn has(self, function: usize) -> bool {
        self as usize == function || matches!(self, Side::Both)
    }
}

/// The functions of the example in which the sides run.
pub(super) const FUNCTIONS: [&str; 2] = ["measured_give", "measured_get"];

/// One path of the report.
#[derive(Debug)]
pub(super) struct Half {
    /// Datapath of the sample.
    pub(super) datapath: &'static str,
    /// Name in the report.
    pub(super) name: &'static str,
    /// The argument of the example.
    pub(super) path: &'static str,
    /// Half of the round.
    pub(super) side: Side,
    /// Upper bound of payload copies; `None` where the sample is too small to distinguish them from other copies.
    pub(super) copies: Option<f64>,
    /// System calls a sample that are allowed.
    pub(super) system_calls: f64,
}

const fn half(
    name: &'static str,
    path: &'static str,
    side: Side,
    copies: Option<f64>,
    system_calls: f64,
) -> Half {
    Half {
        datapath: "udp",
        name,
        path,
        side,
        copies,
        system_calls,
    }
}

const fn by_lane(half: Half) -> Half {
    Half {
        datapath: "xdp",
        ..half
    }
}

/// Path of which both halves together are compared with a round trip over bare AF_XDP.
pub(super) const ROUND_TRIP: &str = "lane-round-trip-64";

/// All halves, with the copies and system calls that ARCHITECTURE.md states for a sample that arrives alone; several
/// that arrive together share the receiving calls.
///
/// - Best effort: `sendmmsg`; `epoll_pwait2` and `recvmmsg`.
/// - Into a cache: one more poll before the callback's job.
/// - Reliable: the loop polls, sends, and polls again before it would sleep. An acknowledgment takes about four calls
///   at each end, with every 16th to 64th sample; timed heartbeats come on top.
/// - `RemoteWriter`: the publisher writes the eventfd; the loop polls, reads it, sends, and polls again.
/// - By lane, spinning: `sendto` makes the kernel process the transmit ring. Receiving takes no call except the poll of
///   all other sources, at every 64th round.
pub(super) const HALVES: &[Half] = &[
    half(
        "write best-effort 64 B",
        "best-effort-64",
        Side::Give,
        None,
        1.0,
    ),
    half(
        "write best-effort 1 KiB",
        "best-effort-1024",
        Side::Give,
        Some(0.0),
        1.0,
    ),
    half(
        "receive best-effort view 64 B",
        "best-effort-64",
        Side::Get,
        None,
        2.0,
    ),
    half(
        "receive best-effort view 1 KiB",
        "best-effort-1024",
        Side::Get,
        Some(0.0),
        2.0,
    ),
    half("receive into cache 64 B", "cache-64", Side::Get, None, 3.0),
    half(
        "receive into cache 1 KiB",
        "cache-1024",
        Side::Get,
        Some(1.0),
        3.0,
    ),
    half("write reliable 64 B", "reliable-64", Side::Give, None, 3.2),
    half(
        "write reliable 1 KiB",
        "reliable-1024",
        Side::Give,
        Some(1.0),
        3.2,
    ),
    half("receive reliable 64 B", "reliable-64", Side::Get, None, 3.4),
    half(
        "receive reliable 1 KiB",
        "reliable-1024",
        Side::Get,
        Some(1.0),
        3.4,
    ),
    half(
        "RemoteWriter best-effort 64 B",
        "remote-64",
        Side::Give,
        None,
        5.0,
    ),
    half(
        "RemoteWriter best-effort 1 KiB",
        "remote-1024",
        Side::Give,
        Some(0.0),
        5.0,
    ),
    by_lane(half(
        "write best-effort 64 B",
        "lane-best-effort-64",
        Side::Give,
        None,
        1.0,
    )),
    by_lane(half(
        "write best-effort 1 KiB",
        "lane-best-effort-1024",
        Side::Give,
        Some(0.0),
        1.0,
    )),
    by_lane(half(
        "receive best-effort view 64 B",
        "lane-best-effort-64",
        Side::Get,
        None,
        0.0,
    )),
    by_lane(half(
        "receive best-effort view 1 KiB",
        "lane-best-effort-1024",
        Side::Get,
        Some(0.0),
        0.0,
    )),
    by_lane(half(
        "round trip best-effort 64 B",
        ROUND_TRIP,
        Side::Both,
        None,
        2.0,
    )),
];

/// Each path once, in the order of the table; those by lane only where lanes are possible.
pub(super) fn all(lanes_are_possible: bool) -> Vec<&'static str> {
    let mut paths = Vec::new();
    for half in HALVES {
        let is_possible = lanes_are_possible || half.datapath != "xdp";
        if is_possible && !paths.contains(&half.path) {
            paths.push(half.path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_of_large_samples_only() {
        for half in HALVES {
            assert_eq!(
                half.copies.is_some(),
                half.path.ends_with("-1024"),
                "{half:?}"
            );
        }
    }

    #[test]
    fn every_way_is_walked_once() {
        for (lanes_are_possible, count) in [(false, 8), (true, 11)] {
            let paths = all(lanes_are_possible);
            assert_eq!(paths.len(), count, "{paths:?}");
        }
    }

    #[test]
    fn a_path_is_known_by_its_name_and_its_datapath() {
        for (place, half) in HALVES.iter().enumerate() {
            let same = |other: &&Half| (other.name, other.datapath) == (half.name, half.datapath);
            assert_eq!(HALVES.iter().position(|other| same(&other)), Some(place));
            assert_eq!(half.datapath == "xdp", half.path.starts_with("lane-"));
        }
    }
}
