//! Tests of the pool. Frames are small to keep Miri fast.

use std::thread;

use super::memory::{PAGE_BYTES, Region};
use super::{Class, DeviceConfig, Frame, LeasedFrame, Pool, PoolConfig};
use crate::lane::Lane;

const CRITICAL: Lane = Lane::ALL[8];
const BULK: Lane = Lane::ALL[1];

/// Pool with two frames a class, of 64 bytes with 8 of head room.
fn small_pool() -> Pool {
    let pool = Pool::new(PoolConfig {
        frame_bytes: 64,
        head_room_bytes: 8,
        prefault_bytes: 0,
        receive_frames: [2; Lane::COUNT],
        transmit_frames: [2; Lane::COUNT],
        ..PoolConfig::default()
    });
    pool.reserve_lane(CRITICAL).unwrap();
    pool.reserve_lane(BULK).unwrap();
    pool
}

fn filled(pool: &Pool, lane: Lane, byte: u8) -> Frame {
    let mut frame = pool.take(lane).expect("a free frame");
    frame.append(&[byte; 16]).expect("room for 16 bytes");
    frame
}

#[test]
fn a_dropped_frame_goes_home_and_is_taken_again() {
    let pool = small_pool();
    let first = pool.take(CRITICAL).unwrap();
    let address = first.buffer().as_ptr();
    assert_eq!(pool.outstanding(), 1);
    drop(first);
    assert_eq!(pool.outstanding(), 0);
    assert_eq!(pool.take(CRITICAL).unwrap().buffer().as_ptr(), address);
}

#[test]
fn an_exhausted_class_takes_nothing_from_another() {
    let pool = small_pool();
    let bulk = [pool.take(BULK), pool.take(BULK)];
    assert!(bulk.iter().all(Option::is_some));
    assert!(pool.take(BULK).is_none());
    assert_eq!(pool.exhausted(BULK), 1);
    assert!(pool.take(CRITICAL).is_some());
    assert!(pool.take(Class::Receive(BULK)).is_some());
    assert_eq!(pool.exhausted(CRITICAL), 0);
}

#[test]
fn a_lane_that_was_not_reserved_has_no_frames() {
    let pool = small_pool();
    assert!(pool.take(Lane::Discovery).is_none());
    assert_eq!(pool.capacity(Lane::Discovery), 0);
}

#[test]
fn reserving_a_lane_twice_changes_nothing() {
    let pool = small_pool();
    pool.reserve_lane(BULK).unwrap();
    assert_eq!(pool.capacity(BULK), 2);
}

#[test]
fn frames_do_not_share_bytes() {
    let pool = small_pool();
    let frames = [filled(&pool, BULK, 1), filled(&pool, CRITICAL, 2)];
    let more = [filled(&pool, BULK, 3), filled(&pool, CRITICAL, 4)];
    for (frame, byte) in frames.iter().chain(&more).zip(1..) {
        assert_eq!(**frame, [byte; 16]);
    }
}

#[test]
fn headers_are_put_in_front_of_a_payload_in_place() {
    let pool = small_pool();
    let mut frame = pool.take(CRITICAL).unwrap();
    assert_eq!((frame.head_room(), frame.len()), (8, 0));
    frame.reserve_head(4);
    frame.append(b"payload").unwrap();
    let address = frame.as_ptr();
    frame.push_head(4).copy_from_slice(b"RTPS");
    assert_eq!(&*frame, b"RTPSpayload");
    assert_eq!(frame[4..].as_ptr(), address);
    assert_eq!(frame.head_room(), 8);
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let pool = small_pool();
    let mut frame = pool.take(CRITICAL).unwrap();
    let error = frame.append(&[0; 57]).unwrap_err();
    assert_eq!((error.wanted, error.room), (57, 56));
    assert!(frame.is_empty());
    frame.append(&[0; 56]).unwrap();
    assert_eq!(frame.tail_room(), 0);
}

#[test]
#[should_panic(expected = "is no part of a frame of 64 bytes")]
fn a_range_outside_of_the_frame_is_our_own_fault() {
    let pool = small_pool();
    pool.take(CRITICAL).unwrap().set_range(60..65);
}

