//! Options of the observing commands: `ls` and `spy` (the network), `top` (processes of this host), `doctor` (this
//! machine).

use std::path::PathBuf;

use clap::Args;
use isolane_wire::level::Level;

use super::LaneArguments;
use super::value::{count, level, seconds, word};
use crate::spy::filter::EntityPattern;
use crate::spy::message::Kind;
use crate::values::{Destination, Peer};

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
    /// Listen for announcements for this many seconds; hearing none is no failure [default: 3]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Discover participants at this IPv4 address by unicast: the first 10 participant ports of the domain, or one with
    /// address:port; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Write the list as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct SpyArguments {
    /// A capture, pcap or pcapng; `-` is standard input [default: listen on the interfaces of this
    /// host, all of them or those of --interface; takes the right CAP_NET_RAW]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show only this topic; may be repeated. Live, spy joins the domain (--domain, else 0) and asks participants for topics
    /// announced earlier. In a capture, samples of unannounced writers are shown too
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Vec<String>,
    /// Show only what is from or for this participant (24 hexadecimal digits), entity (8), or both with a colon between
    /// them; may be repeated
    #[arg(long, visible_alias = "guid", value_name = "GUID")]
    pub(crate) writer: Vec<EntityPattern>,
    /// Show only datagrams of these levels, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = level)]
    pub(crate) level: Vec<Level>,
    /// Show only these submessages, separated by commas: data, data-frag, heartbeat, heartbeat-frag, acknack, nack-frag,
    /// gap, spdp, sedp, liveliness, header-extension, info, pad, unknown, malformed. The text has info and pad only where
    /// they are named
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = word::<Kind>(),
        hide_possible_values = true
    )]
    pub(crate) kind: Vec<Kind>,
    /// Stop after showing this number of datagrams
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Stop listening after this number of seconds
    #[arg(long, alias = "duration", value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write JSON too, a line a datagram and one for the summary; `-` is standard output, for
    /// nothing else then
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
    /// Write the frames of the datagrams shown to this file too, as pcapng, for Wireshark. IP fragments of all datagrams are
    /// written
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TopArguments {
    /// Show one sample and exit
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) once: bool,
    /// Stop after this many seconds
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Write also JSON, a line per sample; the last one has rates. `-` is standard output, without text then
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Examine facts recorded with --facts, possibly on another machine
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Show also findings without a problem
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the facts of this machine as JSON, for --from, instead of findings
    #[arg(long, conflicts_with_all = ["host", "all"])]
    pub(crate) facts: bool,
    /// Write the findings as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
