//! Reasons why the topic has no writer or no reader: none was announced, its topic has a similar name, or it is in
//! another domain.

use isolane::EndpointKind;

use super::facts::{Facts, FullTables, Heard, kind_of};
use super::facts::{Reason, Verdict};
use crate::limits::NEAR_TOPICS;
use crate::output::count_of;

const KINDS: [EndpointKind; 2] = [EndpointKind::Writer, EndpointKind::Reader];

pub(super) fn reasons(facts: &Facts) -> Vec<Reason> {
    let here = &facts.here;
    let lacks = |kind: &EndpointKind| here.of_topic(&facts.topic, *kind).next().is_none();
    let missing: Vec<EndpointKind> = KINDS.into_iter().filter(lacks).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let mut reasons = elsewhere(facts, &missing);
    reasons.extend(nearly_so_called(facts, &missing));
    if reasons.is_empty() {
        reasons.push(match &facts.full {
            Some(full) => table_full(facts, full),
            None => nowhere(facts, &missing),
        });
    }
    reasons.extend(
        facts
            .unreached_peers
            .as_deref()
            .map(|unreached_peers| not_asked(facts, unreached_peers)),
    );
    reasons
}

/// Reason that the missing writer or reader may exist, because this command's full tables refused discovery data.
fn table_full(facts: &Facts, full: &FullTables) -> Reason {
    Reason::new(
        "table-full",
        Verdict::No,
        facts.here.domain,
        format!(
            "participants with {} may be missing, because the tables of this command had no room for {}",
            topic(facts),
            full.refused
        ),
        full.remedy,
    )
}

fn not_asked(facts: &Facts, unreached_peers: &str) -> Reason {
    Reason::new(
        "not-asked",
        Verdict::Perhaps,
        facts.here.domain,
        unreached_peers,
        "name the ports of the other participants, or use multicast",
    )
}

fn topic(facts: &Facts) -> String {
    format!("\"{}\"", facts.topic.escape_debug())
}

/// Number of writers and readers of a topic, as text.
fn said(heard: &Heard, topic: &str) -> String {
    let counts = KINDS.map(|kind| {
        let count = heard.of_topic(topic, kind).count() as u64;
        (count > 0).then(|| count_of(count, kind_of(kind)))
    });
    counts
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" and ")
}

/// Reasons that the missing writer or reader is in another domain.
fn elsewhere(facts: &Facts, missing: &[EndpointKind]) -> Vec<Reason> {
    let has = |heard: &&Heard| {
        let mut kinds = missing.iter();
        kinds.any(|kind| heard.of_topic(&facts.topic, *kind).next().is_some())
    };
    let domains = facts.elsewhere.iter().filter(has);
    let reason = |heard: &Heard| {
        let (own, other) = (facts.here.domain, heard.domain);
        let there = said(heard, &facts.topic);
        let here = match said(&facts.here, &facts.topic) {
            none if none.is_empty() => String::from("no endpoint"),
            some => some,
        };
        let topic = topic(facts);
        Reason::new(
            "other-domain",
            Verdict::No,
            own,
            format!(
                "{topic} has {here} in domain {own}, but {there} in domain {other}: participants of different domains \
                 do not see each other"
            ),
            "give both the same domain: --domain N, ISOLANE_DOMAIN, ROS_DOMAIN_ID",
        )
    };
    domains.map(reason).collect()
}

/// Reasons that the missing writer or reader has a topic with a similar name.
fn nearly_so_called(facts: &Facts, missing: &[EndpointKind]) -> Vec<Reason> {
    let here = &facts.here;
    let mut found = Vec::<&str>::new();
    for endpoint in &here.endpoints {
        let name = endpoint.data.topic_name.as_str();
        let is_news = missing.contains(&endpoint.kind) && !found.contains(&name);
        if is_news && found.len() < NEAR_TOPICS && is_near(&facts.topic, name) {
            found.push(name);
        }
    }
    let reason = |name: &str| {
        let missing: Vec<&str> = missing.iter().map(|kind| kind_of(*kind)).collect();
        Reason::new(
            "topic-name",
            Verdict::No,
            here.domain,
            format!(
                "there is no {} of {}, but {} of \"{}\": topic names must be identical",
                missing.join(" and no "),
                topic(facts),
                said(here, name),
                name.escape_debug()
            ),
            match name.strip_prefix("rt/") == Some(facts.topic.as_str()) {
                true => "give both the same name: ROS 2 puts `rt/` in front of its topics",
                false => "give both the same name",
            },
        )
    };
    found.into_iter().map(reason).collect()
}

fn nowhere(facts: &Facts, missing: &[EndpointKind]) -> Reason {
    let (here, topic) = (&facts.here, topic(facts));
    let domain = here.domain;
    if here.participants.is_empty() {
        return Reason::new(
            "nothing-announced",
            Verdict::No,
            domain,
            format!("no participant announced itself in domain {domain} while this host listened"),
            "check that the other program runs, in this domain (--domain), on an interface on which this command \
             listens (--interface); if multicast does not get through, name its host: --peer ADDRESS",
        );
    }
    let others = count_of(here.participants.len() as u64, "participant");
    match missing {
        [kind] => Reason::new(
            match kind {
                EndpointKind::Writer => "no-writer",
                EndpointKind::Reader => "no-reader",
            },
            Verdict::No,
            domain,
            format!(
                "{topic} has {} in domain {domain}, but no {}: {others} announced none",
                said(here, &facts.topic),
                kind_of(*kind)
            ),
            "start the missing side, or check whether it is in another domain (--other-domains) or was never created",
        ),
        _ => Reason::new(
            "nothing-announced",
            Verdict::No,
            domain,
            format!("{others} of domain {domain} announced no endpoint of {topic}"),
            "`isolane ls` shows the announced topics; endpoints are announced as soon as they are created",
        ),
    }
}

/// Returns whether two different names may mean the same topic. Case, separators and the prefix of ROS 2 are ignored;
/// then the names are equal, or differ in a few letters.
fn is_near(one: &str, other: &str) -> bool {
    if one == other {
        return false;
    }
    let plain = |name: &str| -> String {
        let name = name.strip_prefix("rt/").unwrap_or(name);
        let letters = name.chars().filter(|it| it.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let (one, other) = (plain(one), plain(other));
    let longer = one.chars().count().max(other.chars().count());
    // One letter in five may differ: `Square` is near `Squares`, `Left` is not near `Lift2`.
    strsim::levenshtein(&one, &other) <= longer / 5
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn names_are_near_that_a_person_would_take_for_one() {
        for (one, other) in [
            ("Square", "square"),
            ("Square", "Squares"),
            ("Squrae", "Square1"),
            ("chatter", "rt/chatter"),
            ("brake_pressure", "BrakePressure"),
        ] {
            let expected = one != "Squrae";
            assert_eq!(is_near(one, other), expected, "{one} {other}");
        }
        for (one, other) in [
            ("Square", "Circle"),
            ("Left", "Right"),
            ("A", "B"),
            ("A", "A"),
        ] {
            assert!(!is_near(one, other), "{one} {other}");
        }
    }
}
