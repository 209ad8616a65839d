//! Settings of a machine and their values.
//!
//! A [`Setting`] names a place, and a [`Value`] is its content. Both are serialisable: they are written to the journal
//! before any change. A [`Machine`] reads and writes them: the machine this process runs on, or a model in tests.

pub(crate) mod display;
mod document;

use std::{fmt, io};

use isolane_hostnet::netlink::NetlinkError;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::document::BEFORE_ARGUMENTS;
pub use self::document::{CoreList, Document, Unit};
use crate::facts::{Coalescing, FlowRule, QueueQdisc, Queues, RingSizes, RootQdisc};

/// Place on a machine that can be read and set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Setting {
    /// File of sysfs, procfs or debugfs with one value: [`Value::Text`]. In a list of choices (`always [madvise]
    /// never`), the value is the chosen word.
    Attribute {
        /// Path of the file.
        path: String,
    },
    /// File on disk that isolane owns whole: [`Value::Text`] with line ends, or [`Value::Absent`]. A plan writes it as
    /// a [`Value::Document`].
    Document {
        /// Path of the file.
        path: String,
    },
    /// Folder of such documents: [`Value::Present`] or [`Value::Absent`]. It is removed only when empty.
    Folder {
        /// Path of the folder.
        path: String,
    },
    /// Number of queues of a device: [`Value::Queues`].
    Channels {
        /// Device name.
        interface: String,
    },
    /// Ring sizes of a device in frames: [`Value::Rings`].
    Rings {
        /// Device name.
        interface: String,
    },
    /// Interrupt coalescing of a device: [`Value::Coalescing`].
    Coalescing {
        /// Device name.
        interface: String,
    },
    /// Offload, by its kernel name (`rx-gro`): [`Value::Switch`].
    Feature {
        /// Device name.
        interface: String,
        /// Kernel name of the offload.
        feature: String,
    },
    /// RSS indirection table, one queue per entry: [`Value::Table`].
    RssTable {
        /// Device name.
        interface: String,
    },
    /// Inclusion of UDP ports over IPv4 in the receive hash: [`Value::Switch`].
    UdpHash {
        /// Device name.
        interface: String,
    },
    /// Receive flow rule, by its location in the device: [`Value::Rule`] or [`Value::Absent`].
    FlowRule {
        /// Device name.
        interface: String,
        /// Rule location.
        location: u32,
    },
    /// Root queueing discipline of a device: [`Value::Qdisc`].
    RootQdisc {
        /// Device name.
        interface: String,
    },
    /// Queueing discipline of one transmit queue under a classful root: [`Value::QueueQdisc`].
    QueueQdisc {
        /// Device name.
        interface: String,
        /// Transmit queue.
        queue: u16,
    },
    /// Scheduling of a kernel thread, by name (`irq/24-eth0-rx-0`), because its process id changes with each restart:
    /// [`Value::Thread`], or [`Value::Absent`] while no thread has the name.
    Thread {
        /// Thread name.
        name: String,
    },
}

/// Content of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Absence of the file, rule or thread.
    Absent,
    /// Presence of the folder.
    Present,
    /// Text; the text of an attribute has no line end.
    Text(String),
    /// File text, as its parameters.
    Document(Document),
    /// Switch position.
    Switch(bool),
    /// Queue counts.
    Queues(Queues),
    /// Ring sizes.
    Rings(RingSizes),
    /// Interrupt coalescing. Fields the driver lacks are `None`, and are left unchanged.
    Coalescing(Coalescing),
    /// Queue of each table entry.
    Table(Vec<u32>),
    /// Flow rule.
    Rule(FlowRule),
    /// Root queueing discipline.
    Qdisc(RootQdisc),
    /// Queueing discipline of one queue.
    QueueQdisc(QueueQdisc),
    /// Scheduling class and cores of a thread.
    Thread(ThreadClass),
}

/// Scheduling of a kernel thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadClass {
    /// `SCHED_FIFO` priority; `None` for the ordinary class.
    pub fifo: Option<u8>,
    /// Cores that the thread may run on, ascending. If empty, the affinity is neither read nor changed: an interrupt's
    /// thread follows the affinity of its interrupt.
    pub cores: Vec<u16>,
}

