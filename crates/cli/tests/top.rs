//! `isolane top` with `pub` and `sub`, in a separate network namespace: participants that run, were killed, are
//! stopped, or send false reports.
//!
//! Each test runs itself again inside a namespace. Where the system does not allow that, it prints a message, and fails
//! in CI.

mod command;
#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use command::{PATIENCE, Running, isolane};
use own_namespace::{in_namespace, ip};

fn start(arguments: &[&str]) -> Running {
    let mut command = isolane(arguments);
    command.args(["--interface", "lo", "--peer", "127.0.0.1"]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    Running(quiet.spawn().expect("the command starts"))
}

fn top(arguments: &[&str]) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = isolane(&[&["top"], arguments].concat())
        .output()
        .expect("it starts");
    let err = String::from_utf8_lossy(&stderr);
    assert!(err.is_empty(), "{err}");
    let out = String::from_utf8(stdout).expect("UTF-8");
    (status.code().expect("no signal"), out)
}

fn look() -> Value {
    let (_, out) = top(&["--once", "--json", "-"]);
    assert_eq!(out.matches('\n').count(), 1, "a line a sample: {out}");
    serde_json::from_str(&out).expect("JSON")
}

/// Repeats `top` until its output meets the condition.
fn until(what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let seen = look();
        if is_so(&seen) {
            return seen;
        }
        assert!(begin.elapsed() < PATIENCE, "never {what}: {seen:#}");
    }
}

fn participants(sample: &Value) -> &[Value] {
    sample["participants"].as_array().expect("a list")
}

#[test]
fn who_publishes_and_subscribes_is_seen_once_and_as_it_happens() {
    in_namespace(
        "who_publishes_and_subscribes_is_seen_once_and_as_it_happens",
        || {
            let sub = start(&["sub", "Square", "--level", "5", "--reliable"]);
            let publisher = start(&["pub", "Square", "--level", "5", "--period", "5ms"]);
            let sample = until("matched", |sample| {
                let of = participants(sample);
                let delivered = of.iter().any(|seen| {
                    let ledger = &seen["snapshot"]["readers"][0]["ledger"];
                    ledger["delivered"].as_u64() > Some(0)
                });
                of.len() == 2 && delivered
            });
            assert_eq!(sample["schema"], "isolane/top/3");
            assert_eq!(sample["why_none"], Value::Null);
            for (running, list) in [(&sub, "readers"), (&publisher, "writers")] {
                let seen = participants(&sample).iter();
                let mut seen = seen.filter(|seen| seen["pid"] == running.pid());
                let seen = seen.next().expect("it is there");
                assert_eq!(seen["problem"], Value::Null);
                assert!(
                    seen["rates"]["interval_us"].as_f64() > Some(0.0),
                    "{seen:#}"
                );
                assert_eq!(seen["program"], "isolane");
                let snapshot = &seen["snapshot"];
                assert_eq!(snapshot[list][0]["topic"], "Square");
                assert_eq!(snapshot["participant"]["datapath"], "udp");
                assert_eq!(snapshot["participant"]["imbalance"], Value::Null);
                let lanes = snapshot["lanes"].as_array().expect("a list");
                assert!(lanes.iter().any(|lane| lane["level"] == 5), "{lanes:?}");
            }

            let (code, text) = top(&["--once"]);
            assert_eq!(code, 0, "{text}");
            for said in [
                "2 participants of 2 processes",
                "Square",
                "LEVEL",
                "JOB",
                "balances",
            ] {
                assert!(text.contains(said), "no {said} in\n{text}");
            }
            let (code, lines) = top(&["--seconds", "2", "--json", "-"]);
            assert_eq!(code, 0);
            for line in lines.lines() {
                let sample: Value = serde_json::from_str(line).expect("JSON");
                let mut all = participants(&sample).iter();
                assert!(all.all(|seen| !seen["rates"].is_null()), "{sample:#}");
            }
            let (code, text) = top(&["--once", "--topic", "quar", "--sort", "rate"]);
            assert!(code == 0 && text.contains("Square"), "{text}");
            assert!(!text.contains("JOB"), "only the topic is shown: {text}");
            let (_, text) = top(&["--once", "--topic", "Brake"]);
            assert!(text.contains("no participant has a topic"), "{text}");
            let last = lines.lines().last().expect("a line");
            let last: Value = serde_json::from_str(last).expect("JSON");
            let rates: Vec<&Value> = participants(&last)
                .iter()
                .map(|seen| &seen["rates"])
                .collect();
            let written = rates.iter().find_map(|rates| rates["writers"][0].as_f64());
            assert!(written.is_some_and(|per_s| per_s > 0.0), "{last:#}");
            let readers = participants(&last)
                .iter()
                .flat_map(|seen| seen["snapshot"]["readers"].as_array().expect("a list"));
            let latencies: Vec<&Value> = readers.map(|reader| &reader["latency"]).collect();
            let [latency] = latencies.as_slice() else {
                panic!("one reader has latencies: {last:#}")
            };
            let us = |name: &str| latency[name].as_f64().expect("a number");
            assert!(us("samples") > 10.0 && us("interval_us") > 1e5, "{latency}");
            assert!(us("median_us") > 0.0, "{latency}");
            assert!(us("median_us") <= us("p99_us") && us("p99_us") <= us("max_us"));
            let other_domain = top(&["--once", "--domain", "7"]).0;
            assert_eq!(other_domain, 1);
        },
    );
}

