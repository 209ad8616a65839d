//! Tests of frames that no participant sends.

use isolane_datapath_xdp::socket::{
    BindMode, Chunk, ChunkBytes, Descriptor, Held, Queue, QueueConfig, Side as HeldSide,
    TransmitSocket, Umem,
};
use isolane_datapath_xdp::xdp::counters;

use crate::hosts::{eventually, index_of, mac_of};
use crate::network::{Host, INTERFACE, Segment};
use crate::world::{CRITICAL, Side, Topic, best_effort, until};

/// Number of times that each frame is sent: fewer than a veth's own queue holds.
const TIMES: u64 = 20;

/// Sends any bytes to a host, from the host's port of the bridge, because a bridge does not forward all frames.
struct Stranger {
    queue: Queue,
    socket: TransmitSocket,
    free: Vec<Chunk>,
    held: Held<Chunk>,
}

impl Stranger {
    fn new(segment: &Segment, to: &Host) -> Stranger {
        let port = format!("port{}", to.number);
        // SAFETY: a chunk whose address is in a ring waits in `held` until the completion ring gives it
        // back.
        let (umem, free) = unsafe { Umem::fresh(64, ChunkBytes::TwoKib) }.expect("memory");
        let (queue, socket) = segment.in_the_middle(|| {
            let config = QueueConfig {
                interface_index: index_of(&port),
                queue: 0,
                mode: BindMode::Copy,
                fill_entries: 64,
                completion_entries: 64,
            };
            let queue = Queue::open(&umem, &config).expect("a queue");
            let socket = TransmitSocket::open(&queue, 64).expect("a socket");
            (queue, socket)
        });
        let held = Held::new(&umem);
        Stranger {
            queue,
            socket,
            free,
            held,
        }
    }

    fn send(&mut self, frame: &[u8]) {
        let mut chunk = self.free.pop().expect("a free chunk");
        chunk[..frame.len()].copy_from_slice(frame);
        let descriptor = Descriptor {
            address: chunk.address(),
            length: frame.len() as u32,
            options: 0,
        };
        let held = self
            .held
            .hold(HeldSide::Transmit, descriptor.address, chunk);
        assert!(held.is_ok(), "a chunk is in one place");
        assert_eq!(self.socket.ring.push(&[descriptor]), 1);
        eventually("the frame has left", || {
            self.socket.kick();
            let mut address = [0];
            (self.queue.completion.pop(&mut address) == 1)
                .then(|| self.held.release(HeldSide::Transmit, address[0]))
                .flatten()
                .map(|chunk| self.free.push(chunk))
        });
    }
}

/// Fields of a frame that a test sets; the others are correct.
#[derive(Clone)]
struct Packet {
    macs: [u8; 12],
    tags: usize,
    ether_type: u16,
    version_and_length: u8,
    total_length: Option<u16>,
    fragment: u16,
    protocol: u8,
    to: [u8; 4],
    port: u16,
    udp_length: Option<u16>,
    udp_checksum: u16,
    payload: Vec<u8>,
}

