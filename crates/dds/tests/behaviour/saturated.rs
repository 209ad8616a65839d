//! Tests of a participant that always has work of the highest priority, for longer than its lease.

use std::{cell::Cell, rc::Rc, time::Duration};

use isolane::{Participant, Qos, Timing};

use crate::support::{Message, Site, World, level};

const LEASE: Duration = Duration::from_secs(1);

fn activations(participant: &Participant, job: &str) -> u64 {
    let report = participant.report();
    let found = report.jobs.iter().find(|one| one.name == job);
    found.map_or(0, |job| job.statistics.activations)
}

#[test]
fn a_participant_saturated_at_level_7_for_longer_than_the_leases_loses_no_peer_and_is_not_lost() {
    for site in Site::both() {
        let timing = Timing {
            lease: LEASE,
            announce_period: LEASE / 5,
            ..Timing::default()
        };
        let mut world = World::new(site);
        let (alice, bob) = {
            let build = || world.site.builder().timing(timing).build().unwrap();
            (build(), build())
        };
        world.drive(&alice);
        world.drive(&bob);
        let qos = Qos::best_effort().level(level(7));
        let writer = bob.create_writer::<Message>("Busy", &qos).unwrap();
        let reader = alice.create_view_reader::<Message>("Busy", &qos).unwrap();
        let received = Rc::new(Cell::new(0_u32));
        let counted = Rc::clone(&received);
        reader.on_view(move |_| counted.set(counted.get() + 1));
        let commands = bob.create_reader::<Message>("Calm", &qos).unwrap();
        let commander = alice.create_writer::<Message>("Calm", &qos).unwrap();
        world.until_matched(&writer, &reader);
        world.until_matched(&commander, &commands);

        // A timer that is always due, so nothing below level 7 runs any more.
        let always = Duration::from_nanos(1);
        let mut number = 0;
        let write = move |_| {
            number += 1;
            if number % 64 == 0 {
                // A lack of free frames does not matter here.
                writer.write(&Message::number(number)).unwrap_or_default();
            }
        };
        let busy = bob
            .create_timer("busy", level(7), always, Duration::ZERO, write)
            .unwrap();
        world.run_for(Duration::from_millis(10));
        let job = "receive discovery";
        let before = activations(&bob, job);
        world.run_for(3 * LEASE);
        assert_eq!(activations(&bob, job), before, "nothing else ran");
        assert!(received.get() > 0);
        assert_eq!(reader.matched_writers(), 1, "alice has not parted");

        bob.stop_timer(busy);
        world.run_for(LEASE / 2);
        assert_eq!(commands.matched_writers(), 1, "bob has not parted");
        for participant in [&alice, &bob] {
            assert_eq!(participant.counters().leases_expired, 0);
            assert_eq!(participant.participants().len(), 1);
        }
        commander.write(&Message::number(1)).unwrap();
        world.until("a sample arrives", || commands.available() == 1);
        // The timer's callback was dropped, and the writer with it.
        world.until("alice is notified", || reader.matched_writers() == 0);
    }
}
