//! Published results: `docs/results/measured` has what `isolane bench report` prints for each measurement that README
//! and the pages of results quote. A changed scenario, another date or command, or a number of a table that no
//! measurement shows fails these tests. Then measure again, and write the file:
//!
//! `isolane bench report FOLDER > docs/results/measured/NAME.txt`, or the standard output of `cargo xtask testbed`,
//! `discovery` or `drop-cost`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use isolane_bench::experiment::sha256;

/// Heading of the part of a page that quotes earlier measurements.
const EARLIER: &str = "\n## Earlier";
/// Folders of scenarios.
const SCENARIOS: [&str; 4] = [
    "lab/bench/scenarios",
    "lab/budgets/scenarios",
    "lab/interop/measured",
    "lab/testbed/scenarios",
];
/// Pages about tests, not about measurements.
const OF_TESTS: [&str; 4] = ["README.md", "attack.md", "behaviour.md", "types.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of a folder with this extension: their names and texts.
fn files(folder: &str, extension: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), fs::read_to_string(&path).expect("text"))
        })
        .collect()
}

/// Value of a line `NAME: VALUE` of a measurement.
fn line<'a>(measured: &'a str, name: &str) -> &'a str {
    let mut lines = measured.lines();
    let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no line `{name}: `"))
}

/// Command as pages write it: without the files of the result, and by the name of a shipped scenario.
fn command(measured: &str) -> String {
    let mut words = measured.split(' ');
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--folder" | "--json" | "--page" => drop(words.next()),
            _ => kept.push(word),
        }
    }
    let command = kept.join(" ").replace(
        "isolane bench run lab/interop/measured/peers.toml",
        "cargo xtask peers --",
    );
    let shipped = command.replace("lab/bench/scenarios/", "");
    format!("`{}`", shipped.replace(".toml", ""))
}

/// Pages of results with the measurements that they link to.
fn pages() -> Vec<(String, String, Vec<String>)> {
    let measured = files("docs/results/measured", "txt");
    let pages = files("docs/results", "md").into_iter();
    pages
        .map(|(name, text)| {
            let links = |file: &&String| text.contains(&format!("(measured/{file})"));
            let linked = measured.keys().filter(links).cloned().collect();
            (name, text, linked)
        })
        .collect()
}

/// Parts of a text like `(0.93 to 1.04)`, of two numbers.
fn intervals(text: &str) -> Vec<&str> {
    let is_number = |text: &str| text.replace(',', "").parse::<f64>().is_ok();
    let parts = text
        .split('(')
        .skip(1)
        .filter_map(|part| Some(part.split_once(')')?.0));
    let is_interval = |part: &&str| {
        part.split_once(" to ")
            .is_some_and(|(low, high)| is_number(low) && is_number(high))
    };
    parts.filter(is_interval).collect()
}

#[test]
fn each_measurement_is_of_the_scenario_as_it_is_now() {
    let scenarios = SCENARIOS.iter().flat_map(|folder| files(folder, "toml"));
    let current: Vec<String> = scenarios.map(|(_, text)| sha256(&text)).collect();
    for (name, measured) in files("docs/results/measured", "txt") {
        let hash = line(&measured, "scenario").trim_start_matches("SHA-256 ");
        assert!(
            current.iter().any(|of_file| of_file == hash),
            "{name}: its scenario has changed since, measure it again"
        );
        for fault in ["This result is incomplete", "FAILED: "] {
            assert!(!measured.contains(fault), "{name}: {fault}");
        }
    }
}

#[test]
fn each_page_names_the_command_scenario_and_date_of_its_measurements() {
    let mut linked_by_a_page = Vec::new();
    for (page, text, linked) in pages() {
        for file in &linked {
            let path = root().join("docs/results/measured").join(file);
            let measured = fs::read_to_string(path).expect("text");
            let date = line(&measured, "measured").split('T').next();
            let hash = line(&measured, "scenario").trim_start_matches("SHA-256 ");
            let mut rows = text.lines().filter(|line| line.starts_with('|'));
            let row = rows.find(|row| row.contains(&format!("(measured/{file})")));
            let row = row.unwrap_or_else(|| panic!("{page}: no row of the table links to {file}"));
            assert!(
                row.contains(date.expect("a date")),
                "{page}: date of {file}"
            );
            assert!(row.contains(&hash[..12]), "{page}: scenario of {file}");
            let command = command(line(&measured, "command"));
            assert!(
                row.contains(&command),
                "{page}: command of {file}: {command}"
            );
        }
        let needs = !OF_TESTS.contains(&page.as_str());
        assert!(
            !needs || !linked.is_empty(),
            "{page} links to no measurement"
        );
        linked_by_a_page.extend(linked);
    }
    for file in files("docs/results/measured", "txt").keys() {
        assert!(linked_by_a_page.contains(file), "no page links to {file}");
    }
}

