//! Repetition of one sample path, in two halves that tools can distinguish. `cargo xtask budgets` counts its
//! instructions, allocations, copies and system calls.
//!
//! ```text
//! cargo build --release --package isolane --example budget
//! budget best-effort-1024 10000
//! valgrind --tool=callgrind --toggle-collect='*::measured_give' budget best-effort-64 10000
//! callgrind_annotate --inclusive=yes callgrind.out.PID
//! ```
//!
//! Two participants share one thread. They communicate over UDP on 127.0.0.1. Paths that begin with `lane-` use AF_XDP
//! over a veth pair between two network namespaces, which requires root. A round is [`measured_give`] and then
//! [`measured_get`], for one sample. Profilers distinguish the halves by these functions. For strace, a call of
//! `getppid`, which isolane never makes, precedes each half and follows the second. A line is written before the first
//! counted round and after the last. Start, matching and end are outside these marks.
//!
//! Under valgrind, reading a clock is a system call instead of a vDSO function. Without `epoll_pwait2`, the loop
//! sleeps in `ppoll`, which costs a few hundred instructions more.

#[path = "../../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
mod hosts;
mod paths;
mod sample;

use std::{error::Error, hint::black_box, os::unix::process::parent_id};

use counting_allocator::allocator_calls_of;
use paths::{Round, Way};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Rounds between two rests.
const REST_EVERY: u32 = 16;

/// Uncounted rounds at the start, until no allocation grows any more.
const WARM_UP: u32 = 300;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, rounds) = match &arguments[..] {
        [way, rounds] => (way, rounds.parse()?),
        _ => return Err("usage: budget WAY ROUNDS".into()),
    };
    let way = Way::parse(way).ok_or("no such way: see `Way` in examples/budget/ways.rs")?;
    way.walk(rounds)
}

/// Runs a path and prints the allocations of its halves.
fn walk(rounds: u32, round: &mut impl Round) -> Outcome<()> {
    for number in 0..WARM_UP {
        round.give(number)?;
        round.get(number)?;
    }
    println!("the samples begin");
    let (mut of_give, mut of_get) = (0, 0);
    for number in WARM_UP..WARM_UP + rounds {
        let mut outcome = Ok(());
        mark();
        of_give += allocator_calls_of(|| outcome = measured_give(round, number));
        outcome?;
        let mut outcome = Ok(());
        mark();
        of_get += allocator_calls_of(|| outcome = measured_get(round, number));
        outcome?;
        mark();
        if number.is_multiple_of(REST_EVERY) {
            round.rest();
        }
    }
    println!("the samples end");
    println!("rounds {rounds}");
    println!("allocations_of_give {of_give}");
    println!("allocations_of_get {of_get}");
    Ok(())
}

/// Makes a system call that nothing else makes, as a mark in a trace.
fn mark() {
    black_box(parent_id());
}

/// Writing half.
#[inline(never)]
fn measured_give(round: &mut impl Round, number: u32) -> Outcome<()> {
    black_box(round).give(number)
}

/// Receiving half.
#[inline(never)]
fn measured_get(round: &mut impl Round, number: u32) -> Outcome<()> {
    black_box(round).get(number)
}
