//! Number of datagrams until all participants have discovered each other. `cargo xtask discovery` runs this example.
//!
//! ```text
//! cargo run --release --package isolane-sim --example participants 500
//! ```

use std::{env, error::Error, process::ExitCode, time::Duration};

use isolane_rtps::Limits;
use isolane_sim::{LinkConfig, NodeConfig, NodeId, Topic, World};

/// All participants start within this time, evenly distributed, like hosts that are switched on together. If they
/// started at one instant, they would find full inboxes in the same order every time, unlike real hosts.
const STARTS: Duration = Duration::from_secs(5);
/// Longest time from the last start until all know each other, and the time between two looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("participants: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let argument = env::args().nth(1).ok_or("usage: participants COUNT")?;
    let count: u16 = argument.parse()?;
    let link = LinkConfig {
        jitter: Duration::from_micros(200),
        ..LinkConfig::default()
    };
    let mut world = World::new(1).link(link);
    let config = NodeConfig {
        limits: Limits {
            local_endpoints: 2,
            participants: count,
            remote_endpoints: 2 * count,
            matches: 4 * count,
            ..Limits::default()
        },
        ..NodeConfig::default()
    };
    let topic = Topic::new("Pair").reliable().keep_last(1);
    let mut nodes = Vec::new();
    for number in 0..count {
        let node = world.node(config.clone());
        // Neighbours talk with each other.
        let topic = topic.clone().name(&format!("Pair{}", number / 2));
        match number % 2 {
            0 => drop(world.create_writer(node, &topic)),
            _ => drop(world.create_reader(node, &topic)),
        }
        nodes.push(node);
        world.run_for(STARTS / u32::from(count));
    }
    let known = |world: &World| {
        let peers = |&node: &NodeId| world.protocol(node).remote_participants().count();
        let endpoints = |&node: &NodeId| world.protocol(node).remote_endpoints().count();
        let all = usize::from(count) - 1;
        nodes
            .iter()
            .all(|node| peers(node) == all && endpoints(node) == all)
    };
    let mut took = Duration::ZERO;
    while !known(&world) {
        if took >= PATIENCE {
            return Err(format!("not all know each other after {took:?}").into());
        }
        world.run_for(LOOK);
        took += LOOK;
    }
    let ledger = world.link_ledger();
    println!("participants {count}");
    println!("took_ms {}", took.as_millis());
    println!("datagrams {}", ledger.delivered);
    println!("lane_full {}", ledger.lane_full);
    Ok(())
}
