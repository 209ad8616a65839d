//! Endpoint of a comparison with other DDS implementations: round trips or a stream of samples. The command line and
//! the output are the same for all systems.
//!
//! ```text
//! cargo build --release --package isolane --example measured_end
//! measured_end pong & measured_end ping --payload-bytes 1024 --seconds 2
//! ```
//!
//! `lab/interop/measured/end.h` defines the roles, options and output; `cargo xtask peers` runs these programs in
//! network namespaces. Like its counterparts, this program uses the ordinary API: callbacks, a timer, and a loop that
//! sleeps when idle.

mod arguments;
mod message;
mod round_trip;
mod stream;
mod usage;

use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

use isolane::{Level, Participant, Qos, Waiting, XdpOptions};

use arguments::{Arguments, Role};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Period of the check for the peer.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout for finding the peer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay between finding the peer and starting, until the traffic of matching has ended on both sides.
const SETTLE: Duration = Duration::from_millis(200);
/// Additional timeout for the peer's departure, beyond the measured time.
const GRACE: Duration = Duration::from_secs(15);

/// Datagram size of `--best`: the maximum, which IP fragments.
const BEST_DATAGRAM_BYTES: usize = 65_000;

fn main() -> ExitCode {
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

/// Runs the loop until `is_gone`.
fn wait_for_departure(
    participant: &Participant,
    arguments: &Arguments,
    is_gone: impl Fn() -> bool,
) -> Outcome<()> {
    let end = Instant::now() + Duration::from_secs(arguments.seconds) + GRACE;
    while !is_gone() {
        if Instant::now() >= end {
            return Err("the other end has not left".into());
        }
        participant.run_for(LOOK);
    }
    Ok(())
}
