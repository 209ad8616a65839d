//! Names and numbers of interfaces of the calling thread's network namespace.

use std::ffi::{CStr, CString};

/// The name of an interface.
pub(crate) fn name_of(index: u32) -> Option<String> {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer is as long as the call requires, and alive during it.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the call has written a string with its end into the buffer.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    Some(name.to_string_lossy().into_owned())
}

/// The number of an interface.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a NUL and is alive during the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        let index = index_of("lo").expect("every namespace has it");
        assert_eq!(name_of(index).as_deref(), Some("lo"));
        assert_eq!(index_of("no such interface"), None);
        assert_eq!(index_of("a\0b"), None);
        assert_eq!(name_of(u32::MAX), None);
    }
}
