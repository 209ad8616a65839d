//! Sample, view and instance states (DDS 1.4 §2.2.2.5.1), and masks of them.
//!
//! The *view state* says whether the user has seen an instance since it last became alive. An instance that was not
//! alive becomes alive again with its next sample, and a generation count is incremented for the kind of end (disposed,
//! or no writers). The *generation ranks* of samples are differences of these counts within one instance.

use bitflags::bitflags;
use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use crate::{cache::SampleInfo, history::ChangeKind, instance::InstanceState};

/// Sample state (DDS 1.4 §2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SampleState {
    /// The sample was not read.
    #[default]
    NotRead,
    /// The sample was read, and stayed in the cache.
    Read,
}

/// View state of an instance (§2.2.2.5.1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewState {
    /// No sample was accessed since the instance last became alive.
    #[default]
    New,
    /// Samples of the instance were accessed.
    NotNew,
}

bitflags! {
    /// Mask of sample, view and instance states. A kind without any bit is not restricted, so the empty mask selects
    /// everything.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StateMask: u8 {
        /// Samples already read.
        const READ = 1;
        /// Samples not read yet.
        const NOT_READ = 2;
        /// Samples of instances not accessed before.
        const NEW = 4;
        /// Samples of instances accessed before.
        const NOT_NEW = 8;
        /// Samples of instances that are alive.
        const ALIVE = 16;
        /// Samples of disposed instances.
        const NOT_ALIVE_DISPOSED = 32;
        /// Samples of instances without writers.
        const NOT_ALIVE_NO_WRITERS = 64;
        /// Samples of instances that are not alive.
        const NOT_ALIVE = 32 | 64;
    }
}

impl StateMask {
    const SAMPLES: Self = Self::READ.union(Self::NOT_READ);
    const VIEWS: Self = Self::NEW.union(Self::NOT_NEW);
    const INSTANCES: Self = Self::ALIVE.union(Self::NOT_ALIVE);

    fn of(info: &SampleInfo) -> Self {
        let sample = match info.sample_state {
            SampleState::Read => Self::READ,
            SampleState::NotRead => Self::NOT_READ,
        };
        let view = match info.view_state {
            ViewState::New => Self::NEW,
            ViewState::NotNew => Self::NOT_NEW,
        };
        let instance = match info.instance_state {
            InstanceState::Alive => Self::ALIVE,
            InstanceState::NotAliveDisposed => Self::NOT_ALIVE_DISPOSED,
            InstanceState::NotAliveNoWriters => Self::NOT_ALIVE_NO_WRITERS,
        };
        sample | view | instance
    }

    /// Returns whether the mask selects a sample with these states.
    #[must_use]
    pub fn takes(self, info: &SampleInfo) -> bool {
        let states = Self::of(info);
        let kinds = [Self::SAMPLES, Self::VIEWS, Self::INSTANCES];
        kinds.into_iter().all(|kind| {
            let asked = self & kind;
            asked.is_empty() || asked.intersects(states)
        })
    }
}

impl SampleInfo {
    /// Initial state of a received sample.
    pub(crate) const UNSEEN: Self = Self {
        writer: Guid::UNKNOWN,
        sequence: SequenceNumber::UNKNOWN,
        source_timestamp: None,
        received: Instant::new(0),
        expires: None,
        kind: ChangeKind::Alive,
        sample_state: SampleState::NotRead,
        view_state: ViewState::New,
        instance_state: InstanceState::Alive,
        disposed_generation_count: 0,
        no_writers_generation_count: 0,
        sample_rank: 0,
        generation_rank: 0,
        absolute_generation_rank: 0,
        key_hash: None,
    };

    /// Returns the generation of the instance that the sample belongs to.
    pub(crate) fn generation(&self) -> u32 {
        self.disposed_generation_count
            .wrapping_add(self.no_writers_generation_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_names_states_of_some_kinds_and_means_all_of_the_others() {
        let fresh = SampleInfo::UNSEEN;
        let seen = SampleInfo {
            sample_state: SampleState::Read,
            view_state: ViewState::NotNew,
            instance_state: InstanceState::NotAliveDisposed,
            ..fresh
        };
        let takes = |mask: StateMask| (mask.takes(&fresh), mask.takes(&seen));
        assert_eq!(takes(StateMask::empty()), (true, true));
        assert_eq!(takes(StateMask::all()), (true, true));
        assert_eq!(takes(StateMask::NOT_READ), (true, false));
        assert_eq!(takes(StateMask::NOT_NEW), (false, true));
        assert_eq!(takes(StateMask::NOT_ALIVE), (false, true));
        assert_eq!(takes(StateMask::NOT_ALIVE_NO_WRITERS), (false, false));
        assert_eq!(
            takes(StateMask::NOT_READ | StateMask::NOT_ALIVE),
            (false, false)
        );
        assert_eq!(
            takes(StateMask::READ | StateMask::NOT_ALIVE_DISPOSED),
            (false, true)
        );
    }
}
