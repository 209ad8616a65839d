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
    /// Host of the description that this machine is, whose core is looked at [default: by the machine's name, or the
    /// only one]
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    pub(crate) host: Option<String>,
    /// Cores to measure wake-ups on, separated by commas [default: the described host's]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) core: Vec<u16>,
    /// Seconds to measure wake-ups for, on each core [default: 10]
    #[arg(long, value_name = "N", value_parser = seconds())]
    pub(crate) seconds: Option<u32>,
    /// The SCHED_FIFO priority of what wakes up: that of the applications [default: 70]
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// The latest wake-up that is allowed, as `100us`; a later one is an answer of no [default: any]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) at_most: Option<Duration>,
    /// Send datagrams of each level to this neighbour, and count by which transmit queue they leave; and ask it
    /// (`tune answer` runs there) by which receive queues the described flows with it land, both ways. Needs
    /// --interface, or a described host's
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) peer: Option<Ipv4Addr>,
    /// Then go on, until Ctrl-C: each second, tell which settings others have changed
    #[arg(long)]
    pub(crate) watch: bool,
    /// Write what was found as JSON; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) json: Option<Destination>,
}
