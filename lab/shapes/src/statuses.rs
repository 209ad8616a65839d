//! Listeners that print statuses: those that tests wait for on standard output, missed samples of a reader on standard
//! error.

use std::time::{Duration, Instant};

use isolane::{BuildError, DataReader, DataWriter};

use crate::printed::{policy, status};
use crate::shape::ShapeType;

/// Minimum interval of a reader's lines about missed samples.
const MISSED_PERIOD: Duration = Duration::from_secs(1);

pub(crate) fn listen_to_writer(
    writer: &DataWriter<ShapeType>,
    topic: &str,
) -> Result<(), BuildError> {
    let name = status("on_publication_matched", topic);
    writer.on_publication_matched(move |status| {
        let (count, change) = (status.current_count, status.current_count_change);
        say!("{name} : matched readers {count} (change = {change})");
    })?;
    let name = status("on_offered_incompatible_qos", topic);
    writer.on_offered_incompatible_qos(move |status| {
        say!("{name} : {}", policy(status.last_policy_id));
    })?;
    let name = status("on_offered_deadline_missed", topic);
    writer.on_offered_deadline_missed(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        say!("{name} : (total = {total}, change = {change})");
    })?;
    let name = status("on_liveliness_lost", topic);
    writer.on_liveliness_lost(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        say!("{name} : (total = {total}, change = {change})");
    })
}

pub(crate) fn listen_to_reader(
    reader: &DataReader<ShapeType>,
    topic: &str,
) -> Result<(), BuildError> {
    let name = status("on_subscription_matched", topic);
    reader.on_subscription_matched(move |status| {
        let (count, change) = (status.current_count, status.current_count_change);
        say!("{name} : matched writers {count} (change = {change})");
    })?;
    let name = status("on_requested_incompatible_qos", topic);
    reader.on_requested_incompatible_qos(move |status| {
        say!("{name} : {}", policy(status.last_policy_id));
    })?;
    let name = status("on_requested_deadline_missed", topic);
    reader.on_requested_deadline_missed(move |status| {
        let (total, change) = (status.total_count, status.total_count_change);
        say!("{name} : (total = {total}, change = {change})");
    })?;
    let name = status("on_liveliness_changed", topic);
    reader.on_liveliness_changed(move |status| {
        let (alive, not_alive) = (status.alive_count, status.not_alive_count);
        say!("{name} : (alive = {alive}, not_alive = {not_alive})");
    })?;
    let mut line = MissedLine::new(status("on_sample_lost", topic));
    reader.on_sample_lost(move |status| line.print(Instant::now(), status.total_count, ""))?;
    let mut line = MissedLine::new(status("on_sample_rejected", topic));
    reader.on_sample_rejected(move |status| {
        let reason = status.last_reason.map(|reason| format!(", {reason:?}"));
        line.print(
            Instant::now(),
            status.total_count,
            &reason.unwrap_or_default(),
        );
    })
}

/// Rate-limited line about missed samples, at most one per [`MISSED_PERIOD`].
struct MissedLine {
    name: String,
    printed: Option<Instant>,
    /// Count printed last.
    total: u64,
}

impl MissedLine {
    fn new(name: String) -> Self {
        Self {
            name,
            printed: None,
            total: 0,
        }
    }

    fn print(&mut self, now: Instant, total: u64, reason: &str) {
        if let Some(line) = self.next(now, total, reason) {
            warn!("{line}");
        }
    }

    /// Returns the line if it is due.
    fn next(&mut self, now: Instant, total: u64, reason: &str) -> Option<String> {
        if self.printed.is_some_and(|at| now - at < MISSED_PERIOD) {
            return None;
        }
        let (name, change) = (&self.name, total - self.total);
        let line = format!("{name} : (total = {total}, change = {change}{reason})");
        (self.printed, self.total) = (Some(now), total);
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_a_reader_does_not_get_are_a_line_a_second_with_their_count_and_reason() {
        let mut line = MissedLine::new(status("on_sample_rejected", "Square"));
        let begin = Instant::now();
        let first = line.next(begin, 3, ", TooLarge").expect("the first");
        assert!(first.contains("'Square'"), "{first}");
        assert!(
            first.ends_with("(total = 3, change = 3, TooLarge)"),
            "{first}"
        );
        assert_eq!(line.next(begin + MISSED_PERIOD / 2, 7, ", TooLarge"), None);
        let second = line.next(begin + MISSED_PERIOD, 9, ", TooLarge");
        assert!(second.is_some_and(|line| line.contains("total = 9, change = 6")));
    }
}
