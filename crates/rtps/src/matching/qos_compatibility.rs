//! Compatibility of two endpoints (DDS 1.4 §2.2.3): topic, type, key, partition, and offered against requested
//! policies.
//!
//! # PARTITION names and wildcards (DDS 1.4 §2.2.3.13)
//!
//! A wildcard name matches as POSIX `fnmatch` without flags. `*` matches any characters and `?` one character. `[abc]`
//! and `[a-z]` match one character in a set, `[!a-z]` one outside it. A backslash quotes the next character. Two
//! wildcard names never match, not even equal ones. Names without wildcards are compared literally, backslashes
//! included. Character classes (`[:digit:]`) are not supported.
//!
//! Names come from peers, so the cost is bounded: only the last `*` is retried, and an unterminated set is searched
//! once. A comparison examines at most twice the product of the two lengths, 8,192 characters. Two endpoints need at
//! most 64 comparisons.

use isolane_wire::{
    builtin_data::EndpointData,
    guid::Guid,
    qos::{DataRepresentationId, Partition, PolicyId, QosPolicies},
};

/// Endpoints of the same topic with incompatible QoS (DDS 1.4 §2.2.4.1, *IncompatibleQosStatus*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incompatible {
    /// Last incompatible endpoint.
    pub other: Guid,
    /// First policy on which it differs.
    pub policy: PolicyId,
    /// Total number of incompatible endpoints.
    pub total: u32,
    /// Increase since the status was last taken
    /// ([`take_offered_incompatible`](crate::LocalParticipant::take_offered_incompatible)).
    pub total_change: u32,
}

impl Incompatible {
    /// Adds another incompatible endpoint to the status.
    pub(super) fn after(before: Option<Self>, other: Guid, policy: PolicyId) -> Self {
        let (total, change) = before.map_or((0, 0), |before| (before.total, before.total_change));
        Self {
            other,
            policy,
            total: total.saturating_add(1),
            total_change: change.saturating_add(1),
        }
    }
}

/// Returns the first policy that offers less than requested; `None` if all are compatible.
#[must_use]
pub fn incompatible_policy(offered: &QosPolicies, requested: &QosPolicies) -> Option<PolicyId> {
    incompatible_policies(offered, requested).next()
}

/// Returns all policies that offer less than requested.
pub fn incompatible_policies(
    offered: &QosPolicies,
    requested: &QosPolicies,
) -> impl Iterator<Item = PolicyId> + use<> {
    let checks = [
        (
            offered.durability >= requested.durability,
            PolicyId::DURABILITY,
        ),
        (
            offered.presentation.access_scope >= requested.presentation.access_scope
                && offered.presentation.coherent >= requested.presentation.coherent
                && offered.presentation.ordered >= requested.presentation.ordered,
            PolicyId::PRESENTATION,
        ),
        (offered.deadline <= requested.deadline, PolicyId::DEADLINE),
        (
            offered.latency_budget <= requested.latency_budget,
            PolicyId::LATENCY_BUDGET,
        ),
        (
            offered.ownership == requested.ownership,
            PolicyId::OWNERSHIP,
        ),
        (
            offered.liveliness.kind >= requested.liveliness.kind
                && offered.liveliness.lease <= requested.liveliness.lease,
            PolicyId::LIVELINESS,
        ),
        (
            offered.reliability.kind >= requested.reliability.kind,
            PolicyId::RELIABILITY,
        ),
        (
            offered.destination_order >= requested.destination_order,
            PolicyId::DESTINATION_ORDER,
        ),
        (
            representations_meet(offered, requested),
            PolicyId::DATA_REPRESENTATION,
        ),
    ];
    checks
        .into_iter()
        .filter_map(|(compatible, policy)| (!compatible).then_some(policy))
}

/// Returns whether the reader accepts the first representation offered, in which the writer sends (DDS-XTypes 1.3
/// §7.6.3.1.2). An empty list means XCDR1.
fn representations_meet(offered: &QosPolicies, requested: &QosPolicies) -> bool {
    let sent = offered
        .data_representation
        .first()
        .copied()
        .unwrap_or(DataRepresentationId::XCDR1);
    let taken = &requested.data_representation;
    taken.contains(&sent) || (taken.is_empty() && sent == DataRepresentationId::XCDR1)
}

/// Result of comparing a writer with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// Different topic, type, key kind or partition: not an incompatibility.
    Unrelated,
    /// Same topic, but this policy offers less than requested.
    Differ(PolicyId),
    Fit,
}

pub(super) fn compare(writer: &EndpointData, reader: &EndpointData) -> Comparison {
    let is_same_topic = writer.topic_name == reader.topic_name
        && writer.type_name == reader.type_name
        && writer.is_keyed() == reader.is_keyed()
        && partitions_match(&writer.qos.partition, &reader.qos.partition);
    if !is_same_topic {
        return Comparison::Unrelated;
    }
    incompatible_policy(&writer.qos, &reader.qos).map_or(Comparison::Fit, Comparison::Differ)
}

