//! The interface a participant uses goes away while it runs: what cannot be sent is counted, nothing
//! panics, and the loop goes on sleeping.
//!
//! The test runs itself again inside a network namespace of its own, where it may make and remove
//! interfaces. Where the system does not allow that it says so, and fails in CI.

#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::time::{Duration, Instant};

use isolane::{Interfaces, Participant, Qos, Report, Timing, TopicType};
use own_namespace::{in_namespace, ip};

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
struct Tick {
    number: u32,
}

fn refused(report: &Report) -> u64 {
    report.datagrams.total().transmit.refused_total()
}

fn activations(report: &Report) -> u64 {
    let jobs = report.jobs.iter();
    jobs.map(|job| job.observed.activations).sum()
}

fn inside() {
    ip("link add gone0 type veth peer name gone1");
    ip("address add 10.9.0.1/24 dev gone0");
    ip("link set gone0 up");
    ip("link set gone1 up");
    let timing = Timing {
        announce_period: Duration::from_millis(100),
        ..Timing::default()
    };
    let participant = Participant::builder(0)
        .interfaces(Interfaces::Named(vec!["gone0".to_owned()]))
        .timing(timing)
        .build()
        .unwrap();
    let writer = participant
        .create_writer::<Tick>("Ticks", &Qos::best_effort())
        .unwrap();
    participant.run_for(Duration::from_millis(300));
    assert_eq!(refused(&participant.report()), 0);

    ip("link delete gone0");
    let before = activations(&participant.report());
    let begin = Instant::now();
    participant.run_for(Duration::from_millis(2_500));
    writer.write(&Tick { number: 1 }).unwrap();
    let report = participant.report();
    assert!(refused(&report) > 0, "{}", report.datagrams);
    assert_eq!(report.balance(), Ok(()));
    // An announcement each 100 ms, and housekeeping: a loop that does not sleep runs a million.
    let tenths = begin.elapsed().as_millis() as u64 / 100;
    let ran = activations(&report) - before;
    assert!(ran < 20 * (tenths + 5), "{ran} activations\n{report}");
}

#[test]
fn an_interface_that_goes_away_is_counted_and_the_loop_goes_on_sleeping() {
    in_namespace(
        "an_interface_that_goes_away_is_counted_and_the_loop_goes_on_sleeping",
        inside,
    );
}
