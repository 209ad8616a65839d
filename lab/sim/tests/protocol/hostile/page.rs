//! Check of `docs/explanation/threats.md`: each bound, counter and test that its tables name exists.

use std::{fs, path::Path};

/// Rows of the tables, as trimmed cells.
fn rows(page: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let inner = line.trim().trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let tables = page.lines().filter(|line| line.starts_with('|'));
    let rows = tables.map(cells).filter(|cells| cells.len() == COLUMNS);
    rows.filter(|cells| cells[0] != "threat" && !cells[0].starts_with("---"))
        .collect()
}

/// Number of columns: threat, response, bound, counter, test.
const COLUMNS: usize = 5;

/// Names in a cell, between backquotes.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Appends all Rust sources below a folder.
fn sources(folder: &Path, text: &mut String) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            *text += &fs::read_to_string(&path).expect("a source");
        }
    }
}

#[test]
fn every_bound_counter_and_test_that_the_page_of_threats_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/explanation/threats.md")).expect("the page");
    let mut source = String::new();
    for folder in ["crates", "lab"] {
        sources(&root.join(folder), &mut source);
    }
    let rows = rows(&page);
    assert!(rows.len() >= 30, "{} rows", rows.len());
    let mut unknown = Vec::new();
    for row in &rows {
        let [threat, _, bound, counter, tests] = &row[..] else {
            panic!("{row:?}");
        };
        assert!(!names(tests).is_empty(), "{threat}: no test");
        for name in names(bound) {
            let is_there = source.contains(&format!("const {name}:"))
                || source.contains(&format!("pub {name}: u16"));
            if !is_there {
                unknown.push(format!("{threat}: no bound {name}"));
            }
        }
        for name in names(counter) {
            if !source.contains(&format!("pub {name}: u64")) {
                unknown.push(format!("{threat}: no counter {name}"));
            }
        }
        for name in names(tests) {
            if !source.contains(&format!("fn {name}(")) {
                unknown.push(format!("{threat}: no test {name}"));
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn a_row_is_read_cell_by_cell_and_its_names_stand_between_backquotes() {
    let page = "| threat | a | b | c | d |\n| --- | --- | --- | --- | --- |\n| x | y | `A`, `B` | | `t` |\n| no | row |";
    let rows = rows(page);
    assert_eq!(rows.len(), 1);
    assert_eq!(names(&rows[0][2]), ["A", "B"]);
    assert_eq!(names(&rows[0][4]), ["t"]);
}