#[test]
fn a_leased_frame_is_filled_on_another_thread_and_adopted() {
    let pool = small_pool();
    let leased = pool.lease(CRITICAL, 3).unwrap();
    assert_eq!(leased.len(), 3);
    // Leased frames are in addition to those of the executor.
    assert_eq!(pool.capacity(CRITICAL), 5);
    let publisher = thread::spawn(move || {
        let fill = |mut frame: LeasedFrame| {
            frame.buffer_mut()[8..12].copy_from_slice(b"data");
            frame.set_range(8..12);
            frame
        };
        leased.into_iter().map(fill).collect::<Vec<_>>()
    });
    let back = publisher.join().unwrap();
    let frames: Vec<Frame> = back.into_iter().map(|frame| pool.adopt(frame)).collect();
    assert!(frames.iter().all(|frame| &**frame == b"data"));
    drop(frames);
    assert_eq!(pool.outstanding(), 0);
    // A frame can be leased again.
    let again = pool.take(CRITICAL).unwrap().into_leased();
    drop(pool.adopt(again));
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn a_lease_dropped_elsewhere_is_no_longer_outstanding() {
    let pool = small_pool();
    let leased = pool.lease(CRITICAL, 2).unwrap();
    assert_eq!(pool.outstanding(), 2);
    thread::spawn(move || drop(leased)).join().unwrap();
    assert_eq!(pool.outstanding(), 0);
    assert_eq!(pool.capacity(CRITICAL), 2);
}

#[test]
fn a_leased_frame_outlives_its_pool() {
    let pool = small_pool();
    let mut leased = pool.lease(CRITICAL, 1).unwrap();
    drop(pool);
    leased[0].buffer_mut().fill(7);
    assert_eq!(leased[0].buffer(), [7; 64]);
}

#[test]
fn a_frame_outlives_its_handles() {
    let pool = small_pool();
    let frame = filled(&pool, CRITICAL, 9);
    drop(pool);
    assert_eq!(*frame, [9; 16]);
}

#[test]
#[should_panic(expected = "a pool that never had it")]
fn a_foreign_frame_is_not_adopted() {
    let leased = small_pool().lease(CRITICAL, 1).unwrap().remove(0);
    drop(small_pool().adopt(leased));
}

#[test]
fn frames_that_a_publisher_brought_back_are_leased_again() {
    let pool = Pool::new(PoolConfig::default());
    let class = Class::Transmit(Lane::Discovery);
    pool.reserve_lane(Lane::Discovery).unwrap();
    let own = pool.capacity(class);
    for _ in 0..100 {
        for leased in pool.lease(class, 16).unwrap() {
            drop(pool.adopt(leased));
        }
    }
    assert_eq!(pool.capacity(class), own + 16);

    // A dropped lease frees its frames, and others are created in their place.
    drop(pool.lease(class, 16).unwrap());
    assert_eq!(pool.lease(class, 16).unwrap().len(), 16);
    assert_eq!(pool.outstanding_of(class), 0);
}

#[test]
fn touching_frames_leaves_what_is_in_them() {
    let pool = small_pool();
    let mut frame = pool.take(CRITICAL).unwrap();
    frame.append(b"left over").unwrap();
    let range = frame.range();
    drop(frame);
    pool.prefault(CRITICAL, usize::MAX);
    let frame = pool.take(CRITICAL).unwrap();
    assert_eq!(frame.buffer()[range], *b"left over");
}

#[test]
#[should_panic(expected = "a class's frames fit into the address space")]
fn frames_beyond_the_address_space_are_not_made() {
    // A count whose size in bytes wraps around to a small number.
    let frames = usize::MAX / PAGE_BYTES + 2;
    let _ = Region::new(0, frames, 64);
}

/// Pool with two lanes on a device of eight chunks, with two transmit frames each.
fn device_pool() -> Pool {
    Pool::new(PoolConfig {
        frame_bytes: 8_192,
        head_room_bytes: 48,
        transmit_frames: [2; Lane::COUNT],
        receive_frames: [1; Lane::COUNT],
        oversize_frames: [1; Lane::COUNT],
        device: Some(DeviceConfig {
            chunk_bytes: 2_048,
            chunks: 8,
            lanes: CRITICAL.bit() | BULK.bit(),
        }),
        ..PoolConfig::default()
    })
}

#[test]
fn chunks_of_a_device_are_frames_of_the_class_that_reserved_them() {
    let pool = device_pool();
    let memory = pool.device_memory().expect("a device");
    let base = memory.memory().cast::<u8>().as_ptr().addr();
    assert_eq!((base % PAGE_BYTES, memory.memory().len()), (0, 8 * 2_048));
    assert_eq!(pool.reserve(Class::Queue(0), 3).unwrap(), 3);
    pool.reserve_lane(CRITICAL).unwrap();
    pool.reserve_lane(Lane::Discovery).unwrap();

    let queue = pool.take(Class::Queue(0)).unwrap();
    let transmit = pool.take(CRITICAL).unwrap();
    for frame in [&queue, &transmit] {
        let chunk = frame.chunk().expect("a chunk") as usize;
        assert_eq!(frame.buffer().as_ptr().addr(), base + chunk * 2_048);
        assert_eq!(frame.capacity(), 2_048);
    }
    assert_eq!((queue.head_room(), transmit.head_room()), (0, 48));
    let discovery = pool.take(Lane::Discovery).unwrap();
    assert_eq!((discovery.chunk(), discovery.head_room()), (None, 0));
    drop((queue, transmit, discovery));
    assert_eq!(pool.free(Class::Queue(0)), 3);
    assert_eq!(pool.outstanding(), 0);
}

#[test]
fn a_device_gives_no_chunk_twice_and_says_how_many_are_left() {
    let pool = device_pool();
    pool.reserve_lane(BULK).unwrap();
    assert_eq!(pool.reserve(Class::Queue(1), 100).unwrap(), 6);
    let frames: Vec<Frame> =
        std::iter::from_fn(|| pool.take(Class::Queue(1)).or_else(|| pool.take(BULK))).collect();
    let mut chunks: Vec<_> = frames.iter().map(Frame::chunk).collect();
    chunks.sort_unstable();
    assert_eq!(chunks, (0..8).map(Some).collect::<Vec<_>>());
}

#[test]
fn what_does_not_fit_a_chunk_takes_an_oversize_frame() {
    let pool = device_pool();
    pool.reserve_lane(CRITICAL).unwrap();
    assert_eq!(pool.transmit_room(CRITICAL), 2_000);
    let small = pool.take_for(CRITICAL, 2_000).unwrap();
    let large = pool.take_for(CRITICAL, 2_001).unwrap();
    assert_eq!(small.class(), Class::Transmit(CRITICAL));
    assert_eq!(large.class(), Class::Oversize(CRITICAL));
    assert_eq!((large.capacity(), large.chunk()), (8_192, None));
    assert_eq!(small_pool().take_for(BULK, 56).unwrap().capacity(), 64);
}

#[test]
fn frames_that_a_reader_holds_are_counted_by_lane_until_they_come_home() {
    let pool = device_pool();
    pool.reserve(Class::Queue(0), 2).unwrap();
    let [mut one, mut other] = [(); 2].map(|()| pool.take(Class::Queue(0)).unwrap());
    pool.lend(&mut one, CRITICAL);
    pool.lend(&mut other, BULK);
    assert_eq!((pool.held(CRITICAL), pool.held(BULK)), (1, 1));
    pool.lend(&mut other, CRITICAL);
    assert_eq!((pool.held(CRITICAL), pool.held(BULK)), (2, 0));
    drop(one);
    drop(pool.adopt(other.into_leased()));
    assert_eq!(pool.held(CRITICAL), 0);
}

#[test]
fn leases_beyond_a_device_are_frames_it_does_not_know() {
    let pool = device_pool();
    pool.reserve_lane(CRITICAL).unwrap();
    pool.reserve(Class::Queue(0), 4).unwrap();
    let leased = pool.lease(CRITICAL, 4).unwrap();
    let frames: Vec<Frame> = leased.into_iter().map(|frame| pool.adopt(frame)).collect();
    let known = frames.iter().filter(|frame| frame.chunk().is_some());
    assert_eq!((known.count(), frames.len()), (2, 4));
    assert!(frames.iter().all(|frame| frame.capacity() == 2_048));
    drop(pool.lease(CRITICAL, 4).unwrap());
    assert_eq!(pool.outstanding(), 4, "retired ones are counted by class");
    assert_eq!(pool.outstanding_of(Class::Queue(0)), 0);
}

#[test]
fn memory_that_the_system_does_not_have_is_an_error_with_the_amount() {
    // A size beyond the address space of any machine.
    let config = PoolConfig {
        device: Some(DeviceConfig {
            chunks: 1 << 40,
            chunk_bytes: 2_048,
            ..device_pool().config().device.unwrap()
        }),
        ..PoolConfig::default()
    };
    // The request for pages fails first; slots would be created afterwards.
    let refused = Pool::try_new(config).unwrap_err();
    assert_eq!(refused.bytes, 1 << 51);
    let said = refused.to_string();
    assert!(
        said.contains("2251799813685248 bytes") && said.contains("ulimit -v"),
        "{said}"
    );
}

#[test]
fn a_frame_is_one_datagram_or_several_of_equal_size_and_a_shorter_last_one() {
    let pool = small_pool();
    let bytes: Vec<u8> = (0..40).collect();
    let cases: [(usize, u16, &[usize]); 8] = [
        (0, 0, &[0]),
        (0, 16, &[0]),
        (40, 0, &[40]),
        (40, 40, &[40]),
        (40, 41, &[40]),
        (40, 20, &[20, 20]),
        (40, 16, &[16, 16, 8]),
        (3, 1, &[1, 1, 1]),
    ];
    for (filled, segment_bytes, sizes) in cases {
        let mut frame = pool.take(BULK).unwrap();
        frame.append(&bytes[..filled]).unwrap();
        frame.set_segment_bytes(segment_bytes);
        let datagrams: Vec<&[u8]> = frame.datagrams().collect();
        let found: Vec<usize> = datagrams.iter().map(|one| one.len()).collect();
        let case = format!("{filled} bytes in segments of {segment_bytes}");
        assert_eq!(found, sizes, "{case}");
        assert_eq!(frame.datagram_count(), sizes.len(), "{case}");
        assert_eq!(datagrams.concat(), bytes[..filled], "{case}");
        assert_eq!(frame.datagram_at(filled + 1), None, "{case}");
    }
}

#[test]
fn a_frame_that_is_taken_again_is_a_single_datagram() {
    let pool = small_pool();
    let mut frame = filled(&pool, BULK, 1);
    frame.set_segment_bytes(4);
    assert_eq!(frame.datagram_count(), 4);
    drop(frame);
    let again = filled(&pool, BULK, 1);
    assert_eq!((again.segment_bytes(), again.datagram_count()), (None, 1));
}
