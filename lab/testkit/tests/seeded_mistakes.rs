//! Seeded mistakes: datapaths with one mistake each, which the conformance suite must find.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::panic::catch_unwind;
use std::time::Duration;

use isolane_datapath::burst::ReceivedFrame;
use isolane_datapath::limits::MAX_BURST;
use isolane_datapath::memory::Memory;
use isolane_datapath::{
    Capabilities, Class, Datapath, Frame, Lane, Ledger, OpenError, Pool, ReceiveBurst, ReceiveDrop,
    SendReport, TransmitBurst,
};
use isolane_testkit::conformance::{Fixture, Options, multicast_cases, unicast_cases};
use isolane_testkit::fault::retain_messages;
use isolane_testkit::fixtures::MemoryNetwork;
use isolane_wire::locator::Locator;

/// Mistake of a datapath. Most occur with every seventh datagram or burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    Nothing,
    LosesAFrame,
    KeepsAFrame,
    HandsOnTwice,
    FlipsABit,
    CutsADatagram,
    Reorders,
    NamesTheWrongSource,
    CountsTwice,
    CountsADropThatWasNone,
    TakesMoreThanAsked,
    DropsWhatItHasNoFrameFor,
    DoesNotWake,
    LeavesSomethingInTheBurst,
    StopsAtARefusal,
    ForgetsADestination,
    SendsToGroupsTwice,
    ForgetsAClosedLane,
    BorrowsCriticalFrames,
    ReservesAgain,
    IgnoresSegments,
    LosesTheLastSegment,
}
use Mistake::*;

thread_local! {
    /// Mistake of the datapaths of this thread.
    static MISTAKE: Cell<Mistake> = const { Cell::new(Nothing) };
}

/// The memory datapath with a mistake.
struct Mistaken {
    mistake: Mistake,
    memory: Memory,
    counted: usize,
    kept: Vec<ReceivedFrame>,
    twice: Option<ReceivedFrame>,
    borrowed: Vec<Frame>,
    /// Wrong counts, added to the correct ledger.
    wrong: Ledger,
}

impl Mistaken {
    fn seventh(&mut self) -> bool {
        self.counted += 1;
        self.counted.is_multiple_of(7)
    }

    fn receive_one_by_one(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let mut arrived = ReceiveBurst::new();
        let limit = limit.min(burst.capacity() - burst.len());
        if let (true, Some(twice)) = (limit > 0, self.twice.take()) {
            let _ = burst.push(twice);
            return 1;
        }
        let taken = self.memory.receive_burst(lane, limit, &mut arrived);
        for mut received in arrived {
            if self.seventh() {
                match self.mistake {
                    LosesAFrame => continue,
                    KeepsAFrame => {
                        self.kept.push(received);
                        continue;
                    }
                    HandsOnTwice => {
                        let copy = self.memory.pool().take(Class::Receive(lane));
                        if let Some(mut frame) = copy {
                            frame.append(&received.frame).unwrap();
                            self.twice = Some(ReceivedFrame { frame, ..received });
                        }
                    }
                    FlipsABit if !received.frame.is_empty() => received.frame[0] ^= 1,
                    CutsADatagram if !received.frame.is_empty() => {
                        let range = received.frame.range();
                        received.frame.set_range(range.start..range.end - 1);
                    }
                    CountsTwice => self.wrong.lane_mut(lane).receive.received += 1,
                    CountsADropThatWasNone => {
                        let receive = &mut self.wrong.lane_mut(lane).receive;
                        receive.note_dropped(ReceiveDrop::TRUNCATED, 1);
                    }
                    NamesTheWrongSource => received.from.port += 1,
                    _ => {}
                }
            } else if self.mistake == NamesTheWrongSource {
                received.from.port += 1;
            }
            let _ = burst.push(received);
        }
        if self.mistake == Reorders && burst.len() > 2 {
            burst.swap(0, 1);
        }
        taken
    }
}

