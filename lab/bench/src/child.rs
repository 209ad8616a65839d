//! Child processes of a test: start, readiness, stop and result.
//!
//! A child is the same program, started with a hidden argument and its configuration as JSON ([`Program`], [`main`]).
//! A child writes two messages to standard output: it is ready, and its result after its standard input has ended.
//! Messages are CBOR (RFC 8949), written and read as streams, so a million timestamps need no second buffer. A child is
//! killed when its parent dies. A child that must wait until others are ready waits for a message on its standard input
//! ([`Running::go`], [`heard`]).

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::cable;
use crate::clock::timespec;
use crate::limits::{CHILD_FINISH_SECONDS, CHILD_READY_SECONDS, MAX_CHILD_MESSAGE_BYTES};
use crate::namespace::{Place, TestHosts};
use crate::process::Note;
use crate::scenario::{in_process_load, rtt, throughput};
use crate::stop::Stop;
use crate::traffic_load::Receivers;
use crate::traffic_source::Source;

/// Role of a child process, with its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Emulated cable.
    Cable(cable::Config),
    /// Traffic source of one direction.
    TrafficSource(Source),
    /// Receivers of a load on one host.
    TrafficReceivers(Receivers),
    /// End that starts round trips.
    RttPing(rtt::EndConfig),
    /// End that answers round trips.
    RttPong(rtt::EndConfig),
    /// Participant whose endpoints appear and leave.
    Joining(in_process_load::JoiningConfig),
    /// Throughput writer.
    ThroughputWriter(throughput::EndConfig),
    /// Throughput reader.
    ThroughputReader(throughput::EndConfig),
}

/// Program that runs as a child, with the arguments in front of the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// Program at `path`, which calls [`main`] with the argument that follows `arguments`.
    pub fn new(path: impl Into<PathBuf>, arguments: &[&str]) -> Program {
        Program {
            path: path.into(),
            arguments: arguments.iter().map(|&argument| argument.into()).collect(),
        }
    }

    /// Program of the current process.
    pub fn current(arguments: &[&str]) -> io::Result<Program> {
        Ok(Program::new(std::env::current_exe()?, arguments))
    }

    /// Command that starts the program with `role` as its last argument.
    pub fn command(&self, role: &impl Serialize) -> Result<Command, ChildError> {
        let role =
            serde_json::to_string(role).map_err(|error| ChildError::Format(error.to_string()))?;
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(role);
        Ok(command)
    }
}

/// Reasons why a child failed.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program could not be started in its namespace.
    #[error("cannot start a child process: {0}")]
    Start(#[source] io::Error),
    /// The child's output could not be read.
    #[error("cannot read from a child process: {0}")]
    Read(#[source] io::Error),
    /// The child ended without a result, with this exit status.
    #[error("a child process ended without a result ({0})")]
    Ended(String),
    /// The child's message was not complete within this number of seconds.
    #[error("a child process was silent for {0} s")]
    Silent(u64),
    /// The child reported an error.
    #[error("{0}")]
    Failed(String),
    /// Parent and child disagree about the format: they are different programs.
    #[error("a child process and its parent do not understand each other: {0}")]
    Format(String),
}

/// Message of a child to its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Message<R> {
    Ready { notes: Vec<Note> },
    Result(R),
    Error(String),
}

/// Entry point of a child process, for the hidden command of `isolane`: runs `role` until stopped and returns the exit
/// code.
pub fn main(role: &str) -> ExitCode {
    let role: Role = match serde_json::from_str(role) {
        Ok(role) => role,
        Err(error) => return report::<()>(Err(format!("not a role: {error}"))),
    };
    // Runs before any other thread starts, so that all later threads inherit the blocked signals.
    let stop = match Stop::of_process() {
        Ok(stop) => stop,
        Err(error) => return report::<()>(Err(format!("cannot wait for signals: {error}"))),
    };
    match role {
        Role::Cable(config) => report(cable::run(&config, &stop, say_ready)),
        Role::TrafficSource(source) => report(source.run(&stop, say_ready)),
        Role::TrafficReceivers(receivers) => report(receivers.run(&stop, say_ready)),
        Role::RttPing(config) => report(rtt::run_ping(&config, &stop, say_ready)),
        Role::RttPong(config) => report(rtt::run_pong(&config, &stop, say_ready)),
        Role::Joining(config) => report(in_process_load::run_joining(&config, &stop, say_ready)),
        Role::ThroughputWriter(config) => report(throughput::run_writer(&config, &stop, say_ready)),
        Role::ThroughputReader(config) => report(throughput::run_reader(&config, &stop, say_ready)),
    }
}

