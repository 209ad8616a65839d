//! Reasons about pairs of a writer and a reader: QoS, types, networks, ignore lists and encapsulations.

use isolane::{Difference, EndpointKind, PolicyId, RemoteEndpoint as Endpoint, differences};
use isolane_wire::qos::DataRepresentationId;

use super::facts::{Disagreement, Facts, LocalNetwork, Reason, Verdict};
use crate::commands::spy::names;
use crate::limits::WHY_PAIRS;
use crate::output::{count_of, joined};

const LOOPBACK: u8 = 127;

/// Vendor name of isolane.
const OWN: &str = "isolane";

pub(super) fn reasons(facts: &Facts) -> Vec<Reason> {
    let of = |kind| facts.here.of_topic(&facts.topic, kind);
    let writers = of(EndpointKind::Writer);
    let mut pairs = writers.flat_map(|writer| of(EndpointKind::Reader).map(move |it| (writer, it)));
    let mut reasons: Vec<Reason> = pairs
        .by_ref()
        .take(WHY_PAIRS)
        .map(|(writer, reader)| of_pair(facts, writer, reader))
        .collect();
    let left = pairs.count();
    if left > 0 {
        reasons.push(Reason::new(
            "too-many",
            Verdict::Perhaps,
            facts.here.domain,
            format!("{left} more pairs of a writer and a reader were not compared"),
            "restrict the command to fewer endpoints of the topic: --interface, --domain",
        ));
    }
    reasons
}

fn of_pair(facts: &Facts, writer: &Endpoint, reader: &Endpoint) -> Reason {
    let pair = format!(
        "the {} and the {}",
        facts.here.said(writer),
        facts.here.said(reader)
    );
    let about = |id, verdict, sentence: String, remedy: String| Reason {
        writer: Some(writer.data.guid.to_string()),
        reader: Some(reader.data.guid.to_string()),
        ..Reason::new(id, verdict, facts.here.domain, sentence, remedy)
    };
    let no = |id, because: String, remedy: String| {
        about(
            id,
            Verdict::No,
            format!("{pair} do not talk, because {because}"),
            remedy,
        )
    };
    let found = differences(&writer.data, &reader.data);
    if let [first, ..] = found.as_slice() {
        let values: Vec<Disagreement> =
            found.iter().map(|it| values(*it, writer, reader)).collect();
        let because: Vec<String> = values.iter().map(said).collect();
        let mut remedies: Vec<&str> = found.iter().map(|it| remedy(*it)).collect();
        remedies.dedup();
        return Reason {
            differences: values,
            ..no(id_of(*first), because.join("; and "), remedies.join("; "))
        };
    }
    if let Some(because) = ignored(facts, writer, reader) {
        let remedy = "do not ignore it: it stays ignored until the ignoring participant ends";
        return no("ignored", because, remedy.into());
    }
    match apart(facts, writer, reader) {
        Some((Verdict::Perhaps, because, remedy)) => {
            let sentence = format!("{pair} may not reach each other: {because}");
            return about("network", Verdict::Perhaps, sentence, remedy.into());
        }
        Some((_, because, remedy)) => return no("network", because, remedy.into()),
        None => {}
    }
    if let Some((id, verdict, because, remedy)) = refused(facts, writer, reader) {
        return about(id, verdict, format!("{pair}: {because}"), remedy.into());
    }
    if facts.here.vendor(writer) == Some(OWN)
        && facts.here.who(reader).is_some_and(|it| !it.is_validated)
    {
        return about(
            "address-not-validated",
            Verdict::Perhaps,
            format!(
                "{pair} match, but the reader's participant has answered this command from none of the addresses that \
                 it announces, and isolane sends samples only to addresses from which a participant has answered"
            ),
            "let the participant announce the address that it sends from, without address translation on the way; if \
             it sends no answer at all, check its packet filter; the writer's participant logs the datagrams that it \
             withholds, and `isolane top` shows its counters answers_elsewhere and readers_unvalidated"
                .into(),
        );
    }
    let of_reader = reader.data.guid.prefix.to_string();
    let mut seen = facts.ignoring.iter();
    if let Some(seen) = seen.find(|seen| seen.prefix == of_reader && seen.too_large > 0) {
        return about(
            "too-large",
            Verdict::Perhaps,
            format!(
                "{pair} match, but {} samples were larger than the reader accepts",
                seen.too_large
            ),
            "raise Qos::max_bytes of the reader (--max-bytes, or max_bytes of the topic in isolane.toml); its log \
             gives the size of the samples"
                .into(),
        );
    }
    let mut sentence = format!("{pair} agree in everything they announce, so they match");
    let mut remedy = format!(
        "if no samples arrive, check that the writer writes and that multicast gets through: `isolane spy --topic {}` \
         shows the datagrams",
        facts.topic
    );
    if let Some((unknown, advice)) = unknown_extensibility(facts, writer, reader) {
        sentence += &unknown;
        remedy = format!("{advice}; {remedy}");
    }
    about("match", Verdict::Yes, sentence, remedy)
}

