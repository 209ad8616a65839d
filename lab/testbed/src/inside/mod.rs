//! What runs inside a guest: this program, as the first and only process that the kernel starts.
//!
//! It mounts what programs expect, loads the modules, does its task, writes what came of it to a port, and
//! leaves the emulator with an exit code. There is no shell and no init system: what a guest does is what is
//! written here.

pub(super) mod tools;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use isolane_support::Result;
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::initramfs::MODULES_FOLDER;
use super::scenario;

/// The hidden command that a guest's kernel starts this program with.
pub const COMMAND: &str = "testbed-guest";

/// The port of the emulator's device `isa-debug-exit`, as the guest's command line places it.
const EXIT_PORT: u64 = 0xf4;
/// The port of its device `isa-debugcon`, which appends each byte to a file. (At 0x402 the firmware would too.)
pub(super) const RESULT_PORT: u64 = 0xe9;
/// All of a machine's ports, as a file in which each is a byte.
const PORTS: &str = "/dev/port";

/// What the first process says on the console before anything else.
pub(super) const BEGUN: &str = "the first process begins";

/// How long devices may take to appear after their driver is there.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// What a guest tells, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Told {
    /// It did its task, and this came of it.
    Done(Value),
    /// It did not, because ...
    Failed(String),
}

/// The exit code that a guest left with, by the emulator's: twice that and one. `None`: it did not leave so.
pub(super) fn exit_code(of_emulator: i32) -> Option<i32> {
    (of_emulator & 1 == 1).then_some(of_emulator >> 1)
}

/// The first process: `task` is a scenario's name and what it wants to know. It does not return.
pub fn run(task: &[String]) -> Result<bool> {
    if std::process::id() != 1 {
        return Err("this is what a guest of the testbed starts: see `cargo xtask testbed`".into());
    }
    eprintln!("{BEGUN}");
    let told = match prepare().and_then(|()| scenario::inside(task)) {
        Ok(value) => Told::Done(value),
        Err(error) => Told::Failed(error.to_string()),
    };
    let is_done = matches!(told, Told::Done(_));
    let handed_over = hand_over(&told);
    if let Err(error) = &handed_over {
        eprintln!("cannot hand over the result: {error}");
    }
    leave(u8::from(!(is_done && handed_over.is_ok())))
}

/// Mounts and modules.
fn prepare() -> Result<()> {
    let mounts = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
        ("bpf", "/sys/fs/bpf"),
        ("tracefs", "/sys/kernel/tracing"),
        ("debugfs", "/sys/kernel/debug"),
    ];
    for (kind, place) in mounts {
        mount(kind, place, kind, MountFlags::empty(), None)
            .map_err(|error| format!("cannot mount {place}: {error}"))?;
    }
    let folder = format!("/{MODULES_FOLDER}");
    let mut modules: Vec<PathBuf> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    // Numbered in the order in which they need each other.
    modules.sort();
    for module in modules {
        rustix::system::finit_module(File::open(&module)?, c"", 0)
            .map_err(|error| format!("cannot load {}: {error}", module.display()))?;
    }
    tools::run("ip", "link set lo up")?;
    Ok(())
}

/// Gives the processor something to do whenever nobody else has, so that it never rests: below the ordinary
/// priority, until the guest ends. An emulator that counts instructions moves its clock when the processor rests, and
/// may do so a moment before the last instructions were counted: a few nanoseconds that depend on the machine
/// outside, after which nothing is the same. And processors that wake up are not what is measured.
pub(super) fn never_rest() -> Result<()> {
    let (told, tell) = mpsc::channel();
    thread::Builder::new().name("awake".into()).spawn(move || {
        // Who waits for it is there.
        let _ = told.send(rustix::thread::gettid());
        loop {
            std::hint::black_box(());
        }
    })?;
    let thread = tell.recv()?;
    tools::run(
        "chrt",
        &format!("--idle --pid 0 {}", thread.as_raw_nonzero()),
    )?;
    Ok(())
}

/// Waits until something has appeared.
pub(super) fn appeared(path: &Path) -> Result<()> {
    let since = Instant::now();
    while !path.exists() {
        if since.elapsed() > PATIENCE {
            return Err(format!("{} did not appear", path.display()).into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Writes it to the result's port, byte by byte: the next byte of the file would be the next port.
fn hand_over(told: &Told) -> Result<()> {
    let ports = OpenOptions::new().write(true).open(PORTS)?;
    for byte in serde_json::to_vec(told)? {
        ports.write_all_at(&[byte], RESULT_PORT)?;
    }
    Ok(())
}

/// Leaves the emulator.
fn leave(code: u8) -> Result<bool> {
    let ports = OpenOptions::new().write(true).open(PORTS)?;
    ports.write_all_at(&[code], EXIT_PORT)?;
    // The emulator is gone before this is reached.
    Err("the emulator goes on".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulators_exit_code_is_twice_the_guests_and_one() {
        assert_eq!(exit_code(1), Some(0));
        assert_eq!(exit_code(3), Some(1));
        assert_eq!(exit_code(0), None, "a reset, not a word of the guest");
    }

    #[test]
    fn outside_of_a_guest_it_does_nothing() {
        assert!(run(&["boot".to_owned()]).is_err());
    }
}
