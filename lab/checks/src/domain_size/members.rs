//! Processes with ten endpoints each, all of which must match and deliver, while a critical pair runs among them.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::BridgedHosts;
use isolane_bench::process::Cores;
use isolane_support::disturbance::{Disturbance, Watch};
use isolane_support::steps::Check;
use isolane_support::{Result, json};
use serde::Serialize;
use serde_json::Value;

use super::HOSTS;
use super::process::Processes;

/// Number of writers, and of readers, of each process. Each writer also matches this many readers, and each reader this
/// many writers (example `domain_member`).
const ENDS: u64 = 5;
/// Number of samples that each writer of the example writes.
const SAMPLES: u64 = 20;
/// Maximum time from the start of the last process until all endpoints have matched.
const LONGEST_MATCHING: Duration = Duration::from_secs(60);
/// Timeout of the run. It is longer than [`LONGEST_MATCHING`], so that a run that is too slow reports its duration.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time for which the critical pair runs alone, before the run with members.
const ALONE: Duration = Duration::from_secs(10);
/// Time for which the critical pair runs before the first member starts, and after the last one has ended.
const AROUND: Duration = Duration::from_secs(2);
/// Shortest stall of the machine that makes the critical pair miss its DEADLINE: the DEADLINE less a period.
const LONG_STALL: Duration = Duration::from_millis(240);
/// Name of the counter that a stall of the machine can raise.
const DEADLINES: &str = "deadlines missed";
/// Maximum number of pairs with missing samples that are printed by name.
const NAMED: usize = 5;

/// Counts of the critical pair.
#[derive(Debug, Default, Serialize)]
struct Critical {
    written: u64,
    delivered: u64,
    lost: u64,
    out_of_order: u64,
    /// Missed DEADLINEs of writer and reader together.
    deadlines_missed: u64,
    /// Priority inversions of writer and reader together.
    inversions: u64,
    /// Priority inversions that late delivery by the kernel caused, of writer and reader together.
    kernel_late: u64,
    repaired: u64,
    longest_gap_ms: f64,
    /// Disturbance of the pair by the machine.
    machine: Disturbance,
}

/// Result of the run.
#[derive(Debug, Serialize)]
pub(super) struct MembersReport {
    processes: u32,
    endpoints: u64,
    /// Time from the start of the last process to the last match; null unless all endpoints have matched.
    matched_seconds: Option<f64>,
    /// Number of processes whose endpoints have all matched.
    matched: usize,
    /// Time from the first write to the last delivery, including the pauses between samples.
    delivered_seconds: Option<f64>,
    pairs: u64,
    samples: u64,
    repaired: u64,
    out_of_order: u64,
    refused: u64,
    announcements_dropped: u64,
    /// Number of leases that expired although the process had not ended.
    leases_expired: u64,
    largest_resident_bytes: u64,
    /// CPU time of all processes until all had matched, and until the end.
    cpu_seconds: [f64; 2],
    critical_alone: Critical,
    critical: Critical,
    pub(super) checks: Vec<Check>,
}

