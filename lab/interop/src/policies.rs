//! DDS policies against each peer, with samples of several sizes and with losses of the cable.
//!
//! The programs are those of the shapes contract (`shapes`), which has an option for most policies. For the other
//! policies, the programs of the lab take additional options. An entry of `POLICIES` gives the options of each side and
//! the required output. The axes are that entry, the peer, the role, the sample size and the loss. CI runs a cover of
//! all pairs of values, `--all` the product.
//!
//! The publisher prints what it writes, with sizes that count from 1, so each missing sample is known. All samples of a
//! topic have one instance.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use isolane_support::Result;
use isolane_support::workspace::Metadata;
use strum::{IntoStaticStr, VariantArray};

use super::at_once;
use super::combination::{Axis, Loss, Role};
use super::covering_array::Choice;
use super::report::{PolicyReport, Verdict};
use super::shapes;
use super::shapes::judge::{
    Judgement, Sample, Sides, incompatible, matched, missed, nothing_flows, tells_end,
};
use super::shapes::pair::{Known, Pair, Programs, Task, Vendor};
use super::side::{Installed, Peer};

/// One value from every axis.
#[derive(Clone, Copy)]
pub(super) struct PolicyCell {
    policy: &'static Policy,
    peer: Peer,
    peer_role: Role,
    setting: Setting,
}

/// Number of values of each axis, in the order of [`PolicyCell::choose`].
pub(super) const AXES: [usize; 5] = [
    POLICIES.len(),
    Peer::ALL.len(),
    Role::ALL.len(),
    Size::ALL.len(),
    Loss::ALL.len(),
];

impl PolicyCell {
    /// Returns the cell with these indices, one for each axis.
    pub(super) fn choose([policy, peer, role, size, loss]: Choice<{ AXES.len() }>) -> Self {
        Self {
            policy: &POLICIES[policy],
            peer: Peer::ALL[peer],
            peer_role: Role::ALL[role],
            setting: Setting {
                size: Size::ALL[size],
                loss: Loss::ALL[loss],
            },
        }
    }

    /// Name in the table, of the output folder, and for `--only`.
    pub(super) fn name(self) -> String {
        let (peer, role) = (self.peer.word(), self.peer_role.word());
        format!("{peer}-{role}-{}", self.case())
    }

    /// Name of the cell without peer and role.
    fn case(self) -> String {
        let Setting { size, loss } = self.setting;
        format!("{}-{}-{}", self.policy.name, size.word(), loss.word())
    }

    fn vendor(self) -> Vendor {
        match self.peer {
            Peer::CycloneDds => Vendor::CycloneDds,
            Peer::FastDds => Vendor::FastDds,
        }
    }

    fn pair(self) -> Pair {
        match self.peer_role {
            Role::Publisher => Pair {
                publisher: self.vendor(),
                subscriber: Vendor::Isolane,
            },
            Role::Subscriber => Pair {
                publisher: Vendor::Isolane,
                subscriber: self.vendor(),
            },
        }
    }

    /// Known deviation of the peer, if any.
    fn known(self) -> Option<(Vendor, &'static str)> {
        let excuses = |known: &&Known| known.excuses(self.policy.name, self.pair());
        let known = KNOWN.iter().find(excuses)?;
        Some((known.vendor, known.why))
    }

    fn run(self, programs: &Programs, folder: &Path, capture: Option<&Path>) -> (Verdict, String) {
        let publisher = self.setting.publisher(self.policy);
        let subscriber = self.setting.subscriber(self.policy);
        let judge = |sides: &_| (self.policy.judge)(sides, self.setting);
        let task = Task {
            publisher: &publisher,
            subscriber: &subscriber,
            is_late: self.policy.is_late,
            loss: self.setting.loss,
            bits_per_s: Some(BITS_PER_S),
            capture,
            longest_life: self.setting.longest_life(),
            judge: &judge,
        };
        let ended = self.pair().run_known(&task, self.known(), programs, folder);
        let (verdict, account) =
            ended.unwrap_or_else(|error| (shapes::Verdict::Fail(error.to_string()), String::new()));
        match verdict {
            shapes::Verdict::Pass => (Verdict::Pass, "as the policy requires".into()),
            shapes::Verdict::Lacking(vendor) => {
                (Verdict::Skip, format!("{} does not have it", vendor.word()))
            }
            shapes::Verdict::Known(why) => (Verdict::Skip, why.into()),
            shapes::Verdict::Fail(why) => (Verdict::Fail, format!("{why}\n{account}")),
        }
    }
}

