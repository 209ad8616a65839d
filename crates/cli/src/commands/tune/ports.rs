//! `isolane tune ports`: the receive queues of port pairs, and the pairs with the requested queues.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};

use isolane_tune::verify::{
    BootMark, Pair, ProbeParameters, QueueCounts, ReceiveQueueReport, all_port_pairs,
    measure_receive_queues,
};
use isolane_tune::{FlowQueue, here};
use serde::Serialize;

use super::{place_of, unanswered};
use crate::commands::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{print, print_json, tell};
use crate::settings::PortsSettings;
use crate::values::Destination;

/// JSON form (`--json`).
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    interface: &'a str,
    level: u8,
    peer: std::net::Ipv4Addr,
    /// Boot id of this machine, and of the peer if known: the results hold for these boots.
    boot_id: &'a str,
    peer_boot: Option<BootMark>,
    queue: Option<u32>,
    peer_queue: Option<u32>,
    pairs: &'a [Pair],
    /// Pairs with the requested queues.
    fitting: Vec<(u16, u16)>,
    /// Flows of all pairs that lost nothing and arrived on one queue, for `tune plan --placement`.
    flows: Vec<FlowQueue>,
}

/// Measures the port pairs; exit code 1 if queues were requested and no pair fits.
pub(super) fn run(settings: &PortsSettings) -> Result<ExitCode, Failure> {
    let (address, queues) = place_of(&settings.interface)?;
    let question = ProbeParameters {
        address,
        peer: settings.peer,
        pairs: all_port_pairs(&settings.ports.value, &settings.peer_ports.value),
        level: settings.level.value,
        times: settings.times.value,
        // The standard library's hashers start with a random key.
        run: RandomState::new().hash_one(std::process::id()),
    };
    let until = Until::new(None)?;
    let landings =
        measure_receive_queues(&question, queues, |_| !until.interrupted()).map_err(|error| {
            let remedy = "run `isolane tune answer -i NAME` there, with the same --level and ports";
            unanswered(settings.peer, error, remedy)
        })?;
    let fitting: Vec<&Pair> = landings
        .pairs
        .iter()
        .filter(|pair| fits(pair, settings))
        .collect();
    if let Some(destination) = &settings.json {
        let report = Report {
            schema: "isolane/ports/1",
            interface: &settings.interface,
            level: settings.level.value.get(),
            peer: settings.peer,
            boot_id: &here().boot_id,
            peer_boot: landings.peer_boot,
            queue: settings.queue,
            peer_queue: settings.peer_queue,
            pairs: &landings.pairs,
            fitting: fitting
                .iter()
                .map(|pair| (pair.port, pair.peer_port))
                .collect(),
            flows: landings.flows(address, settings.peer),
        };
        print_json(&report, destination)?;
    }
    if settings.json != Some(Destination::StandardOutput) {
        print(&text(settings, &landings, &fitting))?;
    }
    let asked_for = settings.queue.is_some() || settings.peer_queue.is_some();
    Ok(match () {
        () if until.interrupted() => {
            tell("interrupted: not all pairs were tried");
            ExitCode::Interrupted
        }
        () if asked_for && fitting.is_empty() => ExitCode::AnswerIsNo,
        () => ExitCode::Done,
    })
}

/// Returns whether all datagrams of a pair arrived on one known queue per direction, and on the requested one.
fn fits(pair: &Pair, settings: &PortsSettings) -> bool {
    let is = |landing: &QueueCounts, wanted: Option<u32>| {
        let only = landing.single_queue();
        only.is_some() && (wanted.is_none() || only == wanted)
    };
    pair.lost == 0 && is(&pair.there, settings.peer_queue) && is(&pair.back, settings.queue)
}

fn text(settings: &PortsSettings, landings: &ReceiveQueueReport, fitting: &[&Pair]) -> String {
    // Writing to a string cannot fail.
    let mut text = String::from("  port  peer's  lands there on  answers land on  lost\n");
    for pair in &landings.pairs {
        let mark = if fits(pair, settings) { "*" } else { " " };
        let _ = writeln!(
            text,
            "{mark}{:>5} {:>7} {:>15} {:>16} {:>5}",
            pair.port,
            pair.peer_port,
            landed(&pair.there),
            landed(&pair.back),
            pair.lost
        );
    }
    let wanted = |name: &str, queue: Option<u32>| match queue {
        Some(queue) => format!("queue {queue} {name}"),
        None => format!("one queue {name}"),
    };
    let _ = writeln!(
        text,
        "\n* all on {} and {}: {} of {}",
        wanted("there", settings.peer_queue),
        wanted("here", settings.queue),
        fitting.len(),
        landings.pairs.len()
    );
    if let Some(pair) = fitting.first() {
        let base = |port: u16| port.checked_sub(u16::from(settings.level.value.get()));
        if let (Some(own), Some(peer)) = (base(pair.port), base(pair.peer_port)) {
            let _ = writeln!(
                text,
                "a participant described here with `port = {own}`, and there with `port = {peer}`, has level \
                 {} on these",
                settings.level.value.get()
            );
        }
    }
    text
}

/// Queue as text: `1`, or `0:2 1:1` with several.
pub(super) fn landed(landing: &QueueCounts) -> String {
    if let Some(only) = landing.single_queue() {
        return only.to_string();
    }
    let mut parts: Vec<String> = landing
        .by_queue
        .iter()
        .map(|(queue, count)| format!("{queue}:{count}"))
        .collect();
    if landing.untold > 0 {
        parts.push(format!("?:{}", landing.untold));
    }
    match parts.is_empty() {
        true => String::from("-"),
        false => parts.join(" "),
    }
}
