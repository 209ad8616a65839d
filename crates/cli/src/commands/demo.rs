//! `isolane demo`: what isolane is for, shown on this machine.
//!
//! Two hosts and a slow link between them; a critical topic makes round trips; a flood fills the link.

use isolane_bench::scenario::{plan, rtt};
use isolane_model::Datapath;

use super::laboratory::{self, Laboratory};
use super::round_trips;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::DemoSettings;

/// What is going to happen.
const WHAT: &str = "\
two hosts in network namespaces, a link of 40 Mbit/s
between them, and a critical topic that makes 2000 round trips a second, without and with a flood
on the link. Nothing leaves this machine, and nothing of it stays.";

/// What the numbers mean, for somebody who sees them for the first time.
const MEANING: &str = "\
What this shows. A critical topic (level 7, 2000 round trips a second) and a flood share one
network stack and one link of 40 Mbit/s that sends frames in the order they came. Whatever the
flood puts into that queue first, the critical sample waits for; when the queue is full, the
critical sample is dropped like any other. These rows are the problem. In later versions further
rows will stand beside them, one remedy at a time: the executor's order inside the participant, a
lane for each level past the shared stack, budgets for what a flow may cost its receiver, a strict
arbiter on the link, and the machine's own tuning.

The flood's datagrams have 512 B beside smaller payloads too: of 64 B ones the link would take more a
second than one core can relay (on a machine of two cores such a flood reached 0.40 of the link's
rate), and a link that is not full shows nothing.

Absolute numbers mean little here: both hosts, the link and the flood share a few cores of one
machine, whose own stalls of milliseconds are in p99.9 and max (see `late max`: how late the
sender's and the link's timers were). Compare the median, p99 and the median of one-second p99s
between rows of this run, and quote ratios.";

/// Measures all rows, prints them and what they mean.
pub(crate) fn run(settings: DemoSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    let explanation = laboratory.without_hosts();
    if let Some(explanation) = &explanation {
        tell(explanation);
    }
    let rows = rows(&settings, &laboratory)?;
    let (what, meaning) = match &explanation {
        None => (WHAT, MEANING),
        Some(explanation) => (round_trips::WITHOUT_HOSTS, explanation.as_str()),
    };
    let json = settings.runs.json.as_ref();
    round_trips::run(laboratory, what, rows, meaning, json)
}

/// The runs, in their order.
fn rows(settings: &DemoSettings, laboratory: &Laboratory) -> Result<Vec<rtt::Config>, Failure> {
    let seconds = settings.runs.run_for.value.as_secs() as u32;
    let payloads: Vec<u32> = settings
        .runs
        .payloads
        .value
        .iter()
        .map(|size| size.get())
        .collect();
    let mut rows = Vec::new();
    for &datapath in &settings.runs.datapaths.value {
        match laboratory.name_of(datapath)? {
            "udp" => rows.extend(plan::demo(&payloads, seconds)),
            "memory" => rows.extend(plan::quiet("memory", &payloads, seconds)),
            // Beside the sockets, what is left of a round trip without them.
            loopback => {
                rows.extend(plan::quiet(loopback, &payloads, seconds));
                if !settings.runs.datapaths.value.contains(&Datapath::Memory) {
                    rows.extend(plan::quiet("memory", &payloads, seconds));
                }
            }
        }
    }
    rows.iter().try_for_each(laboratory::check)?;
    Ok(rows)
}
