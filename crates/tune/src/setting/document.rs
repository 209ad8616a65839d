//! Files on disk that a plan may write: a closed list of kinds, each with parameters.
//!
//! A plan file contains the parameters, and the text is rendered on the machine that applies the plan. So an untrusted
//! plan cannot bring its own text into a file.

use serde::{Deserialize, Serialize};

use crate::kernel_lists::list;

/// Text before the arguments in [`KernelArguments`](Document::KernelArguments).
pub(crate) const BEFORE_ARGUMENTS: &str = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX ";

/// File that a plan may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Document {
    /// Drop-in that restricts all programs of a systemd unit to these cores (`AllowedCPUs=`).
    UnitCores {
        /// Unit.
        unit: Unit,
        /// Cores, ascending.
        cores: Vec<u16>,
    },
    /// systemd slice for critical programs, on the executor's core.
    CriticalSlice {
        /// Core.
        core: u16,
    },
    /// CPU affinity of systemd, which its services inherit (`CPUAffinity=`).
    ManagerCores {
        /// Cores, ascending.
        cores: Vec<u16>,
    },
    /// GRUB settings file with kernel arguments that keep other work off a core.
    KernelArguments {
        /// Core of the executor.
        core: u16,
        /// Arguments to set. Each gets a list with the executor's core alone.
        lists: Vec<CoreList>,
        /// Cores for interrupts (`irqaffinity=`), ascending; empty to omit the argument.
        interrupts: Vec<u16>,
    },
    /// Drop-in that keeps irqbalance off a core.
    IrqbalanceBannedCpus {
        /// Core.
        core: u16,
    },
    /// Limits that allow the group `realtime` to use real-time priorities and to lock memory.
    RealtimeLimits,
}

/// systemd unit that contains programs other than critical ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Services.
    #[serde(rename = "system.slice")]
    System,
    /// User sessions.
    #[serde(rename = "user.slice")]
    User,
    /// Virtual machines and containers.
    #[serde(rename = "machine.slice")]
    Machine,
    /// systemd itself.
    #[serde(rename = "init.scope")]
    Init,
}

/// Kernel argument with a list of cores.
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
    pub(crate) const ALL: [Self; 4] = [Self::System, Self::User, Self::Machine, Self::Init];

    /// Unit name in systemd.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system.slice",
            Self::User => "user.slice",
            Self::Machine => "machine.slice",
            Self::Init => "init.scope",
        }
    }

    /// Path of the drop-in that sets the unit's cores.
    pub(crate) fn path(self) -> String {
        format!("/etc/systemd/system/{}.d/50-isolane.conf", self.name())
    }
}

impl CoreList {
    /// All arguments, in the order they are written.
    pub(crate) const ALL: [Self; 3] = [Self::Isolcpus, Self::NohzFull, Self::RcuNocbs];

    /// Argument name with the equals sign.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Isolcpus => "isolcpus=",
            Self::NohzFull => "nohz_full=",
            Self::RcuNocbs => "rcu_nocbs=",
        }
    }

    fn of(self, core: u16) -> String {
        let words = match self {
            Self::Isolcpus => "managed_irq,domain,",
            Self::NohzFull | Self::RcuNocbs => "",
        };
        format!("{}{words}{core}", self.name())
    }
}

impl Document {
    /// Path of [`ManagerCores`](Self::ManagerCores).
    pub(crate) const MANAGER: &str = "/etc/systemd/system.conf.d/50-isolane.conf";
    /// Path of [`KernelArguments`](Self::KernelArguments).
    pub(crate) const ARGUMENTS: &str = "/etc/default/grub.d/90-isolane.cfg";

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> String {
        let path = match self {
            Self::UnitCores { unit, .. } => return unit.path(),
            Self::CriticalSlice { .. } => "/etc/systemd/system/isolane.slice",
            Self::ManagerCores { .. } => Self::MANAGER,
            Self::KernelArguments { .. } => Self::ARGUMENTS,
            Self::IrqbalanceBannedCpus { .. } => {
                "/etc/systemd/system/irqbalance.service.d/50-isolane.conf"
            }
            Self::RealtimeLimits => "/etc/security/limits.d/90-isolane.conf",
        };
        path.to_owned()
    }

    /// Paths of all documents.
    pub(crate) fn paths() -> impl Iterator<Item = String> {
        std::iter::successors(Some(Self::first()), Self::following).map(|document| document.path())
    }

    /// First document in the order of [`following`](Self::following).
    fn first() -> Self {
        Self::UnitCores {
            unit: Unit::ALL[0],
            cores: Vec::new(),
        }
    }

    /// Next document, in the order of the variants and of [`Unit::ALL`]. Parameters other than the unit do not change
    /// the path. The match is exhaustive, so a new variant does not compile until it has its place.
    fn following(&self) -> Option<Self> {
        Some(match self {
            Self::UnitCores { unit, .. } => {
                let mut units = Unit::ALL.into_iter().skip_while(|it| it != unit);
                match units.nth(1) {
                    Some(unit) => Self::UnitCores {
                        unit,
                        cores: Vec::new(),
                    },
                    None => Self::CriticalSlice { core: 0 },
                }
            }
            Self::CriticalSlice { .. } => Self::ManagerCores { cores: Vec::new() },
            Self::ManagerCores { .. } => Self::KernelArguments {
                core: 0,
                lists: Vec::new(),
                interrupts: Vec::new(),
            },
            Self::KernelArguments { .. } => Self::IrqbalanceBannedCpus { core: 0 },
            Self::IrqbalanceBannedCpus { .. } => Self::RealtimeLimits,
            Self::RealtimeLimits => return None,
        })
    }

    /// Core of the executor, if the document contains it.
    pub(crate) fn executor_core(&self) -> Option<u16> {
        match self {
            Self::CriticalSlice { core }
            | Self::KernelArguments { core, .. }
            | Self::IrqbalanceBannedCpus { core } => Some(*core),
            Self::UnitCores { .. } | Self::ManagerCores { .. } | Self::RealtimeLimits => None,
        }
    }

    /// Cores for all other work, if the document contains them.
    pub(crate) fn other_cores(&self) -> Option<&[u16]> {
        match self {
            Self::UnitCores { cores, .. } | Self::ManagerCores { cores } => Some(cores),
            Self::KernelArguments { interrupts, .. } if !interrupts.is_empty() => Some(interrupts),
            _ => None,
        }
    }

    /// Text of the file, with line ends.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            // The empty assignment discards the lists of earlier files; otherwise systemd would merge the lists.
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
            Self::ManagerCores { cores } => {
                format!("[Manager]\nCPUAffinity=\nCPUAffinity={}\n", list(cores))
            }
            Self::KernelArguments { .. } => {
                format!("{BEFORE_ARGUMENTS}{}\"\n", self.kernel_arguments())
            }
            Self::IrqbalanceBannedCpus { core } => {
                format!("[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST={core}\n")
            }
            Self::RealtimeLimits => {
                String::from("@realtime - rtprio 80\n@realtime - memlock unlimited\n")
            }
        }
    }

    /// Arguments of [`KernelArguments`](Self::KernelArguments); empty for other documents.
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
