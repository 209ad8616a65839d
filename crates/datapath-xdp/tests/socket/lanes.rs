//! Tests of several sockets that share one UMEM.

use std::os::fd::AsFd;

use isolane_datapath_xdp::socket::{Queue, ReceiveSocket, Statistics, TransmitSocket};

use crate::hosts::{End, Pair};
use crate::support::{Receiver, Sender, config, eventually, frame, frames};

#[test]
fn each_lane_of_a_queue_gets_its_own_frames_in_order() {
    let Some(pair) = Pair::new(2) else { return };
    let mut receiver = Receiver::new(&pair, 256, &[64, 64, 64]);
    let mut sender = Sender::new(&pair, 0);
    let mut sent = Vec::new();
    for number in 0..90 {
        sent.push(frame((number % 3) as u8, number, 60 + number as usize * 15));
    }
    let kicked = sender.send(&sent);
    assert_eq!((kicked.left, kicked.refused, kicked.stopped), (0, 0, None));
    for lane in 0..3 {
        let arrived = receiver.take_all(lane, 30);
        let expected = sent.iter().skip(lane).step_by(3);
        assert!(arrived.iter().eq(expected), "lane {lane}");
    }
    sender.wait_for_completions();
    sender.memory.assert_balanced();
    receiver.memory.assert_balanced();
}

#[test]
fn a_frame_arrives_on_the_queue_it_was_sent_on_and_another_queue_shares_the_memory() {
    let Some(pair) = Pair::new(2) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let (mut second, mut on_second) = second_queue(&pair, &receiver);
    receiver.redirect.name(1, 0, on_second.as_fd()).unwrap();
    receiver.memory.fill(&mut second, 32);
    for queue in [0, 1] {
        let mut sender = Sender::new(&pair, queue);
        let sent = frames(0, 10 * queue..10 * queue + 10);
        sender.send(&sent);
        let arrived = match queue {
            0 => receiver.take_all(0, 10),
            _ => receiver.memory.take_all(&mut on_second, 10),
        };
        assert_eq!(arrived, sent, "queue {queue}");
        assert_eq!(receiver.lanes[0].ring.waiting(), 0);
        assert_eq!(on_second.ring.waiting(), 0);
        sender.wait_for_completions();
    }
    receiver.memory.assert_balanced();
}

/// The map must therefore distinguish queues, because only a missing frame would show that it does not.
#[test]
fn a_frame_for_a_socket_of_another_queue_is_lost_and_no_socket_counts_it() {
    let Some(pair) = Pair::new(2) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[64]);
    let lane = receiver.lanes[0].as_fd();
    receiver.redirect.name(1, 0, lane).unwrap();
    let (mut second, mut on_second) = second_queue(&pair, &receiver);
    receiver.redirect.name(1, 1, on_second.as_fd()).unwrap();
    receiver.memory.fill(&mut second, 8);
    let mut sender = Sender::new(&pair, 1);
    sender.send(&frames(0, 0..10));
    // When this frame has arrived, the earlier ones have been delivered or dropped.
    sender.send(&frames(1, 0..1));
    assert_eq!(receiver.memory.take_all(&mut on_second, 1).len(), 1);
    assert_eq!(receiver.lanes[0].ring.waiting(), 0);
    for socket in [&receiver.lanes[0], &on_second] {
        assert_eq!(socket.statistics().unwrap(), Statistics::default());
    }
    assert_eq!(receiver.queue.fill.used(), 64);
    receiver.memory.assert_balanced();
}

/// Queue 1 of the receiver, with the same UMEM, and a socket on it.
fn second_queue(pair: &Pair, receiver: &Receiver) -> (Queue, ReceiveSocket) {
    pair.run(End::B, || {
        let second = receiver
            .queue
            .open_shared(&config(pair, End::B, 1))
            .unwrap();
        let socket = ReceiveSocket::open(&second, 64).unwrap();
        (second, socket)
    })
}

