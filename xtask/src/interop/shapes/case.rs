//! What both sides are told, and what they must print then.
//!
//! Every option of the contract stands in a case. A publisher writes sixty samples in three seconds, long
//! enough for the slowest discovery; how many of them arrive is not judged where the first are lost by the
//! contract, only which.

use super::printed::{Printed, Sample};
use super::vendor::Vendor;

/// What both printed.
pub(in super::super) struct Sides {
    pub(in super::super) publisher: Printed,
    pub(in super::super) subscriber: Printed,
}

/// A case.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Options of the publisher, and of the subscriber.
    pub(super) publisher: &'static str,
    pub(super) subscriber: &'static str,
    /// The subscriber comes when a second of samples was written.
    pub(super) is_late: bool,
    /// What there is to say against what they printed.
    pub(super) judge: fn(&Sides) -> Judgement,
}

type Judgement = Result<(), String>;

const fn case(
    name: &'static str,
    publisher: &'static str,
    subscriber: &'static str,
    judge: fn(&Sides) -> Judgement,
) -> Case {
    Case {
        name,
        publisher,
        subscriber,
        is_late: false,
        judge,
    }
}

const fn late(
    name: &'static str,
    publisher: &'static str,
    subscriber: &'static str,
    judge: fn(&Sides) -> Judgement,
) -> Case {
    Case {
        is_late: true,
        ..case(name, publisher, subscriber, judge)
    }
}

