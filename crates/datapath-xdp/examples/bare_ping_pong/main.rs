//! Lower bound of an AF_XDP round trip: two ends in separate network namespaces, joined by a veth pair, with nothing
//! between the sockets and this program. Baseline for a DDS on the same sockets.
//!
//! ```text
//! bare_ping_pong [--waiting sleep|spin|busy-poll] [--rounds N] [--payload BYTES] [--cores A,B]
//!                [--one-thread] [--json]
//! ```
//!
//! `--payload` is the payload of a UDP datagram with a frame of the same length. Warm-up takes a tenth of the rounds in
//! addition. Needs CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF; sends nothing outside its namespaces.
//!
//! Instructions of a round trip, both ends together. `--one-thread` avoids waiting threads, which would spin:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*in_turn*' \
//!     bare_ping_pong --one-thread --rounds 2000
//! ```
//!
//! Divide the collected instructions by 2,200, which includes the warm-up rounds. Works without hardware counters,
//! which virtual machines often lack.

#[path = "../../tests/bpf/mod.rs"]
mod bpf;
mod end;
#[path = "../../tests/hosts/mod.rs"]
mod hosts;
mod rounds;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use isolane_datapath_xdp::socket::{BusyPoll, OpenError};
use rustix::thread::CpuSet;

use crate::end::{End, HEADERS};
use crate::hosts::{End as Side, Pair};
use crate::rounds::{Times, Waiting};

/// Limit of rounds: ten minutes of the slowest ones.
const MAX_ROUNDS: u32 = 10_000_000;
/// Payload of the longest frame at an MTU of 1,500.
const MAX_PAYLOAD_BYTES: usize = 1_514 - HEADERS;

/// Command-line options.
struct Options {
    waiting: Waiting,
    rounds: u32,
    payload_bytes: usize,
    cores: [usize; 2],
    is_one_thread: bool,
    is_json: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            waiting: Waiting::Spin,
            rounds: 20_000,
            payload_bytes: 64,
            cores: [0, 1],
            is_one_thread: false,
            is_json: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--waiting" => options.waiting = waiting(&value()?)?,
                "--rounds" => options.rounds = number(&value()?, MAX_ROUNDS as usize)? as u32,
                "--payload" => options.payload_bytes = number(&value()?, MAX_PAYLOAD_BYTES)?,
                "--cores" => options.cores = cores(&value()?)?,
                "--one-thread" => options.is_one_thread = true,
                "--json" => options.is_json = true,
                _ => return Err(format!("there is no option {word}")),
            }
        }
        Ok(options)
    }
}

fn waiting(word: &str) -> Result<Waiting, String> {
    let all = [Waiting::Sleep, Waiting::Spin, Waiting::BusyPoll];
    let found = all.into_iter().find(|waiting| waiting.word() == word);
    found.ok_or(format!("{word} is not sleep, spin or busy-poll"))
}

fn number(word: &str, most: usize) -> Result<usize, String> {
    let number = word
        .parse()
        .ok()
        .filter(|number| (1..=most).contains(number));
    number.ok_or(format!("{word} is not a number from 1 to {most}"))
}

fn cores(word: &str) -> Result<[usize; 2], String> {
    let parse = |word: &str| word.parse().ok().filter(|&core| core < CpuSet::MAX_CPU);
    let pair = word.split_once(',');
    let pair = pair.and_then(|(here, there)| Some([parse(here)?, parse(there)?]));
    pair.ok_or(format!("{word} is not two cores, as in 0,1"))
}

/// Pins the calling thread to a core, if the machine has it.
fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &cores) {
        eprintln!("not on core {core}: {error}");
    }
}

fn measure(options: &Options, pair: &Pair) -> Result<Times, OpenError> {
    let open = |side| -> Result<End, OpenError> {
        pair.run(side, || {
            let end = End::open(pair.interface_index(side), options.payload_bytes)?;
            if options.waiting == Waiting::BusyPoll && !options.is_one_thread {
                end.poll_busily(BusyPoll {
                    microseconds: 20,
                    budget: 64,
                })?;
            }
            Ok(end)
        })
    };
    let (mut here, mut there) = (open(Side::A)?, open(Side::B)?);
    let before = options.rounds / 10;
    if options.is_one_thread {
        pin(options.cores[0]);
        rounds::in_turn(&mut here, &mut there, before);
        return Ok(rounds::in_turn(&mut here, &mut there, options.rounds));
    }
    let stop = AtomicBool::new(false);
    Ok(thread::scope(|scope| {
        scope.spawn(|| {
            pin(options.cores[1]);
            rounds::pong(&mut there, options.waiting, &stop);
        });
        pin(options.cores[0]);
        rounds::ping(&mut here, before, options.waiting);
        let times = rounds::ping(&mut here, options.rounds, options.waiting);
        stop.store(true, Ordering::Relaxed);
        times
    }))
}

fn print(options: &Options, times: &mut Times) {
    times.sort_unstable();
    let lost = options.rounds as usize - times.len();
    let at = |per_mille: usize| {
        let last = times.len().saturating_sub(1);
        let time_ns = times.get(last * per_mille / 1_000);
        time_ns.map(|&time_ns| time_ns as f64 / 1_000.0)
    };
    let (min, median, p99) = (at(0), at(500), at(990));
    let word = match options.is_one_thread {
        true => "one-thread",
        false => options.waiting.word(),
    };
    let (bytes, rounds) = (options.payload_bytes, options.rounds);
    if options.is_json {
        let text = |time: Option<f64>| time.map_or("null".into(), |time| format!("{time:.3}"));
        println!(
            "{{\"waiting\":\"{word}\",\"payload_bytes\":{bytes},\"rounds\":{rounds},\"lost\":{lost},\
             \"rtt_us\":{{\"min\":{},\"median\":{},\"p99\":{}}}}}",
            text(min),
            text(median),
            text(p99)
        );
    } else {
        let text = |time: Option<f64>| time.map_or("-".into(), |time| format!("{time:.2} us"));
        println!(
            "{word}, {bytes} B: {rounds} rounds, {lost} lost; min {}, median {}, p99 {}",
            text(min),
            text(median),
            text(p99)
        );
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let Some(pair) = Pair::new(1) else {
        return ExitCode::from(3);
    };
    match measure(&options, &pair) {
        Ok(mut times) => {
            print(&options, &mut times);
            // Without a single answer there is no measurement.
            ExitCode::from(u8::from(times.is_empty()))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}
