//! One side of a run as a process. Its output goes to files, so it never blocks on a pipe.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use isolane_support::{Result, command};
use rustix::process::{Pid, Signal, kill_process};

use super::printed::{changes_written, events, number};

/// Grace period between SIGINT and SIGKILL.
const CLEAN_UP: Duration = Duration::from_secs(2);
/// Polling interval while a program should print or exit.
const LOOK: Duration = Duration::from_millis(10);
/// Number of lines shown from the end of an output.
const SHOWN_LINES: usize = 8;

/// End of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Exit with this status.
    Exited(i32),
    /// Death by a signal that this process did not send.
    Crashed(i32),
    /// Death by this process's SIGKILL.
    Killed,
}

impl Ending {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, signal) => Self::Crashed(signal.unwrap_or_default()),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(formatter, "exited with status {status}"),
            Self::Crashed(signal) => write!(formatter, "was ended by signal {signal}"),
            Self::Killed => write!(formatter, "did not stop and was killed"),
        }
    }
}

/// Polls until the condition holds or the time is over; returns true if it holds.
pub(super) fn wait_until(limit: Duration, mut holds: impl FnMut() -> Result<bool>) -> Result<bool> {
    let begin = Instant::now();
    while !holds()? {
        if begin.elapsed() > limit {
            return Ok(false);
        }
        thread::sleep(LOOK);
    }
    Ok(true)
}

/// A running program; killed when dropped while it runs.
pub(super) struct Program {
    child: Child,
    ending: Option<Ending>,
    command: String,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Program {
    /// Starts the program; `stem` is the path of its output files without `.out` and `.err`.
    pub(super) fn start(mut command: Command, stem: &Path) -> Result<Self> {
        let (stdout, stderr) = (stem.with_extension("out"), stem.with_extension("err"));
        command
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?);
        let child = command
            .spawn()
            .map_err(|error| command::cannot_start(&command, &error))?;
        Ok(Self {
            child,
            ending: None,
            command: command::displayed(&command),
            stdout,
            stderr,
        })
    }

    /// Returns how the program ended, or `None` while it runs.
    pub(super) fn ending(&mut self) -> Result<Option<Ending>> {
        if self.ending.is_none() {
            self.ending = self.child.try_wait()?.map(Ending::of);
        }
        Ok(self.ending)
    }

    /// Sends SIGINT without waiting.
    pub(super) fn interrupt(&mut self) -> Result<()> {
        if self.ending()?.is_none() {
            kill_process(Pid::from_child(&self.child), Signal::INT)?;
        }
        Ok(())
    }

    /// Interrupts a publisher, and waits until it reports what it has written; returns this number.
    pub(super) fn end_writing(&mut self, limit: Duration) -> Result<u32> {
        self.interrupt()?;
        wait_until(limit, || Ok(changes_written(&self.said()?).is_some()))?;
        changes_written(&self.said()?).ok_or_else(|| {
            let account = self.account();
            format!("the publisher did not print its number of samples\n{account}").into()
        })
    }

    /// Numbers of the samples that a subscriber has printed.
    pub(super) fn sample_numbers(&self) -> Result<Vec<u32>> {
        let events = events(&self.printed()?)?;
        Ok(events.into_iter().filter_map(number).collect())
    }

    /// Sends SIGKILL if the program still runs.
    pub(super) fn kill(&mut self) -> Result<Ending> {
        if let Some(ending) = self.ending()? {
            return Ok(ending);
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(*self.ending.insert(Ending::Killed))
    }

    /// Sends SIGINT, and SIGKILL if the program does not end in time.
    pub(super) fn stop(&mut self) -> Result<Ending> {
        self.interrupt()?;
        wait_until(CLEAN_UP, || Ok(self.ending()?.is_some()))?;
        self.kill()
    }

    /// Standard output so far.
    pub(super) fn printed(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.stdout)?).into_owned())
    }

    /// Standard error so far.
    pub(super) fn said(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(&self.stderr)?).into_owned())
    }

    /// Removes the files of both outputs.
    pub(super) fn remove_output(&self) {
        for file in [&self.stdout, &self.stderr] {
            let _ = fs::remove_file(file);
        }
    }

    /// Command line, and the last lines of both outputs.
    pub(super) fn account(&self) -> String {
        let mut account = format!("  $ {}\n", self.command);
        for file in [&self.stdout, &self.stderr] {
            let Ok(bytes) = fs::read(file) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            let lines = text.lines().collect::<Vec<_>>();
            let hidden = lines.len().saturating_sub(SHOWN_LINES);
            if hidden > 0 {
                account += &format!("  | ... {hidden} lines more in {}\n", file.display());
            }
            for line in &lines[hidden..] {
                account += &format!("  | {line}\n");
            }
        }
        account
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ending.is_none() {
            // The program may just have ended. In either case it is gone afterwards.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, name: &str) -> Program {
        let stem = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        // The parent of the tests may ignore SIGINT, as a shell's background jobs do, and a shell cannot trap a signal
        // that was ignored at its start.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", "sh", "-c", script]);
        Program::start(command, &stem).unwrap()
    }

    const LIMIT: Duration = Duration::from_secs(10);

    fn until_it_printed(program: &Program) {
        wait_until(LIMIT, || Ok(!program.printed()?.is_empty())).unwrap();
    }

    fn ended(program: &mut Program) -> Ending {
        wait_until(LIMIT, || Ok(program.ending()?.is_some())).unwrap();
        let ending = program.stop().unwrap();
        program.remove_output();
        ending
    }

    #[test]
    fn a_program_that_ends_by_itself_says_how() {
        assert_eq!(ended(&mut shell("exit 3", "exits")), Ending::Exited(3));
        assert_eq!(
            ended(&mut shell("kill -SEGV $$", "crashes")),
            Ending::Crashed(11)
        );
    }

    #[test]
    fn what_a_program_printed_is_there_afterwards() {
        let mut program = shell("echo hello; exec sleep 60", "prints");
        until_it_printed(&program);
        assert_eq!(program.printed().unwrap(), "hello\n");
        assert!(program.account().contains("| hello"));
        assert_eq!(program.kill().unwrap(), Ending::Killed);
        ended(&mut program);
    }

    #[test]
    fn a_program_that_is_asked_to_stop_says_how_it_did_or_is_killed() {
        for (name, script, ending) in [
            (
                "obeys",
                "trap 'exit 7' INT; echo ready; while :; do sleep 0.01; done",
                Ending::Exited(7),
            ),
            (
                "ignores",
                "trap '' INT; echo deaf; while :; do sleep 0.1; done",
                Ending::Killed,
            ),
        ] {
            let mut program = shell(script, name);
            until_it_printed(&program);
            assert_eq!(program.stop().unwrap(), ending);
            ended(&mut program);
        }
    }
}
