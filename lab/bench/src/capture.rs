//! Packet capture on the devices of this host, both directions, as on the wire.
//!
//! Used by `isolane spy` and by recordings of a run. It only listens. A VLAN tag that the kernel removed is put back;
//! an offloaded checksum stays incomplete, as in every capture that sees frames before the hardware does.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::LISTEN_FRAME_BYTES;
use crate::system::packet::{Aside, Listener, TAG_BYTES};

/// ARPHRD values of devices with Ethernet headers: Ethernet and loopback.
const ETHERNET_HARDWARE: [u16; 2] = [1, 772];
const LOOPBACK_HARDWARE: u16 = 772;

/// Link-layer header of a captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet header.
    Ethernet,
    /// No link-layer header: the packet begins with its IP header (tunnels).
    None,
}

/// Captured frame, borrowed until the next one is taken.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Captured bytes.
    pub bytes: &'a [u8],
    /// Original length in bytes.
    pub original_len: usize,
    /// Link-layer header type.
    pub link: Link,
    /// Kernel receive time, in nanoseconds since 1970.
    pub time_ns: Option<u64>,
    /// Index of the network device.
    pub interface: u32,
}

/// Capture on one device, or on all devices of a network namespace.
pub struct Capture {
    listener: Listener,
    buffer: Vec<u8>,
    dropped: u64,
}

impl Capture {
    /// Opens a capture on the named device, or on all, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW; the kernel's error if the device does not exist or
    /// packet sockets are unavailable.
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

    /// Returns the next frame, if one is available. Frames on loopback devices are returned once, as they arrive.
    ///
    /// # Errors
    /// The system call's error, for example if the device is gone.
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
        let start = aside.asides.restore_tag(&mut self.buffer, copied);
        Frame {
            bytes: &self.buffer[start..TAG_BYTES + copied],
            original_len: aside.length + TAG_BYTES - start,
            link: if ETHERNET_HARDWARE.contains(&aside.hardware) {
                Link::Ethernet
            } else {
                Link::None
            },
            time_ns: aside.asides.arrived_realtime_ns,
            interface: aside.interface,
        }
    }

    /// Waits for a frame, a signal or the end of `at_most`.
    ///
    /// # Errors
    /// The system call's error.
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

    /// Frames the kernel had no room to copy, since the capture was opened.
    ///
    /// # Errors
    /// The system call's error.
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

/// Name of the device with `index` in the calling thread's network namespace, if it still exists.
pub fn interface_name(index: u32) -> Option<String> {
    let socket = any_socket().ok()?;
    rustix::net::netdevice::index_to_name(&socket, index).ok()
}

/// Opens a socket for ioctl requests about the namespace.
fn any_socket() -> io::Result<UdpSocket> {
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
}
