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

/// The owners of chunks that the kernel has, by the chunk's number. Its memory is taken at once.
#[derive(Debug)]
pub struct Held<T> {
    umem: Umem,
    places: Box<[Option<(Side, T)>]>,
    counts: [usize; 2],
    strays: u64,
}

impl<T> Held<T> {
    /// The kernel has none.
    #[must_use]
    pub fn new(umem: &Umem) -> Held<T> {
        Held {
            umem: umem.clone(),
            places: (0..umem.chunks()).map(|_| None).collect(),
            counts: [0; 2],
            strays: 0,
        }
    }

    /// Before an address is given to a ring of that side: takes the owner of its chunk in.
    ///
    /// # Errors
    /// The owner, if the address is in no chunk, or in one that is held already.
    pub fn hold(&mut self, side: Side, address: u64, owner: T) -> Result<(), T> {
        let place = self.umem.chunk_of(address);
        match place.and_then(|chunk| self.places.get_mut(chunk as usize)) {
            Some(place @ None) => {
                *place = Some((side, owner));
                self.counts[side as usize] += 1;
                Ok(())
            }
            _ => Err(owner),
        }
    }

    /// After an address came out of a ring of that side: gives the owner of its chunk back. `None`,
    /// which is counted, if that side had not got it.
    pub fn release(&mut self, side: Side, address: u64) -> Option<T> {
        let chunk = self.umem.chunk_of(address);
        let place = chunk.and_then(|chunk| self.places.get_mut(chunk as usize));
        let taken = place.and_then(|place| place.take_if(|(held, _)| *held == side));
        match taken {
            Some((_, owner)) => {
                self.counts[side as usize] -= 1;
                Some(owner)
            }
            None => {
                self.strays += 1;
                None
            }
        }
    }

    /// Chunks that side has.
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
        places.filter_map(|place| place.take().map(|(_, owner)| owner))
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
