//! Kernel sockets: receive buffers, ports, busy reading.

use crate::facts::port_list;
use crate::limits::{BUFFER_PERCENT, KERNEL_BYTES_PER_DATAGRAM, STALL_US};

use super::builder::{PlanBuilder, Rationale};
use super::target::PlanInput;

const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

pub(super) fn plan(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    if input.tuning.buffers.value {
        buffers(input, builder);
    }
    if input.tuning.ports.value {
        ports(input, builder);
    }
    if input.tuning.polling_off.value && !input.needs.spins {
        let has = input.facts.network.busy_read_us.unwrap_or(0);
        builder.attribute(
            input.facts,
            "sockets.busy-read",
            "/proc/sys/net/core/busy_read",
            "0",
            Rationale::of_all(
                format!("every program that reads a socket looks at the device for {has} us first, on critical cores too"),
                "programs that gain by it take an interrupt more for each read",
            ),
        );
    }
}

/// Plans receive buffers that hold all datagrams of a stall.
fn buffers(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let Some((level, datagrams)) = input.needs.waiting_datagrams else {
        return;
    };
    let wanted =
        (datagrams * KERNEL_BYTES_PER_DATAGRAM * 100 / BUFFER_PERCENT).next_multiple_of(4096);
    let network = &input.facts.network;
    let topics: Vec<String> = input
        .needs
        .topics
        .iter()
        .filter(|topic| topic.is_received && topic.level == level)
        .map(|topic| topic.name.clone())
        .collect();
    for (id, path, has) in [
        (
            "sockets.buffer-most",
            "/proc/sys/net/core/rmem_max",
            network.rmem_max_bytes,
        ),
        (
            "sockets.buffer",
            "/proc/sys/net/core/rmem_default",
            network.rmem_default_bytes,
        ),
    ] {
        if has.is_none_or(|has| has >= wanted) {
            continue;
        }
        builder.attribute(
            input.facts,
            id,
            path,
            wanted.to_string(),
            Rationale::of(
                &topics,
                format!(
                    "at level {level} up to {datagrams} datagrams come in {} ms, and what does not fit is dropped",
                    STALL_US / 1000
                ),
                "every socket may hold as much of the kernel's memory",
            ),
        );
    }
}

/// Reserves ports of described participants that are in the ephemeral range.
fn ports(input: &PlanInput<'_>, builder: &mut PlanBuilder) {
    let network = &input.facts.network;
    let Some((first, last)) = network.local_ports else {
        return;
    };
    let mut reserved = network.reserved_ports.clone();
    for place in &input.needs.participants {
        let (from, to) = (place.ports.start, place.ports.end - 1);
        if from <= last && first <= to {
            reserved.push((from, to));
        }
    }
    let reserved = merged(reserved);
    builder.attribute(
        input.facts,
        "sockets.ports",
        RESERVED,
        port_list(&reserved),
        Rationale::of_all(
            format!("the kernel gives ports {first} to {last} to whoever asks for none in particular: a described \
                     participant may find one of its own taken, and cannot start"),
            "so many ports fewer for others",
        ),
    );
}

/// Merges ranges into the kernel's form: ascending, without overlapping or adjacent ones.
fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::merged;

    #[test]
    fn ranges_that_touch_become_one() {
        assert_eq!(
            merged(vec![(9, 9), (1, 3), (4, 5), (2, 3), (u16::MAX, u16::MAX)]),
            [(1, 5), (9, 9), (u16::MAX, u16::MAX)]
        );
    }
}
