//! Cases: the options of both sides, and the required output.
//!
//! Every option of the contract occurs in a case. A publisher writes sixty samples in three seconds, long enough for
//! the slowest discovery. Where the contract allows the first samples to be lost, only the order of the arrived ones is
//! judged, not their number.

use super::judge::{
    Judgement, Sides, all_flow, all_that_was_printed_arrives, alternates, apart, ends, few_of_many,
    flows, from_the_first, in_order_of_writing, incompatible, missed, not_from_the_first, only,
    payload, red_flows, repeats, sets_of_both_topics, sizes, three_topics, whole_sets,
};

pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Options of the publisher and of the subscriber, beyond those of every case.
    pub(crate) publisher: &'static str,
    pub(crate) subscriber: &'static str,
    /// Time between two samples in milliseconds, if the case requires one.
    pub(crate) period_ms: Option<u32>,
    /// True when the subscriber starts after a second of samples.
    pub(crate) is_late: bool,
    /// Check of the output.
    pub(crate) judge: fn(&Sides) -> Judgement,
}

pub(crate) const fn case(
    name: &'static str,
    publisher: &'static str,
    subscriber: &'static str,
    judge: fn(&Sides) -> Judgement,
) -> Case {
    Case {
        name,
        publisher,
        subscriber,
        period_ms: None,
        is_late: false,
        judge,
    }
}

pub(crate) const fn every(period_ms: u32, case: Case) -> Case {
    Case {
        period_ms: Some(period_ms),
        ..case
    }
}

pub(crate) const fn late(case: Case) -> Case {
    Case {
        is_late: true,
        ..case
    }
}

/// Time for which a publisher writes.
const WRITING_MS: u32 = 3_000;
/// Time between two samples in milliseconds, where the case does not require another.
const PERIOD_MS: u32 = 50;

impl Case {
    /// Command line of the publisher.
    pub(super) fn publisher(&self) -> String {
        let (options, period_ms) = (self.publisher, self.period_ms.unwrap_or(PERIOD_MS));
        let iterations = WRITING_MS.div_ceil(period_ms);
        format!("-P {options} --write-period {period_ms} --num-iterations {iterations}")
    }

    /// Command line of the subscriber.
    pub(super) fn subscriber(&self) -> String {
        format!("-S {}", self.subscriber)
    }
}

