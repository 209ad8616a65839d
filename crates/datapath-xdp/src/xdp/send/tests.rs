//! Comparison of the fast path with the general path: both have the same effects, or the fast path has none.

use std::net::Ipv4Addr;

use isolane_datapath::{
    Class, Datapath, Frame, Interfaces, NetworkConfig, PoolConfig, ReceiveBurst,
};

use super::*;
use crate::xdp::{XdpConfig, XdpOptions};

#[path = "../../../tests/hosts/mod.rs"]
mod hosts;

use hosts::{HERE, Hosts, THERE, eventually, ip, mac_of};

const LEVEL: Level = Level::MAX;
const LANE: Lane = Lane::Level(LEVEL);
/// Lane whose frames the tested lane sends when a test needs more than the tested lane has.
const BULK: Lane = Lane::Level(Level::MIN);

/// Frames of the lane, and entries of its transmit ring.
const FRAMES: usize = 4;

/// Code path that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Single,
    Many,
    /// As called by the executor loop.
    Burst,
}

/// All effects of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    report: Option<SendReport>,
    /// Counters that are not 0, by name.
    counted: Vec<(String, u64)>,
    /// Frames left in the ring.
    in_ring: u32,
    /// Frames left in the burst.
    in_burst: usize,
    /// Lanes with frames left in their rings.
    left_levels: u8,
}

impl Outcome {
    /// Outcome without effects.
    fn nothing() -> Outcome {
        Outcome {
            report: None,
            counted: Vec::new(),
            in_ring: 0,
            in_burst: 1,
            left_levels: 0,
        }
    }

    fn count(&self, name: &str) -> u64 {
        let mut of_name = self.counted.iter().filter(|(one, _)| one == name);
        of_name.next().map_or(0, |(_, count)| *count)
    }

    #[track_caller]
    fn assert_counts(&self, wanted: &[(&str, u64)]) {
        for (name, count) in wanted {
            assert_eq!(self.count(name), *count, "{name} of {self:?}");
        }
    }
}

/// Two hosts that have resolved each other, with lanes on both.
struct World {
    here: Xdp,
    there: Xdp,
    hosts: Hosts,
}

fn lanes_on(interface: &str, change: impl Fn(&mut XdpOptions)) -> Xdp {
    let mut pool = PoolConfig::default();
    pool.transmit_frames[LANE.index()] = FRAMES;
    let mut config = XdpConfig {
        udp: NetworkConfig {
            interfaces: Interfaces::Named(vec![interface.to_owned()]),
            pool,
            ..NetworkConfig::default()
        },
        options: XdpOptions {
            spare_transmit_chunks: 0,
            ..XdpOptions::default()
        },
    };
    change(&mut config.options);
    let mut path = Xdp::new(config).expect("lanes can be had");
    for lane in [LANE, BULK] {
        path.open_lane(lane).expect("a lane");
    }
    path
}

/// Sets the Ethernet address of a neighbour on the interface's host.
fn know(address: Ipv4Addr, mac: [u8; 6], interface: &str) {
    let mac = isolane_wire::ethernet::MacAddress(mac);
    ip(&format!(
        "neighbour replace {address} lladdr {mac} dev {interface} nud permanent"
    ));
}

impl World {
    fn new() -> World {
        World::with(|_| {})
    }

    fn with(change: impl Fn(&mut XdpOptions)) -> World {
        let hosts = Hosts::new();
        let there = hosts.there(|| mac_of("host-b"));
        let here = mac_of("host-a");
        know(THERE, there, "host-a");
        ip("route add 224.0.0.0/4 dev host-a");
        hosts.there(|| {
            know(HERE, here, "host-b");
            ip("route add 224.0.0.0/4 dev host-b");
        });
        let mut world = World {
            here: lanes_on("host-a", &change),
            there: hosts.visit(|| lanes_on("host-b", &change)),
            hosts,
        };
        // The headers are cached from here on.
        world.warm_up();
        world
    }

    fn warm_up(&mut self) {
        let to = self.to();
        let frame = self.frame(64);
        let sent = self.send(By::Many, frame, to);
        sent.assert_counts(&[("sent_by_lane", 1), ("sent", 1)]);
        self.assert_received(1);
    }

    fn to(&self) -> Locator {
        self.there.unicast(LANE)[0]
    }

