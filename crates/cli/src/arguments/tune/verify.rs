//! Options of `tune verify`.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Args;

use super::TuneStateArguments;
use crate::arguments::value::{duration, seconds};
use crate::values::Destination;

#[derive(Debug, Args)]
pub(crate) struct TuneVerifyArguments {
    #[command(flatten)]
    pub(crate) state: TuneStateArguments,
    /// Name this machine's host entry in the description, whose core is measured [default: by the machine's name, or
    /// the only one]
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    pub(crate) host: Option<String>,
    /// Measure wake-ups on these cores, separated by commas [default: the described host's]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) core: Vec<u16>,
    /// Measure wake-ups for this many seconds on each core [default: 10]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// Set the SCHED_FIFO priority of the measuring thread, as that of the applications [default: 70]
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// Fail if a wake-up is later than this, as `100us` [default: report only]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) at_most: Option<Duration>,
    /// Send datagrams of each level to this neighbour and count the transmit queues they use. Ask it (with `tune
    /// answer` running there) for the receive queues of the described flows, in both directions. Needs --interface, or
    /// a described host's
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Option<Ipv4Addr>,
    /// Continue until Ctrl-C, and report each second the settings that others have changed
    #[arg(long)]
    pub(crate) watch: bool,
    /// Write the results as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) json: Option<Destination>,
}
