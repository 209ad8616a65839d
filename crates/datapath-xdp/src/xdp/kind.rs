//! AF_XDP as a kind of datapath: its options, typed and by name, and its requirements.

use std::thread;
use std::time::Instant;

use isolane_datapath::kind::{
    DatapathKind, DeviceUse, FactsError, Met,
    OptionDefault::{Unset, Value},
    OptionError, OptionKind, OptionSpec, OptionValue, Options, Requirement,
};
use isolane_datapath::udp::interfaces;
use isolane_datapath::{Datapath, DatapathFactory, NetworkConfig, OpenError};
use isolane_hostnet::xdp_facts::XdpFacts;

use super::Xdp;
use super::lanes::choose;
use super::plan::Plan;
use crate::classifier::{AttachMode, Enforcement};
use crate::limits::{
    BIND_PATIENCE, BIND_RETRY, BUSY_POLL, DEFAULT_CRITICAL_RESERVE, DEFAULT_RING_ENTRIES,
    MAX_CHUNKS, MAX_QUEUES, MAX_RING_ENTRIES, MAX_VLAN, MIN_RING_ENTRIES,
};
use crate::requirements::{Wanted, facts, requirements};
use crate::socket::{BindMode, BusyPoll};

/// Policy for a level whose lane cannot be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Opening the level fails.
    #[default]
    Refuse,
    /// The level uses kernel sockets, and a [`Warning`](isolane_datapath::Warning) gives the reason.
    Sockets,
}

/// Options of lanes, in addition to those of the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XdpOptions {
    /// Interface of the lanes. `None` selects the first of the sockets' interfaces that is not loopback.
    pub interface: Option<String>,
    /// Levels with lanes: bit *l* gives level *l* a lane when it is opened. The others use kernel sockets.
    pub levels: u8,
    /// Device queue of each level's lane, from 0. Frames of the level that arrive on another queue come through its
    /// kernel socket.
    pub queues: [u32; 8],
    /// Copy or zero-copy mode.
    pub mode: BindMode,
    /// Attach mode of the classifier. [`AttachMode::Generic`] runs after the kernel's work that lanes should avoid, so
    /// it is for experiments only.
    pub attach: AttachMode,
    /// Entries of each level's receive ring, powers of two.
    pub receive_entries: [u32; 8],
    /// Chunks of each queue for its most critical lane only: its reserve while other lanes are not read.
    pub critical_reserve: u32,
    /// Receive chunks of each queue. `None`: the sum of its lanes' rings, held frames and the reserve. With fewer
    /// chunks, an unread lane takes those of other lanes. Fewer are refused
    /// ([`XdpError::UmemTooSmall`](super::XdpError::UmemTooSmall)) unless `overcommit` is set.
    pub receive_frames: Option<u32>,
    /// Accepts fewer chunks than needed and relies on recycling to keep the reserve.
    pub overcommit: bool,
    /// Recycles when few chunks are free: frames of less critical lanes are dropped in the driver, and those waiting in
    /// their rings are reclaimed.
    pub recycling: bool,
    /// Mechanisms the classifier enforces. A disabled mechanism only counts what it would have prevented.
    pub enforcement: Enforcement,
    /// Chunks for frames lent to other threads, in addition to those of lanes.
    pub spare_transmit_chunks: u32,
    /// Busy polling: a poll of the rings drives the device in this thread. `None` leaves the device to the kernel.
    pub busy_poll: Option<BusyPoll>,
    /// Verifies UDP checksums of received datagrams. Partial checksums of virtual interfaces are accepted and counted.
    pub verify_checksums: bool,
    /// Computes UDP checksums of sent datagrams; otherwise the field is 0, meaning none.
    pub make_checksums: bool,
    /// VLAN id of the frames' tag; 0 sends a priority tag.
    pub vlan: Option<u16>,
    /// Sends multicast also to readers on this host, through a kernel socket: lanes do not reach them.
    pub local_groups: bool,
    /// Replenishes budgets by kernel timers, where available.
    pub kernel_timers: bool,
    /// Policy for a level whose lane cannot be opened.
    pub on_failure: OnFailure,
}

impl Default for XdpOptions {
    fn default() -> XdpOptions {
        XdpOptions {
            interface: None,
            levels: u8::MAX,
            queues: [0; 8],
            mode: BindMode::Auto,
            attach: AttachMode::Native,
            receive_entries: [DEFAULT_RING_ENTRIES; 8],
            critical_reserve: DEFAULT_CRITICAL_RESERVE,
            receive_frames: None,
            overcommit: false,
            recycling: true,
            enforcement: Enforcement::default(),
            spare_transmit_chunks: 128,
            busy_poll: None,
            verify_checksums: true,
            make_checksums: true,
            vlan: None,
            local_groups: true,
            kernel_timers: true,
            on_failure: OnFailure::Refuse,
        }
    }
}

/// Configuration of [`Xdp`](super::Xdp).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpConfig {
    /// Configuration of the sockets: domain, interfaces, ports, stamps, frames. For a lane, `pool.receive_frames`
    /// limits the frames its reader holds at once, and `pool.transmit_frames` are chunks.
    pub udp: NetworkConfig,
    /// Options of the lanes.
    pub options: XdpOptions,
}