/// Reason, explanation and remedy if the reader refused the writer's samples because they are not of its type. This is
/// known only of readers on this host.
fn refused(
    facts: &Facts,
    writer: &Endpoint,
    reader: &Endpoint,
) -> Option<(&'static str, Verdict, String, &'static str)> {
    let prefix = reader.data.guid.prefix.to_string();
    let guid = writer.data.guid.to_string();
    let refusal = facts.refusals.iter().find(|refusal| {
        let is_reader = refusal.reader_prefix == prefix && refusal.topic == facts.topic;
        is_reader && refusal.writer == guid
    })?;
    let samples = count_of(refusal.total, "sample");
    let Some(encapsulation) = refusal.encapsulation else {
        let verdict = match refusal.delivered {
            0 => Verdict::No,
            _ => Verdict::Perhaps,
        };
        return Some((
            "payload",
            verdict,
            format!(
                "the reader has refused {samples} whose payload is not of its type, and has delivered {}",
                refusal.delivered
            ),
            "compare the members of both types and their order; declare each nested structure like its outer type: \
             `#[topic(appendable)]` on all, or on none",
        ));
    };
    let (types, remedy) = match encapsulation.extensibility() {
        Some("appendable") => (
            "the writer's type is appendable and the reader's final",
            "declare both alike: `#[topic(appendable)]` on the reader's type and each structure in it, or @final on the \
             writer's",
        ),
        Some("final") => (
            "the writer's type is final and the reader's appendable",
            "declare both alike: `#[topic(final_)]` on the reader's type and each structure in it, or @appendable on the \
             writer's",
        ),
        Some(_) => (
            "the writer's type is mutable, which isolane does not read",
            "declare the writer's type @final or @appendable",
        ),
        None => (
            "isolane does not read this encapsulation",
            "let the writer offer XCDR1 or XCDR2 (DATA_REPRESENTATION)",
        ),
    };
    Some((
        "encapsulation",
        Verdict::No,
        format!("the reader has refused {samples} in the encapsulation {encapsulation}: {types}"),
        remedy,
    ))
}

/// Text and advice if the pair has one endpoint of isolane, and the extensibility of the other endpoint's type is
/// unknown. Extensibility is not announced, and readers may silently drop samples with another encapsulation.
fn unknown_extensibility(
    facts: &Facts,
    writer: &Endpoint,
    reader: &Endpoint,
) -> Option<(String, &'static str)> {
    let vendors = facts.here.vendor(writer).zip(facts.here.vendor(reader))?;
    let unknown = |kind: &str, vendor: &str| {
        format!(
            "; whether the {kind}'s type is final or appendable is unknown, since {vendor} does not announce it"
        )
    };
    match vendors {
        (OWN, vendor) if vendor != OWN => {
            let is_xcdr2 = writer.data.qos.data_representation[..] == [DataRepresentationId::XCDR2];
            let advice = match is_xcdr2 {
                true => {
                    "if the writer writes and the reader shows nothing: give the writer's type the other \
                     extensibility (appendable with `#[topic(appendable)]`, final without it), or send XCDR1, in \
                     which both look alike (`Qos::representation`)"
                }
                false => {
                    "if the writer writes and the reader shows nothing: the reader's type may be appendable, which is \
                     the default of IDL, and Cyclone DDS reads such types only in XCDR2: declare the writer's type \
                     `#[topic(appendable)]`, which sends XCDR2"
                }
            };
            Some((unknown("reader", vendor), advice))
        }
        (vendor, OWN) if vendor != OWN => Some((
            unknown("writer", vendor),
            "if the reader shows nothing: its log names samples that are not of its type (`why` sees them only if \
             the participant is on this host and built with Builder::observable(true))",
        )),
        _ => None,
    }
}

fn id_of(difference: Difference) -> &'static str {
    match difference {
        Difference::Type => "type",
        Difference::Key => "key",
        Difference::Partition => "partition",
        Difference::Policy(PolicyId::DATA_REPRESENTATION) => "data-representation",
        _ => "policy",
    }
}

/// Values of the writer and the reader that differ.
fn values(difference: Difference, writer: &Endpoint, reader: &Endpoint) -> Disagreement {
    let of = |endpoint: &Endpoint| {
        let data = &endpoint.data;
        match difference {
            Difference::Type => format!("\"{}\"", data.type_name.escape_debug()),
            Difference::Key if data.is_keyed() => String::from("with a key"),
            Difference::Key => String::from("without a key"),
            Difference::Partition => names::policy_value(PolicyId::PARTITION, &data.qos),
            Difference::Policy(policy) => names::policy_value(policy, &data.qos),
            _ => data.topic_name.as_str().into(),
        }
    };
    Disagreement {
        name: difference.to_string(),
        offered: of(writer),
        requested: of(reader),
    }
}

