//! Lower bound of an AF_XDP round trip: nothing between the sockets and this program, which spins. Baseline for a DDS on
//! the same sockets.
//!
//! As a system under test (docs/reference/systems-under-test.md), it is an end on the first interface of its network
//! namespace: `bare_ping_pong ping|pong --rate-hz N --rounds-file FILE ...`. `--payload-bytes` is the payload of a UDP
//! datagram with a frame of the same length.
//!
//! Instructions of a round trip, both ends together, are counted where no end waits:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*in_turn*' \
//!     bare_ping_pong --one-thread --rounds 2000
//! ```
//!
//! Divide the collected instructions by the rounds. Works without hardware counters, which virtual machines often lack.
//! Needs CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.

#[path = "../../tests/bpf/mod.rs"]
mod bpf;
mod end;
#[path = "../../tests/hosts/mod.rs"]
mod hosts;
#[path = "../../../dds/examples/measured_end/stamps.rs"]
mod stamps;

use std::error::Error;
use std::hint::spin_loop;
use std::io::{self, BufRead};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::net::{AddressFamily, SocketType, netdevice, socket};

use crate::end::End;
use crate::hosts::{End as Side, Pair};
use crate::stamps::{Rounds, now_ns};

/// Number of the frames by which ends find each other.
const HELLO: u64 = u64::MAX;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Interval of these frames.
const HELLO_EVERY_NS: u64 = 10_000_000;
/// Time from the start to the first ping.
const LEAD_NS: u64 = 100_000_000;
/// Time after the last ping in which pongs are received.
const LOST_AFTER_NS: u64 = 500_000_000;

/// Looks into a ring before a frame counts as lost, where no end waits.
const ATTEMPTS: u32 = 1_000_000;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bare_ping_pong: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: Vec<String>) -> Outcome<()> {
    // Options whose values do not matter here are part of the contract too.
    let value = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)
    };
    let number = |name: &str| -> Outcome<u64> {
        let text = value(name).ok_or_else(|| format!("{name} needs a value"))?;
        Ok(text
            .parse()
            .map_err(|_| format!("{name}: {text} is no number"))?)
    };
    let role = words.first().map(String::as_str);
    if role == Some("--version") {
        println!("AF_XDP, bare");
        return Ok(());
    }
    if role == Some("--one-thread") {
        let rounds = number("--rounds")?;
        let pair = Pair::new(1).ok_or("no network namespaces")?;
        let open = |side| pair.run(side, || End::open(pair.interface_index(side), 64));
        let (mut here, mut there) = (open(Side::A)?, open(Side::B)?);
        return match in_turn(&mut here, &mut there, rounds) {
            all if all == rounds => Ok(()),
            some => Err(format!("{some} of {rounds} rounds came back").into()),
        };
    }
    let rate_hz = number("--rate-hz")?.max(1);
    let (samples, seed) = (number("--seconds")? * rate_hz, number("--seed")?);
    let file = Path::new(value("--rounds-file").ok_or("no --rounds-file")?);
    let payload_bytes = number("--payload-bytes")? as usize;
    let mut end = End::open(first_interface()?, payload_bytes)?;
    match role {
        Some("ping") => ping(&mut end, rate_hz, Rounds::new(samples as usize, seed), file),
        Some("pong") => pong(&mut end, Rounds::new(samples as usize, seed), file),
        _ => Err("say `ping` or `pong` first; there are no streams".into()),
    }
}

/// Index of the first interface that is not the loopback.
fn first_interface() -> Outcome<u32> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let is_device = |index: &u32| {
        let name = netdevice::index_to_name(&any, *index);
        name.is_ok_and(|name| name != "lo")
    };
    // Other namespaces of the machine take numbers too.
    (1..100_000)
        .find(is_device)
        .ok_or_else(|| "no interface".into())
}

/// Message of a round: its id, and above it its nonce.
fn message<const N: usize>(rounds: &Rounds<N>, id: u32) -> u64 {
    u64::from(id) | u64::from(rounds.nonce(id)) << 32
}

fn parts(message: u64) -> (u32, u32) {
    (message as u32, (message >> 32) as u32)
}

fn ping(end: &mut End, rate_hz: u64, mut rounds: Rounds<3>, file: &Path) -> Outcome<()> {
    let mut hello_ns = 0;
    while end.take() != Some(HELLO) {
        if now_ns() - hello_ns > HELLO_EVERY_NS {
            end.send(HELLO);
            hello_ns = now_ns();
        }
    }
    println!("ready");
    io::stdin().lock().read_line(&mut String::new())?;
    let take_until = |end: &mut End, rounds: &mut Rounds<3>, time_ns| {
        while now_ns() < time_ns {
            match end.take().map(parts) {
                Some((id, nonce)) => _ = rounds.received(2, id, nonce),
                None => spin_loop(),
            }
        }
    };
    let begin_ns = now_ns() + LEAD_NS;
    for id in 0..rounds.stamps_ns.len() {
        let due_ns = begin_ns + id as u64 * (NANOS_PER_SECOND / rate_hz);
        take_until(end, &mut rounds, due_ns);
        rounds.stamps_ns[id][..2].copy_from_slice(&[due_ns, now_ns()]);
        end.send(message(&rounds, id as u32));
    }
    take_until(end, &mut rounds, now_ns() + LOST_AFTER_NS);
    Ok(rounds.write(file)?)
}

fn pong(end: &mut End, mut rounds: Rounds<2>, file: &Path) -> Outcome<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let of_input = Arc::clone(&stop);
    thread::spawn(move || {
        // Ends with the input.
        io::stdin().lock().lines().for_each(drop);
        of_input.store(true, Ordering::Relaxed);
    });
    while end.resend(|_| ()) != Some(HELLO) {
        spin_loop();
    }
    println!("ready");
    while !stop.load(Ordering::Relaxed) {
        end.resend(|message| {
            let (id, nonce) = parts(message);
            if rounds.received(0, id, nonce) {
                rounds.stamps_ns[id as usize][1] = now_ns();
            }
        });
        spin_loop();
    }
    Ok(rounds.write(file)?)
}

/// Runs both ends in turn on this thread, and returns the number of rounds that came back. Neither end waits, so the
/// instructions of a round can be counted.
#[inline(never)]
fn in_turn(here: &mut End, there: &mut End, rounds: u64) -> u64 {
    let is_back = |round: &u64| {
        here.send(*round);
        let answered = (0..ATTEMPTS).any(|_| there.resend(|_| ()).is_some());
        answered && (0..ATTEMPTS).any(|_| here.take() == Some(*round))
    };
    (0..rounds).filter(is_back).count() as u64
}
