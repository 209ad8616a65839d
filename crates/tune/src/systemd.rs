//! Unit names of systemd, for the units that `apply` and `export` write.

/// Name of the interface's device unit, which is active while the interface exists.
pub(crate) fn device_of(interface: &str) -> String {
    format!("sys-subsystem-net-devices-{}.device", escaped(interface))
}

/// Escapes a name for a unit name: other bytes than letters, digits and `:_.` become `\xNN` (systemd.unit(5)).
fn escaped(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b':' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        byte => format!("\\x{byte:02x}"),
    };
    name.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_of_interfaces_are_those_of_their_units() {
        assert_eq!(escaped("eth0.5"), "eth0.5");
        assert_eq!(escaped("br-lan"), "br\\x2dlan");
    }
}