    /// Frame of `bytes` that the classifier accepts as RTPS.
    fn frame(&self, bytes: usize) -> Frame {
        filled(&self.here, LANE, bytes)
    }

    fn device(&mut self) -> &mut Device {
        self.here.device_mut().expect("a device")
    }

    fn in_ring(&mut self) -> u32 {
        let lane = self.device().lanes[usize::from(LEVEL.get())].as_deref_mut();
        lane.expect("a lane").transmit.ring.used()
    }

    /// Counters of the lane and of the router.
    fn counts(&self) -> Vec<(String, u64)> {
        let ledger = self.here.ledger();
        assert_eq!(ledger.balance(), Ok(()), "{ledger}");
        let lane = ledger.lane(LANE);
        let transmit = &lane.transmit;
        let router = self
            .here
            .interface
            .as_ref()
            .expect("an interface")
            .router
            .counts();
        let mut counts = vec![
            ("offered".to_owned(), transmit.offered),
            ("sent".to_owned(), transmit.sent),
            ("sent_bytes".to_owned(), transmit.sent_bytes),
            ("headers".to_owned(), router.by_device),
            ("no headers".to_owned(), router.by_kernel.iter().sum()),
        ];
        let refused = counters::NAMES.refusals();
        counts.extend(refused.map(|(why, name)| (name.to_owned(), transmit.refused(why))));
        let events = counters::NAMES.events();
        counts.extend(events.map(|(event, name)| (name.to_owned(), lane.events.get(event))));
        counts
    }

    /// Sends a frame to a destination.
    fn send(&mut self, by: By, frame: Frame, to: Locator) -> Outcome {
        let mut burst = TransmitBurst::new();
        burst.push(frame).expect("room for a frame");
        burst.address(to).expect("room for a place");
        let (before, ring_before) = (self.counts(), self.in_ring());
        let report = match by {
            By::Single => self.here.send_single(LEVEL, &mut burst),
            By::Many => self.here.send_by_lane(LEVEL, &mut burst),
            By::Burst => Some(self.here.send_burst(LANE, &mut burst)),
        };
        let both = self.counts().into_iter().zip(before);
        let counted = both.map(|((name, now), (_, before))| (name, now - before));
        Outcome {
            report,
            counted: counted.filter(|(_, count)| *count > 0).collect(),
            in_ring: self.in_ring() - ring_before,
            in_burst: burst.len(),
            left_levels: self.device().left_levels,
        }
    }

    /// Receives `count` datagrams with the headers before them; no headers if they came through the kernel.
    fn received(&mut self, count: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut received = Vec::new();
        eventually("they arrive", || {
            let mut burst = ReceiveBurst::new();
            self.there.receive_burst(LANE, 16, &mut burst);
            received.extend(burst.iter().map(|one| {
                let start = one.frame.range().start;
                let front = &one.frame.buffer()[..start];
                let headers = match one.frame.class() {
                    Class::Queue(_) => front[start - MAX_HEADER_BYTES..].to_vec(),
                    _ => Vec::new(),
                };
                (headers, one.frame.to_vec())
            }));
            (received.len() >= count).then_some(())
        });
        assert_eq!(received.len(), count);
        received
    }

    /// Brings this host's interface up again, so that the frames in the ring leave.
    fn set_up_again(&mut self) {
        ip("link set host-a up");
        eventually("the kernel takes them", || {
            self.here.recycle();
            (!self.here.wants_recycling()).then_some(())
        });
    }

    #[track_caller]
    fn assert_received(&mut self, count: usize) {
        assert_eq!(self.received(count).len(), count);
        self.assert_home();
    }

    /// Asserts that all frames are back in the pool.
    fn assert_home(&mut self) {
        eventually("frames come home", || {
            self.here.recycle();
            let pool = self.here.pool();
            let classes = [LANE, BULK].map(Class::Transmit);
            let out = classes.map(|class| pool.outstanding_of(class));
            (out == [0; 2]).then_some(())
        });
    }

    /// Asserts that both paths send the frame alike, and that it arrives alike.
    fn assert_same(&mut self, frame: impl Fn(&World) -> Frame, arrives: bool) -> Outcome {
        let to = self.to();
        let [single, many] = [By::Single, By::Many].map(|by| {
            let frame = frame(self);
            self.send(by, frame, to)
        });
        assert_eq!(single, many);
        if arrives {
            let received = self.received(2);
            assert_eq!(received[0], received[1]);
        }
        single
    }

