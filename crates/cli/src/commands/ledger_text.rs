//! Ledgers as text: the first count, and all others that are not zero.

use std::time::Duration;

use isolane::{Counters, Participant, ReaderLedger, ResponseDeadline, WriterLedger};
use isolane_model::format_duration;

use crate::output::{count_of, tell};

pub(super) fn of_reader(ledger: &ReaderLedger) -> String {
    let ReaderLedger {
        // Sum of the others except `waiting`, `duplicates`, `deferred` and `skipped`.
        accounted: _,
        delivered,
        available,
        lost,
        irrelevant,
        evicted,
        rejected,
        too_large,
        expired,
        time_filtered,
        held,
        not_owner,
        content_filtered,
        outdated,
        incomplete,
        in_sets,
        set_ends,
        unregistered,
        purged,
        waiting,
        duplicates,
        deferred,
        skipped,
    } = *ledger;
    let others = [
        (available, "not taken"),
        (lost, "lost"),
        (irrelevant, "that their writers call irrelevant"),
        (evicted, "evicted"),
        (rejected, "rejected"),
        (too_large, "too large for this reader"),
        (expired, "expired"),
        (time_filtered, "that the time-based filter dropped"),
        (held, "held back by the filter"),
        (not_owner, "of writers that do not own"),
        (content_filtered, "that did not pass the content filter"),
        (outdated, "older than what was seen"),
        (incomplete, "of incomplete sets"),
        (in_sets, "of sets that go on"),
        (set_ends, "ends of sets"),
        (unregistered, "that unregister an instance and end none"),
        (purged, "let go after the end of their instance"),
        (waiting, "waiting for earlier ones"),
        (skipped, "from before this reader began"),
        (duplicates, "duplicates"),
        (deferred, "deferred"),
    ];
    words((delivered, "delivered"), &others)
}

/// Text of a topic's response deadline and its misses.
pub(super) fn of_response(topic: &str, response: &ResponseDeadline) -> String {
    let deadline = format_duration(response.deadline);
    let missed = count_of(response.missed, "sample");
    let late = format_duration(Duration::from_micros(
        response
            .lateness_max
            .as_micros()
            .try_into()
            .unwrap_or(u64::MAX),
    ));
    let during = match &response.missed_during {
        None => String::from("none"),
        Some(job) => format!("`{job}`"),
    };
    match response.missed {
        0 => format!("{topic}: no sample missed the deadline of {deadline}"),
        _ => format!(
            "{topic}: {missed} missed the deadline of {deadline}, the latest by {late}. Job at the last miss: {during}"
        ),
    }
}

/// Text of a writer's ledger, and of its control messages.
pub(super) fn of_writer(ledger: &WriterLedger) -> String {
    let WriterLedger {
        written,
        set_ends,
        sent,
        unmatched,
        content_filtered,
        evicted_unsent,
        expired_unsent,
        pending,
        replaced,
        expired,
        refused,
        repaired,
        history,
        gaps,
        heartbeats,
        fragments,
        fragments_repaired,
    } = *ledger;
    let others = [
        (set_ends, "ends of sets"),
        (sent, "sent"),
        (unmatched, "unmatched"),
        (content_filtered, "that no reader wants"),
        (evicted_unsent, "evicted unsent"),
        (expired_unsent, "expired unsent"),
        (pending, "pending"),
        (replaced, "replaced"),
        (expired, "expired"),
        (refused, "refused"),
        (repaired, "repaired"),
        (history, "sent from the history"),
        (gaps, "answered with a gap"),
        (heartbeats, "heartbeats"),
        (fragments, "fragments"),
        (fragments_repaired, "fragments repaired"),
    ];
    words((written, "written"), &others)
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
    tell(format!(
        "datagrams:\n{}",
        report.datagrams.to_string().trim_end()
    ));
    tell(format!("protocol: {}", of_counters(&report.counters)));
}

fn of_counters(counters: &Counters) -> String {
    let Counters {
        messages,
        malformed_messages,
        malformed_submessages,
        skipped_submessages,
        for_others,
        unmatched_data,
        unmatched_acknacks,
        malformed_announcements,
        announcements_dropped,
        participants_refused,
        endpoints_refused,
        matches_refused,
        shares_exceeded,
        participants_displaced,
        destinations_full,
        buffer_too_small,
        leases_expired,
        leases_shortened,
        instance_ends_unseen,
        answers_withheld,
        unvalidated_limited,
        discovery_limited,
        answers_elsewhere,
        readers_unvalidated,
        readers_silent,
        encapsulations_refused,
        expired_on_arrival,
        samples_too_large,
        unwatched,
        octets_cut,
        announcements_replaced,
        announcements_ignored,
        fragments_unused,
        assemblies_refused,
        assemblies_dropped,
        groups_unnumbered,
        static_disagreements,
        static_impostors,
        jumps_doubted,
    } = *counters;
    let others = [
        (malformed_messages, "malformed messages"),
        (malformed_submessages, "malformed submessages"),
        (skipped_submessages, "skipped submessages"),
        (for_others, "submessages for others"),
        (unmatched_data, "unmatched data"),
        (unmatched_acknacks, "unmatched acknacks"),
        (malformed_announcements, "malformed announcements"),
        (announcements_dropped, "announcements dropped"),
        (participants_refused, "participants refused"),
        (endpoints_refused, "endpoints refused"),
        (matches_refused, "matches refused"),
        (
            shares_exceeded,
            "endpoints or matches beyond a participant's share",
        ),
        (participants_displaced, "unproven participants displaced"),
        (destinations_full, "readers beyond the destinations"),
        (buffer_too_small, "buffers too small"),
        (leases_expired, "leases expired"),
        (leases_shortened, "leases shortened"),
        (instance_ends_unseen, "ends of instances unseen"),
        (answers_withheld, "answers withheld from the unproven"),
        (
            unvalidated_limited,
            "answers beyond the rate for addresses not validated",
        ),
        (discovery_limited, "times discovery waited for its rate"),
        (answers_elsewhere, "acknacks from addresses not announced"),
        (readers_unvalidated, "readers at addresses not validated"),
        (readers_silent, "silent readers given up"),
        (
            encapsulations_refused,
            "samples refused for their encapsulation",
        ),
        (expired_on_arrival, "samples expired on arrival"),
        (samples_too_large, "samples too large for their reader"),
        (unwatched, "samples of instances that are not watched"),
        (octets_cut, "user data cut"),
        (
            announcements_replaced,
            "announcements replaced by newer ones",
        ),
        (announcements_ignored, "announcements ignored"),
        (fragments_unused, "fragments of no use"),
        (
            assemblies_refused,
            "fragments of samples that found no place",
        ),
        (assemblies_dropped, "incomplete samples that gave way"),
        (groups_unnumbered, "writers that do not number their group"),
        (static_disagreements, "descriptions that disagree"),
        (
            static_impostors,
            "datagrams in a described name from elsewhere",
        ),
        (jumps_doubted, "sequence numbers far ahead, held back"),
    ];
    words((messages, "messages"), &others)
}

/// Lists counts: the first always, the others unless they are zero.
fn words(first: (u64, &str), others: &[(u64, &str)]) -> String {
    let others = others.iter().copied().filter(|(count, _)| *count > 0);
    let words = std::iter::once(first).chain(others);
    let words: Vec<String> = words
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
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
            "3 delivered, 4 lost, 2 evicted, 5 from before this reader began"
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
            "7 written, 5 sent, 2 evicted unsent, 1 repaired"
        );
    }
}
