//! Reader of `[tune]`, or of a file that contains only its settings.

use isolane_wire::level::Level;
use toml::de::DeValue;

use crate::limits::MAX_TUNED_NUMBER;
use crate::tuning::{Isolation, Steering, Transmit, Tuning};

use super::report::{Report, Wrong};
use super::table::{RenamedKey, Table};
use super::values;

const EXAMPLE: &str = "[tune]\nprofile = \"latency\"";

/// Former keys, which are refused.
const RENAMED_KEYS: &[RenamedKey] = &[
    RenamedKey::same("moderation_us", "coalescing_us"),
    RenamedKey::inverted("xdp_offloads_off", "xdp_offloads"),
    RenamedKey::inverted("merging_off", "gro"),
    RenamedKey::inverted("segmentation_off", "tso"),
    RenamedKey::inverted("polling_off", "deferred_interrupts"),
    RenamedKey::inverted("siblings_off", "smt"),
    RenamedKey::same("full_speed", "performance_governor"),
    RenamedKey::inverted("throttling_off", "rt_throttling"),
    RenamedKey::inverted("fair_server_off", "fair_server"),
    RenamedKey::same("interrupts", "irq_affinity"),
    RenamedKey::same("other_interrupts", "other_irq_affinity"),
    RenamedKey::same("receive_threads", "threaded_napi"),
    RenamedKey::same("memory", "thp_madvise"),
    RenamedKey::same("buffers", "receive_buffers"),
    RenamedKey::same("ports", "reserved_ports"),
    RenamedKey::same("limits", "realtime_limits"),
];

/// Reads the settings from `[tune]`, or from the root of a file that has only these.
pub(super) fn read_settings(mut table: Table<'_>, report: &mut Report) -> Option<Tuning> {
    let tuning = Tuning::read(&mut table, report);
    table.finish_renamed(RENAMED_KEYS, report);
    tuning
}

/// Reads the table of a description; missing settings come from the default profile.
pub(super) fn read(root: &mut Table<'_>, report: &mut Report) -> Option<Tuning> {
    match root.table("tune", EXAMPLE, report)? {
        Some(table) => read_settings(table, report),
        None => Some(Tuning::default()),
    }
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

#[cfg(test)]
mod tests {
    use crate::tuning::switches;

    use super::*;

    #[test]
    fn a_renamed_key_exists_by_its_present_name_only() {
        let keys: Vec<&str> = switches().iter().map(|switch| switch.key).collect();
        for RenamedKey {
            former, present, ..
        } in RENAMED_KEYS
        {
            assert!(keys.contains(present), "{present}");
            assert!(!keys.contains(former), "{former}");
        }
    }
}
