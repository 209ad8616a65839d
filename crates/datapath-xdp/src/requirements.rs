//! Requirements of lanes on a machine, without side effects.
//!
//! [`facts`] reads the relevant state of kernel, rights and interface; [`requirements`] compares it with the requested
//! lanes. Opening a lane meets the same obstacles one at a time; this module reports all at once, with finding, cost
//! and remedy.

use isolane_datapath::kind::{Met, Requirement};
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

/// Collected requirements.
struct Requirements(Vec<Requirement>);

impl Requirements {
    fn met(&mut self, id: &'static str, found: impl Into<String>) {
        self.add(id, Met::Yes, found, "", "");
    }

    fn degraded(
        &mut self,
        id: &'static str,
        found: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.add(id, Met::Degraded, found, cost, remedy);
    }

    fn unmet(&mut self, id: &'static str, found: impl Into<String>, remedy: impl Into<String>) {
        let cost = "no lanes here: topics use the kernel's sockets";
        self.add(id, Met::No, found, cost, remedy);
    }

    fn add(
        &mut self,
        id: &'static str,
        met: Met,
        found: impl Into<String>,
        cost: &str,
        remedy: impl Into<String>,
    ) {
        self.0.push(Requirement {
            id,
            met,
            found: found.into(),
            cost: cost.into(),
            remedy: remedy.into(),
        });
    }
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

/// Compares the facts with the requested lanes. Pure function.
#[must_use]
pub fn requirements(facts: &XdpFacts, wanted: &Wanted) -> Vec<Requirement> {
    let mut all = Requirements(Vec::new());
    kernel(facts, &mut all);
    rights(facts, wanted, &mut all);
    match &facts.device {
        Some(device) => {
            state(&facts.interface, device, &mut all);
            driver(&facts.interface, device, &mut all);
            queues(&facts.interface, device, wanted, &mut all);
        }
        None => all.unmet(
            "interface",
            format!("there is no interface {} here", facts.interface),
            "name an interface that `ip link` shows; this one may have been renamed, or moved to another network \
             namespace",
        ),
    }
    all.0
}

fn kernel(facts: &XdpFacts, all: &mut Requirements) {
    let release = &facts.kernel_release;
    let (major, minor) = FIRST_KERNEL;
    match facts.is_kernel_since(major, minor) {
        true => all.met(
            "kernel",
            format!("Linux {release} has all features that lanes need"),
        ),
        false => all.unmet(
            "kernel",
            format!("Linux {release} is older than {major}.{minor}"),
            format!("use Linux {major}.{minor} or newer"),
        ),
    }
    if let Some(level) = &facts.lockdown
        && level != "none"
    {
        match level.as_str() {
            "confidentiality" => all.unmet(
                "lockdown",
                "the kernel is locked down (confidentiality): no program may read packets",
                "boot with lockdown=integrity, or without Secure Boot",
            ),
            _ => all.met(
                "lockdown",
                format!("the kernel is locked down ({level}), which does not affect XDP programs"),
            ),
        }
    }
}

fn rights(facts: &XdpFacts, wanted: &Wanted, all: &mut Requirements) {
    if facts.missing_capabilities.is_empty() {
        match facts.is_in_user_namespace {
            true => all.unmet(
                "capabilities",
                "the process has the capabilities only in a user namespace, which is not enough for BPF",
                "run as root of the machine, or in a container with CAP_BPF, CAP_PERFMON, \
                 CAP_NET_ADMIN and CAP_NET_RAW",
            ),
            false => all.met("capabilities", "the classifier may be loaded"),
        }
    } else {
        let settled = match facts.unprivileged_bpf_disabled {
            Some(0) | None => "",
            Some(_) => " (and kernel.unprivileged_bpf_disabled leaves nothing to others)",
        };
        all.unmet(
            "capabilities",
            format!("{} missing{settled}", facts.missing_capabilities.join(", ")),
            "run as root, or: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep PROGRAM",
        );
    }
    match facts.sockets {
        Sockets::Granted => all.met("sockets", "AF_XDP sockets may be opened"),
        Sockets::Refused => all.unmet(
            "sockets",
            "CAP_NET_RAW missing: AF_XDP sockets may not be opened",
            "run as root, or: setcap cap_bpf,cap_perfmon,cap_net_admin,cap_net_raw+ep PROGRAM; in a \
             systemd service: RestrictAddressFamilies has to allow AF_XDP",
        ),
        Sockets::Absent => all.unmet(
            "sockets",
            "the kernel has no AF_XDP sockets",
            "use a kernel with CONFIG_XDP_SOCKETS=y; in a systemd service: RestrictAddressFamilies \
             has to allow AF_XDP",
        ),
    }
    match facts.lockable_bytes {
        Some(limit) if limit < wanted.memory_bytes => all.unmet(
            "memory",
            format!(
                "this process may lock {} KiB (RLIMIT_MEMLOCK), but the lanes register {} KiB",
                limit >> 10,
                wanted.memory_bytes.div_ceil(1024)
            ),
            "give the program CAP_IPC_LOCK, or raise the limit: ulimit -l unlimited; in a systemd \
             service: LimitMEMLOCK=infinity",
        ),
        _ => all.met("memory", "the lanes' memory may be registered"),
    }
}

fn state(name: &str, device: &Device, all: &mut Requirements) {
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
            all.unmet("interface", format!("{name} {what}"), remedy);
        }
        None => all.met("interface", format!("{name} is up and has an IPv4 address")),
    }
    match device.mtu_bytes {
        Some(bytes) if bytes > LANE_MTU_BYTES => all.unmet(
            "mtu",
            format!("packets on {name} may have {bytes} B, but a lane's frames hold at most {LANE_MTU_BYTES} B"),
            format!("ip link set {name} mtu 1500, on a veth pair at both ends"),
        ),
        Some(bytes) => all.met("mtu", format!("packets of {bytes} B fit a lane's frames")),
        None => {}
    }
}

