//! Machine that, for `tune`, appears to be started by systemd, and can be restarted. Units, the program and its folder
//! are files of this test. Each start has its own boot id and its own devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::systemd::Unit;
use crate::command::Folder;
use crate::test_host::{DEVICES, Place};

const UNITS: &str = "/etc/systemd/system";
pub(super) const UNIT: &str = "/etc/systemd/system/isolane-tune.service";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Kernel settings of this network namespace, with their initial values.
const BEGINNINGS: [(&str, &str); 1] = [("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n")];

/// Machine of a test. Create it inside a mount namespace.
pub(super) struct Machine {
    pub(super) place: Place,
    /// Folder below the build folder, which is usually on a disk.
    base: Folder,
    program: PathBuf,
    state: PathBuf,
    boots: AtomicUsize,
}

impl Machine {
    /// Installs the program as `/usr/local/PROGRAM/isolane`, with the journal in `/usr/local/STATE`. Returns `None` if
    /// there is no folder for units that another one could replace, or if the build folder is in memory.
    pub(super) fn new(test: &str, program: &str, state: &str) -> Option<Self> {
        if !Path::new(UNITS).is_dir() {
            let in_ci = std::env::var_os("CI").is_some();
            assert!(!in_ci, "CI has a folder for units of systemd");
            eprintln!("there is no {UNITS}: nothing was tried");
            return None;
        }
        let name = format!("{test}-{}", std::process::id());
        let base = Folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        let kind = Command::new("stat")
            .args(["-f", "-c", "%T"])
            .arg(env!("CARGO_TARGET_TMPDIR"))
            .output();
        let kind = String::from_utf8(kind.expect("stat").stdout).expect("UTF-8");
        if ["tmpfs", "ramfs"].contains(&kind.trim()) {
            // `apply` would refuse a program in memory.
            let in_ci = std::env::var_os("CI").is_some();
            assert!(!in_ci, "CI builds on a disk");
            eprintln!("this takes a target folder on a disk: nothing was tried");
            return None;
        }
        for folder in ["local", "units"] {
            fs::create_dir_all(base.0.join(folder)).expect("a temporary folder");
        }
        bind(&base.0.join("local"), "/usr/local");
        bind(&base.0.join("units"), UNITS);
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "tmpfs", "/run"])
            .status();
        assert!(done.expect("mount").success());
        fs::create_dir_all("/run/systemd/system").expect("ours");
        let program = Path::new("/usr/local").join(program).join("isolane");
        copy_to(&program);
        Some(Self {
            place: Place::new(test),
            base,
            program,
            state: Path::new("/usr/local").join(state),
            boots: AtomicUsize::new(0),
        })
    }

    /// A call of `tune` by the installed program.
    pub(super) fn tune(&self, arguments: &[&str]) -> Command {
        self.tune_by(&self.program, arguments)
    }

    /// A call of `tune` by another program.
    pub(super) fn tune_by(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .arg("tune")
            .args(arguments)
            .arg("--state")
            .arg(&self.state)
            .env_remove("ISOLANE_DOMAIN")
            .env_remove("ISOLANE_CONFIG");
        command
    }

    pub(super) fn unit(&self) -> Unit {
        Unit::read(UNIT)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn state(&self) -> &Path {
        &self.state
    }

    /// All files that a boot finds: units, and the files next to the journal.
    pub(super) fn kept(&self) -> Vec<PathBuf> {
        let mut kept = Vec::new();
        for folder in [Path::new(UNITS), &self.state] {
            list(folder, &mut kept);
        }
        kept.retain(|path| !path.ends_with("tune.lock"));
        kept
    }

    /// Restarts the machine: kernel settings are lost, devices are created again by `devices`, files stay.
    pub(super) fn boot(&self, devices: &str) {
        let number = self.boots.fetch_add(1, Ordering::Relaxed) + 1;
        let id = self.base.file(&format!("boot-{number}"));
        let text = format!("00000000-0000-4000-8000-{number:012}\n");
        fs::write(&id, text).expect("a temporary folder");
        if number > 1 {
            // Otherwise the file of the previous boot could not be removed.
            let done = Command::new("umount").arg(BOOT_ID).status();
            assert!(done.expect("umount").success());
        }
        bind(Path::new(&id), BOOT_ID);
        let script = format!("ip link delete eth0; {devices}");
        let done = Command::new("sh").args(["-ec", &script]).status();
        assert!(done.expect("a shell").success());
        for (path, text) in BEGINNINGS {
            fs::write(path, text).expect("of this namespace");
        }
    }

    /// Restarts the machine with the same devices.
    pub(super) fn boot_again(&self) {
        self.boot(DEVICES);
    }
}

/// Bind-mounts a file or folder over another one.
fn bind(what: &Path, at: &str) {
    let mut mount = Command::new("mount");
    let done = mount.arg("--bind").args([what, Path::new(at)]).status();
    assert!(done.expect("mount").success(), "{}", what.display());
}

/// Installs the program.
pub(super) fn copy_to(path: &Path) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
    fs::copy(env!("CARGO_BIN_EXE_isolane"), path).expect("the program");
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("ours") {
        let path = entry.expect("ours").path();
        match path.is_dir() {
            true => list(&path, files),
            false => files.push(path),
        }
    }
}
