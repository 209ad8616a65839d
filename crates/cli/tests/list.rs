//! `isolane ls` beside running participants, in a separate network namespace: they answer at once with what they know,
//! and the list has the form of the list from the network.
//!
//! Each test runs itself again inside a namespace. Where the system does not allow that, it prints a message, and fails
//! in CI.

mod command;
#[path = "../../../tests/support/own_namespace.rs"]
mod own_namespace;

use std::collections::BTreeSet;
use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use command::{PATIENCE, Running, isolane, run};
use own_namespace::in_namespace;

/// Options of a command that discovers others without multicast.
const ON_LOOPBACK: [&str; 4] = ["--interface", "lo", "--peer", "127.0.0.1"];

fn start(arguments: &[&str]) -> Running {
    let mut command = isolane(arguments);
    command.args(ON_LOOPBACK);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    Running(quiet.spawn().expect("the command starts"))
}

/// Runs `ls` with these options. Returns the list, and the messages.
fn list(options: &[&str]) -> (Value, String) {
    let line = [&["ls", "--json", "-"], options].concat();
    let (code, out, err) = run(&mut isolane(&line));
    assert_eq!(code, 0, "{err}");
    (serde_json::from_str(&out).expect("JSON"), err)
}

/// Names of all members of a JSON value, with their paths.
fn members(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members_of) => {
            for (name, member) in members_of {
                let path = format!("{path}.{name}");
                members(member, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, path, found)),
        _ => {}
    }
}

/// Endpoints of a list: kind, topic and QoS.
fn endpoints(list: &Value) -> BTreeSet<String> {
    let participants = list["participants"].as_array().expect("a list");
    let all = participants.iter().flat_map(|participant| {
        let endpoints = participant["endpoints"].as_array();
        endpoints.expect("a list").iter()
    });
    all.map(|of| {
        format!(
            "{} {} {} {}",
            of["kind"], of["topic"], of["type"], of["qos"]
        )
    })
    .collect()
}

#[test]
fn running_participants_answer_at_once_with_what_the_network_says_too() {
    let test = "running_participants_answer_at_once_with_what_the_network_says_too";
    in_namespace(test, || {
        let sub = start(&["sub", "Square", "--reliable", "--level", "5"]);
        let publisher = start(&["pub", "Circle", "--history", "7"]);
        // Participants that have just started are not asked.
        thread::sleep(Duration::from_secs(4));
        let begin = Instant::now();
        let (here, told) = list(&[]);
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(told.contains("2 participants that run here"), "{told}");
        assert!(told.contains("--seconds 3"), "{told}");
        assert_eq!(here["source"], "participants");
        let asked = here["asked"].as_array().expect("a list");
        let asked: BTreeSet<_> = asked.iter().filter_map(|of| of["pid"].as_u64()).collect();
        assert_eq!(asked, BTreeSet::from([sub.pid(), publisher.pid()]));

        let (network, _) = list(&[&["--seconds", "4"], &ON_LOOPBACK[..]].concat());
        assert_eq!(network["source"], "network");
        assert_eq!(
            endpoints(&here),
            endpoints(&network),
            "{here:#} {network:#}"
        );
        assert_eq!(endpoints(&here).len(), 2, "{here:#}");
        let form = |list: &Value| {
            let mut found = BTreeSet::new();
            members(list, "", &mut found);
            found.retain(|path| !path.starts_with(".asked."));
            found
        };
        assert_eq!(form(&here), form(&network));

        let (code, out, err) = run(&mut isolane(&["ls"]));
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("reader \"Square\" of \"ShapeType\""), "{out}");
    });
}

#[test]
fn participants_that_cannot_help_do_not_hold_the_list_up() {
    in_namespace(
        "participants_that_cannot_help_do_not_hold_the_list_up",
        || {
            // False participants: one sends other JSON, one a long line, one nothing, and one sends without an end, but
            // slowly.
            let source = "{\"source\":{\"schema\":\"isolane/discovered/2\",\"number\":0,\"name\":\"slow\",\"domain\":0,\
                          \"guid_prefix\":\"\",\"age_us\":1e9,\"discovers_all\":true,\"counters\":{}}}\n";
            let said = [
                (b"{\"end\":1}\n".to_vec(), false),
                (vec![b'x'; 1 << 20], false),
                (Vec::new(), false),
                (source.into(), true),
            ];
            for (pid, (said, continues)) in (4_000_000..).zip(said) {
                for name in [
                    format!("isolane/{pid}/0"),
                    format!("isolane/{pid}/0/discovered"),
                ] {
                    let address = SocketAddr::from_abstract_name(name).expect("a name");
                    let listener = UnixListener::bind_addr(&address).expect("a free name");
                    let said = said.clone();
                    thread::spawn(move || {
                        let mut open = Vec::new();
                        for stream in listener.incoming() {
                            let mut stream = stream.expect("a connection");
                            let _ = stream.write_all(&said);
                            while continues && stream.write_all(b" ").is_ok() {
                                thread::sleep(Duration::from_millis(200));
                            }
                            open.push(stream);
                        }
                    });
                }
            }
            let stopped = start(&["sub", "Square"]);
            let other = start(&["sub", "Square", "--domain", "7"]);
            thread::sleep(Duration::from_secs(4));
            stopped.stop();
            let begin = Instant::now();
            let (code, _, err) = run(&mut isolane(&["ls", "--json", "-"]));
            assert!(begin.elapsed() < PATIENCE / 4, "{:?}", begin.elapsed());
            assert!(!err.contains("runs here"), "{err}");
            assert!(code == 0 || err.contains("interface"), "{code} {err}");
            let (seventh, told) = list(&["--domain", "7"]);
            assert!(told.contains("\"isolane sub Square\""), "{told}");
            assert_eq!(seventh["asked"][0]["pid"], other.pid());
        },
    );
}
