//! AF_XDP as a kind of datapath: its options by name, and its requirements on recorded facts.

use isolane_datapath::DatapathFactory;
use isolane_datapath::kind::{
    DatapathKind, DeviceUse, FactsError,
    OptionDefault::{Unset, Value},
    OptionError, OptionKind, OptionSpec, OptionValue, Options, Requirement,
};
use isolane_hostnet::xdp_facts::XdpFacts;

use super::XdpOptions;
use crate::classifier::AttachMode;
use crate::limits::{
    BUSY_POLL, DEFAULT_CRITICAL_RESERVE, DEFAULT_RING_ENTRIES, MAX_CHUNKS, MAX_QUEUES,
    MAX_RING_ENTRIES, MAX_VLAN, MIN_RING_ENTRIES,
};
use crate::requirements::{Wanted, facts, requirements};
use crate::socket::BindMode;

/// Kind of the datapath over AF_XDP.
#[derive(Debug)]
pub struct XdpKind;

const LAST_QUEUE: u32 = MAX_QUEUES as u32 - 1;

const OPTIONS: [OptionSpec; 10] = [
    OptionSpec::new(
        "queue",
        OptionKind::Integer {
            min: 0,
            max: LAST_QUEUE,
        },
        Value(OptionValue::Integer(0)),
        "device queue of the lanes; `ethtool -l` prints how many there are",
    )
    .overriding(&["queues"]),
    OptionSpec::new(
        "queues",
        OptionKind::IntegerPerLevel {
            min: 0,
            max: LAST_QUEUE,
        },
        Unset("queue"),
        "device queues of single levels",
    ),
    OptionSpec::new(
        "levels",
        OptionKind::Levels,
        Value(OptionValue::Levels(u8::MAX)),
        "levels with a lane; the others use kernel sockets",
    ),
    OptionSpec::new(
        "mode",
        OptionKind::Word(&["auto", "copy", "zero-copy"]),
        Value(OptionValue::Word("auto")),
        "copy by the kernel, or zero-copy; auto is zero-copy if the driver has it",
    ),
    OptionSpec::new(
        "attach",
        OptionKind::Word(&["native", "generic"]),
        Value(OptionValue::Word("native")),
        "classifier in the driver, or after it: generic is slower and protects less",
    ),
    OptionSpec::new(
        "busy_poll",
        OptionKind::Bool,
        Value(OptionValue::Bool(false)),
        "the loop drives the device itself; needs waiting = \"spin\" and its own core",
    )
    .spinning(),
    OptionSpec::new(
        "receive_entries",
        OptionKind::PowerOfTwo {
            min: MIN_RING_ENTRIES,
            max: MAX_RING_ENTRIES,
        },
        Value(OptionValue::Integer(DEFAULT_RING_ENTRIES)),
        "entries of each lane's receive ring",
    ),
    OptionSpec::new(
        "receive_frames",
        OptionKind::Integer {
            min: 1,
            max: MAX_CHUNKS,
        },
        Unset("as many as the rings need"),
        "receive frames of a queue",
    ),
    OptionSpec::new(
        "critical_reserve",
        OptionKind::Integer {
            min: 0,
            max: MAX_CHUNKS,
        },
        Value(OptionValue::Integer(DEFAULT_CRITICAL_RESERVE)),
        "frames of a queue that only its highest lane takes",
    ),
    OptionSpec::new(
        "vlan",
        OptionKind::Integer {
            min: 0,
            max: MAX_VLAN,
        },
        Unset("untagged"),
        "VLAN id of sent frames (IEEE 802.1Q); 0 sends a priority tag",
    ),
];

impl DatapathKind for XdpKind {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn summary(&self) -> &'static str {
        "AF_XDP lanes with early demultiplexing; needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn configure(&self, options: &Options) -> Result<Box<dyn DatapathFactory>, OptionError> {
        Ok(Box::new(XdpOptions::from_options(options)?))
    }

    fn probe(&self, interface: &str) -> Option<String> {
        serde_json::to_string(&facts(interface)).ok()
    }

    fn requirements(&self, facts: &str) -> Result<Vec<Requirement>, FactsError> {
        let facts: XdpFacts =
            serde_json::from_str(facts).map_err(|error| FactsError(error.to_string()))?;
        Ok(requirements(&facts, &Wanted::default()))
    }

    fn device_use(&self, options: &Options) -> Option<DeviceUse> {
        let names_queues = options.get("queue").or(options.get("queues")).is_some();
        let options = XdpOptions::from_options(options).ok()?;
        Some(DeviceUse {
            queues: names_queues.then_some(options.queues),
            needs_zero_copy: options.mode == BindMode::ZeroCopy
                && options.attach == AttachMode::Native,
            vlan: options.vlan,
        })
    }
}

