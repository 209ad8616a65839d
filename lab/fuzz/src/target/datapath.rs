//! Target `datapath`: arbitrary operations on frames and the memory datapath. Every datagram must be in a ledger, and
//! every frame must return to its pool.

use isolane_datapath::{
    Class, Datapath, Frame, Lane, LeasedFrame, Memory, Network, PoolConfig, ReceiveBurst,
    TransmitBurst, memory::MemoryConfig,
};
use isolane_wire::locator::Locator;

use crate::{input::Input, limits::MAX_OPERATIONS};

const LANES: [Lane; 3] = [Lane::ALL[0], Lane::ALL[1], Lane::ALL[8]];
/// Frame size in bytes; the pool has few frames, so that they run out.
const FRAME_BYTES: usize = 2048;
const FRAMES: usize = 6;
/// Frame size of one participant, too small for some datagrams of the others.
const SMALL_FRAME_BYTES: usize = 96;

struct Member {
    memory: Memory,
    receive: ReceiveBurst,
    transmit: TransmitBurst,
    held: Vec<Frame>,
    leased: Vec<LeasedFrame>,
}

/// Runs operations on three participants of an in-memory network.
pub fn datapath(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let pool = PoolConfig {
        frame_bytes: FRAME_BYTES,
        head_room_bytes: usize::from(input.byte() % 65),
        receive_frames: [FRAMES; Lane::COUNT],
        transmit_frames: [FRAMES; Lane::COUNT],
        ..PoolConfig::default()
    };
    let small = PoolConfig {
        frame_bytes: SMALL_FRAME_BYTES,
        ..pool
    };
    let network = Network::with_config(MemoryConfig {
        queue_datagrams: 8,
        queue_bytes: 4096,
        ..MemoryConfig::new(1)
    });
    let mut members: Vec<Member> = [(1, pool), (2, pool), (3, small)]
        .into_iter()
        .map(|(last, pool)| Member {
            memory: network.attach_with_pool([10, 0, 0, last], pool),
            receive: ReceiveBurst::new(),
            transmit: TransmitBurst::new(),
            held: Vec::new(),
            leased: Vec::new(),
        })
        .collect();
    let places = open_some(&mut members, &mut input);
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        if input.byte() == 255 {
            network.set_loss_per_million(input.any::<u32>() % 1_000_001);
        }
        let index = input.index(members.len());
        operate(&mut members[index], &mut input, &places);
        for member in &members {
            let ledger = member.memory.ledger();
            assert_eq!(ledger.balance(), Ok(()), "{ledger}");
        }
    }
    for member in members {
        finish(member);
    }
}

/// Opens some lanes, and returns their locators.
fn open_some(members: &mut [Member], input: &mut Input<'_>) -> Vec<Locator> {
    let mut places = vec![
        Locator::udpv4([10, 0, 0, 9], 7410),
        Locator::udpv4([239, 255, 0, 1], 7400),
        Locator::INVALID,
    ];
    for member in members {
        let which = input.byte();
        for (bit, lane) in LANES.into_iter().enumerate() {
            if which >> bit & 1 == 0 {
                let opened = member.memory.open_lane(lane);
                opened.expect("a network in memory has room for three");
            }
            places.extend_from_slice(member.memory.unicast(lane));
            places.extend_from_slice(member.memory.multicast(lane));
        }
    }
    places
}

fn operate(member: &mut Member, input: &mut Input<'_>, places: &[Locator]) {
    let lane = input.pick(&LANES);
    match input.byte() % 8 {
        0 | 1 => {
            // A filled frame waits in the burst or is held back.
            let Some(mut frame) = member.memory.pool().take(Class::Transmit(lane)) else {
                return;
            };
            let fits = frame.append(input.bytes(3 * FRAME_BYTES)).is_ok();
            assert!(frame[..].len() <= FRAME_BYTES);
            if input.byte() < 192 && fits {
                if let Err(frame) = member.transmit.push(frame) {
                    member.held.push(frame);
                }
            } else {
                member.held.push(frame);
            }
        }
        2 => {
            if !member.transmit.is_empty() {
                for _ in 0..=input.byte() % 24 {
                    // If the burst has no room for the address, it returns an error and is unchanged.
                    let _ = member.transmit.address(input.pick(places));
                }
            }
        }
        3 => {
            let frames = member.transmit.len() as u32;
            let report = member.memory.send_burst(lane, &mut member.transmit);
            assert!(member.transmit.is_empty(), "sending empties the burst");
            assert!(frames > 0 || report.sent + report.refused == 0);
        }
        4 => {
            let limit = usize::from(input.byte() % 20);
            let before = member.receive.len();
            let taken = member
                .memory
                .receive_burst(lane, limit, &mut member.receive);
            assert!(taken <= limit && member.receive.len() - before <= taken);
        }
        5 => match input.byte() % 3 {
            0 => member.receive.clear(),
            1 => member.held.clear(),
            _ => {
                if let Some(received) = member.receive.pop() {
                    member.held.push(received.frame);
                }
            }
        },
        6 => {
            let count = usize::from(input.byte() % 4);
            let leased = member.memory.pool().lease(Class::Transmit(lane), count);
            member
                .leased
                .extend(leased.expect("memory for a few frames"));
            member.leased.truncate(16);
        }
        _ => {
            if let Some(leased) = member.leased.pop() {
                if input.flag() {
                    member.held.push(member.memory.pool().adopt(leased));
                } else {
                    // Another thread drops the frame, as when a publisher ends.
                    std::thread::scope(|scope| {
                        scope.spawn(|| drop(leased));
                    });
                }
            }
        }
    }
}

/// Checks that only users and bursts hold frames, releases these, and checks that every frame has returned.
fn finish(member: Member) {
    let Member {
        memory,
        receive,
        transmit,
        held,
        leased,
    } = member;
    let users = receive.len() + transmit.len() + held.len() + leased.len();
    let pool = memory.pool().clone();
    assert_eq!(pool.outstanding(), users, "frames without a holder");
    drop((receive, transmit, held, leased));
    assert_eq!(pool.outstanding(), 0, "frames that did not come home");
    drop(memory);
}
