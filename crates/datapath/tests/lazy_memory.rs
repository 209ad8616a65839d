//! Test that frames cost only address space until they are used. It is a separate program, so that no other memory
//! grows.

use std::fs;

use isolane_datapath::limits::FRAME_BYTES;
use isolane_datapath::{Class, Lane, Pool, PoolConfig};

/// Resident memory of this program, in bytes.
fn resident_bytes() -> usize {
    const PAGE_BYTES: usize = 4_096;
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has statm");
    let pages = statm.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * PAGE_BYTES
}

/// This is a single test, because another one at the same time would also use memory.
#[test]
fn frames_cost_memory_only_where_they_were_written_or_touched() {
    const MIB: usize = 1 << 20;
    let before = resident_bytes();
    let pool = Pool::new(PoolConfig::default());
    for lane in Lane::ALL {
        pool.reserve_lane(lane).unwrap();
    }
    let frames: usize = Lane::ALL.into_iter().map(|lane| pool.capacity(lane)).sum();
    assert!(frames * FRAME_BYTES > 16 * MIB);
    let grown = resident_bytes() - before;
    assert!(grown < MIB, "{grown} bytes for unused frames");

    let held: Vec<_> = std::iter::from_fn(|| pool.take(Lane::ALL[8])).collect();
    assert_eq!(held.len(), pool.capacity(Lane::ALL[8]));
    for mut frame in held {
        frame.buffer_mut().fill(1);
    }
    let grown = resident_bytes() - before;
    assert!(grown > MIB, "{grown} bytes for frames that were written");

    // Frames of another lane, touched before their first use, as far as they will be used.
    let lane = Lane::ALL[3];
    let before = resident_bytes();
    let touched = pool.prefault(lane, FRAME_BYTES / 2);
    assert_eq!(touched, pool.capacity(lane) * FRAME_BYTES / 2);
    let grown = resident_bytes() - before;
    assert!(
        (touched..touched + MIB).contains(&grown),
        "{grown} bytes for {touched} that were touched"
    );

    // As with the configuration for prefaulting, which applies only to opened lanes.
    let before = resident_bytes();
    let pool = Pool::new(PoolConfig {
        prefault_bytes: FRAME_BYTES,
        ..PoolConfig::default()
    });
    pool.reserve_lane(lane).unwrap();
    assert_eq!(pool.prefault(Lane::ALL[5], FRAME_BYTES), 0);
    let frames = pool.capacity(lane) + pool.capacity(Class::Receive(lane));
    let wanted = frames * FRAME_BYTES;
    let grown = resident_bytes() - before;
    assert!(
        (wanted..wanted + MIB).contains(&grown),
        "{grown} bytes for {wanted} that were requested"
    );
}