/// Runs the critical pair alone, then with this number of processes.
pub(super) fn run(
    hosts: &BridgedHosts,
    program: &Path,
    processes: u32,
    folder: &Path,
) -> Result<MembersReport> {
    let start = |group: &mut Processes, host: usize, arguments: &[&str], name: &str| {
        let mut command = Command::new(program);
        command.args(arguments).env_remove("ISOLANE_DOMAIN");
        group.start(hosts.command(host, command), name, folder)
    };
    let start_pair = |name: &str| -> Result<Processes> {
        let mut pair = Processes::new();
        for (host, role) in [(0, "critical-reader"), (1, "critical-writer")] {
            start(&mut pair, host, &[role], &format!("{role} {name}"))?;
        }
        match pair.wait_for("matched", PATIENCE)? {
            Some(_) => Ok(pair),
            None => Err("the critical pair does not match".into()),
        }
    };
    eprintln!("the critical pair alone ...");
    let watch = Watch::begin(Cores::of_machine())?;
    let pair = start_pair("alone")?;
    thread::sleep(ALONE);
    let critical_alone = Critical::of(&pair.finish()?, watch.end()?);

    eprintln!("{processes} processes ...");
    let watch = Watch::begin(Cores::of_machine())?;
    let pair = start_pair("with others")?;
    thread::sleep(AROUND);
    let mut members = Processes::new();
    let all = processes.to_string();
    for number in 0..processes {
        let arguments = ["member", &number.to_string(), &all];
        let host = number as usize % usize::from(HOSTS);
        start(&mut members, host, &arguments, &format!("member {number}"))?;
    }
    let last_start = Instant::now();
    let last_match = members.wait_for("matched", PATIENCE)?;
    let matched = members.count("matched");
    let cpu_matched = members.cpu_seconds();
    let matched_seconds = last_match.map(|last| seconds(last_start, last));
    eprintln!("{matched} of {} have matched", members.len());
    let mut delivered_seconds = None;
    if last_match.is_some() {
        let begin = Instant::now();
        members.tell("write")?;
        let last = members.wait_for("delivered", PATIENCE)?;
        delivered_seconds = last.map(|last| seconds(begin, last));
        // A duplicate sample would arrive in this time.
        thread::sleep(AROUND);
    }
    let (cpu, largest_resident_bytes) = (members.cpu_seconds(), members.largest_resident_bytes());
    let results = members.finish()?;
    json::write(&results, &folder.join("members.json"))?;
    thread::sleep(AROUND);
    let critical = Critical::of(&pair.finish()?, watch.end()?);

    let sum = |path: &str| results.iter().map(|result| number(result, path)).sum();
    let mut report = MembersReport {
        processes,
        endpoints: u64::from(processes) * 2 * ENDS,
        matched_seconds,
        matched,
        delivered_seconds,
        pairs: sum("/pairs"),
        samples: sum("/samples"),
        repaired: sum("/repaired"),
        out_of_order: sum("/out_of_order"),
        refused: ["participants", "endpoints", "matches", "shares"]
            .map(|what| sum(&format!("/refused/{what}")))
            .iter()
            .sum(),
        announcements_dropped: sum("/refused/announcements"),
        leases_expired: sum("/leases_expired"),
        largest_resident_bytes,
        cpu_seconds: [cpu_matched, cpu],
        critical_alone,
        critical,
        checks: Vec::new(),
    };
    let lacking = results
        .iter()
        .filter_map(|result| result["lacking"].as_array());
    for line in lacking.flatten().take(NAMED).filter_map(Value::as_str) {
        eprintln!("{line}");
    }
    report.judge();
    Ok(report)
}

fn seconds(begin: Instant, end: Instant) -> f64 {
    end.saturating_duration_since(begin).as_secs_f64()
}

