//! Processes of the domain. Their output is read line by line, and they are killed when dropped.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use isolane_support::process::{Killed, resident_bytes};
use isolane_support::{Result, command};
use serde_json::Value;

/// Line that a process printed, or the end of its output.
struct Said {
    from: usize,
    at: Instant,
    /// Printed line; `None` at the end of the output.
    line: Option<String>,
}

/// Running processes of `domain_member`, with their output.
pub(super) struct Processes {
    processes: Vec<Process>,
    sender: Sender<Said>,
    receiver: Receiver<Said>,
    /// Times at which processes printed each word.
    words: BTreeMap<String, Vec<Instant>>,
    /// Result of each process, in the order in which the processes were started.
    results: Vec<Option<Value>>,
}

struct Process {
    child: Killed,
    name: String,
    input: Option<ChildStdin>,
}

/// Maximum time from the end of a process's input to the end of the process.
const LONGEST_END: Duration = Duration::from_secs(30);

impl Processes {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            processes: Vec::new(),
            sender,
            receiver,
            words: BTreeMap::new(),
            results: Vec::new(),
        }
    }

    /// Starts another process, with its log in `folder`.
    pub(super) fn start(&mut self, mut program: Command, name: &str, folder: &Path) -> Result<()> {
        let log = File::create(folder.join(format!("{name}.log")))?;
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command::spawn(&mut program)?;
        let input = child.stdin.take();
        let output = child.stdout.take();
        let child = Killed(child);
        let output = output.ok_or("a process has no output")?;
        let (sender, from) = (self.sender.clone(), self.processes.len());
        thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(|line| line.ok());
            let said = |line| Said {
                from,
                at: Instant::now(),
                line,
            };
            for line in lines.map(Some).chain([None]) {
                // The receiver may have been dropped after an error.
                if sender.send(said(line)).is_err() {
                    return;
                }
            }
        });
        self.results.push(None);
        self.processes.push(Process {
            child,
            name: name.to_owned(),
            input,
        });
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.processes.len()
    }

    /// Waits until all processes have printed a word. Returns the time of the last one, or `None` after the timeout.
    ///
    /// # Errors
    /// A process has ended.
    pub(super) fn wait_for(&mut self, word: &str, timeout: Duration) -> Result<Option<Instant>> {
        let begin = Instant::now();
        loop {
            if let Some(said) = self.words.get(word)
                && said.len() == self.processes.len()
            {
                return Ok(said.iter().max().copied());
            }
            let left = timeout.saturating_sub(begin.elapsed());
            let Ok(said) = self.receiver.recv_timeout(left) else {
                return Ok(None);
            };
            match said.line {
                Some(line) => self.words.entry(line).or_default().push(said.at),
                None => {
                    let name = &self.processes[said.from].name;
                    return Err(format!("process {name} has ended; see its log").into());
                }
            }
        }
    }

    /// Number of processes that have printed a word.
    pub(super) fn count(&self, word: &str) -> usize {
        self.words.get(word).map_or(0, Vec::len)
    }

    /// Writes a line to each process.
    pub(super) fn tell(&mut self, line: &str) -> Result<()> {
        for process in &mut self.processes {
            let input = process.input.as_mut().ok_or("the input is closed")?;
            writeln!(input, "{line}")?;
        }
        Ok(())
    }

    /// Ends all processes, and returns their results.
    pub(super) fn finish(mut self) -> Result<Vec<Value>> {
        for process in &mut self.processes {
            process.input = None;
        }
        let begin = Instant::now();
        let mut ended = 0;
        while ended < self.processes.len() {
            let left = LONGEST_END.saturating_sub(begin.elapsed());
            let said = self.receiver.recv_timeout(left);
            let said = said.map_err(|_| {
                let all = self.processes.len();
                format!("{} of {all} processes do not end", all - ended)
            })?;
            match said.line {
                Some(line) if line.starts_with('{') => {
                    self.results[said.from] = Some(serde_json::from_str(&line)?);
                }
                Some(_) => {}
                None => ended += 1,
            }
        }
        let results = self.results.into_iter().zip(&self.processes);
        let results = results.map(|(result, process)| {
            let name = &process.name;
            result.ok_or_else(|| format!("process {name} has no result; see its log").into())
        });
        results.collect()
    }

    /// Returns the CPU time of all processes so far, in seconds.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let ids = self.processes.iter().map(|process| process.child.0.id());
        ids.filter_map(cpu_seconds).sum()
    }

    /// Returns the resident memory of the largest process, in bytes.
    pub(super) fn largest_resident_bytes(&self) -> u64 {
        let ids = self.processes.iter().map(|process| process.child.0.id());
        ids.filter_map(resident_bytes).max().unwrap_or(0)
    }
}

/// USER_HZ, the unit of `/proc/PID/stat` on every architecture (proc_pid_stat(5)).
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the CPU time of a process in seconds: utime + stime (proc_pid_stat(5)).
fn cpu_seconds(process: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Field 2, the name in parentheses, may have any character. Field 3 follows it.
    let fields = stat.rsplit_once(") ")?.1.split(' ').skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(ticks as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        shell
    }

    fn folder() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("domain-size {}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn words_are_waited_for_and_results_are_kept_in_the_order_of_the_starts() {
        let mut processes = Processes::new();
        for number in 0..3 {
            let script =
                format!("echo ready; read line; echo $line; read end; echo '{{\"n\":{number}}}'");
            processes.start(shell(&script), "words", &folder()).unwrap();
        }
        let patience = Duration::from_secs(60);
        assert!(processes.wait_for("ready", patience).unwrap().is_some());
        processes.tell("go").unwrap();
        assert!(processes.wait_for("go", patience).unwrap().is_some());
        assert!(processes.largest_resident_bytes() > 100_000);
        let nothing = processes.wait_for("never", Duration::ZERO).unwrap();
        assert_eq!((nothing, processes.count("never")), (None, 0));
        let results = processes.finish().unwrap();
        assert!(results.iter().zip(0..).all(|(it, n)| it["n"] == n));
    }

    #[test]
    fn a_process_that_ends_early_is_an_error() {
        let mut processes = Processes::new();
        processes
            .start(shell("exit 1"), "early", &folder())
            .unwrap();
        let waited = processes.wait_for("ready", Duration::from_secs(60));
        let error = waited.unwrap_err().to_string();
        assert!(error.contains("early has ended"), "{error}");
    }

    #[test]
    fn the_cpu_time_of_this_process_is_known() {
        assert!(cpu_seconds(std::process::id()).is_some());
        assert_eq!(cpu_seconds(u32::MAX), None);
    }
}
