//! Recovery: after any faults, a system without further faults returns to a correct state.

use isolane_rtps::ChangeKind;
use isolane_sim::{
    LinkConfig, NodeConfig, NodeId, Partition, Random, ReaderHandle, Sample, Take, Topic, World,
    WriterHandle, seeds,
};

use crate::support::{PATIENCE, SECOND, keyed_samples, ms};

const NODES: usize = 4;
/// Maximum number of endpoints of one kind at a time.
const ENDPOINTS: usize = 6;
const MISFORTUNES: usize = 40;

/// System with faults.
struct System {
    world: World,
    chance: Random,
    topic: Topic,
    /// Maximum padding of samples, in bytes.
    padding: u32,
    is_up: [bool; NODES],
    writers: Vec<(NodeId, WriterHandle)>,
    readers: Vec<(NodeId, ReaderHandle)>,
}

impl System {
    fn new(seed: u64, padding: u32) -> Self {
        let mut chance = Random::new(seed).fork();
        let mut topic = Topic::new("Chaos")
            .reliable()
            .keyed()
            .max_payload_bytes(20 + padding as usize);
        topic = match chance.below(3) {
            0 => topic.keep_all(chance.between(2, 16) as u16),
            1 => topic.keep_last(chance.between(1, 4) as u16),
            _ => topic
                .keep_last(chance.between(1, 4) as u16)
                .transient_local(),
        };
        if chance.chance(0.5) {
            topic = topic.multicast();
        }
        let mut world = World::new(seed).link(LinkConfig::lossy(0.2));
        let config = if chance.chance(0.3) {
            // The nodes form a circle: each is in the peer list of one other.
            NodeConfig::default()
        } else {
            NodeConfig::with_peers(&(0..NODES).map(NodeId).collect::<Vec<_>>())
        };
        world.nodes(NODES, &config);
        Self {
            world,
            chance,
            topic,
            padding,
            is_up: [true; NODES],
            writers: Vec::new(),
            readers: Vec::new(),
        }
    }

    fn a_node(&mut self) -> NodeId {
        NodeId(self.chance.below(NODES as u64) as usize)
    }

    fn goes_down(&mut self, node: NodeId) {
        self.is_up[node.0] = false;
        self.writers.retain(|&(on, _)| on != node);
        self.readers.retain(|&(on, _)| on != node);
    }

    /// Causes one fault, then lets some time pass.
    fn suffer(&mut self) {
        let node = self.a_node();
        let is_up = self.is_up[node.0];
        match self.chance.below(10) {
            0 | 1 if is_up && self.writers.len() < ENDPOINTS => {
                let writer = self.world.create_writer(node, &self.topic);
                self.writers.push((node, writer));
            }
            2 | 3 if is_up && self.readers.len() < ENDPOINTS => {
                let reader = self.world.create_reader(node, &self.topic);
                if self.chance.chance(0.3) {
                    let pause = self.chance.up_to(ms(10));
                    self.world.set_take(reader, Take::OneEvery(pause));
                }
                self.readers.push((node, reader));
            }
            4 if !self.writers.is_empty() => {
                let at = self.chance.below(self.writers.len() as u64) as usize;
                self.world.delete_writer(self.writers.swap_remove(at).1);
            }
            5 if !self.readers.is_empty() => {
                let at = self.chance.below(self.readers.len() as u64) as usize;
                self.world.delete_reader(self.readers.swap_remove(at).1);
            }
            6 if is_up => {
                self.goes_down(node);
                if self.chance.chance(0.5) {
                    self.world.leave(node);
                } else {
                    self.world.crash(node);
                }
            }
            7 if !is_up => {
                self.world.restart(node);
                self.is_up[node.0] = true;
            }
            8 => {
                let others: Vec<_> = (0..NODES)
                    .map(NodeId)
                    .filter(|&other| other != node)
                    .collect();
                let from = self.world.elapsed();
                let window = from..from + self.chance.up_to(15 * SECOND);
                let cut = match self.chance.below(3) {
                    0 => Partition::between(&[node], &others),
                    1 => Partition::one_way(&[node], &others),
                    _ => Partition::one_way(&others, &[node]),
                };
                self.world.partition(cut.during(window));
            }
            _ => {
                for &(_, writer) in &self.writers {
                    let count = self.chance.below(20);
                    let mut samples = keyed_samples(count, &mut self.chance);
                    for sample in samples.iter_mut().filter(|_| self.padding > 0) {
                        let longer = self.chance.below(u64::from(self.padding / 4)) as u32 * 4;
                        let is_long = self.chance.chance(0.5) && sample.kind == ChangeKind::Alive;
                        *sample = sample.padded(if is_long { longer } else { 0 });
                    }
                    self.world.enqueue(writer, samples);
                }
            }
        }
        self.world.run_for(self.chance.up_to(2 * SECOND));
        assert_eq!(self.world.imbalance(), None);
    }

    /// Ends all faults: all nodes are up, no link is cut, each node has a reader, and one node has another writer.
    fn recover(mut self) {
        self.world.heal();
        // The loss is so low that no lease expires by chance.
        self.world.set_link(LinkConfig::lossy(0.05));
        for node in (0..NODES).map(NodeId) {
            if !std::mem::replace(&mut self.is_up[node.0], true) {
                self.world.restart(node);
            }
            let reader = self.world.create_reader(node, &self.topic);
            self.readers.push((node, reader));
        }
        let node = self.a_node();
        let writer = self.world.create_writer(node, &self.topic);
        self.writers.push((node, writer));
        // Long enough for the leases of nodes that are gone to expire.
        self.world.run_for(12 * SECOND);

        let writers: Vec<_> = self.writers.iter().map(|&(_, writer)| writer).collect();
        let readers: Vec<_> = self.readers.iter().map(|&(_, reader)| reader).collect();
        self.world.until_matched(&writers, &readers);
        let padding = self.padding;
        let last_of = move |key| move |value| Sample::keyed(key, value).padded(padding);
        // Each writer has its own instance, so no writer replaces another's last sample.
        for (key, &writer) in (100..).zip(&writers) {
            self.world.enqueue(writer, (1..=5).map(last_of(key)));
        }
        self.world
            .run_until("what is written in peace comes", PATIENCE, |world| {
                readers.iter().all(|&reader| {
                    let last = |key| world.last_of_instance(reader, key)?.sample();
                    (100..)
                        .zip(&writers)
                        .all(|(key, _)| last(key) == Some(last_of(key)(5)))
                })
            });
    }
}

#[test]
fn a_system_that_suffers_crashes_partitions_and_changes_is_whole_again_when_left_in_peace() {
    seeds::for_each(0..200, |seed| {
        let mut system = System::new(seed, 0);
        for _ in 0..MISFORTUNES {
            system.suffer();
        }
        system.recover();
    });
}

#[test]
fn the_same_holds_of_samples_that_leave_in_fragments() {
    seeds::for_each(0..40, |seed| {
        let mut system = System::new(seed, 20_000);
        for _ in 0..MISFORTUNES {
            system.suffer();
        }
        system.recover();
    });
}
