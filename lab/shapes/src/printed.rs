//! Output lines that tests wait for, with the required wording.

use std::fmt::Display;
use std::time::{Duration, Instant};

use isolane::{BuildError, DataReader, DataWriter, InstanceState, PolicyId};
use log::{LevelFilter, Log, Metadata, Record};

use crate::shape::ShapeType;

/// Formats the line of a written or received sample.
pub(crate) fn sample(topic: &str, shape: &ShapeType) -> String {
    let ShapeType {
        color,
        x,
        y,
        shapesize,
        additional_payload_size,
    } = shape;
    let payload = match additional_payload_size.last() {
        Some(last) => format!(" {{{last}}}"),
        None => String::new(),
    };
    format!("{topic:<10} {color:<10} {x:03} {y:03} [{shapesize}]{payload}")
}

/// Formats the line of an instance's end; `None` if the instance is alive.
pub(crate) fn instance_end(topic: &str, color: &str, state: InstanceState) -> Option<String> {
    let state = match state {
        InstanceState::Alive => return None,
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
    };
    Some(format!("{topic:<10} {color:<10} {state}"))
}

/// Formats the line of a writer's USER_DATA, TOPIC_DATA and GROUP_DATA, which no test requires.
pub(crate) fn data(topic: &str, [user, topic_data, group]: [&[u8]; 3]) -> String {
    format!(
        "data of a writer of {topic}: user '{}' topic '{}' group '{}'",
        user.escape_ascii(),
        topic_data.escape_ascii(),
        group.escape_ascii()
    )
}

/// Formats the first half of the line of a status.
fn status(name: &str, topic: &str) -> String {
    format!("{name}() topic: '{topic}'  type: 'ShapeType'")
}

/// Formats a policy for lines about incompatible QoS.
fn policy(policy: Option<PolicyId>) -> String {
    policy.map_or_else(
        || "0 (UNKNOWN)".to_owned(),
        |policy| format!("{} ({})", policy.0, policy.name()),
    )
}

struct Printer;

/// Installs a logger that prints the library's records up to `level` on standard error.
pub(crate) fn install_log(level: LevelFilter) {
    if log::set_logger(&Printer).is_ok() {
        log::set_max_level(level);
    }
}

impl Log for Printer {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("isolane")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            warn!("{}: {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// Minimum time between a reader's lines about missed samples.
const MISSED_PERIOD: Duration = Duration::from_secs(1);

/// Prints the line of a status that has a count.
fn say_count(name: &str, total: impl Display, change: impl Display) {
    say!("{name} : (total = {total}, change = {change})");
}

/// Prints the statuses of a writer.
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
        say_count(&name, status.total_count, status.total_count_change);
    })?;
    let name = status("on_liveliness_lost", topic);
    writer.on_liveliness_lost(move |status| {
        say_count(&name, status.total_count, status.total_count_change);
    })
}

/// Prints the statuses of a reader, and its missed samples on standard error.
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
        say_count(&name, status.total_count, status.total_count_change);
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
    /// Count in the last printed line.
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

    fn shape(payload: &[u8]) -> ShapeType {
        ShapeType {
            color: "BLUE".try_into().unwrap(),
            x: 7,
            y: 123,
            shapesize: 20,
            additional_payload_size: payload.to_vec(),
        }
    }

    #[test]
    fn a_sample_is_printed_as_the_contract_has_it() {
        assert_eq!(
            sample("Square", &shape(&[])),
            "Square     BLUE       007 123 [20]"
        );
        assert_eq!(
            sample("Square", &shape(&[1, 255])),
            "Square     BLUE       007 123 [20] {255}"
        );
    }

    #[test]
    fn the_end_of_an_instance_says_why() {
        let end = |state| instance_end("Square", "BLUE", state);
        assert_eq!(end(InstanceState::Alive), None);
        assert_eq!(
            end(InstanceState::NotAliveDisposed).unwrap(),
            "Square     BLUE       NOT_ALIVE_DISPOSED_INSTANCE_STATE"
        );
        assert_eq!(
            end(InstanceState::NotAliveNoWriters).unwrap(),
            "Square     BLUE       NOT_ALIVE_NO_WRITERS_INSTANCE_STATE"
        );
    }

    #[test]
    fn statuses_have_the_two_blanks_of_the_contract() {
        assert_eq!(
            status("on_publication_matched", "Square"),
            "on_publication_matched() topic: 'Square'  type: 'ShapeType'"
        );
        assert_eq!(policy(Some(PolicyId::DEADLINE)), "4 (DEADLINE)");
    }

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
