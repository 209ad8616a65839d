//! `isolane bench rtt --ablation` seen from outside: a run for each step, and the effect of each. It takes
//! root and AF_XDP between the test hosts; without, it says so.

use std::process::{Command, Stdio};

use serde_json::Value;

/// Names of the steps in the JSON, in order.
const STEPS: [&str; 7] = [
    "one-socket",
    "socket-a-level",
    "steering",
    "napi-priorities",
    "xdp",
    "lane",
    "budgets",
];
/// Steps that are compared, each with its baselines.
const AGAINST: [(&str, &[&str]); 6] = [
    ("socket-a-level", &["one-socket"]),
    ("steering", &["socket-a-level"]),
    ("napi-priorities", &["steering"]),
    ("xdp", &["napi-priorities"]),
    ("lane", &["xdp", "napi-priorities", "socket-a-level"]),
    ("budgets", &["lane", "socket-a-level"]),
];

fn stages_of(step: &str) -> &'static [&'static str] {
    match step {
        "one-socket" => &[],
        "xdp" => &["executor", "xdp"],
        "lane" => &["executor", "xdp", "lanes"],
        "budgets" => &["executor", "xdp", "lanes", "budgets"],
        _ => &["executor"],
    }
}

#[test]
fn each_step_is_measured_and_read_against_those_it_builds_on() {
    let output = Command::new(env!("CARGO_BIN_EXE_isolane"))
        .args(["bench", "rtt", "--ablation", "--payload", "64"])
        .args(["--disturbance", "none", "--arbiter", "strict"])
        .args(["--seconds", "1", "--repetitions", "1", "--json", "-"])
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().expect("no signal");
    if said.contains("the steps differ in how test hosts receive frames") {
        assert_eq!(code, 3, "{said}");
        println!("only this was tested: {said}");
        return;
    }
    if said.contains("left out, because AF_XDP") {
        println!("not tested: {said}");
        return;
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), STEPS.len(), "{said}");
    for (run, step) in runs.iter().zip(STEPS) {
        assert_eq!(run["stages"], Value::from(stages_of(step)), "{step}");
        let priority = if step == "one-socket" {
            "fifo"
        } else {
            "priority"
        };
        assert_eq!(run["order"], priority, "{step}");
        assert_eq!(run["samples"], 2_000, "{step}");
    }
    // A run that the machine disturbs is no result. No other run is compared with it, and the exit code reports it.
    if runs.iter().any(|run| !run["invalid"].is_null()) {
        assert_eq!(code, 1, "{said}");
        println!("not tested further: the machine spoilt a run: {said}");
        return;
    }
    assert_eq!(code, 0, "{said}");
    let ratios = report["ratios"].as_array().expect("ratios of steps");
    for (step, against) in AGAINST {
        let of_step = ratios.iter().filter(|ratio| ratio["levels"][1] == step);
        let of_rtt: Vec<&Value> = of_step.filter(|ratio| ratio["of"] == "rtt").collect();
        let read_against: Vec<&Value> = of_rtt.iter().map(|ratio| &ratio["levels"][0]).collect();
        assert_eq!(read_against, against, "{step}");
    }
    assert!(
        ratios
            .iter()
            .all(|ratio| ratio["levels"][1] != "one-socket")
    );
    assert!(ratios.iter().all(is_ordered), "{ratios:?}");
}

/// Returns whether a ratio is inside its interval, or has none.
fn is_ordered(ratio: &Value) -> bool {
    let number = |key: &str| ratio[key].as_f64().unwrap_or(f64::NAN);
    ratio["low"].is_null() || number("low") <= number("value") && number("value") <= number("high")
}
