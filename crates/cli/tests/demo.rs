//! `isolane demo` seen from outside: what it writes, and that nothing of it stays, however it ends.
//!
//! With the rights for network namespaces these tests measure; without, they check what the demo says
//! of that.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Measurements share two cores: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The user that may do nothing, by convention.
const NOBODY: u32 = 65_534;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["demo", "--payload", "64"])
        .args(arguments)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    command
}

/// The devices of the namespace this test runs in.
fn own_links() -> Vec<String> {
    let names = fs::read_dir("/sys/class/net").expect("sysfs");
    let mut names: Vec<String> = names
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The processes that a process has started.
fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("procfs").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| parent_of(*process) == Some(parent))
        .collect()
}

/// The fourth field of `stat`; the second, a name in parentheses, may hold anything.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// What identifies the network namespace of a process.
fn namespace_of(process: impl std::fmt::Display) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

fn is_inhabited(namespace: &Path) -> bool {
    let processes = fs::read_dir("/proc").expect("procfs").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .any(|process| namespace_of(process).is_some_and(|other| other == namespace))
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A demo that is measuring: cable and both ends run.
struct Running {
    demo: Child,
    children: Vec<u32>,
    namespaces: Vec<PathBuf>,
}

impl Running {
    /// `None`, and the reason printed, where the machine allows no namespaces.
    fn start() -> Option<Running> {
        let mut demo = demo(&["--seconds", "60"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut said = BufReader::new(demo.stderr.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        if line.starts_with("No test hosts") {
            println!("only this was tested: {line}");
            demo.kill().expect("it runs");
            demo.wait().expect("it ended");
            return None;
        }
        // Whatever it says later, it is never held up by a full pipe.
        thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        let process = demo.id();
        eventually("cable, ping and pong run", || {
            children_of(process).len() >= 3
        });
        let children = children_of(process);
        let namespaces = children.iter().filter_map(namespace_of).collect();
        Some(Running {
            demo,
            children,
            namespaces,
        })
    }

    /// Asserts that neither processes nor namespaces are left.
    fn leaves_nothing(&self, links_before: &[String]) {
        eventually("its children end", || {
            self.children
                .iter()
                .all(|child| namespace_of(child).is_none())
        });
        assert!(
            !self
                .namespaces
                .iter()
                .any(|namespace| is_inhabited(namespace))
        );
        assert_eq!(own_links(), links_before);
    }
}

#[test]
fn an_interrupted_demo_ends_within_a_second_and_leaves_nothing() {
    let _one = ONE_AT_A_TIME.lock();
    let links = own_links();
    let Some(mut running) = Running::start() else {
        return;
    };
    let asked = Instant::now();
    let interrupt = Command::new("kill")
        .args(["-INT", &running.demo.id().to_string()])
        .status();
    assert!(interrupt.expect("kill exists").success());
    let status = running.demo.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );
    running.leaves_nothing(&links);
}

#[test]
fn a_killed_demo_leaves_nothing_and_the_next_one_works() {
    let _one = ONE_AT_A_TIME.lock();
    let links = own_links();
    let Some(mut running) = Running::start() else {
        return;
    };
    running.demo.kill().expect("it runs");
    running.demo.wait().expect("it ended");
    running.leaves_nothing(&links);

    let (code, report, said) = run(demo(&["--seconds", "1", "--json", "-"])).expect("it starts");
    assert_eq!(code, 0, "{said}");
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4, "thread and job, without and with the flood");
    for run in runs {
        assert_eq!(run["samples"], 2_000);
        assert_eq!(run["datapath"], "udp");
        assert!(run["invalid"].is_null(), "{run:#}");
    }
    assert_eq!(runs[1]["disturbance"], "flood");
    // The link's queue is full of the flood: a factor of tens, on any machine of more than a few.
    let factor = report["ratios"][0]["value"]
        .as_f64()
        .expect("a ratio of medians");
    assert!(factor > 3.0, "{}", report["ratios"][0]);
    assert!(
        said.contains("interf.") && said.contains("What this shows"),
        "{said}"
    );
    assert_eq!(own_links(), links);
}

/// Runs it: exit code, its JSON, and what it told beside.
fn run(mut command: Command) -> io::Result<(i32, Value, String)> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output()?;
    let said = String::from_utf8(stderr).expect("UTF-8");
    let report = serde_json::from_slice(&stdout).unwrap_or_default();
    Ok((status.code().expect("no signal"), report, said))
}

#[test]
fn without_rights_the_demo_says_what_is_lost_and_measures_the_rest() {
    let _one = ONE_AT_A_TIME.lock();
    let mut command = demo(&["--seconds", "1", "--json", "-"]);
    let is_root = fs::metadata("/proc/self").expect("procfs").uid() == 0;
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    let (code, report, said) = match run(command) {
        Ok(result) => result,
        Err(error) => {
            assert!(
                is_root && error.kind() == io::ErrorKind::PermissionDenied,
                "{error}"
            );
            println!("not tested: others may not run the program where it was built");
            return;
        }
    };
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("No test hosts"), "{said}");
    assert!(said.contains("there is no cable and no flood"), "{said}");
    let runs = report["runs"].as_array().expect("runs");
    let datapaths: Vec<&Value> = runs.iter().map(|run| &run["datapath"]).collect();
    assert_eq!(datapaths, ["udp-loopback", "memory"]);
    assert!(
        runs.iter()
            .all(|run| run["rtt_us"]["median"].as_f64() > Some(0.0))
    );
    assert!(runs.iter().all(|run| run["cable_us"]["median"].is_null()));
}

#[test]
fn the_root_of_a_user_namespace_locks_no_memory_it_may_not_have() {
    let _one = ONE_AT_A_TIME.lock();
    let unshare = ["--user", "--map-root-user", "--net", "--mount"];
    let tried = Command::new("unshare").args(unshare).arg("true").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        println!("not tested: this machine gives no user namespaces");
        return;
    }
    let mut command = Command::new("unshare");
    command
        .args(unshare)
        .args(["sh", "-c", "ulimit -S -l 8192 && exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_isolane"))
        .args(["demo", "--payload", "64", "--seconds", "1", "--json", "-"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    let (code, report, said) = run(command).expect("unshare exists");
    assert_eq!(code, 0, "{said}");
    let runs = report["runs"].as_array().expect("runs");
    assert!(!runs.is_empty(), "{said}");
    assert!(said.contains("could not lock memory"), "{said}");
}
