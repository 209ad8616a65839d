//! One cell's run: the order and times of starts, kills and interrupts.
//!
//! The first side starts, and the second once the first is up. Once the subscriber has [`PLENTY`] of samples, a peer
//! that the cell restarts is killed and started again, and the run waits for the same number once more. Then the
//! publisher is interrupted: it ends the instance and leaves, and the subscriber's output is judged (`verdict.rs`). A
//! cell waits for events, not for times, and ends when its verdict is certain. A timeout is no error here: the verdict
//! decides.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::combination::{Axis, Cell, Datapath, End, Life, Reliability, Role, StartOrder};
use super::network::Network;
use super::printed::{changes_written, events, has_begun};
use super::program::{Ending, Program, wait_until};
use super::report::Judged;
use super::side::{self, Programs, RESTARTED_FROM, Start, status_when_stopped};
use super::verdict::{Observed, Received, judge, judge_lane, unbroken};

/// Time limit of a cell, without the creation of its network.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// Latest time of the publisher's interrupt, which leaves time for the end of the instance.
const LONGEST_FLOW: Duration = Duration::from_millis(7500);
/// Latest time of a peer's kill.
const LONGEST_FIRST_LIFE: Duration = Duration::from_millis(4000);
/// Timeout until the first side's program reports its state.
const LONGEST_START: Duration = Duration::from_secs(3);
/// Time for which the first side runs alone: its initial announcements end, and a TRANSIENT_LOCAL publisher writes a
/// hundred samples.
const ALONE: Duration = Duration::from_millis(500);
/// Number of samples after which the run continues. Best effort with loss reaches it as well.
const PLENTY: usize = 100;
/// Time for which samples continue after [`PLENTY`]: a late joiner's history alone may reach [`PLENTY`].
const LIVE: Duration = Duration::from_millis(100);
/// Shortest time between the publisher's interrupt and its departure, in which a superfluous line would be seen.
const SHORTEST_STAY: Duration = Duration::from_millis(200);
/// Timeout for an end of the instance that may be lost: by then, a killed publisher's lease has expired.
const LONGEST_STAY: Duration = Duration::from_secs(2);
/// Time for the subscriber's last samples after the publisher's end.
const LAST_SAMPLES: Duration = Duration::from_secs(1);
/// Further time once all output has arrived, in which a superfluous line would be seen.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// Runs a cell and judges it. The programs' output stays in `folder`; if it fails, the network's capture goes to the
/// files whose path begins with `capture`.
pub(super) fn run(
    cell: Cell,
    programs: Programs<'_>,
    folder: &Path,
    capture: Option<&Path>,
) -> Result<Judged> {
    let mut network = Network::new(cell.loss)?;
    network.record(capture)?;
    let mut run = Run::start(cell, programs, folder, &network)?;
    let verdict = run.play();
    let mut account = run.publisher.account() + &run.subscriber.account();
    drop(run);
    account += &network.finish(!matches!(verdict, Ok(Ok(_))))?;
    Ok(Judged::new(verdict?, account))
}

struct Run<'a> {
    cell: Cell,
    programs: Programs<'a>,
    folder: &'a Path,
    network: &'a Network,
    begin: Instant,
    publisher: Program,
    subscriber: Program,
    /// Output of earlier lives of the subscriber.
    former: Vec<String>,
}

impl<'a> Run<'a> {
    /// Starts both sides in their order.
    fn start(
        cell: Cell,
        programs: Programs<'a>,
        folder: &'a Path,
        network: &'a Network,
    ) -> Result<Self> {
        let begin = Instant::now();
        let start = |role| start(cell, role, Start::First, programs, folder, network);
        let first = start(cell.first_role())?;
        // A subscriber does not report its start.
        if cell.start_order == StartOrder::Publisher {
            wait_until(LONGEST_START, || Ok(has_begun(&first.said()?)))?;
        }
        thread::sleep(ALONE);
        let second = start(cell.first_role().other())?;
        let (publisher, subscriber) = match cell.start_order {
            StartOrder::Publisher => (first, second),
            StartOrder::Subscriber => (second, first),
        };
        Ok(Self {
            cell,
            programs,
            folder,
            network,
            begin,
            publisher,
            subscriber,
            former: Vec::new(),
        })
    }

    fn play(&mut self) -> Result<std::result::Result<String, String>> {
        if self.cell.life == Life::Restarted {
            self.wait_for_plenty(0, LONGEST_FIRST_LIFE)?;
            self.restart_the_peer()?;
        }
        let from = match self.cell.restarts(Role::Publisher) {
            true => RESTARTED_FROM,
            false => 0,
        };
        self.wait_for_plenty(from, LONGEST_FLOW)?;
        self.publisher.interrupt()?;
        let bytes_before_leaving = self.wait_for_leaving()?;
        wait_until(LAST_SAMPLES, || {
            Ok(self.verdict(bytes_before_leaving)?.is_ok())
        })?;
        thread::sleep(AFTERWARDS);
        let endings = [
            (Role::Publisher, self.publisher.stop()?),
            (Role::Subscriber, self.subscriber.stop()?),
        ];
        let verdict = self.verdict(bytes_before_leaving)?;
        let said = match self.cell.peer_role {
            Role::Publisher => self.subscriber.said()?,
            Role::Subscriber => self.publisher.said()?,
        };
        Ok(verdict.and_then(|received| {
            for (role, ending) in endings {
                if ending != Ending::Exited(status_when_stopped(self.cell.peer_role, role)) {
                    return Err(format!("{received}, but the {} {ending}", role.word()));
                }
            }
            match self.cell.datapath {
                Datapath::Udp => Ok(received.to_string()),
                Datapath::Xdp => {
                    judge_lane(self.cell, &said).map(|by_lane| format!("{received}; {by_lane}"))
                }
            }
        }))
    }

