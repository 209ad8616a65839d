//! One run: one vendor's publisher on a host, another vendor's subscriber on the other host. Also the vendors'
//! programs.
//!
//! The subscriber starts first, except in cases about a late joiner. The publisher ends after its number of iterations;
//! the subscriber is interrupted after enough time to notice the publisher's departure.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

use isolane_bench::namespace::Host;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command};
use strum::{IntoStaticStr, VariantArray};

use super::super::combination::{Loss, Role};
use super::super::network::Network;
use super::super::program::{Ending, LOOK, Program};
use super::super::recording::Recording;
use super::Verdict;
use super::judge::{Printed, Sides};
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

impl Vendor {
    pub(crate) fn word(self) -> &'static str {
        self.into()
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
        Ok(Self {
            isolane: metadata.isolane().with_file_name("isolane-shape-main"),
            cyclonedds: [
                cyclonedds("xcdr1", &["-D", "PLAIN"])?,
                cyclonedds("xcdr2", &[])?,
            ],
            fastdds: foreign::build_fastdds(
                &sources.join("fastdds/shape_main.cpp"),
                &folder.join("fastdds"),
            )?,
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

/// Undocumented deviation of an implementation from a case's required output.
pub(crate) struct Known {
    /// Name of the case or policy.
    pub(crate) case: &'static str,
    pub(crate) vendor: Vendor,
    /// Role in which it deviates; `None`: both.
    pub(crate) role: Option<Role>,
    pub(crate) why: &'static str,
}

impl Known {
    /// Returns true when this deviation explains a failure of the case with this pair.
    pub(crate) fn excuses(&self, case: &str, pair: Pair) -> bool {
        let as_publisher = self.role != Some(Role::Subscriber) && pair.publisher == self.vendor;
        let as_subscriber = self.role != Some(Role::Publisher) && pair.subscriber == self.vendor;
        self.case == case && (as_publisher || as_subscriber)
    }
}

pub(crate) struct Task<'a> {
    /// Options of the publisher and of the subscriber, separated by blanks.
    pub(crate) publisher: &'a str,
    pub(crate) subscriber: &'a str,
    /// True when the subscriber starts after a second of samples.
    pub(crate) is_late: bool,
    pub(crate) loss: Loss,
    /// Rate of the cable; `None`: the usual one.
    pub(crate) bits_per_s: Option<u64>,
    /// File for the capture of a failed task's network.
    pub(crate) capture: Option<&'a Path>,
    /// Timeout of the publisher.
    pub(crate) longest_life: Duration,
    /// Check of the output.
    pub(crate) judge: &'a dyn Fn(&Sides) -> std::result::Result<(), String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) publisher: Vendor,
    pub(crate) subscriber: Vendor,
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
        Vendor::VARIANTS.iter().flat_map(|&publisher| {
            Vendor::VARIANTS.iter().map(move |&subscriber| Self {
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

    /// Runs a task with a known deviation of another vendor. Where it fails, two programs of that vendor run the same
    /// task: the failure is excused only if these two fail as well.
    pub(crate) fn run_known(
        self,
        task: &Task<'_>,
        known: Option<(Vendor, &'static str)>,
        programs: &Programs,
        folder: &Path,
    ) -> Result<(Verdict, String)> {
        let (verdict, account) = self.run(task, programs, folder)?;
        let (Verdict::Fail(why), Some((vendor, known))) = (&verdict, known) else {
            return Ok((verdict, account));
        };
        let among_themselves = folder.join("among-themselves");
        let task = Task {
            capture: None,
            ..*task
        };
        for _ in 0..tries(&task) {
            let (verdict, _) = Self::of(vendor).run(&task, programs, &among_themselves)?;
            if !matches!(verdict, Verdict::Pass) {
                return Ok((Verdict::Known(known), account));
            }
        }
        let vendor = vendor.word();
        let why = format!("{why}; two programs of {vendor} do as they should");
        Ok((Verdict::Fail(why), account))
    }

    /// Runs a task; returns the verdict, the command lines and the output.
    pub(crate) fn run(
        self,
        task: &Task<'_>,
        programs: &Programs,
        folder: &Path,
    ) -> Result<(Verdict, String)> {
        fs::create_dir_all(folder)?;
        let network = match task.bits_per_s {
            Some(bits_per_s) => Network::with_rate(task.loss, bits_per_s)?,
            None => Network::new(task.loss)?,
        };
        let recording = task.capture.map(|_| network.record()).transpose()?;
        let start = |vendor: Vendor, host, side: &str, options: &str| {
            let mut command = Command::new(programs.of(vendor, options));
            command.args(["-t", TOPIC]).args(options.split_whitespace());
            Program::start(network.command(host, command), &folder.join(side))
        };
        let publish = || start(self.publisher, Host::A, "publisher", task.publisher);
        let subscribe = || start(self.subscriber, Host::B, "subscriber", task.subscriber);
        let (mut publisher, mut subscriber);
        if task.is_late {
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
        while ending.is_none() && begin.elapsed() < task.longest_life {
            thread::sleep(LOOK);
            ending = publisher.ending()?;
            if subscriber.ending()?.is_some() {
                break;
            }
        }
        thread::sleep(AFTERWARDS);
        let endings = (publisher.stop()?, subscriber.stop()?);
        let mut account = publisher.account() + &subscriber.account();
        let verdict = self.judge(task, endings, (&publisher, &subscriber))?;
        drop((publisher, subscriber));
        let recorded = recording.map(Recording::end).transpose()?;
        if let (Some(path), Some(recorded), Verdict::Fail(_)) = (task.capture, recorded, &verdict) {
            recorded.write(path)?;
            account += &format!("  = {recorded} in {}\n", path.display());
        }
        network.finish()?;
        if !matches!(verdict, Verdict::Fail(_)) {
            let _ = fs::remove_dir_all(folder);
        }
        Ok((verdict, account))
    }

    fn judge(
        self,
        task: &Task<'_>,
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
        let judged = sides.check_ends().and_then(|()| (task.judge)(&sides));
        Ok(judged.map_or_else(Verdict::Fail, |()| Verdict::Pass))
    }
}