#[test]
fn core_class_and_missed_deadlines_of_a_described_subscriber_are_shown() {
    let name = "core_class_and_missed_deadlines_of_a_described_subscriber_are_shown";
    in_namespace(name, || {
        let folder = command::Folder::new("top-described");
        let text = "[host.a]\ninterface = \"lo\"\ncore = 0\npriority = 5\n\
            [topic.Square]\ntype = \"ShapeType\"\nmax_bytes = 64\nperiod = \"5ms\"\n\
            deadline = \"1us\"\nhistory = 10\nfrom = [\"a\"]\nto = [\"a\"]\n";
        let path = folder.write("top.toml", text).join("top.toml");
        let described = ["--config", path.to_str().expect("UTF-8"), "--host", "a"];
        let sub = start(&[&["sub", "Square"], &described[..]].concat());
        let _publisher = start(&[&["pub", "Square"], &described[..]].concat());
        let of_sub = |sample: &Value| {
            let mut all = participants(sample).iter();
            all.find(|seen| seen["pid"] == sub.pid()).cloned()
        };
        let missed = |seen: &Value| seen["snapshot"]["readers"][0]["deadline_missed"].as_u64();
        let sample = until("deadlines are missed", |sample| {
            of_sub(sample).is_some_and(|seen| missed(&seen) > Some(0))
        });
        let seen = of_sub(&sample).expect("it is there");
        let known = &seen["snapshot"]["participant"];
        assert_eq!(known["allowed_cores"], serde_json::json!([0]), "{seen:#}");
        assert_eq!(known["policy"], "SCHED_FIFO 5", "{seen:#}");
        let (code, text) = top(&["--once"]);
        assert_eq!(code, 0, "{text}");
        let rows = || {
            text.lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
        };
        let is_placed = |row: Vec<&str>| row == ["loop", "0", "0", "SCHED_FIFO", "5"];
        assert!(rows().any(is_placed), "{text}");
        // TOPIC LEVEL END MATCHED PER-S SAMPLES MEDIAN P99 MAX MISSED ...
        let has_missed = |row: Vec<&str>| row.get(2) == Some(&"reader") && row[9] != "0";
        assert!(rows().any(has_missed), "{text}");
    });
}

