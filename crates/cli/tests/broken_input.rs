//! Tests of wrong input, and of machines that lack a permission: `isolane` prints one sentence with the remedy, and
//! ends with the matching exit code.

mod command;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig, TestHostsError};

use command::{Folder, PATIENCE, Running, isolane, run};

#[test]
fn numbers_and_addresses_that_are_none_are_refused_with_what_would_do() {
    for (arguments, said) in [
        (&["sub", "T", "--domain", "233"][..], "0 to 232"),
        (&["sub", "T", "--domain=-1"], "0 to 232"),
        (
            &["sub", "T", "--domain", "99999999999999999999"],
            "0 to 232",
        ),
        (&["sub", "T", "--seconds", "0"], "1..=86400"),
        (&["sub", "T", "--seconds", "1e3"], "--seconds"),
        (&["sub", "T", "--history", "many"], "--history"),
        (&["pub", "T", "--size=-5"], "--size"),
        (&["pub", "T", "--size", "99999999999"], "--size"),
        (&["pub", "T", "--period", "0s"], "--period"),
        (&["pub", "T", "--period", "5 lightyears"], "--period"),
        (
            &["sub", "T", "--peer", "10.0.0.256"],
            "write an IPv4 address",
        ),
        (
            &["sub", "T", "--peer", "10.0.0.1:99999"],
            "write an IPv4 address",
        ),
        (&["sub", "T", "--peer", "::1"], "write an IPv4 address"),
        (&["ls", "--seconds", "ten"], "--seconds"),
        (&["bench", "rtt", "--rate", "0"], "1..=1000000"),
        (&["demo", "--payload", "twelve"], "12 to 1400"),
        (&["completions", "csh"], "bash"),
    ] {
        let (code, out, err) = run(&mut isolane(arguments));
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: no \"{said}\" in\n{err}");
    }
}

#[test]
fn a_broken_description_is_shown_with_line_column_and_a_suggestion() {
    let folder = Folder::new("broken-description");
    let file = folder.file("isolane.toml");
    for (text, said) in [
        (
            "domain = 3\n[host.a\n",
            ["isolane.toml:2", "closing bracket"],
        ),
        (
            "domian = 3\n",
            ["isolane.toml:1:1", "did you mean `domain`?"],
        ),
        ("domain = 500\n", ["isolane.toml:1:10", "0 to 232"]),
        ("domain = \"3\"\n", ["isolane.toml:1:10", "domain"]),
    ] {
        std::fs::write(&file, text).expect("a description");
        for command in [
            &["config", "--config", &file][..],
            &["sub", "T", "--config", &file],
        ] {
            let (code, out, err) = run(&mut isolane(command));
            assert_eq!((code, out.as_str()), (2, ""), "{text}: {err}");
            for said in said {
                assert!(err.contains(said), "{text}: no \"{said}\" in\n{err}");
            }
        }
    }
    std::fs::write(&file, [0xff, 0xfe, 0x00]).expect("bytes");
    let (code, _, err) = run(&mut isolane(&["config", "--config", &file]));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("not UTF-8"), "{err}");
    let (code, _, err) = run(&mut isolane(&[
        "sub",
        "T",
        "--config",
        &folder.file("none.toml"),
    ]));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("isolane config --example"), "{err}");
}

#[test]
fn json_that_cannot_be_written_is_said_before_the_work() {
    let folder = Folder::new("unwritable");
    let nowhere = folder.file("missing/out.json");
    let directory = folder.file("");
    let new = folder.file("new.json");
    for path in [&nowhere, &directory] {
        for command in [
            // Commands that would take longer than a test may.
            &[
                "sub",
                "T",
                "--interface",
                "lo",
                "--seconds",
                "86400",
                "--json",
                path,
            ][..],
            &[
                "ls",
                "--interface",
                "lo",
                "--seconds",
                "86400",
                "--json",
                path,
            ],
            &["demo", "--seconds", "86400", "--json", path],
            &["bench", "rtt", "--seconds", "86400", "--json", path],
            &["doctor", "--json", path],
        ] {
            let (code, out, err) = run(&mut isolane(command));
            assert_eq!((code, out.as_str()), (3, ""), "{command:?}: {err}");
            assert!(err.contains("cannot be written"), "{command:?}: {err}");
            assert!(err.contains("to do:"), "{command:?}: {err}");
        }
    }
    // A command that fails creates no empty file, and leaves an existing file as it is.
    for command in ["sub", "ls"] {
        let failing = [command, "T", "--interface", "nowhere0", "--json", &new];
        let failing = failing
            .iter()
            .filter(|word| command == "sub" || **word != "T");
        let failing: Vec<&str> = failing.copied().collect();
        let (code, _, err) = run(&mut isolane(&failing));
        assert_eq!(code, 3, "{err}");
        assert!(err.contains("nowhere0") && err.contains("lo"), "{err}");
        let files: Vec<_> = std::fs::read_dir(folder.0.as_path())
            .expect("ours")
            .collect();
        assert!(files.is_empty(), "{files:?}");
        folder.write("new.json", "precious");
        let (code, _, err) = run(&mut isolane(&failing));
        assert_eq!(code, 3, "{err}");
        assert_eq!(
            std::fs::read_to_string(&new).expect("it is there"),
            "precious"
        );
        std::fs::remove_file(&new).expect("ours");
    }
}

