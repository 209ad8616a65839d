//! Options of `pub` and `sub`, the commands with an endpoint, and of the datapath.

use clap::Args;
use isolane_model::limits::{MAX_KNOWN_PARTICIPANTS, MAX_SAMPLE_BYTES};
use isolane_model::{Durability, History};
use isolane_wire::level::Level;

use super::value::{count, duration, level, seconds, word};
use crate::datapaths::{DatapathArgument, DatapathParser};
use crate::values::{Destination, Peer, ReceiveBudget, Representation, SampleType};

#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArguments,
    /// Retransmit lost samples to readers that request them [default]
    #[arg(long, conflicts_with = "best_effort")]
    pub(crate) reliable: bool,
    /// Send each sample once; reliable readers do not match
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Keep this many samples of an instance, or `all` [default: the description's, else 1]
    #[arg(long, value_name = "N|all")]
    pub(crate) history: Option<History>,
    /// Set the colour of the shape, the key of its instance [default: BLUE]
    #[arg(long, value_name = "COLOR")]
    pub(crate) color: Option<String>,
    /// Set the size of the shape [default: 20]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(i32).range(0..),
        allow_negative_numbers = true
    )]
    pub(crate) size: Option<i32>,
    /// Set the time between two samples [default: the description's, else 33ms]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) period: Option<std::time::Duration>,
    /// Stop after this many samples
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Dispose the instance before leaving
    #[arg(long, conflicts_with = "unregister_at_end")]
    pub(crate) dispose_at_end: bool,
    /// Unregister the instance before leaving
    #[arg(long)]
    pub(crate) unregister_at_end: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SubscribeArguments {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArguments,
    /// Request lost samples again; best-effort writers do not match [default with transient-local]
    #[arg(long, conflicts_with = "best_effort")]
    pub(crate) reliable: bool,
    /// Accept losses; lost samples are counted [default]
    #[arg(long)]
    pub(crate) best_effort: bool,
    /// Hold this many samples of an instance until they are printed, or `all` [default: the description's, else 64]
    #[arg(long, value_name = "N|all")]
    pub(crate) history: Option<History>,
    /// Limit the datagrams of the topic per period, and drop or demote the others: N/PERIOD, N/PERIOD/drop or
    /// N/PERIOD/demote; with --datapath xdp [default: the description's, else all]
    #[arg(long, value_name = "N/PERIOD")]
    pub(crate) budget: Option<ReceiveBudget>,
    /// Stop after this many samples, and count later ones. Fewer within `--seconds` are exit code 1; without a count,
    /// no sample at all is no failure
    #[arg(long, value_name = "N", value_parser = count())]
    pub(crate) count: Option<u64>,
    /// Write samples also as JSON, a line each; `-` is standard output, without text then
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

/// Options of a writer or a reader.
#[derive(Debug, Args)]
pub(crate) struct EndpointArguments {
    /// Name of the topic
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: String,
    /// Set the type of the topic [default: shape, which is ShapeType]
    #[arg(
        long = "type",
        value_name = "TYPE",
        value_parser = word::<SampleType>(),
        hide_possible_values = true
    )]
    pub(crate) sample_type: Option<SampleType>,
    /// Set the durability: volatile, or transient-local, which sends the history to late joiners [default: the
    /// description's, else volatile]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Durability>(),
        hide_possible_values = true
    )]
    pub(crate) durability: Option<Durability>,
    /// Set the criticality level, 0 to 7 (most critical) [default: the description's, else 0]
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Set the maximum sample size in bytes, without the encapsulation header [default: the description's, else 65532]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SAMPLE_BYTES)))]
    pub(crate) max_bytes: Option<u32>,
    /// Discover participants at this IPv4 address by unicast: the first 10 participant ports of the domain, or one with
    /// address:port; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Set the data representation of a writer: xcdr1, which programs with any ShapeType accept, or xcdr2, for those
    /// that declare it appendable [default: xcdr1]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Representation>(),
        hide_possible_values = true
    )]
    pub(crate) representation: Option<Representation>,
    /// Stop after this many seconds
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Run as this participant of the description, which matches the described peers without discovery
    #[arg(long, value_name = "NAME")]
    pub(crate) participant: Option<String>,
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
}

/// Options of the datapath.
#[derive(Debug, Args)]
pub(crate) struct LaneArguments {
    /// Choose the datapath, and set its options: `auto` (the first that works here), or NAME:KEY=VALUE,... as in
    /// `xdp:queue=1,mode=copy`; `isolane datapaths` lists all [default: the described host's, else udp]
    #[arg(long, value_name = "NAME", value_parser = DatapathParser, hide_possible_values = true)]
    pub(crate) datapath: Option<DatapathArgument>,
    /// Limit the table of remote participants, 1 to 2000; ten endpoints each [default: the described host's, else 1000;
    /// `ls`, `why`: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_KNOWN_PARTICIPANTS)))]
    pub(crate) max_participants: Option<u32>,
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}
