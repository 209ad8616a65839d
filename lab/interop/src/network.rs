//! Network of one run: two hosts and the cable between them, removed with the run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isolane_bench::cable::{Cable, Config};
use isolane_bench::child;
use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_support::{CABLE_COMMAND, Result, command};

use super::combination::Loss;
use super::program::{Program, wait_until};
use super::recording::Recording;

/// Name of the second interface of both hosts, where they have one.
pub(super) const SECOND_INTERFACE: &str = "second";

/// Timeout until a link is up.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Two hosts that reach each other and nothing else.
pub(super) struct Network {
    testbed: TestHosts,
    cable: Cable,
    /// A running capture.
    capture: Option<Recording>,
}

impl Network {
    /// Network with the cable's usual rate, of which no cell uses much.
    pub(super) fn new(loss: Loss) -> Result<Self> {
        Self::with_rate(loss, Config::default().bits_per_s)
    }

    pub(super) fn with_rate(loss: Loss, bits_per_s: u64) -> Result<Self> {
        // A lane is bound to one queue, and with two the kernel would spread the frames, so half of them would reach
        // sockets only.
        let testbed = TestHosts::new(&TestHostsConfig {
            queues: 1,
            ..TestHostsConfig::default()
        })?;
        // These tests are of behaviour, not of time. The queue holds all fragments of a peer's largest sample, so
        // nothing is lost unless a cell asks for loss.
        let config = Config {
            queue_frames: 4096,
            bits_per_s,
            loss: isolane_bench::cable::Loss {
                probability: loss.probability(),
                ..Default::default()
            },
            ..Config::default()
        };
        let cable = Cable::start(
            &testbed,
            &child::Program::current(&[CABLE_COMMAND])?,
            &config,
        )?;
        Ok(Self {
            testbed,
            cable,
            capture: None,
        })
    }

    /// Adds a second link between the hosts, with its own addresses.
    pub(super) fn add_second_link(&self) -> Result<()> {
        let mut there = Command::new("sleep");
        there.arg("60");
        let mut there = self.command(Host::B, there).spawn()?;
        let ip = |host, arguments: &str| {
            let mut ip = Command::new("ip");
            ip.args(arguments.split(' '));
            command::run(&mut self.command(host, ip))
        };
        let add = format!(
            "link add {SECOND_INTERFACE} type veth peer name {SECOND_INTERFACE} netns {}",
            there.id()
        );
        let added = ip(Host::A, &add);
        there.kill()?;
        there.wait()?;
        added?;
        for (host, address) in [(Host::A, "10.79.0.1"), (Host::B, "10.79.0.2")] {
            ip(
                host,
                &format!("address add {address}/24 dev {SECOND_INTERFACE}"),
            )?;
            ip(host, &format!("link set {SECOND_INTERFACE} up"))?;
        }
        // The carrier comes up a moment later, and peers ignore an interface without one.
        for host in [Host::A, Host::B] {
            let mut show = Command::new("ip");
            show.args(["link", "show", SECOND_INTERFACE]);
            let mut show = self.command(host, show);
            let is_up = wait_until(LONGEST_WAIT, || {
                Ok(String::from_utf8_lossy(&show.output()?.stdout).contains("state UP"))
            })?;
            if !is_up {
                return Err("the second link does not come up".into());
            }
        }
        Ok(())
    }

    /// Makes the command run on a host, and die with this process.
    pub(super) fn command(&self, host: Host, command: Command) -> Command {
        self.testbed.command(host, command)
    }

    /// Starts a program on a host; `stem` is the path of its output files without `.out` and `.err`.
    pub(super) fn start(&self, host: Host, command: Command, stem: &Path) -> Result<Program> {
        Program::start(self.command(host, command), stem)
    }

    /// Starts a capture on both hosts, if the path of its files is given, without their endings.
    pub(super) fn record(&mut self, stem: Option<&Path>) -> Result<()> {
        if let Some(stem) = stem {
            self.capture = Some(Recording::start(&self.testbed, stem)?);
        }
        Ok(())
    }

    /// Removes the network. Keeps the capture of a failed run, and returns lines about the capture. Returns an error if
    /// the cable lost frames that it should have delivered.
    pub(super) fn finish(self, has_failed: bool) -> Result<String> {
        let Self {
            testbed,
            cable,
            capture,
        } = self;
        let recorded = capture.map(Recording::end).transpose()?;
        let finished = finish_cable(cable);
        drop(testbed);
        let account = match recorded {
            Some(recorded) if has_failed || finished.is_err() => recorded.to_string(),
            Some(recorded) => recorded.discard().map(|()| String::new())?,
            None => String::new(),
        };
        match finished {
            Ok(()) => Ok(account),
            Err(error) => Err(format!("{error}\n{account}").into()),
        }
    }
}

fn finish_cable(cable: Cable) -> Result<()> {
    Ok(cable.finish()?.validate()?)
}
