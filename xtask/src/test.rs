//! `cargo xtask test`: the checks of the workspace in three tiers, each a list of steps.
//!
//! - Without an option: steps that need neither root nor packages other than Rust.
//! - `--system`: steps that need root, packages and a release build: namespaces, AF_XDP, interoperability, budgets.
//! - `--all`: every step, with all seeds. CI runs this.
//!
//! At the end, each run names the steps that it did not run, and the command that runs them.

use std::process::Command;

use isolane_budgets as budgets;
use isolane_checks::{demo, domain_size, isolation, page};
use isolane_hostile as hostile;
use isolane_interop::{self as interop, peers, shapes, types};
use isolane_support::packages::{self, is_root};
use isolane_support::steps::{Outcome, Steps};
use isolane_support::workspace::{Metadata, build_commands, cargo};
use isolane_support::{Result, command};
use isolane_testbed as testbed;

use crate::{classifier, conformance, dependencies, fuzz, test_programs};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run what needs root and packages instead: namespaces, AF_XDP, apply and rollback, interoperability, budgets
    #[arg(long, conflicts_with = "all")]
    system: bool,
    /// Run every step, as CI does
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    /// No root, no packages, a few minutes.
    Default,
    System,
    All,
}

impl Tier {
    fn of(arguments: &Arguments) -> Self {
        match (arguments.system, arguments.all) {
            (true, _) => Self::System,
            (_, true) => Self::All,
            _ => Self::Default,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Default => "cargo xtask test",
            Self::System => "cargo xtask test --system",
            Self::All => "cargo xtask test --all",
        }
    }
}

/// Prerequisite of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The step with this name has passed before.
    Step(&'static str),
    /// Root, for network namespaces.
    Root,
}

struct Step {
    name: &'static str,
    /// Tiers that run the step.
    tiers: &'static [Tier],
    needs: &'static [Need],
    run: fn(&Metadata) -> Result<Outcome>,
}

const fn step(
    name: &'static str,
    tiers: &'static [Tier],
    needs: &'static [Need],
    run: fn(&Metadata) -> Result<Outcome>,
) -> Step {
    Step {
        name,
        tiers,
        needs,
        run,
    }
}

const DEFAULT: &[Tier] = &[Tier::Default, Tier::All];
const SYSTEM: &[Tier] = &[Tier::System, Tier::All];
const ALL: &[Tier] = &[Tier::All];

const BUILD: &str = "build";
const DEMO: &str = "demo";
const NOTHING: &[Need] = &[];
const BUILT: &[Need] = &[Need::Step(BUILD)];
const BUILT_AND_ROOT: &[Need] = &[Need::Step(BUILD), Need::Root];

/// All steps. Steps whose failure a developer should see first are first.
const STEPS: &[Step] = &[
    step("packages", SYSTEM, NOTHING, |_| packages::install_missing()),
    step("format", DEFAULT, NOTHING, format),
    step("lints", DEFAULT, NOTHING, |_| lints()),
    step("dependencies", DEFAULT, NOTHING, |_| dependencies::check()),
    step("classifier", SYSTEM, NOTHING, classifier::step),
    step("tests without root", &[Tier::Default], NOTHING, |_| {
        test_programs::run_default()
    }),
    step("tests as root", &[Tier::System], &[Need::Root], |_| {
        test_programs::run_as_root()
    }),
    step("tests", ALL, NOTHING, |_| test_programs::run_all()),
    // Some of these tests have run in the step before. They take seconds, and here give one table of all datapaths.
    step("conformance", SYSTEM, NOTHING, conformance::step),
    step("fuzz", ALL, NOTHING, fuzz::step),
    step("statistics", ALL, NOTHING, |_| statistics()),
    step("documentation", DEFAULT, NOTHING, |_| documentation()),
    // The following steps run the command `isolane`, between hosts in namespaces.
    step(BUILD, SYSTEM, NOTHING, |_| passes(&mut build_commands())),
    step("budgets", SYSTEM, BUILT, budgets::step),
    step("testbed", ALL, BUILT, testbed::step),
    step("interop", SYSTEM, BUILT_AND_ROOT, interop::step),
    step("shapes", ALL, BUILT_AND_ROOT, shapes::step),
    step("types", ALL, BUILT_AND_ROOT, types::step),
    step("peers", ALL, BUILT_AND_ROOT, peers::step),
    step(DEMO, ALL, BUILT_AND_ROOT, demo::check),
    step("page", ALL, &[Need::Step(DEMO)], page::check),
    step("isolation", ALL, BUILT_AND_ROOT, isolation::step),
    step("hostile", ALL, BUILT_AND_ROOT, hostile::step),
    step("domain size", ALL, BUILT_AND_ROOT, domain_size::step),
];

