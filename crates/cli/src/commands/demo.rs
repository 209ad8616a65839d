//! `isolane demo`: a demonstration on this machine.
//!
//! A critical topic makes round trips between two hosts over a link; a flood fills the link, or the participants do
//! other work.

use isolane_bench::scenario::plan::{self, Part, Seconds};
use isolane_bench::scenario::rtt;

use super::laboratory::{self, Laboratory};
use super::round_trips::{self, Shown};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::DemoSettings;
use crate::values::MeasuredDatapath;

/// Announcement of the measurement.
const WHAT: &str = "\
two hosts in network namespaces, a link
between them, and a critical topic that makes 2000 round trips a second: without and with a flood
on the link, with heavy receive work on the hosts, and with work inside its own participants. Nothing
leaves this machine, and nothing of it stays.";

/// Explanations of each part for first-time readers.
const MEANING_OF_LINK: &str = "\
What this shows. A critical topic (level 7, 2000 round trips a second) and a flood share one
network stack and one link of 40 Mbit/s that sends frames in the order they came. Whatever the
flood puts into that queue first, the critical sample waits for; when the queue is full, the
critical sample is dropped like any other. These rows are the problem.

The flood's datagrams have 512 B beside smaller payloads too: of 64 B ones the link would take more a
second than one core can relay (on a machine of two cores such a flood reached 0.40 of the link's
rate), and a link that is not full shows nothing.";

const MEANING_OF_ARBITER: &str = "\
The strict rows are the same flood on the same link, which now sends the most urgent class first, as
a network controller with several queues does. Nothing else has changed: isolane gives every level
a socket, a UDP port and a DSCP of its own, and that is what the link tells them apart by. What is
left is at most one frame of the flood on the wire, each way, and the hosts' own work.";

const MEANING_OF_LANE: &str = "\
The storm rows are beside short multicast datagrams (10000 a second, both ways together), each of which
the kernel delivers to 250 sockets on each host: the link has room, the receiving core has not. One
remedy at a time: a socket for all levels; a socket a level; the link puts critical frames into a receive
queue of their own, and kernel threads serve the queues, the critical one's above the application, the
other's below it; AF_XDP, past the shared stack, with one lane for all levels; a lane a level; and
budgets, which drop in the driver what would become receive work beyond them. The last rows are beside a
flood that a bulk reader of the same participants gets: there the budget is that reader's. Compare the
hosts' part. The ratios over all payloads are computed from this run; a row of fewer than three seconds has
no ratio of its own.";

const MEANING_OF_EXECUTOR: &str = "\
The rows joining, bulk and repair are disturbed by work of the participants themselves: two hundred
endpoints that appear and leave; reliable bulk both ways (level 1); the same with a tenth of its
samples lost and repaired. In FIFO order jobs run as they became ready, and all levels share one
socket; by priority the most urgent job is chosen each time and each level has a socket. A priority
inversion is less urgent work that began while a critical sample was waiting: by priority there is
none, whatever the load, and a critical sample waits at most for the one activation that was running.
The link is fast here (10000 Mbit/s), the same for both orders, and each end has a core of its own,
where the machine has two: what the order of jobs is answerable for is the hosts' part. In it is also
what no order can change: the kernel's receive work, and the relay, which takes the pong end's core
for each frame it carries. So p99.9 and max may be the machine's in either order: compare the median
and p99 of the hosts' part. The inversions are the proof.";

/// Outlook, and advice on reading the numbers.
const MEANING_OF_NUMBERS: &str = "\
In later versions one row will stand beside these: the machine's own tuning.

Absolute numbers mean little here: both hosts, the link and the flood share a few cores of one
machine, whose own stalls of milliseconds are in p99.9 and max (see `late max`: how late the
sender's and the link's timers were). Compare the median, p99 and the median of one-second p99s
between rows of this run, and quote ratios.";

/// Explanations of the selected parts.
fn meaning(parts: &[Part]) -> String {
    let of_part = |part: &Part| match part {
        Part::Link => MEANING_OF_LINK,
        Part::Arbiter => MEANING_OF_ARBITER,
        Part::Lane => MEANING_OF_LANE,
        Part::Executor => MEANING_OF_EXECUTOR,
    };
    let mut paragraphs: Vec<&str> = parts.iter().map(of_part).collect();
    paragraphs.push(MEANING_OF_NUMBERS);
    paragraphs.join("\n\n")
}

/// Measures all rows, and prints them with their explanations.
pub(crate) fn run(settings: DemoSettings) -> Result<ExitCode, Failure> {
    let laboratory = Laboratory::set_up()?;
    let explanation = laboratory.without_hosts();
    if let Some(explanation) = &explanation {
        tell(explanation);
    }
    let mut rows = rows(&settings, &laboratory)?;
    let left_out = laboratory.leave_out_lanes(&mut rows);
    let (what, meaning) = match explanation {
        None => (WHAT, meaning(&parts_of(&settings))),
        Some(explanation) => (round_trips::WITHOUT_HOSTS, explanation),
    };
    round_trips::run(
        laboratory,
        what,
        round_trips::Plan { rows, left_out },
        &meaning,
        &settings.runs,
        Shown::EachRun,
    )
}

fn parts_of(settings: &DemoSettings) -> Vec<Part> {
    settings
        .parts
        .value
        .iter()
        .map(|part| part.in_plan())
        .collect()
}

fn rows(settings: &DemoSettings, laboratory: &Laboratory) -> Result<Vec<rtt::Config>, Failure> {
    let seconds = settings.runs.run_for.value.as_secs() as u32;
    let inside = settings.run_inside_for.value.as_secs() as u32;
    let parts = parts_of(settings);
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
            "udp" => rows.extend(plan::demo(
                &parts,
                &payloads,
                Seconds {
                    link: seconds,
                    in_process: inside,
                },
            )),
            own @ ("memory" | "xdp") => rows.extend(plan::quiet(own, &payloads, seconds)),
            // The memory rows show the round trip without sockets.
            loopback => {
                rows.extend(plan::quiet(loopback, &payloads, seconds));
                if !settings
                    .runs
                    .datapaths
                    .value
                    .contains(&MeasuredDatapath::Memory)
                {
                    rows.extend(plan::quiet("memory", &payloads, seconds));
                }
            }
        }
    }
    rows.iter().try_for_each(laboratory::check)?;
    Ok(rows)
}
