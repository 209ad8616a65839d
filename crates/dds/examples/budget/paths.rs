//! Paths of a sample through the library, each as a round of two halves.

use std::{cell::Cell, hint::black_box, rc::Rc, time::Duration};

use isolane::{DataReader, DataWriter, Level, Participant, Qos, WriterHandle};

use crate::{
    Outcome,
    hosts::{Both, on_lanes},
    sample::{Large, Numbered, Small},
    walk,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Round: one sample written, then received.
pub(crate) trait Round {
    fn give(&mut self, number: u32) -> Outcome<()>;
    fn get(&mut self, number: u32) -> Outcome<()>;

    /// Runs jobs less urgent than samples, between two rounds and uncounted. A round is one iteration of the loop, so
    /// a due announcement would otherwise wait forever, and every iteration would check for it.
    fn rest(&self) {}
}

/// Kind of path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Best-effort write; the reader gets a view of the received frame.
    BestEffort,
    /// Best-effort write; received into a cache and decoded for a callback.
    Cache,
    /// Reliable write, sent by the loop; received into a cache and decoded for a callback.
    Reliable,
    /// As best effort, written through a `WriterHandle`. Both of its sides run here in turn.
    Handle,
    /// As best effort, with one more copy, to check a counter of copies.
    Copied,
    /// Best-effort write, answered from the callback: writing and receiving on both sides.
    RoundTrip,
}

/// Kind of path, datapath and sample size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// True for AF_XDP lanes of a veth pair, false for sockets on 127.0.0.1.
    is_by_lane: bool,
    kind: Kind,
    is_large: bool,
}

impl Way {
    /// Parses `KIND-BYTES`, or `lane-KIND-BYTES`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let by_lane = text.strip_prefix("lane-");
        let (is_by_lane, text) = (by_lane.is_some(), by_lane.unwrap_or(text));
        let (kind, bytes) = text.rsplit_once('-')?;
        let kind = match kind {
            "best-effort" => Kind::BestEffort,
            "cache" => Kind::Cache,
            "reliable" => Kind::Reliable,
            "handle" => Kind::Handle,
            "copied" => Kind::Copied,
            "round-trip" => Kind::RoundTrip,
            _ => return None,
        };
        let is_large = match bytes {
            "64" => false,
            "1024" => true,
            _ => return None,
        };
        Some(Self {
            is_by_lane,
            kind,
            is_large,
        })
    }

    pub(crate) fn walk(self, rounds: u32) -> Outcome<()> {
        if self.is_large {
            walk_with::<Large>(self, rounds)
        } else {
            walk_with::<Small>(self, rounds)
        }
    }
}

fn walk_with<T: Numbered>(way: Way, rounds: u32) -> Outcome<()> {
    let kind = way.kind;
    let pair = Pair::new(way.is_by_lane)?;
    if kind == Kind::RoundTrip {
        return walk(rounds, &mut RoundTrip::<T>::between(&pair)?);
    }
    let best_effort = best_effort();
    let receive = pair.as_bob(|| pair.receive::<T>(kind))?;
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
        Kind::Handle => {
            let alice = pair.alice.clone();
            let writer = alice.create_writer_handle::<T>(&pair.topic, &best_effort)?;
            let matched = || alice.report().writers[0].matched == 1;
            pair.until_matched(|| matched() && receive.is_matched())?;
            let mut round = OfHandle {
                alice: pair.alice.clone(),
                writer,
                sample: T::zero(),
                receive,
            };
            walk(rounds, &mut round)
        }
        Kind::RoundTrip => unreachable!("it has a receiver at each end, see above"),
    }
}

fn best_effort() -> Qos {
    Qos::best_effort().level(Level::clamp(7))
}

fn reliable() -> Qos {
    Qos::reliable()
        .keep_all()
        .max_samples(256)
        .level(Level::clamp(7))
}

/// Iterations of both loops after discovery.
const SETTLING: u32 = 100;

/// Two participants on one thread.
struct Pair {
    alice: Participant,
    bob: Participant,
    topic: String,
    /// Network namespaces of both, unless they use 127.0.0.1.
    hosts: Option<Both>,
}

impl Pair {
    fn new(is_by_lane: bool) -> Outcome<Self> {
        // Concurrent processes may get the same domain, but never the same topic.
        let domain = 1 + std::process::id() % 80;
        let topic = format!("Samples of process {}", std::process::id());
        if is_by_lane {
            let hosts = Both::new();
            return Ok(Self {
                alice: on_lanes(domain, "host-a").build()?,
                bob: hosts.visit(|| on_lanes(domain, "host-b").build())?,
                topic,
                hosts: Some(hosts),
            });
        }
        Ok(Self {
            alice: Participant::builder(domain).loopback().build()?,
            bob: Participant::builder(domain).loopback().build()?,
            topic,
            hosts: None,
        })
    }

