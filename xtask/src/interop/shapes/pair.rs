//! One run: a publisher of one vendor on one host, a subscriber of another on the other.
//!
//! The subscriber starts first, unless the case is about one that comes late. The publisher ends by itself,
//! by its number of iterations; the subscriber is told to stop when it had time to see that.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::namespace::Host;

use super::super::cell::Loss;
use super::super::network::Network;
use super::super::program::{Ending, LOOK, Program};
use super::Verdict;
use super::case::{Case, KNOWN, Known, Sides};
use super::printed::Printed;
use super::vendor::{Programs, Vendor};
use crate::Result;

/// The topic, but where a case says another.
const TOPIC: &str = "Square";
/// What a publisher may take: three seconds of writing, and its end.
const LONGEST_LIFE: Duration = Duration::from_secs(10);
/// How long the first side is alone.
const ALONE: Duration = Duration::from_millis(300);
/// How long a late side comes after that: a second of samples is history then.
const LATE: Duration = Duration::from_millis(1_000);
/// What a subscriber gets to see that the publisher has gone.
const AFTERWARDS: Duration = Duration::from_millis(600);
/// The status of a program that lacks something, which says so.
const USAGE: i32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    publisher: Vendor,
    subscriber: Vendor,
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} to {}",
            self.publisher.word(),
            self.subscriber.word()
        )
    }
}

impl Pair {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Vendor::ALL.into_iter().flat_map(|publisher| {
            Vendor::ALL.into_iter().map(move |subscriber| Self {
                publisher,
                subscriber,
            })
        })
    }

    pub(super) fn has(self, vendor: Vendor) -> bool {
        self.publisher == vendor || self.subscriber == vendor
    }

    /// Why the case does not hold of this pair, if that is known of somebody else's program.
    pub(super) fn known(self, case: &Case) -> Option<&'static Known> {
        KNOWN.iter().find(|known| {
            let is_meant = self.subscriber == known.vendor
                || (!known.as_subscriber_only && self.publisher == known.vendor);
            known.case == case.name && is_meant
        })
    }

    /// Runs a case; what came of it, and what the programs were called and printed.
    pub(super) fn run(
        self,
        case: &Case,
        programs: &Programs,
        folder: &Path,
    ) -> Result<(Verdict, String)> {
        fs::create_dir_all(folder)?;
        let network = Network::new(Loss::None)?;
        let start = |vendor: Vendor, host, side: &str, options: &str| {
            let mut command = Command::new(programs.of(vendor, options));
            command.args(["-t", TOPIC]).args(options.split(' '));
            Program::start(network.command(host, command), &folder.join(side))
        };
        let publish = || start(self.publisher, Host::A, "publisher", case.publisher);
        let subscribe = || start(self.subscriber, Host::B, "subscriber", case.subscriber);
        let (mut publisher, mut subscriber);
        if case.is_late {
            publisher = publish()?;
            thread::sleep(ALONE + LATE);
            subscriber = subscribe()?;
        } else {
            subscriber = subscribe()?;
            thread::sleep(ALONE);
            publisher = publish()?;
        }
        let begin = Instant::now();
        let mut ending = None;
        while ending.is_none() && begin.elapsed() < LONGEST_LIFE {
            thread::sleep(LOOK);
            ending = publisher.ending()?;
            if subscriber.ending()?.is_some() {
                break;
            }
        }
        thread::sleep(AFTERWARDS);
        let endings = (publisher.stop()?, subscriber.stop()?);
        let account = publisher.account() + &subscriber.account();
        let verdict = self.judge(case, endings, (&publisher, &subscriber))?;
        drop((publisher, subscriber));
        network.finish()?;
        if !matches!(verdict, Verdict::Fail(_)) {
            let _ = fs::remove_dir_all(folder);
        }
        Ok((verdict, account))
    }

    fn judge(
        self,
        case: &Case,
        endings: (Ending, Ending),
        (publisher, subscriber): (&Program, &Program),
    ) -> Result<Verdict> {
        let sides = [
            (self.publisher, endings.0, publisher),
            (self.subscriber, endings.1, subscriber),
        ];
        for (vendor, ending, program) in sides {
            let says_so = program.said()?.contains("not supported");
            if ending == Ending::Exited(USAGE) && says_so {
                return Ok(Verdict::Lacking(vendor));
            }
        }
        for (vendor, ending, _) in sides {
            if ending != Ending::Exited(0) {
                return Ok(Verdict::Fail(format!("{} {ending}", vendor.word())));
            }
        }
        let sides = Sides {
            publisher: Printed::of(&publisher.printed()?),
            subscriber: Printed::of(&subscriber.printed()?),
        };
        let judged = sides.check_ends().and_then(|()| (case.judge)(&sides));
        Ok(judged.map_or_else(Verdict::Fail, |()| Verdict::Pass))
    }
}
