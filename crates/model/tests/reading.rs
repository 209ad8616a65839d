//! What a description means, and what is said about one that means nothing.

use core::time::Duration;

use isolane_model::{
    Datapath, Durability, History, HistoryDepth, OverBudget, Problem, Reliability, Severity,
    Source, System, XdpWaiting, example,
};
use isolane_wire::level::Level;

const NAME: &str = "isolane.toml";

/// Two hosts, and a topic between them with these extra lines, which start at line 8.
fn topic_with(lines: &str) -> String {
    format!(
        "[host.left]\ninterface = \"eth0\"\n[host.right]\ninterface = \"eth1\"\n\
         [topic.T]\ntype = \"T\"\nmax_bytes = 64\n{lines}\nfrom = [\"left\"]\nto = [\"right\"]\n"
    )
}

fn system(text: &str) -> System {
    System::from_toml(text, NAME).expect("a good description")
}

fn problems(text: &str) -> Vec<Problem> {
    System::from_toml(text, NAME).expect_err("a bad description")
}

/// The one problem of a topic with these extra lines.
fn problem_of(lines: &str) -> Problem {
    let mut problems = problems(&topic_with(lines));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

/// Where it is, and what is written there.
fn at<'t>(problem: &Problem, text: &'t str) -> (usize, usize, &'t str) {
    let span = problem.span().expect("a place");
    (
        problem.line().expect("a line"),
        problem.column().expect("a column"),
        &text[span],
    )
}

#[test]
fn the_example_says_what_it_says() {
    let system = system(example());
    assert!(system.warnings().is_empty(), "{:#?}", system.warnings());
    assert_eq!(system.domain().value.get(), 0);
    let hosts: Vec<_> = system
        .hosts()
        .iter()
        .map(|host| host.name.value.as_str())
        .collect();
    assert_eq!(hosts, ["zone-left", "zone-right"]);
    assert_eq!(system.hosts()[0].core.value, Some(1));
    assert_eq!(system.hosts()[1].datapath.value, Datapath::Auto);
    let protect = &system.hosts()[0].protect;
    assert_eq!(protect.topics.as_ref().expect("given").reserved.value, 200);
    assert_eq!(
        protect.others.as_ref().expect("given").capacity.value.get(),
        1000
    );
    assert_eq!(system.hosts()[0].xdp.levels.value.len(), 3);

    let brakes = system.topic("BrakePressure").expect("it is described");
    assert_eq!(brakes.level.value.get(), 7);
    assert_eq!(brakes.period.value, Some(Duration::from_micros(500)));
    assert_eq!(brakes.deadline.value, Some(Duration::from_micros(400)));
    assert_eq!(brakes.max_bytes.value.get(), 64);
    assert_eq!(brakes.reliability.value, Reliability::BestEffort);
    assert_eq!(brakes.history.value, History::KeepLast(HistoryDepth::ONE));
    assert!(!brakes.keyed.value);

    let valves = system.topic("ValveState").expect("it is described");
    assert!(valves.keyed.value);
    assert_eq!(valves.durability.value, Durability::TransientLocal);
    assert_eq!(valves.max_samples.value.get(), 32);

    let diagnostics = system.topic("Diagnostics").expect("it is described");
    assert_eq!(diagnostics.history.value, History::KeepAll);
    assert_eq!(diagnostics.max_samples.value.get(), 64);
    let budget = diagnostics.budget.as_ref().expect("it has one");
    assert_eq!(budget.capacity.value.get(), 20);
    assert_eq!(budget.period.value, Duration::from_millis(10));
    assert_eq!(budget.over.value, OverBudget::Drop);
}

#[test]
fn a_host_knows_the_topics_it_sends_and_receives() {
    let system = system(example());
    let names = |topics: Vec<&isolane_model::Topic>| -> Vec<String> {
        topics
            .iter()
            .map(|topic| topic.name.value.clone())
            .collect()
    };
    assert_eq!(
        names(system.sends("zone-left").collect()),
        ["BrakePressure", "ValveState"]
    );
    assert_eq!(
        names(system.receives("zone-left").collect()),
        ["ValveState", "Diagnostics"]
    );
    assert_eq!(system.sends("zone-middle").count(), 0);
}

