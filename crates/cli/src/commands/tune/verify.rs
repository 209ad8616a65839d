//! `isolane tune verify`: whether the machine does what it was set to: settings, wake-ups, transmit queues.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use isolane_model::format_duration;
use isolane_tune::apply::{Standing, Status, status};
use isolane_tune::verify::{
    CoreUse, Departure, FlowLanding, PlaceError, Question, WakeUp, WokenUp, departures,
    flow_landings, pairs_with, place, wake_up,
};
use isolane_tune::{Needs, ThisMachine, Way, here};
use isolane_wire::level::Level;
use serde::Serialize;

use super::failure::failure;
use super::ports::landed;
use super::{place_of, unanswered};
use crate::commands::needs;
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, print, print_json, tell};
use crate::settings::{Interfaces, TuneVerifySettings};
use crate::values::Destination;

/// Between two wake-ups: a critical topic's usual period.
const PERIOD: Duration = Duration::from_millis(1);

/// Datagrams of each level.
const DATAGRAMS: u32 = 100;

/// Between two looks of `--watch`.
const WATCH: Duration = Duration::from_secs(1);

/// Questions of each described flow.
const QUESTIONS: u32 = 20;

/// Threads and interrupts of a core that are named.
const NAMED: usize = 5;

/// The form of `--json`.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// `None`: no plan is applied.
    applied: Option<Status>,
    wake_ups: Vec<WokenUp>,
    /// `None`: not asked for, or the device's queueing does not count by queue.
    departures: Option<Vec<Departure>>,
    /// `None`: not asked for, or no flow with the peer is described.
    landings: Option<Vec<FlowLanding>>,
    /// What is not as it should be.
    failed: Vec<String>,
}

/// Exit code 1 if a setting does not stand, a wake-up came too late, or a level leaves by a queue of another.
pub(super) fn run(settings: &TuneVerifySettings) -> Result<ExitCode, Failure> {
    let until = Until::new(None)?;
    let (needs, cores, interface) = meant(settings)?;
    let mut report = Report {
        schema: "isolane/tune-verify/1",
        applied: applied(settings)?,
        wake_ups: wake_ups(settings, &cores, &until)?,
        departures: None,
        landings: None,
        failed: Vec::new(),
    };
    if let (Some(peer), Some(interface)) = (settings.peer, &interface)
        && !until.interrupted()
    {
        let (address, _) = place_of(interface)?;
        report.departures = departures(interface, address, peer, DATAGRAMS).map_err(|error| {
            let what = format!("where datagrams leave {interface} cannot be told");
            Failure::new(ExitCode::MachineForbids, what, error.to_string())
        })?;
    }
    let mut failed = failed(settings, &report);
    if let (Some(peer), Some(interface)) = (settings.peer, &interface)
        && !until.interrupted()
    {
        match landings(settings, &needs, (peer, interface))? {
            Ok(landings) => {
                failed.extend(landings.iter().flatten().filter_map(misplaced));
                report.landings = landings;
            }
            Err(why) => failed.push(why),
        }
    }
    report.failed = failed;
    if let Some(destination) = &settings.json {
        print_json(&report, destination)?;
    }
    if settings.json != Some(Destination::StandardOutput) {
        let interface = interface.filter(|_| settings.peer.is_some());
        print(&text(settings, interface.as_deref(), &report))?;
    }
    if settings.watch {
        watch(settings, report.applied, &until)?;
    }
    Ok(match () {
        () if until.interrupted() => ExitCode::Interrupted,
        () if report.failed.is_empty() => ExitCode::Done,
        () => ExitCode::AnswerIsNo,
    })
}

/// The cores and the interface that are looked at: named, or the described host's.
fn meant(settings: &TuneVerifySettings) -> Result<(Needs, Vec<u16>, Option<String>), Failure> {
    let domain = settings.network.domain.value.get();
    let hostname = here().machine.hostname;
    let system = settings.system.as_deref();
    let needs = needs::of(system, domain, settings.host.as_deref(), &hostname)?;
    let cores = match settings.cores.is_empty() {
        true => needs.core.into_iter().collect(),
        false => settings.cores.clone(),
    };
    let interface = match &settings.network.interfaces.value {
        Interfaces::Named(names) => names.first().cloned(),
        Interfaces::All => needs.interface.clone(),
    };
    match (settings.peer, &interface) {
        (Some(_), None) => Err(Failure::wrong_usage(
            "it is not clear which interface's queues are meant",
            "each interface has queues of its own",
        )
        .with_remedy("name one: --interface NAME")),
        _ => Ok((needs, cores, interface)),
    }
}