#[test]
fn who_is_killed_while_it_is_looked_at_is_gone_from_the_next_sample() {
    in_namespace(
        "who_is_killed_while_it_is_looked_at_is_gone_from_the_next_sample",
        || {
            let mut sub = start(&["sub", "Square"]);
            let mut looker = isolane(&["top", "--json", "-"]);
            let looker = looker.stdout(Stdio::piped()).spawn().expect("it starts");
            let mut looker = Running(looker);
            let out = looker.0.stdout.take().expect("piped");
            let mut samples = BufReader::new(out).lines().map(|line| {
                let line = line.expect("UTF-8");
                serde_json::from_str::<Value>(&line).expect("JSON")
            });
            let seen = samples.by_ref().take(60).find(|sample| {
                participants(sample)
                    .iter()
                    .any(|seen| !seen["snapshot"].is_null())
            });
            let seen = seen.expect("it is seen");
            assert_eq!(participants(&seen)[0]["pid"], sub.pid());
            sub.kill();
            let gone = samples
                .take(10)
                .find(|sample| participants(sample).is_empty());
            let why = gone.expect("it is gone")["why_none"].clone();
            assert!(
                why.as_str()
                    .is_some_and(|why| why.contains("network namespace"))
            );
        },
    );
}

#[test]
fn without_participants_the_reason_is_printed() {
    in_namespace("without_participants_the_reason_is_printed", || {
        let (code, text) = top(&["--once"]);
        assert_eq!(code, 1, "{text}");
        for said in ["0 participants", "network namespace", "observable(true)"] {
            assert!(text.contains(said), "no {said} in {text}");
        }
    });
}

#[test]
fn who_is_stopped_is_said_to_be_silent() {
    in_namespace("who_is_stopped_is_said_to_be_silent", || {
        let sub = start(&["sub", "Square"]);
        until("seen", |sample| !participants(sample).is_empty());
        sub.stop();
        let (_, text) = top(&["--once"]);
        assert!(text.contains("stopped"), "{text}");
    });
}

#[test]
fn a_malformed_snapshot_does_no_harm() {
    in_namespace("a_malformed_snapshot_does_no_harm", || {
        let listen = |pid: u32| {
            let name = format!("isolane/{pid}/0");
            let address = SocketAddr::from_abstract_name(name).expect("a name");
            UnixListener::bind_addr(&address).expect("a free name")
        };
        // Three false participants: one sends other JSON, one sends an endless line, one sends nothing. Their name has
        // an invalid form.
        let other = b"{\"schema\":\"\\u001b[2J\"}\n".to_vec();
        let said = [other, vec![b'x'; 8 << 20], Vec::new()];
        for (pid, said) in (4_000_000..).zip(said) {
            let listener = listen(pid);
            thread::spawn(move || {
                let mut open = Vec::new();
                for stream in listener.incoming() {
                    let mut stream = stream.expect("a connection");
                    let _ = stream.write_all(&said);
                    open.push(stream);
                }
            });
        }
        let _sub = start(&["sub", "Square"]);
        until("seen", |sample| {
            participants(sample)
                .iter()
                .any(|seen| !seen["snapshot"].is_null())
        });
        let (code, text) = top(&["--once"]);
        assert_eq!(code, 0, "{text}");
        assert_eq!(text.matches("no snapshot").count(), 1, "{text}");
        assert!(text.contains("use the same version"), "{text}");
        assert!(text.contains("Square"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    });
}

#[test]
fn another_user_is_refused_with_the_name_of_the_owner() {
    in_namespace("another_user_is_refused_with_the_name_of_the_owner", || {
        // The user must be able to read the program.
        let copy = std::env::temp_dir().join(format!("isolane-top-{}", std::process::id()));
        std::fs::copy(env!("CARGO_BIN_EXE_isolane"), &copy).expect("a copy");
        std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).expect("its mode");
        let as_unprivileged = |arguments: &[&str]| {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--clear-groups", "--"]);
            command.args(arguments).output()
        };
        let is_possible = as_unprivileged(&["true"]).is_ok_and(|output| output.status.success());
        if is_possible {
            let _sub = start(&["sub", "Square"]);
            until("seen", |sample| !participants(sample).is_empty());
            let program = copy.to_str().expect("UTF-8");
            let output = as_unprivileged(&[program, "top", "--once"]).expect("it starts");
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(text.contains("belongs to user 0"), "{text}");
        } else {
            eprintln!("another user cannot be had here: nothing was tried");
        }
        let _ = std::fs::remove_file(&copy);
    });
}

/// Another namespace at the other end of a veth pair, which exists as long as its process.
fn far_end() -> Running {
    let sleep = Command::new("unshare")
        .args(["--net", "sleep", "600"])
        .spawn();
    let far = Running(sleep.expect("unshare"));
    let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).expect("a namespace");
    let pid = far.pid().to_string();
    while of(&pid) == of("self") {
        thread::sleep(Duration::from_millis(5));
    }
    ip(&format!(
        "link add near0 type veth peer name far0 netns {pid}"
    ));
    ip("address add 10.9.2.1/24 dev near0");
    ip("link set near0 up");
    for words in ["address add 10.9.2.2/24 dev far0", "link set far0 up"] {
        let mut inside = Command::new("nsenter");
        inside.args(["-t", &pid, "-n", "ip"]).args(words.split(' '));
        assert!(inside.status().expect("nsenter").success(), "{words}");
    }
    far
}

