//! Best effort between hosts with two networks. A peer announces an address on each; only the source addresses of its
//! discovery ACKNACKs show from which it sends.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::cell::{Axis, Loss, Role};
use super::network::{Network, SECOND_INTERFACE};
use super::program::{Ending, LOOK, Program};
use super::side::{COLOR, Peer, TOPIC, role_command};

/// Time between two samples, in milliseconds.
const PERIOD_MS: u32 = 10;
/// Number of samples after which an exchange may end.
const WANTED: usize = 50;
/// Timeout of one exchange.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// Longest run of each program, in seconds.
const SECONDS: u32 = 20;

/// Numbers of the received samples, by the peer's role.
pub(super) struct Arrived(Vec<(Role, Vec<u32>)>);

/// Runs the test, with the peer once in each role. The programs' output stays in `folder`.
pub(super) fn run(peer: Peer, program: &Path, isolane: &Path, folder: &Path) -> Result<Arrived> {
    fs::create_dir_all(folder)?;
    let exchange = |role: &Role| {
        let numbers = exchange(peer, *role, program, isolane, folder)?;
        Ok((*role, numbers))
    };
    Role::ALL
        .iter()
        .map(exchange)
        .collect::<Result<_>>()
        .map(Arrived)
}

fn exchange(
    peer: Peer,
    peer_role: Role,
    program: &Path,
    isolane: &Path,
    folder: &Path,
) -> Result<Vec<u32>> {
    let network = Network::new(Loss::None)?;
    network.add_second_link()?;
    let start = |host, role: Role| {
        let seconds = SECONDS.to_string();
        let word = role_command(role);
        let is_peer = role == peer_role;
        let mut command = Command::new(if is_peer { program } else { isolane });
        match is_peer {
            true => command.args([word, "--topic", TOPIC]),
            false => command.args([word, TOPIC]),
        };
        command.args(["--best-effort", "--seconds", &seconds]);
        match (role, is_peer) {
            (Role::Subscriber, _) => {}
            (Role::Publisher, true) => {
                command.args(["--color", COLOR, "--period-ms", &PERIOD_MS.to_string()]);
            }
            (Role::Publisher, false) => {
                command.args(["--color", COLOR, "--period", &format!("{PERIOD_MS}ms")]);
            }
        }
        if is_peer && peer == Peer::CycloneDds {
            command.env("CYCLONEDDS_URI", both_interfaces(host));
        }
        let stem = folder.join(format!("peer-{}-{word}", peer_role.word()));
        Program::start(network.command(host, command), &stem)
    };
    let mut subscriber = start(Host::B, Role::Subscriber)?;
    let mut publisher = start(Host::A, Role::Publisher)?;
    let begin = Instant::now();
    while subscriber.sample_numbers()?.len() < WANTED && begin.elapsed() < LONGEST_RUN {
        thread::sleep(LOOK);
    }
    let numbers = subscriber.sample_numbers()?;
    if numbers.len() < WANTED {
        let accounts = publisher.account() + &subscriber.account();
        return Err(format!("{} of {WANTED} samples arrived\n{accounts}", numbers.len()).into());
    }
    // A peer stays for a while after SIGINT; once it has written all, it gets another one.
    publisher.end_writing(begin + LONGEST_RUN)?;
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
    pub(super) fn judge(&self) -> std::result::Result<String, String> {
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
    pub(super) fn counts(&self) -> serde_json::Value {
        let counts = self
            .0
            .iter()
            .map(|(role, numbers)| (role.word().into(), numbers.len().into()));
        counts.collect::<serde_json::Map<_, _>>().into()
    }
}
