//! Seeded faults: frame loss and reordering.
//!
//! Each frame's fate is drawn on arrival from its sequence number, never from the time. The same seed and frame
//! sequence give the same losses, however busy the machine is.

use serde::{Deserialize, Serialize};

/// Configuration of frame loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// Share of frames lost, 0 to 1.
    pub probability: f64,
    /// UDP destination port that loss is limited to; other frames do not advance the generator.
    pub udp_port: Option<u16>,
    /// Minimum UDP payload, in bytes, of the datagrams that loss is limited to. It separates a topic of large samples
    /// from one of small samples on the same port, and spares ACKNACK and HEARTBEAT messages.
    pub min_payload_bytes: Option<u32>,
    /// Counts lost frames as delivered: an unaccounted drop. A working cable never does so; the option tests that the
    /// ledger checks notice it.
    pub is_hidden: bool,
}

impl Loss {
    /// Returns whether a frame is subject to loss, given its UDP datagram if it carries a whole one.
    fn reaches(&self, datagram: Option<Datagram>) -> bool {
        let of_port = |port| datagram.is_some_and(|datagram| datagram.port == port);
        let of_size = |least| datagram.is_some_and(|datagram| datagram.payload_bytes >= least);
        self.udp_port.is_none_or(of_port) && self.min_payload_bytes.is_none_or(of_size)
    }
}

/// Properties of a UDP datagram that limit losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) port: u16,
    pub(super) payload_bytes: u32,
}

/// Configuration of reordering: frames held back so that later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reorder {
    /// Share of frames held back, 0 to 1.
    pub probability: f64,
    /// Additional delay of a held-back frame, in nanoseconds, beyond the cable's delay.
    pub extra_delay_ns: u64,
}

/// Fault decision for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) lost: bool,
    /// True when a lost frame is counted as delivered.
    pub(super) is_hidden: bool,
    pub(super) extra_delay_ns: u64,
}

/// Fault generator, drawn from in order of frame arrival.
#[derive(Debug)]
pub(super) struct Fates {
    loss: Loss,
    reorder: Reorder,
    losses: Generator,
    reorders: Generator,
}

impl Fates {
    pub(super) fn new(loss: Loss, reorder: Reorder, seed: u64) -> Fates {
        Fates {
            loss,
            reorder,
            losses: Generator::new(seed),
            // Separate generator: enabling reordering does not change which frames are lost.
            reorders: Generator::new(!seed),
        }
    }

    /// Draws the fate of the next frame, given its UDP datagram if it carries a whole one.
    pub(super) fn draw(&mut self, datagram: Option<Datagram>) -> Fate {
        let is_exposed = self.loss.reaches(datagram);
        let lost = is_exposed && self.losses.happens(self.loss.probability);
        let late = self.reorders.happens(self.reorder.probability);
        Fate {
            lost,
            is_hidden: self.loss.is_hidden,
            extra_delay_ns: if late { self.reorder.extra_delay_ns } else { 0 },
        }
    }
}

/// SplitMix64 pseudo-random generator (Steele, Lea, Flood 2014).
#[derive(Debug)]
struct Generator(u64);

impl Generator {
    fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // An f64 holds 53 bits exactly.
        let drawn = (mix(self.0) >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < probability
    }
}

/// SplitMix64's finaliser: every bit of the result depends on every bit of the argument.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagram of 100 bytes to port 7401.
    const DATAGRAM: Datagram = Datagram {
        port: 7401,
        payload_bytes: 100,
    };

    fn lost(probability: f64, port: Option<u16>, seed: u64) -> Vec<bool> {
        let loss = Loss {
            probability,
            udp_port: port,
            ..Loss::default()
        };
        let mut fates = Fates::new(loss, Reorder::default(), seed);
        let draw = |_| fates.draw(Some(DATAGRAM)).lost;
        (0..10_000).map(draw).collect()
    }

    #[test]
    fn a_seed_repeats_its_losses_and_another_has_others() {
        assert_eq!(lost(0.1, None, 1), lost(0.1, None, 1));
        assert_ne!(lost(0.1, None, 1), lost(0.1, None, 2));
    }

    #[test]
    fn the_share_lost_is_the_probability() {
        let count = lost(0.1, None, 7).iter().filter(|&&lost| lost).count();
        assert!((900..1100).contains(&count), "{count} of 10000");
        assert!(lost(0.0, None, 7).iter().all(|&lost| !lost));
        assert!(lost(1.0, None, 7).iter().all(|&lost| lost));
    }

    #[test]
    fn loss_for_one_port_spares_all_others() {
        assert!(lost(1.0, Some(7400), 1).iter().all(|&lost| !lost));
        assert!(lost(1.0, Some(7401), 1).iter().all(|&lost| lost));
    }

    #[test]
    fn loss_of_large_datagrams_spares_small_ones_and_what_is_none() {
        let mut fates = Fates::new(
            Loss {
                probability: 1.0,
                udp_port: None,
                min_payload_bytes: Some(101),
                ..Loss::default()
            },
            Reorder::default(),
            1,
        );
        let large = Datagram {
            payload_bytes: 101,
            ..DATAGRAM
        };
        assert!(fates.draw(Some(large)).lost);
        assert!(!fates.draw(Some(DATAGRAM)).lost);
        assert!(!fates.draw(None).lost, "ARP, or a fragment");
    }

    #[test]
    fn both_limits_of_a_loss_must_be_met() {
        let loss = Loss {
            probability: 1.0,
            udp_port: Some(7401),
            min_payload_bytes: Some(100),
            ..Loss::default()
        };
        let mut fates = Fates::new(loss, Reorder::default(), 1);
        let elsewhere = Datagram {
            port: 7400,
            ..DATAGRAM
        };
        let smaller = Datagram {
            payload_bytes: 99,
            ..DATAGRAM
        };
        let drawn = [DATAGRAM, elsewhere, smaller].map(|datagram| fates.draw(Some(datagram)).lost);
        assert_eq!(drawn, [true, false, false]);
    }

    #[test]
    fn reordering_does_not_change_which_frames_are_lost() {
        let loss = Loss {
            probability: 0.3,
            ..Loss::default()
        };
        let reorder = Reorder {
            probability: 0.3,
            extra_delay_ns: 5,
        };
        let mut plain = Fates::new(loss, Reorder::default(), 3);
        let mut both = Fates::new(loss, reorder, 3);
        let mut held_back = 0;
        for _ in 0..1000 {
            let fate = both.draw(None);
            assert_eq!(plain.draw(None).lost, fate.lost);
            held_back += u32::from(fate.extra_delay_ns == 5);
        }
        assert!((200..400).contains(&held_back), "{held_back} of 1000");
    }
}
