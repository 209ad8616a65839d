//! Table of results: pass or fail for each requirement on each datapath, from the output of test programs.
//!
//! The suite is instantiated in the tests of each datapath ([`PROGRAMS`]). A requirement that no test of a datapath has
//! run counts as failed.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::{MULTICAST_CASES, UNICAST_CASES};

/// Test program that instantiates the suite.
pub struct Program {
    /// Package of the test.
    pub package: &'static str,
    /// Name of the integration test.
    pub test: &'static str,
    /// Test name filters, if the program has other, longer tests.
    pub only: &'static [&'static str],
    /// Datapath of its tests, except those on the fault datapath.
    column: Column,
}

impl Program {
    /// Returns whether the program needs root.
    #[must_use]
    pub fn needs_root(&self) -> bool {
        self.column == Column::Xdp
    }
}

/// All test programs that instantiate the suite.
pub const PROGRAMS: [Program; 5] = [
    Program {
        package: "isolane-datapath",
        test: "memory",
        only: &[],
        column: Column::Memory,
    },
    Program {
        package: "isolane-testkit",
        test: "fault_conformance",
        only: &["over_memory::", "over_udp::"],
        column: Column::Fault,
    },
    Program {
        package: "isolane-datapath",
        test: "udp",
        only: &[],
        column: Column::Udp,
    },
    // Joins groups in its own network namespace.
    Program {
        package: "isolane-datapath",
        test: "udp_multicast",
        only: &[],
        column: Column::Udp,
    },
    Program {
        package: "isolane-datapath-xdp",
        test: "xdp",
        only: &["unicast::", "multicast::"],
        column: Column::Xdp,
    },
];

/// Version of the JSON report.
const SCHEMA: &str = "isolane/conformance/1";

/// Datapath of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Column {
    Memory,
    /// Injected faults over memory and over sockets.
    Fault,
    Udp,
    Xdp,
}

impl Column {
    const ALL: [Column; 4] = [Column::Memory, Column::Fault, Column::Udp, Column::Xdp];

    const fn name(self) -> &'static str {
        match self {
            Column::Memory => "memory",
            Column::Fault => "fault",
            Column::Udp => "udp",
            Column::Xdp => "xdp",
        }
    }
}

/// Results of a test program, read from its output.
pub struct Seen {
    column: Column,
    program: String,
    /// Requirement, datapath, full name of the test, whether it passed.
    tests: Vec<(String, Column, String, bool)>,
    /// Messages of failed tests by full name: the line after "panicked at".
    messages: BTreeMap<String, String>,
    /// Test whose output is being read.
    output_of: Option<String>,
    /// Whether the next line is the message.
    is_message_next: bool,
    /// Whether the program failed although no test had failed.
    died: bool,
}

impl Seen {
    /// Returns empty results of a program.
    #[must_use]
    pub fn new(program: &Program) -> Seen {
        Seen {
            column: program.column,
            program: format!("{} {}", program.package, program.test),
            tests: Vec::new(),
            messages: BTreeMap::new(),
            output_of: None,
            is_message_next: false,
            died: false,
        }
    }

    /// Reads a line of standard output: `test MODULE::CASE ... ok`, `test CASE (SURROUNDINGS) ...
    /// FAILED`, or a line printed by a failed test.
    pub fn add_line(&mut self, line: &str) {
        if let Some((name, verdict)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        {
            let (path, surroundings) = name.split_once(" (").unwrap_or((name, ""));
            let case = path.rsplit("::").next().unwrap_or(path);
            let column = match surroundings.starts_with("fault") {
                true => Column::Fault,
                false => self.column,
            };
            // An ignored test does not count as passed.
            let has_passed = verdict == "ok";
            self.tests
                .push((case.to_owned(), column, name.to_owned(), has_passed));
        } else if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.output_of = Some(name.to_owned());
            self.is_message_next = false;
        } else if let Some(name) = &self.output_of {
            if self.is_message_next {
                let first = self.messages.entry(name.clone());
                first.or_insert_with(|| line.to_owned());
            }
            self.is_message_next = line.contains("panicked at ");
        }
    }

    /// Records whether the program succeeded.
    pub fn end(&mut self, success: bool) {
        self.died = !success && self.tests.iter().all(|(.., has_passed)| *has_passed);
    }
}

/// Results of one requirement on one datapath.
#[derive(Clone, Debug, Default)]
struct Cell {
    passed: usize,
    /// Failed tests with their messages.
    failed: Vec<String>,
}

/// Verdict on a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Judgement {
    Pass,
    Fail,
    /// Not run: it needs root.
    Skip,
}

/// Numbers of cells by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requirements that hold.
    pub passed: usize,
    /// Requirements that do not hold, and programs that failed without a failed test.
    pub failed: usize,
    /// Requirements that could not be tested without root.
    pub skipped: usize,
}

