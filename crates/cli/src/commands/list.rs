//! `isolane ls`: lists the discovered participants with their writers and readers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use isolane::{EndpointKind, Participant, RemoteEndpoint, RemoteParticipant};
use isolane_wire::qos::QosPolicies;
use serde::Serialize;

use super::ledger_text;
use super::participant::{Until, build, full_tables, unreached_peers};
use super::spy::names;
use super::why::FullTables;
use crate::arguments::LaneArguments;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json, tell};
use crate::settings::Settings;
use crate::values::{Destination, seconds};

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
    /// Listen for announcements for this many seconds; exit code 0 even if none arrives
    #[arg(long, value_name = "N", value_parser = seconds(), default_value = "3")]
    seconds: Duration,
    /// Write the list as JSON to this file, instead of text; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

impl List {
    /// Listens for the configured time, then prints the list.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        let lane = settings.lane(self.lane)?;
        settings.begin()?;
        let network = &settings.network;
        let until = Until::new(Some(self.seconds))?.with_network(network);
        let (participant, _) = build("isolane ls", network, &lane)?;
        let seconds = self.seconds.as_secs();
        tell(format!(
            "listening for {seconds} s in domain {}",
            network.domain.value
        ));
        until.run(&participant, || false);
        if network.verbosity > 1 {
            ledger_text::tell_all(&participant);
        }
        let full = full_tables(&participant, &lane);
        let refused = full.as_ref().map(|full| full.refused.clone());
        let listing = Listing::of(&participant, refused, unreached_peers(&lane.peers));
        let printed = match &self.json {
            Some(destination) => print_json(&listing, destination),
            None => print(&listing.text()),
        };
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
}

/// Discovered participants, in the JSON form of the list (`--json`).
#[derive(Debug, Serialize)]
struct Listing {
    schema: &'static str,
    /// Counts of discovery data that this command's full tables refused; `None` if none was refused.
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

impl Listing {
    fn of(
        participant: &Participant,
        refused: Option<String>,
        unreached_peers: Option<String>,
    ) -> Self {
        let endpoints = participant.endpoints();
        let mut participants: Vec<_> = participant
            .participants()
            .iter()
            .map(|participant| ListedParticipant::of(participant, &endpoints))
            .collect();
        participants.sort_by(|a, b| a.guid_prefix.cmp(&b.guid_prefix));
        Self {
            schema: "isolane/ls/2",
            refused,
            unreached_peers,
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
                    endpoint.addresses.join(" ")
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
    fn of(participant: &RemoteParticipant, endpoints: &[RemoteEndpoint]) -> Self {
        let data = &participant.data;
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