/// All of them, by option.
pub(super) const CASES: &[Case] = &[
    case(
        "reliable",
        "-P -r -c RED --write-period 50 --num-iterations 60",
        "-S -r",
        red_flows,
    ),
    case(
        "best effort",
        "-P -b -c RED --write-period 50 --num-iterations 60",
        "-S -b",
        red_flows,
    ),
    case(
        "best effort is less than reliable",
        "-P -b -c RED --write-period 50 --num-iterations 60",
        "-S -r",
        |sides| incompatible(sides, "11 (RELIABILITY)"),
    ),
    case(
        "default color",
        "-P --write-period 50 --num-iterations 60",
        "-S",
        |sides| flows(sides, "BLUE"),
    ),
    case(
        "written is printed",
        "-P -w -c RED --write-period 50 --num-iterations 60",
        "-S -k 0 --read-period 20",
        all_that_was_printed_arrives,
    ),
    case(
        "KEEP_ALL loses nothing",
        "-P -w -k 0 -c RED --write-period 10 --num-iterations 300",
        "-S -k 0 --read-period 200",
        without_gaps,
    ),
    case(
        "KEEP_LAST keeps the last",
        "-P -k 2 -c RED --write-period 10 --num-iterations 300",
        "-S -k 2 --read-period 400",
        few_of_many,
    ),
    case(
        "read leaves samples",
        "-P -c RED --write-period 200 --num-iterations 15",
        "-S -R --read-period 20",
        repeats,
    ),
    case(
        "take of all instances",
        "-P -c RED --num-instances 2 --write-period 50 --num-iterations 60",
        "-S -k 0 --take-read --read-period 400",
        |sides| {
            ["RED", "RED1"]
                .iter()
                .try_for_each(|color| flows(sides, color))
        },
    ),
    case(
        "several instances",
        "-P -c RED --num-instances 3 --write-period 50 --num-iterations 60",
        "-S",
        |sides| {
            ["RED", "RED1", "RED2"]
                .iter()
                .try_for_each(|color| flows(sides, color))
        },
    ),
    case(
        "several topics",
        "-P -c RED --num-topics 3 --write-period 50 --num-iterations 60",
        "-S --num-topics 3",
        three_topics,
    ),
    case(
        "a size that grows",
        "-P -c RED -z 0 --write-period 50 --num-iterations 60",
        "-S -k 0",
        |sides| sizes(sides, |before, size| size == before + 1),
    ),
    case(
        "a size that begins again",
        "-P -c RED -z 0 --size-modulo 5 --write-period 50 --num-iterations 60",
        "-S -k 0",
        |sides| sizes(sides, |before, size| size == before % 5 + 1),
    ),
    case(
        "a payload",
        "-P -c RED --additional-payload-size 500 --write-period 50 --num-iterations 60",
        "-S",
        payload,
    ),
    case(
        "a payload in fragments",
        "-P -c RED --additional-payload-size 50000 --write-period 50 --num-iterations 60",
        "-S",
        payload,
    ),
    case(
        "instances unregistered",
        "-P -c RED --final-instance-state u --write-period 50 --num-iterations 60",
        "-S",
        |sides| ends(sides, "NO_WRITERS"),
    ),
    case(
        "instances disposed",
        "-P -c RED --final-instance-state d --write-period 50 --num-iterations 60",
        "-S",
        |sides| ends(sides, "DISPOSED"),
    ),
    case(
        "a writer that leaves",
        "-P -c RED --write-period 50 --num-iterations 60",
        "-S",
        |sides| ends(sides, "NO_WRITERS"),
    ),
    case(
        "a filter of colors",
        "-P -c RED --num-instances 2 --write-period 50 --num-iterations 60",
        "-S -c RED1",
        |sides| only(sides, |sample| sample.color == "RED1"),
    ),
    case(
        "a filter in words",
        "-P -c RED -z 0 --size-modulo 9 --write-period 50 --num-iterations 60",
        // No blanks: options are parted by them.
        "-S --cft shapesize<=3",
        |sides| only(sides, |sample| sample.size <= 3),
    ),
    case(
        "a partition in common",
        "-P -c RED -p north --write-period 50 --num-iterations 60",
        "-S -p north",
        red_flows,
    ),
    case(
        "a partition with wildcards",
        "-P -c RED -p north-7 --write-period 50 --num-iterations 60",
        "-S -p nor*-[5-9]",
        red_flows,
    ),
    case(
        "a publisher's partition with wildcards",
        "-P -c RED -p nor?h --write-period 50 --num-iterations 60",
        "-S -p north",
        red_flows,
    ),
    case(
        "partitions apart",
        "-P -c RED -p north --write-period 50 --num-iterations 60",
        "-S -p south",
        apart,
    ),
    case(
        "a deadline kept",
        "-P -c RED -f 1000 --write-period 50 --num-iterations 60",
        "-S -f 2000",
        |sides| red_flows(sides).and_then(|()| missed(sides, [false, false])),
    ),
    case(
        "a deadline missed on both sides",
        "-P -c RED -f 100 --write-period 700 --num-iterations 5",
        "-S -f 150",
        |sides| missed(sides, [true, true]),
    ),
    case(
        "a deadline longer than asked for",
        "-P -c RED -f 1000 --write-period 50 --num-iterations 60",
        "-S -f 500",
        |sides| incompatible(sides, "4 (DEADLINE)"),
    ),
    case(
        "exclusive ownership",
        "-P -c RED -s 3 --write-period 50 --num-iterations 60",
        "-S -s 0",
        red_flows,
    ),
    case(
        "shared is not exclusive",
        "-P -c RED -s -1 --write-period 50 --num-iterations 60",
        "-S -s 0",
        |sides| incompatible(sides, "6 (OWNERSHIP)"),
    ),
    late(
        "history for a late subscriber",
        "-P -D l -k 0 -c RED -z 0 --write-period 50 --num-iterations 60",
        "-S -D l -k 0",
        from_the_first,
    ),
    late(
        "no history for a volatile subscriber",
        "-P -D l -k 0 -c RED -z 0 --write-period 50 --num-iterations 60",
        "-S -D v -k 0",
        not_from_the_first,
    ),
    case(
        "volatile is less than transient-local",
        "-P -D v -c RED --write-period 50 --num-iterations 60",
        "-S -D l",
        |sides| incompatible(sides, "2 (DURABILITY)"),
    ),
    case(
        "transient",
        "-P -D t -c RED --write-period 50 --num-iterations 60",
        "-S -D t",
        red_flows,
    ),
    case(
        "persistent",
        "-P -D p -c RED --write-period 50 --num-iterations 60",
        "-S -D p",
        red_flows,
    ),
    case(
        "XCDR2",
        "-P -x 2 -c RED --write-period 50 --num-iterations 60",
        "-S -x 2",
        red_flows,
    ),
    case(
        "representations apart",
        "-P -x 1 -c RED --write-period 50 --num-iterations 60",
        "-S -x 2",
        |sides| incompatible(sides, "23 (DATA_REPRESENTATION)"),
    ),
    case(
        "a time-based filter",
        "-P -c RED --write-period 20 --num-iterations 150",
        "-S -k 0 --time-filter 500 --read-period 50",
        few_of_many,
    ),
    case(
        "a short life",
        "-P -c RED -k 0 -z 0 --lifespan 100 --write-period 20 --num-iterations 150",
        "-S -k 0 --read-period 600",
        few_of_many,
    ),
    case(
        "access of a topic",
        "-P -c RED --access-scope t --write-period 50 --num-iterations 60",
        "-S --access-scope t",
        red_flows,
    ),
    case(
        "access of instances is less than of a topic",
        "-P -c RED --access-scope i --write-period 50 --num-iterations 60",
        "-S --access-scope t",
        |sides| incompatible(sides, "3 (PRESENTATION)"),
    ),
    case(
        "ordered access of a topic",
        "-P -c RED --access-scope t --ordered --num-instances 2 --write-period 50 --num-iterations 60",
        "-S -k 0 --access-scope t --ordered --take-read",
        alternates,
    ),
    case(
        "coherent sets",
        "-P -c RED -k 0 --access-scope t --coherent --coherent-sample-count 3 --write-period 50 --num-iterations 60",
        "-S -k 0 --access-scope t --coherent --read-period 40",
        |sides| red_flows(sides).and_then(|()| whole_sets(sides, 3)),
    ),
    case(
        "coherent sets of a group",
        "-P -c RED -k 0 --num-topics 2 --access-scope g --coherent --coherent-sample-count 4 --write-period 50 --num-iterations 60",
        "-S -k 0 --num-topics 2 --access-scope g --coherent --read-period 40",
        |sides| whole_sets(sides, 4).and_then(|()| sets_of_both_topics(sides)),
    ),
    case(
        "coherent sets within an instance are its samples",
        "-P -c RED -k 0 --access-scope i --coherent --coherent-sample-count 3 --write-period 50 --num-iterations 60",
        "-S -k 0 --access-scope i --coherent",
        red_flows,
    ),
    case(
        "coherent is more than not",
        "-P -c RED --access-scope t --write-period 50 --num-iterations 60",
        "-S --access-scope t --coherent",
        |sides| incompatible(sides, "3 (PRESENTATION)"),
    ),
    case(
        "ordered access of a group",
        "-P -c RED -k 0 -z 0 --num-topics 2 --access-scope g --ordered --write-period 50 --num-iterations 60",
        "-S -k 0 --num-topics 2 --access-scope g --ordered --read-period 200",
        in_order_of_writing,
    ),
    case(
        "announcements in a hurry",
        "-P -c RED --periodic-announcement 500 --write-period 50 --num-iterations 60",
        "-S --periodic-announcement 500",
        red_flows,
    ),
    case(
        "another domain",
        "-P -d 3 -c RED --write-period 50 --num-iterations 60",
        "-S -d 3",
        red_flows,
    ),
    case(
        "domains apart",
        "-P -d 3 -c RED --write-period 50 --num-iterations 60",
        "-S -d 4",
        apart,
    ),
    case(
        "fragments of a chosen size",
        "-P -c RED --datafrag-size 1000 --additional-payload-size 5000 --write-period 50 --num-iterations 60",
        "-S",
        payload,
    ),
];

