//! Conformance suite of datapaths: cases that run on any implementation.
//!
//! An implementation provides a [`Fixture`], which makes participants that reach one another, and instantiates the
//! suite in its tests:
//!
//! ```text
//! isolane_testkit::conformance!(unicast, UdpOnLoopback);
//! isolane_testkit::conformance!(multicast, MemoryNetwork);
//! isolane_testkit::conformance!(accounts, FaultyNetwork);
//! ```
//!
//! `unicast` holds the requirements on every datapath, `multicast` the ones on datapaths with groups. `accounts` holds
//! the requirements that are also met under injected faults: every datagram is counted, every frame returns to its
//! pool. `accounts` is part of `unicast`. `tests/seeded_mistakes.rs` runs the suite over datapaths with one mistake
//! each, and expects every mistake to be found.
//!
//! Each case becomes a test. [`unicast_cases`], [`multicast_cases`] and [`account_cases`] return lists, for a test that
//! first prepares its environment. A case panics where the contract is broken. At its end it checks that every ledger
//! balances and every frame has returned to its pool.

mod accounts;
mod delivery;
mod frames;
mod participant;
pub mod table;

use std::time::Duration;

use isolane_datapath::{Datapath, Lane, PoolConfig};

pub use self::accounts::{
    a_closed_lane_refuses_by_name, a_reader_that_does_not_drain_loses_only_by_count,
    an_absent_participant_harms_no_other_datagram, every_datagram_sent_arrives_or_is_named,
    no_call_takes_more_than_it_may, no_frame_is_kept_for_good,
    what_cannot_be_reached_is_named_and_the_rest_goes_on,
    what_is_handed_on_was_sent_or_is_counted_as_changed,
    what_is_sent_is_received_or_dropped_by_name,
};
pub use self::delivery::{
    a_datagram_wakes_its_lane, a_frame_goes_to_a_group_and_a_participant_at_once,
    a_group_reaches_every_member_once, a_lane_opened_twice_is_the_same_lane,
    groups_of_levels_are_apart, lanes_do_not_see_each_others_datagrams,
    one_frame_reaches_several_destinations,
    the_source_of_a_datagram_is_where_its_sender_is_reached,
    what_is_sent_arrives_unchanged_and_in_order,
    who_has_not_opened_the_lane_gets_nothing_of_its_group,
};
pub use self::frames::{
    a_burst_takes_no_more_than_requested, a_reader_that_holds_its_frames_loses_nothing,
    a_segmented_burst_is_its_datagrams, an_exhausted_bulk_pool_leaves_critical_frames,
    datagrams_longer_than_a_frame_are_dropped_by_name, empty_and_largest_datagrams_arrive,
    every_frame_goes_home, too_long_is_refused_by_name,
};
use crate::fault::Injected;

/// Configuration of the participants of a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Frame pool.
    pub pool: PoolConfig,
    /// Approximate size in bytes of a small queue between the medium and a reader.
    pub queue_bytes: Option<usize>,
}

/// Medium on which an implementation is tested.
pub trait Fixture {
    /// Implementation under test.
    type Datapath: Datapath;

    /// Longest time until a datagram arrives, however busy the host is.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// Longest time until a datagram arrives on an idle host. A lane counts as empty after this
    /// time without a datagram.
    const SETTLE: Duration = Duration::ZERO;

    /// True if a full queue at the reader refuses datagrams at the sender, instead of losing them at the reader.
    const PUSHES_BACK: bool = false;

    /// Returns a medium without participants.
    fn new() -> Self;

    /// Adds a participant that all others can reach. Its lanes are closed.
    fn attach(&mut self, options: &Options) -> Self::Datapath;

    /// Returns the faults injected into a lane. None by default.
    fn injected(_datapath: &Self::Datapath, _lane: Lane) -> Injected {
        Injected::default()
    }
}

/// Name and function of a case.
pub type Case = (&'static str, fn());

/// Returns the cases for every datapath.
#[must_use]
pub fn unicast_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@unicast list F)
}

/// Returns the cases for datapaths with multicast.
#[must_use]
pub fn multicast_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@multicast list F)
}

/// Returns the cases that hold under injected faults. Part of [`unicast_cases`].
#[must_use]
pub fn account_cases<F: Fixture>() -> Vec<Case> {
    crate::conformance!(@accounts list F)
}

/// Names of [`unicast_cases`].
pub const UNICAST_CASES: &[&str] = crate::conformance!(@unicast names ());

/// Names of [`multicast_cases`].
pub const MULTICAST_CASES: &[&str] = crate::conformance!(@multicast names ());

/// Makes a test of each case: `conformance!(unicast, MyFixture)`, `conformance!(multicast, ..)` or
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
            a_burst_takes_no_more_than_requested
            empty_and_largest_datagrams_arrive
            a_segmented_burst_is_its_datagrams
            too_long_is_refused_by_name
            datagrams_longer_than_a_frame_are_dropped_by_name
            an_exhausted_bulk_pool_leaves_critical_frames
            a_reader_that_holds_its_frames_loses_nothing
            every_frame_goes_home
            what_is_sent_is_received_or_dropped_by_name
            what_cannot_be_reached_is_named_and_the_rest_goes_on
            an_absent_participant_harms_no_other_datagram
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
