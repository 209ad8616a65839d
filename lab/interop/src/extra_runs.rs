//! Interop runs outside the cells' axes: large datagrams, hosts with two interfaces, and coexistence.
//!
//! *Large datagrams*: peer samples that fill the largest UDP datagram. IP fragments them, no lane takes fragments, and
//! the kernel reassembles them for the socket.
//!
//! *Two interfaces*: best effort between hosts with two networks. A peer announces an address on each network. Only the
//! source addresses of its discovery ACKNACKs show from which address it sends.
//!
//! *Coexistence* is in `coexistence.rs`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::Result;
use serde_json::{Value, json};

use super::coexistence;
use super::combination::{Axis, Loss, Role};
use super::network::{Network, SECOND_INTERFACE};
use super::printed::{Carried, changes_written};
use super::program::{Ending, LOOK, Program};
use super::report::{ExtraReport, Verdict};
use super::side::{COLOR, Installed, Peer, TOPIC, role_command};

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
    const ALL: [Self; 5] = [
        Self::Large(Peer::CycloneDds),
        Self::Large(Peer::FastDds),
        Self::Coexistence(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::CycloneDds),
        Self::TwoInterfaces(Peer::FastDds),
    ];

    /// Returns the runs whose name contains every pattern.
    pub(super) fn chosen(patterns: &[String]) -> Vec<Self> {
        let is_wanted = |run: &Self| {
            let name = run.name();
            patterns.iter().all(|pattern| name.contains(pattern))
        };
        Self::ALL.into_iter().filter(is_wanted).collect()
    }

    /// Name in the table, of the output folder, and for `--only`.
    pub(super) fn name(self) -> String {
        match self {
            Self::Large(peer) => format!("{}-large-datagrams", peer.word()),
            Self::Coexistence(peer) => format!("{}-coexistence", peer.word()),
            Self::TwoInterfaces(peer) => format!("{}-two-interfaces", peer.word()),
        }
    }

    fn peer(self) -> Peer {
        match self {
            Self::Large(peer) | Self::Coexistence(peer) | Self::TwoInterfaces(peer) => peer,
        }
    }

    /// Runs it. The programs' output stays in `folder` if it fails.
    pub(super) fn run(self, peers: &[Installed], isolane: &Path, folder: &Path) -> ExtraReport {
        let installed = peers
            .iter()
            .find(|installed| installed.peer == self.peer())
            .expect("all peers were looked for");
        let folder = folder.join(self.name());
        let (verdict, counts) = match &installed.program {
            Ok(program) => self
                .counted(program, isolane, &folder)
                .unwrap_or_else(|error| (Err(error.to_string()), Value::Null)),
            Err(reason) => (Err(reason.clone()), Value::Null),
        };
        let (result, detail) = match verdict {
            Ok(detail) => {
                let _ = fs::remove_dir_all(&folder);
                (Verdict::Pass, detail)
            }
            Err(detail) => (Verdict::Fail, detail),
        };
        ExtraReport {
            name: self.name(),
            peer: installed.identity.clone(),
            datapath: match self {
                Self::TwoInterfaces(_) => "udp",
                Self::Large(_) | Self::Coexistence(_) => "xdp",
            },
            result,
            detail,
            counts,
        }
    }

    fn counted(
        self,
        program: &Path,
        isolane: &Path,
        folder: &Path,
    ) -> Result<(std::result::Result<String, String>, Value)> {
        match self {
            Self::Large(peer) => {
                let arrived = run_large(peer, program, isolane, folder)?;
                let counts = json!({
                    "written": arrived.written,
                    "samples": arrived.samples,
                    "datagrams": arrived.carried,
                });
                Ok((arrived.judge(), counts))
            }
            Self::Coexistence(_) => {
                let coexistence = coexistence::run(program, isolane, folder)?;
                Ok((coexistence.judge(), serde_json::to_value(&coexistence)?))
            }
            Self::TwoInterfaces(peer) => {
                let arrived = run_two_interfaces(peer, program, isolane, folder)?;
                Ok((arrived.judge(), arrived.counts()))
            }
        }
    }
}

/// Timeout of an exchange.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// Longest run of each program, in seconds.
const SECONDS: &str = "20";

