//! Parts of a test that are processes of their own: how they are started, say that they are ready,
//! are stopped, and hand over their result.
//!
//! A child is the same program again, with one hidden argument and its whole configuration as JSON
//! behind it ([`Program`], [`main`]). It prints two lines to standard output: that it is ready, and,
//! once its standard input ends, its result. It writes nothing else there. When the parent dies, it
//! is killed. A child that must not begin before others are ready waits for a word on its standard
//! input ([`Running::go`], [`heard`]).

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clock::timespec;
use crate::limits::{CHILD_FINISH_SECONDS, CHILD_READY_SECONDS, MAX_CHILD_LINE_BYTES};
use crate::namespace::{Place, Testbed};
use crate::process::Note;
use crate::scenario::inside::joining;
use crate::scenario::{rtt, throughput};
use crate::stop::Stop;
use crate::{cable, flood, storm};

/// What a child process is told to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The emulated cable.
    Cable(cable::Config),
    /// One direction's source of disturbance.
    FloodSender(flood::SenderConfig),
    /// One direction's end of it.
    FloodSink(flood::SinkConfig),
    /// One direction's source of heavy receive work.
    StormSender(storm::SenderConfig),
    /// The sockets of one host that it is delivered to.
    StormReceivers(storm::ReceiversConfig),
    /// The end where round trips start.
    RttPing(rtt::EndConfig),
    /// The end where they turn.
    RttPong(rtt::EndConfig),
    /// The participant whose endpoints appear and leave.
    Joining(joining::Config),
    /// The end that writes as fast as it may.
    ThroughputWriter(throughput::EndConfig),
    /// The end that counts.
    ThroughputReader(throughput::EndConfig),
}

/// How to start this crate's children: a program, and the arguments before the role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<String>,
}

impl Program {
    /// The program at `path`, which calls [`main`] with what follows `arguments`.
    pub fn new(path: impl Into<PathBuf>, arguments: &[&str]) -> Program {
        Program {
            path: path.into(),
            arguments: arguments.iter().map(|&argument| argument.into()).collect(),
        }
    }

    /// The program that is running.
    pub fn current(arguments: &[&str]) -> io::Result<Program> {
        Ok(Program::new(std::env::current_exe()?, arguments))
    }

    /// A command that starts the program with `role` as its last argument.
    pub fn command(&self, role: &impl Serialize) -> Result<Command, ChildError> {
        let role = serde_json::to_string(role).map_err(ChildError::Format)?;
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).arg(role);
        Ok(command)
    }
}

/// Why a child did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The program could not be started in its namespace.
    #[error("cannot start a child process: {0}")]
    Start(#[source] io::Error),
    /// Its output could not be read.
    #[error("cannot read from a child process: {0}")]
    Read(#[source] io::Error),
    /// It ended without a word.
    #[error("a child process ended without a result ({status})")]
    Ended {
        /// As the system says it.
        status: String,
    },
    /// It printed nothing for too long.
    #[error("a child process said nothing for {seconds} s")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It could not do its work and said why.
    #[error("{0}")]
    Failed(String),
    /// Parent and child are different programs.
    #[error("a child process and its parent do not understand each other: {0}")]
    Format(#[source] serde_json::Error),
}

/// A line of a child's output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line<R> {
    Ready { notes: Vec<Note> },
    Result(R),
    Error(String),
}

/// The whole of a child process: does what `role` says until told to stop. For the hidden command
/// of `isolane`; returns the exit code.
pub fn main(role: &str) -> ExitCode {
    let role: Role = match serde_json::from_str(role) {
        Ok(role) => role,
        Err(error) => return report::<()>(Err(format!("not a role: {error}"))),
    };
    // First of all, while there is one thread: signals are blocked in all that follow.
    let stop = match Stop::of_process() {
        Ok(stop) => stop,
        Err(error) => return report::<()>(Err(format!("cannot wait for signals: {error}"))),
    };
    match role {
        Role::Cable(config) => report(cable::run(&config, &stop, say_ready)),
        Role::FloodSender(config) => report(flood::run_sender(&config, &stop, say_ready)),
        Role::FloodSink(config) => report(flood::run_sink(&config, &stop, say_ready)),
        Role::StormSender(config) => report(storm::run_sender(&config, &stop, say_ready)),
        Role::StormReceivers(config) => report(storm::run_receivers(&config, &stop, say_ready)),
        Role::RttPing(config) => report(rtt::run_ping(&config, &stop, say_ready)),
        Role::RttPong(config) => report(rtt::run_pong(&config, &stop, say_ready)),
        Role::Joining(config) => report(joining::run_joining(&config, &stop, say_ready)),
        Role::ThroughputWriter(config) => report(throughput::run_writer(&config, &stop, say_ready)),
        Role::ThroughputReader(config) => report(throughput::run_reader(&config, &stop, say_ready)),
    }
}

/// Tells the parent that the child is ready, and what the machine did not allow.
pub fn say_ready(notes: &[Note]) {
    print_line(&Line::<()>::Ready {
        notes: notes.to_vec(),
    });
}

/// Hands a child's result to its parent.
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
        // The parent is gone; its end is ours.
        eprintln!("cannot hand over: {error}");
    }
}