/// Runs the cells, some at once, and prints each result as it arrives.
pub(super) fn run(
    cells: &[PolicyCell],
    peers: &[Installed],
    metadata: &Metadata,
    jobs: usize,
    captures: Option<&Path>,
) -> Result<Vec<PolicyReport>> {
    if cells.is_empty() {
        return Ok(Vec::new());
    }
    let programs = Programs::build(metadata)?;
    let folder = metadata.target_directory.join("interop/policies");
    // Output of an earlier run, if any.
    let _ = fs::remove_dir_all(&folder);
    let run_one = |cell: &PolicyCell| {
        let start = Instant::now();
        let capture = captures.map(|captures| captures.join(format!("{}.pcapng", cell.name())));
        let folder = folder.join(cell.name());
        let (result, detail) = cell.run(&programs, &folder, capture.as_deref());
        let peer = peers.iter().find(|installed| installed.peer == cell.peer);
        PolicyReport {
            name: cell.name(),
            peer: peer.map_or_else(String::new, |peer| peer.identity.clone()),
            peer_role: cell.peer_role.word(),
            policy: cell.policy.policy,
            case: cell.case(),
            result,
            detail,
            seconds: start.elapsed().as_secs_f64(),
        }
    };
    let show = |done, report: &PolicyReport| eprintln!("[{done}/{}] {report}", cells.len());
    Ok(at_once(cells, jobs, run_one, show))
}

/// A value of the policy axis.
struct Policy {
    /// Word in the cell's name.
    name: &'static str,
    /// Policy name of DDS 1.4.
    policy: &'static str,
    /// Additional options of the publisher, and of the subscriber.
    publisher: &'static str,
    subscriber: &'static str,
    pace: Pace,
    /// True when the subscriber starts after a second of samples.
    is_late: bool,
    judge: fn(&Sides, Setting) -> Judgement,
}

/// Pace of writing.
enum Pace {
    OfSetting,
    /// Period in milliseconds, for a policy about time.
    Every(u32),
}

