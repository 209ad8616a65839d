//! Options of `tune answer`, `tune ports` and `tune learn`.

use std::net::Ipv4Addr;

use clap::Args;
use isolane_wire::level::Level;

use super::TuneStateArguments;
use crate::arguments::value::{level, seconds};
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    /// Set the level whose priority and DSCP answers have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Answer at these ports, separated by commas [default: those of the host's described participants, else 16 that a
    /// participant may have, its level's]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// Answer at the ports used by `tune learn` instead
    #[arg(long, conflicts_with = "ports")]
    pub(crate) learn: bool,
    /// Answer for this many seconds [default: 60]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct PortsArguments {
    /// IPv4 address of the answering host
    #[arg(value_name = "ADDRESS")]
    pub(crate) peer: Ipv4Addr,
    /// Set the level whose priority and DSCP questions have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    /// Use these ports of this host, separated by commas [default: as `tune answer`]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) ports: Vec<u16>,
    /// Use these ports of the other host [default: as `tune answer`]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) peer_ports: Vec<u16>,
    /// Require that answers arrive on this receive queue of this host
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
    /// Require that questions arrive on this receive queue of the other host
    #[arg(long, value_name = "N")]
    pub(crate) peer_queue: Option<u32>,
    /// Try each pair of ports this many times [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) times: Option<u32>,
    /// Write the receive queues of each pair as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}

#[derive(Debug, Args)]
pub(crate) struct LearnArguments {
    /// IPv4 address of the answering host
    #[arg(value_name = "ADDRESS")]
    pub(crate) peer: Ipv4Addr,
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Set the level whose priority and DSCP questions have
    #[arg(long, value_name = "0..7", value_parser = level)]
    pub(crate) level: Option<Level>,
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Write the table entry of each described flow as JSON, for `tune plan --placement`; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
