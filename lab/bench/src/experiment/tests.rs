//! Tests of scenario files, and of the shipped ones.

use std::collections::HashSet;

use super::*;
use crate::report::{Counter, Expected, Order, Place, Publisher, ReceiveWork};

fn planned(name: &str) -> Vec<Planned> {
    let text = shipped(name).expect("it is shipped");
    Scenario::parse(text)
        .expect("a scenario")
        .plan(true)
        .expect("runs")
}

fn of(text: &str) -> Result<Vec<Planned>, String> {
    let scenario = Scenario::parse(text).map_err(|error| error.to_string())?;
    scenario.plan(true).map_err(|error| error.to_string())
}

/// Plan of a scenario with one block, which has these values, and these members after them.
fn of_block(set: &str, members: &str) -> Result<Vec<Planned>, String> {
    let block = "[[block]]\nname = \"b\"\ntitle = \"The block\"";
    of(&format!(
        "title = \"t\"\n{block}\nset = {{ {set} }}\n{members}"
    ))
}

/// Cases of a table: a line for each, with its two columns.
fn cases(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let (first, second) = line.split_once("=>").expect("two columns");
        (first.trim(), second.trim())
    })
}

#[test]
fn every_shipped_scenario_can_be_measured_and_its_runs_have_different_titles() {
    for (name, text) in SHIPPED {
        let scenario = Scenario::parse(text).expect(name);
        for has_hosts in [true, false] {
            let runs = scenario.plan(has_hosts).expect(name);
            let titles: HashSet<_> = runs
                .iter()
                .map(|run| (run.block, run.title(&scenario)))
                .collect();
            assert_eq!(titles.len(), runs.len(), "{name}");
            for run in &runs {
                assert_eq!(run.check(), Ok(()), "{name}: {run:?}");
            }
        }
    }
}

/// Checks the durations that the help texts state. A run takes about a second longer than it measures.
#[test]
fn measurements_take_as_long_as_their_help_says() {
    let expected_s = |runs: &[Planned]| -> u32 {
        let seconds = runs.iter().map(|run| run.cell.seconds + 1);
        seconds.sum()
    };
    let demo = expected_s(&planned("demo"));
    assert!((30..40).contains(&demo), "less than 45 s: {demo} s");
    let full = expected_s(&planned("demo-full"));
    assert!((115..=140).contains(&full), "about two minutes: {full} s");
    let ablation = expected_s(&planned("ablation"));
    assert!((33..=36).contains(&(ablation / 60)), "{ablation} s");
}

#[test]
fn levels_are_crossed_and_those_of_the_last_factor_are_adjacent() {
    let text = r#"
        title = "two factors"
        repetitions = 2
        order = "rotated"
        [[block]]
        name = "one"
        title = "one"
        factor = [{ name = "payload_bytes", levels = [64, 128] }, { name = "order", levels = ["fifo", "priority"] }]
    "#;
    let runs = of(text).expect("a scenario");
    let cells: Vec<_> = runs
        .iter()
        .map(|run| (run.repetition, run.cell.payload_bytes, run.cell.order))
        .collect();
    let (fifo, priority) = (Order::Fifo, Order::Priority);
    let first = [
        (1, 64, fifo),
        (1, 64, priority),
        (1, 128, fifo),
        (1, 128, priority),
    ];
    let second = [
        (2, 64, priority),
        (2, 64, fifo),
        (2, 128, priority),
        (2, 128, fifo),
    ];
    assert_eq!(cells, [first, second].concat());
    assert!(runs.iter().map(|run| run.number).eq(1..=8));

    let random = text.replace("rotated", "random");
    let order_of = |seed: u32| {
        let runs = of(&format!("seed = {seed}\n{random}")).expect("a scenario");
        runs.into_iter()
            .map(|run| (run.repetition, run.cell))
            .collect::<Vec<_>>()
    };
    assert_eq!(order_of(7), order_of(7));
    assert!((1..20).any(|seed| order_of(seed) != order_of(0)));
    let sorted = |mut runs: Vec<(u32, Cell)>| {
        runs.sort_by_key(|(repetition, cell)| (*repetition, cell.payload_bytes, cell.order.word()));
        runs
    };
    assert_eq!(sorted(order_of(7)), sorted(order_of(8)), "the same cells");
}

