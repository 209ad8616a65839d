//! One run: one vendor's publisher on a host, another vendor's subscriber on the other host. Also the vendors'
//! programs.
//!
//! The subscriber starts first, except in cases about a late joiner. The publisher ends after its number of iterations;
//! the subscriber is interrupted after enough time to notice the publisher's departure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fmt, fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command};
use strum::{IntoStaticStr, VariantArray};

use super::super::combination::{Axis, Loss};
use super::super::network::Network;
use super::super::program::{Ending, Program, wait_until};
use super::super::report::{Judged, Verdict};
use super::super::side::Peer;
use super::case::Case;
use super::judge::{Printed, Sides};
use super::known::{disagreement, known};
use crate::foreign;

const TOPIC: &str = "Square";
/// Time for which the first side runs alone.
const ALONE: Duration = Duration::from_millis(300);
/// Further delay of a late side, in which a second of samples becomes history.
const LATE: Duration = Duration::from_millis(1_000);
/// Time in which a subscriber notices the publisher's departure.
const AFTERWARDS: Duration = Duration::from_millis(600);
/// Exit status of a program that reports a missing feature.
const USAGE: i32 = 2;

/// Vendor of a shapes test program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Vendor {
    Isolane,
    CycloneDds,
    FastDds,
}

impl From<Peer> for Vendor {
    fn from(peer: Peer) -> Self {
        match peer {
            Peer::CycloneDds => Self::CycloneDds,
            Peer::FastDds => Self::FastDds,
        }
    }
}

pub(crate) struct Programs {
    isolane: PathBuf,
    /// Programs for XCDR1 and for XCDR2 (`lab/interop/programs/cyclonedds/shape_main.c`).
    cyclonedds: [PathBuf; 2],
    fastdds: PathBuf,
}

impl Programs {
    pub(crate) fn build(metadata: &Metadata) -> Result<Self> {
        command::run(&mut build_commands())?;
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop/shape_main");
        let cyclonedds = |representation: &str, options: &[&str]| {
            foreign::build_cyclonedds(
                &sources.join("cyclonedds/shape_main.c"),
                &sources.join("ShapeType.idl"),
                options,
                &folder.join("cyclonedds").join(representation),
            )
        };
        let source = sources.join("fastdds/shape_main.cpp");
        Ok(Self {
            isolane: metadata.isolane().with_file_name("isolane-shape-main"),
            cyclonedds: [
                cyclonedds("xcdr1", &["-D", "PLAIN"])?,
                cyclonedds("xcdr2", &[])?,
            ],
            fastdds: foreign::build_fastdds(&source, &folder.join("fastdds"))?,
        })
    }

    /// Returns the program for these options.
    pub(crate) fn of(&self, vendor: Vendor, options: &str) -> &Path {
        let sends_xcdr2 = options.contains("-x 2");
        match vendor {
            Vendor::Isolane => &self.isolane,
            Vendor::CycloneDds => &self.cyclonedds[usize::from(sends_xcdr2)],
            Vendor::FastDds => &self.fastdds,
        }
    }
}

pub(crate) struct Task<'a> {
    pub(crate) case: &'static Case,
    /// Options of the publisher and of the subscriber, separated by blanks.
    pub(crate) publisher: &'a str,
    pub(crate) subscriber: &'a str,
    pub(crate) loss: Loss,
    /// True if the cable loses a fragment of every sample, so that only repair can complete a sample.
    pub(crate) needs_repair: bool,
    /// True if a sample has so many fragments that a publisher of isolane must send segmented bursts.
    pub(crate) is_segmented: bool,
    /// Rate of the cable; `None`: the usual one.
    pub(crate) bits_per_s: Option<u64>,
    /// Path of the captures of a failed task's network, without their endings.
    pub(crate) capture: Option<&'a Path>,
    /// Timeout of the publisher.
    pub(crate) longest_life: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) publisher: Vendor,
    pub(crate) subscriber: Vendor,
}

impl fmt::Display for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (publisher, subscriber) = (self.publisher.word(), self.subscriber.word());
        write!(formatter, "{publisher} to {subscriber}")
    }
}

/// Number of passed runs of a vendor's own pair after which its deviation counts as gone: more with loss, which is
/// random.
fn tries(task: &Task<'_>) -> usize {
    match task.loss == Loss::None {
        true => 1,
        false => 3,
    }
}