#[test]
fn a_description_without_topics_is_one() {
    assert!(system("").topics().is_empty());
}

#[test]
fn what_is_left_out_has_the_default_and_says_so() {
    let system = system(&topic_with(""));
    let topic = system.topic("T").expect("it is described");
    assert_eq!(topic.level.value.get(), 0);
    assert_eq!(topic.reliability.value, Reliability::Reliable);
    assert_eq!(topic.durability.value, Durability::Volatile);
    assert_eq!(topic.period.value, None);
    assert_eq!(topic.level.source, Source::Default);
    assert_eq!(system.domain().source, Source::Default);
    assert_eq!(topic.type_name.source.to_string(), "isolane.toml:6");
}

#[test]
fn keeping_all_without_max_samples_gets_a_default_that_names_its_reason() {
    let system = system(&topic_with("history = \"all\""));
    let samples = &system.topics()[0].max_samples;
    assert_eq!(samples.value.get(), 64);
    assert_eq!(samples.source.to_string(), "default for history = \"all\"");
}

#[test]
fn a_keyed_topic_gets_room_for_several_instances() {
    let system = system(&topic_with("keyed = true\nhistory = 3"));
    assert_eq!(system.topics()[0].max_samples.value.get(), 48);
}

#[test]
fn a_misspelt_key_is_an_error_with_a_suggestion() {
    let text = topic_with("dealine = \"400us\"");
    let problem = problem_of("dealine = \"400us\"");
    assert_eq!(at(&problem, &text), (8, 1, "dealine"));
    assert_eq!(problem.what(), "unknown key `dealine` in [topic.T]");
    assert_eq!(problem.help(), Some("did you mean `deadline`?"));
}

#[test]
fn an_unknown_key_like_none_that_is_known_gets_the_list() {
    let problem = problem_of("colour = \"red\"");
    assert!(
        problem
            .help()
            .expect("help")
            .starts_with("known here: `type`, `level`,")
    );
    let root = problems("hots = 1\n");
    assert_eq!(root[0].help(), Some("did you mean `host`?"));
}

#[test]
fn the_plain_form_shows_line_column_and_the_line() {
    let plain = format!("{:#}", problem_of("  level = 9"));
    assert_eq!(
        plain,
        "isolane.toml:8:11: error: `level` in [topic.T] must be a whole number from 0 to 7\n  \
         level = 9 (9 is out of range)\n  help: 7 is the most critical"
    );
}

#[test]
fn columns_count_characters() {
    let text = "domain = 0\n[topic.\"é\"]\nköy = 1\n";
    let all = problems(text);
    let key = all.iter().find(|problem| problem.what().contains("köy"));
    // A bare key is ASCII: this is an error of syntax, at the letter.
    assert!(key.is_none());
    assert!(
        all.iter().any(|problem| problem.line() == Some(3)),
        "{all:#?}"
    );
    let spaced = problems("domain = 0\n\"é\" = 1\n");
    assert_eq!(at(&spaced[0], "domain = 0\n\"é\" = 1\n"), (2, 1, "\"é\""));
}

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
        assert!(problem.what().contains(what), "{line}: {}", problem.what());
        assert!(
            problem.help().unwrap_or("").contains(help),
            "{line}: {:?}",
            problem.help()
        );
    }
}

#[test]
fn a_sample_is_at_most_what_a_datagram_carries() {
    let text = topic_with("").replace("max_bytes = 64", "max_bytes = 60001");
    let problem = &problems(&text)[0];
    assert_eq!(at(problem, &text), (7, 13, "60001"));
    assert!(problem.help().expect("help").contains("one datagram"));
    system(&text.replace("60001", "60000"));
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
        assert!(found[0].what().contains(what), "{}", found[0].what());
        assert!(
            found[0].help().unwrap_or("").contains(help),
            "{:?}",
            found[0].help()
        );
    }
}

