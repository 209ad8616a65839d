//! `isolane tune verify`: checks that the settings are in effect, and measures wake-up latency, transmit queues and
//! receive queues.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use isolane::Interfaces;
use isolane_model::{System, format_duration};
use isolane_tune::apply::{SettingStatus, Status, status};
use isolane_tune::verify::{
    CoreActivity, FlowReport, LatencyReport, LatencyTest, ProbeError, ProbeParameters,
    TransmitReport, flow_reports, may_go_by_priority, measure_receive_queues, measure_wake_up,
    pairs_with, transmit_reports,
};
use isolane_tune::{
    APPLICATION_PRIORITY, DescribedFlow, Direction, Needs, ThisMachine, Value, here,
};
use isolane_wire::level::Level;
use serde::Serialize;

use super::failure::failure;
use super::receive_queues::landed;
use super::{StateArguments, check_state, no_interface, place_of, served_by, unanswered};
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, joined, print, print_json_or, tell};
use crate::settings::Settings;
use crate::values::{Destination, duration, seconds};

/// Period of the measured wake-ups, usual for a critical topic.
const PERIOD: Duration = Duration::from_millis(1);

/// Number of datagrams sent for each level.
const DATAGRAMS: u32 = 100;

/// Number of questions sent for each described flow.
const QUESTIONS: u32 = 20;

#[derive(Debug, Args)]
pub(crate) struct Verify {
    #[command(flatten)]
    state: StateArguments,
    /// Use [host.NAME] of the description [default: this machine's name]
    ///
    /// The default is the entry of this machine's host name, else the only entry.
    #[arg(long, value_name = "NAME", conflicts_with = "core")]
    host: Option<String>,
    /// Measure wake-ups on these cores, separated by commas [default: the described host's, else none]
    #[arg(long, value_name = "LIST")]
    core: Vec<u16>,
    /// Measure wake-ups for this many seconds on each core
    #[arg(long, value_name = "N", value_parser = seconds(), default_value = "10")]
    seconds: Duration,
    /// Measure wake-ups of a thread with this SCHED_FIFO priority; give that of your applications
    #[arg(
        long,
        value_name = "1..99",
        value_parser = clap::value_parser!(u8).range(1..=99),
        default_value_t = APPLICATION_PRIORITY
    )]
    priority: u8,
    /// Fail if a wake-up is later than this, as 100us [default: report only]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_latency: Option<Duration>,
    /// Check also transmit and receive queues, with datagrams to and from this neighbour (IPv4 address)
    ///
    /// Datagrams to the neighbour show the transmit queues of all levels. Datagrams in both directions show the receive
    /// queues of described flows; for these, `tune answer` must run on the neighbour. Needs --interface or a described
    /// host.
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<Ipv4Addr>,
    /// After the checks, continue until Ctrl-C, and report each setting that another program changes, within a second
    #[arg(long)]
    watch: bool,
    /// Write the results as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    json: Option<Destination>,
}

/// JSON form of the results (`--json`).
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// Status of the applied plan; `None` if no plan is applied.
    applied: Option<Status>,
    wake_ups: Vec<LatencyReport>,
    /// Datagrams by transmit queue; `None` if not requested, or if the device's qdisc does not count each queue.
    transmit_queues: Option<Vec<TransmitReport>>,
    /// Receive queues of described flows; `None` if not requested, or if there is no described flow with the peer.
    receive_queues: Option<Vec<FlowReport>>,
    /// True if anything was checked: a setting, a wake-up against `--max-latency`, or a queue.
    checked: bool,
    /// Failed checks, as sentences.
    failed: Vec<String>,
}

