//! Findings about a device: queues, steering, moderation, offloads, rings, interrupts, time stamps.

use isolane_hostnet::netdev::XdpFeatures;

use super::{Findings, budget, list};
use crate::facts::{Device, Facts, RootQdisc};
use crate::limits::{MODERATION_US, RECEIVE_RING_FRAMES};
use crate::needs::Needs;
use crate::plan::{enough, is_moderation_mode, shell, shortened_moderation};
use crate::setting::{Setting, Value};

/// Cost of critical frames that share a queue with heavy bulk traffic. Measured on veth through an emulated 40 Mbit/s
/// link, three repetitions.
const SHARED: &str = "critical frames wait behind bulk frames: p99 was 583 to 955 us behind heavy receive work, and \
                      362 to 429 us with separate receive queues (measured on veth)";

pub(super) fn examine(facts: &Facts, device: &Device, needs: &Needs, findings: &mut Findings) {
    driver(device, findings);
    queues(device, findings);
    steering(device, findings);
    moderation(device, findings);
    offloads(device, needs, findings);
    rings(device, findings);
    transmit(device, findings);
    interrupts(facts, device, needs, findings);
    time_stamps(device, findings);
    budget::examine(facts, device, findings);
}

fn id(device: &Device, subject: &str) -> String {
    format!("interface.{subject}.{}", device.interface)
}

fn driver(device: &Device, findings: &mut Findings) {
    let name = &device.interface;
    let Some(driver) = &device.driver else {
        return;
    };
    let id = id(device, "driver");
    match device.xdp_features {
        Some(XdpFeatures {
            runs_programs: true,
            has_zero_copy,
            ..
        }) => findings.ok(
            &id,
            format!(
                "{name}: {driver} runs XDP programs natively; lanes work {}",
                if has_zero_copy { "without copying frames (zero copy)" } else { "with one copy of each frame" }
            ),
        ),
        Some(_) => findings.info(
            &id,
            format!("{name}: {driver} cannot run XDP programs"),
            "lanes work only behind the driver (attach = \"generic\"): dropping a frame there takes as long as at a \
             socket, 547 to 770 ns, and in the driver 122 to 200 ns (measured on veth)",
            "use an interface whose driver runs XDP programs: igb, igc, ixgbe, ice, mlx5, stmmac and others",
        ),
        None => findings.ok(&id, format!("{name}: {driver}")),
    }
}

fn queues(device: &Device, findings: &mut Findings) {
    let (Some(queues), Some(queues_max)) = (device.queues, device.queues_max) else {
        return;
    };
    let has = queues.rx + queues.combined;
    let most = queues_max.rx + queues_max.combined;
    let name = &device.interface;
    if has < 2 && most >= 2 {
        findings.warn(
            &id(device, "queues-used"),
            format!("{name} uses one receive queue, and could use {most}"),
            SHARED,
            shell::channels(name, enough(queues, queues_max, 2)),
        );
    } else {
        findings.ok(
            &id(device, "queues-used"),
            format!("{name} uses {has} of {most} receive queues"),
        );
    }
}

fn steering(device: &Device, findings: &mut Findings) {
    let name = &device.interface;
    let receives_on = device
        .queues
        .map_or(0, |queues| queues.rx + queues.combined);
    if receives_on < 2 {
        return;
    }
    let has_rules = device
        .flow_rules
        .as_ref()
        .is_some_and(|rules| rules.capacity > 0);
    let sees_ports =
        !crate::plan::RULES_WITHOUT_PORTS.contains(&device.driver.as_deref().unwrap_or_default());
    let hash = device
        .receive_hash
        .as_ref()
        .filter(|hash| !hash.table.is_empty());
    let filters = id(device, "filters");
    match (has_rules, sees_ports, hash.is_some()) {
        (true, true, _) => findings.ok(&filters, format!("{name} steers frames by flow rules (ntuple)")),
        (true, false, _) => findings.info(
            &filters,
            format!("the flow rules of {name} match only the Ethernet header"),
            "none, if critical frames have a VLAN priority of their own, or if the RSS table steers them",
            "steer by the RSS table, or by VLAN priority",
        ),
        (false, _, true) => findings.info(
            &filters,
            format!("{name} has no flow rules, but an RSS table"),
            "none, once the table entries of critical flows lead to a queue of their own; a flow that is not \
             described may have one of these entries by chance",
            "describe the participants with their ports: the table entries of their flows follow from the ports",
        ),
        (false, _, false) => findings.warn(
            &filters,
            format!("{name} has several receive queues, but neither flow rules nor an RSS table"),
            SHARED,
            "use an interface with flow rules (ntuple) or an RSS table; lanes and budgets still protect critical \
             samples after the device's queues",
        ),
    }
    let Some(hash) = hash.filter(|_| !(has_rules && sees_ports)) else {
        return;
    };
    let key = id(device, "hash-key");
    match hash.key {
        Some(_) => findings.ok(&key, format!("{name} reports the key of its RSS hash")),
        None => findings.info(
            &key,
            format!("{name} does not report the key of its RSS hash"),
            "none; but the table entry of a flow must be learnt from the queues on which datagrams arrive",
            "learn it with isolane tune learn: 45 datagrams for a table of 128 entries and two queues",
        ),
    }
    if hash.udp4_hashes_ports == Some(false) {
        findings.info(
            &id(device, "hash-ports"),
            format!(
                "{name} hashes only addresses: all levels between two hosts arrive on one queue"
            ),
            SHARED,
            format!("ethtool -N {name} rx-flow-hash udp4 sdfn"),
        );
    }
}

