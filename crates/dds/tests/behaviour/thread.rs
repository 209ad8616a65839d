//! Tests of participants on their own thread, and of their handles.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use isolane::{
    BuildError, Level, Participant, ParticipantHandle, Qos, ReaderHandle, ThreadEnded, TopicType,
    WriteError, limits::HANDLE_CALLS, types::BoundedString,
};

use crate::support::Message;

const PATIENCE: Duration = Duration::from_secs(20);

fn spawned(domain: u32) -> ParticipantHandle {
    Participant::spawn(move || Participant::builder(domain).loopback().build()).unwrap()
}

/// Takes until a sample comes, without waiting inside the handle.
fn taken(reader: &mut ReaderHandle<Message>) -> u32 {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(sample) = reader.take().unwrap() {
            return sample.value.unwrap().number;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("no sample came");
}

#[test]
fn every_reliable_sample_passes_from_thread_to_thread_in_order() {
    let participant = spawned(201);
    let qos = Qos::reliable().keep_all();
    let mut reader = participant
        .create_reader::<Message>("Passed", &qos)
        .unwrap();
    let mut writer = participant
        .create_writer::<Message>("Passed", &qos)
        .unwrap();
    let publisher = thread::spawn(move || {
        for number in 0..2_000 {
            while writer.write(&Message::number(number)) == Err(WriteError::QueueFull) {
                thread::yield_now();
            }
        }
    });
    for number in 0..2_000 {
        let sample = reader.take_timeout(PATIENCE).unwrap();
        assert_eq!(sample.unwrap().value.unwrap().number, number);
        if number == 1_000 {
            // The queue and the cache fill meanwhile.
            thread::sleep(Duration::from_millis(100));
        }
    }
    publisher.join().unwrap();
    assert!(
        reader
            .take_timeout(Duration::from_millis(20))
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_slow_taker_gets_the_newest_sample_of_a_keep_last_reader() {
    let participant = spawned(202);
    let qos = Qos::reliable().keep_last(1).transient_local();
    let mut reader = participant
        .create_reader::<Message>("Newest", &qos)
        .unwrap();
    let mut writer = participant
        .create_writer::<Message>("Newest", &qos)
        .unwrap();
    writer.write(&Message::number(0)).unwrap();
    assert_eq!(taken(&mut reader), 0);
    for number in 1..=9 {
        writer.write(&Message::number(number)).unwrap();
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(100));
    assert_eq!(taken(&mut reader), 9);
    assert!(reader.take().unwrap().is_none());
}

#[test]
fn after_a_dropped_wait_samples_stay_in_the_cache_where_history_applies() {
    let participant = spawned(221);
    let qos = Qos::reliable().keep_last(1).transient_local();
    let mut reader = participant
        .create_reader::<Message>("Not awaited", &qos)
        .unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(reader.next()).poll(&mut context).is_pending());
    let mut writer = participant
        .create_writer::<Message>("Not awaited", &qos)
        .unwrap();
    for number in 0..=9 {
        writer.write(&Message::number(number)).unwrap();
        thread::sleep(Duration::from_millis(5));
    }
    let end = Instant::now() + PATIENCE;
    while reader.ledger().unwrap().accounted < 10 {
        assert!(Instant::now() < end, "not all arrive");
    }
    assert_eq!(reader.ledger().unwrap().delivered, 0);
    assert_eq!(reader.matched_writers(), Ok(1));
    assert_eq!(taken(&mut reader), 9);
}

#[test]
fn loops_that_drop_handles_of_each_other_do_not_wait_though_their_rings_of_calls_are_full() {
    let participants = [spawned(225), spawned(226)];
    let (dropped, are_dropped) = mpsc::channel();
    // Each loop waits in a call until both rings are full, and then drops the handles of the other participant.
    let mut callers = Vec::new();
    let mut starts = Vec::new();
    let handles: Vec<_> = participants
        .iter()
        .rev()
        .map(|there| {
            let readers: Vec<_> = (0..3)
                .map(|_| there.create_reader::<Message>("Crossed", &Qos::reliable()))
                .collect();
            (
                readers,
                there.create_writer::<Message>("Crossed", &Qos::reliable()),
            )
        })
        .collect();
    for (here, of_the_other) in participants.iter().zip(handles) {
        let (started, has_started) = mpsc::channel();
        let (go, are_full) = mpsc::channel();
        let (called, dropped) = (here.clone(), dropped.clone());
        callers.push(thread::spawn(move || {
            called.with(move |_| {
                started.send(()).unwrap();
                are_full.recv().unwrap();
                drop(of_the_other);
                dropped.send(()).unwrap();
            })
        }));
        has_started.recv_timeout(PATIENCE).unwrap();
        starts.push(go);
    }
    for participant in &participants {
        callers.extend((0..=HANDLE_CALLS).map(|_| {
            let participant = participant.clone();
            thread::spawn(move || participant.with(|_| {}))
        }));
    }
    thread::sleep(Duration::from_millis(300));
    for go in starts {
        go.send(()).unwrap();
    }
    for _ in 0..2 {
        if are_dropped.recv_timeout(PATIENCE).is_err() {
            // Leaks the participants, because dropping them would also wait.
            std::mem::forget(participants);
            panic!("the loops wait for each other");
        }
    }
    for caller in callers {
        caller.join().unwrap().unwrap();
    }
    for participant in &participants {
        let end = Instant::now() + PATIENCE;
        let endpoints = || {
            let counted = participant.with(|it| {
                let report = it.report();
                report.readers.len() + report.writers.len()
            });
            counted.unwrap()
        };
        while endpoints() > 0 {
            assert!(Instant::now() < end, "{} endpoints are left", endpoints());
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_reader_handle_dropped_on_the_loops_thread_does_not_wait_for_room_among_the_calls() {
    let participant = spawned(222);
    let reader = participant.create_reader::<Message>("Crowded", &Qos::reliable());
    let (started, has_started) = mpsc::channel();
    let (go, is_crowded) = mpsc::channel();
    let (dropped, is_dropped) = mpsc::channel();
    let calling = |call: Box<dyn FnOnce() + Send>| {
        let participant = participant.clone();
        thread::spawn(move || participant.with(move |_| call()))
    };
    let blocked = calling(Box::new(move || {
        started.send(()).unwrap();
        is_crowded.recv().unwrap();
        drop(reader);
        dropped.send(()).unwrap();
    }));
    has_started.recv_timeout(PATIENCE).unwrap();
    let others: Vec<_> = (0..=HANDLE_CALLS)
        .map(|_| calling(Box::new(|| {})))
        .collect();
    thread::sleep(Duration::from_millis(200));
    go.send(()).unwrap();
    is_dropped.recv_timeout(PATIENCE).expect("the drop waits");
    for thread in others.into_iter().chain([blocked]) {
        thread.join().unwrap().unwrap();
    }
    let readers = participant.with(|it| it.report().readers.len());
    assert_eq!(readers, Ok(0));
}

/// The same type on the wire, with another bound.
#[derive(TopicType, Debug)]
#[topic(name = "Bounded")]
struct Short {
    text: BoundedString<8>,
}

#[derive(TopicType, Debug)]
#[topic(name = "Bounded")]
struct Long {
    text: BoundedString<64>,
}

/// Waker that counts.
#[derive(Default)]
struct Counting(AtomicU32);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until the waker was called once more.
fn woken(waker: &Counting, before: u32) {
    let end = Instant::now() + PATIENCE;
    while waker.0.load(Ordering::SeqCst) == before {
        assert!(Instant::now() < end, "the task is not woken");
        thread::yield_now();
    }
}

#[test]
fn a_task_is_woken_by_a_sample_and_by_the_end_of_the_thread() {
    let participant = spawned(203);
    let qos = Qos::reliable().transient_local();
    let mut reader = participant
        .create_reader::<Message>("Awaited", &qos)
        .unwrap();
    let mut writer = participant
        .create_writer::<Message>("Awaited", &qos)
        .unwrap();
    let counting = Arc::new(Counting::default());
    let waker = Waker::from(Arc::clone(&counting));
    let mut context = Context::from_waker(&waker);
    {
        let mut next = pin!(reader.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
        writer.write(&Message::number(5)).unwrap();
        woken(&counting, 0);
        match next.as_mut().poll(&mut context) {
            Poll::Ready(Some(sample)) => assert_eq!(sample.value.unwrap().number, 5),
            other => panic!("woken without a sample: {other:?}"),
        }
    }
    assert!(pin!(reader.next()).poll(&mut context).is_pending());
    let before = counting.0.load(Ordering::SeqCst);
    drop(participant);
    woken(&counting, before);
    assert!(matches!(
        pin!(reader.next()).poll(&mut context),
        Poll::Ready(None)
    ));
    assert!(matches!(reader.take(), Err(ThreadEnded)));
    let written = writer.write(&Message::number(6));
    assert_eq!(written, Err(WriteError::Gone));
}

#[test]
fn a_sample_that_is_not_of_the_type_neither_hides_another_nor_makes_a_take_wait() {
    let participant = spawned(208);
    let qos = Qos::reliable().keep_all().transient_local();
    let mut reader = participant.create_reader::<Short>("Bad", &qos).unwrap();
    let other = spawned(208);
    let mut writer = other.create_writer::<Long>("Bad", &qos).unwrap();
    for text in ["short", "this text is longer than the reader's type allows"] {
        writer
            .write(&Long {
                text: text.try_into().unwrap(),
            })
            .unwrap();
    }
    let sample = reader.take_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(sample.value.unwrap().text, "short");
    let end = Instant::now() + PATIENCE;
    let rejected = |it: &Participant| it.report().readers[0].ledger.rejected;
    while participant.with(rejected).unwrap() == 0 {
        assert!(reader.take().unwrap().is_none());
        assert!(Instant::now() < end, "it is not rejected");
    }
}

#[test]
fn a_take_without_patience_gets_what_was_left_in_the_cache() {
    let participant = spawned(209);
    let qos = Qos::reliable().keep_last(1).transient_local();
    let mut reader = participant.create_reader::<Message>("Left", &qos).unwrap();
    let mut writer = participant.create_writer::<Message>("Left", &qos).unwrap();
    writer.write(&Message::number(3)).unwrap();
    let end = Instant::now() + PATIENCE;
    while reader.take_timeout(Duration::ZERO).unwrap().is_none() {
        assert!(Instant::now() < end, "no sample came");
    }
}

#[test]
fn what_was_written_before_the_last_handle_is_dropped_arrives() {
    let reading = spawned(210);
    let qos = Qos::reliable().keep_all();
    let mut reader = reading.create_reader::<Message>("Last", &qos).unwrap();
    let participant = spawned(210);
    let mut writer = participant.create_writer::<Message>("Last", &qos).unwrap();
    let end = Instant::now() + PATIENCE;
    while reading.with(|it| it.report().readers[0].matched).unwrap() == 0 {
        assert!(Instant::now() < end, "they do not match");
        thread::sleep(Duration::from_millis(1));
    }
    for number in 0..12 {
        writer.write(&Message::number(number)).unwrap();
    }
    drop(participant);
    for number in 0..12 {
        let sample = reader.take_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(sample.value.unwrap().number, number);
    }
}

#[test]
fn a_callback_that_keeps_its_participant_does_not_keep_the_thread() {
    let participant = spawned(220);
    let mut reader = participant
        .create_reader::<Message>("Kept", &Qos::reliable())
        .unwrap();
    let timer = participant.with(|participant| {
        let kept = participant.clone();
        let (period, offset) = (Duration::from_millis(1), Duration::ZERO);
        participant.create_timer("keep", Level::MIN, period, offset, move |_| {
            assert!(kept.is_enabled());
        })
    });
    timer.unwrap().unwrap();
    drop(participant);
    assert!(reader.take_timeout(PATIENCE).is_err());
}

#[test]
fn a_thread_that_waits_for_a_sample_is_woken_by_the_end_of_the_participant() {
    let participant = spawned(207);
    let mut reader = participant
        .create_reader::<Message>("Endless", &Qos::reliable())
        .unwrap();
    let taker = thread::spawn(move || reader.take_timeout(Duration::from_secs(3_600)).is_err());
    thread::sleep(Duration::from_millis(20));
    drop(participant);
    assert!(taker.join().unwrap());
}

#[test]
fn dropped_handles_delete_their_endpoints() {
    let participant = spawned(204);
    let qos = Qos::reliable();
    let reader = participant
        .create_reader::<Message>("Deleted", &qos)
        .unwrap();
    let matched = |participant: &ParticipantHandle| {
        participant
            .with(|participant| participant.report().readers.len())
            .unwrap()
    };
    assert_eq!(matched(&participant), 1);
    drop(reader);
    let end = Instant::now() + PATIENCE;
    while matched(&participant) > 0 {
        assert!(Instant::now() < end, "the reader is still there");
    }
}

#[test]
fn an_error_and_a_panic_of_the_builder_reach_the_thread_that_spawns() {
    let refused = Participant::spawn(|| Participant::builder(233).loopback().build());
    assert!(matches!(refused, Err(BuildError::Datapath(_))));
    let panicked = catch_unwind(|| Participant::spawn::<BuildError>(|| panic!("built badly")));
    assert!(panicked.is_err());
}

#[test]
fn a_panic_on_the_loops_thread_ends_it_and_is_passed_on_by_the_last_handle() {
    let participant = spawned(205);
    let other = participant.clone();
    let timer = participant.with(|participant| {
        let (period, offset) = (Duration::from_millis(1), Duration::ZERO);
        participant.create_timer("bad", Level::MIN, period, offset, |_| panic!("a bad day"))
    });
    // The thread may end before it has answered.
    drop(timer);
    let end = Instant::now() + PATIENCE;
    while other.with(|_| ()).is_ok() {
        assert!(Instant::now() < end, "the thread goes on");
    }
    drop(other);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(participant)));
    assert!(dropped.is_err());
}

#[test]
fn a_handle_dropped_by_a_callback_ends_the_thread() {
    let participant = spawned(206);
    let mut reader = participant
        .create_reader::<Message>("Ended", &Qos::reliable())
        .unwrap();
    let last = participant.clone();
    let timer = participant.with(move |participant| {
        let (period, offset) = (Duration::from_millis(1), Duration::ZERO);
        let mut last = Some(last);
        participant.create_timer("end", Level::MIN, period, offset, move |_| {
            drop(last.take());
        })
    });
    timer.unwrap().unwrap();
    drop(participant);
    let end = Instant::now() + PATIENCE;
    while reader.take_timeout(Duration::from_millis(1)).is_ok() {
        assert!(Instant::now() < end, "the thread goes on");
    }
}