    /// Asserts that the fast path leaves the frame alone and the loop sends it by the general path.
    fn assert_left(&mut self, frame: impl Fn(&World) -> Frame, to: Locator) -> Outcome {
        let untouched = frame(self);
        let (range, bytes) = (untouched.range(), untouched.buffer().to_vec());
        let mut burst = TransmitBurst::new();
        burst.push(untouched).expect("room for a frame");
        burst.address(to).expect("room for a place");
        let (before, ring_before) = (self.counts(), self.in_ring());
        assert_eq!(self.here.send_single(LEVEL, &mut burst), None);
        assert_eq!(self.counts(), before);
        assert_eq!(self.in_ring(), ring_before);
        assert_eq!((burst.len(), burst.messages().len()), (1, 1));
        let left = burst.pop().expect("the frame");
        assert_eq!((left.range(), left.buffer()), (range, &bytes[..]));
        drop(left);
        let [burst, many] = [By::Burst, By::Many].map(|by| {
            let frame = frame(self);
            self.send(by, frame, to)
        });
        assert_eq!(burst, many);
        many
    }
}

fn filled(path: &Xdp, lane: Lane, bytes: usize) -> Frame {
    let mut frame = path.pool().take(lane).expect("a free frame");
    fill(&mut frame, bytes);
    frame
}

fn fill(frame: &mut Frame, bytes: usize) {
    let start = frame.head_room();
    frame.set_range(start..start + bytes);
    frame.fill(0xa5);
    frame[..4].copy_from_slice(b"RTPS");
}

#[test]
fn one_message_is_sent_alike_by_either_way() {
    let mut world = World::new();
    for bytes in [4, 64, 1_471, 1_472] {
        let sent = world.assert_same(|world| world.frame(bytes), true);
        let report = SendReport {
            sent: 1,
            refused: 0,
        };
        assert_eq!(sent.report, Some(report));
        sent.assert_counts(&[
            ("sent_by_lane", 1),
            ("sent_bytes", bytes as u64),
            ("headers", 1),
            ("kick", 1),
            ("kick_unfinished", 0),
        ]);
        world.assert_home();
    }
}

#[test]
fn a_device_that_tags_gets_the_same_tag_by_either_way() {
    for vlan in [0, 5] {
        let mut world = World::with(|options| options.vlan = Some(vlan));
        let sent = world.assert_same(|world| world.frame(64), true);
        sent.assert_counts(&[("sent_by_lane", 1), ("destination_copy", 0)]);
        world.assert_home();
    }
}

#[test]
fn a_frame_that_the_driver_refuses_is_counted_alike() {
    let mut world = World::new();
    // A veth whose peer is down accepts nothing. The lane has not been notified of that yet.
    world.hosts.there(|| ip("link set host-b down"));
    let sent = world.assert_same(|world| world.frame(64), false);
    let report = SendReport {
        sent: 0,
        refused: 1,
    };
    assert_eq!(sent.report, Some(report));
    sent.assert_counts(&[("device_refused", 1), ("sent", 0), ("kick", 1)]);
    assert_eq!(sent.in_ring, 0);
    world.assert_home();
}

#[test]
fn what_the_kernel_does_not_take_yet_waits_alike_and_leaves_alike() {
    let mut world = World::new();
    ip("link set host-a down");
    let sent = world.assert_same(|world| world.frame(64), false);
    sent.assert_counts(&[("sent", 1), ("kick_unfinished", 1)]);
    assert_eq!((sent.in_ring, sent.left_levels), (1, 1 << LEVEL.get()));
    // The frame leaves unchanged from the ring.
    world.set_up_again();
    let received = world.received(2);
    assert_eq!(received[0], received[1]);
    world.assert_home();
}

#[test]
fn a_full_ring_is_left_to_the_long_way() {
    let mut world = World::new();
    let to = world.to();
    ip("link set host-a down");
    // Includes frames of the other lane, so that there are more frames than ring entries.
    for _ in 0..FRAMES {
        let frame = filled(&world.here, BULK, 64);
        let sent = world.send(By::Single, frame, to);
        assert_eq!(sent.in_ring, 1);
    }
    let sent = world.assert_left(|world| world.frame(64), to);
    sent.assert_counts(&[("kernel_ring_full", 1), ("sent_by_lane", 0)]);
    world.set_up_again();
    world.assert_received(FRAMES);
}