/// Reason that a setting cannot be read or set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingError {
    /// No such interface, file or thread.
    #[error("it does not exist")]
    Gone,
    /// The driver or kernel lacks this setting.
    #[error("the driver or the kernel does not support it")]
    Unsupported,
    /// Permission denied, or a read-only file system.
    #[error("not allowed: {0}")]
    Refused(String),
    /// The kernel manages this interrupt's affinity itself, or the target core has no free vector.
    #[error("the kernel refuses to move this interrupt: {0}")]
    Immovable(String),
    /// The write succeeded, and another value reads back: the driver ignored it.
    #[error("the driver accepted the value and ignored it: it reads back as {found}")]
    Ignored {
        /// Value that reads back.
        found: Box<Value>,
    },
    /// Any other system error, as text.
    #[error("{0}")]
    System(String),
}

impl Setting {
    /// Returns whether the setting is on disk, so that it survives a boot.
    pub(crate) fn survives_reboot(&self) -> bool {
        matches!(self, Self::Document { .. } | Self::Folder { .. })
    }

    /// Interface of a device setting; `None` for other settings.
    pub(crate) fn interface(&self) -> Option<&str> {
        match self {
            Self::Channels { interface }
            | Self::Rings { interface }
            | Self::Coalescing { interface }
            | Self::Feature { interface, .. }
            | Self::RssTable { interface }
            | Self::UdpHash { interface }
            | Self::FlowRule { interface, .. }
            | Self::RootQdisc { interface }
            | Self::QueueQdisc { interface, .. } => Some(interface),
            Self::Attribute { .. }
            | Self::Document { .. }
            | Self::Folder { .. }
            | Self::Thread { .. } => None,
        }
    }
}

impl From<NetlinkError> for SettingError {
    fn from(error: NetlinkError) -> Self {
        Self::from_io(&error.error, error.message.as_deref())
    }
}

impl SettingError {
    /// Maps a system error to its meaning for a setting. `words`: additional text from the kernel.
    pub(crate) fn from_io(error: &io::Error, words: Option<&str>) -> Self {
        let said = match words {
            Some(words) => format!("{error}: {words}"),
            None => error.to_string(),
        };
        match Errno::from_io_error(error) {
            Some(Errno::NODEV | Errno::NOENT | Errno::NXIO | Errno::SRCH) => Self::Gone,
            Some(Errno::OPNOTSUPP | Errno::NOTTY) => Self::Unsupported,
            Some(Errno::PERM | Errno::ACCESS | Errno::ROFS) => Self::Refused(said),
            _ => Self::System(said),
        }
    }
}

/// Machine whose settings can be read and set.
pub trait Machine {
    /// Reads the current value of `setting`.
    ///
    /// # Errors
    /// [`SettingError`].
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError>;

    /// Sets `setting` to `value`, without a check of the effect: the caller reads the value back.
    ///
    /// # Errors
    /// [`SettingError`].
    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError>;

    /// Existing settings that a change of `setting` may change too: a new number of queues resets all queue settings.
    /// For a document, the missing folders that must be created first.
    fn side_effects(&mut self, setting: &Setting) -> Vec<Setting> {
        let _ = setting;
        Vec::new()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute { path } | Self::Document { path } | Self::Folder { path } => {
                write!(formatter, "{path}")
            }
            Self::Channels { interface } => write!(formatter, "queues of {interface}"),
            Self::Rings { interface } => write!(formatter, "rings of {interface}"),
            Self::Coalescing { interface } => write!(formatter, "interrupts of {interface}"),
            Self::Feature { interface, feature } => write!(formatter, "{feature} of {interface}"),
            Self::RssTable { interface } => write!(formatter, "RSS table of {interface}"),
            Self::UdpHash { interface } => {
                write!(formatter, "UDP ports in the hash of {interface}")
            }
            Self::FlowRule {
                interface,
                location,
            } => write!(formatter, "flow rule {location} of {interface}"),
            Self::RootQdisc { interface } => write!(formatter, "queueing of {interface}"),
            Self::QueueQdisc { interface, queue } => {
                write!(formatter, "queueing of {interface}, queue {queue}")
            }
            Self::Thread { name } => write!(formatter, "thread {name}"),
        }
    }
}

