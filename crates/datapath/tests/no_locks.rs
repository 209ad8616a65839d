//! Search of the sources: the crates of the hot path take no locks and never wait.

use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 4] = ["wire", "rtps", "executor", "datapath"];

/// Names of types and functions that lock or wait. A spinning reader waits as well. The types of the
/// standard library are also disallowed by each crate's `clippy.toml`, which sees through renaming; this
/// search also finds those of other libraries.
const FORBIDDEN: [&str; 11] = [
    "Mutex",
    "RwLock",
    "Condvar",
    "Barrier",
    "OnceLock",
    "LazyLock",
    "parking_lot",
    "spin_loop",
    "spin::",
    "critical_section",
    "thread::sleep",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a folder can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines with a forbidden name, without comments.
fn offences(text: &str) -> Vec<(usize, &str)> {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let offends = |line: &str| FORBIDDEN.iter().any(|name| code(line).contains(name));
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| offends(line)).collect()
}

#[test]
fn the_hot_path_has_no_locks_and_never_waits() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut offending = Vec::new();
    for name in CRATES {
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        assert!(!files.is_empty(), "{name} has no sources");
        for file in files {
            let text = fs::read_to_string(&file).expect("a source can be read");
            for (number, line) in offences(&text) {
                offending.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(offending.is_empty(), "\n{}", offending.join("\n"));
}

#[test]
fn the_search_finds_what_it_looks_for() {
    let text = "let a = 1;\nuse std::sync::Mutex;\n// a Mutex is only talked about\n";
    assert_eq!(offences(text), [(2, "use std::sync::Mutex;")]);
    let waiting = "std::thread::sleep(a); // for a while";
    assert_eq!(offences(waiting), [(1, waiting)]);
}
