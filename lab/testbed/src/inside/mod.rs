//! First and only process of a guest: this program, started by the guest's kernel.
//!
//! It mounts the file systems that programs expect, loads the modules, performs its task, writes the result to a port,
//! and exits the emulator with a code. A guest has no shell and no init system.

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

/// Hidden command with which a guest's kernel starts this program.
pub const COMMAND: &str = "testbed-guest";

/// I/O port of the emulator's device `isa-debug-exit`, as set on the guest's command line.
const EXIT_PORT: u64 = 0xf4;
/// I/O port of the emulator's device `isa-debugcon`, which appends each byte that it receives to a file. The firmware
/// writes its own messages to another port, 0x402.
pub(super) const RESULT_PORT: u64 = 0xe9;
/// All I/O ports as a file, one byte each.
const PORTS: &str = "/dev/port";

/// First console line of the first process.
pub(super) const BEGUN: &str = "the first process begins";

/// Timeout for a device's appearance after its driver is loaded.
const PATIENCE: Duration = Duration::from_secs(10);
/// Polling interval of a wait.
const LOOK: Duration = Duration::from_millis(20);

/// Result of a guest, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GuestResult {
    /// Result of a completed task.
    Done(Value),
    /// Error of a failed task.
    Failed(String),
}

/// Guest's exit code from the emulator's, which is twice the code plus one. `None`: the guest did not exit this way.
pub(super) fn exit_code(of_emulator: i32) -> Option<i32> {
    (of_emulator & 1 == 1).then_some(of_emulator >> 1)
}

/// Runs the first process: `task` is a scenario's name and its arguments. Does not return.
pub fn run(task: &[String]) -> Result<bool> {
    if std::process::id() != 1 {
        return Err("this is what a guest of the testbed starts: see `cargo xtask testbed`".into());
    }
    eprintln!("{BEGUN}");
    let result = match prepare().and_then(|()| scenario::inside(task)) {
        Ok(value) => GuestResult::Done(value),
        Err(error) => GuestResult::Failed(error.to_string()),
    };
    let is_done = matches!(result, GuestResult::Done(_));
    let handed_over = hand_over(&result);
    if let Err(error) = &handed_over {
        eprintln!("cannot hand over the result: {error}");
    }
    leave(u8::from(!(is_done && handed_over.is_ok())))
}

/// Mounts the file systems and loads the modules.
fn prepare() -> Result<()> {
    let mounts = [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
        ("bpf", "/sys/fs/bpf"),
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
    // File names are numbered in load order.
    modules.sort();
    for module in modules {
        rustix::system::finit_module(File::open(&module)?, c"", 0)
            .map_err(|error| format!("cannot load {}: {error}", module.display()))?;
    }
    tools::run("ip", "link set lo up")?;
    Ok(())
}

/// Keeps the processor busy until the guest ends, below the ordinary priority. An emulator that counts instructions
/// advances its clock when the processor idles, possibly before the last instructions are counted. That difference of a
/// few nanoseconds depends on the host, and makes the run irreproducible. Without idle times, the round trips also
/// contain no wake-ups from idle.
pub(super) fn never_rest() -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().name("awake".into()).spawn(move || {
        // The receiver waits for the thread id.
        let _ = sender.send(rustix::thread::gettid());
        loop {
            std::hint::black_box(());
        }
    })?;
    let thread = receiver.recv()?;
    tools::run(
        "chrt",
        &format!("--idle --pid 0 {}", thread.as_raw_nonzero()),
    )?;
    Ok(())
}

/// Waits until a path exists.
pub(super) fn appeared(path: &Path) -> Result<()> {
    let what = format!("{} did not appear", path.display());
    wait_until(&what, PATIENCE, || Ok(path.exists()))
}

/// Waits until the condition holds; after the timeout, `failure` is the error.
pub(super) fn wait_until(
    failure: &str,
    patience: Duration,
    mut is_so: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let since = Instant::now();
    while !is_so()? {
        if since.elapsed() > patience {
            return Err(failure.into());
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// Writes the result to its port byte by byte, because the next byte of the file is the next port.
fn hand_over(result: &GuestResult) -> Result<()> {
    let ports = OpenOptions::new().write(true).open(PORTS)?;
    for byte in serde_json::to_vec(result)? {
        ports.write_all_at(&[byte], RESULT_PORT)?;
    }
    Ok(())
}

/// Exits the emulator.
fn leave(code: u8) -> Result<bool> {
    let ports = OpenOptions::new().write(true).open(PORTS)?;
    ports.write_all_at(&[code], EXIT_PORT)?;
    // Unreachable once the emulator has exited.
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
