//! One end as a process: pinned, in a namespace, its output in a file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::{Host, Testbed};

use isolane_support::{Result, command};

/// How often a process is looked at that shall end.
const LOOK: Duration = Duration::from_millis(5);

/// A running end; killed when dropped while it runs.
pub(super) struct End {
    child: Child,
    command: String,
    stdout: PathBuf,
    stderr: PathBuf,
    has_ended: bool,
}

/// The lines `NAME NUMBER` that an end printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Printed(Vec<(String, f64)>);

impl End {
    /// Starts it on a host and a core; `stem` is the path of its output files without extension.
    pub(super) fn start(
        testbed: &Testbed,
        host: Host,
        core: usize,
        program: &Path,
        arguments: &[String],
        stem: &Path,
    ) -> Result<Self> {
        let mut taskset = Command::new("taskset");
        taskset.args(["--cpu-list", &core.to_string()]);
        taskset.arg(program).args(arguments);
        let command = command::displayed(&taskset);
        let (stdout, stderr) = (stem.with_extension("out"), stem.with_extension("err"));
        taskset
            .stdin(Stdio::null())
            .stdout(File::create(&stdout)?)
            .stderr(File::create(&stderr)?);
        let mut taskset = testbed.command(host, taskset);
        let child = taskset
            .spawn()
            .map_err(|error| command::cannot_start(&taskset, &error))?;
        Ok(Self {
            child,
            command,
            stdout,
            stderr,
            has_ended: false,
        })
    }

    /// Waits for its end and returns what it printed; any exit status but 0, and being late, is
    /// an error.
    pub(super) fn finish(mut self, deadline: Instant) -> Result<Printed> {
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                self.has_ended = true;
                break status;
            }
            if Instant::now() >= deadline {
                return Err(format!("`{}` has not ended in time", self.command).into());
            }
            thread::sleep(LOOK);
        };
        if !status.success() {
            let said = fs::read_to_string(&self.stderr).unwrap_or_default();
            return Err(format!("`{}`: {status}: {}", self.command, said.trim()).into());
        }
        Printed::parse(&fs::read_to_string(&self.stdout)?)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.has_ended {
            // It may have ended in this moment; either way it is gone afterwards.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Printed {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(|line| {
            let (name, number) = line
                .split_once(' ')
                .ok_or_else(|| format!("a line `{line}`"))?;
            Ok((name.to_owned(), number.parse::<f64>()?))
        });
        Ok(Self(lines.collect::<Result<Vec<_>>>()?))
    }

    /// The number of this name.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        let found = self.0.iter().find(|(of, _)| of == name);
        found.map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_numbers() {
        let printed = Printed::parse("samples 12\nelapsed_ns 7000\n").unwrap();
        assert_eq!(printed.get("elapsed_ns"), Some(7000.0));
        assert_eq!(printed.get("lost"), None);
        assert!(Printed::parse("samples\n").is_err());
        assert!(Printed::parse("samples many\n").is_err());
    }
}
