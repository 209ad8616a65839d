//! The peers of the matrix: how each is had, its programs, and what is known of its version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cell::{Cell, Direction, Extensibility, Known, Outcome, Representation};
use crate::foreign;
use isolane_support::workspace::{Metadata, cargo};
use isolane_support::{Result, command, packages};

/// Version of Cyclone DDS that is had as a Python package.
const CYCLONEDDS_PYTHON: &str = "11.0.1";
/// Version in the manifest of the program for Dust DDS.
const DUSTDDS: &str = "0.16.0";

/// An implementation of DDS, in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    CycloneDds,
    FastDds,
    CycloneDdsPython,
    DustDds,
}

/// A peer as this machine has it.
pub(super) struct Installed {
    /// Name and version.
    pub(super) identity: String,
    programs: [Vec<PathBuf>; 2],
}

impl Installed {
    /// The command of the program whose type has an extensibility, without endpoints.
    pub(super) fn command(&self, extensibility: Extensibility) -> Command {
        let [program, arguments @ ..] = &self.programs[extensibility as usize][..] else {
            unreachable!("each has a program");
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command
    }
}

impl Peer {
    /// Those that `cargo xtask test` installs for other steps, too.
    pub(super) const CI: [Self; 2] = [Self::CycloneDds, Self::FastDds];
    pub(super) const ALL: [Self; 4] = [
        Self::CycloneDds,
        Self::FastDds,
        Self::CycloneDdsPython,
        Self::DustDds,
    ];

    /// What comes of a cell otherwise than by the standards.
    pub(super) fn known(self, cell: Cell) -> Option<Outcome> {
        let theirs = cell.theirs;
        let is_appendable = theirs.extensibility == Extensibility::Appendable;
        let has_xcdr1 = theirs.representation != Representation::Xcdr2;
        let is_read = cell.direction == Direction::FromIsolane;
        let by_the_standards = cell.by_the_standards();
        match self {
            Self::CycloneDds if is_appendable && has_xcdr1 => Some(Outcome::Impossible(
                "appendable types are in XCDR2 only: dds_create_topic, Bad Parameter",
            )),
            // It reads the key of an appendable type without DHEADERs, as it writes it.
            Self::CycloneDds
                if is_read && is_appendable && by_the_standards == Outcome::Delivered =>
            {
                Some(Outcome::Known(Known::EndUnread))
            }
            Self::FastDds if theirs.representation != Representation::Xcdr1 => {
                Some(Outcome::Impossible("Fast CDR 1.0 has no XCDR2"))
            }
            Self::FastDds if by_the_standards == Outcome::NotMatched => {
                Some(Outcome::Known(Known::OneSided))
            }
            // Its endpoints are created and match, and XCDR1 of an appendable type is neither written nor read.
            Self::CycloneDdsPython
                if is_appendable && has_xcdr1 && by_the_standards == Outcome::Delivered =>
            {
                let sends_xcdr2 = cell.ours.representation == Representation::Xcdr2;
                match is_read {
                    true if sends_xcdr2 => None,
                    true => Some(Outcome::Known(Known::Silent)),
                    false => Some(Outcome::Impossible(
                        "appendable types are in XCDR2 only: dds_write, Bad Parameter",
                    )),
                }
            }
            _ => None,
        }
    }

    /// Gets it and builds its programs under `target/interop/types`.
    pub(super) fn install(self, metadata: &Metadata) -> Result<Installed> {
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop/types");
        match self {
            Self::CycloneDds => {
                let build = |option: &str, name: &str| {
                    foreign::build_cyclonedds(
                        &sources.join("cyclonedds/typed.c"),
                        &sources.join("Reading.idl"),
                        &["-D", option],
                        &folder.join("cyclonedds").join(name),
                    )
                };
                Ok(Installed {
                    identity: identity("cyclonedds", foreign::CYCLONEDDS)?,
                    programs: [
                        vec![build("FINAL", "final")?],
                        vec![build("APPENDABLE", "appendable")?],
                    ],
                })
            }
            Self::FastDds => {
                let program = foreign::build_fastdds(
                    &sources.join("fastdds/typed.cpp"),
                    &folder.join("fastdds"),
                )?;
                Ok(Installed {
                    identity: identity("fastdds", foreign::FASTDDS)?,
                    programs: [vec![program.clone()], vec![program]],
                })
            }
            Self::CycloneDdsPython => {
                let python = virtual_environment(&folder.join("python"))?;
                let script = sources.join("cyclonedds/typed.py");
                let of = |word: &str| vec![python.clone(), script.clone(), word.into()];
                Ok(Installed {
                    identity: format!("cyclonedds {CYCLONEDDS_PYTHON}"),
                    programs: [of("final"), of("appendable")],
                })
            }
            Self::DustDds => {
                let target = folder.join("dustdds");
                let mut build = cargo();
                build.args(["build", "--locked", "--manifest-path"]);
                build.arg(sources.join("dustdds/Cargo.toml"));
                build.arg("--target-dir").arg(&target);
                command::run(&mut build)?;
                let of = |word: &str| vec![target.join("debug/typed"), word.into()];
                Ok(Installed {
                    identity: format!("dustdds {DUSTDDS}"),
                    programs: [of("final"), of("appendable")],
                })
            }
        }
    }
}

/// The name and the version of a Debian package.
fn identity(name: &str, package: &str) -> Result<String> {
    match packages::version(package)? {
        Some(version) => Ok(format!("{name} {}", foreign::upstream(&version))),
        None => {
            Err(format!("{package} is not installed: `cargo xtask test` as root does it").into())
        }
    }
}

/// Makes a Python environment with Cyclone DDS in it, once; returns its interpreter.
fn virtual_environment(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    let requirement = format!("cyclonedds=={CYCLONEDDS_PYTHON}");
    let marker = folder.join(&requirement);
    if !marker.exists() {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", &requirement]);
        command::run(&mut pip)?;
        fs::write(marker, "")?;
    }
    Ok(python)
}
