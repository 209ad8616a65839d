//! Target `protocol`: local participants in virtual time under arbitrary network and user behaviour.
//!
//! An input selects the world (number of local participants, endpoints) and then operations. Raw bytes, composed
//! messages and eavesdroppers' messages arrive. Datagrams in flight are altered, duplicated or lost, and time passes.
//! Users write, take, create and delete. `check` examines every participant after each operation.

mod check;
mod operations;
mod states;
mod world;

pub(crate) use self::operations::{OPERATIONS, arrival, time};
pub use self::states::{Reached, reached};
use self::world::World;
use crate::{input::Input, limits::MAX_OPERATIONS};

/// Runs operations on two or three local participants.
pub fn protocol(bytes: &[u8]) {
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
