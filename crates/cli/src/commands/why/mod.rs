//! `isolane why`: finds reasons why the endpoints of a topic do not communicate, and prints a sentence for each.
//!
//! [`Facts`] holds discovery data, interfaces, packet filters, and the state of participants on this host. [`judge`]
//! derives the reasons from facts alone, so that its tests need no network. `pair` compares writers with readers.
//! `absent` explains a missing writer or reader. `described` covers static discovery, and `host` packet filters.

mod absent;
mod described;
mod facts;
mod host;
mod pair;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use isolane::observe::Snapshot;
use isolane::types::EncapsulationId;
use isolane::{BuildError, EndpointKind, Participant, StaticDescription};
use isolane_model::{Domain, Host, System};
use isolane_tune::{PacketFilters, packet_filters};
use serde::Serialize;

use self::described::DescribedHere;
pub(super) use self::facts::FullTables;
use self::facts::{Facts, Heard, Ignoring, LocalNetwork, Reason, Refusal, Verdict};
use super::endpoint::check_topic;
use super::participant::{Until, build_with, check_ports, full_tables, observing, unreached_peers};
use super::top::discovery::Watcher;
use crate::arguments::LaneArguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::limits::{OTHER_DOMAINS, SHOWN_REASONS};
use crate::output::{count_of, joined, print_json_or, tell};
use crate::settings::Settings;
use crate::values::{Destination, Peer, seconds};

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Topic whose writers and readers do not communicate
    #[arg(value_name = "TOPIC")]
    topic: String,
    #[command(flatten)]
    lane: LaneArguments,
    /// Listen for announcements for this many seconds
    #[arg(long, value_name = "N", value_parser = seconds(), default_value = "3")]
    seconds: Duration,
    /// Look for the topic also in these domains, separated by commas, as 0,42 [default: 0 to 4]
    #[arg(
        long,
        value_name = "LIST",
        conflicts_with = "no_other_domains",
        default_values_t = OTHER_DOMAINS.filter_map(Domain::new),
        hide_default_value = true
    )]
    other_domains: Vec<Domain>,
    /// Look for the topic in no other domain
    #[arg(long)]
    no_other_domains: bool,
    /// Write the reasons as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// JSON form of the answer (`--json`).
#[derive(Serialize)]
struct Answer<'a> {
    schema: &'static str,
    topic: &'a str,
    domain: u32,
    /// True if there is a reason with the verdict yes, and none with the verdict no.
    communicates: bool,
    participants: usize,
    writers: usize,
    readers: usize,
    /// Other domains in which `why` listened.
    other_domains: Vec<u32>,
    firewall: Firewall,
    reasons: &'a [Reason],
}

/// Sources of the packet filters that were read, and the reason if they could not be read.
#[derive(Serialize)]
struct Firewall {
    /// Tools that listed their rules: `nft`, `iptables-legacy`.
    read_by: Vec<&'static str>,
    /// Reason why rules that exist, or may exist, could not be read.
    unreadable: Option<String>,
}

