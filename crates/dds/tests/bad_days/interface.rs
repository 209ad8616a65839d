//! Tests of failures and changes of an interface while lanes use it.

use std::time::{Duration, Instant};

use isolane::{Level, Timing, UdpOptions, XdpOptions};
use isolane_datapath_xdp::xdp::counters;

use crate::hosts::ip;
use crate::network::{INTERFACE, Segment};
use crate::world::{
    CRITICAL, Side, Topic, assert_sockets_work, best_effort, lanes, reliable, two_hosts, until,
    with,
};

#[test]
fn a_reliable_topic_survives_an_interface_that_flaps_and_goes_by_lane_again() {
    const SAMPLES: u32 = 120;
    let hosts = two_hosts();
    // Neither the lease nor the history may end while the interface is down on a slow machine.
    let timing = Timing {
        announce_period: Duration::from_millis(200),
        lease: Duration::from_secs(60),
        ..Timing::default()
    };
    let patient = || lanes(XdpOptions::default()).timing(timing);
    let [one, other] = [0, 1].map(|place| Side::new(&hosts[place], patient()).expect("lanes"));
    let sides = [&one, &other];
    let qos = reliable(CRITICAL).max_samples(256);
    let topic = Topic::new(sides, "Topic", &qos);
    topic.pass_by_lane(sides, CRITICAL);
    let mut came = Vec::new();
    for number in 0..SAMPLES {
        let flapping = sides[number as usize / 10 % 2];
        match number % 10 {
            3 => drop(flapping.ip(&format!("link set {INTERFACE} down"))),
            6 => drop(flapping.ip(&format!("link set {INTERFACE} up"))),
            _ => {}
        }
        topic.write(sides, number, 200);
        for side in sides {
            side.run(Duration::from_millis(2));
        }
        came.extend(topic.take());
    }
    let all = until(sides, || {
        came.extend(topic.take());
        came.len() == SAMPLES as usize
    });
    assert!(all, "{came:?}; {}", one.participant.report().datagrams);
    assert!(came.is_sorted(), "in order: {came:?}");
    topic.pass_by_lane(sides, CRITICAL);
    for side in sides {
        assert_eq!(side.participant.warnings(), Vec::<String>::new());
    }
    assert_sockets_work(&hosts[0], &hosts[1]);
    drop(topic);
    one.finish();
    other.finish();
}

#[test]
fn a_name_is_only_a_name_for_samples_and_for_announcements() {
    let hosts = two_hosts();
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    one.ip(&format!("link set {INTERFACE} name renamed0"));
    // Longer than a lease: participants whose announcements do not arrive are removed.
    let begin = Instant::now();
    for number in 0.. {
        topic.pass(sides, number, 64);
        for side in sides {
            side.run(Duration::from_millis(10));
        }
        if begin.elapsed() > Duration::from_secs(4) {
            break;
        }
    }
    for side in sides {
        assert_eq!(side.participant.counters().leases_expired, 0);
    }
    topic.pass_by_lane(sides, CRITICAL);
    // A new endpoint is discovered, too.
    let late = Topic::new(sides, "Late", &best_effort(Level::ALL[3]));
    late.pass_by_lane(sides, Level::ALL[3]);
    drop((topic, late));
    one.ip(&format!("link set renamed0 name {INTERFACE}"));
    one.finish();
    other.finish();
}

