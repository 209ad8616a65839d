//! Ledgers as text: the main count, and all other counts that are not zero. Their names are those of `isolane top`.

use std::time::Duration;

use isolane::observe::{Counts, protocol_counts, reader_counts, writer_counts};
use isolane::{Participant, ReaderLedger, ResponseDeadline, WriterLedger};
use isolane_model::format_duration;

use crate::output::{count_of, tell};

/// Text of a reader's ledger.
pub(super) fn of_reader(ledger: &ReaderLedger) -> String {
    let mut counts = reader_counts(ledger);
    // `accounted` is the sum of the other counts except `waiting`, `duplicates`, `deferred` and `skipped`.
    counts.remove("accounted");
    words("delivered", &counts)
}

/// Text of a topic's response deadline, and of the samples that missed it.
pub(super) fn of_response(topic: &str, response: &ResponseDeadline) -> String {
    let deadline = format_duration(response.deadline);
    let missed = count_of(response.missed, "sample");
    let late = response.lateness_max.as_micros().try_into();
    let late = format_duration(Duration::from_micros(late.unwrap_or(u64::MAX)));
    let during = match &response.missed_during {
        None => String::from("none"),
        Some(job) => format!("`{job}`"),
    };
    match response.missed {
        0 => format!("{topic}: no sample missed the deadline of {deadline}"),
        _ => format!(
            "{topic}: {missed} missed the deadline of {deadline}, by at most {late}. Job at the last miss: {during}"
        ),
    }
}

/// Text of a writer's ledger.
pub(super) fn of_writer(ledger: &WriterLedger) -> String {
    words("written", &writer_counts(ledger))
}

/// Prints a participant's jobs, ledgers and counters.
pub(super) fn tell_all(participant: &Participant) {
    let report = participant.report();
    tell(report.to_string().trim_end());
    for writer in &report.writers {
        tell(format!(
            "writer {}: {}",
            writer.topic,
            of_writer(&writer.ledger)
        ));
    }
    for reader in &report.readers {
        tell(format!(
            "reader {}: {}",
            reader.topic,
            of_reader(&reader.ledger)
        ));
    }
    let datagrams = report.datagrams.to_string();
    tell(format!("datagrams:\n{}", datagrams.trim_end()));
    let protocol = words("messages", &protocol_counts(&report.counters));
    tell(format!("protocol: {protocol}"));
}

/// Lists the counts that are not zero. The count with the name `first` comes first, even if it is zero.
fn words(first: &str, counts: &Counts) -> String {
    let mut words = vec![format!("{} {first}", counts.get(first).unwrap_or(&0))];
    let others = counts
        .iter()
        .filter(|(name, count)| **count > 0 && *name != first);
    words.extend(others.map(|(name, count)| format!("{count} {}", name.replace('_', " "))));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_that_is_not_zero_has_a_word() {
        assert_eq!(of_reader(&ReaderLedger::default()), "0 delivered");
        let reader = ReaderLedger {
            accounted: 9,
            delivered: 3,
            lost: 4,
            evicted: 2,
            skipped: 5,
            ..ReaderLedger::default()
        };
        assert_eq!(
            of_reader(&reader),
            "3 delivered, 2 evicted, 4 lost, 5 skipped"
        );
        let writer = WriterLedger {
            written: 7,
            sent: 5,
            evicted_unsent: 2,
            repaired: 1,
            ..WriterLedger::default()
        };
        assert_eq!(
            of_writer(&writer),
            "7 written, 2 evicted unsent, 1 repaired, 5 sent"
        );
    }
}
