//! The hostile sender, and the kinds of its datagrams. It is a separate process on the victim's host, and sends to
//! every open UDP port of that host.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use isolane_support::Result;
use strum::{IntoStaticStr, VariantArray};

use super::datagrams::DatagramGenerator;
use super::verdict::Sent;

/// Hidden command of the sender's process.
pub const SENDER_COMMAND: &str = "hostile-sender";

/// Fixed seed, so that every run sends the same datagrams.
const SEED: u64 = 20_261_121;
/// Number of datagrams between two reads of the clock.
const RUN: usize = 256;
/// Lowest port that is attacked. DDS uses no lower port.
const FIRST_PORT: u16 = 7400;

/// Arguments of the hidden command [`SENDER_COMMAND`].
#[derive(Args)]
pub struct SenderArguments {
    /// Duration of the attack, in seconds
    #[arg(long)]
    seconds: u64,
    /// Address of the victim
    #[arg(long)]
    to: Ipv4Addr,
    /// Folder with captures of other implementations to mutate
    #[arg(long)]
    captures: PathBuf,
}

/// Sends as fast as possible for the given time, then prints its counts.
pub fn run(arguments: &SenderArguments) -> Result<bool> {
    // This socket is bound after the list of ports is read, so its own port is not in the list.
    let places = open_ports(arguments.to)?;
    let socket = UdpSocket::bind((arguments.to, 0))?;
    // Multicast to the victim's groups stays on its host.
    socket.set_multicast_ttl_v4(0)?;
    if places.is_empty() {
        return Err("the victim has no open port".into());
    }
    let here = socket.local_addr()?.port();
    let mut generator = DatagramGenerator::new(
        SEED,
        SocketAddrV4::new(arguments.to, here),
        &arguments.captures,
    )?;
    let kinds = Kind::VARIANTS
        .iter()
        .map(|kind| (kind.name().to_owned(), 0));
    let mut sent = Sent {
        kinds: kinds.collect(),
        to: places.iter().map(ToString::to_string).collect(),
        ..Sent::default()
    };
    let begin = Instant::now();
    let time = Duration::from_secs(arguments.seconds);
    while begin.elapsed() < time {
        for number in 0..RUN {
            let (kind, datagram) = generator.next();
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

/// Returns a destination for each UDP socket of this namespace. For a socket that is bound to a multicast group, it is
/// that group; for all others, it is `address`.
fn open_ports(address: Ipv4Addr) -> Result<Vec<SocketAddrV4>> {
    let table = fs::read_to_string("/proc/self/net/udp")?;
    let mut places: Vec<SocketAddrV4> = table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let (local, port) = line.split_whitespace().nth(1)?.split_once(':')?;
            let port = u16::from_str_radix(port, 16).ok()?;
            // The kernel prints the address, which is in network byte order, as a number in this machine's order.
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

/// Kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Kind {
    Garbage,
    #[strum(serialize = "changed captures")]
    ChangedCapture,
    #[strum(serialize = "new participants")]
    NewParticipant,
    #[strum(serialize = "announcements of the same participants")]
    Regular,
    #[strum(serialize = "new writers")]
    NewWriter,
    #[strum(serialize = "new readers")]
    NewReader,
    #[strum(serialize = "ends of endpoints")]
    End,
    #[strum(serialize = "samples with absurd numbers")]
    Data,
    #[strum(serialize = "heartbeats")]
    Heartbeat,
    #[strum(serialize = "acknacks")]
    AckNack,
    #[strum(serialize = "gaps")]
    Gap,
    #[strum(serialize = "fragments")]
    Fragment,
}

impl Kind {
    fn name(self) -> &'static str {
        self.into()
    }
}
