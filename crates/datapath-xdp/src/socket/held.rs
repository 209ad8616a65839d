//! Owners of the chunks that the kernel holds.
//!
//! A chunk's address is in exactly one place: with its owner outside, in a fill or receive ring, or in a transmit or
//! completion ring. Before an address goes into a ring, its owner goes into [`Held`]; when the address comes out of a
//! ring, the owner comes back. So no chunk has two owners, and an address that the kernel returns without having
//! received it yields no owner.

use super::umem::Umem;

/// Pair of rings that a chunk passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Fill, then receive.
    Receive,
    /// Transmit, then completion.
    Transmit,
}

/// Entry of one chunk.
#[derive(Debug)]
struct Place<T> {
    owner: Option<T>,
    /// Side that holds the chunk, if there is an owner. A separate field, so that the owner moves as a whole.
    side: Side,
}

/// Owners of the chunks that the kernel holds, by chunk number. All memory is allocated in [`new`](Self::new).
#[derive(Debug)]
pub struct Held<T> {
    umem: Umem,
    places: Box<[Place<T>]>,
    counts: [usize; 2],
    strays: u64,
}

impl<T> Place<T> {
    const fn empty() -> Place<T> {
        Place {
            owner: None,
            side: Side::Receive,
        }
    }
}

impl<T> Held<T> {
    /// Creates an empty table.
    #[must_use]
    pub fn new(umem: &Umem) -> Held<T> {
        Held {
            umem: umem.clone(),
            places: (0..umem.chunks()).map(|_| Place::empty()).collect(),
            counts: [0; 2],
            strays: 0,
        }
    }

    /// Stores the owner of a chunk before its address goes into a ring of `side`.
    ///
    /// # Errors
    /// The owner, if the address is in no chunk or the chunk is held already.
    #[inline]
    pub fn hold(&mut self, side: Side, address: u64, owner: T) -> Result<(), T> {
        match self.umem.chunk_of(address) {
            Some(chunk) => self.hold_chunk(side, chunk, owner),
            None => Err(owner),
        }
    }

    /// Stores the owner of a chunk by its number.
    ///
    /// # Errors
    /// The owner, if the chunk does not exist or is held already.
    #[inline]
    pub fn hold_chunk(&mut self, side: Side, chunk: u32, owner: T) -> Result<(), T> {
        match self.places.get_mut(chunk as usize) {
            Some(place) if place.owner.is_none() => {
                place.owner = Some(owner);
                place.side = side;
                self.counts[side as usize] += 1;
                Ok(())
            }
            _ => Err(owner),
        }
    }

    /// Returns the owner of a chunk after its address came out of a ring of `side`. `None` if that side did not hold
    /// the chunk, which is counted.
    #[inline]
    pub fn release(&mut self, side: Side, address: u64) -> Option<T> {
        self.find(side, address).map(Holding::release)
    }

    /// Finds the owner of a chunk without moving it: the caller inspects it in place and moves it once.
    #[inline]
    pub fn find(&mut self, side: Side, address: u64) -> Option<Holding<'_, T>> {
        // No UMEM has this many chunks.
        let chunk = self.umem.chunk_of(address).unwrap_or(u32::MAX);
        self.find_chunk(side, chunk)
    }

    /// Finds the owner of a chunk by its number.
    #[inline]
    pub fn find_chunk(&mut self, side: Side, chunk: u32) -> Option<Holding<'_, T>> {
        match self.places.get_mut(chunk as usize) {
            Some(place) if place.side == side && place.owner.is_some() => Some(Holding {
                place: &mut place.owner,
                count: &mut self.counts[side as usize],
            }),
            _ => {
                self.strays += 1;
                None
            }
        }
    }

    /// Number of chunks held by `side`.
    #[inline]
    #[must_use]
    pub fn count(&self, side: Side) -> usize {
        self.counts[side as usize]
    }

    /// Number of addresses that came out of a ring whose side did not hold them. Expected to be 0.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Takes all owners back, once every queue and socket of the memory is closed.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.counts = [0; 2];
        let places = self.places.iter_mut();
        places.filter_map(|place| place.owner.take())
    }
}

/// Held chunk whose address came out of a ring.
#[derive(Debug)]
pub struct Holding<'a, T> {
    place: &'a mut Option<T>,
    count: &'a mut usize,
}

impl<T> Holding<'_, T> {
    /// Owner of the chunk.
    #[inline]
    pub fn owner(&mut self) -> &mut T {
        let Some(owner) = self.place else {
            unreachable!("it was found there");
        };
        owner
    }

    /// Removes and returns the owner.
    #[inline]
    #[must_use]
    pub fn release(self) -> T {
        let Some(owner) = self.place.take() else {
            unreachable!("it was found there");
        };
        *self.count -= 1;
        owner
    }

    /// Drops the owner in place.
    #[inline]
    pub fn discard(self) {
        *self.place = None;
        *self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::umem::{Chunk, ChunkBytes};

    fn memory() -> (Held<Chunk>, Vec<Chunk>) {
        // SAFETY: no ring is given anything.
        let (umem, chunks) = unsafe { Umem::fresh(4, ChunkBytes::TwoKib) }.unwrap();
        (Held::new(&umem), chunks)
    }

    #[test]
    fn a_chunk_comes_back_once_and_from_where_it_went() {
        let (mut held, mut chunks) = memory();
        let chunk = chunks.remove(2);
        let address = chunk.address();
        held.hold(Side::Receive, address, chunk).unwrap();
        assert_eq!(held.count(Side::Receive), 1);
        assert!(held.release(Side::Transmit, address).is_none());
        let back = held.release(Side::Receive, address + 256).unwrap();
        assert_eq!(back.address(), address);
        assert!(
            held.release(Side::Receive, address).is_none(),
            "a second time"
        );
        assert_eq!(held.strays(), 2);
        assert_eq!(held.count(Side::Receive), 0);
    }

    #[test]
    fn frames_that_the_kernel_makes_up_have_no_owner() {
        let (mut held, _chunks) = memory();
        for address in [0, 4 * 2_048, u64::MAX] {
            assert!(held.release(Side::Receive, address).is_none());
        }
        assert_eq!(held.strays(), 3);
    }

    #[test]
    fn a_chunk_that_is_held_or_elsewhere_is_not_taken_in() {
        let (mut held, mut chunks) = memory();
        let (first, second) = (chunks.remove(0), chunks.remove(0));
        held.hold(Side::Transmit, 0, first).unwrap();
        let second = held.hold(Side::Receive, 100, second).unwrap_err();
        let second = held.hold(Side::Receive, 4 * 2_048, second).unwrap_err();
        held.hold(Side::Receive, second.address(), second).unwrap();
        assert_eq!(held.drain().count(), 2);
        assert_eq!(held.count(Side::Transmit), 0);
        assert_eq!(held.drain().count(), 0);
    }
}
