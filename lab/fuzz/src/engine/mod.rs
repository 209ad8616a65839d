//! Engines in virtual time, and whatever a network and its users can do to them.
//!
//! An input is a choice of the world (how many engines, which endpoints) and then operations: bytes
//! arrive, composed lies arrive, lies of one who listens, datagrams on their way are changed, doubled or lost, time passes,
//! users write, take, create and delete. After each, every engine is looked at (`check`).

mod check;
mod operate;
mod states;
mod world;

pub(crate) use self::operate::{OPERATIONS, arrival, time};
pub use self::states::{Reached, reached};
use self::world::World;
use crate::{input::Input, limits::MAX_OPERATIONS};

/// Operations on two or three engines.
pub fn engine(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input);
    world.check();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        world.operate(&mut input);
        world.check();
    }
    world.finish();
}