/// What an implementation does not do as the contract has it, and does not say: where it is the subscriber, or on
/// either side. Two programs of its own are asked each time whether they do the same.
pub(super) const KNOWN: &[Known] = &[
    Known {
        case: "a short life",
        vendor: Vendor::FastDds,
        as_subscriber_only: true,
        why: "its readers keep what a writer's LIFESPAN has ended",
    },
    Known {
        case: "access of instances is less than of a topic",
        vendor: Vendor::FastDds,
        as_subscriber_only: false,
        why: "it does not compare PRESENTATION",
    },
    Known {
        case: "a partition with wildcards",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: false,
        why: "its names have no sets of characters",
    },
    Known {
        case: "partitions apart",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: false,
        why: "it tells of a PARTITION that differs as of an incompatible policy",
    },
    Known {
        case: "a time-based filter",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: true,
        why: "its readers take in all",
    },
    Known {
        case: "representations apart",
        vendor: Vendor::FastDds,
        as_subscriber_only: false,
        why: "it tells nobody of representations that differ",
    },
    Known {
        case: "a writer that leaves",
        vendor: Vendor::FastDds,
        as_subscriber_only: true,
        why: "its readers tell of an end only where a writer has unregistered",
    },
];

/// One of them.
pub(super) struct Known {
    pub(super) case: &'static str,
    pub(super) vendor: Vendor,
    pub(super) as_subscriber_only: bool,
    pub(super) why: &'static str,
}

