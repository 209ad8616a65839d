//! Segmented bursts over sockets: on loopback, and between two network namespaces over a veth pair.
//!
//! The program needs no root: it enters network namespaces of its own, like `udp_multicast`. It creates devices with
//! `ip`, and turns an offload off with `ethtool`.

#[path = "common/cases.rs"]
mod cases;
#[path = "common/namespace.rs"]
#[expect(dead_code, reason = "only udp_multicast uses tunnels")]
mod namespace;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use cases::{Case, in_ci, run};
use isolane_datapath::ledger::{Event, Refusal};
use isolane_datapath::{
    Datapath, Interfaces, Lane, NetworkConfig, ReceiveBurst, SendReport, TransmitBurst, Udp,
};
use isolane_wire::locator::Locator;
use namespace::{enter_namespace, set_loopback_flags, set_up};

const LANE: Lane = Lane::ALL[2];

/// Longest time until a datagram arrives, however busy the host is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Size of each datagram of [`payload`] but the last: the datagrams fit an Ethernet frame.
const SEGMENT: u16 = 1_400;

/// Datagrams of [`payload`].
const DATAGRAMS: usize = 41;

/// End of the veth pair in the namespace of this program, and its address.
const HERE: (&str, [u8; 4]) = ("here", [10, 9, 0, 1]);

/// End of the veth pair in the other namespace, and its address.
const THERE: (&str, [u8; 4]) = ("there", [10, 9, 0, 2]);

const ON_LOOPBACK: [Case; 4] = [
    (
        "a_burst_arrives_as_its_datagrams",
        a_burst_arrives_as_its_datagrams::<Loopback>,
    ),
    (
        "a_receiver_without_segmentation_gets_single_frames",
        a_receiver_without_segmentation_gets_single_frames::<Loopback>,
    ),
    (
        "a_sender_without_segmentation_sends_the_datagrams_one_by_one",
        a_sender_without_segmentation_sends_the_datagrams_one_by_one::<Loopback>,
    ),
    (
        "a_burst_goes_to_several_destinations",
        a_burst_goes_to_several_destinations::<Loopback>,
    ),
];

const OVER_VETH: [Case; 10] = [
    (
        "a_burst_arrives_as_its_datagrams",
        a_burst_arrives_as_its_datagrams::<Veth>,
    ),
    (
        "a_receiver_without_segmentation_gets_single_frames",
        a_receiver_without_segmentation_gets_single_frames::<Veth>,
    ),
    (
        "a_sender_without_segmentation_sends_the_datagrams_one_by_one",
        a_sender_without_segmentation_sends_the_datagrams_one_by_one::<Veth>,
    ),
    (
        "a_burst_goes_to_several_destinations",
        a_burst_goes_to_several_destinations::<Veth>,
    ),
    (
        "a_group_gets_every_datagram_of_a_burst",
        a_group_gets_every_datagram_of_a_burst,
    ),
    (
        "a_segment_above_the_mtu_is_refused_once_and_arrives_in_ip_fragments",
        a_segment_above_the_mtu_is_refused_once_and_arrives_in_ip_fragments,
    ),
    (
        "errors_of_earlier_datagrams_refuse_none_of_a_burst_sent_singly",
        errors_of_earlier_datagrams_refuse_none_of_a_burst_sent_singly,
    ),
    (
        "a_full_send_buffer_refuses_datagrams",
        a_full_send_buffer_refuses_datagrams,
    ),
    (
        "a_destination_without_a_route_refuses_datagrams",
        a_destination_without_a_route_refuses_datagrams,
    ),
    (
        "a_device_without_checksum_offload_gets_every_datagram",
        a_device_without_checksum_offload_gets_every_datagram,
    ),
];

/// This case comes last, because it removes the devices.
const LAST: [Case; 1] = [(
    "a_missing_interface_refuses_datagrams",
    a_missing_interface_refuses_datagrams,
)];

fn main() -> ExitCode {
    if let Err(error) = enter_namespace() {
        eprintln!("the kernel refuses a network namespace ({error}): no case has run");
        return if in_ci() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        };
    }
    set_loopback_flags(libc::IFF_UP).expect("loopback comes up");
    let mut failed = run("loopback", &ON_LOOPBACK);
    match open_veth() {
        Ok(()) => {
            failed += run("veth", &OVER_VETH);
            failed += run("veth removed", &LAST);
        }
        Err(error) => {
            eprintln!("no veth pair can be opened ({error}): nothing was tried over one");
            failed += usize::from(in_ci());
        }
    }
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

