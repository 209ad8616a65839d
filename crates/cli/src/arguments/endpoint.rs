//! Options of the datapath, common to the commands with a participant.

use clap::Args;
use isolane_model::Datapath;
use isolane_model::limits::{MAX_KNOWN_PARTICIPANTS, MAX_QUEUE};

use crate::values::word;

/// Options of the datapath.
#[derive(Clone, Debug, Args)]
pub(crate) struct LaneArguments {
    /// Set the datapath: udp (kernel sockets), xdp (AF_XDP lanes; needs capabilities), auto (xdp where it works)
    /// [default: the described host's, else udp]
    #[arg(
        long,
        value_name = "WORD",
        value_parser = word::<Datapath>(),
        hide_possible_values = true
    )]
    pub(crate) datapath: Option<Datapath>,
    /// Set the device queue of xdp lanes [default: the described host's, else 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_QUEUE)))]
    pub(crate) queue: Option<u32>,
    /// Limit the table of remote participants, 1 to 2000; ten endpoints each [default: the described host's, else 1000;
    /// `ls`, `why`: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_KNOWN_PARTICIPANTS)))]
    pub(crate) max_participants: Option<u32>,
    /// Name this machine's host entry in the description [default: the one with this machine's name, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Option<String>,
}
