//! Exact output for captures of other implementations. A person has read the files next to this folder. After an
//! intended change, write them again with `GOLDEN=write cargo test -p isolane-cli --test spy`, and read them again.

use std::path::Path;

use crate::support::{captured, run, spy};

/// Compares the output for a capture with the golden file.
fn looks_like(golden: &str, capture: &str, arguments: &[&str]) {
    let path = captured(capture);
    let mut all = vec![path.to_str().expect("UTF-8")];
    all.extend(arguments);
    let said = run(&mut spy(&all));
    assert_eq!(said.code, 0, "{}", said.err);
    let text = format!("{}--- standard error\n{}", said.out, said.err);
    // The settings printed by -v contain the folder of the file.
    let text: String = text
        .lines()
        .filter(|line| !line.starts_with("file = "))
        .map(|line| format!("{line}\n"))
        .collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(golden);
    if std::env::var_os("GOLDEN").is_some_and(|wish| wish == "write") {
        std::fs::write(&file, &text).expect("the golden file");
    }
    let golden = std::fs::read_to_string(&file).expect("the golden file");
    for (number, (is, should)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, should, "line {} of {}", number + 1, file.display());
    }
    assert_eq!(text.lines().count(), golden.lines().count());
}

#[test]
fn two_cyclone_participants_meet() {
    looks_like("meeting.txt", "cyc-cyc", &["--count", "25"]);
}

#[test]
fn an_instance_and_a_participant_end() {
    looks_like(
        "ending.txt",
        "fin-f-d",
        &["--kind", "data,gap,sedp", "--topic", "Square"],
    );
}

#[test]
fn a_large_sample_is_put_together_from_fragments() {
    looks_like("fragments.txt", "big-cyc", &[]);
}

#[test]
fn gaps_for_programs() {
    looks_like("gaps.jsonl", "dust-cyc", &["--kind", "gap", "--json", "-"]);
}