/// All cases, by option: name, options of the publisher, options of the subscriber, check.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    case("reliable", "-r -c RED", "-r", red_flows),
    case("best effort", "-b -c RED", "-b", red_flows),
    case("best effort is less than reliable", "-b -c RED", "-r", |sides| incompatible(sides, "11 (RELIABILITY)")),
    case("default color", "", "", |sides| flows(sides, "BLUE")),
    case("written is printed", "-w -c RED", "-k 0 --read-period 20", all_that_was_printed_arrives),
    every(10, case("KEEP_ALL loses nothing", "-w -k 0 -c RED", "-k 0 --read-period 200",
        all_that_was_printed_arrives)),
    every(10, case("KEEP_LAST keeps the last", "-k 2 -c RED", "-k 2 --read-period 400", few_of_many)),
    every(200, case("read leaves samples", "-c RED", "-R --read-period 20", repeats)),
    case("take of all instances", "-c RED --num-instances 2", "-k 0 --take-read --read-period 400",
        |sides| all_flow(sides, &["RED", "RED1"])),
    case("several instances", "-c RED --num-instances 3", "", |sides| all_flow(sides, &["RED", "RED1", "RED2"])),
    case("several topics", "-c RED --num-topics 3", "--num-topics 3", three_topics),
    case("a size that grows", "-c RED -z 0", "-k 0", |sides| sizes(sides, |before, size| size == before + 1)),
    case("a size that begins again", "-c RED -z 0 --size-modulo 5", "-k 0",
        |sides| sizes(sides, |before, size| size == before % 5 + 1)),
    case("a payload", "-c RED --additional-payload-size 500", "", payload),
    // Fast DDS acknowledged every sample within 5 ms and sometimes gave the reader only the last. It seems to free the
    // place in a history of depth 1 at the next sample's first fragment, so for 11 of 50 ms nothing can be read. A
    // reader that polls each 100 ms in step with the writer may hit that gap every time.
    case("a payload in fragments", "-c RED --additional-payload-size 50000", "--read-period 20", payload),
    case("instances unregistered", "-c RED --final-instance-state u", "", |sides| ends(sides, "NO_WRITERS")),
    case("instances disposed", "-c RED --final-instance-state d", "", |sides| ends(sides, "DISPOSED")),
    case("a writer that leaves", "-c RED", "", |sides| ends(sides, "NO_WRITERS")),
    case("a filter of colors", "-c RED --num-instances 2", "-c RED1",
        |sides| only(sides, |sample| sample.color == "RED1")),
    // Options are separated by blanks, so the expression has none.
    case("a filter in words", "-c RED -z 0 --size-modulo 9", "--cft shapesize<=3",
        |sides| only(sides, |sample| sample.size <= 3)),
    case("a partition in common", "-c RED -p north", "-p north", red_flows),
    case("a partition with wildcards", "-c RED -p north-7", "-p nor*-[5-9]", red_flows),
    case("a publisher's partition with wildcards", "-c RED -p nor?h", "-p north", red_flows),
    case("partitions apart", "-c RED -p north", "-p south", apart),
    case("a deadline kept", "-c RED -f 1000", "-f 2000",
        |sides| red_flows(sides).and_then(|()| missed(sides, [false, false]))),
    every(700, case("a deadline missed on both sides", "-c RED -f 100", "-f 150",
        |sides| missed(sides, [true, true]))),
    case("a deadline longer than requested", "-c RED -f 1000", "-f 500",
        |sides| incompatible(sides, "4 (DEADLINE)")),
    case("exclusive ownership", "-c RED -s 3", "-s 0", red_flows),
    case("shared is not exclusive", "-c RED -s -1", "-s 0", |sides| incompatible(sides, "6 (OWNERSHIP)")),
    late(case("history for a late subscriber", "-D l -k 0 -c RED -z 0", "-D l -k 0", from_the_first)),
    late(case("no history for a volatile subscriber", "-D l -k 0 -c RED -z 0", "-D v -k 0", not_from_the_first)),
    case("volatile is less than transient-local", "-D v -c RED", "-D l",
        |sides| incompatible(sides, "2 (DURABILITY)")),
    case("transient", "-D t -c RED", "-D t", red_flows),
    case("persistent", "-D p -c RED", "-D p", red_flows),
    case("XCDR2", "-x 2 -c RED", "-x 2", red_flows),
    case("representations apart", "-x 1 -c RED", "-x 2", |sides| incompatible(sides, "23 (DATA_REPRESENTATION)")),
    every(20, case("a time-based filter", "-c RED", "-k 0 --time-filter 500 --read-period 50", few_of_many)),
    every(20, case("a short life", "-c RED -k 0 -z 0 --lifespan 100", "-k 0 --read-period 600", few_of_many)),
    case("access of a topic", "-c RED --access-scope t", "--access-scope t", red_flows),
    case("access of instances is less than of a topic", "-c RED --access-scope i", "--access-scope t",
        |sides| incompatible(sides, "3 (PRESENTATION)")),
    case("ordered access of a topic", "-c RED --access-scope t --ordered --num-instances 2",
        "-k 0 --access-scope t --ordered --take-read", alternates),
    case("coherent sets", "-c RED -k 0 --access-scope t --coherent --coherent-sample-count 3",
        "-k 0 --access-scope t --coherent --read-period 40",
        |sides| red_flows(sides).and_then(|()| whole_sets(sides, 3))),
    case("coherent sets of a group",
        "-c RED -k 0 --num-topics 2 --access-scope g --coherent --coherent-sample-count 4",
        "-k 0 --num-topics 2 --access-scope g --coherent --read-period 40",
        |sides| whole_sets(sides, 4).and_then(|()| sets_of_both_topics(sides))),
    case("coherent sets within an instance are its samples",
        "-c RED -k 0 --access-scope i --coherent --coherent-sample-count 3",
        "-k 0 --access-scope i --coherent", red_flows),
    case("coherent is more than not", "-c RED --access-scope t", "--access-scope t --coherent",
        |sides| incompatible(sides, "3 (PRESENTATION)")),
    case("ordered access of a group", "-c RED -k 0 -z 0 --num-topics 2 --access-scope g --ordered",
        "-k 0 --num-topics 2 --access-scope g --ordered --read-period 200", in_order_of_writing),
    case("announcements in a hurry", "-c RED --periodic-announcement 500", "--periodic-announcement 500",
        red_flows),
    case("another domain", "-d 3 -c RED", "-d 3", red_flows),
    case("domains apart", "-d 3 -c RED", "-d 4", apart),
    case("fragments of a chosen size", "-c RED --datafrag-size 1000 --additional-payload-size 5000", "", payload),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_contract_stands_in_a_case() {
        let all: Vec<String> = CASES
            .iter()
            .flat_map(|case| [case.publisher(), case.subscriber()])
            .flat_map(|options| options.split(' ').map(String::from).collect::<Vec<_>>())
            .collect();
        let options = "-P -S -d -b -r -k -f -s -c -p -D -x -w -z -R --write-period --read-period \
                       --time-filter --lifespan --num-iterations --num-instances --num-topics \
                       --final-instance-state --access-scope --coherent --ordered --coherent-sample-count \
                       --additional-payload-size --take-read --periodic-announcement --datafrag-size --cft \
                       --size-modulo";
        for option in options.split(' ') {
            assert!(all.iter().any(|it| it == option), "{option}");
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