#[test]
fn a_frame_with_too_little_head_room_is_left_to_the_long_way() {
    let mut world = World::new();
    let to = world.to();
    let plain = MAX_HEADER_BYTES - 4;
    // With head room for untagged headers only, the general path needs no copy.
    for (head_room, copies) in [
        (0, 1),
        (plain - 1, 1),
        (plain, 0),
        (MAX_HEADER_BYTES - 1, 0),
    ] {
        let frame = |world: &World| {
            let mut frame = world.here.pool().take(LANE).expect("a free frame");
            frame.set_range(head_room..head_room);
            fill(&mut frame, 64);
            frame
        };
        let sent = world.assert_left(frame, to);
        sent.assert_counts(&[("sent_by_lane", 1), ("destination_copy", copies)]);
        world.assert_received(2);
    }
    let frame = |world: &World| {
        let mut frame = world.here.pool().take(LANE).expect("a free frame");
        frame.set_range(MAX_HEADER_BYTES..MAX_HEADER_BYTES);
        fill(&mut frame, 64);
        frame
    };
    let sent = world.assert_same(frame, true);
    sent.assert_counts(&[("sent_by_lane", 1), ("destination_copy", 0)]);
}

#[test]
fn a_message_longer_than_the_mtu_is_left_to_the_long_way() {
    let mut world = World::new();
    let to = world.to();
    let sent = world.assert_left(|world| world.frame(1_473), to);
    sent.assert_counts(&[("kernel_too_long", 1), ("sent", 1), ("sent_by_lane", 0)]);
    world.assert_received(2);
}

#[test]
fn headers_of_before_a_neighbour_changed_are_not_used_again() {
    let mut world = World::new();
    let to = world.to();
    // The fast path has cached headers from here on.
    world.assert_same(|world| world.frame(64), true);
    let there = world.hosts.there(|| mac_of("host-b"));
    let mut other = there;
    other[5] ^= 1;
    for mac in [other, there] {
        know(THERE, mac, "host-a");
        let router = &mut world.here.interface.as_mut().expect("an interface").router;
        assert!(router.follow().has_changed);
        let sent = world.assert_left(|world| world.frame(64), to);
        sent.assert_counts(&[("sent_by_lane", 1)]);
        // Cached again. A veth delivers all frames, whatever their destination address.
        let again = world.assert_same(|world| world.frame(64), false);
        assert_eq!(again, sent);
        for (headers, _) in world.received(4) {
            assert_eq!(headers[4..10], mac, "in front are four bytes for a tag");
        }
        world.assert_home();
    }
}

#[test]
fn a_group_is_left_to_the_long_way() {
    let mut world = World::new();
    let group = world.here.multicast(LANE)[0];
    let sent = world.assert_left(|world| world.frame(64), group);
    sent.assert_counts(&[("sent_by_lane", 1), ("kernel_local_group", 1)]);
    let received = world.received(2);
    assert_eq!(received[0], received[1]);
}

#[test]
fn a_chunk_of_another_pool_is_left_to_the_long_way() {
    let mut world = World::new();
    let to = world.to();
    let sent = world.assert_left(|world| filled(&world.there, LANE, 64), to);
    sent.assert_counts(&[("sent_by_lane", 1), ("destination_copy", 1)]);
    world.assert_received(2);
    let pool = world.there.pool();
    assert_eq!(pool.outstanding_of(Class::Transmit(LANE)), 0);
}

#[test]
fn places_that_are_none_and_places_not_seen_before_are_left_to_the_long_way() {
    let mut world = World::new();
    let to = world.to();
    let no_port = Locator { port: 0, ..to };
    let ipv6 = Locator {
        kind: Locator::KIND_UDPV6,
        ..to
    };
    for nowhere in [no_port, ipv6, Locator::INVALID] {
        let sent = world.assert_left(|world| world.frame(64), nowhere);
        sent.assert_counts(&[("sent", 0), ("sent_by_lane", 0), ("offered", 1)]);
    }
    // Unused port: its headers are made by the first send.
    let other = Locator {
        port: to.port ^ 1,
        ..to
    };
    let frame = world.frame(64);
    assert_eq!(world.send(By::Single, frame, other), Outcome::nothing());
    let frame = world.frame(64);
    let sent = world.send(By::Many, frame, other);
    for place in [other, to, other] {
        let frame = world.frame(64);
        assert_eq!(world.send(By::Single, frame, place), sent);
    }
}
