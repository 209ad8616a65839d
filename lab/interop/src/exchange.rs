//! An exchange: a subscriber on host B and a publisher on host A.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isolane_bench::namespace::Host;
use isolane_support::Result;

use super::network::Network;
use super::printed::Carried;
use super::program::{Ending, Program, wait_until};

/// Timeout of an exchange.
const LONGEST_RUN: Duration = Duration::from_secs(10);

/// Running programs of an exchange.
pub(super) struct Exchange {
    pub(super) publisher: Program,
    pub(super) subscriber: Program,
}

impl Exchange {
    /// Starts the subscriber, then the publisher. Their output files are in `folder` and begin with `name`.
    pub(super) fn start(
        network: &Network,
        folder: &Path,
        name: &str,
        publisher: Command,
        subscriber: Command,
    ) -> Result<Self> {
        let start = |host, role: &str, command| {
            network.start(host, command, &folder.join(format!("{name}-{role}")))
        };
        Ok(Self {
            subscriber: start(Host::B, "subscriber", subscriber)?,
            publisher: start(Host::A, "publisher", publisher)?,
        })
    }

    /// Interrupts the publisher once the subscriber has `wanted` samples, or at the timeout. Returns the number of
    /// samples written. A peer's program keeps running for a while after SIGINT. [`stop`](Self::stop) ends it by a second
    /// SIGINT.
    pub(super) fn run(&mut self, wanted: usize) -> Result<u32> {
        wait_until(LONGEST_RUN, || {
            Ok(self.subscriber.sample_numbers()?.len() >= wanted)
        })?;
        let written = self.publisher.end_writing(LONGEST_RUN);
        written.map_err(|error| format!("{error}{}", self.subscriber.account()).into())
    }

    /// Interrupts both programs. Returns an error unless they exit with these statuses: first the publisher's, then the
    /// subscriber's.
    pub(super) fn stop(&mut self, statuses: [i32; 2]) -> Result<()> {
        let programs = [&mut self.publisher, &mut self.subscriber];
        for (program, status) in programs.into_iter().zip(statuses) {
            let ending = program.stop()?;
            if ending != Ending::Exited(status) {
                return Err(format!("a program {ending}\n{}", program.account()).into());
            }
        }
        Ok(())
    }

    /// Returns the datagram counts of the lane of isolane's subscriber, which must have exited.
    pub(super) fn carried(&self) -> Result<Carried> {
        let carried = Carried::of(&self.subscriber.said()?);
        carried.ok_or_else(|| {
            let account = self.account();
            format!("the subscriber printed no datagram counts of its lane\n{account}").into()
        })
    }

    /// Command lines and last lines of output.
    pub(super) fn account(&self) -> String {
        self.publisher.account() + &self.subscriber.account()
    }
}