impl Packet {
    fn bytes(&self) -> Vec<u8> {
        let mut frame = self.macs.to_vec();
        for tag in 0..self.tags {
            frame.extend([0x81, 0, 0, tag as u8 + 5]);
        }
        frame.extend(self.ether_type.to_be_bytes());
        let udp_length = 8 + self.payload.len() as u16;
        let mut head = vec![self.version_and_length, 0];
        head.extend(self.total_length.unwrap_or(20 + udp_length).to_be_bytes());
        head.extend([0, 7]);
        head.extend(self.fragment.to_be_bytes());
        head.extend([64, self.protocol, 0, 0, 10, 79, 0, 3]);
        head.extend(self.to);
        let words = head.chunks_exact(2);
        let sum: u32 = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        head[10..12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(head);
        frame.extend(40_000_u16.to_be_bytes());
        frame.extend(self.port.to_be_bytes());
        frame.extend(self.udp_length.unwrap_or(udp_length).to_be_bytes());
        frame.extend(self.udp_checksum.to_be_bytes());
        frame.extend(&self.payload);
        frame
    }
}

#[test]
fn frames_with_anything_wrong_are_left_to_the_kernel_or_dropped_by_name_and_the_topic_goes_on() {
    let mut segment = Segment::new();
    let hosts = [(); 2].map(|()| segment.add_host());
    let [one, other] = [0, 1].map(|place| Side::on_lanes(&hosts[place]));
    let sides = [&one, &other];
    let topic = Topic::new(sides, "Topic", &best_effort(CRITICAL));
    topic.pass_by_lane(sides, CRITICAL);
    let mut stranger = Stranger::new(&segment, &hosts[1]);
    let macs = [1, 0].map(|place: usize| hosts[place].enter(|| mac_of(INTERFACE)));
    let right = Packet {
        macs: std::array::from_fn(|place| macs[place / 6][place % 6]),
        tags: 0,
        ether_type: 0x0800,
        version_and_length: 0x45,
        total_length: None,
        fragment: 0,
        protocol: 17,
        to: hosts[1].address().octets(),
        port: other.port(CRITICAL),
        udp_length: None,
        udp_checksum: 0,
        payload: b"RTPS, as far as anybody sees".to_vec(),
    };
    let but = |change: fn(&mut Packet)| {
        let mut packet = right.clone();
        change(&mut packet);
        packet.bytes()
    };
    let cut = |bytes: Vec<u8>, length: usize| bytes[..length].to_vec();
    let cases: [(&str, Vec<u8>); 16] = [
        ("runt", cut(but(|packet| packet.tags = 1), 14)),
        ("runt", cut(but(|packet| packet.tags = 2), 18)),
        ("other ethertype", but(|packet| packet.ether_type = 0x88b5)),
        ("other ethertype", but(|packet| packet.tags = 3)),
        ("ipv6", but(|packet| packet.ether_type = 0x86dd)),
        (
            "malformed ipv4",
            but(|packet| packet.version_and_length = 0x44),
        ),
        (
            "malformed ipv4",
            but(|packet| packet.version_and_length = 0x55),
        ),
        (
            "malformed ipv4",
            but(|packet| packet.total_length = Some(1_400)),
        ),
        ("malformed udp", but(|packet| packet.udp_length = Some(7))),
        ("malformed udp", but(|packet| packet.udp_length = Some(900))),
        // A first fragment, and a later fragment whose first one never arrives.
        ("fragment", but(|packet| packet.fragment = 0x2000)),
        ("fragment", but(|packet| packet.fragment = 0x0010)),
        ("other protocol", but(|packet| packet.protocol = 6)),
        ("not rtps", but(|packet| packet.payload[0] = b'X')),
        ("unknown port", but(|packet| packet.port = 9)),
        (
            "unknown address",
            but(|packet| packet.to = [10, 79, 0, 200]),
        ),
    ];
    for (number, (reason, frame)) in (1..).zip(cases) {
        let before = other.decided(reason);
        for _ in 0..TIMES {
            stranger.send(&frame);
        }
        let is_counted = until(sides, || other.decided(reason) >= before + TIMES);
        assert!(
            is_counted,
            "{reason}: {:?}",
            other.participant.observe().interfaces
        );
        topic.pass(sides, number, 64);
    }

    // The datapath checks again what the classifier accepts as a datagram of the lane.
    let received = || other.ledger(CRITICAL).receive;
    let checksums = received().dropped(counters::CHECKSUM);
    let wrong = but(|packet| packet.udp_checksum = 0x1234);
    for _ in 0..TIMES {
        stranger.send(&wrong);
    }
    let is_dropped = until(sides, || {
        received().dropped(counters::CHECKSUM) == checksums + TIMES
    });
    assert!(is_dropped, "{:?}", received());

    // Up to two VLAN tags do not matter for a flow. The payload is no RTPS message, and is counted.
    for tags in [0, 1, 2] {
        let mut packet = right.clone();
        packet.tags = tags;
        let frame = packet.bytes();
        let before = other.participant.counters().malformed_messages;
        let by_lane = other.count(CRITICAL, counters::RECEIVED_BY_LANE);
        for _ in 0..TIMES {
            stranger.send(&frame);
        }
        let is_counted = until(sides, || {
            other.participant.counters().malformed_messages >= before + TIMES
        });
        assert!(
            is_counted,
            "{tags} tags: {:?}",
            other.participant.counters()
        );
        assert!(other.count(CRITICAL, counters::RECEIVED_BY_LANE) >= by_lane + TIMES);
    }
    topic.pass_by_lane(sides, CRITICAL);
    assert_eq!(topic.reader.ledger().lost, 0);
    drop((topic, stranger));
    one.finish();
    other.finish();
}