/// Reports readiness to the parent, with the notes of the start.
pub fn say_ready(notes: &[Note]) {
    send(&Message::<()>::Ready {
        notes: notes.to_vec(),
    });
}

/// Reports a child's result to its parent.
pub fn report<R: Serialize>(result: Result<R, impl ToString>) -> ExitCode {
    match result {
        Ok(result) => {
            send(&Message::Result(result));
            ExitCode::SUCCESS
        }
        Err(error) => {
            send(&Message::<()>::Error(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn send(message: &impl Serialize) {
    if let Err(error) = write(message, io::stdout().lock()) {
        // The parent is gone, and this process ends with it.
        eprintln!("cannot hand over: {error}");
    }
}

fn write(message: &impl Serialize, output: impl Write) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    ciborium::into_writer(message, &mut output).map_err(io::Error::other)?;
    output.flush()
}

/// Message of a parent to a child that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Begin.
    Go,
    /// Finish.
    Stop,
}

/// Returns the parent's message to a child that waits for [`Running::go`]; `None` if there is none yet. Does not wait.
pub fn heard(stop: &Stop) -> io::Result<Option<Word>> {
    // A message on standard input makes the stop descriptor readable; reading the message clears it.
    if !stop.is_requested() {
        return Ok(None);
    }
    let input = rustix::stdio::stdin();
    let mut input_only = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    if poll(&mut input_only, Some(&timespec(0)))? == 0 {
        // There is no message, so a signal made the stop descriptor readable.
        return Ok(Some(Word::Stop));
    }
    let mut word = [0; GO.len()];
    Ok(Some(match rustix::io::read(input, &mut word)? {
        0 => Word::Stop,
        _ => Word::Go,
    }))
}

/// Maximum length of a program's line.
const MAX_LINE_BYTES: u64 = 4_096;

/// Interval of the checks whether a program whose output has ended has exited.
const EXIT_POLL: Duration = Duration::from_millis(5);

/// Line that a parent writes to start a waiting child.
const GO: &[u8] = b"go\n";

/// Process groups of the running children.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all children and the processes that they started, before this process ends early.
pub fn kill_all() {
    for group in lock(&GROUPS).drain(..) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Handle of a child process. Dropping it kills the child and waits for it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: BufReader<Output>,
    notes: Vec<Note>,
}

impl Running {
    /// Starts `program` as `role` inside a namespace and waits until it is ready. The child dies with the calling
    /// thread (see [`TestHosts::command`]).
    pub fn start(
        testbed: &TestHosts,
        place: impl Into<Place>,
        program: &Program,
        role: &impl Serialize,
    ) -> Result<Running, ChildError> {
        let mut running = Running::spawn(testbed, place, program, role)?;
        running.wait_until_ready()?;
        Ok(running)
    }

    /// Starts `program` as `role` inside a namespace without waiting, for children that are ready only after
    /// discovering each other.
    pub fn spawn(
        testbed: &TestHosts,
        place: impl Into<Place>,
        program: &Program,
        role: &impl Serialize,
    ) -> Result<Running, ChildError> {
        Running::of_command(testbed.command(place, program.command(role)?))
    }

    /// Starts `program` as [`spawn`](Running::spawn) does, in the namespace of this process. When this process dies,
    /// the child's standard input ends, and so does the child.
    pub fn spawn_here(program: &Program, role: &impl Serialize) -> Result<Running, ChildError> {
        Running::of_command(program.command(role)?)
    }

    /// Starts a program that writes lines of text ([`Running::line`]) instead of messages. It leads a process group, so
    /// that a wrapper script is killed together with the program that it starts.
    pub(crate) fn of_command(mut command: Command) -> Result<Running, ChildError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(ChildError::Start)?;
        lock(&GROUPS).push(Pid::from_child(&child));
        let Some(output) = child.stdout.take() else {
            return Err(ChildError::Start(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Running {
            child,
            output: BufReader::new(Output {
                pipe: output,
                deadline: Instant::now(),
            }),
            notes: Vec::new(),
        })
    }

    /// Waits until the child is ready. Call once.
    pub fn wait_until_ready(&mut self) -> Result<(), ChildError> {
        match self.receive::<()>(CHILD_READY_SECONDS)? {
            Message::Ready { notes } => self.notes = notes,
            Message::Error(reason) => return Err(ChildError::Failed(reason)),
            Message::Result(_) => return Err(self.ended()),
        }
        Ok(())
    }

    /// Steps the machine did not allow the child.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Process id of the child.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Starts a child that waits in [`heard`].
    pub fn go(&mut self) -> Result<(), ChildError> {
        let input = self.child.stdin.as_mut();
        let said = input.map(|input| input.write_all(GO));
        match said {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Asks the child to stop, without waiting.
    pub fn stop(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Stops the child, waits for it, and returns its result.
    pub fn finish<R: DeserializeOwned>(mut self) -> Result<R, ChildError> {
        self.stop();
        self.result(CHILD_FINISH_SECONDS)
    }

    /// Stops both children before waiting for either, so that neither runs longer than the other.
    pub(crate) fn finish_both<R: DeserializeOwned>(
        both: [Running; 2],
    ) -> Result<[R; 2], ChildError> {
        let [mut a, mut b] = both;
        a.stop();
        b.stop();
        Ok([a.finish()?, b.finish()?])
    }

    /// Returns the result of a child that ends by itself within `seconds`.
    pub fn wait<R: DeserializeOwned>(mut self, seconds: u64) -> Result<R, ChildError> {
        self.result(seconds + CHILD_FINISH_SECONDS)
    }

    fn result<R: DeserializeOwned>(&mut self, seconds: u64) -> Result<R, ChildError> {
        match self.receive(seconds)? {
            Message::Result(result) => {
                // The process must be gone before the caller inspects what it left behind.
                let _ = self.child.wait();
                self.forget_group();
                Ok(result)
            }
            Message::Error(reason) => Err(ChildError::Failed(reason)),
            Message::Ready { .. } => Err(self.ended()),
        }
    }

    /// Next message of the child, complete within `seconds`.
    fn receive<R: DeserializeOwned>(&mut self, seconds: u64) -> Result<Message<R>, ChildError> {
        self.output.get_mut().deadline = Instant::now() + Duration::from_secs(seconds);
        let message = self.output.by_ref().take(MAX_CHILD_MESSAGE_BYTES);
        ciborium::from_reader(message).map_err(|error| match error {
            ciborium::de::Error::Io(error) => match error.kind() {
                io::ErrorKind::TimedOut => ChildError::Silent(seconds),
                io::ErrorKind::UnexpectedEof => self.ended(),
                _ => ChildError::Read(error),
            },
            error => ChildError::Format(error.to_string()),
        })
    }

    /// Next line of a program that writes text, complete within `seconds`; `None` after the last one.
    pub(crate) fn line(&mut self, seconds: u64) -> Result<Option<String>, ChildError> {
        self.output.get_mut().deadline = Instant::now() + Duration::from_secs(seconds);
        let mut line = String::new();
        let mut output = self.output.by_ref().take(MAX_LINE_BYTES);
        match output.read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(line.trim_end().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(ChildError::Silent(seconds))
            }
            Err(error) => Err(ChildError::Read(error)),
        }
    }

    /// Waits at most `seconds` for a program whose output has ended, and checks its exit status.
    pub(crate) fn exit(mut self, seconds: u64) -> Result<(), ChildError> {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => {
                    self.forget_group();
                    return Ok(());
                }
                Ok(None) if Instant::now() < end => thread::sleep(EXIT_POLL),
                Ok(None) => return Err(ChildError::Silent(seconds)),
                _ => return Err(self.ended()),
            }
        }
    }

    /// Kills the child and the processes that it started, once.
    fn kill(&self) {
        if self.forget_group() {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }

    /// Removes the child's process group from the running ones, because another group may get its number later. Returns
    /// true the first time.
    fn forget_group(&self) -> bool {
        let group = Pid::from_child(&self.child);
        let mut groups = lock(&GROUPS);
        let at = groups.iter().position(|known| *known == group);
        at.map(|at| groups.swap_remove(at)).is_some()
    }

    /// Error for a child that closed its output.
    pub(crate) fn ended(&mut self) -> ChildError {
        self.kill();
        ChildError::Ended(match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        })
    }
}

/// Output of a child, which can be read until a deadline.
#[derive(Debug)]
struct Output {
    pipe: ChildStdout,
    deadline: Instant,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut source = [PollFd::new(&self.pipe, PollFlags::IN)];
        // Readers repeat a call that a signal interrupted.
        match poll(&mut source, Some(&timespec(left.as_nanos() as u64)))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.pipe.read(buffer),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls are harmless on a child that was already waited for.
        self.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable::{Passages, RoundPassages};
    use crate::record::{PingRecorder, nonce, stamp};

    /// Child whose messages are these bytes.
    fn child_that_writes(bytes: Vec<u8>) -> Running {
        let mut running = Running::of_command(Command::new("cat")).expect("cat");
        let mut input = running.child.stdin.take().expect("a pipe");
        thread::spawn(move || input.write_all(&bytes));
        running
    }

    #[test]
    fn a_million_rounds_are_handed_over_with_9_bytes_a_timestamp() {
        const ROUNDS: u32 = 1_000_000;
        const LOST: u32 = 77;
        let mut recorder = PingRecorder::new(ROUNDS, 5);
        for id in 0..ROUNDS {
            let due_ns = 13_700_000_000_000 + u64::from(id) * 100_000;
            recorder.sent(id, due_ns, due_ns + 2_000);
            if id != LOST {
                recorder.returned(id, nonce(5, id), due_ns + 80_000);
            }
        }
        let stamps = |delay_ns| {
            let times = (0..ROUNDS).map(|id| 13_700_000_000_000 + u64::from(id) * 100_000);
            times
                .map(|time_ns| Some(stamp(time_ns + delay_ns)))
                .collect()
        };
        let direction = Passages {
            arrived_ns: stamps(10_000),
            sent_ns: stamps(40_000),
        };
        let passages = RoundPassages {
            a_to_b: direction.clone(),
            b_to_a: direction,
        };
        let sent = (recorder, passages);
        let mut bytes = Vec::new();
        write(&Message::Result(&sent), &mut bytes).expect("a message");
        let timestamps = (3 + 4) * ROUNDS as usize;
        assert!(bytes.len() < 9 * timestamps + 200, "{}", bytes.len());
        let received: (PingRecorder, RoundPassages) =
            child_that_writes(bytes).finish().expect("a result");
        assert!(received == sent, "the timestamps differ");
    }

    #[test]
    fn a_message_that_ends_early_is_that_of_a_child_that_ended() {
        let mut bytes = Vec::new();
        write(&Message::Result(vec![1_u64; 100]), &mut bytes).expect("a message");
        bytes.pop();
        let error = child_that_writes(bytes)
            .finish::<Vec<u64>>()
            .expect_err("half a message");
        assert!(matches!(error, ChildError::Ended(_)), "{error}");
        let error = child_that_writes(vec![1]).wait_until_ready();
        assert!(matches!(error, Err(ChildError::Format(_))), "{error:?}");
    }
}
