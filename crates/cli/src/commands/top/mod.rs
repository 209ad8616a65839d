//! `isolane top`: shows the live state of the isolane processes on this host, as they report it.
//!
//! `discovery` connects to the processes that [`super::observable`] finds in this network namespace, and reads a snapshot
//! of each participant per second. `sample` computes rates from two snapshots, and is the JSON form. `lines` is the
//! text form. `view` is a scrollable view on the terminal.
//!
//! Snapshots are not trusted: their length is limited, and control characters are not shown.

pub(super) mod discovery;
mod lines;
pub(super) mod sample;
mod selection;
mod view;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use self::discovery::Watcher;
use self::sample::Sample;
use self::selection::{Order, Selection};
use self::view::{View, Wish};
use super::participant::Until;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{JsonLines, count_of, print};
use crate::settings::Settings;
use crate::values::{Destination, seconds, word};

/// Interval at which the connections are read.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval between samples. Participants send snapshots at the same interval.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// Maximum wait for a sample with rates, which need two snapshots of each participant, one second apart.
const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Print the present state and exit
    #[arg(long, conflicts_with = "seconds")]
    once: bool,
    /// Stop after this many seconds [default: no limit]
    #[arg(long, value_name = "N", value_parser = seconds())]
    seconds: Option<Duration>,
    /// Show only topics whose name contains this text, with their participants and flows [default: all]
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    topic: String,
    /// Sort topics by level, topic or rate
    #[arg(long, value_name = "WORD", value_parser = word::<Order>(), default_value = "level")]
    sort: Order,
    /// Write a line of JSON each second, with all participants and their rates; `-` prints JSON instead of text
    ///
    /// The first line is written after two snapshots, because rates need both. A participant that has started since the
    /// previous line has no rates yet. --topic and --sort do not change the JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<Destination>,
}

impl Top {
    fn selection(&self) -> Selection {
        Selection {
            topic: self.topic.clone(),
            order: self.sort,
        }
    }

    /// Shows samples until the time is over or the user ends the command. With `--once`, shows a single sample.
    pub(super) fn run(self, mut settings: Settings) -> Result<ExitCode, Failure> {
        // The default is all domains, because the command observes processes.
        let domain = settings.chosen_domain();
        settings.begin()?;
        let until = Until::new(self.seconds)?;
        let mut watcher = Watcher::new(domain);
        let mut output = Output::new(&self)?;
        // Rates need two snapshots of each participant, and programs rely on the rates of each line of JSON.
        let mut sample = if self.once || self.json.is_some() {
            settled_sample(&mut watcher, &|| until.over())?
        } else {
            look(&mut watcher)?;
            watcher.sample()
        };
        output.show(&sample)?;
        let mut next = Instant::now() + SAMPLE_EVERY;
        while !self.once && !until.over() {
            if output.wait(until.left(LOOK_EVERY))? == Wish::Quit {
                return Ok(ExitCode::Done);
            }
            look(&mut watcher)?;
            if Instant::now() >= next {
                next += SAMPLE_EVERY;
                sample = watcher.sample();
                output.show(&sample)?;
            }
        }
        // The last line of JSON has rates also of participants that started just before.
        if !self.once && output.json.is_some() && !until.interrupted() && !sample.has_rates() {
            sample = settled_sample(&mut watcher, &|| until.interrupted())?;
            output.show(&sample)?;
        }
        Ok(verdict(&sample, &until))
    }
}

/// Waits until every participant has sent two snapshots or has a problem, at most `PATIENCE`.
fn settled_sample(watcher: &mut Watcher, is_over: &dyn Fn() -> bool) -> Result<Sample, Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        look(watcher)?;
        if watcher.is_settled() || Instant::now() >= end || is_over() {
            return Ok(watcher.sample());
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn look(watcher: &mut Watcher) -> Result<(), Failure> {
    watcher.look().map_err(|error| {
        Failure::forbidden(
            "the participants of this host cannot be found",
            format!("/proc/net/unix: {error}"),
        )
        .with_remedy("mount /proc: mount -t proc proc /proc")
    })
}

fn verdict(sample: &Sample, until: &Until) -> ExitCode {
    if until.interrupted() {
        ExitCode::Interrupted
    } else if sample.has_snapshot() {
        ExitCode::Done
    } else {
        ExitCode::AnswerIsNo
    }
}

/// Outputs to which samples are written.
struct Output {
    json: Option<JsonLines>,
    selection: Selection,
    people: People,
    /// Number of printed samples.
    printed: u64,
}

/// Output for people.
enum People {
    /// Live view on a terminal.
    View(Box<View>),
    Text,
    /// None, because JSON uses standard output.
    Nothing,
}

impl Output {
    fn new(top: &Top) -> Result<Self, Failure> {
        let json = top.json.as_ref();
        let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let people = if json == Some(&Destination::StandardOutput) {
            People::Nothing
        } else if is_terminal && !top.once {
            let view = View::new(top.selection()).map_err(no_terminal)?;
            People::View(Box::new(view))
        } else {
            People::Text
        };
        Ok(Self {
            json: json.map(JsonLines::new).transpose()?,
            selection: top.selection(),
            people,
            printed: 0,
        })
    }

    fn show(&mut self, sample: &Sample) -> Result<(), Failure> {
        if let Some(json) = &mut self.json {
            json.write(sample)?;
        }
        match &mut self.people {
            People::View(view) => view.show(title(sample), sample).map_err(no_terminal)?,
            People::Text => {
                let lines = lines::of(sample, &self.selection);
                let blank = if self.printed > 0 { "\n" } else { "" };
                let text: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
                print(&format!("{blank}{}\n{}\n", title(sample), text.join("\n")))?;
            }
            People::Nothing => {}
        }
        self.printed += 1;
        Ok(())
    }

    fn wait(&mut self, time: Duration) -> Result<Wish, Failure> {
        let People::View(view) = &mut self.people else {
            thread::sleep(time);
            return Ok(Wish::Nothing);
        };
        let wish = view.wait(time).map_err(no_terminal)?;
        if wish == Wish::Draw {
            view.draw().map_err(no_terminal)?;
        }
        Ok(wish)
    }
}

fn title(sample: &Sample) -> String {
    let participants = sample.participants.len() as u64;
    let mut processes: Vec<u32> = sample.participants.iter().map(|seen| seen.pid).collect();
    processes.sort_unstable();
    processes.dedup();
    let many = match processes.len() {
        1 => String::from("1 process"),
        more => format!("{more} processes"),
    };
    let at = sample.at.split('.').next().unwrap_or_default();
    format!(
        "isolane top  {at}Z  {} of {many}",
        count_of(participants, "participant")
    )
}

fn no_terminal(error: io::Error) -> Failure {
    Failure::forbidden("the terminal cannot be used", error.to_string())
        .with_remedy("isolane top | cat (plain text), isolane top --json - (for programs)")
}
