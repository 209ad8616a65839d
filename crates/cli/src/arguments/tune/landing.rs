//! Options of `tune answer`, `tune ports` and `tune learn`.

use std::net::Ipv4Addr;

use clap::Args;
use isolane_wire::level::Level;

use super::TuneStateArguments;
use crate::arguments::value::{level, seconds};
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// The level whose priority and DSCP answers have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Which host of the description this machine is [default: the one with this machine's name,
    /// else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Ports to answer at, separated by commas [default: those of the host's described participants, else
    /// 16 that a participant may have, its level's]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// Answer at the ports that `tune learn` asks at, instead
    #[arg(long, conflicts_with = "ports")]
    pub(crate) learn: bool,
    /// Seconds to answer for [default: 60]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct PortsArguments {
    /// The host that answers: its IPv4 address
    #[arg(value_name = "ADDRESS")]
    pub(crate) peer: Ipv4Addr,
    /// The level whose priority and DSCP questions have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// This host's ports, separated by commas [default: as `tune answer`]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// The other host's ports [default: as `tune answer`]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) peer_ports: Vec<u16>,
    /// The receive queue of this host that answers must land on
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
    /// The receive queue of the other host that questions must land on
    #[arg(long, value_name = "N")]
    pub(crate) peer_queue: Option<u32>,
    /// How often each pair of ports is tried [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) times: Option<u32>,
    /// Write where each pair landed as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct LearnArguments {
    /// The host that answers: its IPv4 address
    #[arg(value_name = "ADDRESS")]
    pub(crate) peer: Ipv4Addr,
    /// Which host of the description this machine is [default: the one with this machine's name,
    /// else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// The level whose priority and DSCP questions have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Write which entry each described flow picks as JSON, for `tune plan --placement`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