impl Datapath for Mistaken {
    fn name(&self) -> &'static str {
        "mistaken"
    }

    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn pool(&self) -> &Pool {
        self.memory.pool()
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        let is_open = !self.memory.unicast(lane).is_empty();
        if self.mistake == ReservesAgain && is_open {
            self.memory.pool().reserve(Class::from(lane), 1)?;
        }
        self.memory.open_lane(lane)
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.memory.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.memory.multicast(lane)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        let limit = match self.mistake {
            TakesMoreThanAsked if limit > 0 => limit + 1,
            _ => limit,
        };
        if self.mistake == DropsWhatItHasNoFrameFor {
            let has_none = self.pool().outstanding_of(Class::Receive(lane))
                == self.pool().capacity(Class::Receive(lane));
            if has_none && limit > 0 {
                // Loses the datagram that it receives into a new frame.
                let spare = &mut ReceiveBurst::new();
                let _ = self.pool().reserve(Class::Receive(lane), 1);
                self.memory.receive_burst(lane, 1, spare);
            }
        }
        self.receive_one_by_one(lane, limit, burst)
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        match self.mistake {
            BorrowsCriticalFrames => {
                // Takes a frame of the most critical lane and keeps it.
                let critical = Lane::ALL[8];
                self.borrowed.extend(self.memory.pool().take(critical));
            }
            StopsAtARefusal => {
                let reached: Vec<bool> = burst
                    .messages()
                    .iter()
                    .map(|message| message.to.ipv4().is_some())
                    .collect();
                let mut place = 0;
                retain_messages(burst, |_| {
                    place += 1;
                    reached[..place - 1].iter().all(|is_reached| *is_reached)
                });
            }
            ForgetsADestination => {
                let mut last = None;
                retain_messages(burst, |message| {
                    last.replace(message.frame) != Some(message.frame)
                });
            }
            SendsToGroupsTwice => {
                let groups: Vec<(Vec<u8>, Locator)> = burst
                    .messages()
                    .iter()
                    .filter(|message| message.to.is_multicast())
                    .map(|message| (burst.frame(message).to_vec(), message.to))
                    .collect();
                for (bytes, to) in groups {
                    let mut again = TransmitBurst::new();
                    let mut frame = self.pool().take(lane).unwrap();
                    frame.append(&bytes).unwrap();
                    again.push(frame).unwrap();
                    again.address(to).unwrap();
                    self.memory.send_burst(lane, &mut again);
                }
            }
            IgnoresSegments => {
                let (frames, _) = burst.parts_mut();
                frames
                    .iter_mut()
                    .for_each(|frame| frame.set_segment_bytes(0));
            }
            LosesTheLastSegment => {
                let (frames, _) = burst.parts_mut();
                for frame in frames
                    .iter_mut()
                    .filter(|frame| frame.segment_bytes().is_some())
                {
                    let last = frame.datagrams().last().map_or(0, <[u8]>::len);
                    let range = frame.range();
                    frame.set_range(range.start..range.end - last);
                }
            }
            ForgetsAClosedLane if self.unicast(lane).is_empty() => {
                burst.clear();
                return SendReport::default();
            }
            _ => {}
        }
        let frames = burst.len();
        let report = self.memory.send_burst(lane, burst);
        if self.mistake == LeavesSomethingInTheBurst && frames == MAX_BURST {
            let frame = self.pool().take(lane).unwrap();
            burst.push(frame).unwrap();
        }
        report
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        self.memory.descriptors()
    }

    fn ready_lanes(&mut self) -> u16 {
        match self.mistake {
            DoesNotWake => 0,
            _ => self.memory.ready_lanes(),
        }
    }

    fn ledger(&self) -> Ledger {
        let mut ledger = self.memory.ledger();
        for lane in Lane::ALL {
            *ledger.lane_mut(lane) += self.wrong.lane(lane);
        }
        ledger
    }
}

impl Drop for Mistaken {
    fn drop(&mut self) {
        // A forgotten frame is never returned.
        self.kept.drain(..).for_each(std::mem::forget);
    }
}

struct Mistakes(MemoryNetwork);

impl Fixture for Mistakes {
    type Datapath = Mistaken;

    const PATIENCE: Duration = MemoryNetwork::PATIENCE;

    fn new() -> Self {
        Mistakes(MemoryNetwork::new())
    }

    fn attach(&mut self, options: &Options) -> Mistaken {
        Mistaken {
            mistake: MISTAKE.get(),
            memory: self.0.attach(options),
            counted: 0,
            kept: Vec::new(),
            twice: None,
            borrowed: Vec::new(),
            wrong: Ledger::default(),
        }
    }
}

/// Returns the cases that fail.
fn found(mistake: Mistake) -> Vec<&'static str> {
    MISTAKE.set(mistake);
    let unicast = unicast_cases::<Mistakes>();
    let cases = unicast.into_iter().chain(multicast_cases::<Mistakes>());
    cases
        .filter(|(_, case)| catch_unwind(case).is_err())
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn a_datapath_without_mistake_passes() {
    assert!(found(Nothing).is_empty());
}

#[test]
fn every_mistake_is_found() {
    let table = [
        (
            LosesAFrame,
            "what_is_handed_on_was_sent_or_is_counted_as_changed",
        ),
        (KeepsAFrame, "no_frame_is_kept_for_good"),
        (HandsOnTwice, "a_group_reaches_every_member_once"),
        (FlipsABit, "what_is_sent_arrives_unchanged_and_in_order"),
        (CutsADatagram, "what_is_sent_arrives_unchanged_and_in_order"),
        (Reorders, "what_is_sent_arrives_unchanged_and_in_order"),
        (
            NamesTheWrongSource,
            "the_source_of_a_datagram_is_where_its_sender_is_reached",
        ),
        (CountsTwice, "what_is_sent_is_received_or_dropped_by_name"),
        (
            CountsADropThatWasNone,
            "every_datagram_sent_arrives_or_is_named",
        ),
        (TakesMoreThanAsked, "no_call_takes_more_than_it_may"),
        (
            DropsWhatItHasNoFrameFor,
            "a_reader_that_holds_its_frames_loses_nothing",
        ),
        (DoesNotWake, "a_datagram_wakes_its_lane"),
        (
            LeavesSomethingInTheBurst,
            "every_datagram_sent_arrives_or_is_named",
        ),
        (
            StopsAtARefusal,
            "what_cannot_be_reached_is_named_and_the_rest_goes_on",
        ),
        (
            ForgetsADestination,
            "one_frame_reaches_several_destinations",
        ),
        (SendsToGroupsTwice, "a_group_reaches_every_member_once"),
        (ForgetsAClosedLane, "a_closed_lane_refuses_by_name"),
        (BorrowsCriticalFrames, "every_frame_goes_home"),
        (ReservesAgain, "a_lane_opened_twice_is_the_same_lane"),
        (IgnoresSegments, "a_segmented_burst_is_its_datagrams"),
        (LosesTheLastSegment, "a_segmented_burst_is_its_datagrams"),
    ];
    for (mistake, by) in table {
        let found = found(mistake);
        assert!(
            found.contains(&by),
            "{mistake:?} is found by {found:?} only"
        );
    }
}