impl Why {
    /// Listens, derives the reasons and prints them. The exit code is 1 unless the endpoints communicate
    /// (`Answer::communicates`).
    pub(super) fn run(mut self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let lane = settings.lane(self.lane.clone())?;
        check_topic(&self.topic)?;
        if let Some(system) = &settings.system {
            check_ports(system, &settings.network.domain)?;
        }
        let domain = settings.network.domain.value;
        self.other_domains
            .retain(|other| *other != domain && !self.no_other_domains);
        settings.begin()?;
        let (network, host) = (&settings.network, observing(&lane));
        let built = build_with("isolane why", network, &host, None, &lane.peers);
        let participant = match built {
            Ok((participant, _)) => participant,
            Err(error) if error.is_port_taken() => return self.answer_port(domain, &error),
            Err(error) => return Err(super::participant::failure(error)),
        };
        let until = Until::new(Some(self.seconds))?.with_network(&settings.network);
        let others = self.other_participants(&settings, &host, &lane.peers);
        let seconds = self.seconds.as_secs();
        tell(format!(
            "listening for {seconds} s in domain {domain}{}",
            other_domains(&others)
        ));
        let mut watcher = Watcher::new(Some(domain.get()));
        until.run(&participant, || {
            for (_, other) in &others {
                while other.poll() > 0 && !until.over() {}
            }
            // If this fails, ignore lists and refused samples are unknown, and no reason is derived from them.
            let _ = watcher.look();
            false
        });
        if until.interrupted() {
            return Ok(ExitCode::Interrupted);
        }
        let facts = Facts {
            topic: self.topic.clone(),
            here: Heard::of(&participant, domain.get()),
            elsewhere: others
                .iter()
                .map(|(domain, other)| Heard::of(other, *domain))
                .collect(),
            networks: networks(),
            ignoring: ignoring(&watcher, &self.topic),
            refusals: refusals(&watcher),
            described: described(settings.system.as_ref(), &self.topic),
            filters: packet_filters(&|| until.interrupted()),
            full: full_tables(&participant, &lane),
            unreached_peers: unreached_peers(&lane.peers),
        };
        if until.interrupted() {
            return Ok(ExitCode::Interrupted);
        }
        let reasons = judge(&facts);
        self.answer(&facts.here, &facts.elsewhere, &facts.filters, &reasons)
    }

    /// Creates a participant in each other domain to search. Domains that cannot be joined are skipped.
    fn other_participants(
        &self,
        settings: &Settings,
        host: &Host,
        peers: &[Peer],
    ) -> Vec<(u32, Participant)> {
        let made = self.other_domains.iter().map(|domain| {
            let builder = Participant::builder(domain.get()).name("isolane why");
            let mut builder = builder.host_limits(host);
            builder = builder.interfaces(settings.network.interfaces.value.clone());
            for peer in peers {
                // The port of a peer belongs to one domain, so only the address is used.
                builder = builder.peer(peer.address);
            }
            let participant = builder.build();
            participant.map(|participant| (domain.get(), participant))
        });
        made.filter_map(Result::ok).collect()
    }

    /// Prints the answer for a domain that cannot be joined, because a port is in use.
    fn answer_port(&self, domain: Domain, error: &BuildError) -> Result<ExitCode, Failure> {
        let domain = domain.get();
        let reason = Reason::new(
            "port",
            Verdict::No,
            domain,
            format!("no participant of this host can join domain {domain}, because {error}"),
            "end the program that uses the port (ss -ulpn), or use another domain: --domain",
        );
        let here = Heard {
            domain,
            participants: Vec::new(),
            endpoints: Vec::new(),
        };
        let filters = PacketFilters::unreadable(String::from("this command did not listen"));
        self.answer(&here, &[], &filters, &[reason])
    }

    fn answer(
        &self,
        here: &Heard,
        elsewhere: &[Heard],
        filters: &PacketFilters,
        reasons: &[Reason],
    ) -> Result<ExitCode, Failure> {
        let communicates = reasons.iter().all(|reason| reason.verdict != Verdict::No)
            && reasons.iter().any(|reason| reason.verdict == Verdict::Yes);
        let count = |kind| here.of_topic(&self.topic, kind).count();
        let answer = Answer {
            schema: "isolane/why/2",
            topic: &self.topic,
            domain: here.domain,
            communicates,
            participants: here.participants.len(),
            writers: count(EndpointKind::Writer),
            readers: count(EndpointKind::Reader),
            other_domains: elsewhere.iter().map(|heard| heard.domain).collect(),
            firewall: Firewall {
                read_by: filters.read_by.clone(),
                unreadable: filters.unreadable.clone(),
            },
            reasons,
        };
        let printed = print_json_or(&answer, self.json.as_ref(), text)?;
        Ok(match communicates {
            true => printed,
            false => ExitCode::AnswerIsNo,
        })
    }
}

/// All reasons. The reasons that prevent communication come first.
fn judge(facts: &Facts) -> Vec<Reason> {
    let mut reasons = pair::reasons(facts);
    // Endpoints of a described topic are not announced, so an absent announcement is no reason.
    match facts.described.is_empty() {
        true => reasons.extend(absent::reasons(facts)),
        false => reasons.extend(described::reasons(facts)),
    }
    let is_explained = reasons.iter().any(|reason| reason.verdict == Verdict::No);
    reasons.extend(host::reasons(facts, is_explained));
    reasons.sort_by_key(|reason| reason.verdict);
    reasons
}

