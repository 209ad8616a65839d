//! A host in the guest: a network namespace with a multi-queue device, and isolane's commands there.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isolane_support::{Result, command};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::inside::tools::{self, Counters};
use crate::inside::wait_until;

/// Folder of the description and of the commands' files in the guest.
const FOLDER: &str = "/tmp";
const FILE: &str = "/tmp/isolane.toml";

/// Timeout until a command is ready.
const PATIENCE: Duration = Duration::from_secs(20);
/// Timeout of a command.
const LONGEST: Duration = Duration::from_secs(90);
const NOT_READY: &str = "a host did not become ready";

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// Name of the host in the description, and of its namespace.
    pub(super) name: &'static str,
    pub(super) interface: &'static str,
    pub(super) address: &'static str,
    hardware: &'static str,
}

/// Host that sends requests.
pub(super) const A: Host = Host {
    name: "a",
    interface: "eth0",
    address: "10.79.0.1",
    hardware: "02:00:00:00:00:01",
};
/// Host that answers.
pub(super) const B: Host = Host {
    name: "b",
    interface: "eth1",
    address: "10.79.0.2",
    hardware: "02:00:00:00:00:02",
};

/// A finished command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Ran {
    pub(super) host: String,
    pub(super) line: String,
    pub(super) exit_code: Option<i32>,
    pub(super) expected: i32,
    /// Standard output and standard error.
    pub(super) printed: String,
    pub(super) said: String,
}

impl Ran {
    /// Sets the expected exit code.
    pub(super) fn expecting(self, expected: i32) -> Ran {
        Ran { expected, ..self }
    }
}

impl Host {
    /// Host that a scenario names.
    pub(super) fn named(name: &str) -> Result<Host> {
        let host = [A, B].into_iter().find(|host| host.name == name);
        host.ok_or_else(|| format!("there is no host {name:?}").into())
    }

    /// Creates the namespace with a static neighbour entry for the other host. So no ARP frames are among the counted
    /// ones.
    pub(super) fn make(self, other: Host, description: &Table) -> Result<()> {
        let Host {
            name, interface, ..
        } = self;
        tools::run("ip", &format!("netns add {name}"))?;
        tools::run("ip", &format!("link set {interface} netns {name}"))?;
        for line in [
            "ip link set lo up".to_owned(),
            format!("ip link set {interface} addrgenmode none"),
            format!("ip address add {}/24 dev {interface}", self.address),
            format!("ip link set {interface} up"),
            format!(
                "ip neigh replace {} lladdr {} dev {interface} nud permanent",
                other.address, other.hardware
            ),
        ] {
            self.tool(&line)?;
        }
        fs::write(FILE, description.to_string())?;
        Ok(())
    }

    /// Waits until the host's device can send.
    pub(super) fn wait_for_link(self) -> Result<()> {
        let line = format!("ip link show {}", self.interface);
        wait_until(NOT_READY, PATIENCE, || {
            Ok(self.tool(&line)?.contains("LOWER_UP"))
        })
    }

    /// Waits until a lane's program is attached to its device.
    pub(super) fn wait_for_lane(self) -> Result<()> {
        let line = format!("ip link show {}", self.interface);
        wait_until(NOT_READY, PATIENCE, || {
            Ok(self.tool(&line)?.contains("prog/xdp"))
        })
    }

    /// Waits until a socket is bound to this UDP port, or to any.
    pub(super) fn wait_for_port(self, port: Option<u16>) -> Result<()> {
        let wanted = port.map(|port| format!(":{port} "));
        wait_until(NOT_READY, PATIENCE, || {
            let listed = self.tool("ss -Hnula")?;
            let is_there = |wanted: &String| listed.contains(wanted);
            Ok(wanted.as_ref().map_or(!listed.trim().is_empty(), is_there))
        })
    }

    /// Runs a program of the guest in the host's namespace; its failure is an error.
    pub(super) fn tool(self, line: &str) -> Result<String> {
        tools::run("ip", &format!("netns exec {} {line}", self.name))
    }

    fn isolane(self, line: &str) -> Command {
        let mut command = tools::program("ip");
        let words = format!("netns exec {} isolane {line}", self.name);
        command
            .args(words.split_whitespace())
            .current_dir(FOLDER)
            .env("ISOLANE_CONFIG", FILE)
            .stdin(Stdio::null());
        command
    }

    /// Runs isolane in the host's namespace.
    pub(super) fn run(self, line: &str) -> Result<Ran> {
        self.start(line)?.finish()
    }

    /// Starts isolane in the host's namespace. Its output goes to files, so it never blocks on a pipe.
    pub(super) fn start(self, line: &str) -> Result<Running> {
        let mut command = self.isolane(line);
        let file = |what: &str| {
            let number = line.len();
            format!("{FOLDER}/{}-{number}-{what}", self.name)
        };
        let files = [file("printed"), file("said")];
        command.stdout(File::create(&files[0])?);
        command.stderr(File::create(&files[1])?);
        let child = command::spawn(&mut command)?;
        Ok(Running {
            host: self,
            line: line.to_owned(),
            child,
            files,
        })
    }

    /// Counters of the host's device.
    pub(super) fn counters(self) -> Result<Counters> {
        let printed = self.tool(&format!("ethtool --statistics {}", self.interface))?;
        Ok(tools::counters(&printed))
    }

    /// Path of a command's file.
    pub(super) fn file(self, name: &str) -> String {
        format!("{FOLDER}/{}-{name}", self.name)
    }
}

/// A running command of isolane.
pub(super) struct Running {
    host: Host,
    line: String,
    child: Child,
    files: [String; 2],
}

impl Running {
    /// Waits for the end of the command; kills it at the timeout.
    pub(super) fn finish(mut self) -> Result<Ran> {
        let ended = wait_until(NOT_READY, LONGEST, || Ok(self.child.try_wait()?.is_some()));
        if ended.is_err() {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        eprintln!("{}: isolane {}: {status}", self.host.name, self.line);
        let [printed, said] = self.files.map(|file| fs::read(file).unwrap_or_default());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Ran {
            host: self.host.name.to_owned(),
            line: self.line,
            exit_code: status.code(),
            expected: 0,
            printed: text(&printed),
            said: text(&said),
        })
    }

    /// Sends SIGINT to the command, as Ctrl-C does.
    pub(super) fn interrupt(self) -> Result<Ran> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // The command may have ended by itself.
            let _ = kill_process(id, Signal::INT);
        }
        self.finish()
    }
}
