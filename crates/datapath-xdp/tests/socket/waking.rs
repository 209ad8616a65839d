//! Tests of wake-ups: of the kernel by a program, and of a program by frames.

use std::time::Duration;

use isolane_datapath_xdp::socket::BusyPoll;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::hosts::{End, Pair};
use crate::support::{Receiver, Sender, eventually, frames};

#[test]
fn nothing_leaves_before_a_kick_and_the_ring_says_that_it_wants_one() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut sender = Sender::new(&pair, 0);
    assert!(sender.socket.ring.needs_wakeup());
    assert_eq!(sender.memory.put(&mut sender.socket, &frames(0, 0..3)), 3);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(sender.socket.ring.used(), 3);
    assert_eq!(receiver.lanes[0].ring.waiting(), 0);
    sender.socket.kick();
    assert_eq!(receiver.take_all(0, 3), frames(0, 0..3));
}

#[test]
fn the_receiving_descriptor_is_readable_while_a_frame_waits() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64, 64]);
    let mut sender = Sender::new(&pair, 0);
    let wait = |receiver: &Receiver, seconds| {
        let mut sources: Vec<_> = receiver
            .lanes
            .iter()
            .map(|lane| PollFd::new(lane, PollFlags::IN))
            .collect();
        let time = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        poll(&mut sources, Some(&time)).unwrap();
        let readable = |source: &PollFd<'_>| source.revents().contains(PollFlags::IN);
        sources.iter().map(readable).collect::<Vec<_>>()
    };
    assert_eq!(wait(&receiver, 0), [false, false]);
    sender.send(&frames(1, 0..2));
    assert_eq!(wait(&receiver, 20), [false, true]);
    assert_eq!(receiver.take_all(1, 2).len(), 2);
    assert_eq!(wait(&receiver, 0), [false, false]);
}

#[test]
fn frames_arrive_by_busy_polling() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut sender = Sender::new(&pair, 0);
    let busy_poll = BusyPoll {
        microseconds: 20,
        budget: 64,
    };
    receiver.lanes[0].set_busy_poll(busy_poll).unwrap();
    sender.socket.set_busy_poll(busy_poll).unwrap();
    for round in 0..20 {
        let sent = frames(0, round..round + 3);
        sender.send(&sent);
        let mut arrived = Vec::new();
        eventually("3 frames", || {
            receiver.lanes[0].poll_device().unwrap();
            let lane = &mut receiver.lanes[0];
            arrived.extend(std::iter::from_fn(|| receiver.memory.take(lane)));
            arrived.len() >= 3
        });
        assert_eq!(arrived, sent);
        receiver.memory.fill(&mut receiver.queue, 3);
        sender.wait_for_completions();
    }
}

#[test]
fn looking_at_a_device_that_is_down_is_an_error_and_no_end() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    pair.set_up(End::B, false);
    let error = receiver.lanes[0].poll_device().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    pair.set_up(End::B, true);
    receiver.lanes[0].poll_device().unwrap();
    let mut sender = Sender::new(&pair, 0);
    eventually("a frame arrives", || {
        sender.send(&frames(0, 0..1));
        sender.memory.complete(&mut sender.queue);
        receiver.memory.take(&mut receiver.lanes[0]).is_some()
    });
}