fn other_domains(others: &[(u32, Participant)]) -> String {
    match others {
        [] => String::new(),
        others => format!(
            ", and in {}",
            joined(others.iter().map(|(domain, _)| domain), ", ")
        ),
    }
}

fn networks() -> Vec<LocalNetwork> {
    let interfaces = isolane_tune::interfaces().unwrap_or_default();
    let of = |interface: isolane_tune::Interface| {
        let name = interface.name;
        let addresses = interface.addresses.into_iter();
        addresses.map(move |(address, prefix_bits)| LocalNetwork {
            interface: name.clone(),
            address: address.octets(),
            prefix_bits,
        })
    };
    interfaces.into_iter().flat_map(of).collect()
}

fn ignoring(watcher: &Watcher, topic: &str) -> Vec<Ignoring> {
    let seen = watcher.sample().participants.into_iter();
    let of = seen.filter_map(|seen| seen.snapshot).map(|snapshot| {
        let readers = snapshot.readers.iter().filter(|it| it.topic == topic);
        let too_large = readers.filter_map(|reader| reader.ledger.get("too_large"));
        Ignoring {
            too_large: too_large.sum(),
            prefix: snapshot.participant.guid_prefix,
            entities: snapshot.participant.ignored,
            topics: snapshot.participant.ignored_topics,
        }
    });
    of.collect()
}

fn refusals(watcher: &Watcher) -> Vec<Refusal> {
    let seen = watcher.sample().participants.into_iter();
    let snapshots = seen.filter_map(|seen| seen.snapshot);
    let of = |snapshot: Snapshot| {
        let prefix = snapshot.participant.guid_prefix;
        let refusing = snapshot.readers.into_iter();
        refusing.filter_map(move |reader| {
            let refused = reader.refused?;
            Some(Refusal {
                reader_prefix: prefix.clone(),
                topic: reader.topic,
                writer: refused.writer,
                total: refused.total,
                delivered: reader.ledger.get("delivered").copied().unwrap_or(0),
                encapsulation: refused.encapsulation.map(EncapsulationId),
            })
        })
    };
    snapshots.flat_map(of).collect()
}

/// Participants of the description that write or read the topic.
fn described(system: Option<&System>, topic: &String) -> Vec<DescribedHere> {
    let Some(system) = system else {
        return Vec::new();
    };
    let of = |participant: &isolane_model::Participant| {
        let has = |topics: &[String]| topics.contains(topic);
        let writes = has(&participant.writes.value).then_some(EndpointKind::Writer);
        let reads = has(&participant.reads.value).then_some(EndpointKind::Reader);
        let kinds: Vec<EndpointKind> = writes.into_iter().chain(reads).collect();
        let known = StaticDescription::from_description(system, participant);
        Some(DescribedHere {
            name: participant.name.value.clone(),
            said_in: participant.name.source.to_string(),
            address: participant.address.value.octets(),
            is_announced: participant.announces.value != isolane_model::Announces::Nothing,
            prefix: known.prefix(),
            // A participant with an invalid description reports the error itself.
            digest: known.digest().ok()?,
            kinds,
        })
        .filter(|described| !described.kinds.is_empty())
    };
    system.participants().iter().filter_map(of).collect()
}

fn text(answer: &Answer<'_>) -> String {
    let mut text = String::new();
    for reason in answer.reasons.iter().take(SHOWN_REASONS) {
        let word = match reason.verdict {
            Verdict::No => "no",
            Verdict::Perhaps => "perhaps",
            Verdict::Yes => "yes",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{word}: {}", reason.sentence);
        let _ = writeln!(text, "  to do: {}", reason.remedy);
    }
    let left_out = answer.reasons.len().saturating_sub(SHOWN_REASONS);
    if left_out > 0 {
        let pairs = count_of(left_out as u64, "reason");
        let _ = writeln!(text, "and {pairs} more: --json - has all");
    }
    text
}
