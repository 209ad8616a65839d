//! Tests of full and empty rings, invalid entries, and devices that refuse frames: all are counted, and the socket
//! continues.

use isolane_datapath_xdp::socket::{Descriptor, QueueConfig, Side, Stopped, TransmitSocket};

use crate::hosts::{End, Pair};
use crate::support::{Memory, Receiver, Sender, config, eventually, frame, frames};

#[test]
fn frames_beyond_a_receive_ring_are_counted_and_the_others_arrive() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[8]);
    let mut sender = Sender::new(&pair, 0);
    sender.send(&frames(0, 0..20));
    sender.wait_for_completions();
    eventually("12 find the ring full", || {
        receiver.lanes[0].statistics().unwrap().receive_ring_full == 12
    });
    assert_eq!(receiver.take_all(0, 8), frames(0, 0..8));
    // The chunks of dropped frames are filled again, so none is lost.
    for round in 0..10 {
        sender.send(&frames(0, round..round + 5));
        assert_eq!(receiver.take_all(0, 5), frames(0, round..round + 5));
        sender.wait_for_completions();
        receiver.memory.fill(&mut receiver.queue, 5);
    }
    receiver.memory.assert_balanced();
}

#[test]
fn frames_beyond_the_fill_ring_are_counted_by_the_queue() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 8, &[64]);
    let mut sender = Sender::new(&pair, 0);
    assert_eq!(receiver.queue.fill_missed().unwrap(), 0);
    sender.send(&frames(0, 0..20));
    sender.wait_for_completions();
    eventually("12 find no chunk", || {
        receiver.queue.fill_missed().unwrap() == 12
    });
    let statistics = receiver.lanes[0].statistics().unwrap();
    assert_eq!(statistics.fill_ring_empty, 12, "the same, by any socket");
    assert_eq!(statistics.dropped, 12);
    assert_eq!(receiver.take_all(0, 8), frames(0, 0..8));
    assert_eq!(receiver.queue.fill.used(), 0);
}

#[test]
fn a_frame_longer_than_a_chunk_takes_is_dropped_and_its_chunk_used_again() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 8, &[8]);
    let longest = receiver.memory.umem.receive_room();
    assert_eq!(longest, 1_792);
    let mut sender = Sender::new(&pair, 0);
    // The device's MTU of 1,500 limits frames before that: to 1,514 bytes with their header.
    sender.send(&[frame(0, 1, 1_514)]);
    assert_eq!(receiver.take_all(0, 1), [frame(0, 1, 1_514)]);
}

#[test]
fn what_lies_in_no_chunk_is_not_sent_and_counted() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[16]);
    let mut sender = Sender::new(&pair, 0);
    let end = sender.memory.umem.start_of(sender.memory.umem.chunks());
    let of = |address, length| Descriptor {
        address,
        length,
        options: 0,
    };
    let wrong = [
        of(end, 60),
        of(u64::MAX, 60),
        of(2_000, 100),
        of(0, u32::MAX),
    ];
    assert_eq!(sender.socket.ring.push(&wrong), wrong.len());
    sender.send(&frames(0, 0..3));
    assert_eq!(receiver.take_all(0, 3), frames(0, 0..3));
    let statistics = sender.socket.statistics().unwrap();
    assert_eq!(statistics.invalid_transmitted, wrong.len() as u64);
    // Newer kernels (6.18) return such entries as if they had been sent, older ones do not. Until then they belong to
    // neither ring, so the test knows the sent ones by their addresses.
    let (mut strays, mut back) = (0, 0);
    eventually("what was sent comes back", || {
        let mut address = [0];
        while sender.queue.completion.pop(&mut address) > 0 {
            match sender.memory.held.release(Side::Transmit, address[0]) {
                Some(_) => back += 1,
                None => strays += 1,
            }
        }
        back == 3
    });
    assert_eq!(sender.memory.held.strays(), strays);
    assert!(strays <= wrong.len() as u64);
}

#[test]
fn what_lies_in_no_chunk_is_not_filled() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 8, &[16]);
    let mut sender = Sender::new(&pair, 0);
    sender.send(&frames(0, 0..8));
    assert_eq!(receiver.take_all(0, 8).len(), 8);
    let end = receiver.memory.umem.start_of(receiver.memory.umem.chunks());
    assert_eq!(receiver.queue.fill.push(&[end, u64::MAX]), 2);
    receiver.memory.fill(&mut receiver.queue, 2);
    sender.send(&frames(0, 8..10));
    assert_eq!(receiver.take_all(0, 2), frames(0, 8..10));
    assert_eq!(receiver.queue.fill.used(), 0, "what was none is gone");
    receiver.memory.assert_balanced();
}