thread_local! {
    /// Namespaces of this program and of the other end of the veth pair.
    static NAMESPACES: std::cell::OnceCell<[File; 2]> = const { std::cell::OnceCell::new() };
}

/// Creates a second namespace, and a veth pair from this one to it.
fn open_veth() -> io::Result<()> {
    let own = || File::open("/proc/thread-self/ns/net");
    let here = own()?;
    // SAFETY: no memory is passed.
    let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    let there = own()?;
    enter(&here)?;
    in_other(&there, || {
        set_loopback_flags(libc::IFF_UP)?;
        let program = std::process::id();
        ip(&format!(
            "link add {} type veth peer name {} netns {program}",
            THERE.0, HERE.0
        ))?;
        bring_up(THERE)
    })?;
    bring_up(HERE)?;
    NAMESPACES.with(|both| both.set([here, there]).expect("opened once"));
    Ok(())
}

/// Gives an interface its address and waits for its carrier, without which packets are lost.
fn bring_up((name, address): (&str, [u8; 4])) -> io::Result<()> {
    namespace::set_address(name, address)?;
    set_up(name, true)
}

/// Moves this thread to a network namespace.
fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: no memory is passed.
    let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    match entered {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs in another namespace. Sockets that are opened there stay there.
fn in_other<T: Send>(
    namespace: &File,
    run: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let in_namespace = || {
        enter(namespace)?;
        run()
    };
    thread::scope(|scope| scope.spawn(in_namespace).join().expect("no panic"))
}

fn ip(arguments: &str) -> io::Result<()> {
    command("ip", arguments)
}

fn command(program: &str, arguments: &str) -> io::Result<()> {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .output()?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let message = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!(
                "{program} {arguments}: {message}"
            )))
        }
    }
}

/// Medium between a sender and a receiver.
trait Medium {
    fn sender(segmentation: bool) -> Udp;
    fn receiver(segmentation: bool) -> Udp;
}

struct Loopback;
struct Veth;

impl Medium for Loopback {
    fn sender(segmentation: bool) -> Udp {
        open(Interfaces::Loopback, segmentation)
    }

    fn receiver(segmentation: bool) -> Udp {
        open(Interfaces::Loopback, segmentation)
    }
}

impl Medium for Veth {
    fn sender(segmentation: bool) -> Udp {
        open(Interfaces::Named(vec![HERE.0.to_owned()]), segmentation)
    }

    fn receiver(segmentation: bool) -> Udp {
        // The frames of a pool stay on their thread, so this thread moves and returns.
        NAMESPACES.with(|both| {
            let [here, there] = both.get().expect("opened");
            enter(there).expect("the namespace exists");
            let udp = open(Interfaces::Named(vec![THERE.0.to_owned()]), segmentation);
            enter(here).expect("the namespace exists");
            udp
        })
    }
}

fn open(interfaces: Interfaces, segmentation: bool) -> Udp {
    let mut udp = Udp::new(NetworkConfig {
        interfaces,
        segmentation,
        receive_buffer_bytes: Some(1 << 20),
        ..NetworkConfig::default()
    })
    .expect("the interface is up");
    udp.open_lane(LANE).expect("the lane opens");
    assert_eq!(udp.capabilities().segmented_lanes != 0, segmentation);
    udp
}

/// Returns 40 datagrams of [`SEGMENT`] bytes and a shorter one. No two have the same bytes.
fn payload() -> Vec<u8> {
    numbered(SEGMENT, 40 * usize::from(SEGMENT) + 700)
}

/// Returns bytes that contain the number of their datagram at its begin.
fn numbered(segment_bytes: u16, bytes: usize) -> Vec<u8> {
    let segment_bytes = usize::from(segment_bytes);
    let byte = |at: usize| match at % segment_bytes {
        0 => (at / segment_bytes) as u8,
        place => (place * 7) as u8,
    };
    (0..bytes).map(byte).collect()
}

