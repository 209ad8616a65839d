//! Tests of lanes that cannot be opened: the error names the obstacle and the remedy, `auto` uses sockets and says why,
//! and the obstacle stays as it is.

use isolane::{AttachMode, Interfaces, Level, OnFailure, UdpOptions, XdpOptions};
use isolane_datapath_xdp::classifier::{Classifier, ClassifierConfig};

use crate::hosts::{index_of, ip};
use crate::network::{Host, INTERFACE, Segment};
use crate::world::{
    CRITICAL, Side, Topic, assert_free, assert_sockets_work, best_effort, lanes, two_hosts, with,
};

/// Returns the error of opening a reader on lanes.
fn refused(host: &Host, options: XdpOptions) -> String {
    let side = match Side::new(host, lanes(options)) {
        Ok(side) => side,
        Err(error) => return error.to_string(),
    };
    let refused = side.reader("Topic", &best_effort(CRITICAL));
    refused.map(drop).expect_err("it cannot be had").to_string()
}

/// Returns the warnings of `auto`, which uses sockets.
fn warnings_of_auto(host: &Host, options: XdpOptions) -> String {
    let either = with(UdpOptions::default())
        .datapaths(vec![Box::new(options), Box::new(UdpOptions::default())]);
    let side = Side::new(host, either).expect("sockets do");
    let reader = side.reader("Topic", &best_effort(CRITICAL));
    drop(reader.expect("sockets do"));
    assert!(side.participant.observe().interfaces.is_empty());
    side.participant.warnings().join("\n")
}

fn assert_says(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
}

#[test]
fn an_interface_whose_driver_runs_no_programs_is_named_and_auto_goes_by_sockets() {
    let [host, _] = two_hosts();
    host.enter(|| {
        ip(&format!(
            "link add link {INTERFACE} name upper0 type macvlan"
        ));
        ip("address add 10.80.0.1/24 dev upper0");
        ip("link set upper0 up");
    });
    let builder = |options: XdpOptions| {
        with(options).interfaces(Interfaces::Named(vec!["upper0".to_owned()]))
    };
    let options = XdpOptions::default;
    let side = Side::new(&host, builder(options())).expect("not opened yet");
    let refused = side.reader("Topic", &best_effort(CRITICAL));
    let refused = refused.map(drop).expect_err("no native XDP").to_string();
    assert_says(&refused, &["upper0", "no native XDP", "datapath udp"]);
    // Generic mode works on every interface, for a participant that requests it.
    let generic = XdpOptions {
        attach: AttachMode::Generic,
        ..options()
    };
    drop(side);
    let side = Side::new(&host, builder(generic)).expect("generic works");
    side.reader("Topic", &best_effort(CRITICAL))
        .expect("generic works");
    drop(side);
    let either =
        builder(options()).datapaths(vec![Box::new(options()), Box::new(UdpOptions::default())]);
    let side = Side::new(&host, either).expect("sockets do");
    let warnings = side.participant.warnings().join("\n");
    assert_says(&warnings, &["xdp is not used", "upper0"]);
    assert_eq!(side.participant.datapath(), "udp");
}

#[test]
fn a_queue_that_another_participant_has_is_named_and_given_as_soon_as_that_is_gone() {
    let [host, far] = two_hosts();
    let first = Side::on_lanes(&host);
    let other = Side::on_lanes(&far);
    let topic = Topic::new([&other, &first], "First", &best_effort(CRITICAL));
    let message = refused(&host, XdpOptions::default());
    assert_says(&message, &[INTERFACE, "queue 0", "another program"]);
    let warnings = warnings_of_auto(&host, XdpOptions::default());
    assert_says(&warnings, &[INTERFACE, "not used"]);

    // A participant that accepts sockets shares the host with it, and both continue.
    let sockets = XdpOptions {
        on_failure: OnFailure::Sockets,
        ..XdpOptions::default()
    };
    let second = Side::new(&host, lanes(sockets)).expect("sockets do");
    let other_topic = Topic::new([&other, &second], "Second", &best_effort(CRITICAL));
    other_topic.pass([&other, &second], 1, 64);
    topic.pass_by_lane([&other, &first], CRITICAL);
    assert_says(
        &second.participant.warnings().join("\n"),
        &["uses kernel sockets instead", "queue 0"],
    );
    drop((topic, other_topic));
    drop(second);
    first.finish();

    let again = Side::on_lanes(&host);
    let topic = Topic::new([&other, &again], "Again", &best_effort(CRITICAL));
    topic.pass_by_lane([&other, &again], CRITICAL);
    drop(topic);
    again.finish();
    other.finish();
}

#[test]
fn a_queue_that_is_not_there_is_named() {
    let [host, _] = two_hosts();
    let options = XdpOptions {
        queues: [5; 8],
        ..XdpOptions::default()
    };
    let message = refused(&host, options.clone());
    assert_says(&message, &[INTERFACE, "no queue 5", "ethtool -L eth0"]);
    assert_says(&warnings_of_auto(&host, options), &["queue 5"]);
    host.enter(assert_free);
}

#[test]
fn memory_that_is_too_small_is_refused_with_the_numbers() {
    let [host, _] = two_hosts();
    let options = XdpOptions {
        receive_frames: Some(64),
        ..XdpOptions::default()
    };
    let message = refused(&host, options.clone());
    assert_says(
        &message,
        &[
            "queue 0 has 64 receive frames",
            "receive_frames = 2272",
            "overcommit",
        ],
    );
    assert_says(&warnings_of_auto(&host, options), &["64 receive frames"]);
    host.enter(assert_free);
}

#[test]
fn a_program_of_somebody_else_is_named_and_left_alone() {
    let [host, far] = two_hosts();
    let mut foreign = Classifier::load(&ClassifierConfig::default()).expect("rights");
    host.enter(|| foreign.attach(index_of(INTERFACE), AttachMode::Native))
        .expect("the hook is free");
    let tag = foreign.tag().to_string();
    let own = format!("process {}", std::process::id());
    let message = refused(&host, XdpOptions::default());
    assert_says(&message, &[INTERFACE, &tag, &own, "xdp off"]);
    assert_says(&warnings_of_auto(&host, XdpOptions::default()), &[&tag]);
    let index = host.enter(|| index_of(INTERFACE));
    assert_eq!(foreign.attached_to(), Some(index));
    assert_sockets_work(&far, &host);
    drop(foreign);
    host.enter(assert_free);
}

#[test]
fn an_interface_that_is_down_or_not_there_is_named_with_what_to_do() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    host.enter(|| ip(&format!("link set {INTERFACE} down")));
    let message = refused(&host, XdpOptions::default());
    assert_says(&message, &["ip link set eth0 up"]);
    host.enter(|| ip(&format!("link set {INTERFACE} up")));
    let elsewhere = XdpOptions {
        interface: Some("eth7".to_owned()),
        ..XdpOptions::default()
    };
    let message = refused(&host, elsewhere.clone());
    assert_says(&message, &["eth7", INTERFACE]);
    assert_says(&warnings_of_auto(&host, elsewhere), &["eth7", INTERFACE]);
    // The refused lane does not affect the others: the same participant continues.
    let one_level = XdpOptions {
        levels: 1 << Level::ALL[7].get(),
        queues: [0, 0, 0, 0, 0, 0, 0, 5],
        ..XdpOptions::default()
    };
    let side = Side::new(&host, lanes(one_level)).expect("not opened yet");
    let refused = side.reader("Topic", &best_effort(CRITICAL));
    assert!(refused.is_err());
    side.reader("Topic", &best_effort(Level::ALL[3]))
        .expect("level 3 goes by sockets");
    side.finish();
}
