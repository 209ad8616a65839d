//! Tests of a participant inside a foreign event loop: a descriptor, the next due time, and `poll`.

use std::{
    thread,
    time::{Duration, Instant},
};

use isolane::{Participant, Qos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Message, PATIENCE, Site, assert_balanced, take_numbers};

/// Time by the clock of `next_time`.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Foreign event loop over several participants, as an application would write it. Returns the number of its rounds.
fn run(participants: &[&Participant], mut done: impl FnMut() -> bool) -> u32 {
    let end = Instant::now() + PATIENCE;
    let mut rounds = 0;
    loop {
        for participant in participants {
            participant.poll();
        }
        if done() {
            return rounds;
        }
        assert!(Instant::now() < end, "not in time");
        rounds += 1;
        let next = participants.iter().filter_map(|one| one.next_time()).min();
        let wait_ns = next.map_or(u64::MAX, |at| at.as_nanos().saturating_sub(now_ns()));
        let timeout = Timespec {
            tv_sec: (wait_ns / 1_000_000_000).min(60) as i64,
            tv_nsec: (wait_ns % 1_000_000_000) as i64,
        };
        let mut descriptors: Vec<PollFd<'_>> = participants
            .iter()
            .map(|one| PollFd::new(*one, PollFlags::IN))
            .collect();
        poll(&mut descriptors, Some(&timeout)).unwrap();
    }
}

#[test]
fn participants_in_a_foreign_loop_find_each_other_and_exchange_samples() {
    for site in Site::both() {
        let (alice, bob) = (site.participant(), site.participant());
        let qos = Qos::reliable().keep_all();
        let writer = alice.create_writer::<Message>("Foreign", &qos).unwrap();
        let reader = bob.create_reader::<Message>("Foreign", &qos).unwrap();
        let both = [&alice, &bob];
        run(&both, || writer.matched_readers() == 1);
        for number in 0..10 {
            writer.write(&Message::number(number)).unwrap();
        }
        run(&both, || {
            reader.available() == 10 && writer.all_acknowledged()
        });
        assert!(take_numbers(&reader).into_iter().eq(0..10));

        // Without work, the loop sleeps.
        let end = Instant::now() + Duration::from_millis(100);
        let rounds = run(&both, || Instant::now() >= end);
        assert!(rounds < 100, "{rounds} rounds in 100 ms of nothing");
        for participant in both {
            assert_balanced(&participant.report(), matches!(site, Site::Memory(_)));
        }
    }
}

#[test]
fn the_descriptor_becomes_readable_when_another_thread_writes() {
    for site in Site::both() {
        let alice = site.participant();
        let qos = Qos::best_effort().keep_last(64);
        let reader = alice.create_reader::<Message>("Woken", &qos).unwrap();
        let mut writer = alice
            .create_writer_handle::<Message>("Woken", &qos)
            .unwrap();
        run(&[&alice], || reader.matched_writers() == 1);
        let publisher = thread::spawn(move || {
            for number in 0..20 {
                thread::sleep(Duration::from_millis(3));
                writer.write(&Message::number(number)).unwrap();
            }
            writer
        });
        // Between two samples, only the eventfd wakes the loop.
        let begin = Instant::now();
        run(&[&alice], || reader.available() == 20);
        assert!(
            begin.elapsed() < Duration::from_millis(900),
            "{:?}",
            begin.elapsed()
        );
        let writer = publisher.join().unwrap();
        assert_balanced(&alice.report(), matches!(site, Site::Memory(_)));
        drop(writer);
    }
}

#[test]
fn what_is_written_outside_of_the_loop_makes_it_due_at_once() {
    let alice = Site::memory().participant();
    let qos = Qos::reliable();
    let writer = alice.create_writer::<Message>("Due", &qos).unwrap();
    while alice.poll() > 0 {}
    let idle = alice.next_time().unwrap();
    assert!(idle.as_nanos() > now_ns() - 1_000_000_000, "a time to come");
    writer.write(&Message::number(1)).unwrap();
    assert!(alice.next_time().unwrap().as_nanos() < now_ns());
}
