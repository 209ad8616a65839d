//! Settings of `isolane tune`, `[tune]`. A profile has a value for every switch; a description may set single switches
//! to other values.

use core::fmt;

use isolane_wire::level::Level;

use crate::source::{Source, Sourced};
use crate::word::Word;

/// Named profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfileName {
    /// Shortest latency of critical topics, at the cost of throughput and power.
    Latency,
    /// Isolation of critical topics without a reboot, and without taking cores from other programs.
    #[default]
    Balanced,
}

impl Word for ProfileName {
    const WORDS: &'static [(&'static str, Self)] =
        &[("latency", Self::Latency), ("balanced", Self::Balanced)];
}

/// Steering of critical datagrams to their receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Steering {
    /// Flow rules if supported, otherwise the RSS indirection table.
    #[default]
    Auto,
    /// Flow rules of the device (ntuple).
    Rules,
    /// RSS hash and indirection table.
    Table,
    /// No steering.
    None,
}

impl Word for Steering {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("rules", Self::Rules),
        ("table", Self::Table),
        ("none", Self::None),
    ];
}

/// Queueing discipline of sent frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transmit {
    /// Hardware queue for critical frames (mqprio).
    #[default]
    Mqprio,
    /// Single FIFO queue, shorter than the kernel's default.
    Pfifo,
    /// Unchanged.
    Keep,
}

impl Word for Transmit {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("mqprio", Self::Mqprio),
        ("pfifo", Self::Pfifo),
        ("keep", Self::Keep),
    ];
}

/// Isolation of the executor's core from other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Kernel arguments (isolcpus, `nohz_full`, `rcu_nocbs`), from the next boot on.
    Boot,
    /// systemd keeps services and sessions on the cores that isolane does not use.
    Cpuset,
    /// No isolation.
    #[default]
    None,
}

impl Word for Isolation {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("boot", Self::Boot),
        ("cpuset", Self::Cpuset),
        ("none", Self::None),
    ];
}

/// Formatting of a switch's value in descriptions and reports.
pub(crate) trait Written {
    fn written(&self) -> String;
}

impl Written for bool {
    fn written(&self) -> String {
        self.to_string()
    }
}

impl<W: Word> Written for W {
    fn written(&self) -> String {
        format!("\"{}\"", self.word())
    }
}

/// A number, or `None` to keep the machine's setting.
impl Written for Option<u32> {
    fn written(&self) -> String {
        match self {
            Some(number) => number.to_string(),
            None => String::from("\"keep\""),
        }
    }
}

/// A level, or `None` for the host's highest level.
impl Written for Option<Level> {
    fn written(&self) -> String {
        match self {
            Some(level) => level.to_string(),
            None => String::from("\"highest\""),
        }
    }
}

/// Description of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Key in `[tune]`.
    pub key: &'static str,
    /// Meaning.
    pub meaning: &'static str,
    /// Value in the profile `latency`.
    pub latency: String,
    /// Value in the profile `balanced`.
    pub balanced: String,
}

/// Declares the switches: fields, keys, meanings, and the values in both profiles.
macro_rules! switches {
    ($($key:ident: $type:ty = $latency:expr, $balanced:expr; $meaning:literal)*) => {
        /// Value of every switch, with its source.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Tuning {
            /// Profile that defines the switches not set explicitly.
            pub profile: Sourced<ProfileName>,
            $(#[doc = $meaning] pub $key: Sourced<$type>,)*
        }

        impl Tuning {
            /// Creates the settings of a named profile.
            pub fn of(profile: Sourced<ProfileName>) -> Self {
                let is_latency = profile.value == ProfileName::Latency;
                Self {
                    profile,
                    $($key: Sourced::new(
                        if is_latency { $latency } else { $balanced },
                        Source::DefaultFor("profile"),
                    ),)*
                }
            }

            /// Replaces the profile; explicitly set switches remain.
            #[must_use]
            pub fn over(self, profile: Sourced<ProfileName>) -> Self {
                let usual = Self::of(profile);
                Self {
                    $($key: match self.$key.source {
                        Source::DefaultFor(_) => usual.$key,
                        _ => self.$key,
                    },)*
                    profile: usual.profile,
                }
            }

            /// Every switch: key, formatted value, and source.
            pub fn entries(&self) -> Vec<(&'static str, String, &Source)> {
                vec![
                    ("profile", self.profile.value.written(), &self.profile.source),
                    $((stringify!($key), self.$key.value.written(), &self.$key.source),)*
                ]
            }

            /// Reads the switches of a table and fills in its profile.
            pub(crate) fn read(
                table: &mut crate::read::Table<'_>,
                report: &mut crate::read::Report,
            ) -> Option<Self> {
                let profile = table
                    .field("profile", report, crate::read::word)
                    .or(ProfileName::default());
                let usual = Self::of(profile.clone().unwrap_or(Sourced::default_value(
                    ProfileName::default(),
                )));
                $(let $key = table
                    .field(stringify!($key), report, <$type as crate::read::SwitchValue>::read)
                    .or_from(usual.$key.value, usual.$key.source);)*
                Some(Self { profile: profile?, $($key: $key?,)* })
            }
        }

        /// Describes every switch.
        pub fn switches() -> Vec<Switch> {
            vec![$(Switch {
                key: stringify!($key),
                meaning: $meaning.trim(),
                latency: <$type as Written>::written(&$latency),
                balanced: <$type as Written>::written(&$balanced),
            },)*]
        }
    };
}

