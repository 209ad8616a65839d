//! Names the commit a program was built from, so that results can say it.
//!
//! `ISOLANE_COMMIT` wins (a package built outside of a repository); otherwise git is asked; where
//! neither knows, results carry null. Changes that are not committed are said, too.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=ISOLANE_COMMIT");
    // Whatever can change the answer: all crates' sources and what HEAD points to.
    println!("cargo::rerun-if-changed=..");
    println!("cargo::rerun-if-changed=../../crates");
    let head = "../../.git/logs/HEAD";
    // A path that does not exist would count as changed in every build.
    if std::path::Path::new(head).exists() {
        println!("cargo::rerun-if-changed={head}");
    }
    let commit = std::env::var("ISOLANE_COMMIT").ok().or_else(commit);
    if let Some(commit) = commit {
        println!("cargo::rustc-env=ISOLANE_COMMIT={commit}");
    }
}

fn commit() -> Option<String> {
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain"])?;
    Some(if changes.is_empty() {
        commit
    } else {
        format!("{commit}+changes")
    })
}

/// What git prints, if it is there and succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
