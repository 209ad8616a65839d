//! Options of `why`.

use clap::Args;
use isolane_model::Domain;

use super::LaneArguments;
use super::value::seconds;
use crate::values::{Destination, Peer};

#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// Topic whose endpoints do not communicate
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: String,
    #[command(flatten)]
    pub(crate) lane: LaneArguments,
    /// Listen for announcements for this many seconds [default: 3]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Discover participants at this IPv4 address by unicast: the first 10 participant ports of the domain, or one with
    /// address:port; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Vec<Peer>,
    /// Search these other domains for the topic, separated by commas [default: 0 to 4]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "no_other_domains"
    )]
    pub(crate) other_domains: Vec<Domain>,
    /// Search no other domain
    #[arg(long)]
    pub(crate) no_other_domains: bool,
    /// Write the reasons as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<Destination>,
}
