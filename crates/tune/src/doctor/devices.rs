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
const SHARED: &str = "critical frames wait behind bulk ones: at p99 583 to 955 us behind heavy receive work, where \
                      it was kept apart 362 to 429 (measured on veth)";

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
                "{name}: {driver} runs XDP programs itself, lanes {}",
                if has_zero_copy { "without a copy (zero copy)" } else { "with one copy" }
            ),
        ),
        Some(_) => findings.info(
            &id,
            format!("{name}: {driver} runs no XDP programs"),
            "lanes only behind the driver (attach = \"generic\"): a frame to drop costs what a socket costs, 547 to \
             770 ns, in the driver 122 to 200 (measured on veth)",
            "use an interface whose driver does: igb, igc, ixgbe, ice, mlx5, stmmac and others",
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
            format!("{name} has one receive queue in use, and could have {most}"),
            SHARED,
            shell::channels(name, enough(queues, queues_max, 2)),
        );
    } else {
        findings.ok(
            &id(device, "queues-used"),
            format!("{name} has {has} receive queues in use, of {most}"),
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
        (true, true, _) => findings.ok(&filters, format!("{name} steers by rules (ntuple)")),
        (true, false, _) => findings.info(
            &filters,
            format!("{name} has steering rules that look at the Ethernet header only"),
            "none, where critical frames have a VLAN priority of their own, or the receive table is used",
            "steer by the receive table, or by VLAN priority",
        ),
        (false, _, true) => findings.info(
            &filters,
            format!("{name} has no steering rules, and a receive table"),
            "none, once the entries that critical flows pick lead to a queue of their own; a stranger picks one by \
             chance",
            "describe participants with their ports: the entries follow from them",
        ),
        (false, _, false) => findings.warn(
            &filters,
            format!("{name} has several queues, and no way to say what comes to which"),
            SHARED,
            "use an interface with rules (ntuple) or a receive table; lanes and budgets still protect what is \
             behind the device",
        ),
    }
    let Some(hash) = hash.filter(|_| !(has_rules && sees_ports)) else {
        return;
    };
    let key = id(device, "hash-key");
    match hash.key {
        Some(_) => findings.ok(&key, format!("{name} tells the key of its receive hash")),
        None => findings.info(
            &key,
            format!("{name} does not tell the key of its receive hash"),
            "none; but which entry a flow picks has to be learnt from where datagrams land",
            "45 datagrams tell it, for a table of 128 entries and two queues",
        ),
    }
    if hash.udp4_hashes_ports == Some(false) {
        findings.info(
            &id(device, "hash-ports"),
            format!("{name} hashes addresses only: all levels between two hosts come to one queue"),
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
            format!("{driver} moves the time that interrupts of {name} are put off with the load"),
            "10 to 250 us for each frame, each way (its README: InterruptThrottleRate)",
            remedy,
        );
    } else if has.adaptive_rx == Some(true) || has.adaptive_tx == Some(true) {
        findings.warn(
            &id,
            format!("{driver} moves the time that interrupts of {name} are put off with the load"),
            "how long a frame waits is not known before: up to hundreds of microseconds, each way",
            remedy,
        );
    } else if longest_us > MODERATION_US {
        findings.warn(
            &id,
            format!("interrupts of {name} are put off by up to {longest_us} us"),
            &format!("{longest_us} us for each frame that comes alone, each way"),
            remedy,
        );
    } else {
        findings.ok(
            &id,
            format!("interrupts of {name} are put off by {longest_us} us at most"),
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
            "no lane can be attached, or it sees other frames than were sent",
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
            format!("{name} is given up to 64 KiB of a stream at once ({})", cutting.join(", ")),
            "524 us at 1 Gbit/s in front of a critical frame in the same queue; none where that has a dedicated queue",
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
            format!("a receive ring of {name} holds {} frames, of {} it could", has.rx, most.rx),
            "what comes while the core that serves it is kept is lost: at 1 Gbit/s a ring of 256 is full after 172 us",
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
            "a critical frame waits behind bulk of the same queue: at p99 14 ms with a flood at 0.9 of the line, 0.6 \
             where the critical class went first (measured at 40 Mbit/s)",
            format!("tc qdisc replace dev {name} root mqprio ..., a queue for the critical levels"),
        ),
        Some(RootQdisc::Taprio(schedule)) => findings.ok(
            &id,
            format!(
                "{name} sends {} classes from queues of their own, at times of their own (taprio)",
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
            format!("no interrupt of {name} comes to the executor's core {core}"),
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
            format!("interrupts {} of {name} may come to the executor's core {core}", there.join(", ")),
            "some microseconds each, milliseconds in a flood; none, where it is the critical queue's alone",
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
            format!("{name} stamps frames in hardware, its clock is /dev/ptp{clock}"),
        ),
        _ => findings.info(
            &id,
            format!("{name} stamps no frames in hardware"),
            "PTP is as good as the kernel's time stamps: tens of microseconds, and milliseconds under load; round \
             trips do not need it",
            "for one-way delays between hosts use an interface that does (igb, igc and better)",
        ),
    }
}
