//! `cargo xtask classifier`: check that the checked-in eBPF object matches its sources.
//!
//! The classifier's object is part of the crate, so users need no compiler. The command builds the object from its
//! sources and compares it with the checked-in one, byte for byte. With `--write`, it replaces the checked-in object.
//! The build is reproducible: the compiler's version is fixed, paths are removed, and no system header is included.

use std::fs;
use std::path::Path;
use std::process::Command;

use isolane_datapath_xdp::classifier::{Classifier, ClassifierConfig};
use isolane_support::steps::Outcome;
use isolane_support::workspace::Metadata;
use isolane_support::{Result, command};

/// Compiler of a fixed version. Another version generates other instructions from the same sources.
const COMPILER: &str = "clang-16";
const STRIP: &str = "llvm-strip-16";

const FOLDER: &str = "crates/datapath-xdp/classifier";
const SOURCE: &str = "classifier.bpf.c";
const OBJECT: &str = "classifier.bpf.o";

/// Arguments of `cargo xtask classifier`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Replace the checked-in object where it differs
    #[arg(long)]
    write: bool,
}

/// Builds the object and compares it, or replaces the checked-in one.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let metadata = Metadata::read()?;
    let checked_in = metadata.workspace_root.join(FOLDER).join(OBJECT);
    let built = build(&metadata)?;
    let is_same = fs::read(&checked_in).is_ok_and(|bytes| bytes == built);
    if is_same {
        println!(
            "{FOLDER}/{OBJECT} is what the sources make ({} bytes)",
            built.len()
        );
        println!("{}", tag());
    } else if arguments.write {
        fs::write(&checked_in, &built)?;
        println!(
            "{FOLDER}/{OBJECT} is renewed ({} bytes); run again for its tag",
            built.len()
        );
    } else {
        eprintln!("{}", differs());
    }
    Ok(is_same || arguments.write)
}

/// Step of `cargo xtask test`.
pub(crate) fn step(metadata: &Metadata) -> Result<Outcome> {
    for tool in [COMPILER, STRIP] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Ok(Outcome::LeftOut(format!("{tool} is not installed")));
        }
    }
    let checked_in = fs::read(metadata.workspace_root.join(FOLDER).join(OBJECT))?;
    if checked_in != build(metadata)? {
        return Ok(Outcome::Failed(differs()));
    }
    eprintln!("{}", tag());
    Ok(Outcome::Passed)
}

fn differs() -> String {
    format!(
        "{FOLDER}/{OBJECT} is not what {SOURCE} makes with {COMPILER}: run \
         `cargo xtask classifier --write`"
    )
}

/// Builds the object from its sources.
fn build(metadata: &Metadata) -> Result<Vec<u8>> {
    let folder = metadata.workspace_root.join(FOLDER);
    let object = metadata.target_directory.join("classifier").join(OBJECT);
    fs::create_dir_all(object.parent().unwrap_or(Path::new(".")))?;
    let mut compile = Command::new(COMPILER);
    compile
        .current_dir(&folder)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-nostdinc"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        // The loader needs BTF, which the compiler makes from debug information.
        .args(["-g", "-fdebug-compilation-dir=."])
        .arg(format!("-ffile-prefix-map={}=.", folder.display()))
        .args(["-c", SOURCE, "-o"])
        .arg(&object);
    command::run(&mut compile)?;
    command::run(Command::new(STRIP).arg("--strip-debug").arg(&object))?;
    Ok(fs::read(&object)?)
}

/// Returns the tag of the object with which this program was built.
fn tag() -> String {
    match Classifier::load(&ClassifierConfig::default()) {
        Ok(classifier) => format!(
            "tag {} by this kernel; budgets are filled up by {}",
            classifier.tag(),
            classifier.replenisher()
        ),
        Err(error) => format!("tag unknown: {error}"),
    }
}
