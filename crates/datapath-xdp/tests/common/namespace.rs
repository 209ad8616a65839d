//! Two anonymous network namespaces joined by one veth pair. Nothing but descriptors of this process
//! holds them: whatever its end, they go with it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// One end of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    A,
    B,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::A, End::B];

    pub(crate) const fn interface(self) -> &'static str {
        match self {
            End::A => "end-a",
            End::B => "end-b",
        }
    }
}

struct Place {
    namespace: OwnedFd,
    /// Belongs to the namespace it was opened in, whichever thread uses it.
    netlink: Socket,
    interface_index: u32,
}

/// Both namespaces, with their devices up.
pub(crate) struct Pair([Place; 2]);

impl Pair {
    /// Devices with that many queues, or the visible reason why this machine allows none.
    pub(crate) fn new(queues: u32) -> Option<Pair> {
        match Pair::make(queues) {
            Ok(pair) => Some(pair),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                println!("not permitted: namespaces need CAP_SYS_ADMIN; nothing was tested");
                None
            }
            Err(error) => panic!("no veth pair: {error}"),
        }
    }

    fn make(queues: u32) -> io::Result<Pair> {
        let [mut a, mut b] = [new_namespace()?, new_namespace()?];
        let mut peer = end_message(End::B, queues);
        let other = LinkAttribute::NetNsFd(b.namespace.as_fd().as_raw_fd());
        peer.attributes.push(other);
        let mut message = end_message(End::A, queues);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let message = RouteNetlinkMessage::NewLink(message);
        request(&a.netlink, message, NLM_F_CREATE | NLM_F_EXCL)?;
        for (place, end) in [(&mut a, End::A), (&mut b, End::B)] {
            place.interface_index = interface_index(&place.netlink, end.interface())?;
        }
        let pair = Pair([a, b]);
        for end in End::BOTH {
            pair.set_up(end, true);
        }
        Ok(pair)
    }

    fn place(&self, end: End) -> &Place {
        &self.0[end as usize]
    }

    pub(crate) fn interface_index(&self, end: End) -> u32 {
        self.place(end).interface_index
    }

    /// Moves the calling thread to an end, for the rest of its life.
    pub(crate) fn enter(&self, end: End) {
        let namespace = self.place(end).namespace.as_fd();
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network)).unwrap();
    }

    /// Runs `work` on a thread of its own at an end, and waits for it.
    pub(crate) fn run<T: Send>(&self, end: End, work: impl FnOnce() -> T + Send) -> T {
        on_own_thread(|| {
            self.enter(end);
            work()
        })
    }

    /// Sets a device up or down.
    pub(crate) fn set_up(&self, end: End, is_up: bool) {
        let mut message = LinkMessage::default();
        message.header.index = self.interface_index(end);
        message.header.flags = if is_up {
            LinkFlags::Up
        } else {
            LinkFlags::empty()
        };
        message.header.change_mask = LinkFlags::Up;
        let message = RouteNetlinkMessage::SetLink(message);
        request(&self.place(end).netlink, message, 0).unwrap();
    }

    /// Takes the pair away; the namespaces stay.
    pub(crate) fn remove_devices(&self) {
        let mut message = LinkMessage::default();
        message.header.index = self.interface_index(End::A);
        let message = RouteNetlinkMessage::DelLink(message);
        request(&self.place(End::A).netlink, message, 0).unwrap();
    }
}

fn new_namespace() -> io::Result<Place> {
    on_own_thread(|| {
        // SAFETY: only the calling thread changes its network namespace; no memory and no descriptor
        // table is involved, and the thread ends here.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
        // Router solicitations and duplicate checks would be frames that no test sent.
        match std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut netlink = Socket::new(NETLINK_ROUTE)?;
        netlink.bind_auto()?;
        netlink.connect(&SocketAddr::new(0, 0))?;
        Ok(Place {
            namespace: std::fs::File::open("/proc/thread-self/ns/net")?.into(),
            netlink,
            interface_index: 0,
        })
    })
}

fn end_message(end: End, queues: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(end.interface().into()),
        LinkAttribute::NumTxQueues(queues),
        LinkAttribute::NumRxQueues(queues),
    ];
    message
}

fn interface_index(netlink: &Socket, name: &str) -> io::Result<u32> {
    let mut question = LinkMessage::default();
    question.attributes.push(LinkAttribute::IfName(name.into()));
    let answers = request(netlink, RouteNetlinkMessage::GetLink(question), 0)?;
    let index = answers.iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) => Some(link.header.index),
        _ => None,
    });
    index.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Sends one request, and waits for the kernel's yes or no; returns what it said besides.
fn request(
    netlink: &Socket,
    message: RouteNetlinkMessage,
    flags: u16,
) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    netlink.send(&bytes, 0)?;
    let mut answers = Vec::new();
    loop {
        let (datagram, _) = netlink.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            let length = (answer.header.length as usize).next_multiple_of(4).max(4);
            rest = rest.get(length..).unwrap_or_default();
            match answer.payload {
                NetlinkPayload::Error(error) if error.code.is_none() => return Ok(answers),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                _ => {}
            }
        }
    }
}

/// Namespaces belong to threads: whatever changes them runs on a thread that ends afterwards.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
