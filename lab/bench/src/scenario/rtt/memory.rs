//! Round trips between two participants on one thread, through memory.
//!
//! Without a kernel, a link or other processes, the run measures isolane's own work, on any core the scheduler gives.
//! It is for machines that allow no other run.

use std::thread;
use std::time::{Duration, Instant};

use isolane::{Network, Participant};

use super::EndConfig;
use super::ends::{LEAD_NS, Ping, Pong};
use super::outcome::{Outcome, Parts, outcome};
use super::run::Config;
use crate::clock::now_ns;
use crate::limits::{LOST_AFTER_MS, MATCH_SECONDS};
use crate::namespace::Host;
use crate::process::{Notes, exact_timers};
use crate::report::Publisher;
use crate::scenario::end::{EndError, in_order, is_matched};
use crate::scenario::{ConfigError, ScenarioError, Site};

/// Maximum sleep while both participants are idle.
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Time limit for discovery, and for late pings.
const PATIENCE: Duration = Duration::from_secs(MATCH_SECONDS);

/// Measures on the calling thread, with pings published by a job.
pub fn run_in_memory(config: &Config) -> Result<Outcome, ScenarioError> {
    let run = MemoryRun::new(config)?;
    run.measure();
    run.finish()
}

/// Both ends of a run on one thread.
pub struct MemoryRun {
    config: Config,
    end: EndConfig,
    participants: [Participant; 2],
    ping: Ping,
    pong: Pong,
    notes: Notes,
}

impl MemoryRun {
    /// Reserves all memory and runs both ends until they match.
    pub fn new(config: &Config) -> Result<MemoryRun, ScenarioError> {
        config.check_without_hosts()?;
        // The site is unused here.
        let end = config.ping_end(Site::loopback());
        if end.publisher == Publisher::Thread {
            return Err(ConfigError::ThreadInMemory.into());
        }
        let mut notes = Notes::default();
        notes.collect(exact_timers());
        let network = Network::new(config.seed);
        let participant = |host: Host, name: &str| {
            let builder = Participant::builder(0)
                .memory(&network, host.address().octets())
                .name(name);
            in_order(builder, end.order)
                .sample_memory(1 << 30)
                .build()
                .map_err(EndError::from)
        };
        let (a, b) = (participant(Host::A, "ping")?, participant(Host::B, "pong")?);
        let run = MemoryRun {
            config: config.clone(),
            ping: Ping::new(&a, &end)?,
            pong: Pong::new(&b, &end)?,
            end,
            participants: [a, b],
            notes,
        };
        let matched = || run.participants.iter().all(|one| is_matched(one, 1));
        if run.run_both(PATIENCE, matched) {
            Ok(run)
        } else {
            Err(EndError::NotMatched.into())
        }
    }

    /// Makes all round trips. Allocates nothing.
    pub fn measure(&self) {
        self.ping.begin(now_ns() + LEAD_NS);
        let schedule = Duration::from_nanos(LEAD_NS + self.end.duration_ns());
        self.run_both(schedule + PATIENCE, || self.ping.is_over());
        self.run_both(Duration::from_millis(LOST_AFTER_MS), || false);
    }

    /// Merges both ends' timestamps and ledgers.
    pub fn finish(self) -> Result<Outcome, ScenarioError> {
        let [a, b] = &self.participants;
        let parts = Parts {
            notes: self.notes.0,
            ..Parts::of_ends(self.ping.finish(a)?, self.pong.finish(b))
        };
        outcome(&self.config, parts)
    }

    /// Runs both participants in turn until `done`. Returns false if that takes longer than `patience`.
    fn run_both(&self, patience: Duration, done: impl Fn() -> bool) -> bool {
        let end = Instant::now() + patience;
        while Instant::now() < end {
            if done() {
                return true;
            }
            let activations: usize = self.participants.iter().map(Participant::poll).sum();
            if activations == 0 {
                self.sleep();
            }
        }
        done()
    }

    /// Sleeps until a participant has work.
    fn sleep(&self) {
        let next = self.participants.iter().filter_map(Participant::next_time);
        let until_next = next.min().map_or(MAX_SLEEP, |next| {
            Duration::from_nanos(next.as_nanos().saturating_sub(now_ns()))
        });
        thread::sleep(until_next.min(MAX_SLEEP));
    }
}