/// Samples that are some: discovery takes no more than the rest of three seconds.
const SOME: usize = 5;

fn some(samples: &[Sample]) -> Judgement {
    match samples.len() {
        SOME.. => Ok(()),
        few => Err(format!("{few} samples came, {SOME} were to come at least")),
    }
}

fn flows(sides: &Sides, color: &str) -> Judgement {
    let mut samples = sides.subscriber.samples();
    samples.retain(|sample| sample.color == color);
    some(&samples).map_err(|few| format!("{color}: {few}"))?;
    let is_within =
        |sample: &Sample| (0..=240).contains(&sample.x) && (0..=270).contains(&sample.y);
    match samples.iter().find(|sample| !is_within(sample)) {
        Some(outside) => Err(format!("outside of the plane: {outside:?}")),
        None => matched(sides),
    }
}

fn red_flows(sides: &Sides) -> Judgement {
    flows(sides, "RED")
}

fn matched(sides: &Sides) -> Judgement {
    let first = [
        (
            &sides.publisher,
            "on_publication_matched",
            "matched readers 1 (change = 1)",
        ),
        (
            &sides.subscriber,
            "on_subscription_matched",
            "matched writers 1 (change = 1)",
        ),
    ];
    for (side, listener, words) in first {
        if !side.told(listener).iter().any(|line| line.ends_with(words)) {
            return Err(format!("{listener} did not tell: {words}"));
        }
    }
    Ok(())
}

fn incompatible(sides: &Sides, policy: &str) -> Judgement {
    let both = [
        (&sides.publisher, "on_offered_incompatible_qos"),
        (&sides.subscriber, "on_requested_incompatible_qos"),
    ];
    for (side, listener) in both {
        let told = side.told(listener);
        if !told.iter().any(|line| line.ends_with(policy)) {
            return Err(format!("{listener} did not tell {policy}, but {told:?}"));
        }
    }
    nothing_flows(sides)
}

fn nothing_flows(sides: &Sides) -> Judgement {
    match sides.subscriber.samples().len() {
        0 => Ok(()),
        some => Err(format!("{some} samples came where none were to come")),
    }
}

/// Not to share a partition is no incompatibility: nobody is told.
fn apart(sides: &Sides) -> Judgement {
    let told = [
        sides.publisher.told("on_publication_matched"),
        sides.subscriber.told("on_subscription_matched"),
        sides.publisher.told("on_offered_incompatible_qos"),
        sides.subscriber.told("on_requested_incompatible_qos"),
    ]
    .concat();
    match told.first() {
        Some(line) => Err(format!("somebody was told: {line}")),
        None => nothing_flows(sides),
    }
}

