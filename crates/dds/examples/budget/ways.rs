//! The ways a sample can take, each as a round of two halves.

use std::{cell::Cell, hint::black_box, rc::Rc, time::Duration};

use isolane::{DataReader, DataWriter, Level, Participant, Qos, RemoteWriter};

use crate::{
    Outcome,
    sample::{Large, Numbered, Small},
    walk,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// One sample written, then received.
pub(crate) trait Round {
    fn give(&mut self, number: u32) -> Outcome<()>;
    fn get(&mut self, number: u32) -> Outcome<()>;
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Written best effort, seen as a view of the received frame.
    BestEffort,
    /// Written best effort, received into a cache, decoded for a callback.
    Cache,
    /// Written reliable, sent by the loop, received into a cache, decoded for a callback.
    Reliable,
    /// As best effort, written through a `RemoteWriter`. Both of its ends run here in turn.
    Remote,
    /// As best effort, and copied once more on purpose: by this a counter of copies is checked.
    Copied,
}

/// Which way, and how large the sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    kind: Kind,
    is_large: bool,
}

impl Way {
    /// From `KIND-BYTES`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, bytes) = text.rsplit_once('-')?;
        let kind = match kind {
            "best-effort" => Kind::BestEffort,
            "cache" => Kind::Cache,
            "reliable" => Kind::Reliable,
            "remote" => Kind::Remote,
            "copied" => Kind::Copied,
            _ => return None,
        };
        let is_large = match bytes {
            "64" => false,
            "1024" => true,
            _ => return None,
        };
        Some(Self { kind, is_large })
    }

    pub(crate) fn walk(self, rounds: u32) -> Outcome<()> {
        if self.is_large {
            walk_with::<Large>(self.kind, rounds)
        } else {
            walk_with::<Small>(self.kind, rounds)
        }
    }
}

fn walk_with<T: Numbered>(kind: Kind, rounds: u32) -> Outcome<()> {
    let pair = Pair::new()?;
    let best_effort = Qos::best_effort().level(Level::clamp(7));
    let receive = pair.receive::<T>(kind)?;
    match kind {
        Kind::BestEffort | Kind::Cache | Kind::Copied => {
            let writer = pair.alice.create_writer::<T>(&pair.topic, &best_effort)?;
            pair.until_matched(|| writer.matched_readers() == 1 && receive.is_matched())?;
            let mut round = Direct {
                writer,
                sample: T::zero(),
                copies: kind == Kind::Copied,
                receive,
            };
            walk(rounds, &mut round)
        }
        Kind::Reliable => {
            let writer = pair.alice.create_writer::<T>(&pair.topic, &reliable())?;
            pair.until_matched(|| writer.matched_readers() == 1 && receive.is_matched())?;
            let mut round = Reliable {
                alice: pair.alice.clone(),
                writer,
                sample: T::zero(),
                receive,
            };
            walk(rounds, &mut round)
        }
        Kind::Remote => {
            let alice = pair.alice.clone();
            let writer = alice.create_remote_writer::<T>(&pair.topic, &best_effort)?;
            let matched = || alice.report().writers[0].matched == 1;
            pair.until_matched(|| matched() && receive.is_matched())?;
            let mut round = Remote {
                alice: pair.alice.clone(),
                writer,
                sample: T::zero(),
                receive,
            };
            walk(rounds, &mut round)
        }
    }
}

fn reliable() -> Qos {
    Qos::reliable()
        .keep_all()
        .max_samples(256)
        .level(Level::clamp(7))
}

/// Two participants on one thread.
struct Pair {
    alice: Participant,
    bob: Participant,
    topic: String,
}

impl Pair {
    fn new() -> Outcome<Self> {
        // A domain of this process's own, unless several run: then the topic is.
        let domain = 1 + std::process::id() % 80;
        Ok(Self {
            alice: Participant::builder(domain).loopback().build()?,
            bob: Participant::builder(domain).loopback().build()?,
            topic: format!("Samples of process {}", std::process::id()),
        })
    }