impl Value {
    /// Returns whether the current value `found` equals this value, however the kernel writes it. Fields that this
    /// value does not set ([`Coalescing`], cores of a thread) match anything.
    #[must_use]
    pub fn matches(&self, setting: &Setting, found: &Value) -> bool {
        match (self, found) {
            (Self::Document(document), other) | (other, Self::Document(document)) => match other {
                Self::Document(other) => document == other,
                Self::Text(text) => document.text() == *text,
                _ => false,
            },
            (Self::Text(wanted), Self::Text(found)) => match setting {
                Setting::Attribute { path } => canonical(path, wanted) == canonical(path, found),
                _ => wanted == found,
            },
            (Self::Coalescing(wanted), Self::Coalescing(found)) => wanted.or(*found) == *found,
            (Self::Thread(wanted), Self::Thread(found)) => {
                let has_cores = wanted.cores.is_empty() || wanted.cores == found.cores;
                wanted.fifo == found.fifo && has_cores
            }
            // Without a length, the kernel uses the device's transmit queue length.
            (
                Self::QueueQdisc(QueueQdisc::Pfifo { frames: None }),
                Self::QueueQdisc(QueueQdisc::Pfifo { .. }),
            ) => true,
            // The kernel chooses its default discipline itself.
            (Self::Qdisc(RootQdisc::Default { .. }), Self::Qdisc(RootQdisc::Default { .. })) => {
                true
            }
            (wanted, found) => wanted == found,
        }
    }

    /// Returns whether the value can be set again: false for queueing disciplines of unknown parameters.
    pub(crate) fn can_be_set(&self) -> bool {
        !matches!(
            self,
            Self::Qdisc(RootQdisc::Other { .. }) | Self::QueueQdisc(QueueQdisc::Other { .. })
        )
    }
}

/// Canonical text of an attribute: the kernel accepts `3` and `0-1`, and prints `00000003` and `0,1`.
fn canonical(path: &str, text: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    if name == "smp_affinity" || name == "rps_cpus" || name == "xps_cpus" {
        let digits = text.replace(',', "");
        return digits.trim_start_matches('0').to_ascii_lowercase();
    }
    if name.ends_with("affinity_list") || name.starts_with("cpuset.cpus") {
        let mut cores = crate::kernel_lists::number_list(text);
        cores.sort_unstable();
        cores.dedup();
        return format!("{cores:?}");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::ThreadClass;

    fn attribute(path: &str, wanted: &str, found: &str) -> bool {
        let setting = Setting::Attribute { path: path.into() };
        Value::Text(wanted.into()).matches(&setting, &Value::Text(found.into()))
    }

    #[test]
    fn the_kernels_way_of_writing_makes_no_difference() {
        assert!(attribute("/q/rx-0/rps_cpus", "3", "00000000,00000003"));
        assert!(attribute("/q/rx-0/rps_cpus", "0", "00"));
        assert!(!attribute("/q/rx-0/rps_cpus", "3", "30"));
        assert!(attribute("/proc/irq/9/smp_affinity_list", "0,1,2", "0-2"));
        assert!(!attribute("/proc/irq/9/smp_affinity_list", "0,1", "0-2"));
        assert!(attribute("/proc/sys/net/ipv4/udp_mem", "1 2 3", "1\t2\t3"));
        assert!(!attribute("/proc/sys/net/core/busy_read", "50", "0"));
    }

    #[test]
    fn what_was_not_said_may_be_anything() {
        let setting = Setting::Thread { name: "a".into() };
        let thread = |fifo, cores: &[u16]| {
            Value::Thread(ThreadClass {
                fifo,
                cores: cores.to_vec(),
            })
        };
        assert!(thread(Some(7), &[]).matches(&setting, &thread(Some(7), &[1])));
        assert!(!thread(Some(7), &[0]).matches(&setting, &thread(Some(7), &[1])));
        assert!(!thread(None, &[]).matches(&setting, &thread(Some(7), &[1])));
        let rx = |usecs, adaptive| {
            Value::Coalescing(Coalescing {
                rx_usecs: usecs,
                adaptive_rx: adaptive,
                ..Coalescing::default()
            })
        };
        assert!(rx(Some(0), None).matches(&setting, &rx(Some(0), Some(true))));
        assert!(!rx(Some(0), Some(false)).matches(&setting, &rx(Some(0), Some(true))));
    }
}
