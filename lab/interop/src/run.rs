//! One cell, run: who starts, is killed, is told to stop, and when.
//!
//! The first side starts, the other one when the first is there. Once the subscriber has had plenty
//! of samples, a peer that shall be restarted is killed and started again, and plenty are waited for
//! once more. Then the publisher is told to stop: it ends the instance and leaves, and what the
//! subscriber printed is judged (`verdict.rs`). A cell waits for events, not for times, and is over
//! when its verdict is certain; what does not happen in time is the verdict's business.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::cell::{Axis, Cell, Datapath, End, First, Life, Reliability, Role};
use super::network::Network;
use super::printed::{changes_written, events, has_begun, number};
use super::program::{Ending, LOOK, Program};
use super::recording::Recording;
use super::side::{self, Programs, RESTARTED_FROM, Start, status_when_stopped};
use super::verdict::{Observed, Received, judge, judge_lane, unbroken};

/// A cell's time: ten seconds, without making its network.
const LONGEST_RUN: Duration = Duration::from_secs(10);
/// When a publisher is told to stop at the latest, so that time is left for the end.
const LONGEST_FLOW: Duration = Duration::from_millis(7500);
/// When a peer is killed at the latest.
const LONGEST_FIRST_LIFE: Duration = Duration::from_millis(4000);
/// How long the first side's program may take until it says what it does.
const LONGEST_START: Duration = Duration::from_secs(3);
/// How long the first side is alone: its announcements are over, and, if it is a TRANSIENT_LOCAL
/// publisher, a hundred samples are written.
const ALONE: Duration = Duration::from_millis(500);
/// Samples that are plenty, best effort with losses included.
const PLENTY: usize = 100;
/// How long they go on after that: a late joiner's history may be plenty by itself.
const LIVE: Duration = Duration::from_millis(100);
/// What a publisher that was told to stop stays at least, so that what is one too many is seen.
const SHORTEST_STAY: Duration = Duration::from_millis(200);
/// How long an end is waited for that may be lost: a killed publisher's lease is over by then.
const LONGEST_STAY: Duration = Duration::from_secs(2);
/// What the subscriber gets after the publisher's end, until all is there.
const LAST_SAMPLES: Duration = Duration::from_secs(1);
/// What it gets when all is there: what is one too many is seen.
const AFTERWARDS: Duration = Duration::from_millis(200);

/// How a cell ended.
pub(super) struct Ended {
    /// What arrived, or what went wrong.
    pub(super) verdict: std::result::Result<String, String>,
    /// How the programs were called, and the end of what they printed.
    pub(super) account: String,
}

/// Runs a cell and judges it. What its programs print is kept in `folder`; if it fails, what crossed its
/// network in the file `capture`.
pub(super) fn run(
    cell: Cell,
    programs: Programs<'_>,
    folder: &Path,
    capture: Option<&Path>,
) -> Result<Ended> {
    fs::create_dir_all(folder)?;
    let network = Network::new(cell.loss)?;
    let recording = capture.map(|_| network.record()).transpose()?;
    let mut run = Run::start(cell, programs, folder, &network)?;
    let verdict = run.play();
    let mut account = run.publisher.account() + &run.subscriber.account();
    drop(run);
    let recorded = recording.map(Recording::end).transpose()?;
    let finished = network.finish();
    if let (Some(path), Some(recorded)) = (capture, recorded)
        && (finished.is_err() || !matches!(verdict, Ok(Ok(_))))
    {
        recorded.write(path)?;
        account += &format!("  = {recorded} in {}\n", path.display());
    }
    finished?;
    Ok(Ended {
        verdict: verdict?,
        account,
    })
}

struct Run<'a> {
    cell: Cell,
    programs: Programs<'a>,
    folder: &'a Path,
    network: &'a Network,
    begin: Instant,
    publisher: Program,
    subscriber: Program,
    /// What former lives of the subscriber printed.
    former: Vec<String>,
}

