//! `cargo xtask hostile`: a critical topic between two hosts, while a hostile sender sends to the receiver as fast as
//! one core can.
//!
//! ```text
//!   host A                   cable                   host B
//!   isolane pub, level 7  ==================>  isolane sub, level 7   (the victim)
//!                                                   ▲ all its ports
//!                                              sender.rs, datagrams.rs
//! ```
//!
//! The sender runs on the victim's own host, so no link limits it. It sends garbage, mutated captures of other
//! implementations, ever more participants and endpoints, extreme sequence numbers, and HEARTBEATs, ACKNACKs and
//! fragments of samples that never existed. It does not spoof the other host, because no receiver can detect that
//! without authentication.
//!
//! `watch.rs` observes the victim's memory, log and samples from outside. `verdict.rs` judges what was observed, and
//! the victim's final counters.

#[path = "../../../tests/support/captures.rs"]
mod captures;
mod datagrams;
mod sender;
mod verdict;
mod watch;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use clap::Args;
use isolane_bench::cable::{Cable, Config};
use isolane_bench::child::Program;
use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_support::process::Killed;
use isolane_support::steps::Outcome;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{CABLE_COMMAND, Result, command, json, packages};

pub use sender::{SENDER_COMMAND, SenderArguments, run as run_sender};
use verdict::Report;
use watch::Watch;

/// Name of the critical topic.
const TOPIC: &str = "Critical";
/// Level of the critical topic: the most critical one.
const LEVEL: &str = "7";
/// Time between two critical samples.
const PERIOD: Duration = Duration::from_millis(5);
/// Timeout of discovery before the attack.
const LONGEST_START: Duration = Duration::from_secs(10);
/// Critical samples before the attack, which show that the flow works.
const SAMPLES_BEFORE: usize = 50;
/// Maximum time from a program's SIGINT to its exit.
const LONGEST_END: Duration = Duration::from_secs(10);
/// Duration of the attack in `cargo xtask test --all`, in seconds. It is longer than a lease, 10 s.
const STEP_SECONDS: u64 = 15;

/// Arguments of `cargo xtask hostile`.
#[derive(Args)]
pub struct Arguments {
    /// Duration of the attack, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(4..=3600))]
    seconds: u64,
    /// Write the results to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Builds isolane, runs the attack, and prints the verdict.
pub fn run(arguments: &Arguments) -> Result<bool> {
    packages::require_root("hostile")?;
    let metadata = Metadata::read()?;
    command::run(&mut build_commands())?;
    let report = attack(&metadata, arguments.seconds)?;
    eprint!("\n{report}");
    if let Some(file) = &arguments.json {
        json::write(&report, file)?;
    }
    Ok(report.passed())
}

/// Runs a short attack as a step of `cargo xtask test --all`, which has built isolane.
pub fn step(metadata: &Metadata) -> Result<Outcome> {
    let report = attack(metadata, STEP_SECONDS)?;
    eprint!("{report}");
    json::write(&report, &folder(metadata).join("report.json"))?;
    Ok(Outcome::of(&report.checks))
}

fn folder(metadata: &Metadata) -> PathBuf {
    metadata.target_directory.join("hostile")
}

/// Starts victim, publisher and attack, ends them after this time, and judges the observations.
fn attack(metadata: &Metadata, seconds: u64) -> Result<Report> {
    let folder = folder(metadata);
    fs::create_dir_all(&folder)?;
    let testbed = TestHosts::new(&TestHostsConfig::default())?;
    let program = Program::current(&[CABLE_COMMAND])?;
    let cable = Cable::start(&testbed, &program, &Config::default())?;

    let isolane = metadata.isolane();
    let mut victim = isolane_on(&testbed, Host::B, &isolane);
    victim
        .args(["sub", TOPIC, "--level", LEVEL])
        .args(["--reliable", "--history", "all"])
        .args(["--json", "-", "-v", "-v"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut victim = Killed(start(victim)?);
    let watch = Watch::of(&mut victim.0)?;

    let mut publisher = isolane_on(&testbed, Host::A, &isolane);
    let period = format!("{}ms", PERIOD.as_millis());
    publisher
        .args(["pub", TOPIC, "--level", LEVEL])
        .args(["--reliable", "--period", &period])
        .stderr(fs::File::create(folder.join("publisher.log"))?)
        .stdout(Stdio::null());
    let mut publisher = Killed(start(publisher)?);
    let start_time = Instant::now();
    while watch.samples() < SAMPLES_BEFORE {
        if start_time.elapsed() > LONGEST_START {
            return Err(
                "the two hosts do not find each other, although no attack has begun".into(),
            );
        }
        thread::sleep(Duration::from_millis(20));
    }

    // Drops before the attack do not count.
    let drops_before = backlog_drops()?;
    let begin = Instant::now();
    let sent = send(&testbed, metadata, &folder, seconds, &watch)?;
    let end = Instant::now();
    // The samples in flight and the repairs still have time to arrive.
    thread::sleep(Duration::from_secs(1));
    publisher.interrupt(LONGEST_END)?;
    victim.interrupt(LONGEST_END)?;
    cable.finish()?.validate()?;
    let mut seen = watch.finish();
    seen.backlog_drops = backlog_drops()?.saturating_sub(drops_before);
    fs::write(folder.join("victim.log"), seen.log_text())?;
    Ok(verdict::judge(&seen, &sent, begin, end))
}

/// Returns the number of packets dropped at all processors' backlogs: column 2 of `/proc/net/softnet_stat`.
fn backlog_drops() -> Result<u64> {
    let statistics = fs::read_to_string("/proc/net/softnet_stat")?;
    let column = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let mut drops = 0;
    for dropped in statistics.lines().filter_map(column) {
        drops += u64::from_str_radix(&dropped, 16)?;
    }
    Ok(drops)
}

/// Runs the hostile sender, and samples the victim's memory meanwhile.
fn send(
    testbed: &TestHosts,
    metadata: &Metadata,
    folder: &Path,
    seconds: u64,
    watch: &Watch,
) -> Result<verdict::Sent> {
    let mut sender = Command::new(std::env::current_exe()?);
    let captures = metadata.workspace_root.join("crates/wire/tests/captures");
    sender
        .arg(SENDER_COMMAND)
        .args(["--seconds", &seconds.to_string()])
        .args(["--to", &Host::B.address().to_string()])
        .arg("--captures")
        .arg(captures)
        .stdout(Stdio::piped())
        .stderr(fs::File::create(folder.join("sender.log"))?);
    watch.begin_attack();
    let sender = testbed.command(Host::B, sender).spawn()?;
    let output = sender.wait_with_output()?;
    watch.end_attack();
    if !output.status.success() {
        let log = fs::read_to_string(folder.join("sender.log"))?;
        return Err(format!("the hostile sender failed: {log}").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns a command that runs `isolane` on a host, with the host's interface.
fn isolane_on(testbed: &TestHosts, host: Host, isolane: &Path) -> Command {
    let mut command = testbed.command(host, Command::new(isolane));
    command
        .env_remove("ISOLANE_CONFIG")
        .env_remove("ISOLANE_DOMAIN");
    command
}

fn start(mut program: Command) -> Result<Child> {
    command::spawn(program.stdin(Stdio::null()))
}
