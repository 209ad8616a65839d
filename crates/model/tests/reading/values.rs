//! Tests of impossible values: the problem names the place, and a correct value.

use isolane_model::Problem;

use super::{assert_says, at, problem_of, problems, system, topic_with};

#[test]
fn each_wrong_value_is_named_with_what_would_be_right() {
    for (line, written, what, help) in [
        (
            "level = 8",
            "8",
            "must be a whole number from 0 to 7",
            "7 is the most critical",
        ),
        (
            "level = -1",
            "-1",
            "must be a whole number from 0 to 7",
            "7 is the most critical",
        ),
        (
            "level = \"7\"",
            "\"7\"",
            "must be a whole number from 0 to 7",
            "7 is the most critical",
        ),
        (
            "period = 500",
            "500",
            "must be a duration",
            "write \"500us\" or \"500ms\"",
        ),
        (
            "period = \"500\"",
            "\"500\"",
            "must be a duration",
            "write \"500us\"",
        ),
        (
            "period = \"5msec\"",
            "\"5msec\"",
            "must be a duration",
            "`ns`, `us`, `ms` and `s`",
        ),
        (
            "deadline = \"0s\"",
            "\"0s\"",
            "must be a duration",
            "leave the line out",
        ),
        (
            "reliability = \"relaible\"",
            "\"relaible\"",
            "must be \"best-effort\" or \"reliable\"",
            "did you mean \"reliable\"?",
        ),
        (
            "durability = \"transient\"",
            "\"transient\"",
            "must be \"volatile\" or \"transient-local\"",
            "",
        ),
        (
            "history = 0",
            "0",
            "must be a whole number from 1 to 65536",
            "",
        ),
        (
            "history = \"3\"",
            "\"3\"",
            "or \"all\"",
            "write 3 without quotes",
        ),
        (
            "history = \"every\"",
            "\"every\"",
            "or \"all\"",
            "keeps the last sample",
        ),
        (
            "history = \"all\"\nmax_samples = 0",
            "0",
            "must be a whole number from 1",
            "",
        ),
        ("keyed = \"yes\"", "\"yes\"", "must be true or false", ""),
        ("budget = 3", "3", "must be a table", "capacity = 20"),
        (
            "budget = {capacity = 1, perod = \"1ms\"}",
            "perod",
            "unknown key",
            "`period`",
        ),
    ] {
        let text = topic_with(line);
        let found = problems(&text);
        let problem = &found[found.len() - 1];
        let (_, _, place) = at(problem, &text);
        assert_eq!(place, written, "{line}");
        assert_says(problem, what, help);
    }
}

#[test]
fn a_sample_is_at_most_what_is_put_together_of_fragments() {
    let text = topic_with("").replace("max_bytes = 64", "max_bytes = 16777213");
    let problem = &problems(&text)[0];
    assert_eq!(at(problem, &text), (7, 13, "16777213"));
    assert!(problem.help().expect("help").contains("put together"));
    system(&text.replace("16777213", "16777212"));
}

#[test]
fn a_history_fits_into_max_samples() {
    let problem = problem_of("history = 10\nmax_samples = 4");
    assert_eq!(problem.line(), Some(9));
    assert!(problem.what().contains("less than the history keeps"));
}

#[test]
fn from_and_to_name_hosts_that_are_described() {
    let good = topic_with("");
    for (replaced, by, written, what, help) in [
        (
            "[\"left\"]",
            "[\"lefd\"]",
            "\"lefd\"",
            "names an unknown host",
            "did you mean `left`?",
        ),
        (
            "[\"left\"]",
            "[\"middle\"]",
            "\"middle\"",
            "names an unknown host",
            "[host.middle]",
        ),
        (
            "[\"left\"]",
            "[]",
            "[]",
            "must be a list of hosts",
            "name at least one",
        ),
        (
            "[\"left\"]",
            "\"left\"",
            "\"left\"",
            "must be a list of hosts",
            "from = [\"left\"]",
        ),
        (
            "[\"left\"]",
            "[\"left\", 3]",
            "3",
            "must be a list of hosts",
            "",
        ),
        (
            "[\"left\"]",
            "[\"left\", \"left\"]",
            "\"left\"",
            "twice",
            "remove it",
        ),
        (
            "from = [\"left\"]",
            "",
            "T",
            "`from` in [topic.T] is missing",
            "which hosts send it",
        ),
    ] {
        let text = good.replace(replaced, by);
        let found = problems(&text);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(at(&found[0], &text).2, written);
        assert_says(&found[0], what, help);
    }
}

#[test]
fn a_host_with_a_wrong_setting_still_exists_for_topics() {
    let found = problems(&topic_with("").replace("\"eth1\"", "\"an interface\""));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].what().contains("`interface` in [host.right]"));
}

/// The only problem of a host with these additional lines, and its subject.
fn problem_of_host(lines: &str) -> (Problem, String) {
    let text = format!("[host.left]\ninterface = \"eth0\"\n{lines}\n");
    let mut found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let problem = found.remove(0);
    let written = text[problem.span().expect("a place")].to_owned();
    (problem, written)
}

#[test]
fn what_cannot_be_kept_is_refused_at_its_place() {
    for (lines, written, what, help) in [
        (
            "[host.left.protect]\ntopics = {capacity = 5, period = \"1ms\", reserved = 6}",
            "6",
            "is more than there is",
            "at most the capacity",
        ),
        (
            "[host.left.protect.others]\ncapacity = 5\nperiod = \"99us\"",
            "\"99us\"",
            "from 100us to 10s",
            "both larger",
        ),
        (
            "[host.left.protect.topics]\nperiod = \"1ms\"",
            "topics",
            "`capacity` in `topics` in `protect` in [host.left] is missing",
            "capacity = 2000",
        ),
        (
            "xdp.receive_entries = 100",
            "100",
            "must be a power of two",
            "128 and 64 are",
        ),
        (
            "xdp.queues = { 8 = 0 }",
            "{ 8 = 0 }",
            "must be a table of levels, like { 7 = 7 }",
            "queues of single levels",
        ),
        (
            "xdp = { levels = [6], queues = { 7 = 1 } }",
            "{ 7 = 1 }",
            "level 7 has a queue, but no lane",
            "add the level to `levels`",
        ),
        ("xdp.levels = []", "[]", "must be a list", "\"udp\""),
        ("xdp.levels = [7, 7]", "[7, 7]", "must be a list", ""),
        ("xdp.levels = [8]", "[8]", "from 0 to 7", ""),
        (
            "xdp.mode = \"zerocopy\"",
            "\"zerocopy\"",
            "\"zero-copy\"",
            "did you mean",
        ),
        ("xdp = 3", "3", "must be a table", "[host.NAME.xdp]"),
        (
            "xdp.waiting = \"spin\"",
            "\"spin\"",
            "has moved",
            "set `waiting` in [host.NAME]",
        ),
        (
            "xdp.queues = { 07 = 1 }",
            "{ 07 = 1 }",
            "must be a table of levels",
            "",
        ),
        (
            "xdp.busy_poll = true",
            "true",
            "`busy_poll` has no effect while the loop sleeps",
            "waiting = \"spin\"",
        ),
        (
            "datapath = \"dpdk\"",
            "\"dpdk\"",
            "must be \"auto\", \"xdp\" or \"udp\"",
            "",
        ),
        ("xdp.vlan = 4095", "4095", "from 0 to 4094", ""),
    ] {
        let (problem, place) = problem_of_host(lines);
        assert_says(&problem, what, help);
        assert!(place.contains(written), "{lines}: {place}");
    }
}