/// Asks where described flows with the peer land; `Err`: why that could not be asked, a sentence. `None`: there are no
/// such flows.
fn landings(
    settings: &TuneVerifySettings,
    needs: &Needs,
    (peer, interface): (Ipv4Addr, &str),
) -> Result<Result<Option<Vec<FlowLanding>>, String>, Failure> {
    let tuning = settings
        .system
        .as_ref()
        .map(|system| system.tuning().clone());
    let critical = needs.critical_level(&tuning.unwrap_or_default());
    let pairs = pairs_with(needs, peer);
    let (Some(critical), false) = (critical, pairs.is_empty()) else {
        return Ok(Ok(None));
    };
    let (address, queues) = place_of(interface)?;
    let question = Question {
        address,
        peer,
        pairs,
        level: Level::MAX,
        times: QUESTIONS,
        // The standard library's hashers begin with a random key.
        run: RandomState::new().hash_one(std::process::id()),
    };
    match place(&question, queues, |_| true) {
        Ok(landings) => Ok(Ok(Some(flow_landings(needs, critical, peer, &landings)))),
        Err(PlaceError::Silent) => Ok(Err(format!(
            "{peer} does not answer: run `isolane tune answer -i NAME --config FILE` there, with no participant running"
        ))),
        Err(error) => Err(unanswered(peer, error, "")),
    }
}

/// What is said of a flow that landed where it should not.
fn misplaced(flow: &FlowLanding) -> Option<String> {
    (flow.is_as_expected() == Some(false)).then(|| {
        let queue = flow.critical_queue.unwrap_or_default();
        let belongs = match flow.is_critical {
            true => format!("belongs on queue {queue}"),
            false => format!("does not belong on queue {queue}"),
        };
        format!(
            "{} {belongs}: it landed on {}, {} lost",
            named(flow),
            landed(&flow.landing),
            flow.lost
        )
    })
}

/// `Brake (level 7, in from 10.0.0.2:7007)`.
fn named(flow: &FlowLanding) -> String {
    let way = match flow.way {
        Way::In => format!("in from {}:{}", flow.tuple.source, flow.tuple.source_port),
        Way::Out => format!(
            "out to {}:{}",
            flow.tuple.destination, flow.tuple.destination_port
        ),
    };
    format!("{} (level {}, {way})", flow.topics.join(", "), flow.level)
}

fn applied(settings: &TuneVerifySettings) -> Result<Option<Status>, Failure> {
    let folder = &settings.state.0.value;
    status(&mut ThisMachine::new(), &here(), folder)
        .map_err(|error| failure("what is applied cannot be told", &error))
}

fn wake_ups(
    settings: &TuneVerifySettings,
    cores: &[u16],
    until: &Until,
) -> Result<Vec<WokenUp>, Failure> {
    let mut found = Vec::new();
    for core in cores {
        let periods = settings.measure_for.value.as_micros() / PERIOD.as_micros();
        let what = WakeUp {
            core: *core,
            priority: settings.priority.value,
            period: PERIOD,
            count: u32::try_from(periods).unwrap_or(u32::MAX),
        };
        tell(format!(
            "measuring wake-ups on core {core} for {}",
            format_duration(settings.measure_for.value)
        ));
        let woken = wake_up(what, until.flag()).map_err(|error| {
            let what = format!("wake-ups on core {core} cannot be measured");
            Failure::new(ExitCode::MachineForbids, what, error.to_string()).with_remedy(
                "it takes CAP_SYS_NICE, and a core that is there: run it as root, see isolane doctor",
            )
        })?;
        found.extend(woken);
    }
    Ok(found)
}

