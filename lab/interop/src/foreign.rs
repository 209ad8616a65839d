//! Builds of the lab's programs against other DDS implementations, with the system's compilers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isolane_support::{Result, command, packages};

/// Debian package of Cyclone DDS, whose version is reported.
pub(crate) const CYCLONEDDS: &str = "cyclonedds-dev";
/// Debian package of Fast DDS, whose version is reported.
pub(crate) const FASTDDS: &str = "libfastrtps-dev";

/// Builds a C program against Cyclone DDS in `folder`. `idlc` reads its type from an IDL file with these options.
pub(crate) fn build_cyclonedds(
    source: &Path,
    idl: &Path,
    idl_options: &[&str],
    folder: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let mut idlc = Command::new("idlc");
    idlc.args(idl_options).arg(idl).current_dir(folder);
    command::run(&mut idlc)?;
    let generated = Path::new(idl.file_name().unwrap_or_default()).with_extension("c");
    compile("gcc", "-std=gnu11", source, folder, |compiler| {
        // The program may depend on the options of the type.
        compiler.args(idl_options).arg("-I").arg(folder);
        compiler.arg(folder.join(generated)).arg("-lddsc");
    })
}

/// Builds a C program without libraries in `folder`.
pub(crate) fn build_c(source: &Path, folder: &Path) -> Result<PathBuf> {
    compile("gcc", "-std=gnu11", source, folder, |_| {})
}

/// Builds a C++ program against Fast DDS in `folder`.
pub(crate) fn build_fastdds(source: &Path, folder: &Path) -> Result<PathBuf> {
    compile("g++", "-std=c++17", source, folder, |compiler| {
        compiler.args(["-lfastrtps", "-lfastcdr"]);
    })
}

/// Compiles a program in `folder`, named after its source. `add_arguments` adds arguments that follow the source.
fn compile(
    compiler: &str,
    standard: &str,
    source: &Path,
    folder: &Path,
    add_arguments: impl FnOnce(&mut Command),
) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let program = folder.join(source.file_stem().unwrap_or_default());
    let mut compiler = Command::new(compiler);
    compiler.args([standard, "-O2", "-Wall", "-Wextra", "-Werror"]);
    compiler.arg("-o").arg(&program).arg(source);
    add_arguments(&mut compiler);
    command::run(&mut compiler)?;
    Ok(program)
}

/// "NAME VERSION" with the upstream version of a Debian package; an error if it is not installed.
pub(crate) fn identity(name: &str, package: &str) -> Result<String> {
    match packages::version(package)? {
        Some(version) => Ok(format!("{name} {}", upstream(&version))),
        None => Err(format!(
            "{package} is not installed: `cargo xtask test --system` as root installs it"
        )
        .into()),
    }
}

/// Upstream version, from Debian's `[epoch:]version[+repacked][-revision]`.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let version = version.rsplit_once('-').map_or(version, |(rest, _)| rest);
    version.split_once('+').map_or(version, |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_version_is_without_what_the_distribution_added() {
        assert_eq!(upstream("0.10.2-2"), "0.10.2");
        assert_eq!(upstream("2.9.1+ds-1+deb12u2"), "2.9.1");
        assert_eq!(upstream("4:12.2.0-3"), "12.2.0");
    }
}