impl XdpConfig {
    /// Uses all interfaces for sockets, and the first that is not loopback for lanes.
    #[must_use]
    pub fn new(domain: u32) -> XdpConfig {
        XdpConfig {
            udp: NetworkConfig::new(domain),
            options: XdpOptions::default(),
        }
    }
}

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
        "queue of the device that the lanes use; `ethtool -l` prints how many there are",
    )
    .overriding(&["queues"]),
    OptionSpec::new(
        "queues",
        OptionKind::IntegerPerLevel {
            min: 0,
            max: LAST_QUEUE,
        },
        Unset("as `queue`"),
        "queues of single levels, others use `queue`; on the command line 7=1+6=0",
    ),
    OptionSpec::new(
        "levels",
        OptionKind::Levels,
        Value(OptionValue::Levels(u8::MAX)),
        "levels with a lane, the others use kernel sockets; on the command line 5+6+7",
    )
    .leaving_out_large(),
    OptionSpec::new(
        "mode",
        OptionKind::Word(&["auto", "copy", "zero-copy"]),
        Value(OptionValue::Word("auto")),
        "copy by the kernel; zero-copy, refused if the driver has none; auto: zero-copy if the driver has it",
    ),
    OptionSpec::new(
        "attach",
        OptionKind::Word(&["native", "generic"]),
        Value(OptionValue::Word("native")),
        "native: XDP program in the driver; generic: after it, on any device, but slower and with less protection",
    ),
    OptionSpec::new(
        "busy_poll",
        OptionKind::Bool,
        Value(OptionValue::Bool(false)),
        "the participant's thread polls the device (busy polling); needs waiting = \"spin\" and its own core",
    )
    .spinning(),
    OptionSpec::new(
        "receive_entries",
        OptionKind::PowerOfTwo {
            min: MIN_RING_ENTRIES,
            max: MAX_RING_ENTRIES,
        },
        Value(OptionValue::Integer(DEFAULT_RING_ENTRIES)),
        "frames that the receive ring of each lane holds",
    ),
    OptionSpec::new(
        "receive_frames",
        OptionKind::Integer {
            min: 1,
            max: MAX_CHUNKS,
        },
        Unset("as many as its lanes need"),
        "buffers of each queue for received frames; fewer than its lanes need are refused",
    ),
    OptionSpec::new(
        "critical_reserve",
        OptionKind::Integer {
            min: 0,
            max: MAX_CHUNKS,
        },
        Value(OptionValue::Integer(DEFAULT_CRITICAL_RESERVE)),
        "buffers of each queue that only its most critical lane may use",
    ),
    OptionSpec::new(
        "vlan",
        OptionKind::Integer {
            min: 0,
            max: MAX_VLAN,
        },
        Unset("untagged"),
        "VLAN id of sent frames (IEEE 802.1Q); 0: only a priority tag",
    ),
];

impl DatapathKind for XdpKind {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn summary(&self) -> &'static str {
        "AF_XDP lanes, past the kernel's stack; needs CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW"
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

    fn device_use(&self, options: &Options) -> Result<Option<DeviceUse>, OptionError> {
        let names_queues = options.get("queue").or(options.get("queues")).is_some();
        let options = XdpOptions::from_options(options)?;
        Ok(Some(DeviceUse {
            queues: names_queues.then_some(options.queues),
            needs_zero_copy: options.mode == BindMode::ZeroCopy
                && options.attach == AttachMode::Native,
            vlan: options.vlan,
        }))
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

impl DatapathFactory for XdpOptions {
    fn name(&self) -> &'static str {
        "xdp"
    }

    fn unmet(&self, network: &NetworkConfig) -> Option<String> {
        why_not(&self.with(network.clone()))
    }

    fn tolerate_lane_failure(&mut self) {
        self.on_failure = OnFailure::Sockets;
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(Box::new(Xdp::new(self.with(network))?))
    }
}

impl XdpOptions {
    fn with(&self, udp: NetworkConfig) -> XdpConfig {
        XdpConfig {
            udp,
            options: self.clone(),
        }
    }
}

/// Returns why lanes cannot work on this host now, with remedies; `None` if no obstacle is known. Opens and attaches
/// nothing.
#[must_use]
pub fn why_not(config: &XdpConfig) -> Option<String> {
    let options = &config.options;
    let present = interfaces::list().unwrap_or_default();
    let interface = match choose(&config.udp, options, &present) {
        Ok(interface) => interface,
        Err(error) => return Some(error.to_string()),
    };
    // MTU 0, because the MTU is checked separately.
    let plan = Plan::new(options, config.udp.pool, &interface.name, 0);
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return Some(error.to_string()),
    };
    let memory_bytes = plan
        .pool
        .device
        .map_or(0, |device| (device.chunks * device.chunk_bytes) as u64);
    let wanted = Wanted {
        queues: plan.queues.iter().map(|queue| queue.queue).collect(),
        zero_copy: options.mode == BindMode::ZeroCopy,
        memory_bytes,
        vlan: options.vlan.is_some(),
    };
    let begin = Instant::now();
    loop {
        let mut unmet = requirements(&facts(&interface.name), &wanted);
        unmet.retain(|requirement| requirement.met == Met::No);
        // The queue of a process that has just died stays bound for a while; wait for it, as opening does.
        let may_be_over = |requirement: &Requirement| requirement.id == "queues";
        let is_over_soon = !unmet.is_empty() && unmet.iter().all(may_be_over);
        if is_over_soon && begin.elapsed() < BIND_PATIENCE {
            thread::sleep(BIND_RETRY);
            continue;
        }
        let reasons = unmet.iter();
        let reasons = reasons.map(|it| format!("{}: {}", it.found, it.remedy));
        return (!unmet.is_empty()).then(|| reasons.collect::<Vec<_>>().join("; "));
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