#[test]
fn a_domain_whose_ports_are_all_taken_is_used_with_another_port_and_a_note() {
    // Domain 232 has the fewest participants.
    let taken: Vec<UdpSocket> = (0..63)
        .filter_map(|participant| {
            let port = 7400 + 250 * 232 + 10 + 2 * participant;
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).ok()
        })
        .collect();
    assert!(!taken.is_empty());
    let sub = [
        "sub",
        "T",
        "--interface",
        "lo",
        "--domain",
        "232",
        "--seconds",
        "1",
    ];
    let (code, out, err) = run(&mut isolane(&sub));
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let note = "all 63 participant ports of domain 232 are taken on this host";
    assert!(err.contains(note), "{err}");
    let (code, out, _) = run(&mut isolane(&["doctor", "--domain", "232"]));
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("[ports.taken]"), "{out}");
}

#[test]
fn a_closed_output_ends_a_stream_without_a_panic() {
    for arguments in [
        &["--help"][..],
        &["config", "--example"],
        &["completions", "bash"],
    ] {
        let mut child = isolane(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        // No process reads the output.
        drop(child.stdout.take());
        let mut err = String::new();
        let mut stream = child.stderr.take().expect("piped");
        stream.read_to_string(&mut err).expect("UTF-8");
        let code = child.wait().expect("it ends").code();
        assert_eq!((code, err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn a_subscriber_whose_output_is_closed_ends() {
    let common = [
        "Square",
        "--interface",
        "lo",
        "--peer",
        "127.0.0.1",
        "--domain",
        "211",
    ];
    let mut subscriber = isolane(&["sub"]);
    subscriber
        .args(common)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut subscriber = Running(subscriber.spawn().expect("the command starts"));
    let mut publisher = isolane(&["pub"]);
    publisher
        .args(common)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _publisher = Running(publisher.spawn().expect("the command starts"));
    let mut out = BufReader::new(subscriber.0.stdout.take().expect("piped"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a sample");
    assert!(line.starts_with("Square"), "{line}");
    drop(out);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let _ = sender.send(subscriber.0.wait().map(|status| status.code()));
    });
    let code = ended
        .recv_timeout(PATIENCE)
        .expect("it ends")
        .expect("waited");
    assert_eq!(code, Some(0));
}

#[test]
fn a_subscriber_and_a_publisher_whose_link_flaps_say_so_and_go_on() {
    let testbed = match TestHosts::new(&TestHostsConfig::default()) {
        Ok(testbed) => testbed,
        Err(TestHostsError::NotPermitted { action, right }) => {
            println!("not permitted: {action} needs {right}; only this message was tested");
            assert!(right.starts_with("CAP_"));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    for (command, end) in [("sub", "0 samples printed"), ("pub", "0 written")] {
        flaps(&testbed, command, end);
    }
}

/// The link of a command's only interface goes down and comes up again. Then SIGHUP ends the command, whose last output
/// must be `end`.
fn flaps(testbed: &TestHosts, command: &str, end: &str) {
    let mut endpoint = isolane(&[command, "Square", "--interface", "host-a"]);
    endpoint.stdout(Stdio::null()).stderr(Stdio::piped());
    let endpoint = testbed.command(Host::A, endpoint).spawn();
    let mut endpoint = Running(endpoint.expect("the command starts"));
    let stream = endpoint.0.stderr.take().expect("piped");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            let _ = sender.send(line.expect("UTF-8"));
        }
    });
    let wait_for = |words: &str| {
        let mut said = Vec::new();
        while !said
            .last()
            .is_some_and(|line: &String| line.contains(words))
        {
            let line = lines.recv_timeout(PATIENCE);
            said.push(line.unwrap_or_else(|_| panic!("no {words} in {said:?}")));
        }
    };
    // The command counts as started when it has bound its discovery port.
    let is_up = || {
        let ports = std::fs::read_to_string(format!("/proc/{}/net/udp", endpoint.0.id()));
        ports.is_ok_and(|ports| ports.contains(&format!(":{:04X} ", 7410)))
    };
    let started = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(100));
        is_up()
    });
    assert!(started);
    let link = |state: &str| {
        let mut set = Command::new("ip");
        set.args(["link", "set", "host-a", state]);
        let set = testbed.command(Host::A, set).status().expect("ip");
        assert!(set.success());
    };
    link("down");
    wait_for("interface host-a is down");
    wait_for("until an interface is up again");
    link("up");
    wait_for("interface host-a is up again");
    let process = endpoint.0.id().to_string();
    let kill = Command::new("kill").args(["-HUP", &process]).status();
    assert!(kill.expect("kill exists").success());
    wait_for(end);
    let code = endpoint.0.wait().expect("it ends").code();
    assert_eq!(code, Some(130));
}
