//! Cases: the options of both sides, and the required output.
//!
//! Every option of the contract occurs in a case. A publisher writes sixty samples in three seconds, long enough for
//! the slowest discovery. Where the contract allows the first samples to be lost, only the order of the arrived ones is
//! judged, not their number.

use super::judge::{
    Judgement, Sides, all_that_was_printed_arrives, alternates, apart, ends, few_of_many, flows,
    from_the_first, in_order_of_writing, incompatible, missed, not_from_the_first, only, payload,
    red_flows, repeats, sets_of_both_topics, sizes, three_topics, whole_sets, without_gaps,
};

/// A case.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Options of the publisher, and of the subscriber.
    pub(super) publisher: &'static str,
    pub(super) subscriber: &'static str,
    /// The subscriber starts after a second of samples.
    pub(super) is_late: bool,
    /// Check of the output.
    pub(super) judge: fn(&Sides) -> Judgement,
}

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

/// All cases, by option.
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
    // Fast DDS acknowledged every sample within 5 ms and sometimes gave the reader only the last. It seems to free the
    // place in a history of depth 1 at the next sample's first fragment, so for 11 of 50 ms nothing can be read. A
    // reader that polls each 100 ms in step with the writer may hit that gap every time.
    case(
        "a payload in fragments",
        "-P -c RED --additional-payload-size 50000 --write-period 50 --num-iterations 60",
        "-S --read-period 20",
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
        // Options are separated by blanks, so the expression has none.
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
        "a deadline longer than requested",
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
