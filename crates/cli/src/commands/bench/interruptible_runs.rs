//! Sequence of measurement runs. Results of finished runs are kept if a run fails or a signal interrupts.
//!
//! ```text
//!   worker thread: runs  --+
//!                          +--> events --> this thread: progress, then the finished results
//!   signal thread: stop  --+
//! ```
//!
//! On an interruption this thread returns at once. The worker thread ends with the process, as do its child processes.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{process, thread};

use indicatif::{ProgressBar, ProgressStyle};
use isolane_bench::child::kill_all;
use isolane_bench::report::Missing;
use isolane_bench::scenario::ScenarioError;

use super::environment::{self, BenchEnvironment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::output::{count_of, tell};

/// Update interval of the progress bar.
const TICK: Duration = Duration::from_millis(200);
/// Expected time of a run beyond its duration: to start processes, to discover, and to wait for late messages.
const OVERHEAD: Duration = Duration::from_millis(1_100);
/// Time after an interruption in which this thread may write results. Then the process ends.
const RESULT_GRACE: Duration = Duration::from_millis(800);

/// Planned run.
pub(super) struct Row<C> {
    pub(super) config: C,
    /// Text that distinguishes the run from the others.
    pub(super) title: String,
    pub(super) seconds: u32,
}

pub(super) struct Measured {
    /// Number of finished runs.
    pub(super) finished: usize,
    /// Runs without a result, each with the reason.
    pub(super) missing: Vec<Missing>,
    pub(super) interrupted: bool,
}

enum Event<R> {
    Begun(String),
    Ended(String, Result<R, ScenarioError>),
    Interrupted,
}

/// Executes the runs in order. `what` ends the sentence "N runs of N s, about N: ". `keep` takes the result of
/// each finished run, in the order of the rows.
///
/// # Errors
/// The error of the first failed run, if no run has a result and no signal interrupted.
pub(super) fn measure<C: Send + 'static, R: Send + 'static>(
    hosts: BenchEnvironment,
    what: &str,
    rows: Vec<Row<C>>,
    run: impl Fn(&BenchEnvironment, &C) -> Result<R, ScenarioError> + Send + 'static,
    keep: impl FnMut(R),
) -> Result<Measured, Failure> {
    announce(what, &rows);
    let expected = rows.iter().map(expected).collect();
    let titles: Vec<String> = rows.iter().map(|row| row.title.clone()).collect();
    let (events, received) = mpsc::channel();
    forward_signals(&hosts, events.clone());
    thread::spawn(move || {
        for row in rows {
            // After an interruption the receiver of events is gone.
            if events.send(Event::Begun(row.title.clone())).is_err() {
                return;
            }
            let result = run(&hosts, &row.config);
            if events.send(Event::Ended(row.title, result)).is_err() {
                return;
            }
        }
    });
    collect(&titles, Progress::new(expected), &received, keep)
}

fn announce<C>(what: &str, rows: &[Row<C>]) {
    let mut lengths: Vec<u32> = rows.iter().map(|row| row.seconds).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let lengths: Vec<String> = lengths.iter().map(u32::to_string).collect();
    let all = expected_of_all(rows);
    tell(format!(
        "{} of {} s, about {}: {what}",
        count_of(rows.len() as u64, "run"),
        lengths.join(" or "),
        in_words(all)
    ));
}

pub(super) fn expected_of_all<C>(rows: &[Row<C>]) -> Duration {
    rows.iter().map(expected).sum()
}

fn expected<C>(row: &Row<C>) -> Duration {
    Duration::from_secs(row.seconds.into()) + OVERHEAD
}

fn collect<R>(
    titles: &[String],
    mut progress: Progress,
    events: &Receiver<Event<R>>,
    mut keep: impl FnMut(R),
) -> Result<Measured, Failure> {
    let mut measured = Measured {
        finished: 0,
        missing: Vec::new(),
        interrupted: false,
    };
    let mut first_failure = None;
    let mut ended = 0;
    while ended < titles.len() {
        match events.recv_timeout(TICK) {
            Err(RecvTimeoutError::Timeout) => progress.tick(),
            Ok(Event::Begun(title)) => progress.begin(&title),
            Ok(Event::Ended(row, result)) => {
                ended += 1;
                match result {
                    Ok(result) => {
                        keep(result);
                        measured.finished += 1;
                    }
                    Err(error) => {
                        let why = error.to_string();
                        measured.missing.push(Missing { row, why });
                        first_failure.get_or_insert(error);
                    }
                }
            }
            Ok(Event::Interrupted) => {
                measured.interrupted = true;
                break;
            }
            // The worker has panicked, and its message was printed. Finished results are kept.
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(progress);
    match first_failure {
        Some(error) if measured.finished == 0 && !measured.interrupted => {
            Err(environment::failure(&error))
        }
        _ => {
            let why = match measured.interrupted {
                true => "interrupted",
                false => "the measuring thread ended",
            };
            let unfinished = titles[ended..].iter().map(|row| Missing {
                row: row.clone(),
                why: why.to_owned(),
            });
            measured.missing.extend(unfinished);
            if measured.interrupted {
                let (ended, all) = (measured.finished, titles.len());
                tell(format!("interrupted; {ended} of {all} runs are finished"));
            }
            Ok(measured)
        }
    }
}

impl Measured {
    /// Exit code of the command.
    pub(super) fn exit_code(&self, are_valid: bool) -> ExitCode {
        if self.interrupted {
            ExitCode::Interrupted
        } else if self.missing.is_empty() && are_valid {
            ExitCode::Done
        } else {
            ExitCode::AnswerIsNo
        }
    }

    /// Lines that report runs without a result, except runs that a signal prevented.
    pub(super) fn failures(&self) -> String {
        let failed = self.missing.iter();
        failed
            .filter(|missing| !(self.interrupted && missing.why == "interrupted"))
            .map(|missing| format!("NO RESULT: {}: {}\n", missing.row, missing.why))
            .collect()
    }
}

/// Starts a thread that waits for SIGINT, SIGTERM or SIGHUP and sends `Event::Interrupted`. The thread ends the process
/// `RESULT_GRACE` later, or at once if the receiver of events is gone.
fn forward_signals<R: Send + 'static>(hosts: &BenchEnvironment, events: Sender<Event<R>>) {
    let stop = hosts.stop.clone();
    thread::spawn(move || {
        stop.wait();
        let is_measuring = events.send(Event::Interrupted).is_ok();
        // A system under test may have started processes that do not end with this one.
        kill_all();
        if is_measuring {
            thread::sleep(RESULT_GRACE);
        }
        process::exit(ExitCode::Interrupted.number().into());
    });
}

/// Progress of a measurement through parts with expected durations, shown as a bar or as lines of text.
pub(super) struct Progress {
    bar: ProgressBar,
    parts: Vec<Duration>,
    /// Number of parts that have begun.
    begun: usize,
    part_began: Instant,
}

impl Progress {
    /// Creates the progress of parts with the given expected durations.
    pub(super) fn new(parts: Vec<Duration>) -> Self {
        let bar = ProgressBar::new(milliseconds(parts.iter().sum()));
        // If the template does not parse, the default bar is used.
        if let Ok(style) = ProgressStyle::with_template("[{elapsed}] {wide_bar} {prefix}  {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            parts,
            begun: 0,
            part_began: Instant::now(),
        }
    }

    /// Begins the next part.
    pub(super) fn begin(&mut self, what: &str) {
        self.begun += 1;
        self.part_began = Instant::now();
        if self.bar.is_hidden() {
            tell(format!(
                "{}/{} (about {} left): {what}",
                self.begun,
                self.parts.len(),
                in_words(self.left())
            ));
        } else {
            self.bar.set_message(what.to_owned());
            self.tick();
        }
    }

    /// Updates the bar.
    pub(super) fn tick(&self) {
        let passed = self.passed();
        let left = self.left();
        self.bar
            .set_prefix(format!("about {} left", in_words(left)));
        self.bar.set_position(milliseconds(passed));
    }

    /// Expected duration of the remaining parts.
    fn left(&self) -> Duration {
        let all: Duration = self.parts.iter().sum();
        all.saturating_sub(self.passed())
    }

    /// Expected durations of the finished parts, and the time in the current part, at most its expected duration.
    fn passed(&self) -> Duration {
        let Some((current, before)) = self.parts[..self.begun].split_last() else {
            return Duration::ZERO;
        };
        before.iter().sum::<Duration>() + self.part_began.elapsed().min(*current)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Rounded duration: "40 s", "124 s", "19 min".
pub(super) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=180 => format!("{seconds} s"),
        _ => format!("{} min", seconds.div_ceil(60)),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use isolane_bench::scenario::ConfigError;

    use super::*;

    fn error() -> ScenarioError {
        ConfigError::ThreadInMemory.into()
    }

    /// Result of `collect` after these events, and the kept results. The runs have the titles a, b and c.
    fn collected(events: Vec<Event<u32>>) -> Result<(Measured, Vec<u32>), Failure> {
        let (sender, receiver) = mpsc::channel();
        for event in events {
            sender.send(event).expect("the receiver is there");
        }
        let titles = ["a", "b", "c"].map(String::from);
        let progress = Progress::new(vec![Duration::ZERO; 3]);
        let mut kept = Vec::new();
        let measured = collect(&titles, progress, &receiver, |result| kept.push(result))?;
        assert_eq!(measured.finished, kept.len());
        Ok((measured, kept))
    }

    fn ended(row: &str, result: Result<u32, ScenarioError>) -> Event<u32> {
        Event::Ended(row.into(), result)
    }

    #[test]
    fn a_run_that_fails_is_named_and_the_others_are_there() {
        let (measured, kept) = collected(vec![
            ended("a", Ok(1)),
            ended("b", Err(error())),
            ended("c", Ok(3)),
        ])
        .expect("two results");
        assert_eq!(kept, [1, 3]);
        assert!(
            measured
                .failures()
                .starts_with("NO RESULT: b: the memory datapath")
        );
        assert_eq!(measured.exit_code(true), ExitCode::AnswerIsNo);
    }

    #[test]
    fn an_interruption_keeps_what_is_finished() {
        let events = vec![
            ended("a", Ok(1)),
            Event::Begun("b".into()),
            Event::Interrupted,
        ];
        let (measured, kept) = collected(events).expect("a result");
        assert_eq!(kept, [1]);
        let missing: Vec<&str> = measured.missing.iter().map(|m| m.row.as_str()).collect();
        assert_eq!(missing, ["b", "c"]);
        assert_eq!(measured.failures(), "");
        assert_eq!(measured.exit_code(true), ExitCode::Interrupted);
    }

    #[test]
    fn nothing_but_failures_is_a_failure() {
        let rows = ["a", "b", "c"];
        let outcome = collected(rows.iter().map(|row| ended(row, Err(error()))).collect());
        assert!(outcome.is_err_and(|failure| failure.exit_code() == ExitCode::WrongUsage));
    }

    #[test]
    fn times_are_printed_in_seconds_or_minutes() {
        assert_eq!(in_words(Duration::from_millis(39_200)), "40 s");
        assert_eq!(in_words(Duration::from_secs(180)), "180 s");
        assert_eq!(in_words(Duration::from_secs(181)), "4 min");
        assert_eq!(in_words(Duration::from_secs(1_130)), "19 min");
    }

    #[test]
    fn the_bar_advances_within_a_part_and_not_beyond_it() {
        let (long, short) = (Duration::from_secs(1_000), Duration::ZERO);
        let mut progress = Progress::new(vec![long, short, long]);
        assert_eq!(progress.passed(), Duration::ZERO);
        progress.begin("one");
        let passed = progress.passed();
        assert!(passed < long / 2);
        while progress.passed() <= passed {}
        progress.begin("two");
        assert_eq!(
            progress.passed(),
            long,
            "part two is expected to take no time"
        );
        assert_eq!(progress.left(), long);
    }
}
