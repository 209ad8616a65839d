//! Facts from which `isolane why` derives its reasons, and the type of a reason.

use isolane::{EndpointKind, Participant, RemoteEndpoint as Endpoint, RemoteParticipant};
use isolane_tune::PacketFilters;
use isolane_wire::builtin_data::LocatorList;
use isolane_wire::cdr::EncapsulationId;
use isolane_wire::guid::GuidPrefix;
use serde::Serialize;

use super::described::DescribedHere;
use crate::commands::spy::names;

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) topic: String,
    /// Discovery data of the requested domain.
    pub(crate) here: Heard,
    /// Discovery data of other domains.
    pub(crate) elsewhere: Vec<Heard>,
    pub(crate) networks: Vec<LocalNetwork>,
    /// Ignore lists of observable participants on this host.
    pub(crate) ignoring: Vec<Ignoring>,
    /// Samples that readers of observable participants on this host refused because they are not of their type.
    pub(crate) refusals: Vec<Refusal>,
    /// Described participants that write or read the topic.
    pub(crate) described: Vec<DescribedHere>,
    pub(crate) filters: PacketFilters,
    pub(crate) full: Option<FullTables>,
    /// Sentence on the participants that `--peer` without a port does not reach; `None` if there is no such `--peer`.
    pub(crate) unreached_peers: Option<String>,
}

/// Discovery data that this command's full tables refused, and the remedy.
#[derive(Debug)]
pub(crate) struct FullTables {
    /// Counts of refused discovery data, as text.
    pub(crate) refused: String,
    pub(crate) remedy: &'static str,
}

/// Discovery data received in one domain.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) domain: u32,
    pub(crate) participants: Vec<Who>,
    pub(crate) endpoints: Vec<Endpoint>,
}

/// Discovered participant.
#[derive(Debug)]
pub(crate) struct Who {
    pub(crate) prefix: GuidPrefix,
    pub(crate) name: String,
    pub(crate) vendor: String,
    /// IPv4 addresses of its default unicast locators.
    pub(crate) addresses: Vec<[u8; 4]>,
    /// True if one of its announced addresses is validated: the participant has answered this command from there.
    pub(crate) is_validated: bool,
    /// Digest in its announcement of the endpoints that its description gives it; `None` without a description.
    pub(crate) digest: Option<u64>,
}

/// Address of this host, with the prefix length of its network in bits.
#[derive(Debug)]
pub(crate) struct LocalNetwork {
    pub(crate) interface: String,
    pub(crate) address: [u8; 4],
    pub(crate) prefix_bits: u8,
}

/// Ignore lists of a participant on this host, and the number of samples that were too large for its readers.
#[derive(Debug)]
pub(crate) struct Ignoring {
    /// GUID prefix as text.
    pub(crate) prefix: String,
    /// Ignored GUIDs as text.
    pub(crate) entities: Vec<String>,
    pub(crate) topics: Vec<String>,
    /// Number of samples of the topic that were larger than its readers accept.
    pub(crate) too_large: u64,
}

/// Samples that a reader on this host refused, because they are not of its type.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// GUID prefix of the reader's participant as text.
    pub(crate) reader_prefix: String,
    pub(crate) topic: String,
    /// GUID of the writer as text.
    pub(crate) writer: String,
    pub(crate) total: u64,
    /// Number of samples of all writers that the reader has delivered.
    pub(crate) delivered: u64,
    /// Encapsulation that the type cannot have; `None` if only the payload is not of the type.
    pub(crate) encapsulation: Option<EncapsulationId>,
}

impl Heard {
    pub(crate) fn of(participant: &Participant, domain: u32) -> Self {
        Self {
            domain,
            participants: participant.participants().iter().map(Who::of).collect(),
            endpoints: participant.endpoints(),
        }
    }