    /// Creates something of bob's in bob's namespace.
    fn as_bob<T>(&self, create: impl FnOnce() -> T) -> T {
        match &self.hosts {
            Some(hosts) => hosts.visit(create),
            None => create(),
        }
    }

    fn until_matched(&self, is_matched: impl Fn() -> bool) -> Outcome<()> {
        for _ in 0..10_000 {
            self.run_a_little();
            if is_matched() {
                // Lets the remaining discovery traffic pass before rounds are counted.
                (0..SETTLING).for_each(|_| self.run_a_little());
                return Ok(());
            }
        }
        Err("the participants have not found each other".into())
    }

    fn run_a_little(&self) {
        self.alice.run_for(Duration::from_millis(1));
        self.bob.run_for(Duration::from_millis(1));
    }

    /// Creates the receiving half.
    fn receive<T: Numbered>(&self, kind: Kind) -> Outcome<Receive<T>> {
        let seen = Rc::new(Cell::new(u32::MAX));
        let of_callback = Rc::clone(&seen);
        let best_effort = best_effort();
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
            Kind::BestEffort | Kind::Handle | Kind::Copied | Kind::RoundTrip => {
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

/// Runs the loop until the callback has received the sample.
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

/// Path on which `write` sends.
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

/// Samples between two runs of the reader's less urgent jobs.
const ACKNOWLEDGED_EVERY: u32 = 16;

/// Path on which `write` stores the sample and the loop sends it, until it is idle.
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

/// Path on which `write` hands the sample over, which wakes the loop each time, and the loop sends it.
struct OfHandle<T: Numbered> {
    alice: Participant,
    writer: WriterHandle<T>,
    sample: T,
    receive: Receive<T>,
}

impl<T: Numbered> Round for OfHandle<T> {
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

/// Path with an answer, written in the callback.
struct RoundTrip<T: Numbered> {
    alice: Participant,
    bob: Participant,
    writer: DataWriter<T>,
    sample: T,
    _readers: [DataReader<T>; 2],
    answered: Rc<Cell<u32>>,
    returned: Rc<Cell<u32>>,
}

impl<T: Numbered> RoundTrip<T> {
    fn between(pair: &Pair) -> Outcome<Self> {
        let (alice, bob, qos) = (&pair.alice, &pair.bob, &best_effort());
        let (ping, pong) = (&pair.topic, &format!("{}, back", pair.topic));
        let writer = alice.create_writer::<T>(ping, qos)?;
        let back = alice.create_view_reader::<T>(pong, qos)?;
        let returned = Rc::new(Cell::new(u32::MAX));
        let of_callback = Rc::clone(&returned);
        back.on_view(move |sample| {
            of_callback.set(sample.value.as_ref().map_or(u32::MAX, T::number_in));
        });
        let answers = pair.as_bob(|| bob.create_writer::<T>(pong, qos))?;
        let there = pair.as_bob(|| bob.create_view_reader::<T>(ping, qos))?;
        pair.until_matched(|| {
            let writers = writer.matched_readers() + answers.matched_readers();
            (writers, back.matched_writers() + there.matched_writers()) == (2, 2)
        })?;
        let answered = Rc::new(Cell::new(u32::MAX));
        let (of_callback, mut answer) = (Rc::clone(&answered), T::zero());
        there.on_view(move |sample| {
            let Some(ping) = &sample.value else { return };
            answer.set_number(T::number_in(ping));
            if answers.write(&answer).is_ok() {
                of_callback.set(answer.number());
            }
        });
        Ok(Self {
            alice: alice.clone(),
            bob: bob.clone(),
            writer,
            sample: T::zero(),
            _readers: [back, there],
            answered,
            returned,
        })
    }
}

impl<T: Numbered> Round for RoundTrip<T> {
    fn give(&mut self, number: u32) -> Outcome<()> {
        self.sample.set_number(number);
        self.writer.write(&self.sample)?;
        let is_answered = || self.answered.get() == number;
        match self.bob.run_until(PATIENCE, is_answered) {
            true => Ok(()),
            false => Err("a sample is missing".into()),
        }
    }

    fn get(&mut self, number: u32) -> Outcome<()> {
        let is_back = || self.returned.get() == number;
        match self.alice.run_until(PATIENCE, is_back) {
            true => Ok(()),
            false => Err("an answer is missing".into()),
        }
    }

    fn rest(&self) {
        self.alice.poll();
        self.bob.poll();
    }
}
