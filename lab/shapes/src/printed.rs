//! Output lines that tests wait for, with the required wording.

use isolane::{InstanceState, PolicyId};
use log::{LevelFilter, Log, Metadata, Record};

use crate::shape::ShapeType;

/// Line of a written or received sample.
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

/// Line of an instance's end; `None` if it has not ended.
pub(crate) fn instance_end(topic: &str, color: &str, state: InstanceState) -> Option<String> {
    let state = match state {
        InstanceState::Alive => return None,
        InstanceState::NotAliveDisposed => "NOT_ALIVE_DISPOSED_INSTANCE_STATE",
        InstanceState::NotAliveNoWriters => "NOT_ALIVE_NO_WRITERS_INSTANCE_STATE",
    };
    Some(format!("{topic:<10} {color:<10} {state}"))
}

/// Line of a writer's USER_DATA, TOPIC_DATA and GROUP_DATA. Beyond the contract.
pub(crate) fn data(topic: &str, [user, topic_data, group]: [&[u8]; 3]) -> String {
    format!(
        "data of a writer of {topic}: user '{}' topic '{}' group '{}'",
        user.escape_ascii(),
        topic_data.escape_ascii(),
        group.escape_ascii()
    )
}

/// First half of a status's line.
pub(crate) fn status(name: &str, topic: &str) -> String {
    format!("{name}() topic: '{topic}'  type: 'ShapeType'")
}

/// Policy in lines about incompatible QoS.
pub(crate) fn policy(policy: Option<PolicyId>) -> String {
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
}
