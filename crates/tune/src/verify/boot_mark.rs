//! Short identifier of one boot of a machine, exchanged between hosts.

use std::fmt;

use crc::{CRC_64_XZ, Crc};
use serde::{Deserialize, Serialize};

const MARK: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// Identifier of one boot of one machine: checksum of the kernel's random boot id, written as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BootMark(u64);

impl BootMark {
    /// Mark of a boot id; `None` if the id is empty.
    #[must_use]
    pub fn of(boot_id: &str) -> Option<Self> {
        let mark = MARK.checksum(boot_id.as_bytes());
        (!boot_id.is_empty()).then_some(mark).and_then(Self::read)
    }

    /// Mark in a message; zero means none.
    pub(super) fn read(mark: u64) -> Option<Self> {
        (mark != 0).then_some(Self(mark))
    }

    /// Number in a message; zero for none.
    pub(super) fn number(this: Option<Self>) -> u64 {
        this.map_or(0, |Self(mark)| mark)
    }
}

impl fmt::Display for BootMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl From<BootMark> for String {
    fn from(mark: BootMark) -> Self {
        mark.to_string()
    }
}

impl TryFrom<String> for BootMark {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mark = u64::from_str_radix(&text, 16).ok();
        mark.and_then(Self::read)
            .filter(|mark| mark.to_string() == text)
            .ok_or("the mark of a boot is 16 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_of_a_machine_has_a_mark_of_its_own() {
        let of = |boot_id: &str| BootMark::of(boot_id).expect("a mark");
        let first = of("0b5b4a3e-98a5-4c7e-a9d8-95f8b9a3a3b1");
        assert_ne!(first, of("0b5b4a3e-98a5-4c7e-a9d8-95f8b9a3a3b2"));
        assert_eq!(BootMark::of(""), None);
        let text = String::from(first);
        assert_eq!(text.len(), 16);
        assert_eq!(BootMark::try_from(text), Ok(first));
        for other in ["", "0000000000000000", "+00000000000001f", "xyz"] {
            BootMark::try_from(String::from(other)).expect_err(other);
        }
    }
}
