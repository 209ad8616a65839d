//! Replay of every target's saved corpus, then of mutations of it for a bounded time. The mutations are the same in
//! every run. An input that fails is saved, and the message has the command that runs the input again.

use std::{path::PathBuf, time::Duration};

use isolane_fuzz::{
    runner::{Runner, corpus},
    target::{self, Target},
};

/// Maximum number of mutations of each target. On a slow machine, the time limit allows fewer.
const MUTATIONS: u64 = 100_000;
const TIME: Duration = Duration::from_secs(3);
/// Fixed seed, of any value.
const SEED: u64 = 20_261_121;

/// Runs the saved inputs of a target, and returns them.
fn replay_saved(name: &str) -> (Runner, Vec<(PathBuf, Vec<u8>)>) {
    let target: Target = target::named(name).expect("a target of this name");
    let saved = corpus(target).expect("a saved corpus");
    assert!(!saved.is_empty(), "the corpus of {name} is empty");
    let mut runner = Runner::new(target);
    for (path, input) in &saved {
        let result = runner.run(input);
        assert!(result.is_ok(), "{} fails", path.display());
    }
    (runner, saved)
}

fn mutate(name: &str, mut runner: Runner, saved: Vec<(PathBuf, Vec<u8>)>) {
    let corpus: Vec<Vec<u8>> = saved.into_iter().map(|(_, input)| input).collect();
    let result = runner.mutate(&corpus, SEED, MUTATIONS, TIME);
    if let Err(finding) = result {
        panic!("a mutation fails: {}", finding.path.display());
    }
    println!(
        "{name}: {} inputs, {} of them saved",
        runner.inputs(),
        corpus.len()
    );
}

fn replay(name: &str) {
    let (runner, saved) = replay_saved(name);
    mutate(name, runner, saved);
}

#[test]
fn rtps_messages() {
    replay("rtps");
}

#[test]
fn announcements() {
    replay("discovery");
}

#[test]
fn payloads() {
    replay("cdr");
}

#[test]
fn ethernet_frames() {
    replay("frames");
}

#[test]
fn protocol() {
    let (runner, saved) = replay_saved("protocol");
    let reached = isolane_fuzz::reached();
    println!("protocol: {reached}");
    assert!(
        reached.unreached.is_empty(),
        "the saved corpus {reached}\nlook for more: cargo run --manifest-path lab/fuzz/Cargo.toml -- states 60"
    );
    mutate("protocol", runner, saved);
}

#[test]
fn frames_of_the_memory_datapath() {
    replay("datapath");
}

#[test]
fn participants() {
    replay("participant");
}

#[test]
fn system_descriptions() {
    replay("model");
}