impl Pair {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Vendor::ALL.iter().flat_map(|&publisher| {
            Vendor::ALL.iter().map(move |&subscriber| Self {
                publisher,
                subscriber,
            })
        })
    }

    /// Pair of two programs of one vendor.
    pub(crate) fn of(vendor: Vendor) -> Self {
        Self {
            publisher: vendor,
            subscriber: vendor,
        }
    }

    pub(super) fn has(self, vendor: Vendor) -> bool {
        self.publisher == vendor || self.subscriber == vendor
    }

    /// Runs a task with the known deviations. Where it fails by the deviation of another vendor, two programs of that
    /// vendor run the same task: the failure is excused only if these two fail as well.
    pub(crate) fn run_known(
        self,
        task: &Task<'_>,
        programs: &Programs,
        folder: &Path,
    ) -> Result<Judged> {
        let mut judged = self.run(task, programs, folder)?;
        if judged.verdict != Verdict::Fail {
            return Ok(judged);
        }
        let excused = |why: &str| Judged {
            verdict: Verdict::Skip,
            detail: why.into(),
            account: String::new(),
        };
        if let Some(why) = disagreement(task.case.name, self) {
            return Ok(excused(why));
        }
        let Some((vendor, why)) = known(task.case.name, self) else {
            return Ok(judged);
        };
        let among_themselves = folder.join("among-themselves");
        fs::create_dir_all(&among_themselves)?;
        let task = Task {
            capture: None,
            ..*task
        };
        for _ in 0..tries(&task) {
            let own = Self::of(vendor).run(&task, programs, &among_themselves)?;
            if own.verdict != Verdict::Pass {
                return Ok(excused(why));
            }
        }
        let vendor = vendor.word();
        judged.detail += &format!("; two programs of {vendor} do as they should");
        Ok(judged)
    }

    /// Runs a task, with the programs' output in `folder`.
    fn run(self, task: &Task<'_>, programs: &Programs, folder: &Path) -> Result<Judged> {
        let mut network = match task.bits_per_s {
            Some(bits_per_s) => Network::with_rate(task.loss, bits_per_s)?,
            None => Network::new(task.loss)?,
        };
        network.record(task.capture)?;
        let start = |vendor: Vendor, host, side: &str, options: &str| {
            let mut command = Command::new(programs.of(vendor, options));
            command.args(["-t", TOPIC]).args(options.split_whitespace());
            network.start(host, command, &folder.join(side))
        };
        let publish = || start(self.publisher, Host::A, "publisher", task.publisher);
        let subscribe = || start(self.subscriber, Host::B, "subscriber", task.subscriber);
        let (mut publisher, mut subscriber);
        if task.case.is_late {
            publisher = publish()?;
            thread::sleep(ALONE + LATE);
            subscriber = subscribe()?;
        } else {
            subscriber = subscribe()?;
            thread::sleep(ALONE);
            publisher = publish()?;
        }
        wait_until(task.longest_life, || {
            Ok(publisher.ending()?.is_some() || subscriber.ending()?.is_some())
        })?;
        thread::sleep(AFTERWARDS);
        let endings = (publisher.stop()?, subscriber.stop()?);
        let (verdict, detail) = self.judge(task, endings, (&publisher, &subscriber))?;
        let account = publisher.account() + &subscriber.account();
        let captured = network.finish(verdict == Verdict::Fail)?;
        Ok(Judged {
            verdict,
            detail,
            account: account + &captured,
        })
    }

    fn judge(
        self,
        task: &Task<'_>,
        endings: (Ending, Ending),
        (publisher, subscriber): (&Program, &Program),
    ) -> Result<(Verdict, String)> {
        let sides = [
            (self.publisher, endings.0, publisher),
            (self.subscriber, endings.1, subscriber),
        ];
        for (vendor, ending, program) in sides {
            let says_so = program.said()?.contains("not supported");
            if ending == Ending::Exited(USAGE) && says_so {
                let detail = format!("{} does not have it", vendor.word());
                return Ok((Verdict::Skip, detail));
            }
        }
        for (vendor, ending, _) in sides {
            if ending != Ending::Exited(0) {
                return Ok((Verdict::Fail, format!("{} {ending}", vendor.word())));
            }
        }
        let must_segment = task.is_segmented && self.publisher == Vendor::Isolane;
        let said = publisher.said()?;
        let bursts = |line: &str| line.strip_suffix(" segmented bursts sent")?.parse().ok();
        let segmented = must_segment.then(|| said.lines().find_map(bursts).unwrap_or(0));
        let sides = Sides {
            publisher: Printed::of(&publisher.printed()?),
            subscriber: Printed::of(&subscriber.printed()?),
            needs_repair: task.needs_repair,
            segmented,
        };
        let bursts = segmented.map(|count: u64| format!(", {count} segmented bursts"));
        let passed = "as required".to_owned() + &bursts.unwrap_or_default();
        Ok(
            match sides.check_ends().and_then(|()| (task.case.judge)(&sides)) {
                Ok(()) => (Verdict::Pass, passed),
                Err(why) => (Verdict::Fail, why),
            },
        )
    }
}