#[test]
fn a_host_with_a_wrong_setting_still_exists_for_topics() {
    let found = problems(&topic_with("").replace("\"eth1\"", "\"an interface\""));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].what().contains("`interface` in [host.right]"));
}

#[test]
fn a_deadline_beyond_the_period_is_a_warning() {
    let system = system(&topic_with("period = \"1ms\"\ndeadline = \"2ms\""));
    let [warning] = system.warnings() else {
        panic!("{:#?}", system.warnings())
    };
    assert_eq!(warning.severity(), Severity::Warning);
    assert_eq!(warning.line(), Some(9));
    assert!(warning.what().contains("longer than the period"));
}

#[test]
fn a_budget_is_to_have_room_for_all_senders() {
    let text = |capacity: u32| {
        topic_with(&format!(
            "period = \"1ms\"\nbudget = {{capacity = {capacity}, period = \"10ms\"}}"
        ))
        .replace("from = [\"left\"]", "from = [\"left\", \"right\"]")
    };
    let told = system(&text(19));
    let warning = &told.warnings()[0];
    assert!(warning.help().expect("help").contains("to 20 or more"));
    assert!(
        format!("{warning:#}").contains("from 2 hosts"),
        "{warning:#}"
    );
    assert!(system(&text(20)).warnings().is_empty());
}

/// The one problem of a host with these extra lines, and what it is about.
fn problem_of_host(lines: &str) -> (Problem, String) {
    let text = format!("[host.left]\ninterface = \"eth0\"\n{lines}\n");
    let mut found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    let problem = found.remove(0);
    let written = text[problem.span().expect("a place")].to_owned();
    (problem, written)
}

#[test]
fn a_host_says_what_protects_it_and_how_its_lanes_are_set_up() {
    let text = "[host.left]\ninterface = \"eth0\"\n[host.left.protect]\n\
        topics = { capacity = 2000, period = \"10ms\", reserved = 200 }\n\
        [host.left.xdp]\nqueue = 1\nqueues = { 7 = 0 }\nlevels = [7, 5]\nvlan = 12\n\
        waiting = \"spin\"\n[host.right]\ninterface = \"eth0\"\n";
    let system = system(text);
    let [left, right] = system.hosts() else {
        panic!("two hosts")
    };
    let topics = left.protect.topics.as_ref().expect("given");
    assert_eq!(
        (topics.capacity.value.get(), topics.reserved.value),
        (2000, 200)
    );
    assert_eq!(topics.period.source.to_string(), "isolane.toml:4");
    assert!(left.protect.others.is_none() && right.protect.topics.is_none());
    let level = |number| Level::new(number).expect("a level");
    assert_eq!(left.xdp.queue_of(level(7)), 0);
    assert_eq!(left.xdp.queue_of(level(6)), 1);
    assert_eq!(left.xdp.levels.value, [level(5), level(7)]);
    assert_eq!(left.xdp.vlan.value, Some(12));
    assert_eq!(left.xdp.waiting.value, XdpWaiting::Spin);
    assert_eq!(right.xdp.levels.value.len(), 8);
    assert_eq!(right.xdp.receive_entries.source, Source::Default);
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
            "8",
            "unknown key `8`",
            "known here: `0`",
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
        ("xdp = 3", "3", "must be a table", "xdp.queue"),
        ("xdp.vlan = 4095", "4095", "from 0 to 4094", ""),
    ] {
        let (problem, place) = problem_of_host(lines);
        assert!(problem.what().contains(what), "{lines}: {}", problem.what());
        let said = problem.help().unwrap_or("");
        assert!(said.contains(help), "{lines}: {said}");
        assert!(place.contains(written), "{lines}: {place}");
    }
}

#[test]
fn a_budget_below_what_the_topic_sends_is_a_warning() {
    let lines = "period = \"1ms\"\nbudget = {capacity = 9, period = \"10ms\"}";
    let system = system(&topic_with(lines));
    assert!(
        system.warnings()[0]
            .help()
            .expect("help")
            .contains("to 10 or more")
    );
    assert_eq!(
        system.topics()[0]
            .budget
            .as_ref()
            .expect("given")
            .over
            .source,
        Source::Default
    );
}

