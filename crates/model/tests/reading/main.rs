//! Tests of reading: the meaning of a valid description, and the problems of an invalid one.

mod meaning;
mod participants;
mod tuning;
mod values;
mod warnings;
mod writing;

use isolane_datapath::{Kinds, udp::UdpKind};
use isolane_datapath_xdp::xdp::XdpKind;
use isolane_model::{Problem, System};

const KINDS: Kinds = &[&XdpKind, &UdpKind];
const NAME: &str = "isolane.toml";

/// Description of two hosts and a topic between them, with these additional lines, which start at line 8.
fn topic_with(lines: &str) -> String {
    format!(
        "[host.left]\ninterface = \"eth0\"\n[host.right]\ninterface = \"eth1\"\n\
         [topic.T]\ntype = \"T\"\nmax_bytes = 64\n{lines}\nfrom = [\"left\"]\nto = [\"right\"]\n"
    )
}

fn system(text: &str) -> System {
    System::from_toml(text, NAME, KINDS).expect("a good description")
}

fn problems(text: &str) -> Vec<Problem> {
    System::from_toml(text, NAME, KINDS).expect_err("a bad description")
}

/// The only problem of a topic with these additional lines.
fn problem_of(lines: &str) -> Problem {
    let mut problems = problems(&topic_with(lines));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

/// Line, column and text of a problem's place.
fn at<'t>(problem: &Problem, text: &'t str) -> (usize, usize, &'t str) {
    let span = problem.span().expect("a place");
    (
        problem.line().expect("a line"),
        problem.column().expect("a column"),
        &text[span],
    )
}

/// Checks that the message names the problem and a correct value.
fn assert_says(problem: &Problem, what: &str, help: &str) {
    assert!(problem.what().contains(what), "no \"{what}\": {problem:#}");
    let said = problem.help().unwrap_or("");
    assert!(said.contains(help), "no \"{help}\": {problem:#}");
}