/// Runs the tier's steps and prints the summary. Returns true if nothing failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let tier = Tier::of(arguments);
    let metadata = Metadata::read()?;
    let mut steps = Steps::default();
    let mut passed = Vec::new();
    for step in STEPS.iter().filter(|step| step.tiers.contains(&tier)) {
        match step.obstacle(&passed, is_root()) {
            Some(reason) => steps.leave_out(step.name, &reason),
            None if steps.run(step.name, || (step.run)(&metadata)) => passed.push(step.name),
            None => {}
        }
    }
    let may_leave_out = std::env::var_os("CI").is_none();
    if !may_leave_out && steps.has_left_out() {
        eprintln!("\nsteps were left out, which they may not be where CI is set");
    }
    let summary = steps.summary(&not_in(tier));
    print!("\n{summary}");
    Ok(steps.counts().1 == 0 && (may_leave_out || !steps.has_left_out()))
}

impl Step {
    /// Returns the reason why the step cannot run, given the names of the steps that passed.
    fn obstacle(&self, passed: &[&str], is_root: bool) -> Option<String> {
        self.needs.iter().find_map(|need| match *need {
            Need::Step(name) => (!passed.contains(&name)).then(|| format!("no {name}")),
            Need::Root => (!is_root).then(|| "network namespaces need root".to_owned()),
        })
    }
}

/// Formats a line for each other tier: its command, and the steps that `tier` does not run.
fn not_in(tier: Tier) -> String {
    let mut text = String::new();
    let mut named = Vec::new();
    for other in [Tier::Default, Tier::System, Tier::All] {
        let is_missing = |step: &&Step| {
            step.tiers.contains(&other)
                && !step.tiers.contains(&tier)
                && !named.contains(&step.name)
        };
        let names: Vec<_> = STEPS
            .iter()
            .filter(is_missing)
            .map(|step| step.name)
            .collect();
        if tier != Tier::All && !names.is_empty() {
            text += &format!("`{}` runs: {}\n", other.command(), names.join(", "));
        }
        named.extend(names);
    }
    text
}

fn passes(command: &mut Command) -> Result<Outcome> {
    command::run(command).map(|()| Outcome::Passed)
}

fn format(metadata: &Metadata) -> Result<Outcome> {
    passes(cargo().args(["fmt", "--all", "--check"]))?;
    // lab/fuzz is a separate workspace.
    let fuzz = metadata.workspace_root.join("lab/fuzz/Cargo.toml");
    passes(
        cargo()
            .args(["fmt", "--check", "--manifest-path"])
            .arg(fuzz),
    )
}

fn lints() -> Result<Outcome> {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    passes(cargo().args(clippy))?;
    for features in ["", "config", "xdp"] {
        let check = [
            "check",
            "--package",
            "isolane",
            "--no-default-features",
            "--features",
            features,
        ];
        passes(cargo().args(check))?;
    }
    Ok(Outcome::Passed)
}

/// Measures the coverage of the intervals of `isolane-bench`, which takes a minute or two.
fn statistics() -> Result<Outcome> {
    let mut coverage = cargo();
    coverage.args([
        "test",
        "--package",
        "isolane-bench",
        "--lib",
        "statistics::",
    ]);
    passes(coverage.args(["--", "--ignored"]))
}

fn documentation() -> Result<Outcome> {
    let mut doc = cargo();
    doc.args(["doc", "--workspace", "--no-deps"]);
    passes(doc.env("RUSTDOCFLAGS", "-Dwarnings"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_every_step_and_the_tests_once() {
        let is_missing = |step: &&Step| !step.tiers.contains(&Tier::All);
        let missing = STEPS.iter().filter(is_missing).map(|step| step.name);
        assert_eq!(
            missing.collect::<Vec<_>>(),
            ["tests without root", "tests as root"]
        );
    }

    #[test]
    fn the_default_tier_needs_no_root_and_names_what_others_run() {
        let own = STEPS
            .iter()
            .filter(|step| step.tiers.contains(&Tier::Default));
        assert!(own.into_iter().all(|step| step.needs.is_empty()));
        let text = not_in(Tier::Default);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(
            lines[0].starts_with(
                "`cargo xtask test --system` runs: packages, classifier, tests as root"
            )
        );
        assert!(
            lines[1].starts_with("`cargo xtask test --all` runs: tests, fuzz, statistics, testbed")
        );
        assert_eq!(not_in(Tier::All), "");
    }

    #[test]
    fn a_step_that_needs_another_is_left_out_where_that_failed() {
        let named = |name| STEPS.iter().find(|step| step.name == name).expect("a step");
        assert_eq!(
            named("page").obstacle(&[BUILD], true).as_deref(),
            Some("no demo")
        );
        assert_eq!(named("page").obstacle(&[BUILD, DEMO], true), None);
        assert!(named("interop").obstacle(&[BUILD], false).is_some());
        assert_eq!(named("budgets").obstacle(&[BUILD], false), None);
    }
}
