//! Process of a large domain: `cargo xtask domain-size` starts hundreds of them, each on its own host.
//!
//! ```text
//! domain_member member PROCESS PROCESSES       five writers, five readers, all reliable
//! domain_member critical-writer                a sample of level 7 each 10 ms
//! domain_member critical-reader
//! ```
//!
//! Topic *t* is written by five processes and read by five others; there are as many topics as processes. A member
//! prints `started`, then `matched` when each of its endpoints has its five peers. At a line on standard input its
//! writers write [`SAMPLES`] each; it prints `delivered` when its readers have all samples. At the end of standard
//! input each role prints its counts as one line of JSON, and ends.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::io::{self, BufRead, Write as _};
use std::rc::Rc;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use std::thread;
use std::time::Duration;

use isolane::{DataReader, DataWriter, Instant, Level, Participant, Qos, TopicType, Waiting};
use serde_json::{Value, json};

/// Writers and readers of a member, and also writers and readers of a topic.
const ENDS: u32 = 5;
/// Number of samples of each writer of a member.
const SAMPLES: u32 = 20;
/// Time between two of them.
const PERIOD: Duration = Duration::from_millis(100);
/// Levels of members' topics: 0 to 3.
const LEVELS: u32 = 4;
/// Time between two critical samples.
const CRITICAL_PERIOD: Duration = Duration::from_millis(10);
/// DEADLINE and history depth of the critical topic: virtual machines stall for ten periods and more.
const CRITICAL_DEADLINE: Duration = Duration::from_millis(250);
const CRITICAL_HISTORY: u16 = 64;
/// SCHED_FIFO priority of the critical processes, if the system allows it.
const CRITICAL_PRIORITY: u8 = 70;
/// Maximum time between two checks of standard input.
const LOOK: Duration = Duration::from_millis(50);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(TopicType, Clone, Default)]
struct Sample {
    process: u32,
    number: u32,
    rest: [u8; 24],
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["member", process, processes] => member(process.parse()?, processes.parse()?),
        ["critical-writer"] => write_critical(),
        ["critical-reader"] => read_critical(),
        _ => Err(
            "usage: domain_member member PROCESS PROCESSES | critical-writer | critical-reader"
                .into(),
        ),
    }
}

/// Number of lines read from standard input.
struct Input(Arc<AtomicU32>);

impl Input {
    const ENDED: u32 = u32::MAX;

    /// Reads standard input on a separate thread.
    fn watch() -> Self {
        let lines = Arc::<AtomicU32>::default();
        let counted = Arc::clone(&lines);
        thread::spawn(move || {
            for _ in io::stdin().lock().lines().map_while(io::Result::ok) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            counted.store(Self::ENDED, Ordering::Relaxed);
        });
        Self(lines)
    }

    fn has_line(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::ENDED
    }
}

