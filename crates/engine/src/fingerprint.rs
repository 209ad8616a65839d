//! FNV-1a fingerprints, equal on every machine: for names that several sides derive independently, and for values that
//! differ between participants without a random source. They are not secret, and peers can choose collisions; hash
//! tables use a keyed hash ([`index`](crate::index)).

/// FNV-1a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// Fingerprint of no bytes.
    pub(crate) const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    pub(crate) fn with(self, bytes: &[u8]) -> Self {
        let step = |number: u64, &byte: &u8| {
            let mixed = number ^ u64::from(byte);
            mixed.wrapping_mul(0x0100_0000_01b3)
        };
        Self(bytes.iter().fold(self.0, step))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Returns a 16-bit fraction of the fingerprint (0 to 65,535), evenly distributed even for similar inputs.
    pub(crate) fn part(self) -> u32 {
        // In FNV the last bytes reach only the higher bits.
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 48) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_number_that_others_come_to() {
        // Test vectors published with the algorithm.
        assert_eq!(Fingerprint::NEW.with(b"").number(), 0xcbf2_9ce4_8422_2325);
        assert_eq!(
            Fingerprint::NEW.with(b"foobar").number(),
            0x8594_4171_f739_67e8
        );
    }

    #[test]
    fn parts_of_numbers_in_a_row_lie_all_over() {
        let mut used = [0_u32; 16];
        for number in 0..1_600_u32 {
            let part = Fingerprint::NEW.with(&number.to_be_bytes()).part();
            used[(part >> 12) as usize] += 1;
        }
        assert!(
            used.iter().all(|count| (50..200).contains(count)),
            "{used:?}"
        );
    }
}