/// Runs a subscriber on host B and a publisher on host A, with output files that begin with `stem`. Ends when the
/// subscriber has `wanted` samples and the publisher has reported what it wrote, or at the timeout. Returns both, still
/// running.
fn exchange(
    network: &Network,
    mut subscriber: Command,
    mut publisher: Command,
    stem: &str,
    wanted: usize,
) -> Result<(Program, Program)> {
    subscriber.args(["--seconds", SECONDS]);
    publisher.args(["--seconds", SECONDS]);
    let file = |role: &str| PathBuf::from(format!("{stem}{role}"));
    let subscriber = Program::start(network.command(Host::B, subscriber), &file("subscriber"))?;
    let mut publisher = Program::start(network.command(Host::A, publisher), &file("publisher"))?;
    let begin = Instant::now();
    while subscriber.sample_numbers()?.len() < wanted && begin.elapsed() < LONGEST_RUN {
        thread::sleep(LOOK);
    }
    // A peer stays for a while after SIGINT. The caller ends its stay by another SIGINT, once the peer has written all.
    publisher.end_writing(begin + LONGEST_RUN)?;
    Ok((subscriber, publisher))
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

/// Large samples that arrived.
struct LargeArrived {
    /// True when every sample arrived once, in order.
    is_all: bool,
    written: u32,
    samples: usize,
    carried: Carried,
}

/// Runs the test with large datagrams. The programs' output stays in `folder`.
fn run_large(peer: Peer, program: &Path, isolane: &Path, folder: &Path) -> Result<LargeArrived> {
    fs::create_dir_all(folder)?;
    let description = folder.join("isolane.toml");
    fs::write(&description, DESCRIPTION)?;
    let network = Network::new(Loss::None)?;
    let mut subscriber = Command::new(isolane);
    subscriber.args(["sub", TOPIC, "--datapath", "xdp", "-vv", "--host", "b"]);
    subscriber.arg("--config").arg(&description);
    let mut publisher = Command::new(program);
    publisher.args(["pub", "--topic", TOPIC, "--reliable", "--keep-all"]);
    publisher.args([
        "--color",
        COLOR,
        "--period-ms",
        &LARGE_PERIOD_MS.to_string(),
    ]);
    publisher.args(["--payload-bytes", &PAYLOAD_BYTES.to_string()]);
    if peer == Peer::CycloneDds {
        publisher.env("CYCLONEDDS_URI", WHOLE_DATAGRAMS);
    }
    let stem = format!("{}/", folder.display());
    let (mut subscriber, mut publisher) =
        exchange(&network, subscriber, publisher, &stem, LARGE_WANTED)?;
    thread::sleep(AFTERWARDS);
    publisher.stop()?;
    subscriber.stop()?;
    let (Some(written), Some(carried)) = (
        changes_written(&publisher.said()?),
        Carried::of(&subscriber.said()?),
    ) else {
        let account = publisher.account() + &subscriber.account();
        return Err(format!("a program has not said what it did\n{account}").into());
    };
    let numbers = subscriber.sample_numbers()?;
    network.finish()?;
    Ok(LargeArrived {
        is_all: numbers.iter().copied().eq(0..written),
        written,
        samples: numbers.len(),
        carried,
    })
}

impl LargeArrived {
    /// The result in words; an error unless every sample came by the socket, as one fragmented datagram, and small
    /// heartbeats came by the lane.
    fn judge(&self) -> std::result::Result<String, String> {
        let is_by_socket = self.by_socket() >= u64::from(self.written);
        let is_lane_in_use = self.carried.received_by_lane > 0;
        match self.is_all && self.samples >= LARGE_WANTED && is_by_socket && is_lane_in_use {
            true => Ok(self.to_string()),
            false => Err(self.to_string()),
        }
    }

    fn by_socket(&self) -> u64 {
        let Carried {
            received,
            received_by_lane,
            ..
        } = self.carried;
        received.saturating_sub(received_by_lane)
    }
}

impl fmt::Display for LargeArrived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} samples of {PAYLOAD_BYTES} bytes; {} datagrams by the socket, {} by the lane",
            self.samples,
            self.written,
            self.by_socket(),
            self.carried.received_by_lane
        )
    }
}