fn say(line: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// Samples of one process delivered to a reader, in order.
#[derive(Default)]
struct Delivered {
    counts: [u32; ENDS as usize],
    out_of_order: u32,
}

fn member(process: u32, processes: u32) -> Result<()> {
    if processes < 2 * ENDS {
        return Err(format!("{processes} processes are too few: at least {}", 2 * ENDS).into());
    }
    let participant = Participant::builder(0)
        .name(&format!("domain_member {process}"))
        .build()?;
    let qos = |topic: u32| {
        let qos = Qos::reliable().keep_all().max_samples(64);
        qos.level(Level::clamp((topic % LEVELS) as i32))
    };
    let name = |topic: u32| format!("Topic {topic} of {processes}");
    let mut writers: Vec<DataWriter<Sample>> = Vec::new();
    let mut readers: Vec<(u32, DataReader<Sample>)> = Vec::new();
    let delivered: Vec<Rc<RefCell<Delivered>>> = (0..ENDS).map(|_| Rc::default()).collect();
    for nth in 0..ENDS {
        let topic = (process + nth) % processes;
        writers.push(participant.create_writer(&name(topic), &qos(topic))?);
        let topic = (process + ENDS + nth) % processes;
        let reader = participant.create_reader::<Sample>(&name(topic), &qos(topic))?;
        let of_topic = Rc::clone(&delivered[nth as usize]);
        reader.on_sample(Sample::default(), move |sample| {
            let Some(sample) = sample.value else { return };
            let writer = (topic + processes - sample.process) % processes;
            let mut delivered = of_topic.borrow_mut();
            match delivered.counts.get(writer as usize).copied() {
                Some(count) if count == sample.number => delivered.counts[writer as usize] += 1,
                _ => delivered.out_of_order += 1,
            }
        })?;
        readers.push((topic, reader));
    }
    say("started")?;
    let input = Input::watch();
    let run = |done: &dyn Fn() -> bool| {
        while !input.has_ended() && !done() {
            participant.run_until(LOOK, done);
        }
    };
    let all = ENDS as usize;
    let is_matched = || {
        writers.iter().all(|it| it.matched_readers() == all)
            && readers.iter().all(|(_, it)| it.matched_writers() == all)
    };
    run(&is_matched);
    if is_matched() {
        say("matched")?;
    } else {
        for (nth, writer) in (0..)
            .zip(&writers)
            .filter(|(_, it)| it.matched_readers() != all)
        {
            let matched = writer.matched_readers();
            let topic = name((process + nth) % processes);
            eprintln!("the writer of {topic:?} has matched {matched} of {all} readers");
        }
        for (topic, reader) in readers.iter().filter(|(_, it)| it.matched_writers() != all) {
            let (topic, matched) = (name(*topic), reader.matched_writers());
            eprintln!("the reader of {topic:?} has matched {matched} of {all} writers");
        }
        let (writers, readers) = (
            participant.publications().len(),
            participant.subscriptions().len(),
        );
        eprintln!("{writers} writers and {readers} readers are known");
    }
    while !input.has_line() && !input.has_ended() {
        participant.run_for(LOOK);
    }
    let mut refused = 0;
    for number in 0..SAMPLES {
        let sample = Sample {
            process,
            number,
            ..Sample::default()
        };
        refused += writers
            .iter()
            .filter(|it| it.write(&sample).is_err())
            .count();
        participant.run_for(PERIOD);
    }
    run(&|| {
        let mut all = delivered.iter().map(|it| it.borrow());
        all.all(|it| it.counts == [SAMPLES; ENDS as usize])
    });
    let pairs: usize = readers.iter().map(|(_, it)| it.matched_writers()).sum();
    say("delivered")?;
    run(&|| false);
    let mut lacking = Vec::new();
    for (of_topic, (topic, _)) in delivered.iter().zip(&readers) {
        for (nth, &count) in (0..).zip(&of_topic.borrow().counts) {
            if count != SAMPLES {
                let writer = (topic + processes - nth) % processes;
                lacking.push(format!(
                    "process {process} has {count} of {SAMPLES} samples of {:?} from process {writer}",
                    name(*topic)
                ));
            }
        }
    }
    let out_of_order = delivered.iter().map(|it| it.borrow().out_of_order);
    let mut counted = json!({
        "pairs": pairs,
        "samples": delivered.iter().flat_map(|it| it.borrow().counts).sum::<u32>(),
        "lacking": lacking,
        "out_of_order": out_of_order.sum::<u32>(),
        "writes_refused": refused,
        "repaired": writers.iter().map(|it| it.ledger().repaired).sum::<u64>(),
    });
    add_refusals(&mut counted, &participant);
    say(&counted.to_string())
}

/// Adds the number of peers, and of those refused.
fn add_refusals(counted: &mut Value, participant: &Participant) {
    let counters = participant.counters();
    counted["participants"] = participant.participants().len().into();
    counted["refused"] = json!({
        "participants": counters.participants_refused,
        "endpoints": counters.endpoints_refused,
        "matches": counters.matches_refused,
        "shares": counters.shares_exceeded,
        "announcements": counters.announcements_dropped,
    });
    counted["leases_expired"] = counters.leases_expired.into();
}

fn critical_qos() -> Qos {
    let qos = Qos::reliable().keep_last(CRITICAL_HISTORY);
    qos.level(Level::clamp(7)).deadline(CRITICAL_DEADLINE)
}

/// Creates a participant with the highest priority that the system allows.
fn critical_participant(name: &str) -> Result<Participant> {
    let participant = Participant::builder(0)
        .name(name)
        .realtime(CRITICAL_PRIORITY)
        .require_placement(false)
        .waiting(Waiting::Sleep)
        .build()?;
    for warning in participant.warnings() {
        eprintln!("domain_member {name}: {warning}");
    }
    Ok(participant)
}

fn write_critical() -> Result<()> {
    let participant = critical_participant("critical-writer")?;
    let writer = Rc::new(participant.create_writer::<Sample>("Critical", &critical_qos())?);
    let (of_timer, number) = (Rc::clone(&writer), Rc::new(Cell::new(0)));
    let (written, refused) = (Rc::clone(&number), Rc::new(Cell::new(0_u32)));
    let of_callback = Rc::clone(&refused);
    participant.create_timer(
        "write critical",
        Level::clamp(7),
        CRITICAL_PERIOD,
        Duration::ZERO,
        move |_| {
            if of_timer.matched_readers() == 0 {
                return;
            }
            let sample = Sample {
                process: 0,
                number: number.get(),
                ..Sample::default()
            };
            match of_timer.write(&sample) {
                Ok(()) => number.set(number.get() + 1),
                Err(_) => of_callback.set(of_callback.get() + 1),
            }
        },
    )?;
    run_critical(&participant, || writer.matched_readers() > 0)?;
    let report = participant.report();
    let mut counted = json!({
        "written": written.get(),
        "refused_writes": refused.get(),
        "deadlines_missed": writer.offered_deadline_missed_status().total_count,
        "repaired": writer.ledger().repaired,
        "inversions": report.inversions(),
        "kernel_late": report.kernel_late(),
    });
    add_refusals(&mut counted, &participant);
    say(&counted.to_string())
}

/// Counts of the critical reader's callback.
#[derive(Default)]
struct Arrivals {
    /// Next number in order; `None` before the first sample.
    next: Option<u32>,
    lost: u32,
    out_of_order: u32,
    last: Option<Instant>,
    longest_gap: Duration,
}

fn read_critical() -> Result<()> {
    let participant = critical_participant("critical-reader")?;
    let reader = participant.create_reader::<Sample>("Critical", &critical_qos())?;
    let arrivals = Rc::new(RefCell::new(Arrivals::default()));
    let of_callback = Rc::clone(&arrivals);
    reader.on_sample(Sample::default(), move |sample| {
        let Some(value) = sample.value else { return };
        let mut arrivals = of_callback.borrow_mut();
        let next = arrivals.next.unwrap_or(value.number);
        match value.number.checked_sub(next) {
            Some(0) => {}
            Some(skipped) => {
                arrivals.lost += skipped;
                eprintln!(
                    "{skipped} critical samples lost before number {}",
                    value.number
                );
            }
            None => arrivals.out_of_order += 1,
        }
        arrivals.next = Some(value.number + 1);
        let received = sample.info.received;
        if let Some(last) = arrivals.last {
            let gap = Duration::from_nanos(received.as_nanos().saturating_sub(last.as_nanos()));
            arrivals.longest_gap = arrivals.longest_gap.max(gap);
        }
        arrivals.last = Some(received);
    })?;
    run_critical(&participant, || reader.matched_writers() > 0)?;
    let (arrivals, report) = (arrivals.borrow(), participant.report());
    let mut counted = json!({
        "delivered": reader.ledger().delivered,
        "lost": arrivals.lost,
        "out_of_order": arrivals.out_of_order,
        "deadlines_missed": reader.requested_deadline_missed_status().total_count,
        "inversions": report.inversions(),
        "kernel_late": report.kernel_late(),
        "longest_gap_ms": arrivals.longest_gap.as_secs_f64() * 1e3,
    });
    add_refusals(&mut counted, &participant);
    say(&counted.to_string())
}

/// Runs until the end of standard input; prints `matched` once.
fn run_critical(participant: &Participant, is_matched: impl Fn() -> bool) -> Result<()> {
    say("started")?;
    let input = Input::watch();
    while !input.has_ended() && !is_matched() {
        participant.run_until(LOOK, &is_matched);
    }
    say("matched")?;
    while !input.has_ended() {
        participant.run_for(LOOK);
    }
    Ok(())
}