switches! {
    critical_level: Option<Level> = None, None;
        " Topics from this level on are critical; `highest`: the highest level this host has."
    queues: bool = true, true;
        " A device with one queue gets a second one, if it can have more."
    steering: Steering = Steering::Auto, Steering::Auto;
        " How critical datagrams come to their receive queue."
    transmit: Transmit = Transmit::Mqprio, Transmit::Mqprio;
        " How frames wait to be sent."
    coalescing_us: Option<u32> = Some(0), Some(20);
        " Longest delay of an interrupt by the device (`ethtool -C`), in microseconds; adaptive coalescing is off."
    xdp_offloads: bool = false, false;
        " Offloads that hide frames from XDP may be on: LRO, hardware GRO, VLAN tag removal. `false` disables them."
    gro: bool = false, true;
        " The kernel may merge received frames (GRO). `false` disables it."
    tso: bool = false, true;
        " The device and the qdisc may hold large unsegmented packets (TSO, GSO). `false` disables them."
    receive_ring_frames: Option<u32> = Some(1024), Some(1024);
        " Least number of frames of a receive ring: it holds what comes while its core is kept."
    transmit_ring_frames: Option<u32> = Some(256), None;
        " Most frames of a transmit ring: a critical frame may wait behind them."
    irq_affinity: bool = true, true;
        " The device's interrupts stay off the executor's core, but that of a verified critical queue."
    other_irq_affinity: bool = true, true;
        " Interrupts of other devices (disks, USB, graphics) stay off the executor's core."
    threaded_napi: bool = true, false;
        " Receive work of a device whose steering is verified runs in threads with priorities."
    deferred_interrupts: bool = false, false;
        " Interrupts may be deferred while the kernel polls. `false` sets `napi_defer_hard_irqs`, `gro_flush_timeout` and `net.core.busy_read` to 0."
    isolation: Isolation = Isolation::Boot, Isolation::None;
        " How other programs are kept off the executor's core."
    housekeeping: bool = true, true;
        " The kernel's own work (work queues, watchdog, statistics) stays off the executor's core."
    smt: bool = false, true;
        " The SMT siblings of the executor's core may run. `false` takes them offline."
    performance_governor: bool = true, true;
        " The executor's core has the cpufreq governor `performance`."
    idle_latency_us: Option<u32> = Some(2), Some(20);
        " The executor's core enters no idle state that takes longer to leave, in microseconds."
    rt_throttling: bool = false, true;
        " The kernel may throttle real-time threads. `false` sets `sched_rt_runtime_us` to -1."
    fair_server: bool = false, true;
        " The scheduler may reserve time of the executor's core for ordinary programs. `false` disables its fair server."
    thp_madvise: bool = true, true;
        " Transparent huge pages are made only for programs that ask for them (`madvise`)."
    receive_buffers: bool = true, true;
        " Socket receive buffers hold what arrives while the host is kept from reading (`net.core.rmem_max`)."
    reserved_ports: bool = true, true;
        " The description's UDP ports are in `net.ipv4.ip_local_reserved_ports`."
    realtime_limits: bool = false, false;
        " Members of the group realtime may use real-time priorities and lock memory."
    services: bool = true, true;
        " irqbalance leaves the executor's core alone."
}

/// Default profile.
impl Default for Tuning {
    fn default() -> Self {
        Self::of(Sourced::default_value(ProfileName::default()))
    }
}

impl Tuning {
    /// Returns a name for display: the profile and the number of overridden switches.
    pub fn name(&self) -> String {
        let is_own =
            |(_, _, source): &(&str, String, &Source)| !matches!(source, Source::DefaultFor(_));
        let own = self
            .entries()
            .iter()
            .skip(1)
            .filter(|it| is_own(it))
            .count();
        match own {
            0 => self.profile.value.word().to_owned(),
            1 => format!("{} with 1 changed switch", self.profile.value),
            many => format!("{} with {many} changed switches", self.profile.value),
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}
