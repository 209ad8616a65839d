//! Reasons that invalidate a run with balanced samples: a weak disturbance, an unused lane, or unaccounted foreign
//! traffic.

use super::run::Config;
use crate::cable::wire_bytes;
use crate::limits::MESSAGE_HEADS_BYTES;
use crate::report::{Disturbed, EndLanes, Ledger, Place, Run};
use crate::scenario::transport::{BY_LANE, LEAST_BY_LANE, Transport};
use crate::storm;

/// Minimum share of its rate for a storm. Steps are compared under the same storm, and the measured times grow with its
/// rate: a fifth less already looks like an improvement. The senders are not on the hosts' core, so they reach the full
/// rate unless the machine stalls.
const LEAST_OF_STORM: f64 = 0.8;

/// Maximum share of the link that round trips may fill. Beyond it they wait for each other, and the run measures the
/// link's queue.
const MOST_OF_LINK: f64 = 0.8;

/// First reason that applies.
pub(super) fn fault_of(config: &Config, run: &Run) -> Option<String> {
    let storm = run.ledger.as_ref().and_then(|ledger| ledger.storm.as_ref());
    filled_link(config)
        .or_else(|| run.disturbed.as_ref().and_then(too_little))
        .or_else(|| storm.and_then(|storm| weak_storm(config, storm)))
        .or_else(|| miscounted_flood(run))
        .or_else(|| unused_lane(config, run))
        .or_else(|| strangers(run))
}

/// Reports round trips that fill the cable.
fn filled_link(config: &Config) -> Option<String> {
    if !matches!(config.place, Place::Link | Place::FastLink) {
        return None;
    }
    let frame_bytes = u64::from(MESSAGE_HEADS_BYTES + config.scenario.payload_bytes);
    let bits_per_s = wire_bytes(frame_bytes) * 8 * u64::from(config.scenario.rate_hz);
    let share = bits_per_s as f64 / config.cable.bits_per_s as f64;
    (share > MOST_OF_LINK).then(|| {
        format!(
            "the round trips fill {:.0} % of the link (at most {:.0} % are a result): choose a lower rate, smaller \
             samples or a faster link",
            share * 100.0,
            MOST_OF_LINK * 100.0
        )
    })
}

fn too_little(disturbed: &Disturbed) -> Option<String> {
    (!disturbed.enough).then(|| {
        format!(
            "the disturbance achieved {:.0} a second (at least {:.0} are wanted) and {} repairs: too \
             little to show anything",
            disturbed.achieved_per_s,
            disturbed.least_per_s,
            disturbed.bulk_repaired.unwrap_or(0)
        )
    })
}

/// Reports a weak storm, or contradictory counts of its sockets.
fn weak_storm(config: &Config, storm: &storm::Report) -> Option<String> {
    let (reached, asked) = (storm.least_frames_per_s(), config.storm.frames_per_s);
    let is_weak = reached < asked * LEAST_OF_STORM;
    let weak = is_weak.then(|| {
        format!(
            "the storm reached {reached:.0} frames a second, {asked:.0} were wanted: too little to show \
             anything"
        )
    });
    storm.check().err().or(weak)
}

/// Reports a flood whose counts contradict each other or the cable's.
fn miscounted_flood(run: &Run) -> Option<String> {
    let Ledger { cable, flood, .. } = run.ledger.as_ref()?;
    let relayed = [&cable.a_to_b.frames, &cable.b_to_a.frames];
    flood.as_ref()?.check(relayed).err()
}

/// Reports a run over lanes whose samples arrived by kernel sockets.
fn unused_lane(config: &Config, run: &Run) -> Option<String> {
    let (Transport::Xdp(_), Some(lanes)) = (config.transport, &run.lanes) else {
        return None;
    };
    let [pings, pongs] = &run.flows[..] else {
        return None;
    };
    let ends = [
        ("pong", pings.received, &lanes.pong),
        ("ping", pongs.received, &lanes.ping),
    ];
    ends.into_iter().find_map(|(end, received, lanes)| {
        let by_lane = lanes.counts.get(BY_LANE).copied().unwrap_or(0);
        let is_used = by_lane as f64 >= received as f64 * LEAST_BY_LANE;
        (!is_used).then(|| {
            format!(
                "only {by_lane} of {received} datagrams came to the {end} end by its lane: these are \
                 numbers of sockets"
            )
        })
    })
}

/// Reports foreign traffic to a level of the pong end that neither arrived nor was dropped by name. The ping end has
/// ended before the senders stop.
fn strangers(run: &Run) -> Option<String> {
    let ledger = run.ledger.as_ref()?;
    let EndLanes { strangers, .. } = &run.lanes.as_ref()?.pong;
    let arrived = strangers.as_ref()?.arrived();
    let flood = ledger.flood.as_ref().map(|flood| flood.a_to_b.sent);
    let sent = flood.or_else(|| ledger.storm.as_ref().map(|storm| storm.a_to_b.sent))?;
    let frames = ledger.cable.a_to_b.frames;
    let measured = run.flows.first()?.cable?;
    let dropped = frames.arrived - frames.sent - measured.dropped;
    // Announcements and similar frames are included in the cable's counts.
    let others = frames.arrived.saturating_sub(sent + measured.arrived);
    let missing = sent as i64 - dropped as i64 - arrived as i64;
    let is_balanced = -(others as i64) <= missing && missing <= 0;
    (!is_balanced).then(|| {
        format!(
            "strangers sent {sent} datagrams to the level of bulk; the cable dropped {dropped}, {arrived} \
             reached it or were dropped by name: {missing} are not accounted for ({others} other frames)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PingRecorder, PongRecorder, Rounds, StampClock};
    use crate::scenario::plan::{self, Part};

    #[test]
    fn round_trips_that_fill_the_link_are_no_result() {
        let seconds = plan::Seconds { link: 1, inside: 1 };
        let mut config = plan::demo(&[Part::Link], &[1_024], seconds).remove(0);
        // 2,000 frames of 1,024 + 102 + 24 bytes per second are 18.4 Mbit/s.
        config.cable.bits_per_s = 40_000_000;
        assert_eq!(filled_link(&config), None);
        let (ping, pong) = (PingRecorder::new(10, 1), PongRecorder::new(10, 1));
        let clock = StampClock::default();
        let rounds = Rounds::merge(ping, pong, None, 500_000, [&clock; 2]).expect("rounds");
        let mut run = Run::new(&config.scenario, &rounds, None);
        assert_eq!(fault_of(&config, &run), None);
        config.cable.bits_per_s = 20_000_000;
        let told = filled_link(&config).expect("92 % of the link");
        assert!(told.contains("fill 92 % of the link"), "{told}");
        assert_eq!(fault_of(&config, &run).as_ref(), Some(&told));
        run.disturbed = Some(Disturbed::default());
        assert_eq!(
            fault_of(&config, &run),
            Some(told),
            "the first reason is the link"
        );
        config.place = Place::Devices;
        assert_eq!(
            filled_link(&config),
            None,
            "the rate of a device is not known"
        );
    }
}
