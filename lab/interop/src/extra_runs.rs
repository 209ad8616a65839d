//! Interop runs outside the cells' axes: large datagrams, hosts with two interfaces, and coexistence.
//!
//! *Large datagrams*: peer samples that fill the largest UDP datagram. IP fragments them, no lane takes fragments, and
//! the kernel reassembles them for the socket.
//!
//! *Two interfaces*: best effort between hosts with two networks. A peer announces an address on each network. Only the
//! source addresses of its discovery ACKNACKs show from which address it sends.
//!
//! *Coexistence* is in `coexistence.rs`.

use std::path::Path;
use std::time::Duration;
use std::{fmt, fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::coexistence;
use super::combination::{Axis, Loss, Role};
use super::exchange::Exchange;
use super::network::{Network, SECOND_INTERFACE};
use super::report::{Judged, Labels};
use super::side::{INTERRUPTED, Peer, Programs, TOPIC, plain_command, status_when_stopped};

/// A run outside the product of axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraRun {
    /// Datagrams that IP fragments, which must arrive by the kernel socket.
    Large(Peer),
    /// A pair of that peer that keeps exchanging samples while isolane starts, stops and is killed.
    Coexistence(Peer),
    /// Best-effort samples where both hosts have two interfaces.
    TwoInterfaces(Peer),
}

impl ExtraRun {
    pub(super) const ALL: [Self; 5] = [
        Self::Large(Peer::CycloneDds),
        Self::Large(Peer::FastDds),
        Self::Coexistence(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::FastDds),
    ];

    pub(super) fn peer(self) -> Peer {
        match self {
            Self::Large(peer) | Self::Coexistence(peer) | Self::TwoInterfaces(peer) => peer,
        }
    }

    /// Labels of the run's result.
    pub(super) fn labels(self, peer: String) -> Labels {
        let datapath = match self {
            Self::TwoInterfaces(_) => "udp",
            Self::Large(_) | Self::Coexistence(_) => "xdp",
        };
        Labels {
            peer,
            datapath: Some(datapath),
            ..Labels::default()
        }
    }

    /// Runs it, with the programs' output in `folder`.
    pub(super) fn run(self, programs: Programs<'_>, folder: &Path) -> Result<Judged> {
        let arrived = match self {
            Self::Large(peer) => run_large(peer, programs, folder),
            Self::Coexistence(_) => coexistence::run(programs, folder),
            Self::TwoInterfaces(peer) => run_two_interfaces(peer, programs, folder),
        };
        Ok(Judged::new(Ok(arrived?), String::new()))
    }
}

/// Name of the result, of the output folder, and for `--only`.
impl fmt::Display for ExtraRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Large(_) => "large-datagrams",
            Self::Coexistence(_) => "coexistence",
            Self::TwoInterfaces(_) => "two-interfaces",
        };
        write!(formatter, "{}-{name}", self.peer().word())
    }
}

/// Additional payload; with all headers, a sample is nearly the largest that a description allows.
const PAYLOAD_BYTES: u32 = 59_900;
/// Time between two samples, in milliseconds: the 41 fragments of a sample take less time on the cable.
const LARGE_PERIOD_MS: u32 = 30;
/// Number of samples after which the run may end.
const LARGE_WANTED: usize = 40;
/// Time between the publisher's last sample and the subscriber's end.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// The subscriber's description of the topic, with its largest sample size.
const DESCRIPTION: &str = "[host.a]\ninterface = \"host-a\"\n[host.b]\ninterface = \"host-b\"\n\
    [topic.Square]\ntype = \"ShapeType\"\nkeyed = true\nmax_bytes = 60000\nreliability = \"reliable\"\n\
    history = \"all\"\nmax_samples = 64\nfrom = [\"a\"]\nto = [\"b\"]\n";

/// Cyclone DDS fragments samples at 1,344 bytes by default; with this configuration, it leaves the fragmentation to IP.
const WHOLE_DATAGRAMS: &str = "<CycloneDDS><Domain><General>\
    <MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>\
    </General></Domain></CycloneDDS>";