    /// Waits until the subscriber has [`PLENTY`] of samples from this running number on, the deadline passes, or a
    /// program ends. Under RELIABLE, the samples must have no gap, which shows that both sides matched.
    fn wait_for_plenty(&mut self, from: u32, until: Duration) -> Result<()> {
        let has_plenty = wait_until(until.saturating_sub(self.begin.elapsed()), || {
            Ok(self.has_plenty(from)? || self.has_ended()?)
        })?;
        if has_plenty {
            thread::sleep(LIVE);
        }
        Ok(())
    }

    /// Returns true when a program has ended, or the subscriber has printed a wrong line, which the verdict reports.
    fn has_ended(&mut self) -> Result<bool> {
        let has_ended = self.publisher.ending()?.is_some() || self.subscriber.ending()?.is_some();
        Ok(has_ended || events(&self.subscriber.printed()?).is_err())
    }

    fn has_plenty(&self, from: u32) -> Result<bool> {
        // `has_ended` reports an error.
        let mut numbers = self.subscriber.sample_numbers().unwrap_or_default();
        numbers.retain(|number| *number >= from);
        let counted = match self.cell.reliability {
            Reliability::BestEffort => &numbers[..],
            Reliability::Reliable => unbroken(&numbers),
        };
        Ok(counted.len() >= PLENTY)
    }

    fn restart_the_peer(&mut self) -> Result<()> {
        let role = self.cell.peer_role;
        let peer = match role {
            Role::Publisher => &mut self.publisher,
            Role::Subscriber => &mut self.subscriber,
        };
        peer.kill()?;
        if role == Role::Subscriber {
            self.former.push(peer.printed()?);
        }
        *peer = start(
            self.cell,
            role,
            Start::Again,
            self.programs,
            self.folder,
            self.network,
        )?;
        Ok(())
    }

    /// Waits until the interrupted publisher leaves; returns the length of the subscriber's output by then. A peer
    /// stays until it is interrupted again, once the verdict is certain.
    fn wait_for_leaving(&mut self) -> Result<usize> {
        let interrupted = Instant::now();
        let mut printed_bytes = 0;
        let mut may_leave = self.cell.peer_role == Role::Subscriber;
        wait_until(LONGEST_RUN.saturating_sub(self.begin.elapsed()), || {
            let printed = self.subscriber.printed()?.len();
            if self.leaves()? {
                return Ok(true);
            }
            printed_bytes = printed;
            if !may_leave && self.is_certain(interrupted.elapsed(), printed)? {
                self.publisher.interrupt()?;
                may_leave = true;
            }
            Ok(false)
        })?;
        Ok(printed_bytes)
    }

    /// Returns true when the publisher is leaving or has left: isolane prints its final counters last.
    fn leaves(&mut self) -> Result<bool> {
        let said = self.publisher.said()?;
        let last_words = match self.cell.peer_role {
            Role::Publisher => said.lines().any(|line| line == "leaving"),
            Role::Subscriber => changes_written(&said).is_some(),
        };
        Ok(last_words || self.publisher.ending()?.is_some())
    }

    /// Returns true when the interrupted publisher has stayed long enough for a certain verdict.
    fn is_certain(&self, stayed: Duration, printed_bytes: usize) -> Result<bool> {
        if stayed < SHORTEST_STAY {
            return Ok(false);
        }
        let received = self.verdict(printed_bytes)?;
        Ok(received.is_ok_and(|received| {
            received.end.is_some() || self.cell.end == End::None || stayed > LONGEST_STAY
        }))
    }

    /// Verdict on the output so far.
    fn verdict(
        &self,
        bytes_before_leaving: usize,
    ) -> Result<std::result::Result<Received, String>> {
        let mut printed = self.former.clone();
        printed.push(self.subscriber.printed()?);
        let observed = Observed {
            printed: &printed,
            changes_written: changes_written(&self.publisher.said()?),
            bytes_before_leaving,
        };
        Ok(judge(self.cell, &observed))
    }
}

/// Starts one side on its host.
fn start(
    cell: Cell,
    role: Role,
    start: Start,
    programs: Programs<'_>,
    folder: &Path,
    network: &Network,
) -> Result<Program> {
    let host = match role {
        Role::Publisher => Host::A,
        Role::Subscriber => Host::B,
    };
    let stem = match start {
        Start::First => role.word().to_owned(),
        Start::Again => format!("{}-again", role.word()),
    };
    let command = side::command(cell, role, start, programs);
    network.start(host, command, &folder.join(stem))
}
