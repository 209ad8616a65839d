//! A measurement that is killed and resumed has each of its runs once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Number of runs of the measurement: one for each payload.
const PAYLOADS: [u32; 4] = [16, 32, 64, 128];
/// Number of kills, unless `ISOLANE_KILLS` sets another.
const KILLS: u64 = 3;

fn measurement(folder: &Path, is_resumed: bool) -> Command {
    let payloads = PAYLOADS.map(|bytes| bytes.to_string()).join(",");
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["bench", "run", "rtt", "--set", "datapath=memory"])
        .args(["--set", "seconds=1", "--set", "rate_hz=1000"])
        .args(["--set", &format!("payload_bytes={payloads}"), "--folder"])
        .arg(folder)
        .args(is_resumed.then_some("--resume"))
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_killed_measurement_is_resumed_with_the_runs_that_are_missing() {
    let kills =
        std::env::var("ISOLANE_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let outer = tempfile::tempdir().expect("a folder");
    let mut seed = 7_u64;
    for number in 0..kills {
        let folder = outer.path().join(number.to_string());
        // A pseudo-random time, before all runs end.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_millis((seed >> 33) % 7_000);
        let mut running = measurement(&folder, false).spawn().expect("it starts");
        thread::sleep(delay);
        running.kill().expect("it is ours");
        running.wait().expect("it ended");
        let resumed = measurement(&folder, folder.exists())
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&resumed.stderr);
        assert!(
            resumed.status.code().is_some_and(|code| code <= 1),
            "{delay:?}: {said}"
        );
        let report = fs::read(folder.join("report.json")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let runs = report["runs"].as_array().expect("runs");
        let cells: Vec<_> = runs
            .iter()
            .map(|run| run["cell"]["payload_bytes"].as_u64())
            .collect();
        let expected: Vec<_> = PAYLOADS
            .iter()
            .map(|bytes| Some(u64::from(*bytes)))
            .collect();
        assert_eq!(cells, expected, "killed after {delay:?}");
        assert_eq!(report["is_complete"], true);
        let lines = fs::read_to_string(folder.join("runs.jsonl")).expect("runs");
        assert_eq!(lines.lines().count(), PAYLOADS.len(), "none is doubled");
        let files = fs::read_dir(folder.join("rounds.parquet")).expect("a data set");
        let names = files.map(|file| file.expect("an entry").file_name());
        let whole = names.filter(|name| name.to_string_lossy().starts_with("run-"));
        assert_eq!(whole.count(), PAYLOADS.len());
    }

    let other = measurement(&outer.path().join("0"), true)
        .args(["--set", "order=fifo"])
        .output();
    let other = other.expect("it starts");
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("of another scenario"));
}

/// Two runs and their ratio.
const SCENARIO: &str = r#"
    title = "two payloads"
    set = { datapath = "memory", seconds = 1, rate_hz = 2000 }
    [[block]]
    name = "payloads"
    title = "Two payloads"
    factor = [{ name = "payload_bytes", levels = [16, 1024] }]
    compare = [{ factor = "payload_bytes", pairs = [[1024, 16]] }]
"#;

/// Command `isolane bench` on the files of `folder`.
fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .arg("bench")
        .args(arguments)
        .current_dir(folder)
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> String {
    let streams = [&output.stdout, &output.stderr];
    streams.map(|text| String::from_utf8_lossy(text)).concat()
}

fn report(folder: &Path) -> Value {
    let report = fs::read(folder.join("result/report.json")).expect("a report");
    serde_json::from_slice(&report).expect("JSON")
}

const RUN: [&str; 4] = ["run", "two.toml", "--folder", "result"];
const RESUME: [&str; 5] = ["run", "two.toml", "--folder", "result", "--resume"];

