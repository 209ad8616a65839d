//! Effect of recording on the median round trip, in interleaved pairs of two builds of this program.
//!
//! `once FOLDER` measures for 3 s at 10 kHz with 64 bytes, writes the timestamps to a data set in FOLDER, and prints the
//! median in microseconds. `once` without a folder writes no data set. `pairs N OTHER FOLDER` runs this program with
//! FOLDER, and OTHER without, N times each. It prints the median of the ratios with its order statistics, which need no
//! distribution.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

use isolane_bench::child::{self, Program};
use isolane_bench::experiment::Cell;
use isolane_bench::namespace::{TestHosts, TestHostsConfig};
use isolane_bench::record::Dataset;
use isolane_bench::report::Publisher;
use isolane_bench::scenario::rtt;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let printed = match arguments[..] {
        ["child", role] => return child::main(role),
        ["once"] => median_us(None),
        ["once", folder] => median_us(Some(folder)),
        ["pairs", count, other, folder] => pairs(count, other, folder),
        _ => Err("usage: recording_cost (once [FOLDER] | pairs N OTHER FOLDER)".into()),
    };
    match printed {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures once, between two hosts in namespaces.
fn median_us(folder: Option<&str>) -> Result<String> {
    let hosts = TestHosts::new(&TestHostsConfig::default())?;
    let cell = Cell {
        publisher: Some(Publisher::Job),
        rate_hz: Some(10_000),
        ..Cell::default()
    };
    let outcome =
        rtt::run_between_hosts(&hosts, &Program::current(&["child"])?, &cell.round_trips())?;
    if let Some(reason) = outcome.run.invalid {
        return Err(reason.into());
    }
    if let Some(folder) = folder {
        Dataset::in_folder(Path::new(folder)).write(1, &outcome.rounds)?;
    }
    let median_us = outcome.run.rtt_us.median.ok_or("there is no median")?;
    Ok(median_us.to_string())
}

/// Measures `count` times with each program, in alternating order.
fn pairs(count: &str, other: &str, folder: &str) -> Result<String> {
    let this = std::env::current_exe()?;
    let of = |mut program: Command| -> Result<f64> {
        let output = program.output()?;
        let text = String::from_utf8(output.stdout)?;
        let failed = |_| String::from_utf8_lossy(&output.stderr).into_owned();
        Ok(text.trim().parse().map_err(failed)?)
    };
    let with = || {
        let mut program = Command::new(&this);
        program.args(["once", folder]);
        of(program)
    };
    let without = || {
        let mut program = Command::new(other);
        program.arg("once");
        of(program)
    };
    let mut ratios = Vec::new();
    for pair in 0..count.parse()? {
        let (with, without) = match pair % 2 {
            0 => (with()?, without()?),
            _ => {
                let without = without()?;
                (with()?, without)
            }
        };
        println!("{with} us with, {without} us without");
        ratios.push(with / without);
    }
    ratios.sort_by(f64::total_cmp);
    let rank = interval_rank(ratios.len()).ok_or("an interval needs at least 6 pairs")?;
    let [low, high] = [ratios[rank], ratios[ratios.len() - 1 - rank]];
    let middle = ratios.len() / 2;
    let median = (ratios[middle] + ratios[(ratios.len() - 1) / 2]) / 2.0;
    Ok(format!("ratio {median:.4} ({low:.4} to {high:.4}, 95 %)"))
}

/// Index of the order statistic at which the 95 % interval of a median begins: the binomial distribution has at most
/// 2.5 % up to there.
fn interval_rank(count: usize) -> Option<usize> {
    let mut share = 0.5_f64.powi(count as i32);
    let mut below = 0.0;
    for rank in 0..count {
        below += share;
        if below > 0.025 {
            return rank.checked_sub(1);
        }
        share *= (count - rank) as f64 / (rank + 1) as f64;
    }
    None
}