fn send(udp: &mut Udp, payload: &[u8], segment_bytes: u16, to: &[Locator]) -> SendReport {
    let mut frame = udp.pool().take(LANE).expect("a free frame");
    frame.append(payload).expect("the payload fits");
    frame.set_segment_bytes(segment_bytes);
    let mut burst = TransmitBurst::new();
    burst.push_to(frame, to);
    udp.send_burst(LANE, &mut burst)
}

/// Datagrams received, and the number of their frames.
#[derive(Default)]
struct Received {
    datagrams: Vec<Vec<u8>>,
    frames: usize,
}

/// Receives this number of datagrams, fewer if no more arrive in time.
fn receive(udp: &mut Udp, count: usize) -> Received {
    let start = Instant::now();
    let mut received = Received::default();
    let mut burst = ReceiveBurst::new();
    while received.datagrams.len() < count && start.elapsed() < PATIENCE {
        udp.receive_burst(LANE, burst.capacity(), &mut burst);
        for one in &burst {
            received.frames += 1;
            let datagrams = one.frame.datagrams().map(<[u8]>::to_vec);
            received.datagrams.extend(datagrams);
        }
        burst.clear();
        thread::yield_now();
    }
    received
}

/// Receives the datagrams of a payload, and no others. Returns the number of frames.
fn expect(udp: &mut Udp, payload: &[u8], segment_bytes: u16) -> usize {
    let sent: Vec<&[u8]> = payload.chunks(segment_bytes.into()).collect();
    let received = receive(udp, sent.len());
    assert_eq!(received.datagrams.len(), sent.len(), "{}", udp.ledger());
    for (number, (received, sent)) in received.datagrams.iter().zip(sent).enumerate() {
        assert!(received == sent, "datagram {number} differs");
    }
    let again = udp.receive_burst(LANE, 1, &mut ReceiveBurst::new());
    assert_eq!(again, 0, "more than was sent");
    received.frames
}

fn all(sent: usize) -> SendReport {
    SendReport {
        sent: sent as u32,
        refused: 0,
    }
}

fn none(refused: usize) -> SendReport {
    SendReport {
        sent: 0,
        refused: refused as u32,
    }
}

fn count(udp: &Udp, event: Event) -> u64 {
    let ledger = udp.ledger();
    let events = &ledger.lane(LANE).events;
    let counted = events.counted().find(|(counted, _)| *counted == event);
    counted.map_or(0, |(_, count)| count)
}

/// Ends a case: both ledgers balance, and every datagram sent has arrived.
fn finish(sender: &Udp, receivers: &[&Udp]) {
    let sent = sender.ledger();
    assert_eq!(sent.balance(), Ok(()));
    let mut arrived = 0;
    let mut bytes = 0;
    for receiver in receivers {
        let ledger = receiver.ledger();
        assert_eq!(ledger.balance(), Ok(()));
        arrived += ledger.lane(LANE).receive.arrived;
        bytes += ledger.lane(LANE).receive.received_bytes;
    }
    let transmit = sent.lane(LANE).transmit;
    assert_eq!((transmit.sent, transmit.sent_bytes), (arrived, bytes));
    assert_eq!(sender.pool().outstanding_of(LANE), 0);
}

fn a_burst_arrives_as_its_datagrams<M: Medium>() {
    let (mut sender, mut receiver) = (M::sender(true), M::receiver(true));
    let to = [receiver.unicast(LANE)[0]];
    let report = send(&mut sender, &payload(), SEGMENT, &to);
    assert_eq!(report, all(DATAGRAMS));
    let frames = expect(&mut receiver, &payload(), SEGMENT);
    assert_eq!(frames, 1, "the kernel passed the burst as one packet");
    assert_eq!(count(&sender, Event::SEGMENTED), 1);
    assert_eq!(count(&receiver, Event::COALESCED), 1);
    finish(&sender, &[&receiver]);
}

fn a_receiver_without_segmentation_gets_single_frames<M: Medium>() {
    let (mut sender, mut receiver) = (M::sender(true), M::receiver(false));
    let to = [receiver.unicast(LANE)[0]];
    let report = send(&mut sender, &payload(), SEGMENT, &to);
    assert_eq!(report, all(DATAGRAMS));
    let frames = expect(&mut receiver, &payload(), SEGMENT);
    assert_eq!(frames, DATAGRAMS);
    assert_eq!(count(&sender, Event::SEGMENTED), 1);
    assert_eq!(count(&receiver, Event::COALESCED), 0);
    finish(&sender, &[&receiver]);
}