#[test]
fn runs_without_times_are_measured_again_and_doubled_lines_count_once() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path();
    fs::write(folder.join("two.toml"), SCENARIO).expect("room");
    // The process was killed before it wrote the manifest.
    fs::create_dir(folder.join("result")).expect("room");
    let first = bench(folder, &RESUME).output().expect("it starts");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    let whole = report(folder);
    assert_eq!(whole["ratios"].as_array().expect("ratios").len(), 2);

    let compare = |b: &str| {
        bench(folder, &["compare", "result", b])
            .output()
            .expect("it starts")
    };
    let same = compare("result");
    assert_eq!(same.status.code(), Some(0), "{}", text(&same));
    let count = |words: &str| text(&same).matches(words).count();
    // On a busy machine, a p99 may depend on too few stalls for an interval.
    let (seen, none) = (count("no difference seen"), count("  no interval"));
    assert!(seen >= 1 && seen + none == 4, "{}", text(&same));
    let without_times = text(&compare("result/report.json"));
    assert_eq!(
        without_times.matches("  no interval").count(),
        4,
        "{without_times}"
    );

    let result = folder.join("result");
    let lines = fs::read_to_string(result.join("runs.jsonl")).expect("runs");
    let mut file = OpenOptions::new()
        .append(true)
        .open(result.join("runs.jsonl"))
        .expect("runs");
    file.write_all(lines.as_bytes()).expect("room");
    fs::remove_file(result.join("report.json")).expect("a report");
    fs::write(result.join("rounds.parquet/run-0002.parquet"), "no times").expect("room");
    let shown = bench(folder, &["report", "result", "--json", "shown.json"]).output();
    let shown = shown.expect("it starts");
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    assert!(
        text(&shown).contains("run 2 has no times"),
        "{}",
        text(&shown)
    );
    let json = fs::read(folder.join("shown.json")).expect("a report");
    let json: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["runs"].as_array().expect("runs").len(), 2);
    assert!(json["ratios"][0]["value"].is_f64() && json["ratios"][0]["low"].is_null());

    let resumed = bench(folder, &RESUME).output().expect("it starts");
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed));
    assert!(
        text(&resumed).contains("run 2 is measured again"),
        "{}",
        text(&resumed)
    );
    let again = report(folder);
    let runs = |report: &Value| report["runs"].as_array().expect("runs").clone();
    assert_eq!(runs(&again).len(), 2);
    assert_eq!(runs(&again)[0], runs(&whole)[0], "run 1 has its times");
    assert_ne!(runs(&again)[1], runs(&whole)[1]);
    let lines = fs::read_to_string(result.join("runs.jsonl")).expect("runs");
    assert_eq!(lines.lines().count(), 2);
    let ratios = again["ratios"].as_array().expect("ratios");
    // On a busy machine, that of the p99 may have no interval.
    assert!(ratios.iter().any(|ratio| ratio["low"].is_f64()));

    assert_eq!(
        again["environment"], whole["environment"],
        "the first session"
    );
    let sessions = again["resumed"].as_array().expect("sessions");
    assert_eq!(sessions.len(), 1);
    assert!(
        sessions[0]["command"]
            .as_str()
            .expect("a command")
            .contains("--resume")
    );
    assert!(sessions[0]["began"].is_string());
}

#[test]
fn one_process_measures_in_a_folder_and_an_interruption_leaves_a_report() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path();
    let slow = SCENARIO.replace("[[block]]", "repetitions = 1\n[[block]]");
    let slow = slow.replace(
        "levels = [16, 1024]",
        "levels = [16, 1024, 64, 128, 256, 512]",
    );
    fs::write(folder.join("two.toml"), slow).expect("room");
    let running = bench(folder, &RUN).spawn().expect("it starts");
    let lines = || {
        let runs = fs::read_to_string(folder.join("result/runs.jsonl"));
        runs.unwrap_or_default().lines().count()
    };
    let began = Instant::now();
    while lines() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "no run ends");
        thread::sleep(Duration::from_millis(20));
    }
    let second = bench(folder, &RESUME).output().expect("it starts");
    assert_eq!(second.status.code(), Some(3), "{}", text(&second));
    let refused = "another process measures in this folder";
    assert!(text(&second).contains(refused), "{}", text(&second));

    let pid = running.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status();
    assert!(killed.expect("it starts").success());
    let ended = running.wait_with_output().expect("it ended");
    assert_eq!(ended.status.code(), Some(130), "{}", text(&ended));
    assert!(
        text(&ended).contains("the ratios are left out"),
        "{}",
        text(&ended)
    );
    let interrupted = report(folder);
    assert_eq!(interrupted["is_complete"], false);
    assert_eq!(interrupted["ratios"], Value::Array(Vec::new()));
    let shown = bench(folder, &["report", "result"])
        .output()
        .expect("it starts");
    let shown = text(&shown);
    assert!(shown.contains("ratio of"), "{shown}");
    let has = |start: &str| shown.lines().any(|line| line.starts_with(start));
    let origin = ["measured: 20", "command: ", "scenario: SHA-256 "];
    assert!(origin.iter().all(|start| has(start)), "{shown}");
}

#[test]
fn a_report_of_an_earlier_build_is_refused_in_plain_words() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path();
    let earlier = r#"{ "schema": "isolane/rtt/1", "environment": { "commit": "abc" }, "runs": [], "effects": [] }"#;
    fs::write(folder.join("old.json"), earlier).expect("room");
    let shown = bench(folder, &["report", "old.json"])
        .output()
        .expect("it starts");
    assert_eq!(shown.status.code(), Some(2));
    let said = text(&shown);
    let plain = "written by an earlier build of commit abc, and has no scenario, scenario_sha256, is_complete";
    assert!(said.contains(plain), "{said}");
}
