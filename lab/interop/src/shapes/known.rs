//! Known deviations of other implementations from a case's required output, which they do not document.

use super::super::combination::Role;
use super::pair::{Pair, Vendor};

/// Deviation of an implementation. When a case fails by one, two programs of the vendor run the same case. If those
/// pass, the deviation is no excuse.
struct Known {
    /// Names of cases (`case.rs`, `policies.rs`).
    cases: &'static [&'static str],
    vendor: Vendor,
    /// Role in which it deviates; `None`: both.
    role: Option<Role>,
    why: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        cases: &["a short life", "lifespan"],
        vendor: Vendor::FastDds,
        role: Some(Role::Subscriber),
        why: "its readers keep samples whose LIFESPAN has expired",
    },
    Known {
        cases: &[
            "access of instances is less than of a topic",
            "coherent is more than not",
            "instance-access-for-topic",
        ],
        vendor: Vendor::FastDds,
        role: None,
        why: "it does not compare PRESENTATION",
    },
    Known {
        cases: &["latency-budget-too-long"],
        vendor: Vendor::FastDds,
        role: None,
        why: "it does not compare LATENCY_BUDGET",
    },
    Known {
        cases: &["a partition with wildcards"],
        vendor: Vendor::CycloneDds,
        role: None,
        why: "its partition names do not support character sets such as `[ab]`",
    },
    Known {
        cases: &["partitions apart"],
        vendor: Vendor::CycloneDds,
        role: None,
        why: "it reports partitions without a match as an incompatible QoS policy",
    },
    Known {
        cases: &["a time-based filter", "minimum-separation"],
        vendor: Vendor::CycloneDds,
        role: Some(Role::Subscriber),
        why: "its readers ignore the filter",
    },
    Known {
        cases: &["representations apart"],
        vendor: Vendor::FastDds,
        role: None,
        why: "it does not report incompatible DATA_REPRESENTATION",
    },
    Known {
        cases: &["xcdr1-for-xcdr2"],
        vendor: Vendor::FastDds,
        role: Some(Role::Publisher),
        why: "it does not report incompatible DATA_REPRESENTATION",
    },
    Known {
        cases: &["a writer that leaves"],
        vendor: Vendor::FastDds,
        role: Some(Role::Subscriber),
        why: "its readers report NOT_ALIVE_NO_WRITERS only if the writer has unregistered the instance",
    },
];

impl Known {
    fn is_of(&self, pair: Pair) -> bool {
        let as_publisher = self.role != Some(Role::Subscriber) && pair.publisher == self.vendor;
        let as_subscriber = self.role != Some(Role::Publisher) && pair.subscriber == self.vendor;
        as_publisher || as_subscriber
    }
}

/// Known reason for which the case fails with this pair, and the vendor that deviates.
pub(super) fn known(case: &str, pair: Pair) -> Option<(Vendor, &'static str)> {
    let mut known = KNOWN.iter();
    let known = known.find(|known| known.cases.contains(&case) && known.is_of(pair))?;
    Some((known.vendor, known.why))
}

/// Cases that fail between two other vendors although each vendor passes with itself and with isolane. Captures gave
/// the reasons.
const BETWEEN: &[Between] = &[
    Between {
        case: "instances unregistered",
        publisher: Vendor::CycloneDds,
        subscriber: Vendor::FastDds,
        why: "the publisher sends the key of an ended instance without its hash, which the subscriber ignores",
    },
    Between {
        case: "instances disposed",
        publisher: Vendor::FastDds,
        subscriber: Vendor::CycloneDds,
        why: "the publisher sends the key hash of an ended instance without the key, which the subscriber ignores",
    },
    Between {
        case: "no history for a volatile subscriber",
        publisher: Vendor::CycloneDds,
        subscriber: Vendor::FastDds,
        why: "the publisher offers its history to VOLATILE readers too, and the subscriber requests it",
    },
];

/// Known failure between a publisher's and a subscriber's vendor.
struct Between {
    case: &'static str,
    publisher: Vendor,
    subscriber: Vendor,
    why: &'static str,
}

/// Known reason for which the case fails between two other vendors.
pub(super) fn disagreement(case: &str, pair: Pair) -> Option<&'static str> {
    let between = BETWEEN.iter().find(|between| {
        let vendors = (between.publisher, between.subscriber);
        between.case == case && vendors == (pair.publisher, pair.subscriber)
    })?;
    Some(between.why)
}

#[cfg(test)]
mod tests {
    use super::super::super::policies::POLICIES;
    use super::super::case::CASES;
    use super::*;

    #[test]
    fn what_is_known_is_of_a_case_that_there_is() {
        let names = CASES.iter().chain(POLICIES.iter().map(|(_, case)| case));
        let names = names.map(|case| case.name).collect::<Vec<_>>();
        let known = KNOWN.iter().flat_map(|known| known.cases).copied();
        for name in known.chain(BETWEEN.iter().map(|between| between.case)) {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn what_two_do_not_agree_on_is_never_isolanes() {
        for between in BETWEEN {
            let sides = [between.publisher, between.subscriber];
            assert!(!sides.contains(&Vendor::Isolane), "{}", between.case);
            assert_ne!(between.publisher, between.subscriber);
        }
    }
}
