//! Tests of values that are allowed but probably a mistake.

use isolane_model::{Severity, Source};

use super::{system, topic_with};

#[test]
fn a_deadline_beyond_the_period_is_a_warning() {
    let system = system(&topic_with("period = \"1ms\"\ndeadline = \"2ms\""));
    let [warning] = system.warnings() else {
        panic!("{:#?}", system.warnings())
    };
    assert_eq!(warning.severity(), Severity::Warning);
    assert_eq!(warning.line(), Some(9));
    assert!(warning.what().contains("longer than the period"));
}

#[test]
fn a_budget_is_to_have_room_for_all_senders() {
    let text = |capacity: u32| {
        topic_with(&format!(
            "period = \"1ms\"\nbudget = {{capacity = {capacity}, period = \"10ms\"}}"
        ))
        .replace("from = [\"left\"]", "from = [\"left\", \"right\"]")
    };
    let read = system(&text(19));
    let warning = &read.warnings()[0];
    assert!(warning.help().expect("help").contains("to 20 or more"));
    assert!(
        format!("{warning:#}").contains("from 2 hosts"),
        "{warning:#}"
    );
    assert!(system(&text(20)).warnings().is_empty());
}

#[test]
fn a_budget_below_what_the_topic_sends_is_a_warning() {
    let lines = "period = \"1ms\"\nbudget = {capacity = 9, period = \"10ms\"}";
    let system = system(&topic_with(lines));
    assert!(
        system.warnings()[0]
            .help()
            .expect("help")
            .contains("to 10 or more")
    );
    assert_eq!(
        system.topics()[0]
            .budget
            .as_ref()
            .expect("given")
            .over
            .source,
        Source::Default
    );
}

#[test]
fn transient_local_without_reliability_is_a_warning() {
    let lines = "reliability = \"best-effort\"\ndurability = \"transient-local\"";
    assert_eq!(system(&topic_with(lines)).warnings().len(), 1);
    assert!(
        system(&topic_with("durability = \"transient-local\""))
            .warnings()
            .is_empty()
    );
}