fn driver(name: &str, device: &Device, all: &mut Requirements) {
    let driver = device.driver.as_deref().unwrap_or("unknown");
    match device.features {
        Some(features) if features.runs_programs && features.redirects => all.met(
            "driver",
            format!("the driver of {name}, {driver}, runs XDP programs natively"),
        ),
        Some(_) => all.unmet(
            "driver",
            format!("the driver of {name}, {driver}, does not run XDP programs natively"),
            "use an interface whose driver runs them (igb, igc, ixgbe, i40e, ice, mlx5, stmmac, virtio_net, veth, \
             ...), or the generic mode, which is no faster than a socket",
        ),
        None => all.degraded(
            "driver",
            format!(
                "this kernel does not report whether the driver of {name}, {driver}, has native XDP"
            ),
            "isolane finds out when it opens a lane",
            "nothing; Linux 6.7 or newer reports it in advance",
        ),
    }
    match &device.program {
        Some(program) => all.unmet(
            "program",
            format!("an XDP program is attached to {name}: {program}"),
            format!(
                "if the program belongs to another isolane, use another interface; otherwise end its owner, or remove \
                 the program if it is not needed: ip link set dev {name} xdp off"
            ),
        ),
        None => all.met("program", format!("no other XDP program is attached to {name}")),
    }
}

fn queues(name: &str, device: &Device, wanted: &Wanted, all: &mut Requirements) {
    let count = device.receive_queues();
    for queue in &wanted.queues {
        if *queue as usize >= MAX_QUEUES || count.is_some_and(|count| *queue >= count) {
            all.unmet(
                "queues",
                format!("{name} has no receive queue {queue} that a lane can use"),
                format!(
                    "choose a queue from 0 to {} that exists: ethtool -l {name}",
                    MAX_QUEUES - 1
                ),
            );
        } else if device.taken_queues.contains(queue) {
            all.unmet(
                "queues",
                format!("receive queue {queue} of {name} belongs to another AF_XDP program"),
                "choose another queue, or end the program that uses it (ss --xdp -p)",
            );
        }
    }
    match count {
        Some(1) => all.degraded(
            "queues",
            format!("{name} has one receive queue"),
            "a critical frame waits behind every bulk frame that arrived before it, until the classifier has handled \
             them",
            "use an interface with several queues, and steer the critical traffic to one of them",
        ),
        Some(count) => all.met("queues", format!("{name} has {count} receive queues")),
        None => {}
    }
    zero_copy(name, device, wanted, all);
    if device.strips_vlan_tags == Some(true) && wanted.vlan {
        all.degraded(
            "vlan-tags",
            format!("{name} removes VLAN tags from received frames"),
            "the classifier does not see the tags: frames of another VLAN count as untagged",
            format!("ethtool -K {name} rxvlan off"),
        );
    }
}

fn zero_copy(name: &str, device: &Device, wanted: &Wanted, all: &mut Requirements) {
    match device.features {
        Some(features) if features.has_zero_copy => all.met(
            "zero-copy",
            format!("{name} can read and write lanes' frames itself (zero copy)"),
        ),
        Some(_) if wanted.zero_copy => all.unmet(
            "zero-copy",
            format!("zero copy is requested, but the driver of {name} does not support it"),
            "set the mode to auto: the kernel then copies each frame once",
        ),
        Some(_) => all.degraded(
            "zero-copy",
            format!("the driver of {name} does not support zero copy"),
            "the kernel copies each frame once in each direction, and sends in the program's processor time",
            "nothing, unless the rate matters; drivers with zero copy: igb, igc, ixgbe, i40e, ice, mlx5, stmmac",
        ),
        None => {}
    }
}

#[cfg(test)]
mod tests;
