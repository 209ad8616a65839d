//! Content filters: a sample that does not pass is acknowledged, counted, and not delivered (DDS 1.4 §2.2.2.3.3).

use isolane_rtps::ChangeKind;
use isolane_sim::{LinkConfig, Random, ReaderHandle, Sample, Topic, World, WriterHandle, seeds};
use isolane_wire::qos::OwnershipKind;

use crate::{
    filtered_writer::assert_account,
    support::{PATIENCE, SECOND, keyed_samples, ms, taken, two_nodes, values, written},
};

/// Returns true if the value is a multiple of three.
fn wants(payload: &[u8]) -> bool {
    let sample = Sample::parse(ChangeKind::Alive, payload);
    sample.is_some_and(|sample| sample.value.is_multiple_of(3))
}

fn is_wanted(sample: &Sample) -> bool {
    sample.kind != ChangeKind::Alive || sample.value.is_multiple_of(3)
}

fn a_pair(mut world: World, topic: &Topic) -> (World, WriterHandle, ReaderHandle) {
    let (a, b) = two_nodes(&mut world);
    let writer = world.create_writer(a, topic);
    let reader = world.create_filtered_reader(b, topic, wants);
    world.until_matched(&[writer], &[reader]);
    (world, writer, reader)
}

#[test]
fn a_best_effort_reader_sees_what_passes() {
    let topic = Topic::new("Thirds").keep_last(4);
    let (mut world, writer, reader) = a_pair(World::new(1), &topic);
    world.publish(writer, ms(10), values(99));
    world.run_for(2 * SECOND);
    assert_account(&world, reader, (33, 66, 0));
}

#[test]
fn a_reliable_reader_has_what_passes_once_and_in_order_whatever_the_link_loses() {
    seeds::for_each(0..20, |seed| {
        let world = World::new(seed).link(LinkConfig::lossy(0.2));
        let topic = Topic::new("Thirds").reliable().keep_all(16).keyed();
        let (mut world, writer, reader) = a_pair(world, &topic);
        let samples = keyed_samples(200, &mut Random::new(seed));
        world.publish(writer, ms(2), samples);
        let is_all = |world: &World| world.reader_ledger(reader).accounted == 200;
        world.run_until("all are accounted for", PATIENCE, is_all);
        let mut expected = written(&world, writer, 1);
        expected.retain(|(_, sample)| is_wanted(sample));
        assert_eq!(taken(&world, reader, writer), expected, "seed {seed}");
        let ledger = world.reader_ledger(reader);
        assert_eq!(
            ledger.content_filtered + ledger.delivered + ledger.unregistered,
            200,
            "seed {seed}: {ledger:?}"
        );
        assert!(ledger.balances());
    });
}

#[test]
fn what_does_not_pass_takes_no_room() {
    // The cache has one slot, the user takes nothing, and hundreds of samples do not pass the filter.
    let topic = Topic::new("Thirds").reliable().keep_all(1);
    let (mut world, writer, reader) = a_pair(World::new(3), &topic);
    world.publish(writer, ms(5), (0..300).map(|n| Sample::value(3 * n + 1)));
    let is_all = |world: &World| world.reader_ledger(reader).content_filtered == 300;
    world.run_until("none passes", PATIENCE, is_all);
}

#[test]
fn what_does_not_pass_passes_on_no_ownership() {
    let topic = Topic::new("Thirds").reliable().keep_all(16).keyed();
    let of = |strength| {
        topic.clone().qos(move |qos| {
            qos.ownership = OwnershipKind::Exclusive;
            qos.ownership_strength = strength;
        })
    };
    let mut world = World::new(4);
    let (a, b) = two_nodes(&mut world);
    let (weak, strong) = (
        world.create_writer(a, &of(1)),
        world.create_writer(a, &of(2)),
    );
    let reader = world.create_filtered_reader(b, &of(0), wants);
    world.until_matched(&[weak, strong], &[reader]);
    // The filter rejects every sample of the stronger writer.
    world.publish(strong, ms(10), (0..50).map(|n| Sample::keyed(1, 3 * n + 1)));
    world.publish(weak, ms(10), (0..50).map(|n| Sample::keyed(1, 3 * n)));
    world.run_for(2 * SECOND);
    let ledger = world.reader_ledger(reader);
    assert_eq!(
        (ledger.delivered, ledger.content_filtered, ledger.not_owner),
        (50, 50, 0)
    );
}