#[test]
fn transient_local_without_reliability_is_a_warning() {
    let lines = "reliability = \"best-effort\"\ndurability = \"transient-local\"";
    assert_eq!(system(&topic_with(lines)).warnings().len(), 1);
    assert!(
        system(&topic_with("durability = \"transient-local\""))
            .warnings()
            .is_empty()
    );
}

#[test]
fn a_name_that_is_given_twice_is_one_mistake() {
    let text = topic_with("level = 1\nlevel = 2");
    assert_eq!(at(&problems(&text)[0], &text), (9, 1, "level"));

    let text = format!("{}[topic.T]\ntype = \"T\"\nmax_bytes = 1\n", topic_with(""));
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].what(), "the table of `T` is given twice");
    assert_eq!(found[0].line(), Some(11));
}

#[test]
fn all_problems_of_a_file_are_reported_in_its_order() {
    let text = "domain = 500\n[host.left]\ninterfac = \"eth0\"\ncore = -1\n\
                [topic.T]\ntype = \"\"\nlevel = 9\nfrom = [\"leftt\"]\nto = []\n\
                [topic.U]\nlevel = = 3\nperiod = \"x\"\n";
    let found = problems(text);
    let lines: Vec<_> = found.iter().filter_map(Problem::line).collect();
    assert!(lines.is_sorted(), "{found:#?}");
    for line in [1, 3, 4, 6, 7, 8, 9, 11, 12] {
        assert!(
            lines.contains(&line),
            "nothing about line {line}: {found:#?}"
        );
    }
}

#[test]
fn after_a_broken_header_only_syntax_is_reported() {
    let text = topic_with("").replace("[host.right]", "[host.right");
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].line(), Some(3));
}

#[test]
fn tables_have_names() {
    assert!(
        problems("topic = 3")[0]
            .help()
            .expect("help")
            .contains("[topic.NAME]")
    );
    assert!(
        problems("[topic]\nlevel = 3")[0]
            .help()
            .expect("help")
            .contains("[topic.NAME]")
    );
    assert!(
        problems("[[host]]\ncore = 3")[0]
            .help()
            .expect("help")
            .contains("[host.NAME]")
    );
    assert!(
        problems("[host.\"a b\"]\ninterface = \"lo\"")[0]
            .what()
            .contains("name of a host")
    );
    assert!(
        problems("[topic.\"a\\n\"]")[0]
            .what()
            .contains("name of a topic")
    );
}

#[test]
fn what_is_no_text_is_said_to_be_none() {
    let found = System::from_bytes(b"domain = 0\n\xff\n", NAME).expect_err("not UTF-8");
    assert!(found[0].what().contains("line 2"), "{}", found[0].what());
    assert_eq!(found[0].span(), None, "what is no text is not drawn");
    let long = vec![b'#'; isolane_model::limits::MAX_FILE_BYTES + 1];
    let found = System::from_bytes(&long, NAME).expect_err("too long");
    assert!(found[0].what().contains("longer than"));
    assert_eq!(found[0].span(), None);
}

#[test]
fn a_value_that_was_forgotten_is_said_to_be_missing() {
    for line in ["domain =", "domain = # which one?"] {
        let found = System::from_toml(line, NAME).expect_err("no value");
        assert_eq!(found[0].what(), "a value is missing", "{line}");
    }
    let found = System::from_toml("domain = five", NAME).expect_err("no number");
    assert_ne!(found[0].what(), "a value is missing");
}

#[test]
fn a_file_that_is_not_there_says_how_to_write_one() {
    let found = System::load("no/such/isolane.toml").expect_err("it is not there");
    assert!(found[0].what().contains("no/such/isolane.toml"));
    assert!(
        found[0]
            .help()
            .expect("help")
            .contains("isolane config --example")
    );
}

#[test]
fn what_is_missing_at_the_end_is_marked_at_the_last_character() {
    let text = "topic = [\"x\"";
    let found = problems(text);
    assert_eq!(
        (found[0].line(), found[0].column()),
        (Some(1), Some(12)),
        "{found:#?}"
    );
}
