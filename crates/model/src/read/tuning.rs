//! Reader of `[tune]`, or of a file that contains only its settings.

use isolane_wire::level::Level;
use toml::de::DeValue;

use crate::limits::MAX_TUNED_NUMBER;
use crate::tuning::{Isolation, Steering, Transmit, Tuning};

use super::report::{Report, Wrong};
use super::table::Table;
use super::values;

const EXAMPLE: &str = "[tune]\nprofile = \"latency\"";

/// Former keys: name, present name, and whether the value is inverted. A former key is refused, and the error names the
/// present key.
pub(super) const RENAMED_KEYS: &[(&str, &str, bool)] = &[
    ("moderation_us", "coalescing_us", false),
    ("xdp_offloads_off", "xdp_offloads", true),
    ("merging_off", "gro", true),
    ("segmentation_off", "tso", true),
    ("polling_off", "deferred_interrupts", true),
    ("siblings_off", "smt", true),
    ("full_speed", "performance_governor", false),
    ("throttling_off", "rt_throttling", true),
    ("fair_server_off", "fair_server", true),
    ("interrupts", "irq_affinity", false),
    ("other_interrupts", "other_irq_affinity", false),
    ("receive_threads", "threaded_napi", false),
    ("memory", "thp_madvise", false),
    ("buffers", "receive_buffers", false),
    ("ports", "reserved_ports", false),
    ("limits", "realtime_limits", false),
];

/// Reads the table of a description; missing settings come from the default profile.
pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Option<Tuning> {
    let Some(mut table) = root.table("tune", EXAMPLE, report)? else {
        return Some(Tuning::default());
    };
    let tuning = Tuning::read(&mut table, report);
    table.finish(report);
    tuning
}

/// Type of a switch's value, with its conversion from TOML.
pub(crate) trait SwitchValue: Sized {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong>;
}

impl SwitchValue for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        values::truth(value)
    }
}

impl SwitchValue for Steering {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        values::word(value)
    }
}

impl SwitchValue for Transmit {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        values::word(value)
    }
}

impl SwitchValue for Isolation {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        values::word(value)
    }
}

impl SwitchValue for Option<u32> {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        match value {
            DeValue::String(text) if text == "keep" => Ok(None),
            other => values::whole(other, 0, MAX_TUNED_NUMBER)
                .map(Some)
                .map_err(|wrong| wrong.help("\"keep\" leaves what the machine has")),
        }
    }
}

impl SwitchValue for Option<Level> {
    fn read(value: &DeValue<'_>) -> Result<Self, Wrong> {
        match value {
            DeValue::String(text) if text == "highest" => Ok(None),
            other => values::level(other).map(Some),
        }
    }
}
