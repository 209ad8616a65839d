//! `isolane tune verify`: measures whether the settings are effective: settings, wake-ups, transmit and receive queues.

mod text;
mod watch;

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::time::Duration;

use isolane_model::format_duration;
use isolane_tune::apply::{Status, status};
use isolane_tune::verify::{
    FlowReport, LatencyReport, LatencyTest, ProbeError, ProbeParameters, TransmitReport,
    flow_reports, may_go_by_priority, measure_receive_queues, measure_wake_up, pairs_with,
    transmit_reports,
};
use isolane_tune::{DescribedFlow, Needs, ThisMachine, here};
use isolane_wire::level::Level;
use serde::Serialize;

use self::text::{by_queue, listed, microseconds, named, text};
use self::watch::watch;
use super::failure::failure;
use super::ports::landed;
use super::{check_state, place_of, served_by, unanswered};
use crate::commands::needs;
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json, tell};
use crate::settings::{Interfaces, TuneVerifySettings};
use crate::values::Destination;

/// Wake-up period, the usual one of a critical topic.
const PERIOD: Duration = Duration::from_millis(1);

/// Datagrams sent per level.
const DATAGRAMS: u32 = 100;

/// Questions sent per described flow.
const QUESTIONS: u32 = 20;

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// Applied plan; `None` if there is none.
    applied: Option<Status>,
    wake_ups: Vec<LatencyReport>,
    /// Transmit queue counts; `None` if not requested, or if the device's qdisc does not count per queue.
    departures: Option<Vec<TransmitReport>>,
    /// Receive queues of flows; `None` if not requested, or without a described flow with the peer.
    landings: Option<Vec<FlowReport>>,
    /// True when anything was checked: a setting, a wake-up by `--at-most`, a queue.
    judged: bool,
    /// Failed checks, as sentences.
    failed: Vec<String>,
}

/// Verifies the machine. Exit code 1 if any check failed; 2 if there was nothing to check.
pub(super) fn run(settings: &TuneVerifySettings) -> Result<ExitCode, Failure> {
    check_state(&settings.state)?;
    let until = Until::new(None)?;
    let (needs, cores, interface) = meant(settings)?;
    let mut report = Report {
        schema: "isolane/tune-verify/1",
        applied: applied(settings)?,
        wake_ups: wake_ups(settings, &cores, &until)?,
        departures: None,
        landings: None,
        judged: false,
        failed: Vec::new(),
    };
    let asked = interface.as_deref().filter(|_| settings.peer.is_some());
    // The counted queues belong to the device; for a VLAN, to the underlying one.
    let device = asked.map(served_by).transpose()?;
    let device = device.map(|(_, device)| device.name);
    if let (Some(peer), Some(interface), Some(device)) = (settings.peer, &interface, &device)
        && !until.interrupted()
    {
        let (address, _) = place_of(interface)?;
        report.departures =
            transmit_reports(device, address, peer, DATAGRAMS).map_err(|error| {
                let what = format!("where datagrams leave {device} cannot be told");
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
    report.judged = is_judged(settings, &report) || !failed.is_empty();
    report.failed = failed;
    if let Some(destination) = &settings.json {
        print_json(&report, destination)?;
    }
    if settings.json != Some(Destination::StandardOutput) {
        print(&text(settings, device.as_deref(), &report))?;
    }
    if settings.watch {
        watch(settings, report.applied, &until)?;
    }
    Ok(match () {
        () if until.interrupted() => ExitCode::Interrupted,
        () if !report.judged => ExitCode::WrongUsage,
        () if report.failed.is_empty() => ExitCode::Done,
        () => ExitCode::AnswerIsNo,
    })
}

/// Returns whether anything was checked.
fn is_judged(settings: &TuneVerifySettings, report: &Report) -> bool {
    let mut departures = report.departures.iter().flatten();
    let mut landings = report.landings.iter().flatten();
    report.applied.is_some()
        || (settings.at_most.is_some() && !report.wake_ups.is_empty())
        || departures.any(|departure| !departure.expected.is_empty())
        || landings.any(|flow| flow.is_as_expected().is_some())
}

/// Cores and interface to check: the named ones, or those of the described host.
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

/// Measures the receive queues of described flows with the peer. `Err` holds a sentence on why the peer could not be
/// asked; `None` without such flows.
fn landings(
    settings: &TuneVerifySettings,
    needs: &Needs,
    (peer, interface): (Ipv4Addr, &str),
) -> Result<Result<Option<Vec<FlowReport>>, String>, Failure> {
    let tuning = settings
        .system
        .as_ref()
        .map(|system| system.tuning().clone());
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
        // The standard library's hashers start with a random key.
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

/// Sentence on a flow that arrived on a wrong queue.
fn misplaced(flow: &FlowReport) -> Option<String> {
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

fn applied(settings: &TuneVerifySettings) -> Result<Option<Status>, Failure> {
    let folder = &settings.state.0.value;
    status(&mut ThisMachine::new(), &here(), folder)
        .map_err(|error| failure("what is applied cannot be told", &error))
}

fn wake_ups(
    settings: &TuneVerifySettings,
    cores: &[u16],
    until: &Until,
) -> Result<Vec<LatencyReport>, Failure> {
    let mut found = Vec::new();
    for core in cores {
        let periods = settings.measure_for.value.as_micros() / PERIOD.as_micros();
        let what = LatencyTest {
            core: *core,
            priority: settings.priority.value,
            period: PERIOD,
            count: u32::try_from(periods).unwrap_or(u32::MAX),
        };
        tell(format!(
            "measuring wake-ups on core {core} for {}",
            format_duration(settings.measure_for.value)
        ));
        let woken = measure_wake_up(what, until.flag()).map_err(|error| {
            let what = format!("wake-ups on core {core} cannot be measured");
            Failure::new(ExitCode::MachineForbids, what, error.to_string()).with_remedy(
                "it takes CAP_SYS_NICE, and a core that is there: run it as root, see isolane doctor",
            )
        })?;
        found.extend(woken);
    }
    Ok(found)
}

/// Failed checks, one sentence each.
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
        let late = |woken: &&LatencyReport| u128::from(woken.max_ns) > at_most.as_nanos();
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
