//! Comparison of isolane's frames with the kernel's, byte by byte.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;

use isolane_datapath_xdp::egress::{Judgement, Partial, UdpChecksum, judge};
use isolane_wire::ethernet::{EtherType, Frame};
use isolane_wire::ipv4::Packet;

use crate::counting_allocator::allocator_calls_of;
use crate::hosts::{HERE, Hosts, THERE, output};
use crate::{egress, flow, follow, meet};

const SOURCE_PORT: u16 = 40_000;
const DESTINATION_PORT: u16 = 7411;

/// Packet socket that receives every frame arriving at an interface of the calling thread's namespace.
struct Capture(std::os::fd::OwnedFd);

impl Capture {
    fn open() -> Capture {
        use std::os::fd::FromRawFd;
        const EVERYTHING: u16 = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no memory is involved.
        let descriptor = unsafe {
            libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                i32::from(EVERYTHING),
            )
        };
        assert!(descriptor >= 0, "a packet socket needs CAP_NET_RAW");
        // SAFETY: the descriptor was just made, and is not shared.
        Capture(unsafe { std::os::fd::OwnedFd::from_raw_fd(descriptor) })
    }

    /// Returns the next UDP frame to the port.
    fn next(&self) -> Vec<u8> {
        crate::hosts::eventually("the frame arrives", || {
            let mut bytes = vec![0; 4096];
            // SAFETY: the buffer is as long as said, and alive during the call.
            let length = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    0,
                )
            };
            bytes.truncate(usize::try_from(length).ok()?);
            is_ours(&bytes).then_some(bytes)
        })
    }
}

fn is_ours(bytes: &[u8]) -> bool {
    let port = || {
        let frame = Frame::new_checked(bytes).ok()?;
        let packet = (frame.ether_type() == EtherType::IPV4).then(|| frame.payload())?;
        let packet = Packet::new_checked(packet).ok()?;
        let datagram = isolane_wire::udp::Datagram::new_checked(packet.payload()).ok()?;
        Some(datagram.destination_port())
    };
    port() == Some(DESTINATION_PORT)
}

/// Kernel socket with the options of a lane's socket, except that it never fragments: packets that may be fragmented
/// have an identification. The whole test uses one socket, because a child process of another test may keep it open for
/// a moment after it is closed.
fn kernel_socket() -> UdpSocket {
    let socket = UdpSocket::bind((HERE, SOURCE_PORT)).expect("a socket");
    set(&socket, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO);
    socket
}

fn set(socket: &UdpSocket, option: i32, value: libc::c_int) {
    // SAFETY: the option's value is an int, alive during the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            option,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    assert_eq!(set, 0, "option {option}");
}

#[test]
fn headers_are_the_kernels_byte_by_byte() {
    let hosts = Hosts::new();
    meet();
    // The kernel then computes checksums itself, as for a device that computes none.
    output(Command::new("ethtool").args(["-K", "host-a", "tx", "off"]));
    // Without a named interface, groups are sent by the route.
    crate::hosts::ip("route add 224.0.0.0/4 dev host-a");
    let mut egress = egress();
    let capture = hosts.there(Capture::open);
    let payload: Vec<u8> = (0..1472_u32).map(|number| (number * 31) as u8).collect();
    let socket = kernel_socket();
    for destination in [THERE, Ipv4Addr::new(239, 255, 23, 0)] {
        for level in 0..8 {
            set(&socket, libc::IP_TOS, i32::from(level) << 5);
            for length in [0, 1, 64, 513, 1472] {
                let payload = &payload[..length];
                socket
                    .send_to(payload, (destination, DESTINATION_PORT))
                    .expect("the kernel sends");
                let theirs = capture.next();
                follow(&mut egress);
                let template = egress
                    .headers(&flow(destination, level), length)
                    .expect("the device's way");
                let mut frame = vec![0; 48];
                frame.extend_from_slice(payload);
                let end = frame.len();
                let start = template.emit(&mut frame, 48..end, UdpChecksum::Made);
                assert_eq!(
                    frame[start..],
                    theirs[..],
                    "to {destination}, level {level}, {length} bytes"
                );
            }
        }
    }
}

#[test]
fn unfinished_checksums_of_the_kernel_differ_from_wrong_ones() {
    let hosts = Hosts::new();
    meet();
    let socket = kernel_socket();
    let judged = |payload: &[u8]| {
        // Each setting has its own capture, because it applies only to frames sent from now on.
        let capture = hosts.there(Capture::open);
        socket
            .send_to(payload, (THERE, DESTINATION_PORT))
            .expect("the kernel sends");
        let bytes = capture.next();
        let frame = Frame::new_checked(&bytes[..]).expect("a frame");
        let packet = Packet::new_checked(frame.payload()).expect("a packet");
        [Partial::Expected, Partial::Unexpected].map(|partial| {
            judge(
                packet.source(),
                packet.destination(),
                packet.payload(),
                partial,
            )
        })
    };
    assert_eq!(judged(b"unfinished"), [Judgement::Partial; 2]);
    output(Command::new("ethtool").args(["-K", "host-a", "tx", "off"]));
    assert_eq!(judged(b"finished"), [Judgement::Valid; 2]);
}

#[test]
fn headers_cost_no_allocation_whatever_the_way() {
    let _hosts = Hosts::new();
    meet();
    let mut egress = egress();
    follow(&mut egress);
    let mut frame = vec![0; 48 + 64];
    let calls = allocator_calls_of(|| {
        for round in 0..5_000_u16 {
            // Known and unknown neighbours, groups, no route, and more flows than the cache holds.
            for destination in [
                THERE,
                Ipv4Addr::new(10, 78, 0, 9),
                Ipv4Addr::new(239, 255, 23, 0),
                Ipv4Addr::new(192, 0, 2, 1),
            ] {
                let mut flow = flow(destination, 3);
                flow.source_port = round;
                if let Ok(template) = egress.headers(&flow, 64) {
                    template.emit(&mut frame, 48..112, UdpChecksum::Made);
                }
            }
        }
    });
    assert_eq!(calls, 0);
    let counts = egress.counts();
    assert_eq!(counts.by_device, 10_000);
    assert_eq!(counts.by_kernel.iter().sum::<u64>(), 10_000);
}
