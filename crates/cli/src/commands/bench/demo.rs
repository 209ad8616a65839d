//! `isolane demo`: a demonstration on this machine.
//!
//! A critical topic makes round trips between two hosts over a link. In some runs a flood fills the link; in others the
//! hosts or participants do other work. By default a few runs are shown as bars; `--full` measures all rows.

use std::time::Duration;

use clap::Args;
use isolane_bench::report::{Shown, summary};
use isolane_bench::scenario::plan::{self, EXECUTOR_PAYLOAD_BYTES, Part, Seconds};
use isolane_bench::scenario::rtt;

use super::environment::{self, BenchEnvironment};
use super::round_trips::{self, RoundTripArguments};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::tell;
use crate::settings::Settings;
use crate::values::{MeasuredDatapath, one_of, payload_of_round_trip, seconds};

/// Duration of a run of the short demo in seconds. Three seconds give a ratio its range.
pub(super) const SUMMARY_SECONDS: u32 = 3;
/// Default duration of a run in seconds with `--full`, so that all runs together take about two minutes.
const RUN_SECONDS: u32 = 2;
/// Default duration in seconds of a run in which the participants' own work disturbs. At 2000 Hz, such a run yields the
/// 10,000 samples that a p99.9 needs.
const INSIDE_SECONDS: u32 = 5;

/// Parts of the demonstration by their words for `--rows`, in display order.
const PARTS: &[(&str, Part)] = &[
    ("link", Part::Link),
    ("arbiter", Part::Arbiter),
    ("lane", Part::Lane),
    ("executor", Part::Executor),
];

#[derive(Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    round_trips: RoundTripArguments,
    /// Measure all rows and print all tables, in about two minutes
    #[arg(long)]
    full: bool,
    /// Set the duration of each run in seconds [default: 3; with --full: 2, and 5 for disturbed runs of the row
    /// `executor`]
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Measure these rows with --full, separated by commas: link (flood on a FIFO link), arbiter (the same, and flood
    /// on a link that sends the most urgent class first), lane (receive load on the hosts; each run adds a mechanism),
    /// executor (load inside the participants, with jobs in FIFO order and by priority) [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_parser = one_of(PARTS),
        requires = "full",
        default_value = "link,arbiter,lane,executor",
        hide_default_value = true
    )]
    rows: Vec<Part>,
    /// Set payload sizes in bytes with --full, 12 to 1400, separated by commas
    #[arg(
        long,
        value_name = "LIST",
        value_parser = payload_of_round_trip,
        requires = "full",
        default_value = "64,512,1024"
    )]
    payload: Vec<u32>,
}

/// Sentence printed before the short measurement begins.
const SHORT_WHAT: &str = "a critical topic, 2000 round trips of 64 B a second between two hosts
in network namespaces of this machine, alone and beside other traffic and work.";

/// Sentence printed before the full measurement begins.
const WHAT: &str = "\
two hosts in network namespaces, a link
between them, and a critical topic that makes 2000 round trips a second: without and with a flood
on the link, with heavy receive work on the hosts, and with work inside its own participants.
Nothing leaves this machine, and nothing remains on it.";

/// Advice on reading the numbers.
const MEANING_OF_NUMBERS: &str = "\
Absolute numbers mean little here, because both hosts, the link and the flood share a few cores of
one machine. Stalls of the machine, which last milliseconds, are part of p99.9 and max (`late max`
shows how late the timers of the sender and of the link were). Compare the median, p99 and the
median of one-second p99s between rows of this run, and quote ratios.";

/// Explanations of the selected parts, and advice on reading the numbers.
fn meaning(parts: &[Part]) -> String {
    let mut paragraphs: Vec<&str> = parts.iter().map(|part| part.meaning()).collect();
    paragraphs.push(MEANING_OF_NUMBERS);
    paragraphs.join("\n\n")
}

impl Demo {
    /// Measures the runs, and prints the bars, or all rows with their explanations.
    pub(crate) fn run(self, settings: &Settings) -> Result<ExitCode, Failure> {
        settings.refuse_duplicates()?;
        let datapaths = &self.round_trips.measured.datapath;
        if !self.full && *datapaths != [MeasuredDatapath::Udp] {
            return Err(Failure::wrong_usage(
                "--datapath needs --full",
                "the short demo has fixed runs: add --full",
            ));
        }
        settings.begin()?;
        let hosts = BenchEnvironment::set_up()?;
        let explanation = hosts.without_hosts();
        if let Some(explanation) = &explanation {
            tell(explanation);
        }
        let mut rows = self.rows(&hosts)?;
        let left_out = hosts.leave_out_lanes(&mut rows);
        let plan = round_trips::Plan { rows, left_out };
        let shown = match self.full {
            true => Shown::EachRun,
            false => Shown::Summary,
        };
        let (what, meaning) = match (explanation, shown) {
            (Some(_), Shown::Summary) => (round_trips::WITHOUT_HOSTS, String::new()),
            (Some(explanation), _) => (round_trips::WITHOUT_HOSTS, explanation),
            (None, Shown::Summary) => (SHORT_WHAT, String::new()),
            (None, _) => (WHAT, meaning(&self.rows)),
        };
        round_trips::run(hosts, what, plan, &meaning, &self.round_trips, shown)
    }

    fn rows(&self, hosts: &BenchEnvironment) -> Result<Vec<rtt::Config>, Failure> {
        let given = self.seconds.map(|time| time.as_secs() as u32);
        if !self.full && hosts.hosts.is_ok() {
            return Ok(summary::plan(given.unwrap_or(SUMMARY_SECONDS)));
        }
        let payloads = match self.full {
            true => self.payload.clone(),
            false => vec![EXECUTOR_PAYLOAD_BYTES],
        };
        let seconds = Seconds {
            link: given.unwrap_or(RUN_SECONDS),
            in_process: given.unwrap_or(INSIDE_SECONDS),
        };
        let mut rows = Vec::new();
        for &datapath in &self.round_trips.measured.datapath {
            match hosts.name_of(datapath)? {
                "udp" => rows.extend(plan::demo(&self.rows, &payloads, seconds)),
                own @ ("memory" | "xdp") => {
                    rows.extend(plan::quiet(own, &payloads, seconds.link));
                }
                // Without test hosts, runs in memory are added, to show the round trip without sockets.
                loopback => {
                    rows.extend(plan::quiet(loopback, &payloads, seconds.link));
                    if !self
                        .round_trips
                        .measured
                        .datapath
                        .contains(&MeasuredDatapath::Memory)
                    {
                        rows.extend(plan::quiet("memory", &payloads, seconds.link));
                    }
                }
            }
        }
        rows.iter().try_for_each(environment::check)?;
        Ok(rows)
    }
}