#[test]
fn each_quoted_interval_is_that_of_a_measurement() {
    let mut measured = files("docs/results/measured", "txt");
    for text in measured.values_mut() {
        // Lines of a text are wrapped.
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let all: String = measured.values().map(String::as_str).collect();
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let readme = ("README.md".to_owned(), readme, Vec::new());
    for (page, text, linked) in pages().into_iter().chain([readme]) {
        let measured: String = match page.as_str() {
            "README.md" => all.clone(),
            _ => linked.iter().map(|file| &*measured[file]).collect(),
        };
        if measured.is_empty() {
            continue;
        }
        let current = text.split(EARLIER).next().expect("a part");
        let current = current.split_whitespace().collect::<Vec<_>>().join(" ");
        for interval in intervals(&current) {
            let is_measured = measured.contains(&format!("({interval})"));
            assert!(is_measured, "{page}: no measurement has ({interval})");
        }
    }
}

#[test]
fn each_quoted_line_is_that_of_a_measurement() {
    let measured = files("docs/results/measured", "txt");
    for (page, text, linked) in pages()
        .into_iter()
        .filter(|(.., linked)| !linked.is_empty())
    {
        let lines: Vec<&str> = linked
            .iter()
            .flat_map(|file| measured[file].lines())
            .collect();
        let blocks = text.split("```text\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().expect("a block"));
        for line in blocks.flat_map(str::lines) {
            assert!(
                lines.contains(&line),
                "{page}: no measurement has the line {line}"
            );
        }
    }
}

/// Numbers of a text, each with the unit of its last digit that is not a trailing zero: 12,300 has 100.
fn numbers(text: &str) -> Vec<(f64, f64)> {
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let words = text.split(|c: char| !is_of_number(c) && !c.is_alphabetic());
    let words = words.map(|word| word.trim_matches(['.', ',']).replace(',', ""));
    let words = words.filter_map(|word| Some((word.parse::<f64>().ok()?, word)));
    let unit = |word: &str| match word.split_once('.') {
        Some((_, decimals)) => -(decimals.len() as i32),
        None => (word.len() - word.trim_end_matches('0').len()) as i32,
    };
    words
        .map(|(number, word)| (number, 10_f64.powi(unit(&word))))
        .collect()
}

#[test]
fn each_number_of_a_table_is_a_rounded_one_of_a_measurement() {
    let measured = files("docs/results/measured", "txt");
    for (page, text, linked) in pages() {
        if OF_TESTS.contains(&page.as_str()) {
            continue;
        }
        let of_files: Vec<(f64, f64)> = linked
            .iter()
            .flat_map(|file| numbers(&measured[file]))
            .collect();
        let current = text.split(EARLIER).next().expect("a part");
        let rows = current.lines().filter(|line| line.starts_with('|'));
        for row in rows.filter(|row| !row.contains("(measured/")) {
            // The first cell is the row's name. Text in code font is a name or a value of the scenario.
            let values = row.splitn(3, '|').last().expect("a row");
            let plain: String = values.split('`').step_by(2).collect();
            for (number, unit) in numbers(&plain) {
                let is_measured = |of_file: &(f64, f64)| (of_file.0 - number).abs() <= unit / 2.0;
                assert!(
                    of_files.iter().any(is_measured),
                    "{page}: no measurement has {number}, in: {row}"
                );
            }
        }
    }
}

#[test]
fn a_number_is_known_to_its_last_digit_that_is_not_0() {
    let of = numbers("x12 1,200 (3.50 us) -7, 8. 10.0.0.1");
    assert_eq!(of, [(1_200.0, 100.0), (3.5, 0.01), (7.0, 1.0), (8.0, 1.0)]);
}

#[test]
fn a_command_is_written_without_the_files_of_its_result() {
    assert_eq!(
        command("isolane bench run isolation --folder f --json j"),
        "`isolane bench run isolation`"
    );
    assert_eq!(
        command("cargo xtask testbed paper --json j --seeds 10"),
        "`cargo xtask testbed paper --seeds 10`"
    );
    assert_eq!(
        command("isolane bench run lab/interop/measured/peers.toml --folder p --only rate"),
        "`cargo xtask peers -- --only rate`"
    );
}

#[test]
fn an_interval_is_two_numbers_in_parentheses() {
    let text = "10.1 times (5.7 to 17.9), (see below), (1,200 to 1,300), f(x to y), (2 to";
    assert_eq!(intervals(text), ["5.7 to 17.9", "1,200 to 1,300"]);
}