/// Time between two samples, in milliseconds.
const PERIOD_MS: u32 = 10;
/// Number of samples after which an exchange may end.
const WANTED: usize = 50;

/// Numbers of the received samples, by the peer's role.
struct Arrived(Vec<(Role, Vec<u32>)>);

/// Runs the test with two interfaces, with the peer once in each role. The programs' output stays in `folder`.
fn run_two_interfaces(
    peer: Peer,
    program: &Path,
    isolane: &Path,
    folder: &Path,
) -> Result<Arrived> {
    fs::create_dir_all(folder)?;
    let exchange = |role: &Role| {
        let numbers = exchange_best_effort(peer, *role, program, isolane, folder)?;
        Ok((*role, numbers))
    };
    Role::ALL
        .iter()
        .map(exchange)
        .collect::<Result<_>>()
        .map(Arrived)
}

fn exchange_best_effort(
    peer: Peer,
    peer_role: Role,
    program: &Path,
    isolane: &Path,
    folder: &Path,
) -> Result<Vec<u32>> {
    let network = Network::new(Loss::None)?;
    network.add_second_link()?;
    let side = |host, role: Role| {
        let is_peer = role == peer_role;
        let mut command = Command::new(if is_peer { program } else { isolane });
        command.arg(role_command(role));
        if is_peer {
            command.arg("--topic");
        }
        command.args([TOPIC, "--best-effort"]);
        if role == Role::Publisher {
            let [option, unit] = if is_peer {
                ["--period-ms", ""]
            } else {
                ["--period", "ms"]
            };
            command.args(["--color", COLOR, option, &format!("{PERIOD_MS}{unit}")]);
        }
        if is_peer && peer == Peer::CycloneDds {
            command.env("CYCLONEDDS_URI", both_interfaces(host));
        }
        command
    };
    let subscriber = side(Host::B, Role::Subscriber);
    let publisher = side(Host::A, Role::Publisher);
    let stem = format!("{}/peer-{}-", folder.display(), peer_role.word());
    let (mut subscriber, mut publisher) = exchange(&network, subscriber, publisher, &stem, WANTED)?;
    let numbers = subscriber.sample_numbers()?;
    if numbers.len() < WANTED {
        let accounts = publisher.account() + &subscriber.account();
        return Err(format!("{} of {WANTED} samples arrived\n{accounts}", numbers.len()).into());
    }
    for program in [&mut publisher, &mut subscriber] {
        let ending = program.stop()?;
        // isolane exits with 130 after an interrupt.
        if !matches!(ending, Ending::Exited(0 | 130)) {
            return Err(format!("a program {ending}\n{}", program.account()).into());
        }
    }
    network.finish()?;
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

impl Arrived {
    /// The result in words; an error where a sample was duplicated or out of order.
    fn judge(&self) -> std::result::Result<String, String> {
        let results = self.0.iter().map(|(role, numbers)| {
            let text = format!("{} samples with the peer as {}", numbers.len(), role.word());
            match numbers.is_sorted_by(|a, b| a < b) {
                true => Ok(text),
                false => Err(format!("{text}: not in order, or twice: {numbers:?}")),
            }
        });
        let texts = results.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(texts.join(", "))
    }

    /// Number of samples by the peer's role.
    fn counts(&self) -> Value {
        let counts = self
            .0
            .iter()
            .map(|(role, numbers)| (role.word().into(), numbers.len().into()));
        counts.collect::<serde_json::Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_by_which_it_is_chosen() {
        let only = |pattern: &str| ExtraRun::chosen(&[pattern.to_owned()]);
        assert_eq!(ExtraRun::chosen(&[]), ExtraRun::ALL);
        assert_eq!(
            only("coexistence"),
            [ExtraRun::Coexistence(Peer::CycloneDds)]
        );
        let of_fastdds = [
            ExtraRun::Large(Peer::FastDds),
            ExtraRun::TwoInterfaces(Peer::FastDds),
        ];
        assert_eq!(only("fastdds-"), of_fastdds);
        assert_eq!(only("loss-10"), []);
    }
}
