//! Policies: the options of both sides, and the required result.

use super::super::cell::Role;
use super::super::shapes::judge::{Judgement, Sides, incompatible, missed, tells_end};
use super::super::side::Peer;
use super::{
    Setting, all_that_was_written, apart, flows, from_the_first, lively, lost_liveliness,
    newest_only, not_from_the_first, rarely, shows_data, whole_or_nothing,
};

/// A value of the axis.
pub(super) struct Policy {
    /// Word in the cell's name.
    pub(super) name: &'static str,
    /// Policy name of DDS 1.4.
    pub(super) policy: &'static str,
    /// Additional options of the publisher, and of the subscriber.
    pub(super) publisher: &'static str,
    pub(super) subscriber: &'static str,
    pub(super) pace: Pace,
    /// The subscriber starts after a second of samples.
    pub(super) is_late: bool,
    pub(super) judge: fn(&Sides, Setting) -> Judgement,
}

/// Pace of writing.
pub(super) enum Pace {
    OfSetting,
    /// Period in milliseconds, for a policy about time.
    Every(u32),
}

const fn policy(
    name: &'static str,
    policy: &'static str,
    [publisher, subscriber]: [&'static str; 2],
    judge: fn(&Sides, Setting) -> Judgement,
) -> Policy {
    Policy {
        name,
        policy,
        publisher,
        subscriber,
        pace: Pace::OfSetting,
        is_late: false,
        judge,
    }
}

const fn every(period_ms: u32, policy: Policy) -> Policy {
    Policy {
        pace: Pace::Every(period_ms),
        ..policy
    }
}

const fn late(policy: Policy) -> Policy {
    Policy {
        is_late: true,
        ..policy
    }
}

/// All policies. A reliable case that is judged by what arrived has KEEP_ALL and waits for its last acknowledgments.
pub(super) const POLICIES: &[Policy] = &[
    policy(
        "reliable",
        "RELIABILITY",
        ["-k 0 --final-instance-state u", "-k 0 --read-period 20"],
        all_that_was_written,
    ),
    policy(
        "best-effort",
        "RELIABILITY",
        ["-b -k 4", "-b -k 4 --read-period 10"],
        whole_or_nothing,
    ),
    policy(
        "best-effort-for-reliable",
        "RELIABILITY",
        ["-b", "-r"],
        |sides, _| incompatible(sides, "11 (RELIABILITY)"),
    ),
    every(
        150,
        policy(
            "keep-last",
            "HISTORY",
            ["-k 1", "-k 1 --read-period 500"],
            newest_only,
        ),
    ),
    late(policy(
        "transient-local",
        "DURABILITY",
        ["-D l -k 0 --final-instance-state u", "-D l -k 0"],
        from_the_first,
    )),
    late(policy(
        "volatile-reader",
        "DURABILITY",
        ["-D l -k 0 --final-instance-state u", "-D v -k 0"],
        not_from_the_first,
    )),
    policy(
        "volatile-for-transient-local",
        "DURABILITY",
        ["-D v", "-D l"],
        |sides, _| incompatible(sides, "2 (DURABILITY)"),
    ),
    policy(
        "transient",
        "DURABILITY",
        ["-D t -k 0 --final-instance-state u", "-D t -k 0"],
        flows,
    ),
    policy(
        "persistent",
        "DURABILITY",
        ["-D p -k 0 --final-instance-state u", "-D p -k 0"],
        flows,
    ),
    policy(
        "topic-access",
        "PRESENTATION",
        [
            "--access-scope t -k 0 --final-instance-state u",
            "--access-scope t -k 0",
        ],
        flows,
    ),
    policy(
        "instance-access-for-topic",
        "PRESENTATION",
        ["--access-scope i", "--access-scope t"],
        |sides, _| incompatible(sides, "3 (PRESENTATION)"),
    ),
    policy(
        "coherent-sets",
        "PRESENTATION",
        [
            "--access-scope t --coherent --coherent-sample-count 3 -k 0 --final-instance-state u",
            "--access-scope t --coherent -k 0",
        ],
        flows,
    ),
    policy(
        "deadline-kept",
        "DEADLINE",
        ["-f 3000 -k 0 --final-instance-state u", "-f 4000 -k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| missed(sides, [false, false])),
    ),
    every(
        900,
        policy(
            "deadline-missed",
            "DEADLINE",
            ["-f 200", "-f 300"],
            |sides, _| missed(sides, [true, true]),
        ),
    ),
    policy(
        "deadline-too-long",
        "DEADLINE",
        ["-f 1000", "-f 500"],
        |sides, _| incompatible(sides, "4 (DEADLINE)"),
    ),
    policy(
        "latency-budget",
        "LATENCY_BUDGET",
        [
            "--latency-budget 20 -k 0 --final-instance-state u",
            "--latency-budget 30 -k 0",
        ],
        all_that_was_written,
    ),
    policy(
        "latency-budget-too-long",
        "LATENCY_BUDGET",
        ["--latency-budget 30", "--latency-budget 20"],
        |sides, _| incompatible(sides, "5 (LATENCY_BUDGET)"),
    ),
    policy(
        "exclusive",
        "OWNERSHIP",
        ["-s 3 -k 0 --final-instance-state u", "-s 0 -k 0"],
        flows,
    ),
    policy(
        "shared-for-exclusive",
        "OWNERSHIP",
        ["-s -1", "-s 0"],
        |sides, _| incompatible(sides, "6 (OWNERSHIP)"),
    ),
    policy(
        "lease-kept",
        "LIVELINESS",
        [
            "--liveliness t --lease 3000 -k 0 --final-instance-state u",
            "--liveliness p --lease 3000 -k 0",
        ],
        lively,
    ),
    every(
        1_300,
        policy(
            "lease-lost",
            "LIVELINESS",
            ["--liveliness t --lease 300", "--liveliness t --lease 400"],
            |sides, _| lost_liveliness(sides),
        ),
    ),
    policy(
        "automatic-for-manual",
        "LIVELINESS",
        ["--liveliness a --lease 1000", "--liveliness t --lease 1000"],
        |sides, _| incompatible(sides, "8 (LIVELINESS)"),
    ),
    policy(
        "minimum-separation",
        "TIME_BASED_FILTER",
        ["-k 0 --final-instance-state u", "-k 0 --time-filter 1500"],
        rarely,
    ),
    policy(
        "partition",
        "PARTITION",
        ["-p north-7 -k 0 --final-instance-state u", "-p nor* -k 0"],
        flows,
    ),
    policy(
        "partitions-apart",
        "PARTITION",
        ["-p north", "-p south"],
        |sides, _| apart(sides),
    ),
    policy(
        "lifespan",
        "LIFESPAN",
        ["-k 0 --lifespan 250", "-k 0 --read-period 1500"],
        rarely,
    ),
    policy(
        "unregistered",
        "WRITER_DATA_LIFECYCLE",
        ["-k 0 --final-instance-state u", "-k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| tells_end(sides, "NO_WRITERS")),
    ),
    policy(
        "disposed",
        "WRITER_DATA_LIFECYCLE",
        ["-k 0 --final-instance-state d", "-k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| tells_end(sides, "DISPOSED")),
    ),
    policy(
        "data",
        "USER_DATA, TOPIC_DATA, GROUP_DATA",
        [
            "--user-data me --topic-data it --group-data us",
            "--print-data",
        ],
        |sides, _| shows_data(sides, "user 'me' topic 'it' group 'us'"),
    ),
    policy(
        "xcdr2",
        "DATA_REPRESENTATION",
        ["-x 2 -k 0 --final-instance-state u", "-x 2 -k 0"],
        flows,
    ),
    policy(
        "xcdr1-for-xcdr2",
        "DATA_REPRESENTATION",
        ["-x 1", "-x 2"],
        |sides, _| incompatible(sides, "23 (DATA_REPRESENTATION)"),
    ),
];

/// An undocumented deviation of a peer.
pub(super) struct Known {
    pub(super) policy: &'static str,
    pub(super) peer: Peer,
    /// Role in which it deviates; `None`: both.
    pub(super) role: Option<Role>,
    pub(super) why: &'static str,
}

/// Known deviations. Each time, two programs of the peer run the same cell: a deviation that they do not show is no
/// excuse.
pub(super) const KNOWN: &[Known] = &[
    Known {
        policy: "instance-access-for-topic",
        peer: Peer::FastDds,
        role: None,
        why: "it does not compare PRESENTATION",
    },
    Known {
        policy: "latency-budget-too-long",
        peer: Peer::FastDds,
        role: None,
        why: "it does not compare LATENCY_BUDGET",
    },
    Known {
        policy: "minimum-separation",
        peer: Peer::CycloneDds,
        role: Some(Role::Subscriber),
        why: "its readers ignore the filter",
    },
    Known {
        policy: "lifespan",
        peer: Peer::FastDds,
        role: Some(Role::Subscriber),
        why: "its readers keep what a writer's LIFESPAN has ended",
    },
    Known {
        policy: "xcdr1-for-xcdr2",
        peer: Peer::FastDds,
        role: Some(Role::Publisher),
        why: "it does not report representations that differ",
    },
];