fn a_sender_without_segmentation_sends_the_datagrams_one_by_one<M: Medium>() {
    let (mut sender, mut receiver) = (M::sender(false), M::receiver(true));
    let to = [receiver.unicast(LANE)[0]];
    let report = send(&mut sender, &payload(), SEGMENT, &to);
    assert_eq!(report, all(DATAGRAMS));
    expect(&mut receiver, &payload(), SEGMENT);
    for event in [Event::SEGMENTED, Event::SEGMENTS_REFUSED] {
        assert_eq!(count(&sender, event), 0);
    }
    finish(&sender, &[&receiver]);
}

fn a_burst_goes_to_several_destinations<M: Medium>() {
    let mut sender = M::sender(true);
    let mut receivers = [true, false, true].map(|it| Box::new(M::receiver(it)));
    let to = receivers.each_ref().map(|one| one.unicast(LANE)[0]);
    let report = send(&mut sender, &payload(), SEGMENT, &to);
    assert_eq!(report, all(3 * DATAGRAMS));
    for receiver in &mut receivers {
        expect(receiver, &payload(), SEGMENT);
    }
    assert_eq!(count(&sender, Event::SEGMENTED), 3);
    finish(&sender, &receivers.each_ref().map(AsRef::as_ref));
}

fn a_group_gets_every_datagram_of_a_burst() {
    let mut sender = Veth::sender(true);
    let mut members = [Veth::receiver(true), Veth::receiver(true)];
    let group = members[0].multicast(LANE)[0];
    let report = send(&mut sender, &payload(), SEGMENT, &[group]);
    assert_eq!(report, all(DATAGRAMS));
    for member in &mut members {
        expect(member, &payload(), SEGMENT);
        assert_eq!(member.ledger().balance(), Ok(()));
    }
    // The sender is a member as well.
    expect(&mut sender, &payload(), SEGMENT);
    assert_eq!(count(&sender, Event::SEGMENTED), 1);
    assert_eq!(sender.ledger().balance(), Ok(()));
}

fn a_segment_above_the_mtu_is_refused_once_and_arrives_in_ip_fragments() {
    let (mut sender, mut receiver) = (Veth::sender(true), Veth::receiver(true));
    let to = [receiver.unicast(LANE)[0]];
    let large = numbered(3_000, 30_100);
    for round in 0..3 {
        let report = send(&mut sender, &large, 3_000, &to);
        assert_eq!(report, all(11), "round {round}");
        let frames = expect(&mut receiver, &large, 3_000);
        assert_eq!(frames, 11);
        assert_eq!(count(&sender, Event::SEGMENTS_REFUSED), 1);
        assert_eq!(count(&sender, Event::SEGMENTED), round);

        let report = send(&mut sender, &payload(), SEGMENT, &to);
        assert_eq!(report, all(DATAGRAMS), "round {round}");
        expect(&mut receiver, &payload(), SEGMENT);
        assert_eq!(count(&sender, Event::SEGMENTED), round + 1);
    }
    finish(&sender, &[&receiver]);
}

fn errors_of_earlier_datagrams_refuse_none_of_a_burst_sent_singly() {
    let (mut sender, receiver) = (Veth::sender(true), Veth::receiver(true));
    let to = [receiver.unicast(LANE)[0]];
    // Its host reports each datagram by an ICMP message, before the next one is sent.
    drop(receiver);
    let large = numbered(3_000, 30_100);
    let report = send(&mut sender, &large, 3_000, &to);
    assert_eq!(report, all(11), "{}", sender.ledger());
    assert_eq!(count(&sender, Event::SEGMENTS_REFUSED), 1);
    // Reads the errors.
    sender.receive_burst(LANE, 1, &mut ReceiveBurst::new());
    let ledger = sender.ledger();
    assert!(ledger.lane(LANE).transmit.bounced > 0, "{ledger}");
    assert_eq!(ledger.balance(), Ok(()));
}