fn all_that_was_printed_arrives(sides: &Sides) -> Judgement {
    let (written, taken) = (sides.publisher.samples(), sides.subscriber.samples());
    some(&taken)?;
    // What was written before the match is lost.
    match written.ends_with(&taken) {
        true => Ok(()),
        false => Err(format!(
            "{} written, {} taken: not their end",
            written.len(),
            taken.len()
        )),
    }
}

fn without_gaps(sides: &Sides) -> Judgement {
    all_that_was_printed_arrives(sides)
}

/// Far fewer than were written, and some.
fn few_of_many(sides: &Sides) -> Judgement {
    const MOST: usize = 60;
    let samples = sides.subscriber.samples();
    match samples.len() {
        0..=2 => Err(format!("{} samples came", samples.len())),
        3..=MOST => Ok(()),
        many => Err(format!("{many} samples came, at most {MOST} were to")),
    }
}

/// A sample that is read stays, and is read again.
fn repeats(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    let repeated = samples.windows(2).filter(|pair| pair[0] == pair[1]).count();
    match repeated {
        0 => Err("no sample was read twice".into()),
        _ => Ok(()),
    }
}

/// Two instances that are written in turns come in turns.
fn alternates(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    let stands = samples
        .windows(2)
        .filter(|pair| pair[0].color == pair[1].color)
        .count();
    match stands {
        0 => Ok(()),
        _ => Err(format!("{stands} samples follow one of their own instance")),
    }
}

/// How often a subscriber that looks at sets says so, and with what.
const LOOKS_AT_SETS: &str = "Reading coherent sets";

/// Each look finds whole sets of so many iterations, of each topic.
fn whole_sets(sides: &Sides, size: usize) -> Judgement {
    for line in ["Started Coherent Set", "Finished Coherent Set"] {
        if !sides.publisher.has(line) {
            return Err(format!("the publisher did not print: {line}"));
        }
    }
    some(&sides.subscriber.samples())?;
    for round in sides.subscriber.rounds(LOOKS_AT_SETS) {
        for topic in ["Square", "Square1"] {
            let count = round.iter().filter(|it| it.topic == topic).count();
            if count % size != 0 {
                return Err(format!(
                    "{count} samples of {topic} came at once: no whole sets"
                ));
            }
        }
    }
    Ok(())
}

/// From the first set of the second topic on, both topics come together.
fn sets_of_both_topics(sides: &Sides) -> Judgement {
    let rounds = sides.subscriber.rounds(LOOKS_AT_SETS);
    let of = |round: &[Sample], topic: &str| round.iter().filter(|it| it.topic == topic).count();
    let both = rounds.iter().skip_while(|round| of(round, "Square1") == 0);
    let (mut some, mut apart) = (0, 0);
    for round in both {
        let (one, other) = (of(round, "Square"), of(round, "Square1"));
        some += one;
        apart += usize::from(one != other);
    }
    match (some, apart) {
        (0, _) => Err("nothing came of both topics".into()),
        (_, 0) => Ok(()),
        _ => Err(format!("{apart} looks found a part of a set")),
    }
}

/// The samples of two topics, written in turns and each larger than the one before, come so.
fn in_order_of_writing(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    let topics = ["Square", "Square1"].map(|topic| samples.iter().any(|it| it.topic == topic));
    if topics != [true; 2] {
        return Err(format!("samples of both topics were to come: {topics:?}"));
    }
    let both = samples.iter().skip_while(|it| it.topic != "Square1");
    let places: Vec<(i32, &str)> = both.map(|it| (it.size, it.topic.as_str())).collect();
    match places.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("{:?} comes before {:?}", pair[0], pair[1])),
        None => Ok(()),
    }
}

fn three_topics(sides: &Sides) -> Judgement {
    for topic in ["Square", "Square1", "Square2"] {
        let mut samples = sides.subscriber.samples();
        samples.retain(|sample| sample.topic == topic);
        some(&samples).map_err(|few| format!("{topic}: {few}"))?;
    }
    Ok(())
}

