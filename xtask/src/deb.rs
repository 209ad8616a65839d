//! `cargo xtask deb`: the Debian package of the command `isolane`.
//!
//! The command itself prints its manual pages, completion scripts and example description. They are written to
//! `target/release/package`, and `cargo deb` packs them as `[package.metadata.deb]` in `crates/cli/Cargo.toml` says. If
//! cargo-deb is missing, cargo builds it into `target/tools`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isolane_support::workspace::{Metadata, build_commands, cargo};
use isolane_support::{Result, command};

/// Version of cargo-deb that is built if none is installed.
const CARGO_DEB: &str = "3.8.0";

/// Maximum size of the packaged command.
const MAX_COMMAND_BYTES: u64 = 15_000_000;

/// Files without which the package is incomplete.
const FILES: [&str; 11] = [
    "usr/bin/isolane",
    "usr/lib/systemd/system/isolane-tune.service",
    "usr/share/bash-completion/completions/isolane",
    "usr/share/doc/isolane/LICENSE-APACHE",
    "usr/share/doc/isolane/LICENSE-MIT",
    "usr/share/doc/isolane/copyright",
    "usr/share/doc/isolane/examples/isolane.toml",
    "usr/share/fish/vendor_completions.d/isolane.fish",
    "usr/share/man/man1/isolane-tune-apply.1.gz",
    "usr/share/man/man1/isolane.1.gz",
    "usr/share/zsh/vendor-completions/_isolane",
];

/// Builds the command and the package, checks the package, and prints its path.
pub(crate) fn run() -> Result<bool> {
    let metadata = Metadata::read()?;
    command::run(&mut build_commands())?;
    let package = build(&metadata)?;
    if let Some(fault) = fault_of(&metadata, &package)? {
        println!("{fault}");
        return Ok(false);
    }
    println!("{}", package.display());
    Ok(true)
}

/// Unpacks a package and runs its command. Returns what is wrong with the package.
fn fault_of(metadata: &Metadata, package: &Path) -> Result<Option<String>> {
    let root = metadata.target_directory.join("package-root");
    if root.exists() {
        std::fs::remove_dir_all(&root)?;
    }
    let mut unpack = Command::new("dpkg-deb");
    command::run(unpack.arg("--extract").arg(package).arg(&root))?;
    let missing: Vec<_> = FILES
        .iter()
        .filter(|file| !root.join(file).is_file())
        .collect();
    if !missing.is_empty() {
        return Ok(Some(format!("the package lacks {missing:?}")));
    }
    let isolane = root.join("usr/bin/isolane");
    let bytes = std::fs::metadata(&isolane)?.len();
    if bytes > MAX_COMMAND_BYTES {
        return Ok(Some(format!(
            "the command has {bytes} bytes, at most {MAX_COMMAND_BYTES} are allowed"
        )));
    }
    let version = command::output(Command::new(&isolane).arg("--version"))?;
    let expected = format!("isolane {}\n", env!("CARGO_PKG_VERSION"));
    if version != expected.as_bytes() {
        return Ok(Some(format!("no version {expected}")));
    }
    Ok(None)
}

/// Returns the path of the package, made from the command that is built.
fn build(metadata: &Metadata) -> Result<PathBuf> {
    write_generated(
        &metadata.isolane(),
        &metadata.target_directory.join("release/package"),
    )?;
    let cargo_deb = cargo_deb(metadata)?;
    let package = metadata.target_directory.join("isolane.deb");
    let mut pack = Command::new(cargo_deb);
    pack.current_dir(&metadata.workspace_root)
        .env("CARGO_TARGET_DIR", &metadata.target_directory)
        .args(["--package", "isolane-cli", "--no-build", "--strip"])
        .arg("--output")
        .arg(&package);
    command::run(&mut pack)?;
    Ok(package)
}

/// Writes the files that the command generates into an empty folder.
fn write_generated(isolane: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    let pages = folder.join("man");
    command::run(Command::new(isolane).arg("man").arg(&pages))?;
    let mut compress = Command::new("gzip");
    command::run(
        compress
            .args(["-9", "--no-name", "--recursive"])
            .arg(&pages),
    )?;
    for (file, arguments) in [
        ("isolane.bash", ["completions", "bash"]),
        ("isolane.zsh", ["completions", "zsh"]),
        ("isolane.fish", ["completions", "fish"]),
        ("isolane.toml", ["config", "--example"]),
    ] {
        let text = command::output(Command::new(isolane).args(arguments))?;
        std::fs::write(folder.join(file), text)?;
    }
    Ok(())
}

/// Returns the path or name of cargo-deb. If it is missing, cargo builds it.
fn cargo_deb(metadata: &Metadata) -> Result<PathBuf> {
    let tools = metadata.target_directory.join("tools");
    let own = tools.join("bin/cargo-deb");
    for program in ["cargo-deb".as_ref(), own.as_path()] {
        let mut version = Command::new(program);
        version.arg("--version");
        version.stdout(Stdio::null()).stderr(Stdio::null());
        if version.status().is_ok_and(|status| status.success()) {
            return Ok(program.to_owned());
        }
    }
    eprintln!("cargo-deb is not installed; cargo builds it now, which takes some minutes");
    let mut install = cargo();
    install
        .args(["install", "cargo-deb", "--version", CARGO_DEB, "--locked"])
        // xz comes from the system's `xz` command instead of a C library.
        .arg("--no-default-features")
        .arg("--root")
        .arg(&tools);
    command::run(&mut install)?;
    Ok(own)
}
