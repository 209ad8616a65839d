//! Verdicts on what was made up: what passes, and everything that must not.

use super::*;

fn looks(bytes: impl Fn(u64) -> u64) -> Vec<(Instant, u64)> {
    let begin = Instant::now();
    let second = |second| (begin + Duration::from_secs(second), bytes(second));
    (0..60).map(second).collect()
}

#[test]
fn memory_that_grew_in_the_first_half_only_is_flat() {
    let growth = growth(&looks(|second| 1_000_000 * second.min(20)));
    assert!(
        growth.is_some_and(|growth| growth.abs() < 1.0),
        "{growth:?}"
    );
}

#[test]
fn memory_that_goes_on_growing_is_seen() {
    let growth = growth(&looks(|second| 100_000 * second));
    let expected = 100_000.0 * 29.5;
    assert!(
        growth.is_some_and(|growth| (growth - expected).abs() < 1e4),
        "{growth:?}"
    );
}

#[test]
fn the_datagrams_of_all_lanes_are_added() {
    let line = |text: &str| (Instant::now(), text.to_owned());
    let seen = Seen {
        log: vec![
            line("datagrams:"),
            line("discovery: received 143 of 152, 9 kernel_overflow; sent 5 of 6, 1 unreachable"),
            line("level 7: received 38 of 38; sent 2 of 2"),
            line("5 samples printed: 5 delivered"),
        ],
        ..Seen::default()
    };
    assert_eq!(datagrams(&seen), 190);
}

#[test]
fn hostile_datagrams_that_nobody_counted_are_missed() {
    let (seen, begin, end) = sound();
    let sent = Sent {
        datagrams: 100,
        ..Sent::default()
    };
    let checks = judge(&seen, &sent, begin, end).checks;
    let failing = checks.iter().filter(|check| !check.holds);
    let failing: Vec<&str> = failing.map(|check| check.what.as_str()).collect();
    assert!(
        failing.len() == 1 && failing[0].starts_with("0 datagrams"),
        "{failing:?}"
    );
    let dropped = Seen {
        backlog_drops: 99,
        ..seen
    };
    let checks = judge(&dropped, &sent, begin, end).checks;
    assert!(checks.iter().all(|check| check.holds));
}

#[test]
fn two_looks_in_the_second_half_are_no_line() {
    assert_eq!(growth(&looks(|_| 1)[..4]), None);
}

/// What a victim says and is when all goes well: of a writer "p" every 5 ms a sample, the first 20
/// of them before the attack, which lasts a second.
fn sound() -> (Seen, Instant, Instant) {
    let begin = Instant::now() + Duration::from_secs(1);
    let sample = |number: i64| Arrival {
        at: begin + Duration::from_millis(5 * number as u64) - Duration::from_millis(101),
        writer: "p".into(),
        sequence: number,
    };
    let look = |quarter: u64| (begin + Duration::from_millis(250 * quarter), 5_000_000);
    let log = format!("engine: 7 {}, 2 {}, 1 {}", NAMED[0], NAMED[1], NAMED[2]);
    let seen = Seen {
        samples: (1..=220).map(sample).collect(),
        log: vec![(begin, log)],
        resident: (0..=8).map(look).collect(),
        backlog_drops: 0,
    };
    (seen, begin, begin + Duration::from_secs(1))
}

fn failing(seen: &Seen, begin: Instant, end: Instant) -> Vec<String> {
    let checks = judge(seen, &Sent::default(), begin, end).checks;
    let failing = checks.into_iter().filter(|check| !check.holds);
    failing.map(|check| check.what).collect()
}

#[test]
fn a_victim_that_goes_on_as_before_passes() {
    let (seen, begin, end) = sound();
    assert_eq!(failing(&seen, begin, end), [""; 0]);
    assert_eq!(critical(&seen, begin, end), (200, 200));
}

#[test]
fn everything_that_must_hold_fails_when_it_does_not() {
    let with = |change: &dyn Fn(&mut Seen, Instant)| {
        let (mut seen, begin, end) = sound();
        change(&mut seen, begin);
        failing(&seen, begin, end).join("; ")
    };
    let few = with(&|seen, begin| {
        let mut number = 0;
        seen.samples.retain(|sample| {
            number += 1;
            sample.at < begin || number % 10 != 0
        });
    });
    assert!(few.contains("180 of 199 critical samples"), "{few}");
    let none = with(&|seen, begin| seen.samples.retain(|sample| sample.at < begin));
    assert!(none.contains("0 of 0 critical samples"), "{none}");
    let grows = with(&|seen, _| {
        for (looks, (_, bytes)) in seen.resident.iter_mut().enumerate() {
            *bytes += 1_000_000 * looks as u64;
        }
    });
    assert!(grows.starts_with("memory grew by"), "{grows}");
    let unseen = with(&|seen, _| seen.resident.clear());
    assert_eq!(unseen, "the victim's memory was not seen");
    let chatty = with(&|seen, begin| {
        let line = (begin, String::from("malformed"));
        seen.log.splice(0..0, vec![line; MOST_LINES]);
    });
    let lines = format!("{} lines of log", MOST_LINES + 1);
    assert!(chatty.starts_with(&lines), "{chatty}");
    let silent = with(&|seen, _| seen.log.clear());
    assert!(silent.starts_with("not counted by name"), "{silent}");
}

#[test]
fn samples_of_somebody_else_do_not_stand_in_for_the_publishers() {
    let (mut seen, begin, end) = sound();
    for sample in &mut seen.samples {
        if sample.at >= begin {
            sample.writer = "forged".into();
        }
    }
    assert_eq!(critical(&seen, begin, end), (0, 0));
    assert_eq!(longest_gap(&seen, begin, end).0, end - begin);
}

#[test]
fn the_longest_gap_reaches_to_the_ends_of_the_attack() {
    let (mut seen, begin, end) = sound();
    let middle = begin + Duration::from_millis(500);
    seen.samples.retain(|sample| sample.at < middle);
    let (gap, _) = longest_gap(&seen, begin, end);
    assert!(gap >= Duration::from_millis(500), "{gap:?}");
}

#[test]
fn lines_are_counted_in_the_densest_second() {
    let begin = Instant::now();
    let at = |ms| begin + Duration::from_millis(ms);
    let moments = [at(0), at(900), at(1100), at(1200), at(5000)];
    assert_eq!(most_in_a_second(&moments), 3);
    assert_eq!(most_in_a_second(&[]), 0);
}