fn said(values: &Disagreement) -> String {
    let Disagreement {
        name,
        offered,
        requested,
    } = values;
    match name.as_str() {
        "type name" => format!("the writer's type is {offered} and the reader's {requested}"),
        "key" => format!("the writer's type is {offered} and the reader's {requested}"),
        "PARTITION" => format!(
            "they share no PARTITION: the writer is in {offered}, the reader in {requested}"
        ),
        "OWNERSHIP" => {
            format!("of OWNERSHIP: the writer has {offered}, the reader {requested}")
        }
        name => format!("of {name}: the writer offers {offered}, the reader requests {requested}"),
    }
}

fn remedy(difference: Difference) -> &'static str {
    match difference {
        Difference::Type => {
            "give both types the same name, as its module and structure are called in IDL"
        }
        Difference::Key => "use the same type on both sides: its key members decide",
        Difference::Partition => "let both name a common partition, or neither name any",
        Difference::Policy(policy) => match policy {
            PolicyId::RELIABILITY => "make the writer RELIABLE, or the reader BEST_EFFORT",
            PolicyId::DURABILITY => {
                "let the writer keep as much as the reader requests (TRANSIENT_LOCAL), or the reader request \
                 for less"
            }
            PolicyId::DEADLINE | PolicyId::LATENCY_BUDGET => {
                "let the writer's time be at most the reader's"
            }
            PolicyId::LIVELINESS => {
                "let the writer's kind be at least the reader's (AUTOMATIC, MANUAL_BY_PARTICIPANT, \
                 MANUAL_BY_TOPIC), and its lease at most the reader's"
            }
            PolicyId::OWNERSHIP => "give both the same kind",
            PolicyId::DATA_REPRESENTATION => {
                "let the reader accept the representation that the writer sends"
            }
            _ => "let the writer offer at least what the reader requests",
        },
        _ => "give both the same",
    }
}

/// Explanation if the participant of one endpoint ignores the other endpoint. Known only of participants on this host.
fn ignored(facts: &Facts, writer: &Endpoint, reader: &Endpoint) -> Option<String> {
    let topic = &facts.topic;
    for (own, other) in [(writer, reader), (reader, writer)] {
        let prefix = own.data.guid.prefix.to_string();
        let all = facts.ignoring.iter();
        for of in all.filter(|ignoring| ignoring.prefix == prefix) {
            let whose = format!("the participant of the {}", super::facts::kind_of(own.kind));
            if of.topics.contains(topic) {
                return Some(format!(
                    "{whose} ignores the topic \"{}\"",
                    topic.escape_debug()
                ));
            }
            if of.entities.contains(&other.data.guid.to_string()) {
                return Some(format!("{whose} ignores the other endpoint"));
            }
            if of.entities.contains(&other.data.participant().to_string()) {
                return Some(format!("{whose} ignores the other endpoint's participant"));
            }
        }
    }
    None
}

/// Verdict, explanation and remedy if writer and reader are on unconnected networks, as far as this host can tell.
fn apart(
    facts: &Facts,
    writer: &Endpoint,
    reader: &Endpoint,
) -> Option<(Verdict, String, &'static str)> {
    let (from, to) = (facts.here.addresses(writer), facts.here.addresses(reader));
    let is_known = !from.is_empty() && !to.is_empty();
    let is_one_host = from.iter().any(|address| to.contains(address));
    if !is_known || is_one_host || writer.data.guid.prefix == reader.data.guid.prefix {
        return None;
    }
    let is_loopback = |all: &[[u8; 4]]| all.iter().all(|address| address[0] == LOOPBACK);
    for (of, other, all) in [("writer", "reader", &from), ("reader", "writer", &to)] {
        let others = if of == "writer" { &to } else { &from };
        if is_loopback(all) != is_loopback(others) && is_loopback(all) {
            return Some((
                Verdict::No,
                format!("the {of} is reached only by 127.0.0.1, and the {other} is not there"),
                "let both use the same interface: --interface, Builder::interfaces",
            ));
        }
    }
    let networks = |all: &[[u8; 4]]| -> Option<Vec<&LocalNetwork>> {
        all.iter()
            .map(|address| facts.networks.iter().find(|net| net.contains(*address)))
            .collect()
    };
    let (from, to) = (networks(&from)?, networks(&to)?);
    let meets = |one: &&LocalNetwork| {
        to.iter()
            .any(|other| one.contains(other.address) && one.prefix_bits == other.prefix_bits)
    };
    (!from.iter().any(meets)).then(|| {
        let names = |of: &[&LocalNetwork]| -> String {
            joined(of.iter().map(|net| &net.interface), ", ")
        };
        // Routers and named peers may still connect the two networks.
        (
            Verdict::Perhaps,
            format!(
                "the writer is on the network of {} and the reader on that of {}, and these networks are not the \
                 same, as seen from this host",
                names(&from),
                names(&to)
            ),
            "connect both to one network; or route between the networks and name peers by --peer, because multicast \
             does not pass routers here",
        )
    })
}
