//! How many instructions a sample costs, writer to socket and socket to callback: best effort, 64
//! bytes, UDP on 127.0.0.1, without what the kernel does.
//!
//! Two functions are the two halves; callgrind counts what runs inside of one of them.
//!
//! ```text
//! cargo build --release --example instructions
//! for half in write_half receive_half; do
//!     valgrind --tool=callgrind --toggle-collect="instructions::$half" \
//!         --callgrind-out-file=target/callgrind.$half target/release/examples/instructions
//! done
//! callgrind_annotate --inclusive=yes target/callgrind.receive_half
//! ```
//!
//! *Collected*, divided by the number of samples that is printed, is the cost of one: about 830 to
//! write, 3,150 for the turn of the loop that receives, of which 910 receive the burst and 1,300 lead
//! from the received frame to the callback (x86-64, rustc 1.95, 2026-11). `write_half` is
//! one `DataWriter::write`. `receive_half` is one turn of the loop: woken in epoll, burst
//! received, submessages read, view made, callback run, job observed. Under valgrind the clocks are system
//! calls, otherwise functions of the vDSO; and where it has no `epoll_pwait2` the loop sleeps in `ppoll`.

use std::{cell::Cell, error::Error, rc::Rc, time::Duration};

use isolane::{DataWriter, Level, Participant, Qos, TopicType};

const WARM_UP: u32 = 100;
const SAMPLES: u32 = 10_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// 64 bytes, serialised.
#[derive(TopicType)]
struct Sample {
    number: u32,
    rest: [u8; 60],
}

fn main() -> Result<(), Box<dyn Error>> {
    let domain = 1 + std::process::id() % 80;
    let topic = format!("Samples of process {}", std::process::id());
    let qos = Qos::best_effort().level(Level::clamp(7));
    let alice = Participant::builder(domain).loopback().build()?;
    let bob = Participant::builder(domain).loopback().build()?;
    let writer = alice.create_writer::<Sample>(&topic, &qos)?;
    let reader = bob.create_view_reader::<Sample>(&topic, &qos)?;
    let seen = Rc::new(Cell::new(0));
    let of_callback = Rc::clone(&seen);
    reader.on_view(move |sample| of_callback.set(sample.value.map_or(0, |sample| sample.number)));

    let is_matched = || writer.matched_readers() == 1 && reader.matched_writers() == 1;
    for _ in 0..10_000 {
        alice.run_for(Duration::from_millis(1));
        bob.run_for(Duration::from_millis(1));
        if is_matched() {
            break;
        }
    }
    if !is_matched() {
        return Err("the participants have not found each other".into());
    }
    for number in 1..=WARM_UP {
        exchange(&writer, &bob, &seen, number)?;
    }
    for number in WARM_UP + 1..=WARM_UP + SAMPLES {
        write_half(&writer, number)?;
        if !receive_half(&bob, &seen, number) {
            return Err("a sample is missing".into());
        }
    }
    println!("{SAMPLES} samples");
    Ok(())
}

/// Once, uncounted.
fn exchange(
    writer: &DataWriter<Sample>,
    bob: &Participant,
    seen: &Cell<u32>,
    number: u32,
) -> Result<(), Box<dyn Error>> {
    let rest = [0; 60];
    writer.write(&Sample { number, rest })?;
    if !bob.run_until(PATIENCE, || seen.get() == number) {
        return Err("a sample is missing".into());
    }
    Ok(())
}

#[inline(never)]
fn write_half(writer: &DataWriter<Sample>, number: u32) -> Result<(), isolane::WriteError> {
    let rest = [0; 60];
    writer.write(&Sample { number, rest })
}

#[inline(never)]
fn receive_half(bob: &Participant, seen: &Cell<u32>, number: u32) -> bool {
    bob.run_until(PATIENCE, || seen.get() == number)
}
