//! Fallible allocation of zeroed memory.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr;

/// Allocates `bytes` bytes of zeroed memory; `None` if the system has none left. Large blocks take memory page by page,
/// at the first write.
#[must_use]
pub fn zeroed(bytes: usize) -> Option<Box<[u8]>> {
    if bytes == 0 {
        return Some(Box::default());
    }
    let layout = Layout::array::<u8>(bytes).ok()?;
    // SAFETY: the layout has a size other than zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    let memory = ptr::slice_from_raw_parts_mut(start, bytes);
    // SAFETY: the global allocator returned `bytes` zeroed bytes with the layout of such a slice, and they have no
    // other owner.
    Some(unsafe { Box::from_raw(memory) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_more_than_there_can_be_is_none() {
        assert!(
            zeroed(100_000).is_some_and(|it| it.len() == 100_000 && it.iter().all(|&b| b == 0))
        );
        assert!(zeroed(0).is_some_and(|it| it.is_empty()));
        assert!(zeroed(usize::MAX / 2 - 4_096).is_none());
        assert!(zeroed(usize::MAX).is_none());
    }
}
