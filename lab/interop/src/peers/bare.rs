//! isolane over lanes beside AF_XDP with nothing around it: round trips where both ends spin, on two
//! cores, under the ordinary scheduling class.
//!
//! The bare end is the example `bare_ping_pong` of the package `isolane-datapath-xdp`, which makes a
//! veth pair of its own like the one that isolane runs over. Each repetition runs both, one directly
//! after the other, and who comes first changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_bench::namespace::Testbed;
use serde::Deserialize;

use super::case::{Case, Scenario};
use super::run::{Measured, run_once};
use super::system::{Setting, System};
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command};

/// Payload of a sample, and of the bare datagram.
const PAYLOAD_BYTES: u32 = 64;
/// Rounds of the bare program a second: about what it does on an idle machine.
const ROUNDS_PER_S: u32 = 40_000;

/// What both ends do.
pub(super) const CASE: Case = Case {
    scenario: Scenario::RoundTrip,
    payload_bytes: PAYLOAD_BYTES,
    is_reliable: false,
    cores: 2,
};
/// Name of the bare program in the results.
pub(super) const IDENTITY: &str = "AF_XDP, bare, spinning";

/// Both programs.
pub(super) struct Bare {
    program: PathBuf,
    pub(super) by_lane: System,
}

/// What the bare program says.
#[derive(Deserialize)]
struct Said {
    lost: u64,
    rtt_us: Times,
}

#[derive(Deserialize)]
struct Times {
    median: Option<f64>,
}

fn by_lane(program: PathBuf) -> System {
    System {
        identity: "isolane xdp, spinning".into(),
        setting: Setting::Defaults,
        setting_is: String::new(),
        program,
        arguments: &["--datapath", "xdp", "--waiting", "spin"],
    }
}

impl Bare {
    /// Builds the bare program. The other one is there.
    pub(super) fn build(metadata: &Metadata) -> Result<Self> {
        command::run(cargo().args([
            "build",
            "--release",
            "--package",
            "isolane-datapath-xdp",
            "--example",
            "bare_ping_pong",
        ]))?;
        let examples = metadata.target_directory.join("release/examples");
        Ok(Self {
            program: examples.join("bare_ping_pong"),
            by_lane: by_lane(examples.join("measured_end")),
        })
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Self {
        Self {
            program: "bare".into(),
            by_lane: by_lane("end".into()),
        }
    }

    /// One repetition: isolane's median round trip, and the bare one.
    pub(super) fn repeat(
        &self,
        testbed: &Testbed,
        repetition: usize,
        seconds: u32,
        folder: &Path,
    ) -> Result<[f64; 2]> {
        let by_lane = || -> Result<f64> {
            let measured: Measured = run_once(testbed, CASE, &self.by_lane, seconds, folder)?;
            measured.rtt_median_us.ok_or_else(|| "no median".into())
        };
        if repetition.is_multiple_of(2) {
            let first = by_lane()?;
            return Ok([first, self.bare(testbed, seconds)?]);
        }
        let first = self.bare(testbed, seconds)?;
        Ok([by_lane()?, first])
    }

    fn bare(&self, testbed: &Testbed, seconds: u32) -> Result<f64> {
        let cores = testbed.config().cores;
        let mut bare = Command::new(&self.program);
        bare.args(["--waiting", "spin", "--json"]);
        bare.args(["--payload", &PAYLOAD_BYTES.to_string()]);
        bare.args(["--rounds", &(seconds * ROUNDS_PER_S).to_string()]);
        bare.args(["--cores", &format!("{},{}", cores.hosts, cores.cable)]);
        let output = bare
            .output()
            .map_err(|error| command::cannot_start(&bare, &error))?;
        let said = serde_json::from_slice::<Said>(&output.stdout).map_err(|error| {
            let stderr = String::from_utf8_lossy(&output.stderr);
            format!("`{}`: {error}: {stderr}", command::displayed(&bare))
        })?;
        if said.lost > 0 {
            eprintln!("bare AF_XDP: {} rounds lost", said.lost);
        }
        said.rtt_us
            .median
            .ok_or_else(|| "bare AF_XDP: no round trips".into())
    }
}
