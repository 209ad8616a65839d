//! UMEM: frame memory shared with the kernel, in chunks of equal size. Addresses are byte offsets from its start.

use std::any::Any;
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use super::rings::Descriptor;
use super::system_calls::Mapping;
use crate::limits::{KERNEL_HEAD_ROOM_BYTES, MAX_CHUNKS, PAGE_BYTES};

/// Chunk size in bytes. The kernel accepts powers of two from 2,048 to the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkBytes {
    /// 2,048 bytes: fits a frame at an MTU of 1,500.
    TwoKib,
    /// 4,096 bytes: fits a frame at an MTU of up to 3,800.
    FourKib,
}

impl ChunkBytes {
    /// Size in bytes.
    #[must_use]
    pub const fn get(self) -> usize {
        1 << self.bits()
    }

    /// Binary logarithm of the size. Addresses are divided by the size several times a frame, so by shifting.
    const fn bits(self) -> u32 {
        match self {
            ChunkBytes::TwoKib => 11,
            ChunkBytes::FourKib => 12,
        }
    }
}

/// Error of registering memory with the kernel. The first three variants are programming errors.
#[derive(Debug, thiserror::Error)]
pub enum UmemError {
    /// The memory is not page-aligned.
    #[error("memory for AF_XDP begins {bytes} bytes behind a page: give it whole pages")]
    Unaligned {
        /// Distance from the preceding page boundary.
        bytes: usize,
    },
    /// The length is not a whole number of chunks between 1 and [`MAX_CHUNKS`].
    #[error(
        "{bytes} bytes are not 1 to {MAX_CHUNKS} whole chunks of {chunk_bytes} bytes: give AF_XDP \
         as many as its rings hold"
    )]
    Length {
        /// Length of the memory.
        bytes: usize,
        /// Size of a chunk.
        chunk_bytes: usize,
    },
    /// The head room leaves no space for a frame.
    #[error(
        "{head_room} bytes of head room, and {KERNEL_HEAD_ROOM_BYTES} of the kernel's, leave no \
         room for a frame in a chunk of {chunk_bytes}: ask for less"
    )]
    HeadRoom {
        /// Requested head room.
        head_room: u32,
        /// Size of a chunk.
        chunk_bytes: usize,
    },
    /// The system has too little memory.
    #[error(
        "no {bytes} bytes of memory are left for AF_XDP ({source}): use fewer or smaller rings"
    )]
    Memory {
        /// Requested bytes.
        bytes: usize,
        /// Error from the system.
        source: io::Error,
    },
}

/// Position of a received frame in the UMEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Chunk number.
    pub chunk: u32,
    /// Byte range within the chunk.
    pub range: Range<usize>,
}

struct Memory {
    start: NonNull<u8>,
    chunks: u32,
    chunk_bytes: ChunkBytes,
    head_room: u32,
    /// Keeps the memory allocated.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: this type only stores the address of the memory, and accesses nothing there; the owner may be shared and
// sent.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Handle to frame memory (UMEM). The memory lives as long as any clone, queue or socket made from it.
#[derive(Clone)]
pub struct Umem(Arc<Memory>);

impl Umem {
    /// Wraps memory of whole chunks. The first [`Queue`](super::Queue) registers it with the kernel.
    ///
    /// # Errors
    /// [`UmemError`] if the kernel would refuse the memory.
    ///
    /// # Safety
    /// - `owner` keeps the memory allocated and in place until it is dropped.
    /// - An address given to a ring is that of a chunk. Until a ring returns the address, nothing writes the chunk,
    ///   and nothing reads it unless the address was given for transmission.
    /// - After a socket is dropped, no copy of its descriptor is used, here or in a child process: the kernel holds
    ///   the pages as long as any copy lives. Copies may be used if `owner` unmaps the memory instead of returning it
    ///   to an allocator.
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

    /// Allocates zeroed memory and returns it with its chunks, for programs without a pool.
    ///
    /// # Errors
    /// [`UmemError`].
    ///
    /// # Safety
    /// A caller that gives a chunk's address to a ring neither reads nor writes the [`Chunk`] until
    /// a ring returns the address. [`Held`](super::Held) keeps the chunk meanwhile.
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
        // SAFETY: the mapping lives until it is dropped; the caller upholds the rest.
        let umem = unsafe { Umem::over(memory, Box::new(mapping), chunk_bytes, 0) }?;
        let chunk = |number| Chunk {
            number,
            umem: umem.clone(),
        };
        let chunks = (0..umem.chunks()).map(chunk).collect();
        Ok((umem, chunks))
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.0.chunks
    }

    /// Size of a chunk in bytes.
    #[inline]
    #[must_use]
    pub fn chunk_bytes(&self) -> usize {
        self.0.chunk_bytes.get()
    }

    /// Head room in bytes that the kernel leaves before a received frame, in addition to [`KERNEL_HEAD_ROOM_BYTES`].
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

    /// UMEM address of a byte. `None` if the byte is outside the memory.
    #[inline]
    #[must_use]
    pub fn address_of(&self, byte: *const u8) -> Option<u64> {
        let offset = byte.addr().checked_sub(self.0.start.as_ptr().addr())?;
        (offset < self.bytes()).then_some(offset as u64)
    }

    /// Number of the chunk that contains a byte. `None` if the byte is outside the memory.
    #[inline]
    #[must_use]
    pub fn chunk_at(&self, byte: *const u8) -> Option<u32> {
        let offset = byte.addr().checked_sub(self.0.start.as_ptr().addr())?;
        self.chunk_of(offset as u64)
    }

    /// Number of the chunk that contains an address. `None` if the address is outside the memory.
    #[inline]
    #[must_use]
    pub fn chunk_of(&self, address: u64) -> Option<u32> {
        let chunk = address >> self.0.chunk_bytes.bits();
        (chunk < u64::from(self.0.chunks)).then_some(chunk as u32)
    }

    /// Address of a chunk's first byte.
    #[inline]
    #[must_use]
    pub fn start_of(&self, chunk: u32) -> u64 {
        u64::from(chunk) << self.0.chunk_bytes.bits()
    }

    /// Finds the chunk of a frame. `None` if the frame is not within one chunk.
    #[inline]
    #[must_use]
    pub fn locate(&self, descriptor: Descriptor) -> Option<Located> {
        let chunk = self.chunk_of(descriptor.address)?;
        // Chunks start at multiples of their size.
        let start = descriptor.address as usize & (self.chunk_bytes() - 1);
        let end = start.checked_add(descriptor.length as usize)?;
        (end <= self.chunk_bytes()).then_some(Located {
            chunk,
            range: start..end,
        })
    }
}

/// Exclusive access to the bytes of one chunk made by [`Umem::fresh`]. Not cloneable.
pub struct Chunk {
    number: u32,
    umem: Umem,
}

impl Chunk {
    /// Address of the first byte.
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
        // SAFETY: as above; the borrow is exclusive.
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

    /// UMEM over memory that is never accessed; only its address matters.
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