/// Results of all requirements on all datapaths.
pub struct Table {
    cells: BTreeMap<(&'static str, Column), Cell>,
    /// Programs that failed although none of their tests had failed.
    died: Vec<String>,
    /// Whether every program can run: then a requirement without a test is a failure.
    is_root: bool,
}

impl Table {
    /// Returns an empty table.
    #[must_use]
    pub fn new(is_root: bool) -> Table {
        Table {
            cells: BTreeMap::new(),
            died: Vec::new(),
            is_root,
        }
    }

    /// Adds the results of a program. Tests that are not cases of the suite are ignored.
    pub fn add(&mut self, seen: Seen) {
        for (case, column, test, has_passed) in seen.tests {
            let Some((name, _)) = requirements().find(|(name, _)| *name == case) else {
                continue;
            };
            let cell = self.cells.entry((name, column)).or_default();
            if has_passed {
                cell.passed += 1;
                continue;
            }
            let said = seen.messages.get(&test);
            let said = said.map_or("see its output above", String::as_str);
            cell.failed
                .push(format!("{}: {test}: {said}", seen.program));
        }
        if seen.died {
            self.died.push(seen.program);
        }
    }

    /// Returns whether the requirement holds on the datapath, and why not.
    fn judge(&self, name: &'static str, is_group: bool, column: Column) -> (Judgement, String) {
        match self.cells.get(&(name, column)) {
            Some(cell) if cell.failed.is_empty() => (Judgement::Pass, String::new()),
            Some(cell) => (Judgement::Fail, cell.failed.join("; ")),
            None if !self.is_root && (column == Column::Xdp || is_group) => {
                let reason = "not run: it takes a network namespace, which needs root here";
                (Judgement::Skip, reason.to_owned())
            }
            None => (Judgement::Fail, "no test of it has run".to_owned()),
        }
    }

    fn judged(&self) -> impl Iterator<Item = JudgedCell> {
        let pairs = requirements()
            .flat_map(|(name, is_group)| Column::ALL.map(|datapath| (name, is_group, datapath)));
        pairs.map(|(requirement, is_group, datapath)| {
            let (result, detail) = self.judge(requirement, is_group, datapath);
            let cell = self.cells.get(&(requirement, datapath));
            JudgedCell {
                requirement,
                group: if is_group { "multicast" } else { "unicast" },
                datapath,
                result,
                runs: cell.map_or(0, |cell| cell.passed + cell.failed.len()),
                detail,
            }
        })
    }

    /// Returns the numbers of cells by verdict.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            failed: self.died.len(),
            ..Counts::default()
        };
        for cell in self.judged() {
            *match cell.result {
                Judgement::Pass => &mut counts.passed,
                Judgement::Fail => &mut counts.failed,
                Judgement::Skip => &mut counts.skipped,
            } += 1;
        }
        counts
    }

    /// Returns the table for programs, with a description of the machine.
    pub fn report<E: Serialize>(&self, environment: E) -> Report<E> {
        let counts = self.counts();
        Report {
            schema: SCHEMA,
            environment,
            cells: self.judged().collect(),
            died: self.died.clone(),
            passed: counts.passed,
            failed: counts.failed,
            skipped: counts.skipped,
        }
    }
}

/// Returns the suite's requirements, and whether each needs multicast groups.
fn requirements() -> impl Iterator<Item = (&'static str, bool)> {
    let unicast = UNICAST_CASES.iter().map(|name| (*name, false));
    unicast.chain(MULTICAST_CASES.iter().map(|name| (*name, true)))
}

