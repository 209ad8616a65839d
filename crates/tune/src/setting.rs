//! What a plan changes: places on a machine that can be read and set, and what stands in them.
//!
//! A [`Setting`] names a place, a [`Value`] what it holds. Both are plain and serialisable, for they
//! are written to the journal before anything is changed. A [`Machine`] reads and writes them: the
//! one this process runs on, or one of a test.

mod agreement;
mod document;
mod words;

use std::fmt;
use std::io;

use rustix::io::Errno;

use isolane_hostnet::netlink::NetlinkError;
use serde::{Deserialize, Serialize};

use crate::facts::{Coalescing, FlowRule, QueueQdisc, Queues, RingSizes, RootQdisc};

pub(crate) use self::document::BEFORE_ARGUMENTS;
pub use self::document::{CoreList, Document, Unit};

/// A place on a machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Setting {
    /// A file of sysfs, procfs or debugfs that holds one value: [`Value::Text`]. Where it lists what may
    /// be chosen (`always [madvise] never`), its value is the chosen word.
    Attribute {
        /// Where it is.
        path: String,
    },
    /// A file on disk that is ours, whole: [`Value::Text`] with the ends of its lines, or [`Value::Absent`] if there
    /// is none. What a plan writes there is a [`Value::Document`].
    Document {
        /// Where it is.
        path: String,
    },
    /// A folder that documents of ours are in: [`Value::Present`], or [`Value::Absent`]. It is taken
    /// away only when nothing is left in it.
    Folder {
        /// Where it is.
        path: String,
    },
    /// How many queues a device has: [`Value::Queues`].
    Channels {
        /// The device.
        interface: String,
    },
    /// How many frames its rings hold: [`Value::Rings`].
    Rings {
        /// The device.
        interface: String,
    },
    /// When it interrupts: [`Value::Coalescing`].
    Coalescing {
        /// The device.
        interface: String,
    },
    /// An offload, by the kernel's name of it (`rx-gro`): [`Value::Switch`].
    Feature {
        /// The device.
        interface: String,
        /// The kernel's name.
        feature: String,
    },
    /// The queue of each entry of the receive hash's table: [`Value::Table`].
    RssTable {
        /// The device.
        interface: String,
    },
    /// Whether the receive hash takes the UDP ports of IPv4 in: [`Value::Switch`].
    UdpHash {
        /// The device.
        interface: String,
    },
    /// A rule that steers received frames, by its place in the device: [`Value::Rule`], or
    /// [`Value::Absent`].
    FlowRule {
        /// The device.
        interface: String,
        /// Its place.
        location: u32,
    },
    /// How frames wait for a device: [`Value::Qdisc`].
    RootQdisc {
        /// The device.
        interface: String,
    },
    /// How frames wait for one transmit queue of a root with classes: [`Value::QueueQdisc`].
    QueueQdisc {
        /// The device.
        interface: String,
        /// The queue.
        queue: u16,
    },
    /// How a thread of the kernel is scheduled, by its name (`irq/24-eth0-rx-0`), for its number
    /// is another one after each restart: [`Value::Thread`], or [`Value::Absent`] while there is none
    /// of that name.
    Thread {
        /// Its name.
        name: String,
    },
}

/// What stands in a [`Setting`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Nothing: the file or rule does not exist.
    Absent,
    /// The folder exists.
    Present,
    /// Text; of an attribute without the end of the line.
    Text(String),
    /// The text of a file, by its parameters.
    Document(Document),
    /// On or off.
    Switch(bool),
    /// Queues.
    Queues(Queues),
    /// Rings.
    Rings(RingSizes),
    /// Interrupts; fields that the driver does not have are `None`, and stay as they are.
    Coalescing(Coalescing),
    /// A queue for each entry.
    Table(Vec<u32>),
    /// A rule.
    Rule(FlowRule),
    /// A queueing discipline.
    Qdisc(RootQdisc),
    /// That of one queue.
    QueueQdisc(QueueQdisc),
    /// A thread's class and cores.
    Thread(ThreadClass),
}

/// How a thread of the kernel is scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadClass {
    /// SCHED_FIFO's priority; `None`: the ordinary class.
    pub fifo: Option<u8>,
    /// The cores it may run on, ascending; empty: not looked at, and left as they are (an interrupt's
    /// thread follows its interrupt).
    pub cores: Vec<u16>,
}

/// Why a setting could not be read or set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingError {
    /// The place does not exist: no such interface, file, thread.
    Gone,
    /// It exists, and this machine has no such thing there: the driver lacks it.
    Unsupported,
    /// This process may not: rights, or a file system that is read-only.
    Refused(String),
    /// An interrupt that the kernel has placed itself, and lets nobody move; or it has no room where it was to go.
    Immovable(String),
    /// It was set, and reads as something else: the driver accepts and ignores.
    Ignored {
        /// What it reads as.
        found: Box<Value>,
    },
    /// What the system said.
    System(String),
}

impl Setting {
    /// Whether it is on disk, and not in the kernel.
    pub(crate) fn is_kept_by_a_boot(&self) -> bool {
        matches!(self, Self::Document { .. } | Self::Folder { .. })
    }
}

impl From<NetlinkError> for SettingError {
    fn from(error: NetlinkError) -> Self {
        Self::of_system(&error.error, error.message.as_deref())
    }
}

impl SettingError {
    /// What an error of a system call means for a setting. `words`: what else the kernel said.
    pub(crate) fn of_system(error: &io::Error, words: Option<&str>) -> Self {
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

impl fmt::Display for SettingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("it is not there"),
            Self::Unsupported => formatter.write_str("the driver or the kernel has no such thing"),
            Self::Refused(said) => write!(formatter, "not allowed: {said}"),
            Self::Immovable(said) => {
                write!(formatter, "the kernel does not let it be moved: {said}")
            }
            Self::Ignored { found } => {
                write!(
                    formatter,
                    "it was accepted and ignored: it reads as {found}"
                )
            }
            Self::System(said) => formatter.write_str(said),
        }
    }
}

impl std::error::Error for SettingError {}

/// A machine whose settings can be read and set.
pub trait Machine {
    /// What stands there now.
    ///
    /// # Errors
    /// [`SettingError`].
    fn read(&mut self, setting: &Setting) -> Result<Value, SettingError>;

    /// Sets it. What was written is not read back: that is for the caller, who knows what came before.
    ///
    /// # Errors
    /// [`SettingError`].
    fn write(&mut self, setting: &Setting, value: &Value) -> Result<(), SettingError>;

    /// Settings that a change of this one may change too: a device that gets another number of queues
    /// resets what is about queues. And folders that must be made for a document first. None that
    /// does not exist.
    fn beside(&mut self, setting: &Setting) -> Vec<Setting> {
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
            Self::RssTable { interface } => write!(formatter, "receive table of {interface}"),
            Self::UdpHash { interface } => {
                write!(formatter, "UDP ports in the hash of {interface}")
            }
            Self::FlowRule {
                interface,
                location,
            } => write!(formatter, "steering rule {location} of {interface}"),
            Self::RootQdisc { interface } => write!(formatter, "queueing of {interface}"),
            Self::QueueQdisc { interface, queue } => {
                write!(formatter, "queueing of {interface}, queue {queue}")
            }
            Self::Thread { name } => write!(formatter, "thread {name}"),
        }
    }
}
