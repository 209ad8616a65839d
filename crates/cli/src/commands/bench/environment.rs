//! Environment of `demo` and `bench`: two test hosts in network namespaces with an emulated cable between them. Where
//! the machine does not allow namespaces, measurements use loopback and memory.

use std::sync::Arc;

use isolane_bench::child::Program;
use isolane_bench::experiment::{Datapath, Planned};
use isolane_bench::namespace::{TestHosts, TestHostsConfig, TestHostsError};
use isolane_bench::report::{Missing, Run};
use isolane_bench::scenario::rtt::{self, Outcome};
use isolane_bench::scenario::transport::{self, Lanes, Transport};
use isolane_bench::scenario::{ScenarioError, Waiting, throughput};
use isolane_bench::stop::Stop;

use crate::arguments::CHILD_COMMAND;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, tell};

/// Test hosts, or the reason why there are none, and this program for child processes.
pub(super) struct BenchEnvironment {
    pub(super) hosts: Result<TestHosts, TestHostsError>,
    pub(super) program: Program,
    /// Stop request, signalled by SIGINT, SIGTERM or SIGHUP.
    pub(super) stop: Arc<Stop>,
}

impl BenchEnvironment {
    /// Creates the hosts. From then on SIGINT, SIGTERM and SIGHUP only signal `stop`. When this process ends, its
    /// children end too, and the namespaces end with the last process in them.
    ///
    /// Call this function before the process starts other threads.
    pub(super) fn set_up() -> Result<Self, Failure> {
        let stop = Stop::of_signals().map_err(|error| system("wait for signals", &error))?;
        let program =
            Program::current(&[CHILD_COMMAND]).map_err(|error| system("find itself", &error))?;
        let hosts = match TestHosts::new(&TestHostsConfig::default()) {
            Err(error @ TestHostsError::System { .. }) => return Err(failure(&error.into())),
            hosts => hosts,
        };
        Ok(Self {
            hosts,
            program,
            stop: Arc::new(stop),
        })
    }

    /// Explanation why there are no test hosts, and what the results then show; `None` if there are hosts.
    pub(super) fn without_hosts(&self) -> Option<String> {
        let reason = self.hosts.as_ref().err()?;
        Some(format!(
            "No test hosts: {reason}.\n\n\
             Without test hosts there is no cable and no flood, so the results show only what an\n\
             undisturbed round trip costs. `memory` measures isolane's own work on one thread;\n\
             `udp-loopback` adds the kernel's sockets on 127.0.0.1. Other programs of this machine\n\
             may disturb both."
        ))
    }

    /// Reason why AF_XDP lanes are impossible between the hosts; `None` if lanes work, or if there are no hosts.
    pub(super) fn without_lanes(&self) -> Option<String> {
        let hosts = self.hosts.as_ref().ok()?;
        match transport::lanes_impossible(hosts) {
            Ok(reason) => reason,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Removes the runs that need AF_XDP lanes if lanes are impossible, and tells the user. Returns the number of
    /// removed runs and the reason, for the result.
    pub(super) fn leave_out_lanes(&self, rows: &mut Vec<Planned>) -> Vec<Missing> {
        let takes_lanes = |run: &Planned| run.cell.takes_lanes();
        if !rows.iter().any(takes_lanes) {
            return Vec::new();
        }
        let Some(why) = self.without_lanes() else {
            return Vec::new();
        };
        let before = rows.len();
        rows.retain(|run| !takes_lanes(run));
        let left_out = count_of((before - rows.len()) as u64, "run");
        tell(format!(
            "left out, because AF_XDP lanes are impossible here: {left_out}. {why}"
        ));
        vec![Missing {
            row: format!("{left_out} that need AF_XDP"),
            why,
        }]
    }

    /// Executes one run on the datapath that the configuration names.
    pub(super) fn measure(&self, config: &rtt::Config) -> Result<Outcome, ScenarioError> {
        match (config.settings.datapath.as_str(), &self.hosts) {
            ("memory", _) => rtt::run_in_memory(config),
            ("udp" | "xdp", Ok(hosts)) => rtt::run_between_hosts(hosts, &self.program, config),
            _ => rtt::run_over_loopback(&self.program, config),
        }
    }

    /// Executes one throughput run, between two hosts without a cable where there are hosts.
    pub(super) fn stream(&self, planned: &Planned) -> Result<Run, ScenarioError> {
        let (cell, config) = (&planned.cell, planned.cell.throughput());
        if self.hosts.is_err() || !cell.datapath.has_hosts() {
            return throughput::run_over_loopback(&self.program, &config);
        }
        // With a single receive queue, all frames reach the lanes' queue. Runs over sockets use a single queue too.
        let joined = TestHosts::without_cable(&TestHostsConfig {
            queues: 1,
            ..TestHostsConfig::default()
        })?;
        let transport = match cell.datapath {
            Datapath::Xdp => Transport::Xdp(Lanes {
                busy_polls: cell.waiting == Waiting::BusyPoll,
                ..Lanes::default()
            }),
            _ => Transport::Udp,
        };
        match &planned.system {
            Some(system) => throughput::run_system(&joined, system, &config),
            None => throughput::run_between_hosts(&joined, &self.program, transport, &config),
        }
    }
}

/// Converts an error to a failure for the user.
pub(super) fn failure(error: &ScenarioError) -> Failure {
    let code = match error {
        ScenarioError::Config(_) => ExitCode::WrongUsage,
        _ => ExitCode::MachineForbids,
    };
    Failure::new(code, "the measurement has no result", error.to_string())
}

fn system(what: &str, error: &std::io::Error) -> Failure {
    Failure::forbidden(format!("isolane could not {what}"), error.to_string())
        .with_remedy("check the limits of this session (`ulimit -a`)")
}
