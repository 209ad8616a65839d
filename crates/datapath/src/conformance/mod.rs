//! What every datapath does, as cases that any implementation is run through.
//!
//! An implementation writes a [`Fixture`], which makes participants that can reach one another,
//! and instantiates the suite in its tests:
//!
//! ```text
//! isolane_datapath::conformance!(unicast, UdpOnLoopback);
//! isolane_datapath::conformance!(multicast, MemoryNetwork);
//! isolane_datapath::conformance!(accounts, FaultyNetwork);
//! ```
//!
//! `unicast` holds what every datapath does, `multicast` what is added where groups work, and
//! `accounts` what is left where things go wrong on purpose: every datagram is counted, every
//! frame goes home. It is part of `unicast`. That the suite finds what it should is a test, too:
//! it is run over datapaths with one seeded mistake each.
//!
//! Each case becomes a test of its own; [`unicast_cases`], [`multicast_cases`] and [`account_cases`] give them as a
//! list, for a test that must prepare its surroundings first. A case panics where the contract
//! is not kept, and ends by checking that every ledger balances and every frame went home.

mod accounts;
mod counting;
mod delivery;
mod frames;
mod groups;
#[cfg(test)]
mod seeded_mistakes;
mod sizes;
mod world;

use std::time::Duration;

use crate::contract::Datapath;
use crate::pool::PoolConfig;

pub use self::accounts::{
    a_closed_lane_refuses_by_name, a_reader_that_does_not_drain_loses_only_by_count,
    nobody_listening_harms_no_other_datagram, what_cannot_be_reached_is_named_and_the_rest_goes_on,
    what_is_sent_is_received_or_dropped_by_name,
};
pub use self::counting::{
    every_datagram_sent_arrives_or_is_named, no_call_takes_more_than_it_may,
    no_frame_is_kept_for_good, what_is_handed_on_was_sent_or_is_counted_as_changed,
};
pub use self::delivery::{
    a_datagram_wakes_its_lane, a_lane_opened_twice_is_the_same_lane,
    lanes_do_not_see_each_others_datagrams, one_frame_reaches_several_destinations,
    the_source_of_a_datagram_is_where_its_sender_is_reached,
    what_is_sent_arrives_unchanged_and_in_order,
};
pub use self::frames::{
    a_reader_that_holds_its_frames_loses_nothing, an_exhausted_bulk_pool_leaves_critical_frames,
    every_frame_goes_home,
};
pub use self::groups::{
    a_frame_goes_to_a_group_and_a_participant_at_once, a_group_reaches_every_member_once,
    groups_of_levels_are_apart, who_has_not_opened_the_lane_gets_nothing_of_its_group,
};
pub use self::sizes::{
    a_burst_takes_no_more_than_it_is_asked_for, datagrams_longer_than_a_frame_are_dropped_by_name,
    empty_and_largest_datagrams_arrive, too_long_is_refused_by_name,
};

/// What a case wants of the participants it is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Their frames.
    pub pool: PoolConfig,
    /// A small queue of about so many bytes between the medium and a reader.
    pub queue_bytes: Option<usize>,
}

/// A medium on which an implementation is tried out.
pub trait Fixture {
    /// The implementation.
    type Datapath: Datapath;

    /// What is sent has arrived after that, however busy the host is.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// How long what was sent may take to arrive while nothing else happens: an empty lane is looked
    /// at for so long before it counts as empty for good.
    const SETTLE: Duration = Duration::ZERO;

    /// A medium without participants.
    fn new() -> Self;

    /// Another participant, which all others can reach; no lane is open yet.
    fn attach(&mut self, options: &Options) -> Self::Datapath;
}

/// A case with its name.
pub type Case = (&'static str, fn());

/// What every datapath does.
#[must_use]
pub fn unicast_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@unicast list F)
}

/// What a datapath does that can multicast.
#[must_use]
pub fn multicast_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@multicast list F)
}

/// What a datapath does even where things go wrong on purpose. Part of [`unicast_cases`].
#[must_use]
pub fn account_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@accounts list F)
}

/// Names of what every datapath does.
pub const UNICAST_CASES: &[&str] = crate::conformance!(@unicast names ());

/// Names of what is added where groups work.
pub const MULTICAST_CASES: &[&str] = crate::conformance!(@multicast names ());

/// Runs all cases of a datapath that can multicast, one after the other.
pub fn all<F: Fixture>() {
    for (_, case) in unicast_cases::<F>()
        .into_iter()
        .chain(multicast_cases::<F>())
    {
        case();
    }
}

/// Makes a test of each case: `conformance!(unicast, MyFixture)`, `conformance!(multicast, ..)`,
/// `conformance!(accounts, ..)`.
#[macro_export]
macro_rules! conformance {
    (unicast, $fixture:ty) => {
        $crate::conformance!(@unicast tests $fixture);
    };
    (multicast, $fixture:ty) => {
        $crate::conformance!(@multicast tests $fixture);
    };
    (accounts, $fixture:ty) => {
        $crate::conformance!(@accounts tests $fixture);
    };
    (@unicast $form:ident $fixture:ty) => {
        $crate::conformance! { @$form $fixture:
            what_is_sent_arrives_unchanged_and_in_order
            lanes_do_not_see_each_others_datagrams
            one_frame_reaches_several_destinations
            the_source_of_a_datagram_is_where_its_sender_is_reached
            a_datagram_wakes_its_lane
            a_lane_opened_twice_is_the_same_lane
            a_burst_takes_no_more_than_it_is_asked_for
            empty_and_largest_datagrams_arrive
            too_long_is_refused_by_name
            datagrams_longer_than_a_frame_are_dropped_by_name
            an_exhausted_bulk_pool_leaves_critical_frames
            a_reader_that_holds_its_frames_loses_nothing
            every_frame_goes_home
            what_is_sent_is_received_or_dropped_by_name
            what_cannot_be_reached_is_named_and_the_rest_goes_on
            nobody_listening_harms_no_other_datagram
            a_closed_lane_refuses_by_name
            a_reader_that_does_not_drain_loses_only_by_count
            every_datagram_sent_arrives_or_is_named
            what_is_handed_on_was_sent_or_is_counted_as_changed
            no_call_takes_more_than_it_may
            no_frame_is_kept_for_good
        }
    };
    (@accounts $form:ident $fixture:ty) => {
        $crate::conformance! { @$form $fixture:
            every_datagram_sent_arrives_or_is_named
            what_is_handed_on_was_sent_or_is_counted_as_changed
            no_call_takes_more_than_it_may
            no_frame_is_kept_for_good
            a_closed_lane_refuses_by_name
        }
    };
    (@multicast $form:ident $fixture:ty) => {
        $crate::conformance! { @$form $fixture:
            a_group_reaches_every_member_once
            groups_of_levels_are_apart
            a_frame_goes_to_a_group_and_a_participant_at_once
            who_has_not_opened_the_lane_gets_nothing_of_its_group
        }
    };
    (@list $fixture:ty: $($case:ident)+) => {
        vec![$((stringify!($case), $crate::conformance::$case::<$fixture> as fn())),+]
    };
    (@names $fixture:ty: $($case:ident)+) => {
        &[$(stringify!($case)),+]
    };
    (@tests $fixture:ty: $($case:ident)+) => {
        $(
            #[test]
            fn $case() {
                $crate::conformance::$case::<$fixture>();
            }
        )+
    };
}