impl XdpOptions {
    /// Converts the options of a description or command line.
    ///
    /// # Errors
    /// A level without a lane has a queue.
    pub fn from_options(options: &Options) -> Result<Self, OptionError> {
        let default = Self::default();
        let levels = options.levels("levels").unwrap_or(default.levels);
        let queue = options.integer("queue").unwrap_or(0);
        let queues = options.per_level("queues");
        let without_lane =
            (0..8).find(|&level| queues[level].is_some() && levels >> level & 1 == 0);
        if let Some(level) = without_lane {
            return Err(OptionError {
                key: "queues",
                what: format!("level {level} has a queue, but no lane"),
                help: String::from("add the level to `levels`, or remove its queue"),
            });
        }
        Ok(Self {
            levels,
            queues: queues.map(|of_level| of_level.unwrap_or(queue)),
            mode: match options.word("mode") {
                Some("copy") => BindMode::Copy,
                Some("zero-copy") => BindMode::ZeroCopy,
                _ => BindMode::Auto,
            },
            attach: match options.word("attach") {
                Some("generic") => AttachMode::Generic,
                _ => AttachMode::Native,
            },
            busy_poll: (options.bool("busy_poll") == Some(true)).then_some(BUSY_POLL),
            receive_entries: [options
                .integer("receive_entries")
                .unwrap_or(DEFAULT_RING_ENTRIES); 8],
            receive_frames: options.integer("receive_frames"),
            critical_reserve: options
                .integer("critical_reserve")
                .unwrap_or(default.critical_reserve),
            vlan: options
                .integer("vlan")
                .and_then(|vlan| vlan.try_into().ok()),
            ..default
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(all: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (key, text) in all {
            let spec = OPTIONS
                .iter()
                .find(|spec| spec.key == *key)
                .expect("a known key");
            options.set(spec, spec.kind.parse(text).expect("a valid value"));
        }
        options
    }

    #[test]
    fn nothing_set_is_the_default() {
        assert_eq!(
            XdpOptions::from_options(&Options::default()),
            Ok(XdpOptions::default())
        );
        for spec in OPTIONS {
            if let Value(value) = spec.default {
                let mut all = Options::default();
                all.set(&spec, value);
                assert!(spec.kind.contains(&value), "{}", spec.key);
                assert_eq!(
                    XdpOptions::from_options(&all),
                    Ok(XdpOptions::default()),
                    "{}",
                    spec.key
                );
            }
        }
    }

    #[test]
    fn every_option_has_an_effect() {
        let set = options(&[
            ("queue", "1"),
            ("queues", "7=3"),
            ("levels", "7+6"),
            ("mode", "copy"),
            ("attach", "generic"),
            ("busy_poll", "true"),
            ("receive_entries", "512"),
            ("receive_frames", "4096"),
            ("critical_reserve", "32"),
            ("vlan", "12"),
        ]);
        let expected = XdpOptions {
            levels: 0xc0,
            queues: [1, 1, 1, 1, 1, 1, 1, 3],
            mode: BindMode::Copy,
            attach: AttachMode::Generic,
            busy_poll: Some(BUSY_POLL),
            receive_entries: [512; 8],
            receive_frames: Some(4096),
            critical_reserve: 32,
            vlan: Some(12),
            ..XdpOptions::default()
        };
        assert_eq!(XdpOptions::from_options(&set), Ok(expected));
    }

    #[test]
    fn a_queue_without_a_lane_is_refused() {
        let error = XdpOptions::from_options(&options(&[("levels", "6"), ("queues", "7=1")]));
        assert_eq!(error.expect_err("level 7 has no lane").key, "queues");
    }
}
