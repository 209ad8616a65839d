//! `isolane-shape-main`: shape program for public DDS interoperability tests, which run one program per vendor.
//!
//! A test runs two or three programs under a pseudo-terminal and reads their output. So each line for which a test may
//! wait has the common wording (`printed`). A program publishes moving shapes, or subscribes to them, with the QoS of
//! its options (`options`). Options and lines that the tests do not define are *beyond the contract*.
//!
//! An option that isolane does not support ends the program at once, with status 2 and the expected words `not
//! supported`, see [`Options::check`](options::Options::check).

#![forbid(unsafe_code)]

/// Prints a line on standard output, see [`output::line`].
macro_rules! say {
    ($($argument:tt)*) => {
        crate::output::line(format_args!($($argument)*))
    };
}

/// Prints a line on standard error, see [`output::warning`].
macro_rules! warn {
    ($($argument:tt)*) => {
        crate::output::warning(format_args!($($argument)*))
    };
}

mod options;
mod output;
mod printed;
mod publisher;
mod qos;
mod shape;
mod subscriber;

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::Parser;
use isolane::{BuildError, Limits, Participant, Timing};
use isolane_datapath::Event;

use options::Options;

/// Error that ends the program early.
type Failure = Box<dyn std::error::Error>;

/// Exit code of wrong usage, and of unsupported options.
const USAGE: u8 = 2;
/// Exit code if the machine has no interface, no memory or no writable output, as of the command `isolane`.
const NOT_ALLOWED: u8 = 3;

#[global_allocator]
static ALLOCATOR: isolane::ExitWithoutMemory = isolane::ExitWithoutMemory;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            let printed = error.print();
            return match printed {
                _ if error.use_stderr() => ExitCode::from(USAGE),
                // A closed pipe is no failure: its reader needs no more output.
                Err(error) if error.kind() != ErrorKind::BrokenPipe => ExitCode::from(NOT_ALLOWED),
                _ => ExitCode::SUCCESS,
            };
        }
    };
    if let Err(problem) = options.check() {
        warn!("isolane-shape-main: {problem}");
        return ExitCode::from(USAGE);
    }
    printed::install_log(options.log_level);
    let ended = run(&options);
    if let Some(error) = output::failure() {
        warn!("isolane-shape-main: standard output cannot be written: {error}");
        return ExitCode::from(NOT_ALLOWED);
    }
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            warn!("isolane-shape-main: {failure}");
            code_of(&failure)
        }
    }
}

/// Returns the exit code of a failure. It is `USAGE` if other options could create the participant or endpoint.
fn code_of(failure: &Failure) -> ExitCode {
    match failure.downcast_ref::<BuildError>() {
        Some(error) if error.is_wrong_setting() => ExitCode::from(USAGE),
        Some(_) => ExitCode::from(NOT_ALLOWED),
        None => ExitCode::FAILURE,
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    output::stop_on_signals()?;
    let mut timing = Timing::default();
    if let Some(period) = options.periodic_announcement {
        timing.announce_period = period;
    }
    let limits = Limits::default();
    let limits = Limits {
        local_endpoints: limits.local_endpoints.max(options.num_topics),
        ..limits
    };
    let mut builder = Participant::builder(options.domain)
        .name("isolane-shape-main")
        .timing(timing)
        .limits(limits)
        // Each slot has room for the largest sample of the tests. Its memory is used only when a sample fills it.
        .sample_memory(usize::MAX)
        .lock_memory(options.lock_memory);
    if let Some(core) = options.core {
        builder = builder.core(core);
    }
    if let Some(priority) = options.priority {
        builder = builder.realtime(priority);
    }
    let participant = builder.build()?;
    if options.publish {
        publisher::run(&participant, options)?;
    } else {
        subscriber::run(&participant, options)?;
    }
    let sent = participant.report().datagrams.total().events;
    let segmented = sent.get(Event::SEGMENTED);
    if segmented > 0 {
        warn!("{segmented} segmented bursts sent");
    }
    say!("Done.");
    Ok(())
}