const fn policy(
    name: &'static str,
    policy: &'static str,
    [publisher, subscriber]: [&'static str; 2],
    judge: fn(&Sides, Setting) -> Judgement,
) -> Policy {
    Policy {
        name,
        policy,
        publisher,
        subscriber,
        pace: Pace::OfSetting,
        is_late: false,
        judge,
    }
}

const fn every(period_ms: u32, policy: Policy) -> Policy {
    Policy {
        pace: Pace::Every(period_ms),
        ..policy
    }
}

const fn late(policy: Policy) -> Policy {
    Policy {
        is_late: true,
        ..policy
    }
}

/// All policies. A reliable case that is judged by what arrived has KEEP_ALL and waits for its last acknowledgments.
#[rustfmt::skip]
const POLICIES: &[Policy] = &[
    policy("reliable", "RELIABILITY", ["-k 0 --final-instance-state u", "-k 0 --read-period 20"],
        all_that_was_written),
    policy("best-effort", "RELIABILITY", ["-b -k 4", "-b -k 4 --read-period 10"], whole_or_nothing),
    policy("best-effort-for-reliable", "RELIABILITY", ["-b", "-r"],
        |sides, _| incompatible(sides, "11 (RELIABILITY)")),
    every(150, policy("keep-last", "HISTORY", ["-k 1", "-k 1 --read-period 500"], newest_only)),
    late(policy("transient-local", "DURABILITY", ["-D l -k 0 --final-instance-state u", "-D l -k 0"],
        from_the_first)),
    late(policy("volatile-reader", "DURABILITY", ["-D l -k 0 --final-instance-state u", "-D v -k 0"],
        not_from_the_first)),
    policy("volatile-for-transient-local", "DURABILITY", ["-D v", "-D l"],
        |sides, _| incompatible(sides, "2 (DURABILITY)")),
    policy("transient", "DURABILITY", ["-D t -k 0 --final-instance-state u", "-D t -k 0"], flows),
    policy("persistent", "DURABILITY", ["-D p -k 0 --final-instance-state u", "-D p -k 0"], flows),
    policy("topic-access", "PRESENTATION",
        ["--access-scope t -k 0 --final-instance-state u", "--access-scope t -k 0"], flows),
    policy("instance-access-for-topic", "PRESENTATION", ["--access-scope i", "--access-scope t"],
        |sides, _| incompatible(sides, "3 (PRESENTATION)")),
    policy("coherent-sets", "PRESENTATION",
        ["--access-scope t --coherent --coherent-sample-count 3 -k 0 --final-instance-state u",
            "--access-scope t --coherent -k 0"],
        flows),
    policy("deadline-kept", "DEADLINE", ["-f 3000 -k 0 --final-instance-state u", "-f 4000 -k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| missed(sides, [false, false]))),
    every(900, policy("deadline-missed", "DEADLINE", ["-f 200", "-f 300"], |sides, _| missed(sides, [true, true]))),
    policy("deadline-too-long", "DEADLINE", ["-f 1000", "-f 500"], |sides, _| incompatible(sides, "4 (DEADLINE)")),
    policy("latency-budget", "LATENCY_BUDGET",
        ["--latency-budget 20 -k 0 --final-instance-state u", "--latency-budget 30 -k 0"], all_that_was_written),
    policy("latency-budget-too-long", "LATENCY_BUDGET", ["--latency-budget 30", "--latency-budget 20"],
        |sides, _| incompatible(sides, "5 (LATENCY_BUDGET)")),
    policy("exclusive", "OWNERSHIP", ["-s 3 -k 0 --final-instance-state u", "-s 0 -k 0"], flows),
    policy("shared-for-exclusive", "OWNERSHIP", ["-s -1", "-s 0"], |sides, _| incompatible(sides, "6 (OWNERSHIP)")),
    policy("lease-kept", "LIVELINESS",
        ["--liveliness t --lease 3000 -k 0 --final-instance-state u", "--liveliness p --lease 3000 -k 0"], lively),
    every(1_300, policy("lease-lost", "LIVELINESS", ["--liveliness t --lease 300", "--liveliness t --lease 400"],
        |sides, _| lost_liveliness(sides))),
    policy("automatic-for-manual", "LIVELINESS", ["--liveliness a --lease 1000", "--liveliness t --lease 1000"],
        |sides, _| incompatible(sides, "8 (LIVELINESS)")),
    policy("minimum-separation", "TIME_BASED_FILTER", ["-k 0 --final-instance-state u", "-k 0 --time-filter 1500"],
        rarely),
    policy("partition", "PARTITION", ["-p north-7 -k 0 --final-instance-state u", "-p nor* -k 0"], flows),
    policy("partitions-apart", "PARTITION", ["-p north", "-p south"], |sides, _| apart(sides)),
    policy("lifespan", "LIFESPAN", ["-k 0 --lifespan 250", "-k 0 --read-period 1500"], rarely),
    policy("unregistered", "WRITER_DATA_LIFECYCLE", ["-k 0 --final-instance-state u", "-k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| tells_end(sides, "NO_WRITERS"))),
    policy("disposed", "WRITER_DATA_LIFECYCLE", ["-k 0 --final-instance-state d", "-k 0"],
        |sides, setting| flows(sides, setting).and_then(|()| tells_end(sides, "DISPOSED"))),
    policy("data", "USER_DATA, TOPIC_DATA, GROUP_DATA",
        ["--user-data me --topic-data it --group-data us", "--print-data"],
        |sides, _| shows_data(sides, "user 'me' topic 'it' group 'us'")),
    policy("xcdr2", "DATA_REPRESENTATION", ["-x 2 -k 0 --final-instance-state u", "-x 2 -k 0"], flows),
    policy("xcdr1-for-xcdr2", "DATA_REPRESENTATION", ["-x 1", "-x 2"],
        |sides, _| incompatible(sides, "23 (DATA_REPRESENTATION)")),
];

/// Known deviations. When a cell fails by one of them, two programs of the vendor run the same cell. If those pass, the
/// deviation is no excuse.
const KNOWN: &[Known] = &[
    Known {
        case: "instance-access-for-topic",
        vendor: Vendor::FastDds,
        role: None,
        why: "it does not compare PRESENTATION",
    },
    Known {
        case: "latency-budget-too-long",
        vendor: Vendor::FastDds,
        role: None,
        why: "it does not compare LATENCY_BUDGET",
    },
    Known {
        case: "minimum-separation",
        vendor: Vendor::CycloneDds,
        role: Some(Role::Subscriber),
        why: "its readers ignore the filter",
    },
    Known {
        case: "lifespan",
        vendor: Vendor::FastDds,
        role: Some(Role::Subscriber),
        why: "its readers keep what a writer's LIFESPAN has ended",
    },
    Known {
        case: "xcdr1-for-xcdr2",
        vendor: Vendor::FastDds,
        role: Some(Role::Publisher),
        why: "it does not report representations that differ",
    },
];

/// Rate of the cable: a mebibyte takes 21 ms, which leaves time for repair.
const BITS_PER_S: u64 = 400_000_000;

/// Fragment size in bytes: each fragment is one frame, so that losses are independent.
const FRAGMENT_BYTES: u32 = 1_300;

/// Additional payload of a sample; the rest is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
enum Size {
    /// One small datagram.
    #[strum(serialize = "64B")]
    Bytes64,
    /// Some fifty fragments: at a loss of a tenth, no sample arrives whole without repair.
    #[strum(serialize = "64KiB")]
    KiB64,
    /// Some eight hundred fragments: even at a loss of a hundredth, no sample arrives whole without repair.
    #[strum(serialize = "1MiB")]
    MiB1,
}

impl Size {
    fn bytes(self) -> u32 {
        match self {
            Self::Bytes64 => 64,
            Self::KiB64 => 64 << 10,
            Self::MiB1 => 1 << 20,
        }
    }
}

/// Values of a cell's axes except the policy.
#[derive(Clone, Copy, Debug)]
struct Setting {
    size: Size,
    loss: Loss,
}

impl Setting {
    /// Time for which the publisher writes, in milliseconds: discovery takes longer where announcements are lost.
    fn life_ms(self) -> u32 {
        match self.loss {
            Loss::None | Loss::OnePercent => 4_000,
            Loss::TenPercent => 6_000,
        }
    }

    /// Time between two samples, in milliseconds: 5 MB/s load the cable little and still give some samples. Where a
    /// tenth of a mebibyte is lost, peers request 256 fragments at a time and wait a tenth of a second before the next
    /// request, so each sample takes half a second or more.
    fn period_ms(self) -> u32 {
        match (self.size, self.loss) {
            (Size::Bytes64 | Size::KiB64, _) => 50,
            (Size::MiB1, Loss::None | Loss::OnePercent) => 200,
            (Size::MiB1, Loss::TenPercent) => 500,
        }
    }

    /// Timeout of the publisher: its writing time, writes that block, and the last acknowledgments.
    fn longest_life(self) -> Duration {
        const LAST_ACKNOWLEDGMENTS_MS: u64 = 10_000;
        Duration::from_millis(u64::from(self.life_ms()) * 2 + LAST_ACKNOWLEDGMENTS_MS)
    }

    /// Command line of the publisher.
    fn publisher(self, policy: &Policy) -> String {
        let period_ms = match policy.pace {
            Pace::OfSetting => self.period_ms(),
            Pace::Every(period_ms) => period_ms,
        };
        let iterations = self.life_ms() / period_ms;
        let bytes = self.size.bytes();
        format!(
            "-P -w -c RED -z 0 --additional-payload-size {bytes} --datafrag-size {FRAGMENT_BYTES} \
             --write-period {period_ms} --num-iterations {iterations} {}",
            policy.publisher
        )
    }

    /// Command line of the subscriber, with the size, for which isolane allocates.
    fn subscriber(self, policy: &Policy) -> String {
        let bytes = self.size.bytes();
        format!("-S --additional-payload-size {bytes} {}", policy.subscriber)
    }

    /// Returns true when no sample arrives whole without repair, because some of its fragments are always lost.
    fn needs_repair(self) -> bool {
        self.loss == Loss::TenPercent && self.size != Size::Bytes64
            || self.loss == Loss::OnePercent && self.size == Size::MiB1
    }
}

/// Minimum number of samples that must arrive. Discovery may take the rest of the publisher's writing time.
const MIN_SAMPLES: usize = 3;

fn taken(sides: &Sides) -> std::result::Result<Vec<Sample>, String> {
    let samples = sides.subscriber.samples();
    match samples.iter().find(|sample| sample.payload != Some(255)) {
        Some(other) => Err(format!("not as it was written: {other:?}")),
        None => Ok(samples),
    }
}

/// Some samples arrived, unchanged and in order; both sides report the match.
fn flows(sides: &Sides, _: Setting) -> Judgement {
    let samples = taken(sides)?;
    if samples.len() < MIN_SAMPLES {
        return Err(format!(
            "{} samples came instead of at least {MIN_SAMPLES}",
            samples.len()
        ));
    }
    in_order(&samples)?;
    matched(sides)
}

fn in_order(samples: &[Sample]) -> Judgement {
    match samples.windows(2).find(|pair| pair[1].size <= pair[0].size) {
        Some(pair) => Err(format!(
            "number {} came after {}",
            pair[1].size, pair[0].size
        )),
        None => Ok(()),
    }
}

/// No sample is missing between the first that arrived and the last that was written.
fn all_that_was_written(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    let (written, taken) = (sides.publisher.samples(), taken(sides)?);
    match written.ends_with(&taken) {
        true => Ok(()),
        false => Err(format!(
            "of {} written {} were taken, which are not the last of them",
            written.len(),
            taken.len()
        )),
    }
}

/// Without repair, each sample arrives whole or not at all.
fn whole_or_nothing(sides: &Sides, setting: Setting) -> Judgement {
    if setting.needs_repair() {
        in_order(&taken(sides)?)?;
        return matched(sides);
    }
    flows(sides, setting)
}

/// A reader that reads rarely sees only the newest sample. A newer large sample may end the repair of the previous one.
fn newest_only(sides: &Sides, setting: Setting) -> Judgement {
    whole_or_nothing(sides, setting)?;
    few(&taken(sides)?, &sides.publisher.samples())
}

fn few(taken: &[Sample], written: &[Sample]) -> Judgement {
    match taken.len() * 2 <= written.len() {
        true => Ok(()),
        false => Err(format!(
            "{} of {} came instead of at most half",
            taken.len(),
            written.len()
        )),
    }
}

/// TIME_BASED_FILTER or LIFESPAN removes most samples; without loss, some arrive.
fn rarely(sides: &Sides, setting: Setting) -> Judgement {
    let (written, taken) = (sides.publisher.samples(), taken(sides)?);
    in_order(&taken)?;
    if taken.is_empty() && !setting.needs_repair() {
        return Err("none came".into());
    }
    few(&taken, &written)?;
    matched(sides)
}

/// A late reader gets all earlier samples, without a gap.
fn from_the_first(sides: &Sides, setting: Setting) -> Judgement {
    all_that_was_written(sides, setting)?;
    match taken(sides)?.first() {
        Some(first) if first.size == 1 => Ok(()),
        first => Err(format!("it begins with {first:?}")),
    }
}

/// A late reader gets no earlier sample.
fn not_from_the_first(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    match taken(sides)?.first() {
        Some(first) if first.size == 1 => Err("it begins with the first sample".into()),
        _ => Ok(()),
    }
}

/// Neither side reports anything, and no sample arrives.
fn apart(sides: &Sides) -> Judgement {
    let matched = [
        sides.publisher.reported("on_publication_matched"),
        sides.subscriber.reported("on_subscription_matched"),
    ]
    .concat();
    match matched.first() {
        Some(line) => Err(format!("a listener was called: {line}")),
        None => nothing_flows(sides),
    }
}

/// The writer was alive while it wrote. Under MANUAL_BY_TOPIC, a writer that waits for acknowledgment longer than its
/// lease asserts nothing and is not alive.
fn lively(sides: &Sides, setting: Setting) -> Judgement {
    flows(sides, setting)?;
    let lost = sides
        .publisher
        .reported_before_the_last_sample("on_liveliness_lost");
    match lost.first() {
        Some(line) => Err(format!("the publisher reported {line}")),
        None => came_alive(sides),
    }
}

fn came_alive(sides: &Sides) -> Judgement {
    let reported = sides.subscriber.reported("on_liveliness_changed");
    let is_alive = |line: &&&str| line.ends_with("(alive = 1, not_alive = 0)");
    match reported.iter().find(is_alive) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the subscriber reported {reported:?} instead of an alive writer"
        )),
    }
}

/// The writer asserted nothing for longer than its lease, and both sides report it.
fn lost_liveliness(sides: &Sides) -> Judgement {
    came_alive(sides)?;
    if sides.publisher.reported("on_liveliness_lost").is_empty() {
        return Err("the publisher did not report on_liveliness_lost".into());
    }
    let reported = sides.subscriber.reported("on_liveliness_changed");
    let is_lost = |line: &&&str| line.ends_with("(alive = 0, not_alive = 1)");
    match reported.iter().find(is_lost) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the subscriber reported {reported:?} instead of a lost writer"
        )),
    }
}