/// What a parent says to a child that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Begin.
    Go,
    /// Finish.
    Stop,
}

/// In a child that waits for [`Running::go`]: what the parent has said, if anything. Does not wait.
pub fn heard(stop: &Stop) -> io::Result<Option<Word>> {
    // A word on standard input makes the stop readable, and taking the word unmakes it.
    if !stop.is_requested() {
        return Ok(None);
    }
    let input = rustix::stdio::stdin();
    let mut input_only = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    if poll(&mut input_only, Some(&timespec(0)))? == 0 {
        // A signal.
        return Ok(Some(Word::Stop));
    }
    let mut word = [0; GO.len()];
    Ok(Some(match rustix::io::read(input, &mut word)? {
        0 => Word::Stop,
        _ => Word::Go,
    }))
}

/// What a parent says to a child that waits.
const GO: &[u8] = b"go\n";

/// A child process. Dropped, it is killed and waited for.
#[derive(Debug)]
pub struct Running {
    child: Child,
    output: ChildStdout,
    /// Read and not yet returned as a line.
    pending: Vec<u8>,
    notes: Vec<Note>,
}

impl Running {
    /// Starts `program` as `role` inside a namespace and waits until it is ready. It dies with the
    /// calling thread (see [`Testbed::command`]).
    pub fn start(
        testbed: &Testbed,
        place: impl Into<Place>,
        program: &Program,
        role: &impl Serialize,
    ) -> Result<Running, ChildError> {
        let mut running = Running::spawn(testbed, place, program, role)?;
        running.wait_until_ready()?;
        Ok(running)
    }

    /// Starts `program` as `role` inside a namespace, and does not wait: for children that are ready
    /// only when they have met each other.
    pub fn spawn(
        testbed: &Testbed,
        place: impl Into<Place>,
        program: &Program,
        role: &impl Serialize,
    ) -> Result<Running, ChildError> {
        Running::of_command(testbed.command(place, program.command(role)?))
    }

    /// As [`spawn`](Running::spawn), in the namespace of this process. It ends with its standard
    /// input when this process dies.
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

    /// Waits until the child says that it is ready. Once.
    pub fn wait_until_ready(&mut self) -> Result<(), ChildError> {
        match self.line::<serde_json::Value>(CHILD_READY_SECONDS)? {
            Line::Ready { notes } => self.notes = notes,
            Line::Error(reason) => return Err(ChildError::Failed(reason)),
            Line::Result(_) => return Err(self.ended()),
        }
        Ok(())
    }

    /// What the machine did not allow the child.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Lets a child begin that waits for it ([`heard`]).
    pub fn go(&mut self) -> Result<(), ChildError> {
        let input = self.child.stdin.as_mut();
        let said = input.map(|input| input.write_all(GO));
        match said {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Tells the child to stop, without waiting for it.
    pub fn stop(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Tells the child to stop, waits for it, and takes its result.
    pub fn finish<R: DeserializeOwned>(mut self) -> Result<R, ChildError> {
        self.stop();
        self.result(CHILD_FINISH_SECONDS)
    }

    /// Tells both to stop before waiting for either, so that neither lasts longer.
    pub(crate) fn finish_both<R: DeserializeOwned>(
        both: [Running; 2],
    ) -> Result<[R; 2], ChildError> {
        let [mut a, mut b] = both;
        a.stop();
        b.stop();
        Ok([a.finish()?, b.finish()?])
    }

    /// Takes the result of a child that ends by itself within `seconds`.
    pub fn wait<R: DeserializeOwned>(mut self, seconds: u64) -> Result<R, ChildError> {
        self.result(seconds + CHILD_FINISH_SECONDS)
    }

    fn result<R: DeserializeOwned>(&mut self, seconds: u64) -> Result<R, ChildError> {
        match self.line(seconds)? {
            Line::Result(result) => {
                // Gone for good before the caller looks at what it left behind.
                let _ = self.child.wait();
                Ok(result)
            }
            Line::Error(reason) => Err(ChildError::Failed(reason)),
            Line::Ready { .. } => Err(self.ended()),
        }
    }

    /// The next line the child prints within `seconds`.
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
                return Err(ChildError::Silent { seconds });
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

    /// What to say of a child that closed its output.
    fn ended(&mut self) -> ChildError {
        let _ = self.child.kill();
        ChildError::Ended {
            status: match self.child.wait() {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are harmless on a child that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
