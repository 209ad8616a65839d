//! Sequential round trips: the next ping is sent when the last pong has arrived.

use std::{
    cell::RefCell,
    fs,
    rc::Rc,
    time::{Duration, Instant},
};

use isolane::{DataWriter, Participant, WriteError};

use crate::{
    Outcome, arguments::Arguments, message::Message, qos, wait_for_departure, wait_for_peer,
};

const PING: &str = "RTTPing";
const PONG: &str = "RTTPong";
/// Duration of uncounted round trips at the start.
const WARM_UP: Duration = Duration::from_millis(300);
/// Time after which a missing pong counts as lost.
const LOST_AFTER: Duration = Duration::from_millis(100);
/// Maximum rate of recorded round trips, for which memory is allocated.
const MOST_A_SECOND: u64 = 300_000;

/// State of the pinging side, inside its callback and outside.
struct Pings {
    writer: DataWriter<Message>,
    message: Message,
    sent: Instant,
    round_trips_ns: Vec<u32>,
    recording: bool,
    lost: u64,
    failure: Option<WriteError>,
}

impl Pings {
    fn send(&mut self) {
        self.message.id = self.message.id.wrapping_add(1);
        self.message.nonce = !self.message.id;
        self.sent = Instant::now();
        self.failure = self.writer.write(&self.message).err();
    }

    /// Processes a pong. A pong of an earlier ping is ignored; it was counted as lost.
    fn returned(&mut self, id: u32, nonce: u32) {
        if (id, nonce) != (self.message.id, self.message.nonce) {
            return;
        }
        let nanos = self.sent.elapsed().as_nanos();
        if self.recording && self.round_trips_ns.len() < self.round_trips_ns.capacity() {
            self.round_trips_ns
                .push(u32::try_from(nanos).unwrap_or(u32::MAX));
        }
        self.send();
    }
}

pub(crate) fn ping(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let qos = qos(arguments);
    let reader = participant.create_view_reader::<Message>(PONG, &qos)?;
    let pings = Rc::new(RefCell::new(Pings {
        writer: participant.create_writer(PING, &qos)?,
        message: Message::of_size(arguments.payload_bytes),
        sent: Instant::now(),
        round_trips_ns: Vec::with_capacity((arguments.seconds * MOST_A_SECOND) as usize),
        recording: false,
        lost: 0,
        failure: None,
    }));
    let of_callback = Rc::clone(&pings);
    reader.on_view(move |sample| {
        if let Some(message) = sample.value {
            of_callback.borrow_mut().returned(message.id, message.nonce);
        }
    });
    wait_for_peer(participant, || {
        pings.borrow().writer.matched_readers() > 0 && reader.matched_writers() > 0
    })?;
    pings.borrow_mut().send();
    exchange(participant, &pings, WARM_UP)?;
    pings.borrow_mut().recording = true;
    let begin = Instant::now();
    exchange(participant, &pings, Duration::from_secs(arguments.seconds))?;
    let elapsed = begin.elapsed();

    let pings = pings.borrow();
    println!("samples {}", pings.round_trips_ns.len());
    println!("lost {}", pings.lost);
    println!("elapsed_ns {}", elapsed.as_nanos());
    if let Some(file) = &arguments.samples_file {
        let bytes = pings.round_trips_ns.iter().flat_map(|ns| ns.to_le_bytes());
        fs::write(file, bytes.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Exchanges pings and pongs, and sends a new ping after a loss.
fn exchange(participant: &Participant, pings: &RefCell<Pings>, time: Duration) -> Outcome<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        participant.run_for(LOST_AFTER.min(end - Instant::now()));
        let mut pings = pings.borrow_mut();
        if let Some(failure) = pings.failure.take() {
            return Err(failure.into());
        }
        if pings.sent.elapsed() >= LOST_AFTER {
            pings.lost += u64::from(pings.recording);
            pings.send();
        }
    }
    Ok(())
}

pub(crate) fn pong(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let qos = qos(arguments);
    let reader = participant.create_view_reader::<Message>(PING, &qos)?;
    let writer = participant.create_writer::<Message>(PONG, &qos)?;
    let mut message = Message::of_size(arguments.payload_bytes);
    reader.on_view(move |sample| {
        let Some(ping) = sample.value else { return };
        (message.id, message.nonce) = (ping.id, ping.nonce);
        if let Err(error) = writer.write(&message) {
            eprintln!("measured_end: a pong was not written: {error}");
        }
    });
    wait_for_peer(participant, || reader.matched_writers() > 0)?;
    wait_for_departure(participant, arguments, || reader.matched_writers() == 0)
}