impl<'a> Run<'a> {
    /// Starts both sides, in their order.
    fn start(
        cell: Cell,
        programs: Programs<'a>,
        folder: &'a Path,
        network: &'a Network,
    ) -> Result<Self> {
        let begin = Instant::now();
        let start = |role| start(cell, role, Start::First, programs, folder, network);
        let first = start(cell.first_role())?;
        // A subscriber does not say that it is there.
        while cell.first == First::Publisher
            && !has_begun(&first.said()?)
            && begin.elapsed() < LONGEST_START
        {
            thread::sleep(LOOK);
        }
        thread::sleep(ALONE);
        let second = start(cell.first_role().other())?;
        let (publisher, subscriber) = match cell.first {
            First::Publisher => (first, second),
            First::Subscriber => (second, first),
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
        let left = Instant::now();
        while self.verdict(bytes_before_leaving)?.is_err() && left.elapsed() < LAST_SAMPLES {
            thread::sleep(LOOK);
        }
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
                if ending != Ending::Exited(status_when_stopped(self.cell, role)) {
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

    /// Waits until the subscriber has plenty of samples from this running number on, or so much of the
    /// cell's time is over, or there is nothing to wait for. A reliable one: plenty without a hole,
    /// so that it is matched on both sides.
    fn wait_for_plenty(&mut self, from: u32, until: Duration) -> Result<()> {
        while self.begin.elapsed() < until
            && self.publisher.ending()?.is_none()
            && self.subscriber.ending()?.is_none()
        {
            let Ok(events) = events(&self.subscriber.printed()?) else {
                return Ok(()); // The verdict will say it.
            };
            let numbers = events.into_iter().filter_map(number);
            let numbers = numbers.filter(|number| *number >= from).collect::<Vec<_>>();
            let counted = match self.cell.reliability {
                Reliability::BestEffort => &numbers[..],
                Reliability::Reliable => unbroken(&numbers),
            };
            if counted.len() >= PLENTY {
                thread::sleep(LIVE);
                return Ok(());
            }
            thread::sleep(LOOK);
        }
        Ok(())
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

    /// Waits until the publisher, told to stop, leaves; how much the subscriber had printed by then. A
    /// peer stays until it is told to leave: when the verdict is certain.
    fn wait_for_leaving(&mut self) -> Result<usize> {
        let told = Instant::now();
        let mut printed_bytes = 0;
        let mut may_leave = self.cell.peer_role == Role::Subscriber;
        while self.begin.elapsed() < LONGEST_RUN {
            let printed = self.subscriber.printed()?.len();
            if self.leaves()? {
                break;
            }
            printed_bytes = printed;
            if !may_leave && self.is_certain(told.elapsed(), printed)? {
                self.publisher.interrupt()?;
                may_leave = true;
            }
            thread::sleep(LOOK);
        }
        Ok(printed_bytes)
    }

    /// Whether the publisher is about to leave, or has left: what isolane says last is its ledger.
    fn leaves(&mut self) -> Result<bool> {
        let said = self.publisher.said()?;
        let last_words = match self.cell.peer_role {
            Role::Publisher => said.lines().any(|line| line == "leaving"),
            Role::Subscriber => changes_written(&said).is_some(),
        };
        Ok(last_words || self.publisher.ending()?.is_some())
    }

    /// Whether the publisher, told to stop so long ago, has stayed for long enough.
    fn is_certain(&self, stayed: Duration, printed_bytes: usize) -> Result<bool> {
        if stayed < SHORTEST_STAY {
            return Ok(false);
        }
        let received = self.verdict(printed_bytes)?;
        Ok(received.is_ok_and(|received| {
            received.end.is_some() || self.cell.end == End::None || stayed > LONGEST_STAY
        }))
    }

    /// The verdict on what there is so far.
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

/// Starts one side, on its host.
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
    let command = network.command(host, side::command(cell, role, start, programs));
    Program::start(command, &folder.join(stem))
}
