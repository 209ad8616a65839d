//! Preflight checks for lanes, without side effects.
//!
//! [`facts`] reads the relevant state of kernel, rights and interface; [`examine`] turns it into checks with finding,
//! cost and remedy. Opening a lane meets the same obstacles one at a time; the checks report all at once. `isolane
//! doctor` shows them.

use isolane_hostnet::xdp_facts::{Device, Sockets, XdpFacts};

use crate::classifier::Foreign;
use crate::limits::{LANE_MTU_BYTES, MAX_QUEUES};

/// First kernel release with the AF_XDP, BPF link and verifier features that lanes require.
const FIRST_KERNEL: (u32, u32) = (5, 9);

/// Requested lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Device queues for the lanes.
    pub queues: Vec<u32>,
    /// Whether zero copy is required.
    pub zero_copy: bool,
    /// Bytes of memory to register with the device.
    pub memory_bytes: u64,
    /// Whether flows use VLAN tags.
    pub vlan: bool,
}

/// Subject of a check. Its name is a stable identifier for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Kernel release.
    Kernel,
    /// Capabilities for loading and attaching the classifier.
    Capabilities,
    /// AF_XDP sockets.
    Sockets,
    /// Limit of registered memory.
    Memory,
    /// Kernel lockdown mode.
    Lockdown,
    /// Existence and state of the interface.
    Interface,
    /// MTU of the interface.
    Mtu,
    /// Driver and its native XDP.
    Driver,
    /// Another program on the XDP hook.
    Program,
    /// Requested queues.
    Queues,
    /// Zero copy.
    ZeroCopy,
    /// VLAN tag offload of received frames.
    VlanTags,
}

impl Subject {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Kernel => "kernel",
            Subject::Capabilities => "capabilities",
            Subject::Sockets => "sockets",
            Subject::Memory => "memory",
            Subject::Lockdown => "lockdown",
            Subject::Interface => "interface",
            Subject::Mtu => "mtu",
            Subject::Driver => "driver",
            Subject::Program => "program",
            Subject::Queues => "queues",
            Subject::ZeroCopy => "zero-copy",
            Subject::VlanTags => "vlan-tags",
        }
    }
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing to do.
    Fine,
    /// Lanes work with a disadvantage.
    Degraded,
    /// Lanes do not work.
    Impossible,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Subject.
    pub subject: Subject,
    /// Outcome.
    pub outcome: Outcome,
    /// Finding.
    pub what: String,
    /// Cost of the finding; empty if none.
    pub cost: String,
    /// Remedy; empty if none is needed.
    pub remedy: String,
}

/// Collected results.
struct Checks(Vec<Check>);

impl Checks {
    fn fine(&mut self, subject: Subject, what: impl Into<String>) {
        self.add(subject, Outcome::Fine, what, "", "");
    }

    fn degraded(
        &mut self,
        subject: Subject,
        what: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.add(subject, Outcome::Degraded, what, cost, remedy);
    }

    fn impossible(&mut self, subject: Subject, what: impl Into<String>, remedy: impl Into<String>) {
        let cost = "no lane here: topics go over the kernel's sockets";
        self.add(subject, Outcome::Impossible, what, cost, remedy);
    }

    fn add(
        &mut self,
        subject: Subject,
        outcome: Outcome,
        what: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.0.push(Check {
            subject,
            outcome,
            what: what.into(),
            cost: cost.into(),
            remedy: remedy.into(),
        });
    }
}

/// Checks an interface of the calling thread's network namespace, and its host.
#[must_use]
pub fn look(interface: &str, wanted: &Wanted) -> Vec<Check> {
    examine(&facts(interface), wanted)
}

/// Facts of an interface of the calling thread's network namespace, with the program on its XDP hook.
#[must_use]
pub fn facts(interface: &str) -> XdpFacts {
    let mut facts = XdpFacts::look(interface);
    if let Some(device) = &mut facts.device {
        let program = Foreign::on(device.index).ok().flatten();
        device.program = program.map(|program| program.to_string());
    }
    facts
}