impl Verify {
    /// Verifies the machine. The exit code is 1 if a check failed, or if there was nothing to check.
    pub(super) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.begin()?;
        check_state(&self.state)?;
        let until = Until::new(None)?;
        let (needs, cores, interface) = self.meant(settings)?;
        let mut report = Report {
            schema: "isolane/tune-verify/2",
            applied: applied(&self.state)?,
            wake_ups: self.wake_ups(&cores, &until)?,
            transmit_queues: None,
            receive_queues: None,
            checked: false,
            failed: Vec::new(),
        };
        let asked = interface.as_deref().filter(|_| self.peer.is_some());
        // The counted queues belong to the device. A VLAN interface has those of the underlying device.
        let device = asked.map(served_by).transpose()?;
        let device = device.map(|(_, device)| device.name);
        if let (Some(peer), Some(interface), Some(device)) = (self.peer, &interface, &device)
            && !until.interrupted()
        {
            let (address, _) = place_of(interface)?;
            report.transmit_queues =
                transmit_reports(device, address, peer, DATAGRAMS).map_err(|error| {
                    let what = format!("cannot count the datagrams by transmit queue of {device}");
                    Failure::forbidden(what, error)
                })?;
        }
        let mut failed = self.failed(&report);
        if let (Some(peer), Some(interface)) = (self.peer, &interface)
            && !until.interrupted()
        {
            match landings(settings.system.as_ref(), &needs, (peer, interface))? {
                Ok(landings) => {
                    failed.extend(landings.iter().flatten().filter_map(misplaced));
                    report.receive_queues = landings;
                }
                Err(why) => failed.push(why),
            }
        }
        report.checked = self.is_judged(&report) || !failed.is_empty();
        report.failed = failed;
        print_json_or(&report, self.json.as_ref(), |report| {
            self.text(device.as_deref(), report)
        })?;
        if self.watch {
            watch(&self.state, report.applied, &until)?;
        }
        Ok(match () {
            () if until.interrupted() => ExitCode::Interrupted,
            () if report.checked && report.failed.is_empty() => ExitCode::Done,
            () => ExitCode::AnswerIsNo,
        })
    }

    /// Needs of the host, and the cores and interface to check. The command line names cores and interface, else the
    /// description.
    fn meant(&self, settings: &Settings) -> Result<(Needs, Vec<u16>, Option<String>), Failure> {
        let hostname = here().machine.hostname;
        let needs = settings.needs(self.host.as_deref(), &hostname)?;
        let cores = match self.core.is_empty() {
            true => needs.core.into_iter().collect(),
            false => self.core.clone(),
        };
        let interface = match &settings.network.interfaces.value {
            Interfaces::Named(names) => names.first().cloned(),
            _ => needs.interface.clone(),
        };
        match (self.peer, &interface) {
            (Some(_), None) => Err(no_interface()),
            _ => Ok((needs, cores, interface)),
        }
    }

    fn wake_ups(&self, cores: &[u16], until: &Until) -> Result<Vec<LatencyReport>, Failure> {
        let mut found = Vec::new();
        for core in cores {
            let periods = self.seconds.as_micros() / PERIOD.as_micros();
            let what = LatencyTest {
                core: *core,
                priority: self.priority,
                period: PERIOD,
                count: u32::try_from(periods).unwrap_or(u32::MAX),
            };
            tell(format!(
                "measuring wake-ups on core {core} for {}",
                format_duration(self.seconds)
            ));
            let woken = measure_wake_up(what, until.flag()).map_err(|error| {
                let what = format!("wake-ups on core {core} cannot be measured");
                Failure::forbidden(what, error).with_remedy(
                    "run it as root (CAP_SYS_NICE), with an existing core; see isolane doctor",
                )
            })?;
            found.extend(woken);
        }
        Ok(found)
    }

    /// Returns whether the report contains a result that can pass or fail.
    fn is_judged(&self, report: &Report) -> bool {
        let mut departures = report.transmit_queues.iter().flatten();
        let mut landings = report.receive_queues.iter().flatten();
        report.applied.is_some()
            || (self.max_latency.is_some() && !report.wake_ups.is_empty())
            || departures.any(|departure| !departure.expected.is_empty())
            || landings.any(|flow| flow.is_as_expected().is_some())
    }

    /// Failed checks of settings, wake-ups and transmit queues, a sentence each.
    fn failed(&self, report: &Report) -> Vec<String> {
        let mut failed = Vec::new();
        if let Some(status) = &report.applied {
            if !status.is_complete {
                failed.push(String::from("the plan was not applied completely"));
            }
            let undone = status.settings.iter().filter(|setting| !setting.in_force);
            failed.extend(undone.map(|setting| match &setting.now {
                Some(now) => format!(
                    "{} is {now}, but should be {}",
                    setting.setting, setting.applied
                ),
                None => format!("{} cannot be read", setting.setting),
            }));
        }
        if let Some(max_latency) = self.max_latency {
            let late = |woken: &&LatencyReport| u128::from(woken.max_ns) > max_latency.as_nanos();
            failed.extend(report.wake_ups.iter().filter(late).map(|woken| {
                format!(
                    "a wake-up on core {} came {} late, but the limit is {}",
                    woken.core,
                    microseconds(woken.max_ns),
                    format_duration(max_latency)
                )
            }));
        }
        for departure in report.transmit_queues.iter().flatten() {
            if !departure.is_as_expected() {
                failed.push(format!(
                    "not all of {} datagrams of level {} left by queues {}: {}",
                    departure.sent,
                    departure.level,
                    listed(&departure.expected),
                    by_queue(departure)
                ));
            }
        }
        failed
    }

    /// Text form of the report. `interface` is the device whose transmit queues were counted.
    fn text(&self, interface: Option<&str>, report: &Report) -> String {
        // Writing to a string cannot fail.
        let mut text = String::new();
        let _ = match &report.applied {
            None => writeln!(text, "Settings: no plan is applied"),
            Some(status) => {
                let standing = status.settings.iter().filter(|setting| setting.in_force);
                let all = count_of(status.settings.len() as u64, "setting");
                writeln!(text, "Settings: {} of {all} in effect", standing.count())
            }
        };
        if report.wake_ups.is_empty() {
            let _ = writeln!(
                text,
                "Wake-ups: not measured, because no core is known: give --core N, or describe the host with a core"
            );
        }
        for woken in &report.wake_ups {
            let _ = writeln!(
                text,
                "Wake-ups on core {} at priority {}, {} of them: median {}, p99 {}, p99.9 {}, maximum {} late",
                woken.core,
                self.priority,
                woken.samples,
                microseconds(woken.median_ns),
                microseconds(woken.p99_ns),
                microseconds(woken.p99_9_ns),
                microseconds(woken.max_ns)
            );
            used(&mut text, &woken.activity);
            if self.max_latency.is_none() {
                text.push_str("  not checked: --max-latency TIME sets the limit\n");
            }
        }
        match (interface, &report.transmit_queues) {
            (None, _) => {}
            (Some(interface), None) => {
                let _ = writeln!(
                    text,
                    "Transmit queues: not checked, because the queueing discipline of {interface} has no counters for \
                     each queue (mq and mqprio have)"
                );
            }
            (Some(interface), Some(found)) => {
                let _ = writeln!(
                    text,
                    "Transmit queues of {interface}, {DATAGRAMS} datagrams of each level"
                );
                for departure in found {
                    let mark = match (departure.expected.is_empty(), departure.is_as_expected()) {
                        (true, _) => "--",
                        (false, true) => "ok",
                        (false, false) => "NO",
                    };
                    let expected = match departure.expected.is_empty() {
                        true => String::from("no traffic classes"),
                        false => format!("its class has {}", listed(&departure.expected)),
                    };
                    let left = by_queue(departure);
                    let _ = writeln!(
                        text,
                        "  {mark}  level {}: {left} ({expected})",
                        departure.level
                    );
                }
            }
        }
        if let Some(landings) = &report.receive_queues {
            let _ = writeln!(
                text,
                "Receive queues, {QUESTIONS} datagrams of each described flow"
            );
            for flow in landings {
                let mark = match flow.is_as_expected() {
                    None => "--",
                    Some(true) => "ok",
                    Some(false) => "NO",
                };
                let _ = writeln!(
                    text,
                    "  {mark}  {}: {}",
                    named(flow),
                    landed(&flow.receive_queues)
                );
            }
            if landings.iter().any(|flow| flow.may_go_by_priority) {
                let _ = writeln!(
                    text,
                    "  flows marked -- are not verified: VLAN priority may steer them, and these datagrams have no VLAN \
                     tag"
                );
            }
        }
        for failed in &report.failed {
            let _ = writeln!(text, "NO: {failed}");
        }
        if !report.checked {
            text.push_str(
                "Nothing was verified: apply a plan (isolane tune apply), or give a limit (--core N --max-latency \
                 TIME)\n",
            );
        }
        text
    }
}

