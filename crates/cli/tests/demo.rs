//! Tests of `isolane demo`: what it prints and writes, and that it leaves nothing behind, however it ends.
//!
//! With the rights for network namespaces these tests measure. Without them, they check what the demo prints about
//! that.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Measurements share two cores, so only one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// User id without rights, by convention.
const UNPRIVILEGED: u32 = 65_534;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["demo", "--full", "--payload", "64", "--rows", "link"])
        .args(arguments)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    command
}

/// Devices of this test's namespace.
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

/// Child processes of a process.
fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("procfs").flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| parent_of(*process) == Some(parent))
        .collect()
}

/// The fourth field of `stat`. The second one, a name in parentheses, may contain any characters.
fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// Identity of a process's network namespace.
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

/// Demo that is measuring: its cable and both ends run.
struct Running {
    demo: Child,
    said: Receiver<String>,
    children: Vec<u32>,
    namespaces: Vec<PathBuf>,
}

impl Running {
    /// Starts a demo. Returns `None`, and prints the reason, if the machine does not allow namespaces.
    fn start(seconds: &str) -> Option<Running> {
        let mut demo = demo(&["--seconds", seconds, "--json", "-"])
            .stdout(Stdio::piped())
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
        // A thread reads the output, so that the demo never waits for a full pipe.
        let (sender, said_later) = mpsc::channel();
        thread::spawn(move || {
            for line in said.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let process = demo.id();
        eventually("cable, ping and pong run", || {
            children_of(process).len() >= 3
        });
        let children = children_of(process);
        let namespaces = children.iter().filter_map(namespace_of).collect();
        Some(Running {
            demo,
            said: said_later,
            children,
            namespaces,
        })
    }

    /// Waits until the program prints `words`. Returns the output since the last call.
    fn tells(&self, words: &str) -> String {
        let mut output = String::new();
        while !output.contains(words) {
            let line = self.said.recv_timeout(Duration::from_secs(20));
            output += &line.unwrap_or_else(|_| panic!("never printed: {words}\n{output}"));
            output.push('\n');
        }
        output
    }

    fn interrupt(&self) {
        self.signal("-INT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([signal, &self.demo.id().to_string()])
            .status();
        assert!(sent.expect("kill exists").success());
    }

    /// Returns its JSON and its exit code.
    fn end(&mut self) -> (Value, Option<i32>) {
        let mut out = String::new();
        let stdout = self.demo.stdout.as_mut().expect("piped");
        stdout.read_to_string(&mut out).expect("UTF-8");
        let code = self.demo.wait().expect("it ends").code();
        (serde_json::from_str(&out).expect("JSON"), code)
    }

    /// Asserts that no process and no namespace is left.
    fn leaves_nothing(&self, links_before: &[String]) {
        eventually("its children end", || {
            self.children
                .iter()
                .all(|child| namespace_of(child).is_none())
        });
        // The kernel kills children after the command has ended.
        eventually("its namespaces are empty", || {
            let mut namespaces = self.namespaces.iter();
            !namespaces.any(|namespace| is_inhabited(namespace))
        });
        assert_eq!(own_links(), links_before);
    }
}

#[test]
fn an_interrupted_demo_ends_within_a_second_and_leaves_nothing() {
    let _one = ONE_AT_A_TIME.lock();
    let links = own_links();
    let Some(mut running) = Running::start("60") else {
        return;
    };
    let asked = Instant::now();
    running.interrupt();
    let (report, code) = running.end();
    assert_eq!(code, Some(130));
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(0));
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(4));
    assert!(
        asked.elapsed() < Duration::from_secs(1),
        "{:?}",
        asked.elapsed()
    );
    running.leaves_nothing(&links);
}

#[test]
fn an_interrupted_demo_shows_the_rows_that_are_finished() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(mut running) = Running::start("2") else {
        return;
    };
    running.tells("2/4 (");
    running.interrupt();
    let (report, code) = running.end();
    assert_eq!(code, Some(130));
    let output = running.tells("p99");
    assert!(output.contains("interrupted; 1 of 4 runs"), "{output}");
    assert_eq!(report["runs"][0]["samples"], 4_000);
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["missing"][0]["why"], "interrupted");
}

