//! isolane as a system under test: an end of round trips or of a stream, with the command line and the output that
//! docs/reference/systems-under-test.md describes. `cargo xtask peers` compares it with other systems.
//!
//! Like its counterparts, this program uses the ordinary API: callbacks, a timer, and a loop that sleeps when idle.

mod arguments;
mod message;
mod round_trip;
mod stamps;
mod stream;
mod usage;

use std::{
    error::Error,
    io::Read,
    process::ExitCode,
    time::{Duration, Instant},
};

use isolane::{Level, Participant, Qos, Waiting, XdpOptions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use arguments::{Arguments, Role};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Period of the check for the peer.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout for finding the peer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay between finding the peer and starting, until the traffic of matching has ended on both sides.
const SETTLE: Duration = Duration::from_millis(200);

/// Datagram size of `--best`: the maximum, which IP fragments.
const BEST_DATAGRAM_BYTES: usize = 65_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("isolane {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("measured_end: {message}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("measured_end: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Outcome<()> {
    // Histories of hundreds of samples of up to 1 MiB.
    let mut builder = Participant::builder(arguments.domain).sample_memory(1 << 30);
    if arguments.by_lane {
        builder = builder.datapath(XdpOptions::default());
    }
    if arguments.spins {
        builder = builder.waiting(Waiting::Spin);
    }
    let participant = builder.build()?;
    match arguments.role {
        Role::Ping => round_trip::ping(&participant, arguments),
        Role::Pong => round_trip::pong(&participant, arguments),
        Role::Writer => stream::write(&participant, arguments),
        Role::Reader => stream::read(&participant, arguments),
    }
}

/// Returns the QoS that all systems use.
fn qos(arguments: &Arguments) -> Qos {
    let qos = if arguments.reliable {
        Qos::reliable()
            .keep_all()
            .max_samples(arguments.max_samples)
            .max_blocking_time(Duration::from_secs(1))
    } else {
        Qos::best_effort().keep_last(1)
    };
    let qos = qos
        .level(Level::clamp(7))
        .max_bytes(message::max_bytes(arguments.payload_bytes));
    let qos = qos.latency_budget(arguments.latency_budget);
    match arguments.best {
        true => qos.max_datagram_bytes(BEST_DATAGRAM_BYTES),
        false => qos,
    }
}

/// Runs the loop until `is_there`, and for [`SETTLE`] more.
fn wait_for_peer(participant: &Participant, is_there: impl Fn() -> bool) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    while !is_there() {
        if Instant::now() >= end {
            return Err("the other end was not found".into());
        }
        participant.run_for(LOOK);
    }
    participant.run_for(SETTLE);
    Ok(())
}

/// Prints that the other end was found, and runs the loop until a line arrives on standard input.
fn print_ready_and_wait(participant: &Participant) -> Outcome<()> {
    println!("ready");
    match run_until_input(participant)? {
        0 => Err("stopped before the start".into()),
        _ => Ok(()),
    }
}

/// Prints that the other end was found, and runs the loop until standard input ends.
fn run_until_stopped(participant: &Participant) -> Outcome<()> {
    println!("ready");
    while run_until_input(participant)? > 0 {}
    Ok(())
}

/// Runs the loop until standard input has bytes or ends, and returns the number of bytes.
fn run_until_input(participant: &Participant) -> Outcome<usize> {
    let input = std::io::stdin();
    let mut ready = [PollFd::new(&input, PollFlags::IN)];
    while poll(&mut ready, Some(&Timespec::default()))? == 0 {
        participant.run_for(LOOK);
    }
    Ok(input.lock().read(&mut [0; 16])?)
}
