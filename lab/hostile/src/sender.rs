//! The hostile sender: a process of its own on the victim's host, which sends to every UDP port that is open there; and
//! the kinds of its datagrams.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use isolane_support::Result;

use super::lies::Liar;
use super::verdict::Sent;

/// How the sender's process is told from a person's commands.
pub const SENDER_COMMAND: &str = "hostile-sender";

/// Chosen once: two runs send the same.
const SEED: u64 = 20_261_121;
/// Datagrams between two looks at the clock.
const RUN: usize = 256;
/// The lowest port that is looked for: those below are not of DDS.
const FIRST_PORT: u16 = 7400;

/// What the hidden command [`SENDER_COMMAND`] takes.
#[derive(Args)]
pub struct SenderArguments {
    /// How long to send
    #[arg(long)]
    seconds: u64,
    /// The victim
    #[arg(long)]
    to: Ipv4Addr,
    /// Captures of other implementations, to be changed
    #[arg(long)]
    captures: PathBuf,
}

/// Sends as fast as it can until the time is over, then says what it sent.
pub fn run(arguments: &SenderArguments) -> Result<bool> {
    // Its own port is none of those that it sends to.
    let places = open_ports(arguments.to)?;
    let socket = UdpSocket::bind((arguments.to, 0))?;
    // What is sent to the victim's groups stays on its host.
    socket.set_multicast_ttl_v4(0)?;
    if places.is_empty() {
        return Err("the victim has no open port".into());
    }
    let here = socket.local_addr()?.port();
    let mut liar = Liar::new(
        SEED,
        SocketAddrV4::new(arguments.to, here),
        &arguments.captures,
    )?;
    let mut sent = Sent {
        kinds: Kind::ALL.map(|kind| (kind.name().to_owned(), 0)).into(),
        to: places.iter().map(ToString::to_string).collect(),
        ..Sent::default()
    };
    let begin = Instant::now();
    let time = Duration::from_secs(arguments.seconds);
    while begin.elapsed() < time {
        for number in 0..RUN {
            let (kind, datagram) = liar.next();
            let to = places[number % places.len()];
            match socket.send_to(datagram, to) {
                Ok(_) => {
                    sent.datagrams += 1;
                    sent.bytes += datagram.len() as u64;
                    if let Some(count) = sent.kinds.get_mut(kind.name()) {
                        *count += 1;
                    }
                }
                Err(_) => sent.refused += 1,
            }
        }
    }
    sent.seconds = begin.elapsed().as_secs_f64();
    println!("{}", serde_json::to_string(&sent)?);
    Ok(true)
}

/// Where UDP is received in this namespace: groups as they are, and everything else at `address`.
fn open_ports(address: Ipv4Addr) -> Result<Vec<SocketAddrV4>> {
    let table = fs::read_to_string("/proc/self/net/udp")?;
    let mut places: Vec<SocketAddrV4> = table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (local, port) = line.split_whitespace().nth(1)?.split_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            // Printed as a number of this machine's byte order, though it is one of the network's.
            let local = Ipv4Addr::from(u32::from_str_radix(local, 16).ok()?.to_ne_bytes());
            let to = if local.is_multicast() { local } else { address };
            Some(SocketAddrV4::new(to, port))
        })
        .filter(|place| place.port() >= FIRST_PORT)
        .collect();
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Garbage,
    ChangedCapture,
    NewParticipant,
    Regular,
    NewWriter,
    NewReader,
    End,
    Data,
    Heartbeat,
    AckNack,
    Gap,
    Fragment,
}

impl Kind {
    pub(super) const ALL: [Self; 12] = [
        Self::Garbage,
        Self::ChangedCapture,
        Self::NewParticipant,
        Self::Regular,
        Self::NewWriter,
        Self::NewReader,
        Self::End,
        Self::Data,
        Self::Heartbeat,
        Self::AckNack,
        Self::Gap,
        Self::Fragment,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::ChangedCapture => "changed captures",
            Self::NewParticipant => "new participants",
            Self::Regular => "announcements of the same participants",
            Self::NewWriter => "new writers",
            Self::NewReader => "new readers",
            Self::End => "ends of endpoints",
            Self::Data => "samples with absurd numbers",
            Self::Heartbeat => "heartbeats",
            Self::AckNack => "acknacks",
            Self::Gap => "gaps",
            Self::Fragment => "fragments",
        }
    }
}
