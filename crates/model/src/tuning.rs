//! What `isolane tune` may change on a machine, `[tune]`: a profile, and single switches beside it.
//!
//! A profile answers every switch. What a description says of a single switch counts before it, so
//! that a profile of one's own is a named one with some answers of one's own.

use core::fmt;

use isolane_wire::level::Level;

use crate::source::{Source, Sourced};
use crate::word::Word;

/// The profiles that have names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProfileName {
    /// The machine is there for its critical topics: what costs throughput or power is paid.
    Latency,
    /// Critical topics are kept apart from the others, and everything else stays usable: nothing
    /// that needs another start of the machine or takes processors away from other programs.
    #[default]
    Balanced,
}

impl Word for ProfileName {
    const WORDS: &'static [(&'static str, Self)] =
        &[("latency", Self::Latency), ("balanced", Self::Balanced)];
}

/// How critical datagrams are brought to their receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Steering {
    /// By rules where the device has them, else by its receive table.
    #[default]
    Auto,
    /// By rules of the device (ntuple).
    Rules,
    /// By its receive hash and table.
    Table,
    /// Not at all.
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

/// How frames wait to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transmit {
    /// Critical ones in a queue of the device of their own.
    #[default]
    Mqprio,
    /// All in one line, shorter than the kernel's own.
    Pfifo,
    /// By gates that open at given times (IEEE 802.1Qbv).
    Taprio,
    /// Each at its launch time.
    Etf,
    /// By credits (IEEE 802.1Qav).
    Cbs,
    /// As it is.
    Keep,
}

impl Word for Transmit {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("mqprio", Self::Mqprio),
        ("pfifo", Self::Pfifo),
        ("taprio", Self::Taprio),
        ("etf", Self::Etf),
        ("cbs", Self::Cbs),
        ("keep", Self::Keep),
    ];
}

/// How other programs are kept off the executor's core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// By arguments of the kernel (isolcpus, `nohz_full`, `rcu_nocbs`): from the next boot on.
    Boot,
    /// By systemd, which keeps services and sessions on the other cores.
    Cpuset,
    /// Not at all.
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

/// How a switch's value is written, in a description and to people.
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

/// A number, or the machine's own.
impl Written for Option<u32> {
    fn written(&self) -> String {
        match self {
            Some(number) => number.to_string(),
            None => String::from("\"keep\""),
        }
    }
}

/// A level, or the highest one that the host has topics of.
impl Written for Option<Level> {
    fn written(&self) -> String {
        match self {
            Some(level) => level.to_string(),
            None => String::from("\"highest\""),
        }
    }
}

/// A switch, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its key in `[tune]`.
    pub key: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Its answer in the profile `latency`.
    pub latency: String,
    /// Its answer in the profile `balanced`.
    pub balanced: String,
}

/// Declares the switches once: the fields, their keys, meanings, and the answers of both profiles.
macro_rules! switches {
    ($($key:ident: $type:ty = $latency:expr, $balanced:expr; $meaning:literal)*) => {
        /// A profile with an answer to every switch, and where each comes from.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Tuning {
            /// The profile that answers what is not said otherwise.
            pub profile: Sourced<ProfileName>,
            $(#[doc = $meaning] pub $key: Sourced<$type>,)*
        }

        impl Tuning {
            /// A named profile.
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

            /// The same switches over another profile: what was said of single ones stays.
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

            /// Every switch: its key, how its value is written, where that comes from.
            pub fn entries(&self) -> Vec<(&'static str, String, &Source)> {
                vec![
                    ("profile", self.profile.value.written(), &self.profile.source),
                    $((stringify!($key), self.$key.value.written(), &self.$key.source),)*
                ]
            }

            /// Reads the switches of a table over the profile it names.
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

        /// Every switch there is.
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
        " How critical datagrams come to the receive queue of their own."
    transmit: Transmit = Transmit::Mqprio, Transmit::Mqprio;
        " How frames wait to be sent."
    moderation_us: Option<u32> = Some(0), Some(20);
        " How long the device may put off an interrupt, in microseconds; adaptive moderation is off."
    xdp_offloads_off: bool = true, true;
        " What hides frames from XDP is off: LRO, hardware GRO, taking VLAN tags off."
    merging_off: bool = true, false;
        " Received frames are not merged into larger ones (GRO)."
    segmentation_off: bool = true, false;
        " Frames are cut before they wait to be sent, not by the device (TSO, GSO)."
    receive_ring_frames: Option<u32> = Some(1024), Some(1024);
        " A receive ring holds at least so many frames: what comes while its core is kept."
    transmit_ring_frames: Option<u32> = Some(256), None;
        " A transmit ring holds at most so many frames: what a critical one may wait behind."
    interrupts: bool = true, true;
        " The device's interrupts stay off the executor's core, but that of a verified critical queue."
    other_interrupts: bool = true, true;
        " Interrupts of other devices (disks, USB, graphics) stay off the executor's core."
    receive_threads: bool = true, false;
        " Receive work of a device whose steering is verified runs in threads with priorities."
    polling_off: bool = true, true;
        " Every frame has its interrupt: none is put off for polling."
    isolation: Isolation = Isolation::Boot, Isolation::None;
        " How other programs are kept off the executor's core."
    housekeeping: bool = true, true;
        " The kernel's own work (work queues, watchdog, statistics) stays off the executor's core."
    siblings_off: bool = true, false;
        " The hardware threads beside the executor's are switched off."
    full_speed: bool = true, true;
        " The executor's core runs at its highest clock rate."
    idle_latency_us: Option<u32> = Some(2), Some(20);
        " The executor's core enters no idle state that takes longer to leave, in microseconds."
    throttling_off: bool = true, false;
        " Real-time threads are never held back."
    fair_server_off: bool = true, false;
        " On the executor's core nothing is kept for ordinary programs."
    memory: bool = true, true;
        " Huge pages are made only for programs that ask for them."
    buffers: bool = true, true;
        " Sockets hold what comes while the host is kept from reading."
    ports: bool = true, true;
        " The kernel gives no port away that the description uses."
    limits: bool = false, false;
        " Members of the group realtime may use real-time priorities and lock memory."
    services: bool = true, true;
        " irqbalance leaves the executor's core alone."
}

/// Nobody said anything.
impl Default for Tuning {
    fn default() -> Self {
        Self::of(Sourced::default_value(ProfileName::default()))
    }
}

impl Tuning {
    /// How people call it: its profile, and that it has answers of its own.
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
            1 => format!("{} with 1 switch of its own", self.profile.value),
            many => format!("{} with {many} switches of its own", self.profile.value),
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}
