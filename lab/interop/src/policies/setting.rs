//! Size and loss, and what they make of the options.

use std::time::Duration;

use super::super::cell::{Axis, Loss};
use super::table::{Pace, Policy};

/// The cable's rate: a mebibyte takes 21 ms of it, so that what is repaired has its time too.
pub(super) const BITS_PER_S: u64 = 400_000_000;

/// Bytes of a fragment: each is a frame of its own, so that the loss of one is not the loss of many.
const FRAGMENT_BYTES: u32 = 1_300;

/// How large samples are: of additional payload, which all else is small beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// One small datagram.
    Bytes64,
    /// Fragments, of which a loss takes one or two.
    KiB64,
    /// Some eight hundred fragments: where a tenth is lost no sample comes whole without repair.
    MiB1,
}

impl Axis for Size {
    const ALL: &'static [Self] = &[Self::Bytes64, Self::KiB64, Self::MiB1];

    fn word(self) -> &'static str {
        match self {
            Self::Bytes64 => "64B",
            Self::KiB64 => "64KiB",
            Self::MiB1 => "1MiB",
        }
    }
}

impl Size {
    fn bytes(self) -> u32 {
        match self {
            Self::Bytes64 => 64,
            Self::KiB64 => 64 << 10,
            Self::MiB1 => 1 << 20,
        }
    }
}

/// What a cell has beside its policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) size: Size,
    pub(super) loss: Loss,
}

impl Setting {
    /// How long the publisher writes: discovery takes longer where announcements are lost.
    fn life_ms(self) -> u32 {
        match self.loss {
            Loss::None | Loss::OnePercent => 4_000,
            Loss::TenPercent => 6_000,
        }
    }

    /// Between two samples: five megabytes a second are little for the cable, and still some samples. Where
    /// a tenth is lost, of a mebibyte too, peers ask for 256 fragments at a time and wait a tenth of a second
    /// before they ask again: half a second and more for each sample.
    fn period_ms(self) -> u32 {
        match (self.size, self.loss) {
            (Size::Bytes64 | Size::KiB64, _) => 50,
            (Size::MiB1, Loss::None | Loss::OnePercent) => 200,
            (Size::MiB1, Loss::TenPercent) => 500,
        }
    }

    /// What the publisher may take: its life, writes that wait for room, and the last acknowledgments.
    pub(super) fn longest_life(self) -> Duration {
        const LAST_ACKNOWLEDGMENTS_MS: u64 = 10_000;
        Duration::from_millis(u64::from(self.life_ms()) * 2 + LAST_ACKNOWLEDGMENTS_MS)
    }

    /// All the publisher is told.
    pub(super) fn publisher(self, policy: &Policy) -> String {
        let period_ms = match policy.pace {
            Pace::OfSetting => self.period_ms(),
            Pace::Every(period_ms) => period_ms,
        };
        let iterations = self.life_ms() / period_ms;
        let bytes = self.size.bytes();
        format!(
            "-P -w -c RED -z 0 --additional-payload-size {bytes} --datafrag-size {FRAGMENT_BYTES} \
             --write-period {period_ms} --num-iterations {iterations} {}",
            policy.publisher
        )
    }

    /// All the subscriber is told: the size too, for which ours needs room.
    pub(super) fn subscriber(self, policy: &Policy) -> String {
        let bytes = self.size.bytes();
        format!("-S --additional-payload-size {bytes} {}", policy.subscriber)
    }

    /// Whether a sample that is not repaired is one that never comes: of a large one something is always lost.
    pub(super) fn needs_repair(self) -> bool {
        self.loss == Loss::TenPercent && self.size != Size::Bytes64
            || self.loss == Loss::OnePercent && self.size == Size::MiB1
    }
}