/// Runs the test with large datagrams. Every sample must arrive once, in order and by the socket, as one fragmented
/// datagram. The end of the instance, a small datagram, must arrive by the lane.
fn run_large(peer: Peer, programs: Programs<'_>, folder: &Path) -> Result<String> {
    let description = folder.join("isolane.toml");
    fs::write(&description, DESCRIPTION)?;
    let network = Network::new(Loss::None)?;
    let side = |is_peer, role| plain_command(programs, is_peer, role, TOPIC, LARGE_PERIOD_MS);
    let mut subscriber = side(false, Role::Subscriber);
    subscriber.args(["--datapath", "xdp", "-vv", "--host", "b"]);
    subscriber.arg("--config").arg(&description);
    let mut publisher = side(true, Role::Publisher);
    publisher.args(["--reliable", "--keep-all", "--end", "unregister"]);
    publisher.args(["--payload-bytes", &PAYLOAD_BYTES.to_string()]);
    if peer == Peer::CycloneDds {
        publisher.env("CYCLONEDDS_URI", WHOLE_DATAGRAMS);
    }
    let mut exchange = Exchange::start(&network, folder, "large", publisher, subscriber)?;
    // The last change is the end of the instance.
    let written = exchange.run(LARGE_WANTED)?.saturating_sub(1);
    thread::sleep(AFTERWARDS);
    exchange.stop([0, INTERRUPTED])?;
    let numbers = exchange.subscriber.sample_numbers()?;
    let carried = exchange.carried()?;
    network.finish(false)?;
    let (samples, by_lane) = (numbers.len(), carried.received_by_lane);
    let by_socket = carried.received.saturating_sub(by_lane);
    let detail = format!(
        "{samples} of {written} samples of {PAYLOAD_BYTES} bytes; {by_socket} datagrams by the socket, {by_lane} by \
         the lane"
    );
    let is_all = numbers.into_iter().eq(0..written) && samples >= LARGE_WANTED;
    match is_all && by_socket >= u64::from(written) && by_lane > 0 {
        true => Ok(detail),
        false => Err(detail.into()),
    }
}

/// Time between two samples, in milliseconds.
const PERIOD_MS: u32 = 10;
/// Number of samples after which an exchange may end.
const WANTED: usize = 50;

/// Runs the test with two interfaces, with the peer once in each role; an error where a sample was duplicated or out of
/// order.
fn run_two_interfaces(peer: Peer, programs: Programs<'_>, folder: &Path) -> Result<String> {
    let mut texts = Vec::new();
    for &peer_role in Role::ALL {
        let numbers = exchange_best_effort(peer, peer_role, programs, folder)?;
        let (count, role) = (numbers.len(), peer_role.word());
        let text = format!("{count} samples with the peer as {role}");
        if !numbers.is_sorted_by(|a, b| a < b) {
            return Err(format!("{text}: not in order, or twice: {numbers:?}").into());
        }
        texts.push(text);
    }
    Ok(texts.join(", "))
}

fn exchange_best_effort(
    peer: Peer,
    peer_role: Role,
    programs: Programs<'_>,
    folder: &Path,
) -> Result<Vec<u32>> {
    let network = Network::new(Loss::None)?;
    network.add_second_link()?;
    let side = |host, role: Role| {
        let is_peer = role == peer_role;
        let mut command = plain_command(programs, is_peer, role, TOPIC, PERIOD_MS);
        command.arg("--best-effort");
        if is_peer && peer == Peer::CycloneDds {
            command.env("CYCLONEDDS_URI", both_interfaces(host));
        }
        command
    };
    let publisher = side(Host::A, Role::Publisher);
    let subscriber = side(Host::B, Role::Subscriber);
    let name = format!("peer-{}", peer_role.word());
    let mut exchange = Exchange::start(&network, folder, &name, publisher, subscriber)?;
    exchange.run(WANTED)?;
    let numbers = exchange.subscriber.sample_numbers()?;
    if numbers.len() < WANTED {
        let (count, account) = (numbers.len(), exchange.account());
        return Err(format!("{count} of {WANTED} samples arrived\n{account}").into());
    }
    let status = |role| status_when_stopped(peer_role, role);
    exchange.stop([status(Role::Publisher), status(Role::Subscriber)])?;
    network.finish(false)?;
    Ok(numbers)
}

/// Cyclone DDS uses one interface by default; this configures both.
fn both_interfaces(host: Host) -> String {
    format!(
        "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"{}\"/>\
         <NetworkInterface name=\"{SECOND_INTERFACE}\"/></Interfaces></General></Domain></CycloneDDS>",
        host.interface()
    )
}
