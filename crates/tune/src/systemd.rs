//! Names as systemd has them, for the unit that `apply` makes and the one that `export` prints.

/// The unit of an interface: there while the interface is.
pub(crate) fn device_of(interface: &str) -> String {
    format!("sys-subsystem-net-devices-{}.device", escaped(interface))
}

/// A name in a unit's name: what is not a letter, a digit or one of `:_.` is its number (systemd.unit(5)).
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
