//! `pub`, `sub` and `ls` against each other, by unicast on 127.0.0.1: nothing leaves the machine.
//! Each test has a domain of its own.

use std::process::{Child, Command, Output, Stdio};

/// A command in a domain, on the loopback interface.
fn isolane(domain: u32, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(arguments)
        .args(["--domain", &domain.to_string()])
        .args(["--interface", "lo", "--peer", "127.0.0.1"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    command
}

/// Starts one that ends by itself; its output is kept.
fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts")
}

struct Ended {
    code: i32,
    out: String,
    err: String,
}

fn end(child: Child) -> Ended {
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().expect("it ends");
    Ended {
        code: status.code().expect("no signal"),
        out: String::from_utf8(stdout).expect("UTF-8"),
        err: String::from_utf8(stderr).expect("UTF-8"),
    }
}

/// A subscriber and a publisher, started in this order.
fn pair(domain: u32, subscriber: &[&str], publisher: &[&str]) -> (Ended, Ended) {
    let subscriber = start(&mut isolane(domain, subscriber));
    let publisher = start(&mut isolane(domain, publisher));
    (end(subscriber), end(publisher))
}

#[test]
fn a_reliable_subscriber_prints_every_sample_in_order() {
    let (sub, publisher) = pair(
        201,
        &[
            "sub",
            "Square",
            "--reliable",
            "--history",
            "all",
            "--count",
            "20",
            "--seconds",
            "20",
        ],
        &[
            "pub",
            "Square",
            "--history",
            "all",
            "--count",
            "20",
            "--period",
            "2ms",
            "--seconds",
            "20",
        ],
    );
    let expected: String = (0..20)
        .map(|n| format!("Square     BLUE       {n:03} {n:03} [20]\n"))
        .collect();
    assert!(sub.out.starts_with(&expected), "{}{}", sub.out, sub.err);
    assert_eq!(
        (sub.code, publisher.code),
        (0, 0),
        "{}{}",
        sub.err,
        publisher.err
    );
}

#[test]
fn the_end_of_an_instance_is_printed_as_it_was_asked_for() {
    for (domain, option, state) in [
        (202, "--dispose-at-end", "NOT_ALIVE_DISPOSED_INSTANCE_STATE"),
        (
            203,
            "--unregister-at-end",
            "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
        ),
    ] {
        let (sub, publisher) = pair(
            domain,
            &["sub", "Circle", "--reliable", "--seconds", "4"],
            &[
                "pub", "Circle", "--color", "RED", "--count", "3", "--period", "2ms", option,
            ],
        );
        let last = sub.out.lines().last().unwrap_or_default();
        assert_eq!(
            last,
            format!("Circle     RED        {state}"),
            "{}",
            sub.err
        );
        assert_eq!(
            (sub.code, publisher.code),
            (0, 0),
            "{}{}",
            sub.err,
            publisher.err
        );
    }
}

#[test]
fn a_pair_that_cannot_match_says_which_policy_is_the_reason() {
    let (sub, publisher) = pair(
        204,
        &[
            "sub",
            "Square",
            "--reliable",
            "--count",
            "1",
            "--seconds",
            "4",
        ],
        &[
            "pub",
            "Square",
            "--best-effort",
            "--count",
            "1",
            "--seconds",
            "4",
        ],
    );
    assert!(sub.err.contains("RELIABILITY"), "{}", sub.err);
    assert!(publisher.err.contains("RELIABILITY"), "{}", publisher.err);
    assert_eq!((sub.code, publisher.code), (1, 1));
}

#[test]
fn a_late_transient_local_subscriber_gets_the_history() {
    let publisher = start(&mut isolane(
        205,
        &[
            "pub",
            "Square",
            "--durability",
            "transient-local",
            "--history",
            "3",
            "--count",
            "9",
            "--period",
            "1ms",
            "--seconds",
            "20",
        ],
    ));
    // The publisher lingers for half a second after its ninth sample; the subscriber comes then.
    std::thread::sleep(std::time::Duration::from_millis(150));
    let sub = end(start(&mut isolane(
        205,
        &[
            "sub",
            "Square",
            "--durability",
            "transient-local",
            "--history",
            "9",
            "--count",
            "3",
            "--seconds",
            "10",
        ],
    )));
    let publisher = end(publisher);
    let xs: Vec<&str> = sub
        .out
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert!(
        xs.starts_with(&["006", "007", "008"]),
        "{}{}",
        sub.out,
        sub.err
    );
    assert_eq!(
        (sub.code, publisher.code),
        (0, 0),
        "{}{}",
        sub.err,
        publisher.err
    );
}

#[test]
fn ls_lists_participants_and_endpoints_as_json() {
    let sub = start(&mut isolane(
        206,
        &["sub", "Triangle", "--level", "5", "--seconds", "4"],
    ));
    let list = end(start(&mut isolane(
        206,
        &["ls", "--seconds", "2", "--json", "-"],
    )));
    let json: serde_json::Value = serde_json::from_str(&list.out).expect("JSON");
    assert_eq!(json["schema"], "isolane/ls/1");
    let endpoint = &json["participants"][0]["endpoints"][0];
    assert_eq!(endpoint["topic"], "Triangle");
    assert_eq!(endpoint["kind"], "reader");
    assert_eq!(endpoint["level"], 5);
    assert_eq!(list.code, 0, "{}", list.err);
    assert_eq!(end(sub).code, 0);
}

#[test]
fn an_interface_that_is_not_there_is_named_with_those_that_are() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    let ended = end(start(command.args([
        "sub",
        "Square",
        "--interface",
        "nowhere0",
    ])));
    assert_eq!(ended.code, 3);
    assert!(ended.err.contains("nowhere0"), "{}", ended.err);
    assert!(ended.err.contains("lo"), "{}", ended.err);
}