/// Checks the facts against the requested lanes. Pure function.
#[must_use]
pub fn examine(ground: &XdpFacts, wanted: &Wanted) -> Vec<Check> {
    let mut checks = Checks(Vec::new());
    kernel(ground, &mut checks);
    rights(ground, wanted, &mut checks);
    match &ground.device {
        Some(device) => {
            state(&ground.interface, device, &mut checks);
            driver(&ground.interface, device, &mut checks);
            queues(&ground.interface, device, wanted, &mut checks);
        }
        None => checks.impossible(
            Subject::Interface,
            format!("there is no interface {} here", ground.interface),
            "name one of those that `ip link` shows; it may have been renamed, or moved to another \
             network namespace",
        ),
    }
    checks.0
}

fn kernel(ground: &XdpFacts, checks: &mut Checks) {
    let release = &ground.kernel_release;
    let (major, minor) = FIRST_KERNEL;
    match ground.is_kernel_since(major, minor) {
        true => checks.fine(
            Subject::Kernel,
            format!("Linux {release} has what lanes need"),
        ),
        false => checks.impossible(
            Subject::Kernel,
            format!("Linux {release} is older than {major}.{minor}"),
            format!("use Linux {major}.{minor} or newer"),
        ),
    }
    if let Some(level) = &ground.lockdown
        && level != "none"
    {
        match level.as_str() {
            "confidentiality" => checks.impossible(
                Subject::Lockdown,
                "the kernel is locked down (confidentiality): no program may read packets",
                "start it with lockdown=integrity, or without Secure Boot",
            ),
            _ => checks.fine(
                Subject::Lockdown,
                format!("the kernel is locked down ({level}), which leaves XDP programs alone"),
            ),
        }
    }
}

fn rights(ground: &XdpFacts, wanted: &Wanted, checks: &mut Checks) {
    if ground.missing_capabilities.is_empty() {
        match ground.is_in_user_namespace {
            true => checks.impossible(
                Subject::Capabilities,
                "the capabilities are those of a user namespace, which the kernel does not count",
                "run as root of the machine, or in a container with CAP_BPF, CAP_PERFMON, \
                 CAP_NET_ADMIN and CAP_NET_RAW",
            ),
            false => checks.fine(Subject::Capabilities, "the classifier may be loaded"),
        }
    } else {
        let settled = match ground.unprivileged_bpf_disabled {
            Some(0) | None => "",
            Some(_) => " (and kernel.unprivileged_bpf_disabled leaves nothing to others)",
        };
        checks.impossible(
            Subject::Capabilities,
            format!(
                "{} missing{settled}",
                ground.missing_capabilities.join(", ")
            ),
            "run as root, or: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep PROGRAM",
        );
    }
    match ground.sockets {
        Sockets::Granted => checks.fine(Subject::Sockets, "AF_XDP sockets may be opened"),
        Sockets::Refused => checks.impossible(
            Subject::Sockets,
            "CAP_NET_RAW missing: AF_XDP sockets may not be opened",
            "run as root, or: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep PROGRAM; in a \
             systemd service: RestrictAddressFamilies has to allow AF_XDP",
        ),
        Sockets::Absent => checks.impossible(
            Subject::Sockets,
            "the kernel has no AF_XDP sockets",
            "use a kernel with CONFIG_XDP_SOCKETS=y; in a systemd service: RestrictAddressFamilies \
             has to allow AF_XDP",
        ),
    }
    match ground.lockable_bytes {
        Some(limit) if limit < wanted.memory_bytes => checks.impossible(
            Subject::Memory,
            format!(
                "{} KiB may be locked (RLIMIT_MEMLOCK), and the lanes register {} KiB",
                limit >> 10,
                wanted.memory_bytes.div_ceil(1024)
            ),
            "give the program CAP_IPC_LOCK, or raise the limit: ulimit -l unlimited; in a systemd \
             service: LimitMEMLOCK=infinity",
        ),
        _ => checks.fine(Subject::Memory, "the lanes' memory may be registered"),
    }
}

fn state(name: &str, device: &Device, checks: &mut Checks) {
    let remedy = match (device.is_up, device.has_carrier, device.has_address) {
        (false, _, _) => Some(("is down", format!("ip link set {name} up"))),
        (_, false, _) => Some((
            "has no carrier",
            format!("plug in the cable; ethtool {name}"),
        )),
        (_, _, false) => Some((
            "has no IPv4 address",
            format!("ip address add ADDRESS/BITS dev {name}"),
        )),
        _ => None,
    };
    match remedy {
        Some((what, remedy)) => {
            checks.impossible(Subject::Interface, format!("{name} {what}"), remedy);
        }
        None => checks.fine(
            Subject::Interface,
            format!("{name} is up and has an IPv4 address"),
        ),
    }
    match device.mtu_bytes {
        Some(bytes) if bytes > LANE_MTU_BYTES => checks.impossible(
            Subject::Mtu,
            format!("packets on {name} may have {bytes} B, a lane's frames {LANE_MTU_BYTES} B"),
            format!("ip link set {name} mtu 1500, on a veth pair at both ends"),
        ),
        Some(bytes) => checks.fine(
            Subject::Mtu,
            format!("packets of {bytes} B fit a lane's frames"),
        ),
        None => {}
    }
}