fn number(result: &Value, path: &str) -> u64 {
    result.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

impl Critical {
    /// Sums the reader's and the writer's counts.
    fn of(results: &[Value], machine: Disturbance) -> Self {
        let sum = |path: &str| results.iter().map(|result| number(result, path)).sum();
        let gaps = results
            .iter()
            .filter_map(|it| it["longest_gap_ms"].as_f64());
        Self {
            written: sum("/written"),
            delivered: sum("/delivered"),
            lost: sum("/lost"),
            out_of_order: sum("/out_of_order"),
            deadlines_missed: sum("/deadlines_missed"),
            inversions: sum("/inversions"),
            kernel_late: sum("/kernel_late"),
            repaired: sum("/repaired"),
            longest_gap_ms: gaps.fold(0.0, f64::max),
            machine,
        }
    }

    /// Returns true if the machine stalled so long that a missed DEADLINE was unavoidable.
    fn is_stalled(&self) -> bool {
        let longest_us = self.machine.longest_stall_us;
        longest_us.is_some_and(|us| u128::from(us) >= LONG_STALL.as_micros())
    }

    fn judged(&self) -> [(&'static str, u64); 4] {
        [
            ("lost", self.lost),
            ("out of order", self.out_of_order),
            (DEADLINES, self.deadlines_missed),
            ("inversions", self.inversions),
        ]
    }
}

impl MembersReport {
    fn judge(&mut self) {
        let mut checks = Vec::new();
        let mut check = |holds, what| checks.push(Check { what, holds });
        let limit = LONGEST_MATCHING.as_secs();
        check(
            self.matched_seconds.is_some_and(|it| it <= limit as f64),
            match self.matched_seconds {
                Some(it) => format!(
                    "all of {} endpoints matched {it:.1} s after the last start (at most {limit} s)",
                    self.endpoints
                ),
                None => format!(
                    "{} of {} processes matched within {} s",
                    self.matched,
                    self.processes,
                    PATIENCE.as_secs()
                ),
            },
        );
        let pairs = u64::from(self.processes) * ENDS * ENDS;
        check(
            self.pairs == pairs,
            format!("{} of {pairs} pairs are matched at the end", self.pairs),
        );
        let samples = pairs * SAMPLES;
        check(
            self.samples == samples && self.out_of_order == 0,
            format!(
                "{} of {samples} reliable samples delivered in order, {} others came ({} repaired)",
                self.samples, self.out_of_order, self.repaired
            ),
        );
        check(
            self.refused == 0,
            format!("{} peers or matches refused", self.refused),
        );
        check(
            self.critical.delivered > 0 && self.critical_alone.delivered > 0,
            format!(
                "the critical reader got {} samples, alone {}",
                self.critical.delivered, self.critical_alone.delivered
            ),
        );
        let alone = self.critical_alone.judged();
        for ((name, count), (_, alone)) in self.critical.judged().into_iter().zip(alone) {
            let is_excused = name == DEADLINES && self.critical.is_stalled();
            check(
                count <= alone || is_excused,
                match is_excused {
                    true => {
                        format!("critical pair: {count} {name}, not judged: the machine stalled")
                    }
                    false => format!("critical pair: {count} {name}, alone {alone}"),
                },
            );
        }
        self.checks = checks;
    }

    /// Formats the numbers that are reported but not judged.
    pub(super) fn text(&self) -> String {
        let [cpu_matched, cpu] = self.cpu_seconds;
        let delivered = self.delivered_seconds.unwrap_or(f64::NAN);
        let gap = |critical: &Critical| critical.longest_gap_ms;
        let stall = |critical: &Critical| match critical.machine.longest_stall_us {
            Some(us) => format!("{} ms", us / 1_000),
            None => String::from("unknown"),
        };
        format!(
            "samples delivered within {delivered:.1} s; at most {:.1} MB resident a process; CPU time of all {cpu_matched:.1} s \
             until all had matched, {cpu:.1} s in all; {} announcements dropped and repeated, {} leases expired; critical pair: longest gap \
             {:.1} ms, alone {:.1} ms; longest stall of the machine {}, alone {}; kernel late {}, alone {}",
            self.largest_resident_bytes as f64 / 1e6,
            self.announcements_dropped,
            self.leases_expired,
            gap(&self.critical),
            gap(&self.critical_alone),
            stall(&self.critical),
            stall(&self.critical_alone),
            self.critical.kernel_late,
            self.critical_alone.kernel_late,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report() -> MembersReport {
        let critical = || Critical {
            delivered: 10,
            ..Critical::default()
        };
        MembersReport {
            processes: 10,
            endpoints: 100,
            matched_seconds: Some(3.0),
            matched: 10,
            delivered_seconds: Some(1.0),
            pairs: 250,
            samples: 5_000,
            repaired: 1,
            out_of_order: 0,
            refused: 0,
            announcements_dropped: 0,
            leases_expired: 0,
            largest_resident_bytes: 0,
            cpu_seconds: [0.0; 2],
            critical_alone: critical(),
            critical: critical(),
            checks: Vec::new(),
        }
    }

    fn failed(change: impl FnOnce(&mut MembersReport)) -> usize {
        let mut report = report();
        change(&mut report);
        report.judge();
        report.checks.iter().filter(|check| !check.holds).count()
    }

    #[test]
    fn each_gate_fails_alone() {
        assert_eq!(failed(|_| {}), 0);
        assert_eq!(failed(|it| it.matched_seconds = Some(60.1)), 1);
        assert_eq!(failed(|it| it.matched_seconds = None), 1);
        assert_eq!(failed(|it| it.pairs -= 1), 1);
        assert_eq!(failed(|it| it.samples -= 1), 1);
        assert_eq!(failed(|it| it.out_of_order = 1), 1);
        assert_eq!(failed(|it| it.refused = 1), 1);
        assert_eq!(failed(|it| it.critical.delivered = 0), 1);
        assert_eq!(failed(|it| it.critical.lost = 1), 1);
        assert_eq!(failed(|it| it.critical.inversions = 1), 1);
        let as_alone = |it: &mut MembersReport| {
            it.critical.deadlines_missed = 2;
            it.critical_alone.deadlines_missed = 2;
        };
        assert_eq!(failed(as_alone), 0);
        let missed = |stall: Duration| {
            failed(|it| {
                it.critical.deadlines_missed = 2;
                it.critical.machine.longest_stall_us = Some(stall.as_micros() as u64);
            })
        };
        assert_eq!((missed(LONG_STALL / 2), missed(LONG_STALL)), (1, 0));
    }

    #[test]
    fn the_counts_of_both_ends_are_added() {
        let reader = json!({ "delivered": 9, "inversions": 1, "longest_gap_ms": 12.5 });
        let writer = json!({ "written": 9, "inversions": 2 });
        let critical = Critical::of(&[reader, writer], Disturbance::default());
        assert_eq!((critical.written, critical.delivered), (9, 9));
        assert_eq!(critical.inversions, 3);
        assert!(critical.longest_gap_ms > 12.0);
    }
}
