//! One run of a cell: two programs on two hosts of their own, bounded in time.
//!
//! The subscriber starts first. When the publisher is done, the subscriber gets a moment for what
//! is still under way; whoever is left then, or when the time is over, is made to end.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::Host;

use super::cell::{Cell, Role};
use super::network::Network;
use super::program::{LOOK, Program};
use super::side::{self, Programs, SECONDS};
use super::verdict::{Observed, judge};
use crate::Result;

/// The whole run: what a side may take, and starting and stopping.
const LONGEST_RUN: Duration = Duration::from_secs(SECONDS as u64 + 3);
/// What the subscriber gets after the publisher's end.
const LAST_SAMPLES: Duration = Duration::from_secs(1);

/// Runs a cell and judges it: what arrived, or what went wrong. What its programs print is kept in
/// `folder`, and shown when the cell fails.
pub(super) fn run(
    cell: Cell,
    programs: Programs<'_>,
    folder: &Path,
) -> Result<std::result::Result<String, String>> {
    fs::create_dir_all(folder)?;
    let network = Network::new(cell.loss)?;
    let start = |role: Role, host| {
        let command = network.command(host, side::command(cell, role, programs));
        Program::start(command, &folder.join(role.name()))
    };
    let deadline = Instant::now() + LONGEST_RUN;
    let mut subscriber = start(Role::Subscriber, Host::B)?;
    let mut publisher = start(Role::Publisher, Host::A)?;
    wait(&mut publisher, &mut subscriber, deadline)?;

    let observed = Observed {
        publisher: publisher.stop()?,
        subscriber: subscriber.stop()?,
        printed: &subscriber.printed()?,
    };
    network.finish()?;
    let verdict = judge(cell.reliability, cell.samples(), &observed);
    if verdict.is_err() {
        publisher.show();
        subscriber.show();
    }
    Ok(verdict)
}

/// Returns when both have ended or their time is over.
fn wait(publisher: &mut Program, subscriber: &mut Program, mut deadline: Instant) -> Result<()> {
    let mut publisher_runs = true;
    while Instant::now() < deadline {
        if publisher_runs && publisher.ending()?.is_some() {
            publisher_runs = false;
            deadline = deadline.min(Instant::now() + LAST_SAMPLES);
        }
        if !publisher_runs && subscriber.ending()?.is_some() {
            break;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
