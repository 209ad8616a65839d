//! The memory that frames lie in, shared with the kernel: chunks of equal size, known by addresses
//! from its begin.

use std::any::Any;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use super::rings::Descriptor;
use super::system::Mapping;
use crate::limits::{KERNEL_HEAD_ROOM_BYTES, MAX_CHUNKS, PAGE_BYTES};

/// Bytes of a chunk: the kernel knows powers of two from 2,048 to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkBytes {
    /// 2,048: a frame of an MTU of 1,500.
    TwoKib,
    /// 4,096: a frame of an MTU of 3,800 or less.
    FourKib,
}

impl ChunkBytes {
    /// As a number.
    #[must_use]
    pub const fn get(self) -> usize {
        1 << self.bits()
    }

    /// Bits of a place inside of a chunk: addresses are divided by shifting, several times a frame.
    const fn bits(self) -> u32 {
        match self {
            ChunkBytes::TwoKib => 11,
            ChunkBytes::FourKib => 12,
        }
    }
}

/// Why memory cannot be shared with the kernel. The first three are mistakes of a program.
#[derive(Debug, thiserror::Error)]
pub enum UmemError {
    /// It does not begin on a page.
    #[error("memory for AF_XDP begins {bytes} bytes behind a page: give it whole pages")]
    Unaligned {
        /// How far.
        bytes: usize,
    },
    /// Not a number of whole chunks within bounds.
    #[error(
        "{bytes} bytes are not 1 to {MAX_CHUNKS} whole chunks of {chunk_bytes} bytes: give AF_XDP \
         as many as its rings hold"
    )]
    Length {
        /// Of the memory.
        bytes: usize,
        /// Of one chunk.
        chunk_bytes: usize,
    },
    /// Nothing would be left for a frame.
    #[error(
        "{head_room} bytes of head room, and {KERNEL_HEAD_ROOM_BYTES} of the kernel's, leave no \
         room for a frame in a chunk of {chunk_bytes}: ask for less"
    )]
    HeadRoom {
        /// As asked for.
        head_room: u32,
        /// Of one chunk.
        chunk_bytes: usize,
    },
    /// There is not so much memory.
    #[error(
        "no {bytes} bytes of memory are left for AF_XDP ({source}): use fewer or smaller rings"
    )]
    Memory {
        /// As asked for.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
}

/// Where a received frame lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The number of its chunk.
    pub chunk: u32,
    /// Its bytes within the chunk.
    pub range: Range<usize>,
}

struct Memory {
    start: NonNull<u8>,
    chunks: u32,
    chunk_bytes: ChunkBytes,
    head_room: u32,
    /// Keeps the memory.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: this type reads and writes nothing of the memory it knows the place of; the owner may be
// shared and sent.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Memory for frames (a "UMEM"), kept by this handle, its clones, and every queue and socket made
/// with it.
#[derive(Clone)]
pub struct Umem(Arc<Memory>);

impl Umem {
    /// Memory in whole chunks, not yet shared with anybody: that is what the first
    /// [`Queue`](super::Queue) does.
    ///
    /// # Errors
    /// [`UmemError`], for memory that the kernel would not take.
    ///
    /// # Safety
    /// `owner` keeps the memory allocated, where it is, until it is dropped. An address given to a
    /// ring is that of a chunk which from then on nobody reads or writes, until a ring gives it back
    /// (nobody writes, if it was given to be sent). A copy of a socket's descriptor, here or in a child
    /// process, is not used after its socket was dropped, unless `owner` unmaps the memory, and does
    /// not give it to an allocator: the kernel has the pages as long as any copy lives.
    pub unsafe fn over(
        memory: NonNull<[u8]>,
        owner: Box<dyn Any + Send + Sync>,
        chunk_bytes: ChunkBytes,
        head_room: u32,
    ) -> Result<Umem, UmemError> {
        let (start, bytes, chunk) = (memory.cast::<u8>(), memory.len(), chunk_bytes.get());
        match start.as_ptr().addr() % PAGE_BYTES {
            0 => {}
            bytes => return Err(UmemError::Unaligned { bytes }),
        }
        let chunks = u32::try_from(bytes / chunk).unwrap_or(u32::MAX);
        if !bytes.is_multiple_of(chunk) || !(1..=MAX_CHUNKS).contains(&chunks) {
            let chunk_bytes = chunk;
            return Err(UmemError::Length { bytes, chunk_bytes });
        }
        if head_room as usize >= chunk - KERNEL_HEAD_ROOM_BYTES {
            return Err(UmemError::HeadRoom {
                head_room,
                chunk_bytes: chunk,
            });
        }
        Ok(Umem(Arc::new(Memory {
            start,
            chunks,
            chunk_bytes,
            head_room,
            _owner: owner,
        })))
    }

