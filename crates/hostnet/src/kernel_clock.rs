//! Synchronisation state of the kernel's clock.

use std::io;

/// The clock is not synchronised (linux/timex.h, `STA_UNSYNC`).
const UNSYNCHRONISED: libc::c_int = 0x40;

/// Returns true when the kernel's clock is synchronised. Reads only; sets nothing.
///
/// # Errors
/// The error of adjtimex(2).
pub fn is_synchronised() -> io::Result<bool> {
    // SAFETY: all bits of `timex` are numbers, for which zero is a value; `modes` of zero sets nothing.
    let mut clock: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `clock` is a `timex` that lives and is exclusively borrowed for the length of the call.
    if unsafe { libc::adjtimex(&raw mut clock) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(clock.status & UNSYNCHRONISED == 0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn anybody_may_ask() {
        super::is_synchronised().expect("an answer");
    }
}