fn a_full_send_buffer_refuses_datagrams() {
    let mut sender = Veth::sender(true);
    // Packets for a neighbour that does not answer wait for its address.
    let queue = format!("/proc/sys/net/ipv4/neigh/{}/unres_qlen_bytes", HERE.0);
    std::fs::write(queue, "100000000").expect("a setting of this namespace");
    let absent = [Locator::udpv4([10, 9, 0, 77], 7_411)];
    let mut total = SendReport::default();
    while total.refused == 0 {
        let report = send(&mut sender, &payload(), SEGMENT, &absent);
        assert_eq!(report.sent + report.refused, DATAGRAMS as u32);
        assert!(report.sent == 0 || report.refused == 0, "{report:?}");
        total.sent += report.sent;
        total.refused += report.refused;
        assert!(total.sent < 100_000, "the buffer has no end");
    }
    assert_eq!(total.refused, DATAGRAMS as u32);
    let ledger = sender.ledger();
    let transmit = ledger.lane(LANE).transmit;
    let refused = transmit.refused(Refusal::WOULD_BLOCK);
    assert_eq!(refused, DATAGRAMS as u64, "{ledger}");
    assert_eq!(transmit.sent, u64::from(total.sent));
    assert_eq!(ledger.balance(), Ok(()));
}

fn a_destination_without_a_route_refuses_datagrams() {
    let mut sender = Veth::sender(true);
    let to = [Locator::udpv4([192, 0, 2, 1], 7_411)];
    let report = send(&mut sender, &payload(), SEGMENT, &to);
    assert_eq!(report, none(DATAGRAMS));
    let unknown = [Locator::udpv4([10, 9, 0, 2], 0)];
    let report = send(&mut sender, &payload(), SEGMENT, &unknown);
    assert_eq!(report, none(DATAGRAMS));
    let report = send(&mut sender, &payload(), SEGMENT, &[]);
    assert_eq!(report, none(DATAGRAMS));
    let ledger = sender.ledger();
    for reason in [
        Refusal::UNREACHABLE,
        Refusal::UNKNOWN_DESTINATION,
        Refusal::NO_DESTINATION,
    ] {
        let refused = ledger.lane(LANE).transmit.refused(reason);
        assert_eq!(refused, DATAGRAMS as u64, "{reason:?}: {ledger}");
    }
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!(count(&sender, Event::SEGMENTED), 0);
}

/// Whether the kernel segments in software (since Linux 6.11) or refuses, every datagram arrives.
fn a_device_without_checksum_offload_gets_every_datagram() {
    let turn = |state| command("ethtool", &format!("-K {} tx {state}", HERE.0));
    if let Err(error) = turn("off") {
        eprintln!("the offload cannot be turned off ({error}): the case has not run");
        assert!(!in_ci());
        return;
    }
    let (mut sender, mut receiver) = (Veth::sender(true), Veth::receiver(true));
    let to = [receiver.unicast(LANE)[0]];
    for _ in 0..3 {
        let report = send(&mut sender, &payload(), SEGMENT, &to);
        assert_eq!(report, all(DATAGRAMS));
        expect(&mut receiver, &payload(), SEGMENT);
    }
    let segmented = count(&sender, Event::SEGMENTED);
    let refused = count(&sender, Event::NO_CHECKSUM_OFFLOAD);
    let ledger = sender.ledger();
    assert!(matches!((segmented, refused), (3, 0) | (0, 1)), "{ledger}");
    finish(&sender, &[&receiver]);
    turn("on").expect("the offload is turned on again");
}

fn a_missing_interface_refuses_datagrams() {
    let mut sender = Veth::sender(true);
    let group = [sender.multicast(LANE)[0]];
    ip(&format!("link delete {}", HERE.0)).expect("the device is deleted");
    // The kernel refuses; after a check, the datapath does.
    let report = send(&mut sender, &payload(), SEGMENT, &group);
    assert_eq!(report, none(DATAGRAMS));
    sender.check_interfaces();
    let report = send(&mut sender, &payload(), SEGMENT, &group);
    assert_eq!(report, none(DATAGRAMS));
    let ledger = sender.ledger();
    let transmit = ledger.lane(LANE).transmit;
    assert_eq!(
        transmit.refused(Refusal::INTERFACE_GONE),
        DATAGRAMS as u64,
        "{ledger}"
    );
    assert_eq!(transmit.refused_total(), 2 * DATAGRAMS as u64, "{ledger}");
    assert_eq!(ledger.balance(), Ok(()));
}
