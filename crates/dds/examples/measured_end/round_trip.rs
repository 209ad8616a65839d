//! Round trips at a fixed rate: pings leave on schedule, whether or not earlier ones have returned.

use std::{cell::RefCell, rc::Rc, time::Duration};

use isolane::{Level, Participant, WriteError};

use crate::{
    Outcome,
    arguments::Arguments,
    message::Message,
    print_ready_and_wait, qos, run_until_stopped,
    stamps::{Rounds, now_ns},
    wait_for_peer,
};

const PING: &str = "RTTPing";
const PONG: &str = "RTTPong";
/// Time from the start to the first ping.
const LEAD: Duration = Duration::from_millis(100);
/// Time after the last ping in which pongs are received.
const LOST_AFTER: Duration = Duration::from_millis(500);

fn rounds<const N: usize>(arguments: &Arguments) -> Rounds<N> {
    let samples = arguments.seconds * arguments.rate_hz;
    Rounds::new(samples as usize, arguments.seed)
}

fn write<const N: usize>(rounds: &Rounds<N>, arguments: &Arguments) -> Outcome<()> {
    let file = arguments.rounds_file.as_ref().ok_or("no --rounds-file")?;
    Ok(rounds.write(file)?)
}

pub(crate) fn ping(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let qos = qos(arguments);
    let reader = participant.create_view_reader::<Message>(PONG, &qos)?;
    let writer = participant.create_writer::<Message>(PING, &qos)?;
    let rounds = Rc::new(RefCell::new(rounds::<3>(arguments)));
    let of_reader = Rc::clone(&rounds);
    reader.on_view(move |sample| {
        if let Some(pong) = sample.value {
            of_reader.borrow_mut().received(2, pong.id, pong.nonce);
        }
    });
    wait_for_peer(participant, || {
        writer.matched_readers() > 0 && reader.matched_writers() > 0
    })?;
    print_ready_and_wait(participant)?;

    let period_ns = 1_000_000_000 / arguments.rate_hz;
    // A timer's instants are multiples of its period.
    let begin_ns = (now_ns() + LEAD.as_nanos() as u64).next_multiple_of(period_ns);
    let mut message = Message::of_size(arguments.payload_bytes);
    let mut sent = 0;
    let failure = Rc::new(RefCell::new(None::<WriteError>));
    let (of_timer, of_failure) = (Rc::clone(&rounds), Rc::clone(&failure));
    let timer = participant.create_timer(
        "pings",
        Level::clamp(7),
        Duration::from_nanos(period_ns),
        Duration::ZERO,
        move |_planned| {
            let mut rounds = of_timer.borrow_mut();
            // Several pings are due after instants that the timer missed.
            while (sent as usize) < rounds.stamps_ns.len() {
                let due_ns = begin_ns + u64::from(sent) * period_ns;
                let now_ns = now_ns();
                if now_ns < due_ns {
                    return;
                }
                rounds.stamps_ns[sent as usize][..2].copy_from_slice(&[due_ns, now_ns]);
                (message.id, message.nonce) = (sent, rounds.nonce(sent));
                sent += 1;
                if let Err(error) = writer.write(&message) {
                    of_failure.borrow_mut().get_or_insert(error);
                }
            }
        },
    )?;
    participant.run_for(LEAD + Duration::from_secs(arguments.seconds) + LOST_AFTER);
    participant.stop_timer(timer);
    if let Some(error) = failure.take() {
        return Err(error.into());
    }
    write(&rounds.borrow(), arguments)
}

pub(crate) fn pong(participant: &Participant, arguments: &Arguments) -> Outcome<()> {
    let qos = qos(arguments);
    let reader = participant.create_view_reader::<Message>(PING, &qos)?;
    let writer = Rc::new(participant.create_writer::<Message>(PONG, &qos)?);
    let rounds = Rc::new(RefCell::new(rounds::<2>(arguments)));
    let mut message = Message::of_size(arguments.payload_bytes);
    let (of_reader, answers) = (Rc::clone(&rounds), Rc::clone(&writer));
    reader.on_view(move |sample| {
        let Some(ping) = sample.value else { return };
        let mut rounds = of_reader.borrow_mut();
        if !rounds.received(0, ping.id, ping.nonce) {
            return;
        }
        (message.id, message.nonce) = (ping.id, ping.nonce);
        rounds.stamps_ns[ping.id as usize][1] = now_ns();
        if let Err(error) = answers.write(&message) {
            eprintln!("measured_end: a pong was not written: {error}");
        }
    });
    wait_for_peer(participant, || {
        writer.matched_readers() > 0 && reader.matched_writers() > 0
    })?;
    run_until_stopped(participant)?;
    write(&rounds.borrow(), arguments)
}
