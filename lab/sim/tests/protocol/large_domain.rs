//! Many participants that start within a few seconds on slow machines and lossy links.

use isolane_rtps::Limits;
use isolane_sim::{LinkConfig, NodeConfig, Topic, World, seeds};

use crate::support::{SECOND, ms};

const NODES: usize = 40;
const PER_NODE: usize = 5;

#[test]
fn many_participants_that_start_together_on_slow_machines_find_all_endpoints_of_each_other() {
    seeds::for_each(0..4, |seed| {
        let loss = [0.0, 0.2, 0.4, 0.6][seed as usize % 4];
        let mut world = World::new(seed).link(LinkConfig::lossy(loss));
        let config = NodeConfig {
            limits: Limits {
                participants: 64,
                remote_endpoints: 640,
                matches: 640,
                ..NodeConfig::default().limits
            },
            step: ms(1 + seed / 4 % 4) / 2,
            ..NodeConfig::default()
        };
        let mut pairs = Vec::new();
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(world.node(config.clone()));
            world.run_for(ms(50));
        }
        for (at, &node) in nodes.iter().enumerate() {
            for nth in 0..PER_NODE {
                let name = format!("{at}-{nth}");
                let topic = Topic::new(&name).reliable().keep_all(16);
                let writer = world.create_writer(node, &topic);
                let reader = world.create_reader(nodes[(at + 1) % NODES], &topic);
                pairs.push((writer, reader));
            }
        }
        for at in 0..20 {
            let node = nodes[(seed as usize + 7 * at) % NODES];
            world.stop_for(node, ms(700));
            world.run_for(SECOND / 2);
        }
        world.set_link(LinkConfig::default());
        world.run_for(60 * SECOND);
        for &node in &nodes {
            let protocol = world.protocol(node);
            let known = protocol.remote_endpoints().count();
            assert_eq!(
                known,
                (NODES - 1) * PER_NODE * 2,
                "seed {seed}, {node:?}, {:?}",
                protocol.counters()
            );
        }
        for (writer, reader) in pairs {
            assert_eq!(world.matched_readers(writer), 1, "seed {seed}");
            assert_eq!(world.matched_writers(reader), 1, "seed {seed}");
        }
    });
}