/// The subscriber printed the writer's announced data.
fn shows_data(sides: &Sides, words: &str) -> Judgement {
    let line = format!("data of a writer of Square: {words}");
    match sides.subscriber.has(&line) {
        true => matched(sides),
        false => Err(format!("the subscriber did not print: {line}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::covering_array::{cover, product};
    use super::*;

    #[test]
    fn every_cell_has_its_own_name() {
        let cells = product(AXES).into_iter().map(PolicyCell::choose);
        let names = cells.map(PolicyCell::name).collect::<BTreeSet<_>>();
        assert_eq!(names.len(), AXES.iter().product::<usize>());
    }

    #[test]
    fn all_pairs_of_values_are_few_cells() {
        let cells = cover(AXES, 2, 0);
        // Lower bound of a pair cover: the product of the two longest axes.
        assert!(
            cells.len() <= POLICIES.len() * 3 + 3,
            "{} cells",
            cells.len()
        );
    }

    #[test]
    fn the_peer_has_the_role_that_the_cell_says() {
        let cell = PolicyCell::choose([0, 1, 0, 2, 2]);
        assert_eq!(cell.pair().to_string(), "fastdds to isolane");
        assert_eq!(
            cell.name(),
            format!("fastdds-publisher-{}-1MiB-loss-10", POLICIES[0].name)
        );
        let cell = PolicyCell::choose([0, 0, 1, 0, 0]);
        assert_eq!(cell.pair().to_string(), "isolane to cyclonedds");
    }
}