    /// Endpoints of this topic and this kind.
    pub(crate) fn of_topic<'a>(
        &'a self,
        topic: &'a str,
        kind: EndpointKind,
    ) -> impl Iterator<Item = &'a Endpoint> {
        let all = self.endpoints.iter();
        all.filter(move |it| it.kind == kind && it.data.topic_name == topic)
    }

    /// Vendor of an endpoint's participant; `None` if the participant was not discovered.
    pub(crate) fn vendor(&self, endpoint: &Endpoint) -> Option<&str> {
        self.who(endpoint).map(|who| who.vendor.as_str())
    }

    pub(crate) fn who(&self, endpoint: &Endpoint) -> Option<&Who> {
        let prefix = endpoint.data.guid.prefix;
        self.participants.iter().find(|who| who.prefix == prefix)
    }

    /// Text that names an endpoint, its participant and its addresses.
    pub(crate) fn said(&self, endpoint: &Endpoint) -> String {
        let kind = kind_of(endpoint.kind);
        let guid = endpoint.data.guid;
        let Some(who) = self.who(endpoint) else {
            return format!("{kind} {guid}");
        };
        let addresses: Vec<String> = self
            .addresses(endpoint)
            .iter()
            .map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}"))
            .collect();
        let name = match who.name.as_str() {
            "" => who.vendor.clone(),
            name => format!("\"{}\" ({})", name.escape_debug(), who.vendor),
        };
        match addresses.join(" ") {
            at if at.is_empty() => format!("{kind} {guid} of {name}"),
            at => format!("{kind} {guid} of {name} at {at}"),
        }
    }

    /// IPv4 addresses of an endpoint's unicast locators, else those of its participant.
    pub(crate) fn addresses(&self, endpoint: &Endpoint) -> Vec<[u8; 4]> {
        let own = addresses(&endpoint.data.unicast);
        match own.is_empty() {
            false => own,
            true => self
                .who(endpoint)
                .map_or_else(Vec::new, |who| who.addresses.clone()),
        }
    }
}

impl Who {
    fn of(participant: &RemoteParticipant) -> Self {
        let data = &participant.data;
        Self {
            prefix: data.guid.prefix,
            name: data.entity_name.as_str().into(),
            vendor: names::vendor(data.vendor),
            addresses: addresses(&data.default_unicast),
            is_validated: participant.is_proven(),
            digest: data.static_digest,
        }
    }
}

impl LocalNetwork {
    pub(crate) fn contains(&self, address: [u8; 4]) -> bool {
        let differing = u32::from_be_bytes(self.address) ^ u32::from_be_bytes(address);
        differing.leading_zeros() >= u32::from(self.prefix_bits.min(32))
    }
}

pub(crate) fn kind_of(kind: EndpointKind) -> &'static str {
    match kind {
        EndpointKind::Writer => "writer",
        EndpointKind::Reader => "reader",
    }
}

/// IPv4 addresses of locators, without duplicates.
fn addresses(locators: &LocatorList) -> Vec<[u8; 4]> {
    let mut all: Vec<[u8; 4]> = Vec::new();
    for address in locators.iter().filter_map(|locator| locator.ipv4()) {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

/// Answer to the question whether endpoints communicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The endpoints do not communicate, for this reason.
    No,
    /// There may be an obstacle, or `why` cannot find out.
    Perhaps,
    /// Nothing prevents communication.
    Yes,
}

/// Reason why endpoints do not communicate, or confirmation that they do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Reason {
    /// Kind of the reason, as the documentation of `--json` lists it.
    pub(crate) id: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) sentence: String,
    pub(crate) remedy: String,
    pub(crate) domain: u32,
    /// GUID of the writer, if the reason is about a pair of a writer and a reader.
    pub(crate) writer: Option<String>,
    pub(crate) reader: Option<String>,
    /// Differences between writer and reader, with both values.
    pub(crate) differences: Vec<Disagreement>,
}

/// Difference between two endpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Disagreement {
    /// Name of the QoS policy in DDS, or `type name`, or `key`.
    pub(crate) name: String,
    pub(crate) offered: String,
    pub(crate) requested: String,
}

impl Reason {
    /// Creates a reason that is not about a pair.
    pub(crate) fn new(
        id: &'static str,
        verdict: Verdict,
        domain: u32,
        sentence: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            id,
            verdict,
            sentence: sentence.into(),
            remedy: remedy.into(),
            domain,
            writer: None,
            reader: None,
            differences: Vec::new(),
        }
    }
}
