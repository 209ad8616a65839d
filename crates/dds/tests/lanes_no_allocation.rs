//! Test that participants with lanes allocate nothing after the start: best effort, reliable and housekeeping.

#[path = "../../../tests/support/counting_allocator.rs"]
mod counting_allocator;
#[path = "../../datapath-xdp/tests/hosts/mod.rs"]
#[allow(unreachable_pub)]
mod hosts;
#[path = "../../datapath-xdp/tests/xdp/network.rs"]
#[allow(dead_code)]
mod network;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant, Qos, TopicType, XdpOptions};
use isolane_datapath_xdp::xdp::counters;

use counting_allocator::allocator_calls_of;
use network::{INTERFACE, Segment};

const WARM_UP: u32 = 100;
const SAMPLES: u32 = 3_000;

#[derive(TopicType, Debug, Clone, Copy, Default, PartialEq)]
struct Speed {
    number: u32,
    metres_per_second: f32,
}

/// Both participants, on this thread. Their sockets stay on the hosts on which they were opened.
struct World {
    alice: Participant,
    bob: Participant,
}

impl World {
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(begin.elapsed() < Duration::from_secs(30), "never: {what}");
            let did = self.alice.poll() + self.bob.poll();
            if did == 0 {
                std::thread::yield_now();
            }
        }
    }
}

fn lanes() -> Participant {
    Participant::builder(0)
        .interfaces(Interfaces::Named(vec![INTERFACE.to_owned()]))
        .datapath(XdpOptions::default())
        .build()
        .expect("lanes can be had")
}

fn nothing_is_allocated(qos: &Qos) {
    let mut segment = Segment::new();
    let hosts = [(); 2].map(|()| segment.add_host());
    let [alice, bob] = [&hosts[0], &hosts[1]].map(|host| host.enter(lanes));
    let world = World { alice, bob };
    let writer = hosts[0].enter(|| world.alice.create_writer::<Speed>("Speed", qos));
    let writer = writer.expect("a writer");
    let reader = hosts[1].enter(|| world.bob.create_reader::<Speed>("Speed", qos));
    let reader = reader.expect("a reader");
    let seen = Rc::new(Cell::new(0));
    let of_callback = Rc::clone(&seen);
    let callback = move |_: isolane::Sample<&Speed>| of_callback.set(of_callback.get() + 1);
    reader
        .on_sample(Speed::default(), callback)
        .expect("a job for it");
    world.until("they match", || {
        writer.matched_readers() == 1 && world.bob.report().readers[0].matched == 1
    });
    let exchange = |count: u32| {
        for number in 0..count {
            let sample = Speed {
                number,
                metres_per_second: 1.5,
            };
            let before = seen.get();
            world.until("there is room", || writer.write(&sample).is_ok());
            world.until("it is seen", || seen.get() > before);
        }
    };
    exchange(WARM_UP);
    assert_eq!(allocator_calls_of(|| exchange(SAMPLES)), 0);
    for participant in [&world.alice, &world.bob] {
        let report = participant.report();
        assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
    }
    let counts = world.alice.report().datagrams.total().events;
    assert!(counts.get(counters::SENT_BY_LANE) >= u64::from(SAMPLES));
    assert_eq!(counts.get(counters::DESTINATION_COPY), 0);
}

#[test]
fn best_effort_over_lanes_allocates_nothing() {
    nothing_is_allocated(&Qos::best_effort());
}

#[test]
fn reliable_over_lanes_allocates_nothing() {
    nothing_is_allocated(&Qos::reliable().keep_all().max_samples(32));
}