#[test]
fn a_lane_is_shown_with_its_flows_budgets_and_rings() {
    in_namespace("a_lane_is_shown_with_its_flows_budgets_and_rings", || {
        let of_all = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        if !of_all.contains("4294967295") {
            assert!(
                std::env::var_os("CI").is_none(),
                "CI must let root attach programs"
            );
            eprintln!("lanes take root: nothing was tried");
            return;
        }
        let far = far_end();
        let line = "sub Square --datapath xdp --interface near0 --level 5 --budget 5/100ms";
        let mut sub = isolane(&line.split(' ').collect::<Vec<_>>());
        sub.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut sub = Running(sub.spawn().expect("it starts"));
        let line = "pub Square --interface far0 --level 5 --best-effort --period 2ms";
        let mut publish = Command::new("nsenter");
        publish.args([
            "-t",
            &far.pid().to_string(),
            "-n",
            env!("CARGO_BIN_EXE_isolane"),
        ]);
        publish
            .args(line.split(' '))
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let _publisher = Running(publish.spawn().expect("it starts"));

        let flow_of = |sample: &Value| {
            let seen = participants(sample).first()?;
            assert_eq!(seen["pid"], sub.pid(), "the other namespace is another's");
            let flows = seen["snapshot"]["flows"].as_array()?;
            flows.iter().find(|flow| flow["topic"] == "Square").cloned()
        };
        let sample = until("over its budget", |sample| {
            let flow = flow_of(sample).unwrap_or_default();
            flow["decisions"]["over budget"].as_u64() > Some(0)
        });
        let flow = flow_of(&sample).expect("it was there");
        assert_eq!(
            (&flow["capacity"], &flow["over"]),
            (&5.into(), &"drop".into())
        );
        assert_eq!(flow["period_us"], 100_000.0);
        let snapshot = &participants(&sample)[0]["snapshot"];
        assert_eq!(snapshot["participant"]["datapath"], "xdp");
        assert_eq!(snapshot["participant"]["imbalance"], Value::Null);
        let interface = &snapshot["interfaces"][0];
        assert_eq!(interface["name"], "near0");
        assert!(
            interface["mode"]
                .as_str()
                .is_some_and(|mode| mode.contains("native"))
        );
        let rings = snapshot["rings"].as_array().expect("a list");
        assert!(rings.iter().any(|ring| ring["kind"] == "fill"), "{rings:?}");
        let (_, text) = top(&["--once"]);
        for said in [
            "FLOW",
            "RING",
            "LANE",
            "5 in 100ms, drop",
            "over budget",
            "near0",
        ] {
            assert!(text.contains(said), "no {said} in\n{text}");
        }
        let process = sub.pid().to_string();
        let kill = Command::new("kill").args(["-INT", &process]).status();
        assert!(kill.expect("kill exists").success());
        let mut said = String::new();
        let errors = sub.0.stderr.as_mut().expect("piped");
        errors.read_to_string(&mut said).expect("UTF-8");
        assert!(
            said.contains("dropped by this reader's own budget"),
            "{said}"
        );
    });
}