#[test]
fn an_undisturbed_cell_is_measured_where_the_disturbed_ones_are() {
    let places = |disturbances: &str| {
        let factor = format!("factor = [{{ name = \"disturbance\", levels = [{disturbances}] }}]");
        let runs = of_block("", &factor);
        let runs = runs.expect("a scenario").into_iter();
        let cells = runs.map(|run| (run.cell.disturbance, run.cell.place.expect("a place")));
        cells.collect::<Vec<_>>()
    };
    assert_eq!(places("\"none\""), [(Load::None, Place::Link)]);
    let three = [
        (Load::None, Place::Pair),
        (Load::None, Place::FastLink),
        (Load::Large, Place::Pair),
        (Load::Bulk, Place::FastLink),
    ];
    assert_eq!(places("\"none\", \"large\", \"bulk\""), three);
}

#[test]
fn values_without_an_effect_make_no_second_run() {
    let factors = r#"factor = [
        { name = "datapath", levels = ["udp", "memory"] },
        { name = "arbiter", levels = ["fifo", "strict"] },
    ]"#;
    let runs = of_block("", factors).expect("a scenario");
    assert_eq!(runs.len(), 3, "memory has no link");
    assert_eq!(
        runs[2].cell.publisher,
        Some(Publisher::Job),
        "and one thread"
    );
}

#[test]
fn values_without_an_effect_are_those_of_the_default() {
    for (set, factors) in cases(
        r#"
        step = "lane"          => { name = "order", levels = ["fifo", "priority"] }
        step = "lane"          => { name = "datapath", levels = ["udp", "xdp"] }
                               => { name = "max_samples", levels = [16, 256] }
                               => { name = "latency_budget_us", levels = [0, 100] }
        measure = "throughput" => { name = "flood_factor", levels = [0.5, 1.0] }
        measure = "throughput" => { name = "order", levels = ["fifo", "priority"] }
        measure = "throughput" => { name = "place", levels = ["link", "pair"] }
        disturbance = "storm"  => { name = "flood_factor", levels = [0.5, 1.0] }
        disturbance = "flood"  => { name = "flood_payload_bytes", levels = [512] }, { name = "arbiter", levels = ["fifo"] }
        "#,
    ) {
        let runs = of_block(set, &format!("factor = [{factors}]")).expect(factors);
        assert_eq!(runs.len(), 1, "{factors}");
    }
    let link = "cell = [{ link_bits_per_s = 40_000_000, queue_frames = 64 }, {}]";
    assert_eq!(of_block("", link).expect("cells").len(), 1);
}

#[test]
fn cells_that_the_machine_made_equal_are_planned_once() {
    let text = "title = \"t\"\nrepetitions = 2\n[[block]]\nname = \"b\"\ntitle = \"b\"\n\
                factor = [{ name = \"datapath\", levels = [\"udp\", \"udp-loopback\"] }, \
                { name = \"arbiter\", levels = [\"fifo\", \"strict\"] }]";
    let mut runs = of(text).expect("runs");
    assert_eq!(runs.len(), 6);
    for run in &mut runs {
        run.cell.datapath = Datapath::UdpLoopback;
    }
    let runs = distinct(runs);
    let numbers: Vec<_> = runs
        .iter()
        .map(|run| (run.number, run.repetition))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 2)]);
}