#[test]
fn an_interface_moved_to_another_namespace_is_reported_leaves_nothing_and_works_there() {
    let mut segment = Segment::new();
    let [home, far] = [(); 2].map(|()| segment.add_host());
    let elsewhere = segment.add_host();
    let [one, other] = [&home, &far].map(Side::on_lanes);
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &reliable(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);

    let home_mac = one.ip(&format!("-o link show dev {INTERFACE}"));
    let (_, home_mac) = home_mac.split_once("link/ether ").expect("a MAC");
    let (home_mac, _) = home_mac.split_once(' ').expect("a MAC, and more");
    elsewhere.enter(|| ip(&format!("link delete {INTERFACE}")));
    let thread = elsewhere.enter(|| {
        let namespace = std::fs::File::open("/proc/thread-self/ns/net");
        namespace.expect("this thread's namespace")
    });
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&thread);
    let place = format!("/proc/{}/fd/{descriptor}", std::process::id());
    one.ip(&format!("link set {INTERFACE} netns {place}"));
    for number in 0..50 {
        topic.write(sides, number, 200);
    }
    let is_reported = || {
        let warnings = one.participant.warnings();
        warnings
            .iter()
            .any(|warning| warning.contains("moved to another"))
    };
    assert!(
        until(sides, is_reported),
        "{:?}",
        one.participant.warnings()
    );
    assert!(one.participant.observe().interfaces.is_empty());
    // Nothing panics or spins, and unsent datagrams are counted under a name.
    let before = one.participant.report();
    one.run(Duration::from_millis(500));
    let report = one.participant.report();
    assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
    let activations = |report: &isolane::Report| -> u64 {
        let jobs = report.jobs.iter();
        jobs.map(|job| job.statistics.activations).sum()
    };
    assert!(activations(&report) - activations(&before) < 2_000);
    drop(topic);
    drop(one);

    // In the other namespace the interface has no program, and any process can use it.
    elsewhere.enter(|| {
        crate::world::assert_free();
        ip(&format!("link set {INTERFACE} up"));
        ip(&format!(
            "address add {}/24 dev {INTERFACE}",
            elsewhere.address()
        ));
    });
    let known = format!("lladdr {home_mac} dev {INTERFACE} nud permanent");
    other.ip(&format!(
        "neighbour replace {} {known}",
        elsewhere.address()
    ));
    let there = Side::on_lanes(&elsewhere);
    let sides = [&there, &other];
    let topic = Topic::new(sides, "There", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    drop(topic);
    there.finish();
    other.finish();
}

#[test]
fn a_lower_mtu_leaves_longer_packets_to_the_kernel_and_a_higher_one_is_reported() {
    let hosts = two_hosts();
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    let long = || one.count(CRITICAL, counters::KERNEL_TOO_LONG);
    topic.pass(sides, 1, 1_200);
    assert_eq!(long(), 0);

    one.ip(&format!("link set {INTERFACE} mtu 1000"));
    let is_followed = until(sides, || {
        topic.pass(sides, 2, 1_200);
        long() > 0
    });
    assert!(is_followed, "1,200 bytes fit no frame of 1,000");
    topic.pass_by_lane(sides, CRITICAL);

    one.ip(&format!("link set {INTERFACE} mtu 1500"));
    let is_followed = until(sides, || {
        let before = long();
        topic.pass(sides, 3, 1_200);
        long() == before
    });
    assert!(is_followed, "1,200 bytes go by lane again");

    // While the program is attached, the kernel refuses an MTU that exceeds a chunk; otherwise a warning reports it.
    let raise = || {
        let mut command = std::process::Command::new("ip");
        command.args(["link", "set", INTERFACE, "mtu", "9000"]);
        let output = command.output().expect("ip, of iproute2");
        output.status.success()
    };
    if one.host.enter(raise) {
        let is_reported = || {
            let warnings = one.participant.warnings();
            warnings
                .iter()
                .any(|warning| warning.contains("MTU was raised to 9000"))
        };
        assert!(
            until(sides, is_reported),
            "{:?}",
            one.participant.warnings()
        );
    }
    topic.pass_by_lane(sides, CRITICAL);
    drop(topic);
    one.finish();
    other.finish();
}

#[test]
fn a_neighbour_that_gets_another_mac_is_reached_again_by_lane() {
    let mut segment = Segment::new();
    // Without permanent neighbour entries: the hosts resolve each other's address by ARP.
    let hosts = [(); 2].map(|()| segment.add_host());
    for host in &hosts {
        host.enter(|| ip(&format!("neighbour flush dev {INTERFACE} nud permanent")));
    }
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &reliable(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    for change in 1..4 {
        other.ip(&format!(
            "link set {INTERFACE} address 02:00:00:00:07:0{change}"
        ));
        topic.pass(sides, change, 64);
        topic.pass_by_lane(sides, CRITICAL);
    }
    drop(topic);
    one.finish();
    other.finish();
}

#[test]
fn a_deleted_interface_is_reported_and_unsent_datagrams_are_counted() {
    let hosts = two_hosts();
    let one = Side::on_lanes(&hosts[0]);
    let other = Side::new(&hosts[1], with(UdpOptions::default())).expect("sockets");
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &reliable(CRITICAL));
    topic.pass(sides, 1, 64);
    one.ip(&format!("link delete {INTERFACE}"));
    let is_reported = || !one.participant.warnings().is_empty();
    assert!(until(sides, is_reported), "the deletion is not noticed");
    let warnings = one.participant.warnings().join("\n");
    assert!(
        warnings.contains("Create the participant again"),
        "{warnings}"
    );
    for number in 2..20 {
        topic.write(sides, number, 64);
    }
    let report = one.participant.report();
    assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
    drop(topic);
    drop(one);
    other.finish();
}