fn moderation(device: &Device, findings: &mut Findings) {
    let Some(has) = device.coalescing else {
        return;
    };
    let name = &device.interface;
    let id = id(device, "moderation");
    let driver = device.driver.as_deref().unwrap_or_default();
    let longest_us = has.rx_usecs.max(has.tx_usecs).unwrap_or(0);
    // Drivers refuse coalescing fields that they lack.
    let setting = Setting::Coalescing {
        interface: name.clone(),
    };
    let to = shortened_moderation(device, 0).map(|(_, to)| Value::Coalescing(to));
    let remedy = to
        .and_then(|to| shell::line(&setting, &to))
        .unwrap_or_default();
    if has
        .rx_usecs
        .is_some_and(|us| is_moderation_mode(driver, us))
    {
        findings.warn(
            &id,
            format!("{driver} adapts the interrupt delay of {name} to the load"),
            "10 to 250 us for each frame, each way (its README: InterruptThrottleRate)",
            remedy,
        );
    } else if has.adaptive_rx == Some(true) || has.adaptive_tx == Some(true) {
        findings.warn(
            &id,
            format!("{driver} adapts the interrupt delay of {name} to the load"),
            "the wait of a frame cannot be predicted: up to hundreds of microseconds, each way",
            remedy,
        );
    } else if longest_us > MODERATION_US {
        findings.warn(
            &id,
            format!("{name} delays interrupts by up to {longest_us} us"),
            &format!("{longest_us} us for each frame that arrives alone, each way"),
            remedy,
        );
    } else {
        findings.ok(
            &id,
            format!("{name} delays interrupts by at most {longest_us} us"),
        );
    }
}