#[test]
fn a_closed_terminal_interrupts_a_demo() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(mut running) = Running::start("60") else {
        return;
    };
    running.signal("-HUP");
    let (report, code) = running.end();
    assert_eq!(code, Some(130));
    assert_eq!(report["missing"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_result_of_a_demo_replaces_the_older_one_at_the_end_and_touches_nothing_else() {
    let _one = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let [link, older, planted, victim] =
        ["link", "older", "link.part", "victim"].map(|name| folder.path().join(name));
    for (file, text) in [(&older, "older"), (&victim, "untouched")] {
        fs::write(file, text).expect("a file");
    }
    symlink("older", &link).expect("a link");
    symlink("victim", &planted).expect("a link");
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args([
            "demo",
            "--full",
            "--datapath",
            "memory",
            "--payload",
            "64,512",
        ])
        .args(["--seconds", "1", "--json"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    let quiet = command
        .arg(&link)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut running = quiet.spawn().expect("the command starts");
    let code = loop {
        // The file is read before the check whether the command still runs.
        let held = fs::read(&older).expect("a file");
        if let Some(status) = running.try_wait().expect("ours") {
            break status.code();
        }
        let is_whole = serde_json::from_slice::<Value>(&held).is_ok_and(|report| {
            report["runs"]
                .as_array()
                .is_some_and(|runs| runs.len() == 2)
        });
        assert!(
            held == b"older" || is_whole,
            "{:?}",
            String::from_utf8_lossy(&held)
        );
        thread::sleep(Duration::from_millis(5));
    };
    assert!(code == Some(0) || code == Some(1), "{code:?}");
    let report = fs::read(&older).expect("the result");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(fs::read_link(&link).expect("a link"), Path::new("older"));
    assert_eq!(
        fs::read_link(&planted).expect("a link"),
        Path::new("victim")
    );
    assert_eq!(fs::read(&victim).expect("a file"), b"untouched");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);
}

#[test]
fn a_row_that_fails_is_marked_and_the_others_are_shown() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(mut running) = Running::start("2") else {
        return;
    };
    // Kills the end that sends pings, the end that answers, or the cable: the row cannot continue.
    let victim = running.children.last().expect("three children");
    let kill = Command::new("kill")
        .args(["-KILL", &victim.to_string()])
        .status();
    assert!(kill.expect("kill exists").success());
    let (report, code) = running.end();
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["missing"][0]["row"], "thread, 64 B, undisturbed");
    running.tells("NO RESULT: thread, 64 B, undisturbed: ");
}

#[test]
fn a_killed_demo_leaves_nothing_and_the_next_one_works() {
    let _one = ONE_AT_A_TIME.lock();
    let links = own_links();
    let Some(mut running) = Running::start("60") else {
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
    // The flood fills the link's queue, so the ratio is tens on any machine with more than a few cores.
    let factor = report["ratios"][0]["value"]
        .as_f64()
        .expect("a ratio of medians");
    assert!(factor > 3.0, "{}", report["ratios"][0]);
    assert!(
        said.contains("disturbance") && said.contains("This is the problem"),
        "{said}"
    );
    assert_eq!(own_links(), links);
}

#[test]
fn the_last_screen_has_the_bars_a_conclusion_and_the_files() {
    let _one = ONE_AT_A_TIME.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["demo", "--seconds", "1"])
        .env("TMPDIR", folder.path())
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    let Output { stdout, stderr, .. } = command.output().expect("it starts");
    let (screen, said) = [stdout, stderr]
        .map(|text| String::from_utf8(text).expect("UTF-8"))
        .into();
    assert!(screen.lines().count() <= 30, "{screen}");
    assert!(
        screen.lines().all(|line| line.chars().count() <= 100),
        "{screen}"
    );
    let file = |what: &str| {
        let line = screen.lines().find_map(|line| line.strip_prefix(what));
        let path = Path::new(line.expect("a path"));
        assert!(path.starts_with(folder.path()), "{screen}");
        fs::read_to_string(path).expect("a file")
    };
    assert!(file("Page: ").contains("class=\"bars\""));
    let report: Value = serde_json::from_str(&file("JSON: ")).expect("JSON");
    if said.contains("No test hosts") {
        println!("only this was tested: {said}");
        return;
    }
    // A run that the machine disturbs has no bar, and its pair no ratio.
    let runs = report["runs"].as_array().expect("runs");
    if runs.len() == 8 && runs.iter().all(|run| run["invalid"].is_null()) {
        assert!(screen.contains("flood, isolane"), "{screen}");
        assert!(screen.contains("Under the flood, p99 "), "{screen}");
        assert_eq!(report["ratios"].as_array().map(Vec::len), Some(6));
    }
}

#[test]
fn rows_are_chosen_and_what_is_compared_stands_side_by_side() {
    let _one = ONE_AT_A_TIME.lock();
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["demo", "--full", "--payload", "64", "--seconds", "1"])
        .args(["--json", "-", "--rows", "arbiter,executor"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    let (code, report, said) = run(command).expect("it starts");
    if said.contains("No test hosts") {
        println!("only this was tested: {said}");
        return;
    }
    assert_eq!(code, 0, "{said}");
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2 + 8);
    let arbiters = runs[..2].iter().map(|run| &run["cable"]["arbiter"]);
    assert!(arbiters.eq(["fifo", "strict"]), "{said}");
    for run in &runs[2..] {
        let suffered = run["inversions"]["total"].as_u64().expect("a count");
        match (run["order"].as_str(), run["disturbance"].is_null()) {
            (Some("priority"), _) => assert_eq!(suffered, 0, "{run:#}"),
            (_, false) => assert!(suffered > 0, "{run:#}"),
            (_, true) => {}
        }
        assert!(run["host_us"]["median"].as_f64() > Some(0.0));
        assert!(run["cable_us"]["median"].as_f64() > Some(0.0));
    }
    assert!(said.contains("link fifo  link strict"), "{said}");
    assert!(said.contains("Work inside the participants"), "{said}");
}

/// Runs `command`. Returns its exit code, JSON and other output.
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
        command.uid(UNPRIVILEGED).gid(UNPRIVILEGED);
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
        .args([
            "demo",
            "--full",
            "--payload",
            "64",
            "--seconds",
            "1",
            "--rows",
            "link",
        ])
        .args(["--json", "-"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null());
    let (code, report, said) = run(command).expect("unshare exists");
    assert_eq!(code, 0, "{said}");
    let runs = report["runs"].as_array().expect("runs");
    assert!(!runs.is_empty(), "{said}");
    assert!(said.contains("could not lock memory"), "{said}");
}

#[test]
fn where_lanes_are_not_possible_their_rows_are_left_out_with_the_reason() {
    let _one = ONE_AT_A_TIME.lock();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let name = format!("isolane-left-out-{}.json", std::process::id());
    let json = std::env::temp_dir().join(name);
    let mut command = Command::new("prlimit");
    command
        .args(["--memlock=65536", "setpriv", "--bounding-set", "-ipc_lock"])
        .arg(env!("CARGO_BIN_EXE_isolane"))
        .args([
            "demo",
            "--full",
            "--rows",
            "lane",
            "--payload",
            "64",
            "--seconds",
            "1",
        ])
        .arg("--json")
        .arg(&json)
        .stdin(Stdio::null());
    let output = command.output().expect("it ran");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    if error.contains("No test hosts") {
        return;
    }
    let left_out: Vec<&str> = error
        .lines()
        .filter(|line| {
            line.starts_with("left out, because AF_XDP lanes are impossible here: 7 runs. ")
        })
        .collect();
    assert!(
        left_out.len() == 1 && left_out[0].contains("lock"),
        "{error}"
    );
    let written = fs::read(&json).expect("a report");
    let _ = fs::remove_file(&json);
    let report: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(report["missing"], Value::Array(vec![]), "{error}");
    assert_eq!(report["left_out"].as_array().map(Vec::len), Some(1));
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run["datapath"] == "udp"));
    // A run that the machine disturbs is no result, and is reported elsewhere.
    if runs.iter().all(|run| run["invalid"].is_null()) {
        assert_eq!(output.status.code(), Some(0), "{error}");
    }
}