    fn until_matched(&self, is_matched: impl Fn() -> bool) -> Outcome<()> {
        for _ in 0..10_000 {
            self.alice.run_for(Duration::from_millis(1));
            self.bob.run_for(Duration::from_millis(1));
            if is_matched() {
                return Ok(());
            }
        }
        Err("the participants have not found each other".into())
    }

    /// The receiving half.
    fn receive<T: Numbered>(&self, kind: Kind) -> Outcome<Receive<T>> {
        let seen = Rc::new(Cell::new(u32::MAX));
        let of_callback = Rc::clone(&seen);
        let best_effort = Qos::best_effort().level(Level::clamp(7));
        let (bob, topic) = (&self.bob, &self.topic);
        let reader = match kind {
            Kind::Cache | Kind::Reliable => {
                let qos = if kind == Kind::Cache {
                    best_effort
                } else {
                    reliable()
                };
                let reader = bob.create_reader::<T>(topic, &qos)?;
                reader.on_sample(T::zero(), move |sample| {
                    of_callback.set(sample.value.map_or(u32::MAX, T::number));
                })?;
                reader
            }
            Kind::BestEffort | Kind::Remote | Kind::Copied => {
                let reader = bob.create_view_reader::<T>(topic, &best_effort)?;
                reader.on_view(move |sample| {
                    let number = sample.value.as_ref().map_or(u32::MAX, T::number_in);
                    of_callback.set(number);
                });
                reader
            }
        };
        Ok(Receive {
            bob: self.bob.clone(),
            reader,
            seen,
        })
    }
}

/// One turn of the loop after the other until the callback has seen the sample.
struct Receive<T: Numbered> {
    bob: Participant,
    reader: DataReader<T>,
    seen: Rc<Cell<u32>>,
}

impl<T: Numbered> Receive<T> {
    fn is_matched(&self) -> bool {
        self.reader.matched_writers() == 1
    }

    fn get(&self, number: u32) -> Outcome<()> {
        match self.bob.run_until(PATIENCE, || self.seen.get() == number) {
            true => Ok(()),
            false => Err("a sample is missing".into()),
        }
    }
}

/// `write` sends.
struct Direct<T: Numbered> {
    writer: DataWriter<T>,
    sample: T,
    copies: bool,
    receive: Receive<T>,
}

impl<T: Numbered> Round for Direct<T> {
    fn give(&mut self, number: u32) -> Outcome<()> {
        self.sample.set_number(number);
        if self.copies {
            self.sample = black_box(&self.sample).clone();
        }
        Ok(self.writer.write(&self.sample)?)
    }

    fn get(&mut self, number: u32) -> Outcome<()> {
        self.receive.get(number)
    }
}

/// Samples between two times that the reader's loop gets to what is less urgent than they are.
const ACKNOWLEDGED_EVERY: u32 = 16;

/// `write` keeps, and the loop sends, until it has nothing more to do.
struct Reliable<T: Numbered> {
    alice: Participant,
    writer: DataWriter<T>,
    sample: T,
    receive: Receive<T>,
}

impl<T: Numbered> Round for Reliable<T> {
    fn give(&mut self, number: u32) -> Outcome<()> {
        self.sample.set_number(number);
        self.writer.write(&self.sample)?;
        self.alice.poll();
        Ok(())
    }

    fn get(&mut self, number: u32) -> Outcome<()> {
        self.receive.get(number)?;
        if number.is_multiple_of(ACKNOWLEDGED_EVERY) {
            self.receive.bob.poll();
        }
        Ok(())
    }
}

/// `write` hands over, which wakes the loop each time, and the loop sends.
struct Remote<T: Numbered> {
    alice: Participant,
    writer: RemoteWriter<T>,
    sample: T,
    receive: Receive<T>,
}

impl<T: Numbered> Round for Remote<T> {
    fn give(&mut self, number: u32) -> Outcome<()> {
        self.sample.set_number(number);
        self.writer.write(&self.sample)?;
        self.alice.poll();
        Ok(())
    }

    fn get(&mut self, number: u32) -> Outcome<()> {
        self.receive.get(number)
    }
}