/// JSON report of a [`Table`], `isolane/conformance/1`.
#[derive(Serialize)]
pub struct Report<E> {
    schema: &'static str,
    environment: E,
    cells: Vec<JudgedCell>,
    /// Programs that failed although none of their tests had failed.
    died: Vec<String>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct JudgedCell {
    requirement: &'static str,
    group: &'static str,
    datapath: Column,
    result: Judgement,
    /// Number of tests: the fault datapath has one for each plan and wrapped datapath.
    runs: usize,
    detail: String,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = requirements().map(|(name, _)| name.len()).max();
        let width = width.unwrap_or(0);
        write!(f, "{:width$}", "")?;
        for column in Column::ALL {
            write!(f, "  {:>6}", column.name())?;
        }
        writeln!(f)?;
        let mut details = BTreeMap::<String, Vec<String>>::new();
        let cells: Vec<JudgedCell> = self.judged().collect();
        for row in cells.chunks(Column::ALL.len()) {
            write!(f, "{:width$}", row[0].requirement.replace('_', " "))?;
            for cell in row {
                let word = match cell.result {
                    Judgement::Pass => "pass",
                    Judgement::Fail => "FAIL",
                    Judgement::Skip => "-",
                };
                write!(f, "  {word:>6}")?;
                if cell.result != Judgement::Pass {
                    let whose = format!("{} on {}", cell.requirement, cell.datapath.name());
                    details.entry(cell.detail.clone()).or_default().push(whose);
                }
            }
            writeln!(f)?;
        }
        for (detail, whose) in details {
            writeln!(f, "{}: {detail}", whose.join(", "))?;
        }
        for program in &self.died {
            writeln!(f, "{program}: it ended badly although no test had failed")?;
        }
        let counts = self.counts();
        writeln!(
            f,
            "{} requirements on {} datapaths: {} pass, {} fail, {} not run here",
            requirements().count(),
            Column::ALL.len(),
            counts.passed,
            counts.failed,
            counts.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: &str = UNICAST_CASES[0];

    fn program(column: Column) -> Program {
        Program {
            package: "package",
            test: "program",
            only: &[],
            column,
        }
    }

    /// Results of a program whose tests all pass.
    fn seen(column: Column, path: &str) -> Seen {
        let mut seen = Seen::new(&program(column));
        for (name, _) in requirements() {
            seen.add_line(&format!("test {path}{name} ... ok"));
        }
        seen.end(true);
        seen
    }

    fn table_without(missing: Option<Column>, is_root: bool) -> Table {
        let mut table = Table::new(is_root);
        for column in Column::ALL {
            if Some(column) != missing {
                table.add(seen(column, "module::"));
            }
        }
        table
    }

    #[test]
    fn each_requirement_of_each_datapath_is_a_cell() {
        let table = table_without(None, true);
        let cells = requirements().count() * Column::ALL.len();
        let counts = table.counts();
        assert_eq!((counts.passed, counts.failed), (cells, 0));
        let text = table.to_string();
        assert!(text.contains(&CASE.replace('_', " ")), "{text}");
        let report = serde_json::to_value(table.report("a machine")).unwrap();
        assert_eq!(report["schema"], SCHEMA);
        assert_eq!(report["cells"].as_array().unwrap().len(), cells);
        assert_eq!(report["cells"][0]["result"], "pass");
    }

    #[test]
    fn a_requirement_that_was_not_run_is_a_failure() {
        let table = table_without(Some(Column::Udp), true);
        assert_eq!(table.counts().failed, requirements().count());
        assert!(table.to_string().contains("no test of it has run"));
    }

    #[test]
    fn what_needs_root_is_left_out_with_the_reason_and_counted_neither_way() {
        let table = table_without(Some(Column::Xdp), false);
        let counts = table.counts();
        assert_eq!((counts.failed, counts.skipped), (0, requirements().count()));
        assert!(table.to_string().contains("needs root"));
    }

    #[test]
    fn one_failed_run_of_many_fails_the_cell_and_its_message_is_shown() {
        let mut table = table_without(None, true);
        let mut failing = Seen::new(&program(Column::Fault));
        failing.add_line(&format!("test losses::{CASE} ... FAILED"));
        failing.add_line(&format!("---- losses::{CASE} stdout ----"));
        failing.add_line("thread 'x' (7) panicked at src/a.rs:1:2:");
        failing.add_line("a frame is missing");
        failing.add_line("note: run with ...");
        failing.end(false);
        table.add(failing);
        assert_eq!(table.counts().failed, 1);
        let text = table.to_string();
        assert!(
            text.contains("FAIL") && text.contains("a frame is missing"),
            "{text}"
        );
    }

    #[test]
    fn tests_of_the_fault_datapath_in_another_program_are_recognised_by_their_fixture() {
        let mut seen = Seen::new(&program(Column::Udp));
        seen.add_line(&format!("test {CASE} (loopback) ... ok"));
        seen.add_line(&format!("test {CASE} (fault over loopback) ... FAILED"));
        let mut table = Table::new(true);
        table.add(seen);
        assert_eq!(table.judge(CASE, false, Column::Udp).0, Judgement::Pass);
        assert_eq!(table.judge(CASE, false, Column::Fault).0, Judgement::Fail);
    }

    #[test]
    fn a_test_that_is_ignored_shows_nothing_and_a_program_that_died_is_a_failure() {
        let mut ignored = Seen::new(&program(Column::Udp));
        ignored.add_line(&format!("test {CASE} ... ignored"));
        let mut table = Table::new(true);
        table.add(ignored);
        assert_eq!(table.judge(CASE, false, Column::Udp).0, Judgement::Fail);

        let mut table = table_without(None, true);
        let mut died = seen(Column::Udp, "");
        died.end(false);
        table.add(died);
        assert_eq!(table.counts().failed, 1);
        assert!(table.to_string().contains("ended badly"));
    }
}
