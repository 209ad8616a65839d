//! `isolane ls`: lists the discovered participants with their writers and readers.
//!
//! The command first asks the observable participants on this host, which already know the others. Without such a
//! participant, or with an option that says how to listen, the command creates a participant and listens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use isolane::{EndpointKind, RemoteEndpoint};
use isolane_model::Source;
use isolane_wire::builtin_data::ParticipantData;
use isolane_wire::qos::QosPolicies;
use serde::Serialize;

use super::discovered::{Answered, KnownHere, ask};
use super::ledger_text;
use super::participant::{Until, build, full_tables, unreached_peers};
use super::spy::names;
use super::why::FullTables;
use crate::arguments::LaneArguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{joined, print, print_json, tell};
use crate::settings::{LaneSettings, Settings};
use crate::values::{Destination, seconds};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
    /// Listen on the network for this many seconds [default: ask programs on this host, else 3]
    ///
    /// By default, the observable programs on this host answer at once, if one has run for 3 s. Observable programs are
    /// `isolane pub` and `sub`, and programs built with Builder::observable(true), of the same user or, for root, of
    /// all users. With this option, or with --interface, --peer, --datapath, --max-participants or --host, the command
    /// listens on the network instead. The exit code is 0 even if no announcement arrives.
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Write the list as JSON to this file, instead of text; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

/// Time for which the command listens by default, and for which one of the participants that answer must have discovered
/// others. Most participants announce themselves at least that often.
const LISTEN: Duration = Duration::from_secs(3);

/// Maximum number of processes that the text names as the source of the list.
const NAMED_PROCESSES: usize = 4;

impl List {
    /// Prints what running participants know; without any, or if an option says how to listen, listens first.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let asks_network = self.asks_network(&settings);
        let lane = settings.lane(self.lane.clone())?;
        settings.begin()?;
        let domain = settings.network.domain.value.get();
        match (!asks_network).then(|| ask(domain, LISTEN)).flatten() {
            Some(known) => self.list_known(&known),
            None => self.listen(&settings, &lane),
        }
    }

    /// Returns whether an option says how to listen.
    fn asks_network(&self, settings: &Settings) -> bool {
        let lane = &self.lane;
        self.seconds.is_some()
            || settings.network.interfaces.source != Source::Default
            || !lane.peer.is_empty()
            || lane.datapath.is_some()
            || lane.max_participants.is_some()
            || lane.host.is_some()
    }

    /// Prints what participants of this host know.
    fn list_known(&self, known: &KnownHere) -> Result<ExitCode, Failure> {
        let seconds = LISTEN.as_secs();
        let from = source(&known.answered);
        tell(format!(
            "from {from}; --seconds {seconds} listens on the network instead"
        ));
        let full = known.answered.iter().filter_map(|answered| {
            let (name, refused) = (&answered.name, answered.refused.as_ref()?);
            Some(format!("{name:?} had no room for {refused}"))
        });
        let full = joined(full, "; ");
        let refused = (!full.is_empty()).then_some(full);
        let mut listing = Listing::of(&known.participants, &known.endpoints);
        (listing.source, listing.refused) = ("participants", refused);
        listing.asked = &known.answered;
        let printed = self.print(&listing);
        if let Some(refused) = &listing.refused {
            tell(format!(
                "the list is incomplete, because the tables of participants were full: {refused}. To do: listen on the \
                 network with --seconds {seconds}, or raise the limit of that program"
            ));
        }
        let omitted: u64 = known.answered.iter().map(|answered| answered.omitted).sum();
        if omitted > 0 {
            tell(format!(
                "the list is incomplete: the announcements of {omitted} entities are too long to list. To do: listen on \
                 the network with --seconds {seconds}"
            ));
        }
        printed
    }

    /// Listens for the configured time, then prints the list.
    fn listen(&self, settings: &Settings, lane: &LaneSettings) -> Result<ExitCode, Failure> {
        let network = &settings.network;
        let seconds = self.seconds.unwrap_or(LISTEN);
        let until = Until::new(Some(seconds))?.with_network(network);
        let (participant, _) = build("isolane ls", network, lane)?;
        tell(format!(
            "listening for {} s in domain {}",
            seconds.as_secs(),
            network.domain.value
        ));
        until.run(&participant, || false);
        if network.verbosity > 1 {
            ledger_text::tell_all(&participant);
        }
        let full = full_tables(&participant, lane);
        let participants: Vec<ParticipantData> = participant
            .participants()
            .into_iter()
            .map(|participant| participant.data)
            .collect();
        let mut listing = Listing::of(&participants, &participant.endpoints());
        listing.refused = full.as_ref().map(|full| full.refused.clone());
        listing.unreached_peers = unreached_peers(&lane.peers);
        let printed = self.print(&listing);
        if let Some(FullTables { refused, remedy }) = &full {
            tell(format!(
                "the list is incomplete, because the tables of this command had no room for {refused}. To do: {remedy}"
            ));
        }
        if let Some(unreached_peers) = &listing.unreached_peers {
            tell(format!("note: {unreached_peers}"));
        }
        if until.interrupted() {
            // After a signal, the exit code reports the signal, even if the list could not be written.
            return Ok(ExitCode::Interrupted);
        }
        if listing.participants.is_empty() {
            tell(
                "to do: check the domain (--domain N); if multicast does not get through, name peers (--peer \
                 ADDRESS); `isolane spy --kind spdp` shows the announcements of all domains",
            );
        }
        printed
    }

    fn print(&self, listing: &Listing<'_>) -> Result<ExitCode, Failure> {
        match &self.json {
            Some(destination) => print_json(listing, destination),
            None => print(&listing.text()),
        }
    }
}