#[test]
fn lanes_come_and_go_while_others_receive() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[16, 16]);
    let mut sender = Sender::new(&pair, 0);
    for round in 0..3 {
        let first = receiver.lanes.remove(0);
        receiver.redirect.forget(0, 0).unwrap();
        drop(first);
        sender.send(&frames(1, round..round + 1));
        assert_eq!(receiver.take_all(0, 1), frames(1, round..round + 1));
        let again = pair.run(End::B, || ReceiveSocket::open(&receiver.queue, 16).unwrap());
        receiver.redirect.name(0, 0, again.as_fd()).unwrap();
        receiver.lanes.insert(0, again);
        sender.send(&frames(0, round..round + 1));
        assert_eq!(receiver.take_all(0, 1), frames(0, round..round + 1));
    }
}

#[test]
fn what_one_lane_sends_comes_back_by_the_queue_it_shares_with_the_others() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[16, 16]);
    let mut sender = Sender::new(&pair, 0);
    let mut other = pair.run(End::A, || TransmitSocket::open(&sender.queue, 16).unwrap());
    sender.send(&frames(0, 0..5));
    sender.memory.send(&mut other, &frames(1, 0..5));
    assert_eq!(receiver.take_all(0, 5), frames(0, 0..5));
    assert_eq!(receiver.take_all(1, 5), frames(1, 0..5));
    sender.wait_for_completions();
    sender.memory.assert_balanced();
}

/// Number of critical frames that arrive, of 20 sent after 100 bulk frames. The fill ring has 64 entries. The bulk lane
/// has a receive ring of this size, which no program reads.
fn critical_behind_bulk(bulk_entries: u32) -> Option<u32> {
    let pair = Pair::new(1)?;
    let mut receiver = Receiver::new(&pair, 64, &[bulk_entries, 64]);
    let mut sender = Sender::new(&pair, 0);
    sender.send(&frames(0, 0..100));
    sender.send(&frames(1, 0..20));
    sender.wait_for_completions();
    let mut arrived = 0;
    eventually("every frame is accounted for", || {
        let mut accounted = |lane: usize| {
            let socket = &mut receiver.lanes[lane];
            let lost = socket.statistics().unwrap();
            arrived = socket.ring.waiting();
            u64::from(arrived) + lost.dropped + lost.receive_ring_full
        };
        (accounted(0), accounted(1)) == (100, 20)
    });
    assert!(receiver.take_all(1, arrived as usize).len() == arrived as usize);
    receiver.memory.assert_balanced();
    Some(arrived)
}

#[test]
fn a_bulk_lane_with_more_entries_than_the_fill_ring_starves_the_critical_one() {
    let Some(arrived) = critical_behind_bulk(128) else {
        return;
    };
    assert_eq!(arrived, 0);
}

#[test]
fn a_bulk_lane_with_fewer_entries_than_the_fill_ring_leaves_the_rest_to_the_critical_one() {
    let Some(arrived) = critical_behind_bulk(32) else {
        return;
    };
    assert_eq!(arrived, 20);
}

#[test]
fn sockets_may_be_used_by_another_thread_than_opened_them() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[16]);
    let mut sender = Sender::new(&pair, 0);
    let sending = std::thread::spawn(move || {
        sender.send(&frames(0, 0..5));
        sender.wait_for_completions();
    });
    assert_eq!(receiver.take_all(0, 5).len(), 5);
    sending.join().unwrap();
}

#[test]
fn a_queue_outlives_its_sockets_and_sockets_outlive_their_queue() {
    let Some(pair) = Pair::new(1) else { return };
    let mut receiver = Receiver::new(&pair, 64, &[16]);
    let Sender {
        queue,
        mut socket,
        mut memory,
    } = Sender::new(&pair, 0);
    drop(queue);
    memory.send(&mut socket, &frames(0, 0..5));
    assert_eq!(receiver.take_all(0, 5).len(), 5);
    drop(socket);
    // The sender's queue is free again.
    let sender = Sender::new(&pair, 0);
    let Queue { .. } = sender.queue;
}
