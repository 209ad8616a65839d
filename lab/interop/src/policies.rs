//! DDS policies against each peer, with samples of several sizes and with losses of the cable.
//!
//! The programs are those of the shapes contract (`shapes`), which has an option for most policies. For the other
//! policies, the programs of the lab take additional options. An entry of `POLICIES` gives the options of each side and
//! the required output. The axes are that entry, the peer, the role, the sample size and the loss. CI runs a cover of
//! all pairs of values, `--all` the product.
//!
//! The publisher prints what it writes, with sizes that count from 1, so each missing sample is known. All samples of a
//! topic have one instance.

use std::fmt;
use std::time::Duration;

use isolane_support::Result;
use isolane_support::workspace::Metadata;
use strum::{IntoStaticStr, VariantArray};

use super::combination::{Axis, Loss, Role};
use super::covering_array::Choice;
use super::report::{Labels, RunReport};
use super::runner::Runner;
use super::shapes::case::{Case, case, every, late};
use super::shapes::judge::{
    Judgement, Sample, Sides, at_least, begins_after_the_first, begins_with_the_first, each_pair,
    ends_as_written, incompatible, matched, missed, require, tells_end, unchanged, unmatched,
};
use super::shapes::pair::{Pair, Programs, Task, Vendor};
use super::side::Peer;

/// One value from every axis.
#[derive(Clone, Copy)]
pub(super) struct PolicyCell {
    /// Policy name of DDS 1.4.
    policy: &'static str,
    case: &'static Case,
    pub(super) peer: Peer,
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
        let (policy, case) = &POLICIES[policy];
        Self {
            policy,
            case,
            peer: Peer::ALL[peer],
            peer_role: Role::ALL[role],
            setting: Setting {
                size: Size::ALL[size],
                loss: Loss::ALL[loss],
            },
        }
    }

    /// Labels of its result.
    pub(super) fn labels(self, peer: String) -> Labels {
        Labels {
            peer,
            peer_role: Some(self.peer_role.word()),
            datapath: None,
            policy: Some(self.policy),
            case: Some(self.case()),
        }
    }

    /// Name of the cell without peer and role.
    fn case(self) -> String {
        let Setting { size, loss } = self.setting;
        format!("{}-{}-{}", self.case.name, size.word(), loss.word())
    }

    fn pair(self) -> Pair {
        let (peer, own) = (Vendor::from(self.peer), Vendor::Isolane);
        let (publisher, subscriber) = match self.peer_role {
            Role::Publisher => (peer, own),
            Role::Subscriber => (own, peer),
        };
        Pair {
            publisher,
            subscriber,
        }
    }
}

/// Name of the result, of the output folder, and for `--only`.
impl fmt::Display for PolicyCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, role) = (self.peer.word(), self.peer_role.word());
        write!(formatter, "{peer}-{role}-{}", self.case())
    }
}

/// Runs the cells, some at once.
pub(super) fn run(
    cells: &[PolicyCell],
    metadata: &Metadata,
    runner: &Runner<'_>,
    jobs: usize,
) -> Result<Vec<RunReport>> {
    if cells.is_empty() {
        return Ok(Vec::new());
    }
    let programs = Programs::build(metadata)?;
    Ok(runner.run(cells, jobs, |cell, folder, capture| {
        let task = Task {
            case: cell.case,
            publisher: &cell.setting.publisher(cell.case),
            subscriber: &cell.setting.subscriber(cell.case),
            loss: cell.setting.loss,
            needs_repair: cell.setting.needs_repair(),
            is_segmented: cell.setting.size != Size::Bytes64,
            bits_per_s: Some(BITS_PER_S),
            capture,
            longest_life: cell.setting.longest_life(),
        };
        cell.pair().run_known(&task, &programs, folder)
    }))
}

