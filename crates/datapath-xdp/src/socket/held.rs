//! What is in the kernel's hands.
//!
//! A chunk's address is in exactly one place: with its owner here, in a fill or receive ring, or in a
//! transmit or completion ring. Who gives an address to a ring gives the chunk's owner in here, and
//! gets it back for the address that comes out of a ring: nothing can be owned here and there at a
//! time, and what the kernel gives back without having had it is nobody's.

use super::umem::Umem;

/// Which pair of rings a chunk is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Fill, then receive.
    Receive,
    /// Transmit, then completion.
    Transmit,
}

/// Of one chunk.
#[derive(Debug)]
struct Place<T> {
    owner: Option<T>,
    /// Who has it, if there is an owner. Apart from the owner, which then moves as a whole.
    side: Side,
}

/// The owners of chunks that the kernel has, by the chunk's number. Its memory is taken at once.
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
    /// The kernel has none.
    #[must_use]
    pub fn new(umem: &Umem) -> Held<T> {
        Held {
            umem: umem.clone(),
            places: (0..umem.chunks()).map(|_| Place::empty()).collect(),
            counts: [0; 2],
            strays: 0,
        }
    }

    /// Before an address is given to a ring of that side: takes the owner of its chunk in.
    ///
    /// # Errors
    /// The owner, if the address is in no chunk, or in one that is held already.
    #[inline]
    pub fn hold(&mut self, side: Side, address: u64, owner: T) -> Result<(), T> {
        match self.umem.chunk_of(address) {
            Some(chunk) => self.hold_chunk(side, chunk, owner),
            None => Err(owner),
        }
    }

    /// The same for who knows the chunk's number.
    ///
    /// # Errors
    /// The owner, if there is no such chunk, or it is held already.
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

    /// After an address came out of a ring of that side: gives the owner of its chunk back. `None`,
    /// which is counted, if that side had not got it.
    #[inline]
    pub fn release(&mut self, side: Side, address: u64) -> Option<T> {
        self.find(side, address).map(Holding::release)
    }

    /// The same for who first looks at the owner where it is, and then has it moved once, to where it
    /// is wanted.
    #[inline]
    pub fn find(&mut self, side: Side, address: u64) -> Option<Holding<'_, T>> {
        // No memory has so many chunks.
        let chunk = self.umem.chunk_of(address).unwrap_or(u32::MAX);
        self.find_chunk(side, chunk)
    }

    /// The same for who knows the chunk's number.
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

    /// Chunks that side has.
    #[inline]
    #[must_use]
    pub fn count(&self, side: Side) -> usize {
        self.counts[side as usize]
    }

    /// Addresses that came out of a ring of a side that had not got them: 0.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Takes all owners back, when every queue and socket of the memory is gone.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.counts = [0; 2];
        let places = self.places.iter_mut();
        places.filter_map(|place| place.owner.take())
    }
}

/// A chunk that came out of a ring, and is still held.
#[derive(Debug)]
pub struct Holding<'a, T> {
    place: &'a mut Option<T>,
    count: &'a mut usize,
}

impl<T> Holding<'_, T> {
    /// Its owner.
    #[inline]
    pub fn owner(&mut self) -> &mut T {
        let Some(owner) = self.place else {
            unreachable!("it was found there");
        };
        owner
    }

    /// Gives the owner back.
    #[inline]
    #[must_use]
    pub fn release(self) -> T {
        let Some(owner) = self.place.take() else {
            unreachable!("it was found there");
        };
        *self.count -= 1;
        owner
    }

    /// Drops the owner where it is.
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
    fn what_the_kernel_makes_up_is_nobodys() {
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