/// What is not as it should be, a sentence each.
fn failed(settings: &TuneVerifySettings, report: &Report) -> Vec<String> {
    let mut failed = Vec::new();
    if let Some(status) = &report.applied {
        if !status.is_complete {
            failed.push(String::from("the plan was not carried out to its end"));
        }
        let undone = status.settings.iter().filter(|setting| !setting.stands);
        failed.extend(undone.map(|setting| match &setting.now {
            Some(now) => format!("{} is {now}, and not {}", setting.setting, setting.applied),
            None => format!("{} cannot be read", setting.setting),
        }));
    }
    if let Some(at_most) = settings.at_most {
        let late = |woken: &&WokenUp| u128::from(woken.max_ns) > at_most.as_nanos();
        failed.extend(report.wake_ups.iter().filter(late).map(|woken| {
            format!(
                "a wake-up on core {} came {} late, {} at most are allowed",
                woken.core,
                microseconds(woken.max_ns),
                format_duration(at_most)
            )
        }));
    }
    for departure in report.departures.iter().flatten() {
        if !departure.is_as_expected() {
            failed.push(format!(
                "of {} datagrams of level {} not all left by queues {}: {}",
                departure.sent,
                departure.level,
                listed(&departure.expected),
                by_queue(departure)
            ));
        }
    }
    failed
}

fn text(settings: &TuneVerifySettings, interface: Option<&str>, report: &Report) -> String {
    // Writing to a string does not fail.
    let mut text = String::new();
    let _ = match &report.applied {
        None => writeln!(text, "Settings: no plan is applied"),
        Some(status) => {
            let standing = status.settings.iter().filter(|setting| setting.stands);
            let all = count_of(status.settings.len() as u64, "setting");
            writeln!(text, "Settings: {} of {all} stand", standing.count())
        }
    };
    if report.wake_ups.is_empty() {
        let _ = writeln!(
            text,
            "Wake-ups: not measured, for no core is known: --core N, or a description's host with a core"
        );
    }
    for woken in &report.wake_ups {
        let _ = writeln!(
            text,
            "Wake-ups on core {} at priority {}, {} of them: median {}, p99 {}, p99.9 {}, maximum {} late",
            woken.core,
            settings.priority.value,
            woken.samples,
            microseconds(woken.median_ns),
            microseconds(woken.p99_ns),
            microseconds(woken.p99_9_ns),
            microseconds(woken.max_ns)
        );
        used(&mut text, &woken.used_by);
    }
    match (interface, &report.departures) {
        (None, _) => {}
        (Some(interface), None) => {
            let _ = writeln!(
                text,
                "Transmit queues: the queueing of {interface} does not count by queue (it takes mq or mqprio)"
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
    if let Some(landings) = &report.landings {
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
            let _ = writeln!(text, "  {mark}  {}: {}", named(flow), landed(&flow.landing));
        }
    }
    for failed in &report.failed {
        let _ = writeln!(text, "NO: {failed}");
    }
    text
}

/// What else ran on the core: the longest, the most often.
fn used(text: &mut String, used: &CoreUse) {
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
        "  {} of others ran there: {}",
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
    let queues: Vec<String> = queues.iter().map(u32::to_string).collect();
    queues.join(",")
}

/// `queue 0: 3, queue 1: 100`.
fn by_queue(departure: &Departure) -> String {
    let queues: Vec<String> = departure
        .by_queue
        .iter()
        .map(|(queue, count)| format!("queue {queue}: {count}"))
        .collect();
    or_none(&queues)
}

/// Looks again and again, and tells what changes, until a signal.
fn watch(
    settings: &TuneVerifySettings,
    mut before: Option<Status>,
    until: &Until,
) -> Result<(), Failure> {
    tell("watching the settings, until Ctrl-C");
    while !until.flag().load(Ordering::Relaxed) {
        thread::sleep(WATCH);
        let now = applied(settings)?;
        for news in news(before.as_ref(), now.as_ref()) {
            print(&format!("{news}\n"))?;
        }
        before = now;
    }
    Ok(())
}

/// What changed between two looks.
fn news(before: Option<&Status>, now: Option<&Status>) -> Vec<String> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (None, None) => return Vec::new(),
        (Some(_), None) => return vec![String::from("the plan was rolled back")],
        (None, Some(now)) => return vec![format!("a plan of profile {} was applied", now.profile)],
    };
    let changed = now.settings.iter().filter_map(|setting| {
        let same = |known: &&Standing| known.setting == setting.setting;
        let before = before.settings.iter().find(same)?;
        if before.now == setting.now {
            return None;
        }
        Some(match (&setting.now, setting.stands) {
            (Some(now), true) => format!("{} is {now} again, as it should be", setting.setting),
            (Some(now), false) => format!(
                "somebody set {} to {now}; it should be {}",
                setting.setting, setting.applied
            ),
            (None, _) => format!("{} cannot be read any more", setting.setting),
        })
    });
    changed.collect()
}
