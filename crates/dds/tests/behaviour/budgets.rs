//! Tests of budgets that the datapath cannot enforce: a warning reports this, and nothing else changes.

use std::{num::NonZeroU32, time::Duration};

use isolane::{
    Budget, BuildError, DataReader, InterfaceRateLimit, Level, Network, OverBudget, Participant,
    Qos, RateLimit, RateLimitError,
};

use crate::support::Message;

fn alone() -> Participant {
    let network = Network::new(1);
    let builder = Participant::builder(0).memory(&network, [10, 0, 0, 1]);
    builder.build().unwrap()
}

fn budget(capacity: u32, period: Duration) -> Budget {
    Budget {
        capacity: NonZeroU32::new(capacity).unwrap(),
        period,
    }
}

const PERIOD: Duration = Duration::from_millis(10);

fn reader(
    of: &Participant,
    topic: &str,
    budget: Budget,
) -> Result<DataReader<Message>, BuildError> {
    of.create_reader(topic, &Qos::reliable().budget(budget, OverBudget::Drop))
}

#[test]
fn a_budget_that_is_not_kept_is_said_while_its_reader_is_there() {
    let participant = alone();
    let reader = reader(&participant, "Reports", budget(20, PERIOD)).unwrap();
    let warnings = participant.warnings();
    let said = warnings
        .iter()
        .find(|warning| warning.contains("is not enforced"));
    let said = said.unwrap_or_else(|| panic!("{warnings:?}"));
    for part in [
        "topic Reports",
        "20 datagrams in 10ms",
        "datapath memory",
        "xdp",
    ] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    assert!(reader.flow().is_none());
    drop(reader);
    assert!(
        participant
            .warnings()
            .iter()
            .all(|warning| !warning.contains("enforced"))
    );
}

#[test]
fn a_reader_whose_budget_is_not_kept_takes_what_comes() {
    let participant = alone();
    let qos = Qos::reliable().keep_all().max_samples(64);
    let writer = participant.create_writer::<Message>("All", &qos).unwrap();
    let little = qos.budget(budget(1, Duration::from_secs(10)), OverBudget::Drop);
    let reader = participant
        .create_reader::<Message>("All", &little)
        .unwrap();
    for number in 0..40 {
        writer.write(&Message::number(number)).unwrap();
    }
    let all = participant.run_until(Duration::from_secs(20), || reader.available() == 40);
    assert!(all, "{:?}", reader.ledger());
}

#[test]
fn what_is_changed_later_is_refused_by_name() {
    let participant = alone();
    let rate_limit = |period| RateLimit {
        budget: budget(5, period),
        over: OverBudget::Demote,
    };
    let unsupported = Err(RateLimitError::Unsupported { datapath: "memory" });
    let with = reader(&participant, "With", budget(20, PERIOD)).unwrap();
    assert_eq!(with.set_budget(Some(rate_limit(PERIOD))), unsupported);
    assert_eq!(with.set_budget(None), unsupported);
    let without = participant.create_reader::<Message>("Without", &Qos::reliable());
    let refused = without.unwrap().set_budget(Some(rate_limit(PERIOD)));
    assert_eq!(refused, Err(RateLimitError::NoFlow));
    let level = Level::new(0).unwrap();
    assert_eq!(
        participant.set_level_limit(level, Some(rate_limit(PERIOD))),
        unsupported
    );

    let too_short = Duration::from_micros(99);
    let period = RateLimitError::Period { period: too_short };
    assert_eq!(with.set_budget(Some(rate_limit(too_short))), Err(period));
    let of_interface =
        |topics, foreign| participant.set_interface_limit(InterfaceRateLimit { topics, foreign });
    assert_eq!(of_interface(None, Some(budget(5, too_short))), Err(period));
    assert_eq!(
        of_interface(Some((budget(5, PERIOD), 4)), None),
        unsupported
    );
    let reserve = RateLimitError::Reserve {
        reserved: 5,
        capacity: 5,
    };
    assert_eq!(
        of_interface(Some((budget(5, PERIOD), 5)), None),
        Err(reserve)
    );
}

#[test]
fn a_budget_that_cannot_be_kept_is_refused_when_the_reader_is_created() {
    let participant = alone();
    for period in [Duration::from_micros(99), Duration::from_millis(10_001)] {
        let refused = reader(&participant, "Never", budget(20, period)).err();
        let said = refused.expect("it is refused").to_string();
        assert!(said.contains("from 100 us to 10 s"), "{said}");
    }
    for period in [Duration::from_micros(100), Duration::from_secs(10)] {
        reader(&participant, "Always", budget(20, period)).unwrap();
    }
}

#[test]
fn a_budget_means_nothing_to_a_writer() {
    let participant = alone();
    let qos = Qos::reliable().budget(budget(1, PERIOD), OverBudget::Drop);
    let _writer = participant.create_writer::<Message>("Own", &qos).unwrap();
    assert!(
        participant
            .warnings()
            .iter()
            .all(|warning| !warning.contains("enforced"))
    );
}
