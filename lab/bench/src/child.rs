//! Child processes of a test: start, readiness, stop and result.
//!
//! A child is the same program, started with a hidden argument and its configuration as JSON ([`Program`], [`main`]).
//! It prints two lines to standard output and nothing else: that it is ready, and, after its standard input ends, its
//! result. It is killed when the parent dies. A child that must wait until others are ready waits for a message on its
//! standard input ([`Running::go`], [`heard`]).

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::timespec;
use crate::limits::{CHILD_FINISH_SECONDS, CHILD_READY_SECONDS, MAX_CHILD_LINE_BYTES};
use crate::namespace::{Place, TestHosts};
use crate::process::Note;
use crate::scenario::{in_process_load, rtt, throughput};
use crate::stop::Stop;
use crate::traffic_source::Source;
use crate::{background_load, cable, multicast_load};

/// Role of a child process, with its configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Emulated cable.
    Cable(cable::Config),
    /// Traffic source of one direction.
    TrafficSource(Source),
    /// Sink of the background load of one direction.
    BackgroundSink(background_load::SinkConfig),
    /// Receivers of the multicast load on one host.
    MulticastReceivers(multicast_load::ReceiversConfig),
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
        let role = serde_json::to_string(role).map_err(ChildError::Format)?;
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
    /// The child printed nothing within this number of seconds.
    #[error("a child process was silent for {0} s")]
    Silent(u64),
    /// The child reported an error.
    #[error("{0}")]
    Failed(String),
    /// Parent and child disagree about the format: they are different programs.
    #[error("a child process and its parent do not understand each other: {0}")]
    Format(#[source] serde_json::Error),
}

/// Line of a child's output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line<R> {
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
        Role::BackgroundSink(sink) => report(sink.run(&stop, say_ready)),
        Role::MulticastReceivers(receivers) => report(receivers.run(&stop, say_ready)),
        Role::RttPing(config) => report(rtt::run_ping(&config, &stop, say_ready)),
        Role::RttPong(config) => report(rtt::run_pong(&config, &stop, say_ready)),
        Role::Joining(config) => report(in_process_load::run_joining(&config, &stop, say_ready)),
        Role::ThroughputWriter(config) => report(throughput::run_writer(&config, &stop, say_ready)),
        Role::ThroughputReader(config) => report(throughput::run_reader(&config, &stop, say_ready)),
    }
}

/// Reports readiness to the parent, with the notes of the start.
pub fn say_ready(notes: &[Note]) {
    print_line(&Line::<()>::Ready {
        notes: notes.to_vec(),
    });
}

/// Reports a child's result to its parent.
pub fn report<R: Serialize>(result: Result<R, impl ToString>) -> ExitCode {
    match result {
        Ok(result) => {
            print_line(&Line::Result(result));
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_line(&Line::<()>::Error(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn print_line(line: &impl Serialize) {
    let print = || -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut output = io::stdout().lock();
        output.write_all(&text)?;
        output.flush()
    };
    if let Err(error) = print() {
        // The parent is gone, and this process ends with it.
        eprintln!("cannot hand over: {error}");
    }
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

/// Line that a parent writes to start a waiting child.
const GO: &[u8] = b"go\n";

/// Handle of a child process. Dropping it kills the child and waits for it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: ChildStdout,
    /// Bytes read and not yet returned as a line.
    pending: Vec<u8>,
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

    fn of_command(mut command: Command) -> Result<Running, ChildError> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(ChildError::Start)?;
        let Some(output) = child.stdout.take() else {
            return Err(ChildError::Start(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Running {
            child,
            output,
            pending: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Waits until the child is ready. Call once.
    pub fn wait_until_ready(&mut self) -> Result<(), ChildError> {
        match self.line::<serde_json::Value>(CHILD_READY_SECONDS)? {
            Line::Ready { notes } => self.notes = notes,
            Line::Error(reason) => return Err(ChildError::Failed(reason)),
            Line::Result(_) => return Err(self.ended()),
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
        match self.line(seconds)? {
            Line::Result(result) => {
                // The process must be gone before the caller inspects what it left behind.
                let _ = self.child.wait();
                Ok(result)
            }
            Line::Error(reason) => Err(ChildError::Failed(reason)),
            Line::Ready { .. } => Err(self.ended()),
        }
    }

    /// Next line the child prints within `seconds`.
    fn line<R: DeserializeOwned>(&mut self, seconds: u64) -> Result<Line<R>, ChildError> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut searched = 0;
        loop {
            if let Some(end) = self.pending[searched..]
                .iter()
                .position(|&byte| byte == b'\n')
            {
                let line: Vec<u8> = self.pending.drain(..=searched + end).collect();
                return serde_json::from_slice(&line).map_err(ChildError::Format);
            }
            searched = self.pending.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || searched > MAX_CHILD_LINE_BYTES {
                return Err(ChildError::Silent(seconds));
            }
            let mut source = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut source, Some(&timespec(left.as_nanos() as u64))) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(ChildError::Read(error.into())),
            }
            let mut chunk = [0; 8192];
            match self.output.read(&mut chunk).map_err(ChildError::Read)? {
                0 => return Err(self.ended()),
                count => self.pending.extend_from_slice(&chunk[..count]),
            }
        }
    }

    /// Error for a child that closed its output.
    fn ended(&mut self) -> ChildError {
        let _ = self.child.kill();
        ChildError::Ended(match self.child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls are harmless on a child that was already waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