/// All values of the policy axis, by policy name of DDS 1.4. A reliable case that is judged by what arrived
/// has KEEP_ALL and waits for its last acknowledgments.
#[rustfmt::skip]
pub(super) const POLICIES: &[(&str, Case)] = &[
    ("RELIABILITY", case("reliable", "-k 0 --final-instance-state u", "-k 0 --read-period 20", all_that_was_written)),
    ("RELIABILITY", case("best-effort", "-b -k 4", "-b -k 4 --read-period 10", whole_or_nothing)),
    ("RELIABILITY", case("best-effort-for-reliable", "-b", "-r", |sides| incompatible(sides, "11 (RELIABILITY)"))),
    ("HISTORY", every(150, case("keep-last", "-k 1", "-k 1 --read-period 500", newest_only))),
    ("DURABILITY", late(case("transient-local", "-D l -k 0 --final-instance-state u", "-D l -k 0", from_the_first))),
    ("DURABILITY", late(case("volatile-reader", "-D l -k 0 --final-instance-state u", "-D v -k 0",
        not_from_the_first))),
    ("DURABILITY", case("volatile-for-transient-local", "-D v", "-D l", |sides| incompatible(sides, "2 (DURABILITY)"))),
    ("DURABILITY", case("transient", "-D t -k 0 --final-instance-state u", "-D t -k 0", flows)),
    ("DURABILITY", case("persistent", "-D p -k 0 --final-instance-state u", "-D p -k 0", flows)),
    ("PRESENTATION", case("topic-access", "--access-scope t -k 0 --final-instance-state u", "--access-scope t -k 0",
        flows)),
    ("PRESENTATION", case("instance-access-for-topic", "--access-scope i", "--access-scope t",
        |sides| incompatible(sides, "3 (PRESENTATION)"))),
    ("PRESENTATION", case("coherent-sets",
        "--access-scope t --coherent --coherent-sample-count 3 -k 0 --final-instance-state u",
        "--access-scope t --coherent -k 0", flows)),
    ("DEADLINE", case("deadline-kept", "-f 3000 -k 0 --final-instance-state u", "-f 4000 -k 0",
        |sides| flows(sides).and_then(|()| missed(sides, [false, false])))),
    ("DEADLINE", every(900, case("deadline-missed", "-f 200", "-f 300", |sides| missed(sides, [true, true])))),
    ("DEADLINE", case("deadline-too-long", "-f 1000", "-f 500", |sides| incompatible(sides, "4 (DEADLINE)"))),
    ("LATENCY_BUDGET", case("latency-budget",
        "--latency-budget 20 -k 0 --final-instance-state u", "--latency-budget 30 -k 0", all_that_was_written)),
    ("LATENCY_BUDGET", case("latency-budget-too-long", "--latency-budget 30", "--latency-budget 20",
        |sides| incompatible(sides, "5 (LATENCY_BUDGET)"))),
    ("OWNERSHIP", case("exclusive", "-s 3 -k 0 --final-instance-state u", "-s 0 -k 0", flows)),
    ("OWNERSHIP", case("shared-for-exclusive", "-s -1", "-s 0", |sides| incompatible(sides, "6 (OWNERSHIP)"))),
    ("LIVELINESS", case("lease-kept",
        "--liveliness t --lease 3000 -k 0 --final-instance-state u", "--liveliness p --lease 3000 -k 0", lively)),
    ("LIVELINESS", every(1_300, case("lease-lost", "--liveliness t --lease 300", "--liveliness t --lease 400",
        lost_liveliness))),
    ("LIVELINESS", case("automatic-for-manual", "--liveliness a --lease 1000", "--liveliness t --lease 1000",
        |sides| incompatible(sides, "8 (LIVELINESS)"))),
    ("TIME_BASED_FILTER", case("minimum-separation", "-k 0 --final-instance-state u", "-k 0 --time-filter 1500",
        rarely)),
    ("PARTITION", case("partition", "-p north-7 -k 0 --final-instance-state u", "-p nor* -k 0", flows)),
    ("PARTITION", case("partitions-apart", "-p north", "-p south", unmatched)),
    ("LIFESPAN", case("lifespan", "-k 0 --lifespan 250", "-k 0 --read-period 1500", rarely)),
    ("WRITER_DATA_LIFECYCLE", case("unregistered", "-k 0 --final-instance-state u", "-k 0",
        |sides| flows(sides).and_then(|()| tells_end(sides, "NO_WRITERS")))),
    ("WRITER_DATA_LIFECYCLE", case("disposed", "-k 0 --final-instance-state d", "-k 0",
        |sides| flows(sides).and_then(|()| tells_end(sides, "DISPOSED")))),
    ("USER_DATA, TOPIC_DATA, GROUP_DATA", case("data", "--user-data me --topic-data it --group-data us", "--print-data",
        |sides| shows_data(sides, "user 'me' topic 'it' group 'us'"))),
    ("DATA_REPRESENTATION", case("xcdr2", "-x 2 -k 0 --final-instance-state u", "-x 2 -k 0", flows)),
    ("DATA_REPRESENTATION", case("xcdr1-for-xcdr2", "-x 1", "-x 2",
        |sides| incompatible(sides, "23 (DATA_REPRESENTATION)"))),
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
    fn publisher(self, case: &Case) -> String {
        let period_ms = case.period_ms.unwrap_or_else(|| self.period_ms());
        let iterations = self.life_ms() / period_ms;
        let bytes = self.size.bytes();
        format!(
            "-P -w -c RED -z 0 --additional-payload-size {bytes} --datafrag-size {FRAGMENT_BYTES} \
             --write-period {period_ms} --num-iterations {iterations} {}",
            case.publisher
        )
    }

    /// Command line of the subscriber, with the size, for which isolane allocates.
    fn subscriber(self, case: &Case) -> String {
        let bytes = self.size.bytes();
        format!("-S --additional-payload-size {bytes} {}", case.subscriber)
    }

    /// Returns true when no sample arrives whole without repair, because some of its fragments are always lost.
    fn needs_repair(self) -> bool {
        self.loss == Loss::TenPercent && self.size != Size::Bytes64
            || self.loss == Loss::OnePercent && self.size == Size::MiB1
    }
}

