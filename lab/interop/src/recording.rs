//! Capture of a cell's network by tcpdump: every frame that leaves or reaches a host, as seen by the host's device. A
//! frame that one host sent and the other did not get was lost by the cable. The captures of a passing cell are removed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fmt, fs};

use isolane_bench::namespace::{Host, TestHosts};
use isolane_support::Result;

use super::program::{Ending, Program, wait_until};

/// Timeout for tcpdump to start the capture.
const START: Duration = Duration::from_secs(5);
/// Maximum number of frames of a host: more than its cable carries in both directions in a cell's ten seconds.
const MAX_FRAMES: &str = "1000000";

/// A running capture. Dropping it ends tcpdump.
pub(super) struct Recording {
    sniffers: [Program; 2],
    files: [PathBuf; 2],
}

/// A finished capture: a pcap file of each host.
pub(super) struct Recorded {
    files: [PathBuf; 2],
    /// Counts as tcpdump prints them, such as "12 packets captured".
    counts: Vec<String>,
}

impl Recording {
    /// Starts the capture on both hosts; `stem` is the path of its files without the host and `.pcap`.
    pub(super) fn start(testbed: &TestHosts, stem: &Path) -> Result<Self> {
        if let Some(folder) = stem.parent() {
            fs::create_dir_all(folder)?;
        }
        let path = |host: Host, extension: &str| {
            let mut path = OsString::from(stem);
            path.push(format!(".{}.{extension}", host.interface()));
            PathBuf::from(path)
        };
        let start = |host: Host| {
            let mut tcpdump = Command::new("tcpdump");
            tcpdump.args(["--interface", host.interface(), "--immediate-mode"]);
            tcpdump.args(["-c", MAX_FRAMES]);
            tcpdump.args(["--relinquish-privileges", "root", "--packet-buffered", "-w"]);
            tcpdump.arg(path(host, "pcap"));
            Program::start(testbed.command(host, tcpdump), &path(host, "tcpdump"))
        };
        let mut recording = Self {
            sniffers: [start(Host::A)?, start(Host::B)?],
            files: Host::BOTH.map(|host| path(host, "pcap")),
        };
        for sniffer in &mut recording.sniffers {
            wait_until(START, || {
                Ok(sniffer.said()?.contains("listening on") || sniffer.ending()?.is_some())
            })?;
            if sniffer.ending()?.is_some() || !sniffer.said()?.contains("listening on") {
                return Err(format!("tcpdump does not capture\n{}", sniffer.account()).into());
            }
        }
        Ok(recording)
    }

    /// Stops the capture. Frames of the last milliseconds may be missing.
    pub(super) fn end(mut self) -> Result<Recorded> {
        let mut counts = Vec::new();
        for sniffer in &mut self.sniffers {
            let ending = sniffer.stop()?;
            if ending != Ending::Exited(0) {
                return Err(format!("tcpdump {ending}\n{}", sniffer.account()).into());
            }
            let said = sniffer.said()?;
            let lines = said.lines().filter(|line| line.contains(" packets "));
            counts.push(lines.collect::<Vec<_>>().join(", "));
            sniffer.remove_output();
        }
        Ok(Recorded {
            files: self.files,
            counts,
        })
    }
}

impl Recorded {
    /// Removes the files.
    pub(super) fn discard(self) -> Result<()> {
        Ok(self.files.iter().try_for_each(fs::remove_file)?)
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.files.iter().zip(&self.counts);
        let mut lines = all.map(|(file, counts)| format!("  = {} ({counts})", file.display()));
        lines.try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::thread;

    use isolane_bench::namespace::{TestHostsConfig, TestHostsError};

    use super::*;

    #[test]
    fn a_datagram_is_in_the_captures_of_both_hosts() {
        let testbed = match TestHosts::without_cable(&TestHostsConfig::default()) {
            Ok(testbed) => testbed,
            Err(TestHostsError::NotPermitted { action, right }) => {
                println!("not permitted: {action} needs {right}; nothing was tested");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let folder = std::env::temp_dir().join(format!("xtask-{}-recording", std::process::id()));
        let recording = match Recording::start(&testbed, &folder.join("cell")) {
            Ok(recording) => recording,
            Err(error) if error.to_string().contains("cannot start") => {
                println!("{error}: nothing was tested");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let to = SocketAddr::from((Host::B.address(), 7400));
        // A bound receiver keeps the kernel from returning an ICMP error with a copy of the datagram.
        let _receiver = testbed
            .run(Host::B, || UdpSocket::bind(to).unwrap())
            .unwrap();
        const MARK: &[u8] = b"a datagram that both ends see";
        testbed
            .run(Host::A, || {
                let socket = UdpSocket::bind((Host::A.address(), 0)).unwrap();
                socket.send_to(MARK, to).unwrap();
            })
            .unwrap();
        thread::sleep(Duration::from_millis(200));
        let recorded = recording.end().unwrap();
        assert!(recorded.to_string().contains("0 packets dropped by kernel"));
        for path in &recorded.files {
            let file = fs::read(path).unwrap();
            let seen = file.windows(MARK.len()).filter(|bytes| *bytes == MARK);
            assert_eq!(seen.count(), 1, "{}", path.display());
        }
        recorded.discard().unwrap();
        fs::remove_dir(&folder).expect("nothing is left in it");
    }
}
