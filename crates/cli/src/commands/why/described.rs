//! Reasons about a topic of the description. Described endpoints are not announced. So only the participants'
//! announcements and the digests of their descriptions can be checked.

use isolane::{EndpointKind, RemoteEndpoint as Endpoint, differences};
use isolane_wire::guid::GuidPrefix;

use super::facts::{Facts, Reason, Verdict, Who, kind_of};

/// Described participant that writes or reads the topic.
#[derive(Debug)]
pub(crate) struct DescribedHere {
    pub(crate) name: String,
    /// File and line at which the description has this participant.
    pub(crate) said_in: String,
    pub(crate) address: [u8; 4],
    /// Kinds of its endpoints of the topic: writer, reader, or both.
    pub(crate) kinds: Vec<EndpointKind>,
    /// True if it announces itself by SPDP.
    pub(crate) is_announced: bool,
    /// GUID prefix. Its last four bytes are not known, and are not compared.
    pub(crate) prefix: GuidPrefix,
    /// Digest of its endpoints, which its announcement should contain.
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
            "participant \"{}\" ({}, described in {}, at {a}.{b}.{c}.{d})",
            self.name.escape_debug(),
            kinds.join(" and "),
            self.said_in
        )
    }
}

/// Reasons from the description; empty if the description does not contain the topic.
pub(super) fn reasons(facts: &Facts) -> Vec<Reason> {
    if facts.described.is_empty() {
        return Vec::new();
    }
    let mut reasons: Vec<Reason> = facts
        .described
        .iter()
        .filter_map(|one| of_participant(facts, one))
        .collect();
    let has = |kind: EndpointKind| {
        let mut all = facts.described.iter();
        all.any(|one| one.kinds.contains(&kind))
    };
    for kind in [EndpointKind::Writer, EndpointKind::Reader] {
        if !has(kind) {
            let (key, kind) = (key_of(kind), kind_of(kind));
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
            "if samples are missing nevertheless, `isolane top` shows where they were lost",
        ));
    }
    // Discovered endpoints of the topic do not change the reasons so far, and have reasons of their own.
    let discovered_ones = facts.here.endpoints.iter();
    let of_topic = discovered_ones.filter(|it| it.data.topic_name == facts.topic.as_str());
    reasons.extend(of_topic.map(|endpoint| discovered(facts, endpoint)));
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
                "it is unknown whether {} of {topic} runs, because it announces nothing",
                one.said()
            ),
            "check on its host; with announces = \"itself\", this command could see it",
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
            "start it as that participant (--participant NAME), on the host with the described address",
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
            "{} follows another description than {}: the two descriptions differ in the topics of the participant, in \
             their types, levels, RELIABILITY, DURABILITY or DEADLINE, or in its address",
            one.said(),
            one.said_in
                .rsplit_once(':')
                .map_or(one.said_in.as_str(), |(file, _)| file)
        ),
        "give all hosts the same description, and restart the participants that use another one",
    ))
}

/// Reason about a discovered endpoint of a described topic. Such an endpoint matches no described endpoints except
/// those of the same participant.
fn discovered(facts: &Facts, endpoint: &Endpoint) -> Reason {
    let (said, kind) = (facts.here.said(endpoint), endpoint.kind);
    let topic = topic(facts);
    let mut described = facts.described.iter();
    let prefix = endpoint.data.guid.prefix;
    if let Some(own) = described.clone().find(|one| one.is(prefix)) {
        let sentence = format!(
            "the {said} belongs to {} and is not described: it is announced, and matches only described endpoints of \
             its own participant",
            own.said()
        );
        let remedy = format!(
            "describe it as well: {topic} in `{}` of that participant, on all hosts",
            key_of(kind)
        );
        return about(facts, "not-described", Verdict::No, sentence, &remedy);
    }
    let sentence = format!(
        "the {said} was discovered, and matches no described endpoint, because described endpoints are not announced{}",
        other_matches(facts, endpoint)
    );
    // The user probably meant a described participant that has an endpoint of this kind and was not heard.
    let is_heard = |one: &DescribedHere| {
        let mut heard = facts.here.participants.iter();
        heard.any(|who| one.is(who.prefix))
    };
    let meant = described.find(|one| one.kinds.contains(&kind) && !is_heard(one));
    let remedy = match meant {
        Some(one) => format!(
            "start it as the described participant that {} the topic: --participant {}; or describe another \
             participant for it",
            key_of(kind),
            one.name.escape_debug()
        ),
        None => String::from(
            "describe its participant as well, and start it as that participant (--participant NAME)",
        ),
    };
    about(facts, "not-described", Verdict::No, sentence, &remedy)
}

/// Text on the number of other discovered endpoints that match `endpoint`.
fn other_matches(facts: &Facts, endpoint: &Endpoint) -> String {
    let (other, said) = match endpoint.kind {
        EndpointKind::Writer => (EndpointKind::Reader, "readers"),
        EndpointKind::Reader => (EndpointKind::Writer, "writers"),
    };
    let others = facts.here.of_topic(&facts.topic, other);
    let fits = |it: &&Endpoint| match endpoint.kind {
        EndpointKind::Writer => differences(&endpoint.data, &it.data).is_empty(),
        EndpointKind::Reader => differences(&it.data, &endpoint.data).is_empty(),
    };
    match others.filter(fits).count() {
        0 => String::new(),
        count => format!("; {count} of the discovered {said} match it"),
    }
}

/// Key in the description that lists the topics of such endpoints.
fn key_of(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Writer => "writes",
        EndpointKind::Reader => "reads",
    }
}