    /// Fresh memory of its own, and its chunks, for programs that have no pool.
    ///
    /// # Errors
    /// [`UmemError`].
    ///
    /// # Safety
    /// Who gives the address of a chunk to a ring neither reads nor writes the [`Chunk`] until a
    /// ring gives the address back; [`Held`](super::Held) is where it waits meanwhile.
    pub unsafe fn fresh(
        chunks: u32,
        chunk_bytes: ChunkBytes,
    ) -> Result<(Umem, Vec<Chunk>), UmemError> {
        let bytes = chunks as usize * chunk_bytes.get();
        if !(1..=MAX_CHUNKS).contains(&chunks) {
            let chunk_bytes = chunk_bytes.get();
            return Err(UmemError::Length { bytes, chunk_bytes });
        }
        let mapping =
            Mapping::of_memory(bytes).map_err(|source| UmemError::Memory { bytes, source })?;
        let memory = NonNull::slice_from_raw_parts(mapping.start(), bytes);
        // SAFETY: the mapping lives until it is dropped; the rest is the caller's promise.
        let umem = unsafe { Umem::over(memory, Box::new(mapping), chunk_bytes, 0) }?;
        let chunk = |number| Chunk {
            number,
            umem: umem.clone(),
        };
        let chunks = (0..umem.chunks()).map(chunk).collect();
        Ok((umem, chunks))
    }

    /// Chunks it has.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.0.chunks
    }

    /// Bytes of each chunk.
    #[inline]
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.0.chunk_bytes.get()
    }

    /// Bytes the kernel leaves free in front of what it fills in, beside
    /// [`KERNEL_HEAD_ROOM_BYTES`].
    #[must_use]
    pub fn head_room(&self) -> u32 {
        self.0.head_room
    }

    /// Bytes of the longest frame that can be received.
    #[must_use]
    pub fn receive_room(&self) -> usize {
        self.chunk_bytes() - KERNEL_HEAD_ROOM_BYTES - self.0.head_room as usize
    }

    pub(super) fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.0.start, self.bytes())
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.0.chunks as usize * self.chunk_bytes()
    }

    /// The address of a byte of the memory, as rings have it. `None` if it lies elsewhere.
    #[inline]
    #[must_use]
    pub fn address_of(&self, byte: *const u8) -> Option<u64> {
        let offset = byte.addr().checked_sub(self.0.start.as_ptr().addr())?;
        (offset < self.bytes()).then_some(offset as u64)
    }

    /// The number of the chunk that a byte lies in. `None` if it lies elsewhere.
    #[inline]
    #[must_use]
    pub fn chunk_at(&self, byte: *const u8) -> Option<u32> {
        let offset = byte.addr().checked_sub(self.0.start.as_ptr().addr())?;
        self.chunk_of(offset as u64)
    }

    /// The number of the chunk that an address is in. `None` if there is none.
    #[inline]
    #[must_use]
    pub fn chunk_of(&self, address: u64) -> Option<u32> {
        let chunk = address >> self.0.chunk_bytes.bits();
        (chunk < u64::from(self.0.chunks)).then_some(chunk as u32)
    }

    /// The address of a chunk's first byte.
    #[inline]
    #[must_use]
    pub fn start_of(&self, chunk: u32) -> u64 {
        u64::from(chunk) << self.0.chunk_bytes.bits()
    }

    /// Where a frame lies, if it lies inside of one chunk.
    #[inline]
    #[must_use]
    pub fn locate(&self, descriptor: Descriptor) -> Option<Located> {
        let chunk = self.chunk_of(descriptor.address)?;
        // Chunks begin at multiples of their size.
        let start = descriptor.address as usize & (self.chunk_bytes() - 1);
        let end = start.checked_add(descriptor.length as usize)?;
        (end <= self.chunk_bytes()).then_some(Located {
            chunk,
            range: start..end,
        })
    }
}

/// One chunk of fresh memory: the right to its bytes. There is one for each, and it cannot be cloned.
pub struct Chunk {
    number: u32,
    umem: Umem,
}