fn sizes(sides: &Sides, follows: fn(i32, i32) -> bool) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    let wrong = samples
        .windows(2)
        .find(|pair| !follows(pair[0].size, pair[1].size));
    match wrong {
        Some(pair) => Err(format!("size {} follows {}", pair[1].size, pair[0].size)),
        None => Ok(()),
    }
}

fn payload(sides: &Sides) -> Judgement {
    red_flows(sides)?;
    only(sides, |sample| sample.payload == Some(255))
}

fn only(sides: &Sides, is_wanted: fn(&Sample) -> bool) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    match samples.iter().find(|sample| !is_wanted(sample)) {
        Some(other) => Err(format!("unwanted: {other:?}")),
        None => Ok(()),
    }
}

fn ends(sides: &Sides, state: &str) -> Judgement {
    red_flows(sides)?;
    match sides.subscriber.ends(state) {
        0 => Err(format!("no instance became {state}")),
        _ => Ok(()),
    }
}

/// Whether deadlines were missed: at the publisher, at the subscriber.
fn missed(sides: &Sides, expected: [bool; 2]) -> Judgement {
    let told = [
        !sides
            .publisher
            .told("on_offered_deadline_missed")
            .is_empty(),
        !sides
            .subscriber
            .told("on_requested_deadline_missed")
            .is_empty(),
    ];
    match told == expected {
        true => Ok(()),
        false => Err(format!(
            "missed offered, requested: {told:?} instead of {expected:?}"
        )),
    }
}

fn from_the_first(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    match samples[0].size {
        1 => sizes(sides, |before, size| size == before + 1),
        size => Err(format!("it begins with number {size}")),
    }
}

fn not_from_the_first(sides: &Sides) -> Judgement {
    let samples = sides.subscriber.samples();
    some(&samples)?;
    match samples[0].size {
        1 => Err("it begins with the first sample".into()),
        _ => Ok(()),
    }
}

