//! Paths of a sample whose costs are counted, and their halves: writing and receiving.

/// Part of a round of `crates/dds/examples/budget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Writing.
    Give = 0,
    /// Receiving.
    Get = 1,
    /// Both halves together: a round trip.
    Both = 2,
}

impl Side {
    /// Returns true if this part is, or includes, the half with this index in [`FUNCTIONS`].
    pub(super) const fn has(self, function: usize) -> bool {
        self as usize == function || matches!(self, Side::Both)
    }
}

/// Functions of the example in which the two halves run.
pub(super) const FUNCTIONS: [&str; 2] = ["measured_give", "measured_get"];

/// Row of the report: a path, and the part of it that is counted.
#[derive(Debug)]
pub(super) struct Half {
    /// Datapath of the sample.
    pub(super) datapath: &'static str,
    /// Name in the report.
    pub(super) name: &'static str,
    /// Argument of the example that selects the path.
    pub(super) path: &'static str,
    /// Part of the round that is counted.
    pub(super) side: Side,
    /// Maximum number of payload copies; `None` if the payload is too small to distinguish from other copied data.
    pub(super) copies: Option<f64>,
    /// Maximum number of system calls for each sample.
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

/// Path whose two halves together are compared with a round trip over bare AF_XDP.
pub(super) const ROUND_TRIP: &str = "lane-round-trip-64";

/// All rows, with the copies and system calls that ARCHITECTURE.md states for a sample that arrives alone. Samples that
/// arrive together share the calls of the receiving half.
///
/// - Best effort: the writer calls `sendmmsg`, the reader `epoll_pwait2` and `recvmmsg`.
/// - Into a cache: the reader polls once more before the callback's job.
/// - Reliable: the loop polls, sends, and polls again before it would sleep. Every 16th to 64th sample is acknowledged,
///   which takes about four calls at each end. Periodic HEARTBEATs take further calls.
/// - `WriterHandle`: the publisher writes to an eventfd. The loop polls, reads the eventfd, sends, and polls again.
/// - By lane, spinning: `sendto` makes the kernel process the transmit ring. Receiving takes no call, except for the
///   poll of all other sources in every 64th round.
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
        "WriterHandle best-effort 64 B",
        "handle-64",
        Side::Give,
        None,
        5.0,
    ),
    half(
        "WriterHandle best-effort 1 KiB",
        "handle-1024",
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

/// Returns each path once, in the order of the table. Paths by lane are included only if lanes are possible.
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