/// Measures the receive queues of the described flows with the peer; `None` if there are no such flows. The inner `Err`
/// is a failed check: a sentence that says that the peer does not answer.
fn landings(
    system: Option<&System>,
    needs: &Needs,
    (peer, interface): (Ipv4Addr, &str),
) -> Result<Result<Option<Vec<FlowReport>>, String>, Failure> {
    let tuning = system.map(|system| system.tuning().clone());
    let tuning = tuning.unwrap_or_default();
    let critical = needs.critical_level(&tuning);
    let pairs = pairs_with(needs, peer);
    let (Some(critical), false) = (critical, pairs.is_empty()) else {
        return Ok(Ok(None));
    };
    let (address, queues) = place_of(interface)?;
    let question = ProbeParameters {
        address,
        peer,
        pairs,
        level: Level::MAX,
        times: QUESTIONS,
        // A random number: the standard library's hashers start with a random key.
        run: RandomState::new().hash_one(std::process::id()),
    };
    let driver = served_by(interface)?.1.driver;
    let by_priority = |flow: &DescribedFlow| {
        may_go_by_priority(needs, flow, tuning.steering.value, driver.as_deref())
    };
    match measure_receive_queues(&question, queues, |_| true) {
        Ok(landings) => {
            let landed = flow_reports(needs, critical, peer, &landings, &by_priority);
            Ok(Ok(Some(landed)))
        }
        Err(ProbeError::Silent) => Ok(Err(format!(
            "{peer} does not answer: run `isolane tune answer -i NAME --config FILE` there, with no participant running"
        ))),
        Err(error) => Err(unanswered(peer, error, "")),
    }
}

