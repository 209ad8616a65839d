//! Files on disk that a plan may write: a closed list, each by its parameters.
//!
//! A plan file holds the parameters, and the text is rendered where the plan is applied. So a plan by another
//! user cannot bring text to a file.

use serde::{Deserialize, Serialize};

use crate::lists::list;

/// What stands in [`KernelArguments`](Document::KernelArguments) before the arguments.
pub(crate) const BEFORE_ARGUMENTS: &str = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ";

/// A file that a plan may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Document {
    /// Drop-in that keeps all programs of a unit of systemd on these cores (`AllowedCPUs=`).
    UnitCores {
        /// The unit.
        unit: Unit,
        /// The cores, ascending.
        cores: Vec<u16>,
    },
    /// Slice of systemd for critical programs, on the executor's core.
    CriticalSlice {
        /// The core.
        core: u16,
    },
    /// Cores of systemd itself, which all that it starts inherits (`CPUAffinity=`).
    ManagerCores {
        /// The cores, ascending.
        cores: Vec<u16>,
    },
    /// Arguments of the kernel that keep others off a core, for GRUB.
    KernelArguments {
        /// The executor's core.
        core: u16,
        /// The arguments that take this core.
        lists: Vec<CoreList>,
        /// Cores that interrupts go to (`irqaffinity=`), ascending; empty: the argument is left out.
        interrupts: Vec<u16>,
    },
    /// Core that irqbalance leaves alone.
    BannedFromBalance {
        /// The core.
        core: u16,
    },
    /// Real-time priorities and locked memory for the group `realtime`.
    RealtimeLimits,
}

/// A unit of systemd that everything but critical programs runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Services.
    #[serde(rename = "system.slice")]
    System,
    /// Sessions.
    #[serde(rename = "user.slice")]
    User,
    /// Virtual machines and containers.
    #[serde(rename = "machine.slice")]
    Machine,
    /// systemd itself.
    #[serde(rename = "init.scope")]
    Init,
}

/// An argument of the kernel that takes a list of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreList {
    /// `isolcpus=`
    Isolcpus,
    /// `nohz_full=`
    NohzFull,
    /// `rcu_nocbs=`
    RcuNocbs,
}

impl Unit {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::System, Self::User, Self::Machine, Self::Init];

    /// Its name in systemd.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system.slice",
            Self::User => "user.slice",
            Self::Machine => "machine.slice",
            Self::Init => "init.scope",
        }
    }

    /// The file that keeps it to cores.
    pub(crate) fn path(self) -> String {
        format!("/etc/systemd/system/{}.d/50-isolane.conf", self.name())
    }
}

impl CoreList {
    /// All of them, in the order in which they are written.
    pub(crate) const ALL: [Self; 3] = [Self::Isolcpus, Self::NohzFull, Self::RcuNocbs];

    /// Its name, with the sign behind.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Isolcpus => "isolcpus=",
            Self::NohzFull => "nohz_full=",
            Self::RcuNocbs => "rcu_nocbs=",
        }
    }

    /// The argument.
    fn of(self, core: u16) -> String {
        let words = match self {
            Self::Isolcpus => "managed_irq,domain,",
            Self::NohzFull | Self::RcuNocbs => "",
        };
        format!("{}{words}{core}", self.name())
    }
}

impl Document {
    /// Where [`ManagerCores`](Self::ManagerCores) stands.
    pub(crate) const MANAGER: &str = "/etc/systemd/system.conf.d/50-isolane.conf";
    /// Where [`KernelArguments`](Self::KernelArguments) stand.
    pub(crate) const ARGUMENTS: &str = "/etc/default/grub.d/90-isolane.cfg";

    /// Its path.
    #[must_use]
    pub fn path(&self) -> String {
        let path = match self {
            Self::UnitCores { unit, .. } => return unit.path(),
            Self::CriticalSlice { .. } => "/etc/systemd/system/isolane.slice",
            Self::ManagerCores { .. } => Self::MANAGER,
            Self::KernelArguments { .. } => Self::ARGUMENTS,
            Self::BannedFromBalance { .. } => {
                "/etc/systemd/system/irqbalance.service.d/50-isolane.conf"
            }
            Self::RealtimeLimits => "/etc/security/limits.d/90-isolane.conf",
        };
        path.to_owned()
    }

    /// The executor's core, where it names it.
    pub(crate) fn executor_core(&self) -> Option<u16> {
        match self {
            Self::CriticalSlice { core }
            | Self::KernelArguments { core, .. }
            | Self::BannedFromBalance { core } => Some(*core),
            Self::UnitCores { .. } | Self::ManagerCores { .. } | Self::RealtimeLimits => None,
        }
    }

    /// The cores for everything else, where it names them.
    pub(crate) fn other_cores(&self) -> Option<&[u16]> {
        match self {
            Self::UnitCores { cores, .. } | Self::ManagerCores { cores } => Some(cores),
            Self::KernelArguments { interrupts, .. } if !interrupts.is_empty() => Some(interrupts),
            _ => None,
        }
    }

    /// Its text, with the ends of its lines.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            // The first line takes away what files before this one say: lists are added to each other.
            Self::UnitCores { unit, cores } => {
                let section = match unit {
                    Unit::Init => "Scope",
                    _ => "Slice",
                };
                format!("[{section}]\nAllowedCPUs=\nAllowedCPUs={}\n", list(cores))
            }
            Self::CriticalSlice { core } => {
                format!("[Unit]\nDescription=Critical programs\n\n[Slice]\nAllowedCPUs={core}\n")
            }
            // The same.
            Self::ManagerCores { cores } => {
                format!("[Manager]\nCPUAffinity=\nCPUAffinity={}\n", list(cores))
            }
            Self::KernelArguments { .. } => {
                format!("{BEFORE_ARGUMENTS}{}\"\n", self.kernel_arguments())
            }
            Self::BannedFromBalance { core } => {
                format!("[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST={core}\n")
            }
            Self::RealtimeLimits => {
                String::from("@realtime - rtprio 80\n@realtime - memlock unlimited\n")
            }
        }
    }

    /// The arguments of [`KernelArguments`](Self::KernelArguments); empty of others.
    pub(crate) fn kernel_arguments(&self) -> String {
        let Self::KernelArguments {
            core,
            lists,
            interrupts,
        } = self
        else {
            return String::new();
        };
        let known = CoreList::ALL.into_iter();
        let wanted = known.filter(|known| lists.contains(known));
        let mut words: Vec<String> = wanted.map(|known| known.of(*core)).collect();
        if !interrupts.is_empty() {
            words.push(format!("irqaffinity={}", list(interrupts)));
        }
        words.join(" ")
    }
}
