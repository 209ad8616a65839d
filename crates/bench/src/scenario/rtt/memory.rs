//! Round trips between two participants on one thread, through memory.
//!
//! No kernel, no link, no other process: what is left is isolane's own work, on whatever core the
//! scheduler gives. For machines that allow nothing else.

use std::thread;
use std::time::{Duration, Instant};

use isolane::{Network, Participant};

use super::ping::{LEAD_NS, Ping};
use super::pong::Pong;
use super::run::{Config, Outcome, outcome};
use crate::clock::now_ns;
use crate::limits::{LOST_AFTER_MS, MATCH_SECONDS};
use crate::namespace::Host;
use crate::report::Publisher;
use crate::scenario::end::{EndError, executor_order, is_matched};
use crate::scenario::{ConfigError, ScenarioError, Site};

/// The longest sleep while neither participant has anything to do.
const MAX_SLEEP: Duration = Duration::from_millis(1);

/// Measures on the calling thread. Pings are published by a job: there is no other thread.
pub fn run_in_memory(config: &Config) -> Result<Outcome, ScenarioError> {
    // Nothing but memory is used of it; the site only names an end.
    let end = config.end(Site::Loopback);
    end.check()?;
    if end.publisher == Publisher::Thread {
        return Err(ConfigError::ThreadInMemory.into());
    }
    let network = Network::new(config.seed);
    let participant = |host: Host, name: &str| {
        Participant::builder(0)
            .memory(&network, host.address().octets())
            .name(name)
            .order(executor_order(end.order))
            .build()
            .map_err(EndError::from)
    };
    let (a, b) = (participant(Host::A, "ping")?, participant(Host::B, "pong")?);
    let (ping, pong) = (Ping::new(&a, &end)?, Pong::new(&b, &end)?);

    let both = [&a, &b];
    let patience = Duration::from_secs(MATCH_SECONDS);
    if !run_both(both, patience, || both.into_iter().all(is_matched)) {
        return Err(EndError::NotMatched.into());
    }
    ping.begin(now_ns() + LEAD_NS);
    let schedule = Duration::from_nanos(LEAD_NS + end.duration_ns());
    run_both(both, schedule + patience, || ping.is_over());
    run_both(both, Duration::from_millis(LOST_AFTER_MS), || false);
    let reports = (ping.finish(&a)?, pong.finish(&b));
    outcome(config, reports, None, None, Vec::new())
}

/// Runs both in turn until `done`; false: it took longer than `patience`.
fn run_both(both: [&Participant; 2], patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if done() {
            return true;
        }
        let activations: usize = both.into_iter().map(Participant::poll).sum();
        if activations == 0 {
            let next = both.into_iter().filter_map(Participant::next_time).min();
            let now_ns = now_ns();
            let until_next = next.map_or(MAX_SLEEP, |next| {
                Duration::from_nanos(next.as_nanos().saturating_sub(now_ns))
            });
            thread::sleep(until_next.min(MAX_SLEEP));
        }
    }
    done()
}