fn driver(name: &str, device: &Device, checks: &mut Checks) {
    let driver = device.driver.as_deref().unwrap_or("unknown");
    match device.features {
        Some(features) if features.runs_programs && features.redirects => checks.fine(
            Subject::Driver,
            format!("the driver of {name}, {driver}, runs XDP programs itself"),
        ),
        Some(_) => checks.impossible(
            Subject::Driver,
            format!("the driver of {name}, {driver}, does not run XDP programs itself"),
            "use an interface whose driver does (igb, igc, ixgbe, i40e, ice, mlx5, stmmac, \
             virtio_net, veth, ...), or ask for the generic mode, which is no faster than a socket",
        ),
        None => checks.degraded(
            Subject::Driver,
            format!(
                "this kernel does not say whether the driver of {name}, {driver}, has native XDP"
            ),
            "it is found out when a lane is opened",
            "nothing; Linux 6.7 or newer says so beforehand",
        ),
    }
    match &device.program {
        Some(program) => checks.impossible(
            Subject::Program,
            format!("an XDP program is on {name}: {program}"),
            format!(
                "if it is another isolane's, use another interface; else end its owner, or, if it is \
                 not needed: ip link set dev {name} xdp off"
            ),
        ),
        None => checks.fine(Subject::Program, format!("no other XDP program is on {name}")),
    }
}

fn queues(name: &str, device: &Device, wanted: &Wanted, checks: &mut Checks) {
    let count = device.receive_queues();
    for queue in &wanted.queues {
        if *queue as usize >= MAX_QUEUES || count.is_some_and(|count| *queue >= count) {
            checks.impossible(
                Subject::Queues,
                format!("{name} has no receive queue {queue} that a lane can be on"),
                format!(
                    "queues are numbered from 0, up to {}: ethtool -l {name}",
                    MAX_QUEUES - 1
                ),
            );
        } else if device.taken_queues.contains(queue) {
            checks.impossible(
                Subject::Queues,
                format!("receive queue {queue} of {name} belongs to another AF_XDP program"),
                "choose another queue, or end the program that has it (ss --xdp -p)",
            );
        }
    }
    match count {
        Some(1) => checks.degraded(
            Subject::Queues,
            format!("{name} has one receive queue"),
            "a critical frame waits behind every bulk frame that came before it, up to the classifier",
            "use an interface with several queues and steer the critical traffic to one of them",
        ),
        Some(count) => checks.fine(Subject::Queues, format!("{name} has {count} receive queues")),
        None => {}
    }
    zero_copy(name, device, wanted, checks);
    if device.strips_vlan_tags == Some(true) && wanted.vlan {
        checks.degraded(
            Subject::VlanTags,
            format!("{name} takes VLAN tags off received frames"),
            "the classifier does not see them: frames of another VLAN count as untagged",
            format!("ethtool -K {name} rxvlan off"),
        );
    }
}

fn zero_copy(name: &str, device: &Device, wanted: &Wanted, checks: &mut Checks) {
    match device.features {
        Some(features) if features.has_zero_copy => checks.fine(
            Subject::ZeroCopy,
            format!("{name} can read and write lanes' frames itself (zero copy)"),
        ),
        Some(_) if wanted.zero_copy => checks.impossible(
            Subject::ZeroCopy,
            format!("zero copy is requested, and the driver of {name} has none"),
            "leave the mode to auto: the kernel then copies each frame once",
        ),
        Some(_) => checks.degraded(
            Subject::ZeroCopy,
            format!("the driver of {name} has no zero copy"),
            "the kernel copies each frame once, each way, and sends in the program's time",
            "nothing, unless the rate matters: drivers with zero copy are igb, igc, ixgbe, i40e, ice, \
             mlx5, stmmac",
        ),
        None => {}
    }
}

#[cfg(test)]
mod tests;
