//! Seeded faults: which frames are lost and which are held back.
//!
//! A frame's fate is drawn when it arrives, from its number alone and not from the time: the same
//! seed and the same sequence of frames give the same losses, however busy the machine is.

use serde::{Deserialize, Serialize};

/// Frames that leave the wire and never arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// The share of frames lost, 0 to 1.
    pub probability: f64,
    /// Lose only UDP datagrams to this port; others are not even counted by the generator.
    pub udp_port: Option<u16>,
    /// Lose only UDP datagrams with at least so much payload: what tells a topic of large samples
    /// from one of small ones where all use one port. Acknowledgements and heartbeats are spared.
    pub min_payload_bytes: Option<u32>,
    /// Book lost frames as handed over: a drop without a name. A cable that works never does that; a
    /// run in which it does shows that whoever adds up the ledgers notices.
    pub is_hidden: bool,
}

impl Loss {
    /// Whether a frame may be lost at all, given its UDP datagram if it carries a whole one.
    fn reaches(&self, datagram: Option<Datagram>) -> bool {
        let of_port = |port| datagram.is_some_and(|datagram| datagram.port == port);
        let of_size = |least| datagram.is_some_and(|datagram| datagram.payload_bytes >= least);
        self.udp_port.is_none_or(of_port) && self.min_payload_bytes.is_none_or(of_size)
    }
}

/// What losses are limited by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Datagram {
    /// Where it goes to.
    pub(super) port: u16,
    pub(super) payload_bytes: u32,
}

/// Frames that overtakers pass: they arrive later than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reorder {
    /// The share of frames held back, 0 to 1.
    pub probability: f64,
    /// For how long, in nanoseconds, beyond the cable's delay.
    pub extra_delay_ns: u64,
}

/// What becomes of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) lost: bool,
    /// If lost, booked as handed over.
    pub(super) is_hidden: bool,
    pub(super) extra_delay_ns: u64,
}

/// Draws fates in the order frames arrive.
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
            // A generator of its own: turning reordering on does not change which frames are lost.
            reorders: Generator::new(!seed),
        }
    }

    /// The fate of the next frame, given its UDP datagram if it carries a whole one.
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

/// SplitMix64 (Steele, Lea, Flood 2014): small, and good enough to choose frames with.
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
        // The 53 bits an f64 holds exactly.
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

    /// 100 bytes to port 7401.
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
