//! What passes the devices of this host: a copy of every frame, in and out, as it was on the wire.
//!
//! For `isolane spy`, and for whoever records a run. It only listens. A VLAN tag that the kernel
//! took out is put back; a checksum that a host left to hardware stays unfinished, as everybody sees
//! it who listens before the hardware.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::LISTEN_FRAME_BYTES;
use crate::system::listen::{Aside, Listener};

/// Bytes of a VLAN tag, and of the two addresses it stands behind.
const TAG_BYTES: usize = 4;
const ADDRESSES_BYTES: usize = 12;

/// ARPHRD of devices whose frames have an Ethernet header: Ethernet and loopback.
const ETHERNET_HARDWARE: [u16; 2] = [1, 772];
const LOOPBACK_HARDWARE: u16 = 772;

/// What stands in front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// Nothing: the packet begins with its IP header (tunnels).
    None,
}

/// A frame, borrowed until the next one is taken.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its bytes, as many as were copied.
    pub bytes: &'a [u8],
    /// How many it had.
    pub original_len: usize,
    /// What it begins with.
    pub link: Link,
    /// When the kernel saw it, in nanoseconds since 1970.
    pub time_ns: Option<u64>,
    /// The number of the device it passed.
    pub interface: u32,
}

/// A listener on one device, or on all of a network namespace.
pub struct Capture {
    listener: Listener,
    buffer: Vec<u8>,
    dropped: u64,
}

impl Capture {
    /// Listens on the device of that name, or on all, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW; the kernel's error if there is no
    /// such device, or no packet sockets.
    pub fn open(interface: Option<&str>) -> io::Result<Capture> {
        let index = match interface {
            Some(name) => rustix::net::netdevice::name_to_index(&any_socket()?, name)?,
            None => 0,
        };
        Ok(Capture {
            listener: Listener::open(index)?,
            buffer: vec![0; TAG_BYTES + LISTEN_FRAME_BYTES],
            dropped: 0,
        })
    }

    /// The next frame, if there is one now. On loopback devices each passes once, as it arrives.
    ///
    /// # Errors
    /// What the system said; that the device is gone, for example.
    pub fn take_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        let aside = loop {
            let Some(aside) = self.listener.receive(&mut self.buffer[TAG_BYTES..])? else {
                return Ok(None);
            };
            if !(aside.hardware == LOOPBACK_HARDWARE && aside.is_outgoing) {
                break aside;
            }
        };
        Ok(Some(self.frame(aside)))
    }

    fn frame(&mut self, aside: Aside) -> Frame<'_> {
        let copied = aside.length.min(LISTEN_FRAME_BYTES);
        let (mut start, mut original_len) = (TAG_BYTES, aside.length);
        if let Some((protocol, tag)) = aside.vlan_tag
            && copied >= ADDRESSES_BYTES
        {
            self.buffer
                .copy_within(TAG_BYTES..TAG_BYTES + ADDRESSES_BYTES, 0);
            let [a, b] = protocol.to_be_bytes();
            let [c, d] = tag.to_be_bytes();
            self.buffer[ADDRESSES_BYTES..][..TAG_BYTES].copy_from_slice(&[a, b, c, d]);
            (start, original_len) = (0, aside.length + TAG_BYTES);
        }
        Frame {
            bytes: &self.buffer[start..TAG_BYTES + copied],
            original_len,
            link: if ETHERNET_HARDWARE.contains(&aside.hardware) {
                Link::Ethernet
            } else {
                Link::None
            },
            time_ns: aside.time_ns,
            interface: aside.interface,
        }
    }

    /// Waits until there is a frame, a signal came, or the time is over.
    ///
    /// # Errors
    /// What the system said.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let at_most = Timespec::try_from(at_most).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        match poll(
            &mut [PollFd::new(&self.listener, PollFlags::IN)],
            Some(&at_most),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Frames the kernel had no room to copy, since the beginning.
    ///
    /// # Errors
    /// What the system said.
    pub fn dropped(&mut self) -> io::Result<u64> {
        self.dropped += self.listener.take_drops()?;
        Ok(self.dropped)
    }
}

impl AsFd for Capture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// The name of a device by its number, if it is still there, in the calling thread's network
/// namespace.
pub fn interface_name(index: u32) -> Option<String> {
    let socket = any_socket().ok()?;
    rustix::net::netdevice::index_to_name(&socket, index).ok()
}

/// Any socket will do for questions about the namespace.
fn any_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
}
