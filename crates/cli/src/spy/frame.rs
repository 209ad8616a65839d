//! A frame as it was taken, wherever from.

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// An Ethernet header.
    Ethernet,
    /// The header of a cooked capture.
    Cooked(isolane_wire::cooked::Version),
    /// An IP header.
    Ip,
    /// Four bytes for the address family of the host that captured (BSD loopback), then IP.
    Loopback,
    /// Something of this link type, which is not decoded.
    Unknown(i32),
}

/// A frame, borrowed from its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) link: Link,
    /// As many of its bytes as were captured.
    pub(crate) bytes: &'a [u8],
    /// How many it had on the wire.
    pub(crate) original_len: usize,
    /// When it passed, in nanoseconds since 1970.
    pub(crate) time_ns: Option<u64>,
    /// The device it passed.
    pub(crate) interface: Option<&'a str>,
}