fn offloads(device: &Device, needs: &Needs, findings: &mut Findings) {
    let name = &device.interface;
    let is_on = |feature: &str| device.features.get(feature).is_some_and(|it| it.is_on);
    let on = |features: &[&'static str]| -> Vec<&'static str> {
        features
            .iter()
            .copied()
            .filter(|feature| is_on(feature))
            .collect()
    };
    if device.features.is_empty() {
        return;
    }
    let mut hiding = on(&["rx-lro", "rx-gro-hw"]);
    if needs.vlan.is_some() {
        hiding.extend(on(&["rx-vlan-hw-parse"]));
    }
    let id_xdp = id(device, "offloads-xdp");
    if hiding.is_empty() {
        findings.ok(
            &id_xdp,
            format!("no offload of {name} hides frames from lanes"),
        );
    } else {
        findings.warn(
            &id_xdp,
            format!("{} of {name} hides frames from lanes", hiding.join(", ")),
            "no lane can be attached, or the lane receives other frames than were sent",
            format!("ethtool -K {name} {} off", hiding.join(" off ")),
        );
    }
    let cutting = on(&[
        "tx-tcp-segmentation",
        "tx-generic-segmentation",
        "tx-udp-segmentation",
    ]);
    if !cutting.is_empty() {
        findings.info(
            &id(device, "offload"),
            format!("the kernel passes up to 64 KiB of a stream to {name} at once ({})", cutting.join(", ")),
            "524 us at 1 Gbit/s in front of a critical frame in the same queue; none if the critical frame has a \
             dedicated queue",
            format!("ethtool -K {name} tso off gso off, at the price of throughput"),
        );
    }
}

fn rings(device: &Device, findings: &mut Findings) {
    let (Some(has), Some(most)) = (device.rings, device.rings_max) else {
        return;
    };
    let name = &device.interface;
    let wanted = RECEIVE_RING_FRAMES.min(most.rx);
    if has.rx < wanted {
        findings.info(
            &id(device, "rings"),
            format!("a receive ring of {name} holds {} frames, and could hold {}", has.rx, most.rx),
            "frames that arrive while the receiving core is busy are lost: at 1 Gbit/s, a ring of 256 frames is full \
             after 172 us",
            format!("ethtool -G {name} rx {wanted}"),
        );
    } else {
        findings.ok(
            &id(device, "rings"),
            format!("a receive ring of {name} holds {} frames", has.rx),
        );
    }
}

fn transmit(device: &Device, findings: &mut Findings) {
    let transmits_on = device
        .queues
        .map_or(1, |queues| queues.tx + queues.combined);
    let name = &device.interface;
    let id = id(device, "transmit");
    match &device.root_qdisc {
        Some(RootQdisc::Mqprio(classes)) => findings.ok(
            &id,
            format!("{name} sends {} classes from queues of their own (mqprio)", classes.queues.len()),
        ),
        Some(RootQdisc::Default { name: qdisc }) if transmits_on > 1 => findings.info(
            &id,
            format!("{name} sends all levels from the same {transmits_on} queues ({qdisc})"),
            "a critical frame waits behind bulk frames of the same queue: under a flood at 0.9 of the link's rate, \
             p99 was 14 ms, and 0.6 ms where the critical class was sent first (measured at 40 Mbit/s)",
            format!("tc qdisc replace dev {name} root mqprio ..., with a queue for the critical levels"),
        ),
        Some(RootQdisc::Taprio(schedule)) => findings.ok(
            &id,
            format!(
                "{name} sends {} classes from queues of their own, at scheduled times (taprio)",
                schedule.classes.queues.len()
            ),
        ),
        Some(RootQdisc::Default { .. } | RootQdisc::Pfifo { .. } | RootQdisc::Other { .. }) | None => {}
    }
}

fn interrupts(facts: &Facts, device: &Device, needs: &Needs, findings: &mut Findings) {
    let Some(core) = needs
        .core
        .filter(|core| facts.cores.online.len() > 1 && facts.cores.online.contains(core))
    else {
        return;
    };
    if device.interrupts.is_empty() {
        return;
    }
    let name = &device.interface;
    let there: Vec<String> = device
        .interrupts
        .iter()
        .filter(|interrupt| interrupt.cores.contains(&core))
        .map(|interrupt| interrupt.number.to_string())
        .collect();
    let id = id(device, "interrupts");
    if there.is_empty() {
        findings.ok(
            &id,
            format!("no interrupt of {name} arrives on the executor's core {core}"),
        );
    } else {
        let others = facts
            .cores
            .online
            .iter()
            .copied()
            .filter(|other| *other != core);
        findings.info(
            &id,
            format!("interrupts {} of {name} may arrive on the executor's core {core}", there.join(", ")),
            "some microseconds each, milliseconds in a flood; none if the interrupt serves only the critical queue",
            format!(
                "echo {} > /proc/irq/NUMBER/smp_affinity_list",
                list(&others.collect::<Vec<_>>())
            ),
        );
    }
}

fn time_stamps(device: &Device, findings: &mut Findings) {
    let Some(stamps) = device.timestamps else {
        return;
    };
    let name = &device.interface;
    let id = id(device, "time-stamps");
    match (stamps.hardware_rx && stamps.hardware_tx, stamps.clock) {
        (true, Some(clock)) => findings.ok(
            &id,
            format!("{name} timestamps frames in hardware; its clock is /dev/ptp{clock}"),
        ),
        _ => findings.info(
            &id,
            format!("{name} does not timestamp frames in hardware"),
            "PTP is only as precise as the kernel's timestamps: tens of microseconds, and milliseconds under load; \
             round trips need no PTP",
            "for one-way delays between hosts, use an interface with hardware timestamps (igb, igc and better)",
        ),
    }
}
