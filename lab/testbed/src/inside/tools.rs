//! Programs in a guest, Debian's and isolane's, and the counters of a network device's driver.

use std::collections::BTreeMap;
use std::process::Command;

use isolane_support::{Result, command};

/// Folder of programs in a guest; the first process has no PATH.
const PROGRAMS: &str = "/usr/bin";

/// Command of a guest's program.
pub(crate) fn program(name: &str) -> Command {
    let mut command = Command::new(format!("{PROGRAMS}/{name}"));
    command.env("PATH", PROGRAMS);
    command
}

/// Runs a program with these blank-separated arguments and returns its output; the error has its message.
pub(crate) fn run(name: &str, arguments: &str) -> Result<String> {
    let mut command = program(name);
    command.args(arguments.split_whitespace());
    command::quiet_output(&mut command)
}

/// Frames of a device's queues, by the driver's names, and its drops.
pub(crate) type Counters = BTreeMap<String, u64>;

/// Counters of queues, drops and errors in the output of `ethtool --statistics`.
pub(crate) fn counters(printed: &str) -> Counters {
    let lines = printed.lines().filter_map(|line| line.split_once(':'));
    let counters = lines.filter_map(|(name, value)| {
        let name = name.trim();
        let is_wanted = name.contains("_queue_") && name.ends_with("_packets")
            || name.contains("drop")
            || name.contains("no_buffer")
            || name.contains("missed")
            || name.contains("error")
            || name.contains("failed");
        let value = value.trim().parse().ok()?;
        is_wanted.then(|| (name.to_owned(), value))
    });
    counters.collect()
}

/// Differences of two readings, without unchanged counters.
pub(crate) fn between(before: &Counters, after: &Counters) -> Counters {
    let grown = after.iter().filter_map(|(name, value)| {
        let before = before.get(name).copied().unwrap_or(0);
        let more = value.saturating_sub(before);
        (more > 0).then(|| (name.clone(), more))
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "NIC statistics:\n     rx_packets: 90\n     tx_dropped: 0\n     \
        rx_no_buffer_count: 2\n     tx_queue_0_packets: 40\n     tx_queue_0_bytes: 9\n     \
        rx_queue_1_packets: 50\n     rx_queue_1_drops: 3\n";

    #[test]
    fn queues_and_drops_are_read() {
        let counters = counters(PRINTED);
        assert_eq!(counters["tx_queue_0_packets"], 40);
        assert_eq!(counters["rx_queue_1_drops"], 3);
        assert_eq!(counters["rx_no_buffer_count"], 2);
        assert!(!counters.contains_key("tx_queue_0_bytes"));
        assert!(!counters.contains_key("rx_packets"));
    }

    #[test]
    fn only_counters_that_grew_between_two_reads_are_returned() {
        let before = counters(PRINTED);
        let after = counters(&PRINTED.replace("rx_queue_1_packets: 50", "rx_queue_1_packets: 57"));
        let grown = between(&before, &after);
        assert_eq!(grown, Counters::from([("rx_queue_1_packets".into(), 7)]));
        assert!(between(&after, &after).is_empty());
    }
}