#[test]
fn a_full_transmit_ring_takes_no_more_until_it_is_kicked() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut sender = Sender::new(&pair, 0);
    let mut small = pair.run(End::A, || TransmitSocket::open(&sender.queue, 4).unwrap());
    assert_eq!(sender.memory.put(&mut small, &frames(0, 0..10)), 4);
    assert_eq!(small.kick().left, 0);
    assert_eq!(sender.memory.put(&mut small, &frames(0, 4..10)), 4);
    small.kick();
    assert_eq!(receiver.take_all(0, 8), frames(0, 0..8));
}

#[test]
fn a_full_completion_ring_stops_a_kick_and_emptying_it_lets_it_go_on() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut memory = Memory::new(64);
    let (mut queue, mut socket) = pair.run(End::A, || {
        let config = QueueConfig {
            completion_entries: 8,
            ..config(&pair, End::A, 0)
        };
        let queue = isolane_datapath_xdp::socket::Queue::open(&memory.umem, &config).unwrap();
        let socket = TransmitSocket::open(&queue, 64).unwrap();
        (queue, socket)
    });
    let kicked = memory.send(&mut socket, &frames(0, 0..20));
    assert_eq!(kicked.stopped, Some(Stopped::Full), "{kicked:?}");
    assert_eq!(kicked.left, 12);
    eventually("all 20 leave", || {
        memory.complete(&mut queue);
        socket.kick().left == 0
    });
    assert_eq!(receiver.take_all(0, 20), frames(0, 0..20));
    eventually("all 20 come back", || {
        memory.complete(&mut queue);
        memory.held.count(Side::Transmit) == 0
    });
    memory.assert_balanced();
}

#[test]
fn a_kick_is_as_many_calls_as_its_frames_take() {
    let Some(pair) = Pair::new(1) else { return };
    let _receiver = Receiver::new(&pair, 256, &[256]);
    let mut sender = Sender::new(&pair, 0);
    for (count, calls) in [(0, 0), (1, 1), (32, 1), (33, 2), (100, 4)] {
        let kicked = sender.send(&frames(0, 0..count));
        assert_eq!(kicked.calls, calls, "{count} frames: {kicked:?}");
        assert_eq!(kicked.left, 0);
        sender.wait_for_completions();
    }
}

#[test]
fn a_kick_of_one_call_leaves_what_is_more_than_a_batch() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 256, &[256]);
    let mut sender = Sender::new(&pair, 0);
    let socket = &mut sender.socket;
    assert_eq!(sender.memory.put(socket, &frames(0, 0..100)), 100);
    for (calls, left) in [(1, 68), (1, 36), (2, 0)] {
        let kicked = sender.socket.kick_at_most(calls);
        assert_eq!((kicked.calls, kicked.left), (calls, left), "{kicked:?}");
    }
    assert_eq!(receiver.take_all(0, 100), frames(0, 0..100));
    sender.wait_for_completions();
}

#[test]
fn an_interface_that_goes_down_stops_sending_by_name_and_takes_it_up_again() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut sender = Sender::new(&pair, 0);
    pair.set_up(End::A, false);
    let kicked = sender.send(&frames(0, 0..3));
    assert_eq!(kicked.stopped, Some(Stopped::Down));
    assert_eq!((kicked.left, kicked.calls), (3, 1));
    pair.set_up(End::A, true);
    eventually("the link is back", || {
        sender.socket.kick();
        sender.memory.complete(&mut sender.queue);
        sender.memory.held.count(Side::Transmit) == 0
    });
    sender.send(&frames(0, 3..4));
    eventually("a frame arrives", || {
        receiver.memory.take(&mut receiver.lanes[0]).is_some()
    });
}

#[test]
fn frames_that_a_driver_refuses_come_back_and_are_counted() {
    let Some(pair) = Pair::new(1) else { return };
    let mut sender = Sender::new(&pair, 0);
    // A veth whose other end is down accepts nothing.
    pair.set_up(End::B, false);
    let kicked = sender.send(&frames(0, 0..5));
    assert_eq!((kicked.refused, kicked.left), (5, 0), "{kicked:?}");
    // Each refusal ends a call, and the number of calls is limited. The remaining frames wait for the next kick.
    let kicked = sender.send(&frames(0, 0..20));
    assert_eq!((kicked.refused, kicked.calls), (9, 9), "{kicked:?}");
    assert_eq!(kicked.left, 11);
    while sender.socket.kick().left > 0 {}
    sender.wait_for_completions();
    sender.memory.assert_balanced();
}

#[test]
fn a_device_that_is_taken_away_ends_sending_by_name() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let mut sender = Sender::new(&pair, 0);
    pair.remove_devices();
    let kicked = sender.send(&frames(0, 0..3));
    assert_eq!(kicked.stopped, Some(Stopped::Gone), "{kicked:?}");
    assert_eq!(kicked.left, 3);
    assert!(receiver.lanes[0].poll_device().is_err());
    assert_eq!(receiver.lanes[0].ring.waiting(), 0);
    assert_eq!(receiver.memory.take(&mut receiver.lanes[0]), None);
}
