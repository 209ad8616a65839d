//! Paths of a sample whose costs are counted, and their halves: writing and receiving.

use std::sync::LazyLock;

use serde::Serialize;

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
#[derive(Debug, Serialize)]
pub(super) struct Half {
    /// Datapath of the sample.
    pub(super) datapath: &'static str,
    /// Name in the report.
    pub(super) name: String,
    /// Argument of the example that selects the path.
    #[serde(skip)]
    pub(super) path: String,
    /// Part of the round that is counted.
    #[serde(skip)]
    pub(super) side: Side,
    /// Maximum number of payload copies; `None` if the payload is too small to distinguish from other copied data.
    #[serde(skip)]
    pub(super) copies: Option<f64>,
    /// Maximum number of system calls for each sample.
    #[serde(skip)]
    pub(super) system_calls: f64,
}

/// Path whose two halves together are compared with a round trip over bare AF_XDP.
pub(super) const ROUND_TRIP: &str = "lane-round-trip-64";

/// Name, path without the payload's size, counted part, and the copies and system calls that ARCHITECTURE.md states for
/// a sample that arrives alone. Samples that arrive together share the calls of the receiving half. Paths by lane begin
/// with `lane-`.
///
/// - Best effort: the writer calls `sendmmsg`, the reader `epoll_pwait2` and `recvmmsg`.
/// - Into a cache: the reader polls once more before the callback's job.
/// - Reliable: the loop polls, sends, and polls again before it would sleep. Every 16th to 64th sample is acknowledged,
///   which takes about four calls at each end. Periodic HEARTBEATs take further calls.
/// - `WriterHandle`: the publisher writes to an eventfd. The loop polls, reads the eventfd, sends, and polls again.
/// - By lane, spinning: `sendto` makes the kernel process the transmit ring. Receiving takes no call, except for the
///   poll of all other sources in every 64th round.
const KINDS: [(&str, &str, Side, f64, f64); 8] = [
    ("write best-effort", "best-effort", Side::Give, 0.0, 1.0),
    (
        "receive best-effort view",
        "best-effort",
        Side::Get,
        0.0,
        2.0,
    ),
    ("receive into cache", "cache", Side::Get, 1.0, 3.0),
    ("write reliable", "reliable", Side::Give, 1.0, 3.2),
    ("receive reliable", "reliable", Side::Get, 1.0, 3.4),
    ("WriterHandle best-effort", "handle", Side::Give, 0.0, 5.0),
    (
        "write best-effort",
        "lane-best-effort",
        Side::Give,
        0.0,
        1.0,
    ),
    (
        "receive best-effort view",
        "lane-best-effort",
        Side::Get,
        0.0,
        0.0,
    ),
];

/// All rows: each of [`KINDS`] with a small and a large payload, and [`ROUND_TRIP`].
pub(super) static HALVES: LazyLock<Vec<Half>> = LazyLock::new(|| {
    let datapath = |path: &str| match path.starts_with("lane-") {
        true => "xdp",
        false => "udp",
    };
    let sizes = [("64 B", "64", false), ("1 KiB", "1024", true)];
    let halves = KINDS
        .iter()
        .flat_map(|&(name, path, side, copies, system_calls)| {
            sizes.map(|(size, bytes, is_large)| Half {
                datapath: datapath(path),
                name: format!("{name} {size}"),
                path: format!("{path}-{bytes}"),
                side,
                copies: is_large.then_some(copies),
                system_calls,
            })
        });
    let round_trip = Half {
        datapath: datapath(ROUND_TRIP),
        name: "round trip best-effort 64 B".into(),
        path: ROUND_TRIP.into(),
        side: Side::Both,
        copies: None,
        system_calls: 2.0,
    };
    halves.chain([round_trip]).collect()
});

/// Returns each path once, in the order of the table. Paths by lane are included only if lanes are possible.
pub(super) fn all(lanes_are_possible: bool) -> Vec<&'static str> {
    let mut paths = Vec::new();
    for half in &*HALVES {
        let is_possible = lanes_are_possible || half.datapath != "xdp";
        if is_possible && !paths.contains(&half.path.as_str()) {
            paths.push(&half.path);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_of_large_samples_only() {
        for half in &*HALVES {
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
            let same = |other: &&Half| (&other.name, other.datapath) == (&half.name, half.datapath);
            assert_eq!(HALVES.iter().position(|other| same(&other)), Some(place));
            assert_eq!(half.datapath == "xdp", half.path.starts_with("lane-"));
        }
    }
}