/// Text of the participants that answered.
fn source(answered: &[Answered]) -> String {
    let processes = answered.iter().map(|answered| answered.pid);
    match answered {
        [one] => format!("{:?}, which runs here (process {})", one.name, one.pid),
        few if few.len() <= NAMED_PROCESSES => format!(
            "{} participants that run here (processes {})",
            few.len(),
            joined(processes, ", ")
        ),
        many => format!("{} participants that run here", many.len()),
    }
}

/// Discovered participants, in the JSON form of the list (`--json`).
#[derive(Debug, Serialize)]
struct Listing<'a> {
    schema: &'static str,
    /// Source of the list: "network", or "participants" that run on this host.
    source: &'static str,
    /// Participants of this host that gave the list; empty if the source is the network.
    asked: &'a [Answered],
    /// Counts of discovery data that full tables refused; `None` if none was refused.
    refused: Option<String>,
    /// Sentence on the participants that `--peer` without a port does not reach; `None` if there is no such `--peer`.
    unreached_peers: Option<String>,
    participants: Vec<ListedParticipant>,
}

#[derive(Debug, Serialize)]
struct ListedParticipant {
    guid_prefix: String,
    name: String,
    vendor: String,
    vendor_name: String,
    rtps_version: String,
    lease_s: f64,
    addresses: Vec<String>,
    endpoints: Vec<ListedEndpoint>,
}

#[derive(Debug, Serialize)]
struct ListedEndpoint {
    kind: &'static str,
    topic: String,
    r#type: String,
    reliable: bool,
    transient_local: bool,
    level: u8,
    /// Values of all policies that discovery announces, by name.
    qos: BTreeMap<&'static str, String>,
    /// Policies besides RELIABILITY, DURABILITY and the level that differ from the default, as text.
    #[serde(skip)]
    unusual: String,
    addresses: Vec<String>,
}

