//! System packages that the tests need, by their Debian names.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::steps::Outcome;
use crate::{Result, command};

/// Every package, with the reason why it is needed.
#[rustfmt::skip]
const NEEDED: &[(&str, &str)] = &[
    ("iproute2", "network namespaces: `ip`"),
    ("ethtool", "tests of lanes: switches a test device's checksums"),
    ("cyclonedds-dev", "interop: the peer Cyclone DDS"),
    ("cyclonedds-tools", "interop: its type compiler, `idlc`"),
    ("libfastrtps-dev", "interop: the peer Fast DDS"),
    ("g++", "interop: compiles the peers' programs"),
    ("tcpdump", "interop: captures the network of a failed cell"),
    ("chromium", "the demo's page is opened and looked at"),
    ("clang-16", "the classifier's object is built and compared: its compiler"),
    ("llvm-16", "the classifier's object: `llvm-strip`"),
    ("binutils", "the testbed's machines: `strip` makes their programs small"),
    ("xz-utils", "the testbed's machines: their kernel's modules are packed with `xz`"),
    ("strace", "tests that count system calls"),
    ("valgrind", "tests that count instructions and copies"),
];

/// Installs missing packages. Without root, prints the command for it; later steps then fail or are skipped.
pub fn install_missing() -> Result<Outcome> {
    let missing = match missing() {
        Ok(missing) => names(&missing),
        // Other distributions have other names for these packages.
        Err(_) => {
            let needed = names(NEEDED).join(" ");
            return Ok(Outcome::LeftOut(format!("no dpkg here; needed: {needed}")));
        }
    };
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    for (name, purpose) in NEEDED.iter().filter(|(name, _)| missing.contains(name)) {
        eprintln!("{name} is not installed ({purpose})");
    }
    if !is_root() {
        let list = missing.join(" ");
        let line = format!("sudo apt-get update && sudo apt-get install -y {list}");
        return Ok(Outcome::LeftOut(format!("run `{line}`")));
    }
    command::run(apt_get().arg("update"))?;
    let mut install = apt_get();
    install.args(["install", "-y", "--no-install-recommends"]);
    command::run(install.args(missing))?;
    Ok(Outcome::Passed)
}

/// Returns the version of a package; `None` if it is not installed.
pub fn version(package: &str) -> Result<Option<String>> {
    Ok(query("${Version}", &[package])?.pop())
}

/// Returns true if this process runs as root, which namespaces and the installation of packages need.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns an error with the name of the command if this process does not run as root.
pub fn require_root(command: &str) -> Result<()> {
    match is_root() {
        true => Ok(()),
        false => Err(format!("{command} needs root: it makes network namespaces").into()),
    }
}

fn names(packages: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    packages.iter().map(|(name, _)| *name).collect()
}

fn missing() -> Result<Vec<(&'static str, &'static str)>> {
    let installed = query("${Package}", &names(NEEDED))?
        .into_iter()
        .collect::<BTreeSet<_>>();
    Ok(NEEDED
        .iter()
        .copied()
        .filter(|(name, _)| !installed.contains(*name))
        .collect())
}

/// Returns one field of each of these packages that is installed. If a package is unknown, `dpkg-query` lists the other
/// packages and fails, so its exit status is ignored.
fn query(field: &str, packages: &[&str]) -> Result<Vec<String>> {
    let mut query = Command::new("dpkg-query");
    query
        .arg("--show")
        .arg(format!("--showformat=${{db:Status-Status}} {field}\\n"))
        .args(packages);
    let output = command::captured(query.stderr(Stdio::null()))?;
    Ok(String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| line.strip_prefix("installed "))
        .map(str::to_owned)
        .collect())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q");
    command
}
