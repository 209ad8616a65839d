//! `isolane tune learn`: the RSS indirection table entries that a host's datagrams select.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;

use isolane_tune::verify::{LearnError, LearnParameters, learn};
use isolane_tune::{DescribedFlow, Direction, FlowQueue, KnownQueue, Needs, ThisMachine, here};
use serde::Serialize;

use super::failure::{failure, left};
use super::{place_of, served_by, unanswered};
use crate::commands::needs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, print, print_json, tell};
use crate::settings::LearnSettings;
use crate::stop;
use crate::values::Destination;

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    interface: &'a str,
    peer: Ipv4Addr,
    boot_id: &'a str,
    flows: Vec<FlowQueue>,
}

pub(super) fn run(settings: &LearnSettings) -> Result<ExitCode, Failure> {
    let (address, queues) = place_of(&settings.interface)?;
    let here = here();
    let domain = settings.system.domain().value.get();
    let host = settings.host.as_deref();
    let needs = needs::of(Some(&settings.system), domain, host, &here.machine.hostname)?;
    let flows = flows_from(&needs, settings.peer)?;
    let lesson = LearnParameters {
        // The table belongs to the device.
        interface: served_by(&settings.interface)?.1.name,
        address,
        queues,
        peer: settings.peer,
        level: settings.level.value,
        // The standard library's hashers start with a random key.
        run: RandomState::new().hash_one(std::process::id()),
    };
    let stopped = stop::on_signals_only()?;
    let folder = &settings.state.0.value;
    let learner = learn(
        &mut ThisMachine::new(),
        (&here, folder),
        &lesson,
        &|| stopped.load(Ordering::Relaxed),
        &mut |round, of| tell(format!("round {round} of {of}")),
    )
    .map_err(|error| failed(settings, error))?;
    let placed: Vec<FlowQueue> = flows
        .iter()
        .filter_map(|flow| {
            let entry = learner.entry_of(flow.tuple)?;
            let place = KnownQueue::Computed { entry };
            Some(FlowQueue {
                tuple: flow.tuple,
                place,
            })
        })
        .collect();
    let text = text(&flows, &placed);
    if let Some(destination) = &settings.json {
        let report = Report {
            schema: "isolane/ports/1",
            interface: &settings.interface,
            peer: settings.peer,
            boot_id: &here.boot_id,
            flows: placed,
        };
        print_json(&report, destination)?;
    }
    match settings.json {
        Some(Destination::StandardOutput) => Ok(ExitCode::Done),
        _ => print(&text),
    }
}

/// Described flows from the peer to this host.
fn flows_from(needs: &Needs, peer: Ipv4Addr) -> Result<Vec<&DescribedFlow>, Failure> {
    let flows = needs.flows.iter();
    let flows: Vec<&DescribedFlow> = flows
        .filter(|flow| flow.way == Direction::Receive && flow.tuple.source == peer)
        .collect();
    if !flows.is_empty() {
        return Ok(flows);
    }
    let host = needs.host.as_deref();
    Err(Failure::wrong_usage(
        format!("the description has no flow from {peer} to this host"),
        match host {
            Some(host) => format!(
                "this host is {host}, and its peers' [participant.NAME] say their addresses"
            ),
            None => format!(
                "it is not known which of {} this machine is",
                needs.hosts.join(", ")
            ),
        },
    )
    .with_remedy(
        "describe the participants of both ends, with their ports; name the host with --host NAME",
    ))
}

fn text(flows: &[&DescribedFlow], placed: &[FlowQueue]) -> String {
    // Writing to a string cannot fail.
    let mut text =
        String::from("level  from                  to                    entry  topics\n");
    for flow in flows {
        let tuple = flow.tuple;
        let entry = placed.iter().find_map(|known| match known.place {
            KnownQueue::Computed { entry } if known.tuple == tuple => Some(entry.to_string()),
            _ => None,
        });
        let _ = writeln!(
            text,
            "{:>5}  {:<20}  {:<20}  {:>5}  {}",
            flow.level,
            format!("{}:{}", tuple.source, tuple.source_port),
            format!("{}:{}", tuple.destination, tuple.destination_port),
            entry.as_deref().unwrap_or("-"),
            flow.topics.join(", ")
        );
    }
    let _ = writeln!(
        text,
        "\n{} learnt; they hold until the next boot, which gives the device another key",
        count_of(placed.len() as u64, "flow")
    );
    text
}

fn failed(settings: &LearnSettings, error: LearnError) -> Failure {
    let what = format!("the hash of {} was not learnt", settings.interface);
    let remedy = "run `isolane tune answer -i NAME --learn` there, with the same --level";
    match error {
        LearnError::Apply(error) => failure(&what, &error),
        LearnError::Probe(error) => unanswered(settings.peer, error, remedy),
        LearnError::Unrestored(settings) => Failure::new(
            ExitCode::MachineForbids,
            format!("{what}, and not all settings could be restored"),
            left(&settings).trim_start(),
        )
        .with_remedy("isolane tune rollback tries it again; its journal is kept"),
        error @ LearnError::Unfinished => {
            Failure::new(ExitCode::AnswerIsNo, what, error.to_string())
                .with_remedy("isolane tune rollback; then plan, apply and learn again")
        }
        LearnError::Stopped => {
            Failure::new(ExitCode::Interrupted, what, "it was stopped on request; all settings were restored")
        }
        error @ (LearnError::Table(_) | LearnError::Unsuitable { .. }) => {
            Failure::new(ExitCode::MachineForbids, what, error.to_string()).with_remedy(
                "choose ports that land where they should instead: isolane tune ports",
            )
        }
        error @ LearnError::Contradiction(_) => {
            Failure::new(ExitCode::AnswerIsNo, what, error.to_string()).with_remedy(
                "stop other traffic to these ports and try again; else isolane tune ports tells what is so",
            )
        }
    }
}
