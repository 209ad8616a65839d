//! Tests of described participants, which are known without discovery.

use std::net::Ipv4Addr;

use isolane_model::Announces;

use super::{assert_says, at, problems, system, topic_with};

/// Topic T from left to right, and a participant on each host; the lines belong to the first participant.
fn with(lines: &str) -> String {
    let described = topic_with("");
    format!(
        "{described}[participant.one]\n{lines}\n\
         [participant.two]\nhost = \"right\"\naddress = \"10.0.0.2\"\nport = 7000\nreads = [\"T\"]\n"
    )
}

const GOOD: &str = "host = \"left\"\naddress = \"10.0.0.1\"\nport = 7000\nwrites = [\"T\"]";

#[test]
fn a_participant_says_where_it_is_and_what_it_writes_and_reads() {
    let system = system(&with(&format!("{GOOD}\nannounces = \"itself\"")));
    let one = system.participant("one").unwrap();
    assert_eq!(one.address.value, Ipv4Addr::new(10, 0, 0, 1));
    assert_eq!(one.ports(), 7000..7008);
    assert_eq!(one.announces.value, Announces::Itself);
    assert_eq!(one.writes.value, ["T"]);
    assert!(one.reads.value.is_empty());
    assert_eq!(one.reads.source.to_string(), "default");
    let two = system.participant("two").unwrap();
    assert_eq!(two.announces.value, Announces::All);
    assert_eq!(system.participants().len(), 2);
    assert!(system.participant("three").is_none());
}

#[test]
fn each_wrong_participant_is_named_with_what_would_be_right() {
    for (from, to, what, help) in [
        (
            "host = \"left\"",
            "",
            "`host` in [participant.one] is missing",
            "host = \"NAME\"",
        ),
        (
            "host = \"left\"",
            "host = \"lef\"",
            "names an unknown host",
            "did you mean `left`?",
        ),
        (
            "host = \"left\"",
            "host = 1",
            "must be the name of a host",
            "",
        ),
        (
            "address = \"10.0.0.1\"",
            "",
            "is missing",
            "address = \"10.0.0.1\"",
        ),
        (
            "10.0.0.1",
            "10.0.0",
            "must be an IPv4 address",
            "ip address",
        ),
        (
            "10.0.0.1",
            "239.255.0.1",
            "must be an IPv4 address",
            "ip address",
        ),
        ("\"10.0.0.1\"", "10", "must be an IPv4 address", ""),
        ("port = 7000\nw", "w", "is missing", "port = 7000"),
        (
            "port = 7000\nw",
            "port = 65529\nw",
            "from 1024 to 65528",
            "one a level",
        ),
        (
            "port = 7000\nw",
            "port = 80\nw",
            "from 1024 to 65528",
            "one a level",
        ),
        (
            "writes = [\"T\"]",
            "",
            "writes and reads nothing",
            "writes = [\"TOPIC\"]",
        ),
        (
            "writes = [\"T\"]",
            "writes = [\"U\"]",
            "names an unknown topic",
            "[topic.U]",
        ),
        (
            "writes = [\"T\"]",
            "writes = \"T\"",
            "must be a list of topics",
            "",
        ),
        (
            "writes = [\"T\"]",
            "writes = [\"T\", \"T\"]",
            "names a topic twice",
            "remove it",
        ),
        (
            "writes = [\"T\"]",
            "reads = [\"T\"]",
            "reads T on left",
            "add \"left\" to `to`",
        ),
        (
            "writes",
            "announces = \"it\"\nwrites",
            "\"itself\" or \"nothing\"",
            "",
        ),
        (
            "writes",
            "write = []\nwrites",
            "unknown key `write`",
            "did you mean `writes`?",
        ),
        (
            "10.0.0.1",
            "10.0.0.2",
            "share ports of 10.0.0.2",
            "leave eight between them",
        ),
    ] {
        let text = with(&GOOD.replace(from, to));
        let problems = problems(&text);
        assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
        assert_says(&problems[0], what, help);
        assert!(problems[0].line().is_some());
    }
}

#[test]
fn ports_of_one_address_overlap_up_to_the_eighth() {
    let apart = GOOD.replace("10.0.0.1", "10.0.0.2").replace("7000", "7008");
    system(&with(&apart));
    let near = apart.replace("7008", "7007");
    let text = with(&near);
    let problems = problems(&text);
    assert_eq!(at(&problems[0], &text).2, "two");
    assert_says(&problems[0], "share ports", "eight");
}

#[test]
fn participants_of_one_host_share_its_ports_whatever_their_addresses() {
    let second = GOOD.replace("10.0.0.1", "10.0.0.9");
    let text = format!("{}[participant.three]\n{second}\n", with(GOOD));
    let problems = problems(&text);
    assert_eq!(at(&problems[0], &text).2, "three");
    assert_says(&problems[0], "share ports of host left", "eight");
    system(&text.replace(&second, &second.replace("7000", "7008")));
}

#[test]
fn ports_that_rtps_gives_to_the_domain_are_refused_and_a_free_one_is_named() {
    let in_domain = |domain: u32, port: u32| {
        let good = GOOD.replace("7000", &port.to_string());
        format!("domain = {domain}\n{}", with(&good))
    };
    for (domain, port) in [(0, 7_393), (0, 7_600), (0, 7_649), (1, 7_650), (1, 7_899)] {
        let text = in_domain(domain, port);
        let problems = problems(&text);
        assert_eq!(problems.len(), 1, "{problems:#?}");
        let what = format!("participants of domain {domain}");
        assert_says(&problems[0], &what, "port = 7000");
        assert_eq!(at(&problems[0], &text).2, "one");
    }
    for (domain, port) in [(0, 7_392), (0, 7_650), (1, 7_642), (1, 7_900)] {
        system(&in_domain(domain, port));
    }
    // The suggested port is not used by another participant of the host.
    let third = GOOD.replace("7000", "7500");
    let text = format!("{}[participant.three]\n{third}\n", with(GOOD));
    assert_says(&problems(&text)[0], "domain 0", "port = 7008");
}