impl Chunk {
    /// The address of its first byte.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.umem.start_of(self.number)
    }

    fn start(&self) -> NonNull<u8> {
        let offset = self.number as usize * self.umem.chunk_bytes();
        // SAFETY: the number is below the number of chunks the memory has.
        unsafe { self.umem.0.start.add(offset) }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: a chunk's bytes lie in the memory, which `umem` keeps; they are initialised
        // (zeroed), this is the only right to them, and it is borrowed. The kernel has them only
        // while the chunk is neither read nor written (`Umem::fresh`).
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.umem.chunk_bytes()) }
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; borrowed for itself alone.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.umem.chunk_bytes()) }
    }
}

impl std::fmt::Debug for Umem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Umem({} of {} bytes)", self.chunks(), self.chunk_bytes())
    }
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Chunk({})", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(chunks: u32) -> (Umem, Vec<Chunk>) {
        // SAFETY: no ring is given anything.
        unsafe { Umem::fresh(chunks, ChunkBytes::TwoKib) }.unwrap()
    }

    /// Memory that nobody reads: only its place counts.
    fn over(start: usize, bytes: usize, head_room: u32) -> Result<Umem, UmemError> {
        let start = NonNull::new(std::ptr::without_provenance_mut(start)).unwrap();
        let memory = NonNull::slice_from_raw_parts(start, bytes);
        // SAFETY: never read, written or given to a ring.
        unsafe { Umem::over(memory, Box::new(()), ChunkBytes::TwoKib, head_room) }
    }

    #[test]
    fn a_frame_is_found_only_inside_one_chunk() {
        let (umem, _chunks) = memory(4);
        let locate = |address, length| {
            umem.locate(Descriptor {
                address,
                length,
                options: 0,
            })
        };
        let found = locate(2 * 2_048 + 256, 1_792).unwrap();
        assert_eq!(found.chunk, 2);
        assert_eq!(found.range, 256..2_048);
        assert_eq!(locate(2 * 2_048 + 256, 1_793), None, "into the next chunk");
        assert_eq!(locate(0, u32::MAX), None, "longer than all");
        assert_eq!(locate(4 * 2_048, 1), None, "behind the last chunk");
        assert_eq!(locate(u64::MAX, 1), None, "anywhere");
        assert_eq!(locate(3 * 2_048 + 2_047, 1).unwrap().range, 2_047..2_048);
    }

    #[test]
    fn addresses_and_chunks_are_each_others() {
        let (umem, mut chunks) = memory(3);
        for (number, chunk) in chunks.iter_mut().enumerate() {
            assert_eq!(chunk.len(), 2_048);
            assert_eq!(umem.address_of(chunk.as_ptr()), Some(chunk.address()));
            assert_eq!(umem.chunk_of(chunk.address() + 2_047), Some(number as u32));
            assert_eq!(umem.chunk_at(&raw const chunk[2_047]), Some(number as u32));
            chunk.fill(number as u8);
        }
        for (number, chunk) in chunks.iter().enumerate() {
            assert!(chunk.iter().all(|&byte| byte == number as u8));
        }
        let elsewhere = 0_u8;
        assert_eq!(umem.address_of(&raw const elsewhere), None);
        assert_eq!(umem.chunk_at(&raw const elsewhere), None);
        let end = chunks[2].as_ptr().wrapping_add(2_048);
        assert_eq!((umem.address_of(end), umem.chunk_at(end)), (None, None));
    }

    #[test]
    fn memory_that_the_kernel_would_not_take_is_refused() {
        assert!(over(0x1000, 4_096, 0).is_ok());
        let unaligned = over(0x1010, 4_096, 0).unwrap_err();
        assert!(matches!(unaligned, UmemError::Unaligned { bytes: 16 }));
        for bytes in [0, 2_047, 4_097, (MAX_CHUNKS as usize + 1) * 2_048] {
            let length = over(0x1000, bytes, 0).unwrap_err();
            assert!(matches!(length, UmemError::Length { .. }), "{length}");
        }
        for chunks in [0, MAX_CHUNKS + 1] {
            // SAFETY: no ring is given anything.
            let length = unsafe { Umem::fresh(chunks, ChunkBytes::TwoKib) }.unwrap_err();
            assert!(matches!(length, UmemError::Length { .. }), "{length}");
        }
        assert_eq!(over(0x1000, 4_096, 1_791).unwrap().receive_room(), 1);
        let head_room = over(0x1000, 4_096, 1_792).unwrap_err();
        assert!(matches!(head_room, UmemError::HeadRoom { .. }));
    }
}