/// Minimum number of samples that must arrive. Discovery may take the rest of the publisher's writing time.
const MIN_SAMPLES: usize = 3;

/// Returns the samples that arrived, which must be unchanged and in order.
fn taken(sides: &Sides) -> std::result::Result<Vec<Sample>, String> {
    let samples = sides.subscriber.samples();
    unchanged(&samples)?;
    each_pair(&samples, "in order", |before, sample| {
        before.size < sample.size
    })?;
    Ok(samples)
}

/// Some samples arrived, unchanged and in order; both sides report the match. Where isolane's publisher can send segmented
/// bursts, it did.
fn flows(sides: &Sides) -> Judgement {
    at_least(MIN_SAMPLES, &taken(sides)?)?;
    require(sides.segmented != Some(0), || {
        "isolane sent no segmented burst".into()
    })?;
    matched(sides)
}

/// No sample is missing between the first that arrived and the last that was written.
fn all_that_was_written(sides: &Sides) -> Judgement {
    flows(sides)?;
    ends_as_written(sides)
}

/// Without repair, each sample arrives whole or not at all.
fn whole_or_nothing(sides: &Sides) -> Judgement {
    if sides.needs_repair {
        taken(sides)?;
        return matched(sides);
    }
    flows(sides)
}

/// A reader that reads rarely sees only the newest sample. A newer large sample may end the repair of the previous one.
fn newest_only(sides: &Sides) -> Judgement {
    whole_or_nothing(sides)?;
    few(&taken(sides)?, &sides.publisher.samples())
}

fn few(taken: &[Sample], written: &[Sample]) -> Judgement {
    let (taken, written) = (taken.len(), written.len());
    require(taken * 2 <= written, || {
        format!("{taken} of {written} came instead of at most half")
    })
}

/// TIME_BASED_FILTER or LIFESPAN removes most samples; without loss, some arrive.
fn rarely(sides: &Sides) -> Judgement {
    let (written, taken) = (sides.publisher.samples(), taken(sides)?);
    if taken.is_empty() && !sides.needs_repair {
        return Err("none came".into());
    }
    few(&taken, &written)?;
    matched(sides)
}

/// A late reader gets all earlier samples, without a gap.
fn from_the_first(sides: &Sides) -> Judgement {
    all_that_was_written(sides)?;
    begins_with_the_first(sides)
}

/// A late reader gets no earlier sample.
fn not_from_the_first(sides: &Sides) -> Judgement {
    flows(sides)?;
    begins_after_the_first(sides)
}

/// The writer was alive while it wrote. Under MANUAL_BY_TOPIC, a writer that waits for acknowledgment longer than its
/// lease asserts nothing and is not alive.
fn lively(sides: &Sides) -> Judgement {
    flows(sides)?;
    let publisher = &sides.publisher;
    let lost = publisher.reported_before_the_last_sample("on_liveliness_lost");
    match lost.first() {
        Some(line) => Err(format!("the publisher reported {line}")),
        None => saw_liveliness(sides, "(alive = 1, not_alive = 0)"),
    }
}

fn saw_liveliness(sides: &Sides, counts: &str) -> Judgement {
    let reported = sides.subscriber.reported("on_liveliness_changed");
    require(reported.iter().any(|line| line.ends_with(counts)), || {
        format!("the subscriber reported {reported:?} instead of a writer {counts}")
    })
}

/// The writer asserted nothing for longer than its lease, and both sides report it.
fn lost_liveliness(sides: &Sides) -> Judgement {
    saw_liveliness(sides, "(alive = 1, not_alive = 0)")?;
    if sides.publisher.reported("on_liveliness_lost").is_empty() {
        return Err("the publisher did not report on_liveliness_lost".into());
    }
    saw_liveliness(sides, "(alive = 0, not_alive = 1)")
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
    use super::super::covering_array::cover;
    use super::*;

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
            cell.to_string(),
            format!("fastdds-publisher-{}-1MiB-loss-10", POLICIES[0].1.name)
        );
        let cell = PolicyCell::choose([0, 0, 1, 0, 0]);
        assert_eq!(cell.pair().to_string(), "isolane to cyclonedds");
    }
}