#[test]
fn values_outside_their_range_are_refused_by_their_names() {
    for (values, named) in cases(
        r#"
        link_bits_per_s = 0                              => link_bits_per_s = 0 is not within 10000 to 100000000000
        link_bits_per_s = 9_000_000_000_000_000_000      => link_bits_per_s = 9000000000000000000
        link_bits_per_s = -1                             => link_bits_per_s
        queue_frames = 0                                 => queue_frames = 0 is not within 1 to 65536
        queue_frames = 65_536, arbiter = "strict"        => queue_frames = 65536 is not within 1 to 8192
        disturbance = "flood", flood_factor = -1         => flood_factor = -1 is not within 0.01 to
        disturbance = "flood", flood_factor = 1e300      => flood_factor = 1
        disturbance = "flood", flood_factor = nan        => flood_factor = NaN is not within 0.01 to
        disturbance = "flood", flood_payload_bytes = 1473     => flood_payload_bytes = 1473 is not within 1 to 1472
        disturbance = "read-flood", flood_payload_bytes = 47  => flood_payload_bytes = 47 is not within 48 to 1472
        disturbance = "flood", seconds = 900             => seconds of a flood = 900 is not within 1 to 840
        disturbance = "storm", seconds = 900             => seconds of a storm = 900 is not within 1 to 840
        hidden_loss = 0.1, disturbance = "repair"        => exclude each other
        hidden_loss = 1.5                                => hidden_loss = 1.5 is not within 0 to 0.99
        queues = 3                                       => queues = 3 is not within 1 to 2
        seconds = 0                                      => seconds = 0 is not within 1 to 86400
        rate_hz = 0                                      => rate_hz = 0 is not within 1 to 1000000
        waiting = "spin", cores = 1                      => a core each
        waiting = "spin", place = "link"                 => no relay
        waiting = "busy-poll"                            => set datapath = xdp
        measure = "throughput", both_directions = true, datapath = "xdp" => over udp
        measure = "throughput", both_directions = true, waiting = "spin" => two ends a core
        measure = "throughput", readers = 17 => readers = 17 is not within 1 to 16
        measure = "throughput", readers = 2, both_directions = true => all on one host
        measure = "throughput", readers = 2, datapath = "xdp" => one reader
        measure = "throughput", readers = 2, waiting = "spin" => cannot spin
        rate_hz = 100_000, seconds = 200                 => rate_hz * seconds = 20000000
        disturbance = "flood", place = "pair"            => disturbance = "flood" cannot be judged at place = "pair"
        disturbance = "storm", place = "pair"            => its place is link or fast-link
        disturbance = "repair", place = "link"           => its place is fast-link
        measure = "throughput", disturbance = "flood"    => a throughput run has no disturbance
        measure = "throughput", latency_budget_us = 20_000_000 => is not within 0 to 10000000
        "#,
    ) {
        let error = of_block(values, "").expect_err(values);
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn sockets_have_no_mechanisms_of_lanes() {
    for factor in [
        "\"recycling\", levels = [true, false]",
        "\"overcommit\", levels = [true, false]",
        "\"budgets\", levels = [true, false]",
        "\"bulk_reader\", levels = [\"drains\", \"keeps\"]",
        "\"queues\", levels = [2]",
    ] {
        let runs = |datapath: &str| {
            let set = format!("datapath = \"{datapath}\"");
            let runs = of_block(&set, &format!("factor = [{{ name = {factor} }}]"));
            runs.expect("a scenario").len()
        };
        let of_lanes = if factor.contains("true") { 2 } else { 1 };
        assert_eq!((runs("udp"), runs("xdp")), (1, of_lanes), "{factor}");
    }
}

#[test]
fn options_replace_levels_and_add_factors() {
    let mut scenario = Scenario::parse(shipped("rtt").expect("shipped")).expect("a scenario");
    let mut levels = Levels::new();
    levels.insert("payload_bytes".into(), vec![100.into()]);
    levels.insert("seconds".into(), vec![1.into()]);
    levels.insert("rate_hz".into(), vec![10.into(), 20.into()]);
    scenario.vary(&levels).expect("no explicit cells");
    let runs = scenario.plan(true).expect("runs");
    let rates: Vec<_> = runs.iter().map(|run| run.cell.rate_hz).collect();
    assert_eq!(rates, [Some(10), Some(20)]);
    assert!(
        runs.iter()
            .all(|run| run.cell.payload_bytes == 100 && run.cell.seconds == 1)
    );
}

#[test]
fn no_option_changes_what_explicit_cells_set() {
    let mut scenario = Scenario::parse(shipped("demo").expect("shipped")).expect("a scenario");
    let of = |name: &str, level: &str| Levels::from([(name.to_owned(), vec![level.into()])]);
    let error = scenario
        .vary(&of("step", "lane"))
        .expect_err("cells have steps");
    assert!(error.to_string().contains("its cells set step"), "{error}");
    scenario
        .vary(&of("order", "fifo"))
        .expect("no cell sets it");
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    for (text, named) in [
        ("title = 1", "line 1"),
        ("title = \"t\"\nblocks = []", "unknown field `blocks`"),
        ("title = \"t\"\nblock = []", "the scenario has no runs"),
        (
            "title = \"t\"\nrepetitions = 70000\n[[block]]\nname = \"b\"\ntitle = \"b\"",
            "more than 65535 runs",
        ),
    ] {
        let error = of(text).expect_err(named);
        assert!(error.contains(named), "{error}");
    }
    let labels = "cell = [{ label = \"one\" }]\ncompare = [{ factor = \"label\", pairs = [[\"one\", \"two\"]] }]";
    for (set, members, named) in [
        ("", "expect = { lost = 0 }", "expect"),
        (
            "measure = \"throughput\"",
            "expect = { lost = \"zero\" }",
            "only round trips have the counters",
        ),
        (
            "payload = 64",
            "",
            "block \"The block\": unknown field `payload`, expected one of `label`",
        ),
        (
            "disturbance = \"quake\"",
            "",
            "unknown variant `quake`, expected one of `none`, `flood`",
        ),
        (
            "",
            labels,
            "no run has label = \"two\", which a comparison names",
        ),
    ] {
        let error = of_block(set, members).expect_err(named);
        assert!(error.contains(named), "{error}");
    }
}

/// A companion is a run with all mechanisms except one. The counter that it expects above zero must be zero in all others.
#[test]
fn each_isolation_counter_has_a_companion_without_one_mechanism() {
    let scenario = Scenario::parse(shipped("isolation").expect("shipped")).expect("a scenario");
    let expects = |run: &Planned, counter, expected| {
        let expect = &scenario.blocks[run.block].expect;
        expect.expects(counter, expected)
    };
    let above_zero = |run: &Planned| {
        let mut all = Counter::ALL.into_iter();
        all.find(|&counter| expects(run, counter, Expected::AboveZero))
    };
    let (kept, companions): (Vec<_>, Vec<_>) = planned("isolation")
        .into_iter()
        .partition(|run| above_zero(run).is_none());
    assert_eq!(kept.len(), 17);
    for (run, counter) in kept.iter().flat_map(|run| Counter::ALL.map(|it| (run, it))) {
        assert!(expects(run, counter, Expected::Zero), "{run:?}");
        let config = run.cell.round_trips();
        assert_eq!(
            (config.cell.has_one_queue(), config.settings.receive_work),
            (true, ReceiveWork::Softirq)
        );
    }
    let differing = |companion: &Planned| {
        let names_of = |run: &Planned| {
            let mut values = run.cell.values();
            values.retain(|name, value| companion.cell.value(name).as_ref() != Some(value));
            values.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let mut only = kept.iter().map(names_of).filter(|names| names.len() == 1);
        let name = only.next().expect("a run with the mechanism").remove(0);
        (name, above_zero(companion), companion.cell.datapath.word())
    };
    let shown = companions.iter().map(differing).collect::<Vec<_>>();
    let expected = [
        ("order", Counter::Inversions, "udp"),
        ("order", Counter::Inversions, "xdp"),
        ("arbiter", Counter::Lost, "udp"),
        ("arbiter", Counter::Lost, "xdp"),
        ("recycling", Counter::Touched, "xdp"),
        ("hidden_loss", Counter::Unaccounted, "udp"),
        ("hidden_loss", Counter::Unaccounted, "xdp"),
    ];
    assert_eq!(
        shown,
        expected.map(|(name, counter, word)| (name.to_owned(), Some(counter), word))
    );
}
