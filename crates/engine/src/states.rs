//! Sample, view and instance states (DDS 1.4 §2.2.2.5.1), and what one asks for by them.
//!
//! A sample was read before or not. A *view* says whether this reader's user has looked at an instance since it
//! was born, or born again last: an instance that has ended is born again by the next sample of it, and each time
//! it is, a count says which of the two ends it came back from. So samples of one instance tell of how many
//! lives it has had between any two of them: their *ranks*.

use bitflags::bitflags;
use isolane_wire::{guid::Guid, sequence::SequenceNumber, time::Instant};

use crate::{cache::SampleInfo, history::ChangeKind, instance::InstanceState};

/// Whether a sample was read before (DDS 1.4 §2.2.2.5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SampleState {
    /// Not yet.
    #[default]
    NotRead,
    /// It was, and stayed.
    Read,
}

/// Whether samples of an instance were looked at before (§2.2.2.5.1.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewState {
    /// Not since the instance was born, or born again last.
    #[default]
    New,
    /// They were.
    NotNew,
}

bitflags! {
    /// The states of samples that are asked for. Where none of a kind is named (sample, view or instance
    /// state), all of that kind are meant: the empty mask asks for everything.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct StateMask: u8 {
        /// Samples that were read before.
        const READ = 1;
        /// Samples that were not.
        const NOT_READ = 2;
        /// Of instances that were not looked at before.
        const NEW = 4;
        /// Of instances that were.
        const NOT_NEW = 8;
        /// Of instances that are written.
        const ALIVE = 16;
        /// Of instances that were disposed.
        const NOT_ALIVE_DISPOSED = 32;
        /// Of instances that nobody writes any more.
        const NOT_ALIVE_NO_WRITERS = 64;
        /// Of instances that have ended either way.
        const NOT_ALIVE = 32 | 64;
    }
}

impl StateMask {
    const SAMPLES: Self = Self::READ.union(Self::NOT_READ);
    const VIEWS: Self = Self::NEW.union(Self::NOT_NEW);
    const INSTANCES: Self = Self::ALIVE.union(Self::NOT_ALIVE);

    /// The states that one sample has.
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

    /// Whether a sample with these states is asked for.
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
    /// Of a sample that has come and that nobody has looked at: what is the same of all such.
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

    /// Lives of its instance before the one it belongs to.
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
