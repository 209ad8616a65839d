//! Commands, one per file: settings in, an exit code or a failure out.

mod bench_rtt;
mod bench_throughput;
mod child;
mod config;
mod datapaths;
mod demo;
mod described;
mod doctor;
mod laboratory;
mod lane;
mod ledgers;
mod list;
mod manual;
mod measurement;
mod needs;
mod participant;
mod placements;
mod presence;
mod progress;
mod publish;
mod round_trips;
mod spy;
mod subscribe;
mod top;
mod tune;
mod watch;
mod why;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::settings::Command;

/// Runs a command.
///
/// # Errors
/// Reason why it failed.
pub(crate) fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo(settings) => demo::run(settings),
        Command::Publish(settings) => publish::run(settings),
        Command::Subscribe(settings) => subscribe::run(settings),
        Command::List(settings) => list::run(settings),
        Command::Why(settings) => why::run(settings),
        Command::Doctor(settings) => doctor::run(settings),
        Command::Tune(settings) => tune::run(settings),
        Command::Completions(shell) => manual::completions(shell),
        Command::Man(directory) => manual::man(directory.as_deref()),
        Command::Spy(settings) => spy::run(settings),
        Command::Top(settings) => top::run(settings),
        Command::Config(settings) => config::run(settings),
        Command::Datapaths(json) => datapaths::run(json.as_ref()),
        Command::BenchRtt(settings) => bench_rtt::run(settings),
        Command::BenchThroughput(settings) => bench_throughput::run(settings),
        Command::Child(role) => Ok(child::run(&role)),
    }
}