impl Sides {
    /// What holds of every run: both say that they are done, and no writer that left has disposed
    /// what it was not told to dispose.
    pub(super) fn check_ends(&self) -> Judgement {
        for (side, name) in [
            (&self.publisher, "publisher"),
            (&self.subscriber, "subscriber"),
        ] {
            if side.last() != Some("Done.") {
                return Err(format!(
                    "the {name} does not end with `Done.`, but with {:?}",
                    side.last()
                ));
            }
        }
        let created = ["Create topic: Square", "Create reader for topic: Square"];
        match created.iter().find(|line| !self.subscriber.has(line)) {
            Some(line) => Err(format!("the subscriber did not print: {line}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(publisher: &str, subscriber: &str) -> Sides {
        Sides {
            publisher: Printed::of(publisher),
            subscriber: Printed::of(subscriber),
        }
    }

    #[test]
    fn every_option_of_the_contract_stands_in_a_case() {
        let all: Vec<&str> = CASES
            .iter()
            .flat_map(|case| [case.publisher, case.subscriber])
            .flat_map(|options| options.split(' '))
            .collect();
        for option in [
            "-P",
            "-S",
            "-d",
            "-b",
            "-r",
            "-k",
            "-f",
            "-s",
            "-c",
            "-p",
            "-D",
            "-x",
            "-w",
            "-z",
            "-R",
            "--write-period",
            "--read-period",
            "--time-filter",
            "--lifespan",
            "--num-iterations",
            "--num-instances",
            "--num-topics",
            "--final-instance-state",
            "--access-scope",
            "--coherent",
            "--ordered",
            "--coherent-sample-count",
            "--additional-payload-size",
            "--take-read",
            "--periodic-announcement",
            "--datafrag-size",
            "--cft",
            "--size-modulo",
        ] {
            assert!(all.contains(&option), "{option}");
        }
    }

    fn sample(topic: &str, size: i32) -> String {
        format!("{topic:<10} RED        010 010 [{size}]\n")
    }

    fn looks(rounds: &[&[(&str, i32)]]) -> String {
        let round = |round: &&[(&str, i32)]| -> String {
            let samples = round.iter().map(|&(topic, size)| sample(topic, size));
            format!(
                "{LOOKS_AT_SETS}, iteration 1\n{}",
                samples.collect::<String>()
            )
        };
        rounds.iter().map(round).collect()
    }

    #[test]
    fn a_part_of_a_set_is_seen() {
        let published = "Started Coherent Set\nFinished Coherent Set\n";
        let (one, other) = (("Square", 1), ("Square1", 1));
        let whole = looks(&[&[], &[one; 4], &[one, one, other, other], &[]]);
        let judged = sides(published, &whole);
        assert_eq!(whole_sets(&judged, 2), Ok(()));
        assert_eq!(sets_of_both_topics(&judged), Ok(()));
        assert!(whole_sets(&sides("", &whole), 2).is_err());
        let torn = looks(&[&[one; 4], &[one], &[one, other, other]]);
        assert!(whole_sets(&sides(published, &torn), 2).is_err());
        assert!(sets_of_both_topics(&sides(published, &torn)).is_err());
    }

    #[test]
    fn what_comes_out_of_its_order_is_seen() {
        let printed = |places: &[(&str, i32)]| -> String {
            places
                .iter()
                .map(|&(topic, size)| sample(topic, size))
                .collect()
        };
        let judge = |places: &[(&str, i32)]| in_order_of_writing(&sides("", &printed(places)));
        // Samples of the first topic alone, before the second is matched, may be any.
        let begun = [("Square", 7), ("Square1", 7), ("Square", 8), ("Square1", 8)];
        assert_eq!(judge(&begun), Ok(()));
        assert!(judge(&[("Square1", 7), ("Square1", 8), ("Square", 8)]).is_err());
        assert!(judge(&begun[..1]).is_err());
    }

    #[test]
    fn what_is_known_is_of_a_case_that_there_is() {
        for known in KNOWN {
            assert!(
                CASES.iter().any(|case| case.name == known.case),
                "{}",
                known.case
            );
        }
    }

    #[test]
    fn names_of_cases_differ() {
        for (index, case) in CASES.iter().enumerate() {
            assert!(
                CASES[..index].iter().all(|other| other.name != case.name),
                "{}",
                case.name
            );
        }
    }

    #[test]
    fn a_case_is_judged_by_what_was_printed() {
        let flowing: String = (1..=6)
            .map(|n| format!("Square     RED        {n:03} 010 [{n}]\n"))
            .collect();
        let matched = "on_publication_matched() topic: 'Square'  type: 'ShapeType' : matched readers 1 (change = 1)\n";
        let subscribed = "on_subscription_matched() topic: 'Square'  type: 'ShapeType' : matched writers 1 (change = 1)\n";
        let good = sides(matched, &format!("{subscribed}{flowing}"));
        assert_eq!(red_flows(&good), Ok(()));
        assert!(apart(&good).is_err() && nothing_flows(&good).is_err());
        assert_eq!(from_the_first(&good), Ok(()));
        assert!(not_from_the_first(&good).is_err());
        assert!(repeats(&good).is_err());
        assert!(red_flows(&sides("", &flowing)).is_err());
        assert!(flows(&good, "BLUE").is_err());
        assert!(ends(&good, "DISPOSED").is_err());
        assert!(good.check_ends().is_err());
        let offered =
            "on_offered_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 4 (DEADLINE)\n";
        let requested =
            "on_requested_incompatible_qos() topic: 'Square'  type: 'ShapeType' : 4 (DEADLINE)\n";
        assert_eq!(
            incompatible(&sides(offered, requested), "4 (DEADLINE)"),
            Ok(())
        );
        assert!(incompatible(&sides(offered, ""), "4 (DEADLINE)").is_err());
        assert!(incompatible(&sides(offered, requested), "6 (OWNERSHIP)").is_err());
    }
}