impl Listing<'_> {
    /// Creates a list from the network.
    fn of(participants: &[ParticipantData], endpoints: &[RemoteEndpoint]) -> Self {
        let participants = participants.iter();
        let mut participants: Vec<_> = participants
            .map(|data| ListedParticipant::of(data, endpoints))
            .collect();
        participants.sort_by(|a, b| a.guid_prefix.cmp(&b.guid_prefix));
        Self {
            schema: "isolane/ls/2",
            source: "network",
            asked: &[],
            refused: None,
            unreached_peers: None,
            participants,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for participant in &self.participants {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{} {:?}, {}, RTPS {}, at {}",
                participant.guid_prefix,
                participant.name,
                participant.vendor_name,
                participant.rtps_version,
                participant.addresses.join(" ")
            );
            for endpoint in &participant.endpoints {
                let _ = writeln!(
                    text,
                    "  {} {:?} of {:?}: {}, {}, level {}{}, at {}",
                    endpoint.kind,
                    endpoint.topic,
                    endpoint.r#type,
                    if endpoint.reliable {
                        "reliable"
                    } else {
                        "best effort"
                    },
                    if endpoint.transient_local {
                        "transient local"
                    } else {
                        "volatile"
                    },
                    endpoint.level,
                    endpoint.unusual,
                    match endpoint.addresses.as_slice() {
                        // Without locators, those of the participant apply (RTPS 2.5 §8.5.4.4).
                        [] => "the default addresses of its participant".to_owned(),
                        addresses => addresses.join(" "),
                    }
                );
            }
        }
        if self.participants.is_empty() {
            text.push_str("no participant announced itself\n");
        }
        text
    }
}

impl ListedParticipant {
    fn of(data: &ParticipantData, endpoints: &[RemoteEndpoint]) -> Self {
        let mut own: Vec<_> = endpoints
            .iter()
            .filter(|endpoint| endpoint.data.guid.prefix == data.guid.prefix)
            .map(ListedEndpoint::of)
            .collect();
        own.sort_by(|a, b| (&a.topic, a.kind).cmp(&(&b.topic, b.kind)));
        Self {
            guid_prefix: data.guid.prefix.to_string(),
            name: data.entity_name.as_str().into(),
            vendor: format!("{:02x}.{:02x}", data.vendor[0], data.vendor[1]),
            vendor_name: names::vendor(data.vendor),
            rtps_version: format!("{}.{}", data.version[0], data.version[1]),
            lease_s: data.lease.as_secs_f64(),
            addresses: data
                .metatraffic_unicast
                .iter()
                .map(ToString::to_string)
                .collect(),
            endpoints: own,
        }
    }
}

impl ListedEndpoint {
    fn of(endpoint: &RemoteEndpoint) -> Self {
        let data = &endpoint.data;
        Self {
            kind: match endpoint.kind {
                EndpointKind::Writer => "writer",
                EndpointKind::Reader => "reader",
            },
            topic: data.topic_name.as_str().into(),
            r#type: data.type_name.as_str().into(),
            reliable: data.qos.reliability.kind == isolane::ReliabilityKind::Reliable,
            transient_local: data.qos.durability >= isolane::DurabilityKind::TransientLocal,
            level: isolane::Level::clamp(data.qos.transport_priority).get(),
            qos: names::described(&data.qos).into_iter().collect(),
            unusual: unusual(&data.qos, endpoint.kind),
            addresses: data
                .unicast
                .iter()
                .chain(&data.multicast)
                .map(ToString::to_string)
                .collect(),
        }
    }
}

/// Policies that differ from the default as text, each after a comma. Those that the list always shows are left out.
fn unusual(qos: &QosPolicies, kind: EndpointKind) -> String {
    const SHOWN: [&str; 3] = ["RELIABILITY", "DURABILITY", "TRANSPORT_PRIORITY"];
    let defaults = match kind {
        EndpointKind::Writer => QosPolicies::writer_default(),
        EndpointKind::Reader => QosPolicies::reader_default(),
    };
    let policies = names::policies(qos, &defaults).into_iter();
    policies
        .filter(|(name, _)| !SHOWN.contains(name))
        .map(|(name, value)| format!(", {name} {value}"))
        .collect()
}
