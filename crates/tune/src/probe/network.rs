//! Reading of network stack settings, ports, and packet filters.

use super::files::{ranges, text, value};
use crate::facts::{Firewall, Network};

pub(super) fn network() -> Network {
    let core = |name: &str| value(format!("/proc/sys/net/core/{name}"));
    let ipv4 = |name: &str| text(format!("/proc/sys/net/ipv4/{name}"));
    let local_ports = ipv4("ip_local_port_range").and_then(|text| {
        let mut ports = text.split_whitespace().map(str::parse);
        Some((ports.next()?.ok()?, ports.next()?.ok()?))
    });
    Network {
        rmem_default_bytes: core("rmem_default"),
        rmem_max_bytes: core("rmem_max"),
        netdev_max_backlog: core("netdev_max_backlog"),
        busy_read_us: core("busy_read"),
        local_ports,
        reserved_ports: ipv4("ip_local_reserved_ports")
            .map(|text| ranges(&text))
            .unwrap_or_default(),
        udp_ports: udp_ports(),
        udp_receive_buffer_errors: text("/proc/thread-self/net/snmp")
            .and_then(|text| udp_counter(&text, "RcvbufErrors")),
        firewall: firewall(),
    }
}

fn udp_ports() -> Option<Vec<u16>> {
    let mut ports = local_udp_ports(&text("/proc/thread-self/net/udp")?);
    if let Some(text) = text("/proc/thread-self/net/udp6") {
        ports.extend(local_udp_ports(&text));
    }
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}

/// Local ports in `/proc/net/udp`: a header, then lines of number, address:port, ...
fn local_udp_ports(text: &str) -> Vec<u16> {
    let port = |line: &str| {
        let (_, port) = line.split_whitespace().nth(1)?.rsplit_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    text.lines().skip(1).filter_map(port).collect()
}

/// UDP counter in `/proc/net/snmp`: a line of names, then one of numbers.
fn udp_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let position = lines
        .next()?
        .split_whitespace()
        .position(|known| known == name)?;
    lines.next()?.split_whitespace().nth(position)?.parse().ok()
}

fn firewall() -> Firewall {
    let modules = text("/proc/modules");
    let in_use = |modules: String| {
        // Fields: name, size, use count, users.
        let users = modules.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next()? == "nf_tables").then_some(())?;
            words.nth(1)?.parse::<u32>().ok()
        });
        users.is_some_and(|users| users > 0)
    };
    let tables = text("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
    Firewall {
        nf_tables_in_use: modules.map(in_use),
        ip_tables: tables.lines().map(String::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_ports_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st\n \
                     10: 00000000:1CE8 00000000:0000 07\n 11: 0100007F:1CF2 00000000:0000 07\n";
        assert_eq!(local_udp_ports(table), [7400, 7410]);
        assert!(local_udp_ports("").is_empty());
    }

    #[test]
    fn a_counter_is_found_by_its_name() {
        let table = "Ip: A\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                     Udp: 5 6 7 8 9\n";
        assert_eq!(udp_counter(table, "RcvbufErrors"), Some(9));
        assert_eq!(udp_counter(table, "Other"), None);
        assert_eq!(udp_counter("", "RcvbufErrors"), None);
    }
}
