//! A hundred thousand samples from a publisher's thread to a reader in another participant, over UDP on 127.0.0.1:
//! three threads, no lock.
//!
//! ```text
//! cargo run --release --example hundred_thousand
//! strace -f -c target/release/examples/hundred_thousand
//! ```
//!
//! `tests/no_futex.rs` runs it under strace, and counts system calls between the two marks that it writes. Starts and
//! ends of threads are outside the marks.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use isolane::{Level, Participant, Qos, TopicType, WriterHandle};

const SAMPLES: u32 = 100_000;
/// Maximum samples in flight: best effort loses what overflows a socket's buffer.
const WINDOW: u32 = 64;
const PATIENCE: Duration = Duration::from_secs(300);
const PAUSE: Duration = Duration::from_micros(50);

/// Sample of 64 bytes, serialised.
#[derive(TopicType)]
struct Sample {
    number: u32,
    rest: [u8; 60],
}

/// State that the three threads share without waiting.
#[derive(Default)]
struct Shared {
    received: AtomicU32,
    out_of_order: AtomicU32,
    is_matched: AtomicBool,
    is_over: AtomicBool,
}

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    // Concurrent processes may get the same domain, but never the same topic.
    let domain = 1 + std::process::id() % 80;
    let topic = format!("Samples of process {}", std::process::id());
    let shared = Arc::new(Shared::default());
    let (hand_over, handed_over) = mpsc::channel();

    let (state, name) = (Arc::clone(&shared), topic.clone());
    let receiving = thread::spawn(move || receive(domain, &name, &state));
    let state = Arc::clone(&shared);
    let sending = thread::spawn(move || send(domain, &topic, &state, &hand_over));
    let state = Arc::clone(&shared);
    let publishing = thread::spawn(move || publish(handed_over.recv()?, &state));

    let failures: Vec<_> = [publishing, sending, receiving]
        .into_iter()
        .filter_map(|thread| thread.join().expect("no thread panics").err())
        .collect();
    println!(
        "{} of {SAMPLES} samples received, {} out of order",
        shared.received.load(Ordering::Relaxed),
        shared.out_of_order.load(Ordering::Relaxed)
    );
    failures.into_iter().next().map_or(Ok(()), Err)
}

fn qos() -> Qos {
    Qos::best_effort().level(Level::clamp(7))
}

/// Runs the participant of the reader.
fn receive(domain: u32, topic: &str, shared: &Arc<Shared>) -> Outcome<()> {
    let participant = Participant::builder(domain).loopback().build()?;
    let reader = participant.create_view_reader::<Sample>(topic, &qos())?;
    let of_callback = Arc::clone(shared);
    reader.on_view(move |sample| {
        let expected = of_callback.received.fetch_add(1, Ordering::Relaxed);
        if sample.value.is_none_or(|sample| sample.number != expected) {
            of_callback.out_of_order.fetch_add(1, Ordering::Relaxed);
        }
    });
    participant.run_while(|| !shared.is_over.load(Ordering::Relaxed));
    Ok(())
}

/// Runs the participant of the writer handle.
fn send(
    domain: u32,
    topic: &str,
    shared: &Shared,
    hand_over: &mpsc::Sender<WriterHandle<Sample>>,
) -> Outcome<()> {
    let participant = Participant::builder(domain).loopback().build()?;
    let writer = participant.create_writer_handle::<Sample>(topic, &qos())?;
    let handed_over = hand_over.send(writer);
    handed_over.map_err(|_| "the publisher is gone")?;
    let is_matched = || participant.report().writers[0].matched == 1;
    if !participant.run_until(PATIENCE, is_matched) {
        shared.is_over.store(true, Ordering::Relaxed);
        return Err("the reader was not found".into());
    }
    shared.is_matched.store(true, Ordering::Relaxed);
    participant.run_while(|| !shared.is_over.load(Ordering::Relaxed));
    Ok(())
}

/// Publishes on its own thread.
fn publish(mut writer: WriterHandle<Sample>, shared: &Shared) -> Outcome<()> {
    let wait_for = |condition: &dyn Fn() -> bool| {
        let end = Instant::now() + PATIENCE;
        while !condition() && !shared.is_over.load(Ordering::Relaxed) && Instant::now() < end {
            thread::sleep(PAUSE);
        }
    };
    let received = || shared.received.load(Ordering::Relaxed);
    wait_for(&|| shared.is_matched.load(Ordering::Relaxed));
    // Wait for the end of the traffic after matching (responses, first heartbeats).
    thread::sleep(Duration::from_millis(200));

    mark("the samples begin");
    for number in 0..SAMPLES {
        wait_for(&|| number - received() < WINDOW);
        let sample = Sample {
            number,
            rest: [0; 60],
        };
        while writer.write(&sample).is_err() {
            thread::sleep(PAUSE);
        }
    }
    wait_for(&|| received() == SAMPLES);
    mark("the samples end");

    shared.is_over.store(true, Ordering::Relaxed);
    if received() != SAMPLES {
        return Err("samples are missing".into());
    }
    Ok(())
}

/// Makes a system call that is visible in a trace.
fn mark(text: &str) {
    // No other thread uses the lock of the standard library here.
    eprintln!("{text}");
}
