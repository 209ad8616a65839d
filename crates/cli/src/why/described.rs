//! A topic that participants write and read by a description: nothing of it is announced, so what can be seen is
//! whether these participants are there, and whether they follow the same description.

use isolane::EndpointKind;
use isolane_wire::guid::GuidPrefix;

use super::facts::{Endpoint, Facts, Who, kind_of};
use super::reason::{Reason, Verdict};

/// A participant of the description that writes or reads the topic.
#[derive(Debug)]
pub(crate) struct DescribedHere {
    pub(crate) name: String,
    /// File and line.
    pub(crate) said_in: String,
    pub(crate) address: [u8; 4],
    /// Whether it writes, reads, or both.
    pub(crate) kinds: Vec<EndpointKind>,
    /// It announces itself.
    pub(crate) is_announced: bool,
    /// Its GUID prefix, but for the last four bytes.
    pub(crate) prefix: GuidPrefix,
    /// What stands for its endpoints in its announcement.
    pub(crate) digest: u64,
}

impl DescribedHere {
    fn is(&self, prefix: GuidPrefix) -> bool {
        prefix.0[..8] == self.prefix.0[..8]
    }

    fn said(&self) -> String {
        let [a, b, c, d] = self.address;
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind_of(*kind)).collect();
        format!(
            "participant \"{}\" ({} by {}, at {a}.{b}.{c}.{d})",
            self.name.escape_debug(),
            kinds.join(" and "),
            self.said_in
        )
    }
}

/// What the description makes of the topic; nothing, where it has no part in it.
pub(super) fn reasons(facts: &Facts) -> Vec<Reason> {
    if facts.described.is_empty() {
        return Vec::new();
    }
    let mut reasons: Vec<Reason> = facts
        .described
        .iter()
        .filter_map(|one| of_participant(facts, one))
        .collect();
    reasons.extend(
        facts
            .here
            .endpoints
            .iter()
            .filter(|it| it.data.topic_name == facts.topic.as_str())
            .map(|endpoint| discovered(facts, endpoint)),
    );
    let has = |kind: EndpointKind| {
        let mut all = facts.described.iter();
        all.any(|one| one.kinds.contains(&kind))
    };
    for (kind, key) in [
        (EndpointKind::Writer, "writes"),
        (EndpointKind::Reader, "reads"),
    ] {
        if !has(kind) {
            let kind = kind_of(kind);
            reasons.push(about(
                facts,
                "described-one-sided",
                Verdict::No,
                format!("the description has no {kind} of {}", topic(facts)),
                &format!("add the topic to `{key}` of a participant, on all hosts"),
            ));
        }
    }
    if reasons.is_empty() {
        let all: Vec<String> = facts.described.iter().map(DescribedHere::said).collect();
        reasons.push(about(
            facts,
            "described",
            Verdict::Yes,
            format!(
                "{} know each other by the same description, and each has announced itself",
                all.join(" and ")
            ),
            "if samples are missing all the same: `isolane top` shows where they went",
        ));
    }
    reasons
}

fn topic(facts: &Facts) -> String {
    format!("\"{}\"", facts.topic.escape_debug())
}

fn about(
    facts: &Facts,
    id: &'static str,
    verdict: Verdict,
    sentence: String,
    remedy: &str,
) -> Reason {
    Reason::new(id, verdict, facts.here.domain, sentence, remedy)
}

fn of_participant(facts: &Facts, one: &DescribedHere) -> Option<Reason> {
    let topic = topic(facts);
    if !one.is_announced {
        return Some(about(
            facts,
            "described-silent",
            Verdict::Perhaps,
            format!(
                "whether {} of {topic} is running cannot be seen: it announces nothing",
                one.said()
            ),
            "look on its host; with announces = \"itself\" it could be seen",
        ));
    }
    let mut heard = facts.here.participants.iter();
    let Some(who) = heard.find(|who| one.is(who.prefix)) else {
        return Some(about(
            facts,
            "described-absent",
            Verdict::No,
            format!(
                "{} of {topic} has announced nothing while this host listened",
                one.said()
            ),
            "start it, as that participant (--participant NAME), on the host that has the address",
        ));
    };
    disagreement(facts, one, who)
}

fn disagreement(facts: &Facts, one: &DescribedHere, who: &Who) -> Option<Reason> {
    if who.digest == Some(one.digest) {
        return None;
    }
    Some(about(
        facts,
        "described-otherwise",
        Verdict::No,
        format!(
            "{} follows another description than {}: which topics it writes and reads, their types, levels, \
             reliability or durability, or where it is reached, are not the same",
            one.said(),
            one.said_in
                .rsplit_once(':')
                .map_or(one.said_in.as_str(), |(file, _)| file)
        ),
        "give all hosts the same description, and start again what runs by another one",
    ))
}

/// An endpoint that is announced meets none that is described.
fn discovered(facts: &Facts, endpoint: &Endpoint) -> Reason {
    about(
        facts,
        "not-described",
        Verdict::No,
        format!(
            "the {} was discovered, and meets none of those that are described: these are announced to nobody",
            facts.here.said(endpoint)
        ),
        "describe its participant as well, and start it as that one (--participant NAME)",
    )
}
