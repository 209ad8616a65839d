//! Peer samples that fill the largest UDP datagram: IP fragments them, no lane takes fragments, and the kernel
//! reassembles them for the socket.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::cell::Loss;
use super::network::Network;
use super::printed::{Carried, changes_written};
use super::program::{LOOK, Program};
use super::side::{COLOR, Peer, TOPIC};

/// Additional payload; with all headers, a sample is nearly the largest that a description allows.
const PAYLOAD_BYTES: u32 = 59_900;
/// Time between two samples, in milliseconds. The 41 IP fragments of a sample take less time on the cable.
const PERIOD_MS: u32 = 30;
/// Number of samples after which the run may end.
const WANTED: usize = 40;
/// Timeout of the run.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// Longest run of each program, in seconds.
const SECONDS: u32 = 20;
/// Time between the publisher's last sample and the subscriber's end.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// The subscriber's description of the topic, with its largest sample size.
const DESCRIPTION: &str = "[host.a]\ninterface = \"host-a\"\n[host.b]\ninterface = \"host-b\"\n\
    [topic.Square]\ntype = \"ShapeType\"\nkeyed = true\nmax_bytes = 60000\nreliability = \"reliable\"\n\
    history = \"all\"\nmax_samples = 64\nfrom = [\"a\"]\nto = [\"b\"]\n";

/// Cyclone DDS setting. By default it fragments samples at 1,344 bytes; with this setting, IP fragments them instead.
const WHOLE_DATAGRAMS: &str = "<CycloneDDS><Domain><General>\
    <MaxMessageSize>65500B</MaxMessageSize><FragmentSize>65000B</FragmentSize>\
    </General></Domain></CycloneDDS>";

/// Samples that arrived.
pub(super) struct Arrived {
    /// Every sample once, in order.
    is_all: bool,
    pub(super) written: u32,
    pub(super) samples: usize,
    pub(super) carried: Carried,
}

/// Runs the test. The programs' output stays in `folder`.
pub(super) fn run(peer: Peer, program: &Path, isolane: &Path, folder: &Path) -> Result<Arrived> {
    fs::create_dir_all(folder)?;
    let description = folder.join("isolane.toml");
    fs::write(&description, DESCRIPTION)?;
    let network = Network::new(Loss::None)?;
    let mut command = Command::new(isolane);
    command.args(["sub", TOPIC, "--datapath", "xdp", "-vv", "--host", "b"]);
    command.args(["--seconds", &SECONDS.to_string(), "--config"]);
    command.arg(&description);
    let mut subscriber = Program::start(
        network.command(Host::B, command),
        &folder.join("subscriber"),
    )?;
    let mut command = Command::new(program);
    command.args(["pub", "--topic", TOPIC, "--reliable", "--keep-all"]);
    command.args(["--color", COLOR, "--seconds", &SECONDS.to_string()]);
    command.args(["--period-ms", &PERIOD_MS.to_string()]);
    command.args(["--payload-bytes", &PAYLOAD_BYTES.to_string()]);
    if peer == Peer::CycloneDds {
        command.env("CYCLONEDDS_URI", WHOLE_DATAGRAMS);
    }
    let mut publisher =
        Program::start(network.command(Host::A, command), &folder.join("publisher"))?;

    let begin = Instant::now();
    while subscriber.sample_numbers()?.len() < WANTED && begin.elapsed() < LONGEST_RUN {
        thread::sleep(LOOK);
    }
    publisher.end_writing(begin + LONGEST_RUN)?;
    thread::sleep(AFTERWARDS);
    publisher.stop()?;
    subscriber.stop()?;
    let account = || publisher.account() + &subscriber.account();
    let (Some(written), Some(carried)) = (
        changes_written(&publisher.said()?),
        Carried::of(&subscriber.said()?),
    ) else {
        return Err(format!("a program has not said what it did\n{}", account()).into());
    };
    let numbers = subscriber.sample_numbers()?;
    network.finish()?;
    Ok(Arrived {
        is_all: numbers.iter().copied().eq(0..written),
        written,
        samples: numbers.len(),
        carried,
    })
}

impl Arrived {
    /// The result in words; an error unless every sample came by the socket, as one fragmented datagram, and small
    /// heartbeats came by the lane.
    pub(super) fn judge(&self) -> std::result::Result<String, String> {
        let is_by_socket = self.by_socket() >= u64::from(self.written);
        let is_lane_in_use = self.carried.received_by_lane > 0;
        match self.is_all && self.samples >= WANTED && is_by_socket && is_lane_in_use {
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

impl std::fmt::Display for Arrived {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
