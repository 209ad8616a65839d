//! Status of an instance, PID_STATUS_INFO (RTPS 2.5 §9.6.4.9).

use crate::parameter::{ParameterList, pid};

/// Status of an instance in a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusInfo {
    /// The instance is disposed.
    pub disposed: bool,
    /// The writer has unregistered the instance.
    pub unregistered: bool,
}

impl StatusInfo {
    const DISPOSED: u8 = 0x01;
    const UNREGISTERED: u8 = 0x02;

    /// Reads the status from inline QoS; no flags without the parameter.
    #[inline]
    pub(super) fn of(inline_qos: Option<&ParameterList<'_>>) -> Self {
        // The flags are always big-endian: the last byte.
        match inline_qos.and_then(|list| list.find(pid::STATUS_INFO)) {
            Some([_, _, _, flags, ..]) => Self {
                disposed: flags & Self::DISPOSED != 0,
                unregistered: flags & Self::UNREGISTERED != 0,
            },
            _ => Self::default(),
        }
    }

    #[inline]
    pub(super) fn to_bytes(self) -> [u8; 4] {
        let mut flags = 0;
        if self.disposed {
            flags |= Self::DISPOSED;
        }
        if self.unregistered {
            flags |= Self::UNREGISTERED;
        }
        [0, 0, 0, flags]
    }
}