/// Earlier result for a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Before<'a> {
    /// Compared for the first time.
    New,
    /// Unchanged since the last comparison.
    Unchanged,
    /// Former data of the endpoint that has changed.
    Was(&'a EndpointData),
}

impl Before<'_> {
    /// Returns whether the result differs from the earlier one.
    pub(super) fn is_news(
        self,
        found: Comparison,
        writer: &EndpointData,
        reader: &EndpointData,
    ) -> bool {
        match self {
            Self::New => true,
            Self::Unchanged => false,
            Self::Was(former) if former.guid == writer.guid => compare(former, reader) != found,
            Self::Was(former) => compare(writer, former) != found,
        }
    }
}

/// Returns whether two endpoints share a partition. An empty list is the partition with the empty name. A mismatch is
/// not an incompatibility and changes no status.
#[must_use]
pub fn partitions_match(own: &Partition, other: &Partition) -> bool {
    // Most endpoints use the default partition.
    if own.is_empty() && other.is_empty() {
        return true;
    }
    let has_name = |partition: &Partition, meets: &dyn Fn(&str) -> bool| {
        (partition.is_empty() && meets("")) || partition.iter().any(|name| meets(name))
    };
    has_name(own, &|one| has_name(other, &|it| name_meets(one, it)))
}

/// Returns whether two names denote a common partition.
fn name_meets(one: &str, other: &str) -> bool {
    match (has_wildcards(one), has_wildcards(other)) {
        (false, false) => one == other,
        (true, false) => fits(one, other),
        (false, true) => fits(other, one),
        (true, true) => false,
    }
}

/// Returns whether a name contains an unquoted wildcard.
fn has_wildcards(name: &str) -> bool {
    let mut is_quoted = false;
    name.chars().any(|it| {
        let is_wildcard = !is_quoted && matches!(it, '*' | '?' | '[');
        is_quoted = !is_quoted && it == '\\';
        is_wildcard
    })
}

/// Returns whether a pattern matches a whole text.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    // The pattern after the last `*`, and the text it was last tried on. On a mismatch that `*` takes one more
    // character. Earlier ones need no retry: the later `*` can take whatever they could.
    let mut again: Option<(&str, &str)> = None;
    let mut sets = Sets::default();
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            again = Some((rest, text));
            pattern = rest;
            continue;
        }
        let mut rest = text.chars();
        match rest.next() {
            None if pattern.is_empty() => return true,
            Some(character) => {
                if let Some(behind) = sets.step(pattern, character) {
                    (pattern, text) = (behind, rest.as_str());
                    continue;
                }
            }
            // The text is used up, and a `*` could only take more of it.
            None => return false,
        }
        let Some((behind, from)) = again else {
            return false;
        };
        let mut longer = from.chars();
        longer.next();
        (pattern, text) = (behind, longer.as_str());
        again = Some((behind, text));
    }
}

/// Cached knowledge of a pattern's sets.
#[derive(Default)]
struct Sets {
    /// Number of bytes at the pattern's end that contain no end of a set, to avoid a second search.
    unclosed_bytes: usize,
}

impl Sets {
    /// Matches the first element of a pattern with a character. Returns the rest of the pattern; `None` on a mismatch.
    fn step<'a>(&mut self, pattern: &'a str, character: char) -> Option<&'a str> {
        let mut rest = pattern.chars();
        let is_it = match rest.next()? {
            '?' => true,
            '[' if rest.as_str().len() > self.unclosed_bytes => {
                match in_set(rest.as_str(), character) {
                    Some((is_in, behind)) => return is_in.then_some(behind),
                    // A `[` without its `]` is literal, and so is every later `[`.
                    None => {
                        self.unclosed_bytes = rest.as_str().len();
                        character == '['
                    }
                }
            }
            // A backslash at the end matches nothing.
            '\\' => rest.next()? == character,
            itself => itself == character,
        };
        is_it.then_some(rest.as_str())
    }
}

/// Returns whether a character is in the set that starts after a `[`, and the pattern after its `]`; `None` if the set
/// is not terminated.
fn in_set(set: &str, character: char) -> Option<(bool, &str)> {
    let (is_negated, set) = match set.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, set),
    };
    let mut rest = set.chars();
    let mut is_in = false;
    let mut is_first = true;
    loop {
        let low = match rest.next()? {
            ']' if !is_first => return Some((is_in != is_negated, rest.as_str())),
            '\\' => rest.next()?,
            itself => itself,
        };
        is_first = false;
        let mut ahead = rest.clone();
        let is_range =
            ahead.next() == Some('-') && ahead.clone().next().is_some_and(|it| it != ']');
        let high = if is_range {
            rest = ahead;
            match rest.next()? {
                '\\' => rest.next()?,
                itself => itself,
            }
        } else {
            low
        };
        is_in |= (low..=high).contains(&character);
    }
}