/// Sentence on a flow that arrived on a wrong queue; `None` if the queue is right or cannot be judged.
fn misplaced(flow: &FlowReport) -> Option<String> {
    (flow.is_as_expected() == Some(false)).then(|| {
        let queue = flow.critical_queue.unwrap_or_default();
        let belongs = match flow.is_critical {
            true => format!("belongs on queue {queue}"),
            false => format!("does not belong on queue {queue}"),
        };
        format!(
            "{} {belongs}: it arrived on {}, {} lost",
            named(flow),
            landed(&flow.receive_queues),
            flow.lost
        )
    })
}

/// Status of the applied plan; `None` if no plan is applied.
pub(super) fn applied(state: &StateArguments) -> Result<Option<Status>, Failure> {
    status(&mut ThisMachine::new(), &here(), &state.state)
        .map_err(|error| failure("cannot read the settings of the applied plan", &error))
}

/// Maximum number of threads, and of interrupts, to name for a core.
const NAMED: usize = 5;

/// Adds lines on other work on the core: the threads with the longest run time, and the most frequent interrupts.
fn used(text: &mut String, used: &CoreActivity) {
    let threads: Vec<String> = used
        .threads
        .iter()
        .take(NAMED)
        .map(|thread| {
            let name = thread.name.escape_debug();
            format!("{name} {}", microseconds(thread.run_ns))
        })
        .collect();
    let _ = writeln!(
        text,
        "  {} of other programs or the kernel ran there: {}",
        count_of(used.threads.len() as u64, "thread"),
        or_none(&threads)
    );
    let mut interrupts: Vec<(&String, &u64)> = used.interrupts.iter().collect();
    interrupts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let named: Vec<String> = interrupts
        .iter()
        .take(NAMED)
        .map(|(name, count)| format!("{} {count}", name.escape_debug()))
        .collect();
    let _ = writeln!(text, "  interrupts: {}", or_none(&named));
}

fn or_none(named: &[String]) -> String {
    match named.is_empty() {
        true => String::from("none"),
        false => named.join(", "),
    }
}

fn microseconds(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1_000.0)
}

fn listed(queues: &[u32]) -> String {
    joined(queues, ",")
}

/// Number of datagrams in each transmit queue as text: `queue 0: 3, queue 1: 100`.
fn by_queue(departure: &TransmitReport) -> String {
    let queues: Vec<String> = departure
        .by_queue
        .iter()
        .map(|(queue, count)| format!("queue {queue}: {count}"))
        .collect();
    or_none(&queues)
}

/// Flow as text: `Brake (level 7, in from 10.0.0.2:7007)`.
fn named(flow: &FlowReport) -> String {
    let way = match flow.direction {
        Direction::Receive => format!("in from {}:{}", flow.tuple.source, flow.tuple.source_port),
        Direction::Transmit => format!(
            "out to {}:{}",
            flow.tuple.destination, flow.tuple.destination_port
        ),
    };
    format!("{} (level {}, {way})", flow.topics.join(", "), flow.level)
}

/// Interval at which `--watch` reads the settings.
const WATCH: Duration = Duration::from_secs(1);

/// Reads the settings each second, and prints their changes, until a signal arrives.
fn watch(state: &StateArguments, mut before: Option<Status>, until: &Until) -> Result<(), Failure> {
    tell("watching the settings, until Ctrl-C");
    while !until.flag().load(Ordering::Relaxed) {
        thread::sleep(WATCH);
        let now = applied(state)?;
        for news in news(before.as_ref(), now.as_ref()) {
            print(&format!("{news}\n"))?;
        }
        before = now;
    }
    Ok(())
}

/// Sentences on the changes between two reads of the settings.
fn news(before: Option<&Status>, now: Option<&Status>) -> Vec<String> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (None, None) => return Vec::new(),
        (Some(_), None) => return vec![String::from("the plan was rolled back")],
        (None, Some(now)) => return vec![format!("a plan of profile {} was applied", now.profile)],
    };
    let changed = now.settings.iter().filter_map(|setting| {
        let same = |known: &&SettingStatus| known.setting == setting.setting;
        let before = before.settings.iter().find(same)?;
        if before.now == setting.now {
            return None;
        }
        Some(match (&setting.now, setting.in_force) {
            // The device or thread to which the setting belongs is gone.
            (Some(Value::Absent), false) => format!(
                "{} no longer exists; it should be {}",
                setting.setting, setting.applied
            ),
            (Some(now), true) => format!("{} is {now} again, as it should be", setting.setting),
            (Some(now), false) => format!(
                "another program set {} to {now}; it should be {}",
                setting.setting, setting.applied
            ),
            (None, _) => format!("{} can no longer be read", setting.setting),
        })
    });
    changed.collect()
}
