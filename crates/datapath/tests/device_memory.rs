//! A device may still write to its memory after the program has released it. No other memory changes.

use std::fs;

use isolane_datapath::{DeviceConfig, Lane, Pool, PoolConfig};

/// Returns whether an address is mapped in this program.
fn is_mapped(address: usize) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has maps");
    maps.lines().any(|line| {
        let (range, _) = line.split_once(' ').expect("a range first");
        let (from, to) = range.split_once('-').expect("two ends");
        let ends = [from, to].map(|end| usize::from_str_radix(end, 16).expect("an address"));
        (ends[0]..ends[1]).contains(&address)
    })
}

/// Pool on a device, of some megabytes, which an allocator would keep for the next request.
fn device_pool() -> Pool {
    Pool::new(PoolConfig {
        device: Some(DeviceConfig {
            chunk_bytes: 2_048,
            chunks: 4_096,
            lanes: Lane::ALL[8].bit(),
        }),
        ..PoolConfig::default()
    })
}

/// This is a single test, because another one at the same time could map something at the same address.
#[test]
fn memory_of_a_device_leaves_the_program_with_its_last_share_and_is_not_reused() {
    for round in 0..4 {
        let pool = device_pool();
        let memory = pool.device_memory().expect("a device");
        let address = memory.memory().cast::<u8>().as_ptr().addr();
        let owner = memory.owner();
        drop((pool, memory));
        assert!(is_mapped(address), "round {round}: a share is left");
        drop(owner);
        assert!(!is_mapped(address), "round {round}: no share is left");
    }
}
