//! `cargo xtask`: the commands of developers and CI. They are in Rust, so that they need no other tool.
//!
//! - `cargo xtask test` runs the checks that need no root, with `--system` those that need root, with `--all` every
//!   check; its last line is `N passed, N failed`;
//! - `cargo xtask budgets` counts the cost of a sample and compares each number with its limit;
//! - `cargo xtask classifier` builds the eBPF object and compares it with the checked-in one;
//! - `cargo xtask conformance` tests every datapath against the requirements;
//! - `cargo xtask coverage` counts the lines of `wire` that its tests run;
//! - `cargo xtask deb` makes the Debian package;
//! - `cargo xtask discovery` counts the cost of discovery as the number of endpoints and participants grows;
//! - `cargo xtask domain-size` starts hundreds of processes of one domain;
//! - `cargo xtask drop-cost` measures the time of a dropped datagram;
//! - `cargo xtask fuzz` fuzzes all parsers of peers' input;
//! - `cargo xtask hostile` attacks a host with a critical topic;
//! - `cargo xtask isolation` runs the scenario `isolation`: counters of a critical topic, with and without each isolation
//!   mechanism;
//! - `cargo xtask interop` runs isolane against other DDS implementations in network namespaces;
//! - `cargo xtask peers` measures isolane and other DDS implementations;
//! - `cargo xtask seeds` runs a thousand simulated systems with faults;
//! - `cargo xtask shapes` runs the shapes test programs of all implementations in pairs;
//! - `cargo xtask testbed` runs isolane in emulated machines with a real-time kernel;
//! - `cargo xtask types` runs one type in each extensibility and representation with other implementations.
//!
//! Progress goes to standard error; standard output has the summary, or JSON on request. No command touches the
//! machine's own network namespace. As root, `test --system` and `test --all` install the packages that their checks
//! need.

mod classifier;
mod conformance;
mod coverage;
mod deb;
mod dependencies;
mod fuzz;
mod seeds;
mod test;
mod test_programs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use isolane_budgets::{self as budgets, discovery, drop_cost};
use isolane_checks::{domain_size, isolation};
use isolane_hostile as hostile;
use isolane_interop::{self as interop, peers, shapes, types};
use isolane_support::CABLE_COMMAND;
use isolane_testbed as testbed;

/// Development commands of isolane
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the checks that need neither root nor packages: format, lints, dependencies, tests, documentation.
    /// `--system` runs those that do, `--all` runs every one
    Test(test::Arguments),
    /// Build the classifier's eBPF object and compare it with the checked-in one (needs clang-16)
    Classifier(classifier::Arguments),
    /// Run the conformance suite on all datapaths, in one table (needs root)
    Conformance(conformance::Arguments),
    /// Run isolane against other DDS implementations, in network namespaces (needs root)
    Interop(interop::Arguments),
    /// Count instructions, allocations, locks, copies and system calls of a sample (needs valgrind
    /// and strace)
    Budgets(budgets::Arguments),
    /// Count the lines of `wire` that its tests run, by ptrace; fails below 95 %. Takes minutes, more where
    /// cargo-tarpaulin is built first: no part of `test`
    Coverage(coverage::Arguments),
    /// Make the Debian package, and print its path (needs dpkg)
    Deb,
    /// Count instructions and datagrams of discovery, of up to 10,000 endpoints and of 500 participants (needs
    /// valgrind)
    Discovery(discovery::Arguments),
    /// Start 200 processes with 2,000 endpoints on three hosts, and many readers of one writer, in network namespaces
    /// (needs root)
    DomainSize(domain_size::Arguments),
    /// Measure the time of a datagram that the classifier or a full socket drops, in a network namespace (needs root)
    DropCost,
    /// Fuzz all parsers of peers' input, with libFuzzer (needs a C++ compiler)
    Fuzz(fuzz::FuzzArguments),
    /// Measure isolane and other DDS implementations, in network namespaces (needs root)
    Peers(peers::Arguments),
    /// Attack a host that receives a critical topic, in network namespaces (needs root)
    Hostile(hostile::Arguments),
    /// Count the effect of a flood on a critical topic, with and without each isolation mechanism (needs root)
    Isolation(isolation::Arguments),
    /// Run a thousand simulated systems with crashes, restarts, partitions and losses
    Seeds(seeds::SeedsArguments),
    /// Run shapes test programs of one command-line contract, isolane's and others', in all pairs (needs root)
    Shapes(shapes::Arguments),
    /// Run isolane in emulated machines with a real-time kernel and network devices of several queues
    Testbed(testbed::Arguments),
    /// Run one type in each extensibility and representation with other DDS implementations, both ways (needs root)
    Types(types::Arguments),
    /// Run the first process of a `testbed` guest
    #[command(name = testbed::inside::COMMAND, hide = true)]
    TestbedGuest { task: Vec<String> },
    /// Run the attacker process of `hostile`
    #[command(name = hostile::SENDER_COMMAND, hide = true)]
    HostileSender(hostile::SenderArguments),
    /// Run the emulated cable between two hosts, or another helper process of `interop` and `hostile`
    #[command(name = CABLE_COMMAND, hide = true)]
    Cable { role: String },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Test(arguments) => test::run(&arguments),
        Command::Classifier(arguments) => classifier::run(&arguments),
        Command::Conformance(arguments) => conformance::run(&arguments),
        Command::Interop(arguments) => interop::run(&arguments),
        Command::Budgets(arguments) => budgets::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::Deb => deb::run(),
        Command::Peers(arguments) => peers::run(&arguments),
        Command::Discovery(arguments) => discovery::run(&arguments),
        Command::DomainSize(arguments) => domain_size::run(&arguments),
        Command::DropCost => drop_cost::run(),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Hostile(arguments) => hostile::run(&arguments),
        Command::Isolation(arguments) => isolation::run(&arguments),
        Command::Seeds(arguments) => seeds::run(&arguments),
        Command::Shapes(arguments) => shapes::run(&arguments),
        Command::Testbed(arguments) => testbed::run(&arguments),
        Command::Types(arguments) => types::run(&arguments),
        Command::TestbedGuest { task } => testbed::inside::run(&task),
        Command::HostileSender(arguments) => hostile::run_sender(&arguments),
        Command::Cable { role } => return isolane_bench::child::main(&role),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
