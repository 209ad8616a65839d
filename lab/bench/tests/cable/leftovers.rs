//! Tests of child processes that fail, are killed or lose their parent: what they report, and that they leave nothing
//! behind.

use std::io;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::cable::{self, Cable};
use isolane_bench::child::{Role, Running};
use isolane_bench::namespace::{Host, Place};
use isolane_bench::traffic_load::Receivers;

use crate::support::{PORT, fast, program, receive_all, sockets, testbed, to};

#[test]
fn a_child_that_cannot_do_its_work_says_why() {
    let Some(testbed) = testbed() else { return };
    let config = cable::Config {
        bits_per_s: 0,
        ..cable::Config::default()
    };
    let error = Cable::start(&testbed, &program(), &config).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a cable of 0 bits per second carries nothing"
    );
    // The sink's address does not exist in the cable's namespace.
    let role = Role::TrafficReceivers(Receivers {
        addresses: vec![SocketAddrV4::new(Host::A.address(), PORT)],
        interface: None,
        receive_buffer_bytes: 4_096,
        is_read: true,
        core: None,
    });
    let error = Running::start(&testbed, Place::Cable, &program(), &role);
    let error = error.unwrap_err().to_string();
    assert!(
        error.starts_with("cannot open the receivers' sockets"),
        "{error}"
    );
}

/// Devices in the namespace in which this test was started.
fn own_links() -> Vec<String> {
    let names = std::fs::read_dir("/sys/class/net").unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Identity of a process's network namespace.
fn namespace_of(process: impl std::fmt::Display) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// Returns whether any process is in the namespace.
fn is_inhabited(namespace: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .any(|process| namespace_of(process).is_some_and(|other| other == namespace))
}

/// Waits up to five seconds for a condition.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn this_process_stays_in_its_namespace_and_gets_no_devices() {
    let (links, namespace) = (own_links(), namespace_of("thread-self"));
    let Some(testbed) = testbed() else { return };
    assert_eq!(own_links(), links);
    assert_eq!(namespace_of("thread-self"), namespace);
    let inside = testbed
        .run(Host::A, || namespace_of("thread-self"))
        .unwrap();
    assert_ne!(inside, namespace);
    drop(testbed);
    assert_eq!(own_links(), links);
}

#[test]
fn a_killed_child_leaves_a_testbed_that_still_works() {
    let Some(testbed) = testbed() else { return };
    let cable = Cable::start(&testbed, &program(), &fast()).unwrap();
    let status = Command::new("kill")
        .arg("-9")
        .arg(cable.process_id().to_string())
        .status();
    assert!(status.unwrap().success());
    let error = cable.finish().unwrap_err().to_string();
    assert!(error.contains("signal: 9"), "{error}");
    let (a, b) = sockets(&testbed);
    let second = Cable::start(&testbed, &program(), &fast()).unwrap();
    a.send_to(b"again", to(Host::B, PORT)).unwrap();
    assert_eq!(receive_all(&b), [b"again"]);
    assert_eq!(second.finish().unwrap().validate(), Ok(()));
}

#[test]
fn a_dropped_child_is_gone() {
    let Some(testbed) = testbed() else { return };
    let cable = Cable::start(&testbed, &program(), &fast()).unwrap();
    let process = cable.process_id();
    assert!(namespace_of(process).is_some());
    drop(cable);
    assert_eq!(namespace_of(process), None);
}

#[test]
fn a_whole_test_killed_leaves_neither_processes_nor_namespaces() {
    if testbed().is_none() {
        return;
    }
    let links = own_links();
    // Another process, with its own testbed and cable, is killed.
    let mut owner = Command::new(env!("CARGO_BIN_EXE_isolane-bench-child"))
        .arg("hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    io::BufRead::read_line(
        &mut io::BufReader::new(owner.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let child: u32 = line.trim().parse().expect("the process id of the cable");
    let namespace = namespace_of(child).expect("a running cable");
    assert_ne!(Some(&namespace), namespace_of("self").as_ref());
    assert!(is_inhabited(&namespace));
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the cable dies with its parent", || {
        namespace_of(child).is_none()
    });
    assert!(!is_inhabited(&namespace));
    assert_eq!(own_links(), links);
}
