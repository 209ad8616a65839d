//! Stream of samples in one direction, at maximum or a fixed rate.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

use isolane::{DataReader, DataWriter, Level, Participant, Sample, WriteError};
use isolane_rtps::limits::MAX_DATA_PAYLOAD_BYTES;

use crate::{
    Outcome,
    arguments::Arguments,
    message::{Message, max_bytes},
    print_ready_and_wait, qos, run_until_stopped,
    usage::{self, CpuMeter},
    wait_for_peer,
};

const TOPIC: &str = "Throughput";
/// Writes between two iterations of the loop, if writing does not run it.
const WRITES_PER_LOOK: u64 = 256;
/// Unsent long samples from which on the loop runs: it sends their fragments, and a writer keeps sixteen such samples.
const MAX_PENDING: u64 = 8;
/// Timeout for the acknowledgement of the last samples.
const ACKNOWLEDGE: Duration = Duration::from_secs(5);
/// Time for the last samples to arrive before the writer is deleted.
const DRAIN: Duration = Duration::from_millis(300);

/// Counts of the writing side.
#[derive(Default)]
struct Written {
    samples: u64,
    refused: u64,
    cpu: CpuMeter,
}

impl Written {
    fn write(&mut self, writer: &DataWriter<Message>, message: &mut Message) {
        message.id = self.samples as u32;
        self.cpu.note(self.samples);
        match writer.write(message) {
            Ok(()) => self.samples += 1,
            Err(_) => self.refused += 1,
        }
    }
}

pub(crate) fn write(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let writer = participant.create_writer::<Message>(TOPIC, &qos(arguments))?;
    wait_for_peer(participant, || {
        writer.matched_readers() >= arguments.readers
    })?;
    print_ready_and_wait(participant)?;
    let begin = Instant::now();
    let time = Duration::from_secs(arguments.seconds);
    let (written, writer) = if arguments.rate_hz == 0 {
        (
            write_at_full_speed(participant, &writer, arguments, time)?,
            writer,
        )
    } else {
        write_at_rate(participant, writer, arguments, time)?
    };
    let elapsed = begin.elapsed();

    println!("samples {}", written.samples);
    println!("refused {}", written.refused);
    println!("elapsed_ns {}", elapsed.as_nanos());
    written.cpu.print();
    usage::print_process()?;
    if arguments.reliable && !writer.wait_for_acknowledgments(ACKNOWLEDGE) {
        return Err("not all samples were acknowledged".into());
    }
    participant.run_for(DRAIN);
    Ok(())
}

fn write_at_full_speed(
    participant: &Participant,
    writer: &DataWriter<Message>,
    arguments: &Arguments,
    time: Duration,
) -> Result<Written, WriteError> {
    let mut message = Message::of_size(arguments.payload_bytes);
    let mut written = Written::default();
    let is_long = !arguments.best && max_bytes(arguments.payload_bytes) > MAX_DATA_PAYLOAD_BYTES;
    let begin = Instant::now();
    while begin.elapsed() < time {
        written.write(writer, &mut message);
        if arguments.reliable {
            continue;
        }
        if written.samples.is_multiple_of(WRITES_PER_LOOK) {
            participant.poll();
        }
        while is_long && writer.ledger().pending >= MAX_PENDING && begin.elapsed() < time {
            participant.poll();
        }
    }
    Ok(written)
}

/// Writes from a timer on the loop, at the topic's priority.
fn write_at_rate(
    participant: &Participant,
    writer: DataWriter<Message>,
    arguments: &Arguments,
    time: Duration,
) -> Outcome<(Written, DataWriter<Message>)> {
    let period = Duration::from_nanos(1_000_000_000 / arguments.rate_hz);
    let mut message = Message::of_size(arguments.payload_bytes);
    let shared = Rc::new((RefCell::new(Written::default()), writer));
    let of_timer = Rc::clone(&shared);
    let timer = participant.create_timer(
        "samples",
        Level::clamp(7),
        period,
        Duration::ZERO,
        move |_planned| of_timer.0.borrow_mut().write(&of_timer.1, &mut message),
    )?;
    participant.run_for(time);
    participant.stop_timer(timer);
    let (written, writer) = Rc::into_inner(shared).ok_or("the timer has not stopped")?;
    Ok((written.into_inner(), writer))
}

/// Counts of the reading side.
#[derive(Clone, Copy)]
struct Tally {
    samples: u64,
    next_id: u32,
    out_of_order: u64,
    first: Instant,
    last: Instant,
    cpu: CpuMeter,
}

impl Tally {
    fn count(&mut self, id: u32) {
        self.last = Instant::now();
        if self.samples == 0 {
            self.first = self.last;
        }
        self.cpu.note(self.samples);
        self.samples += 1;
        self.out_of_order += u64::from(id < self.next_id);
        self.next_id = id.wrapping_add(1);
    }
}

pub(crate) fn read(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let now = Instant::now();
    let tally = Rc::new(Cell::new(Tally {
        samples: 0,
        next_id: 0,
        out_of_order: 0,
        first: now,
        last: now,
        cpu: CpuMeter::default(),
    }));
    let reader = count_into(participant, arguments, &tally)?;
    wait_for_peer(participant, || reader.matched_writers() > 0)?;
    run_until_stopped(participant)?;

    let tally = tally.get();
    println!("samples {}", tally.samples);
    println!("out_of_order {}", tally.out_of_order);
    println!("elapsed_ns {}", (tally.last - tally.first).as_nanos());
    tally.cpu.print();
    usage::print_process()
}

fn count_into(
    participant: &Participant,
    arguments: &Arguments,
    tally: &Rc<Cell<Tally>>,
) -> Outcome<DataReader<Message>> {
    let qos = qos(arguments);
    let tally = Rc::clone(tally);
    let count = move |id| {
        let mut counted = tally.get();
        counted.count(id);
        tally.set(counted);
    };
    if arguments.reliable {
        let reader = participant.create_reader::<Message>(TOPIC, &qos)?;
        let value = Message::of_size(arguments.payload_bytes);
        reader.on_sample(value, move |sample: Sample<&Message>| {
            sample.value.iter().for_each(|message| count(message.id));
        })?;
        return Ok(reader);
    }
    let reader = participant.create_view_reader::<Message>(TOPIC, &qos)?;
    reader.on_view(move |sample| sample.value.iter().for_each(|message| count(message.id)));
    Ok(reader)
}
