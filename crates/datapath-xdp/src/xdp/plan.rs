//! Plan of the UMEM: chunks of each queue and entries of each ring.
//!
//! The UMEM is registered once and cannot grow, so it is planned for every level that may get a lane. A queue gets the
//! chunks that its lanes' rings and readers can hold, plus the reserve. An unread lane thus exhausts its own share: its
//! receive ring fills while chunks for every other lane are still free.

use isolane_datapath::limits::MAX_DEVICE_QUEUES;
use isolane_datapath::{DeviceConfig, Lane, PoolConfig};
use isolane_wire::level::Level;

use super::error::XdpError;
use super::kind::XdpOptions;
use crate::limits::{
    FRAME_HEAD_ROOM_BYTES, KERNEL_HEAD_ROOM_BYTES, LINK_HEADER_BYTES, MAX_QUEUES, OVERSIZE_FRAMES,
};
use crate::socket::ChunkBytes;

const _: () = assert!(MAX_QUEUES <= MAX_DEVICE_QUEUES);

/// Share of a queue in the UMEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueuePlan {
    /// Queue number of the device.
    pub(super) queue: u32,
    /// Chunks to receive into.
    pub(super) receive_chunks: u32,
    /// Entries of the fill ring; a power of two.
    pub(super) fill_entries: u32,
    /// Entries of the completion ring: a power of two, at least the frames that can be in transmission.
    pub(super) completion_entries: u32,
}

/// Shares of all queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) chunk_bytes: ChunkBytes,
    /// Queues; a queue's index is also the number of its frame class.
    pub(super) queues: Vec<QueuePlan>,
    /// Entries of each lane's transmit ring: a power of two, at least the lane's frames.
    pub(super) transmit_entries: [u32; 8],
    pub(super) pool: PoolConfig,
}

impl Plan {
    /// Plans the memory for an interface with this MTU.
    pub(super) fn new(
        options: &XdpOptions,
        pool: PoolConfig,
        interface: &str,
        mtu_bytes: usize,
    ) -> Result<Plan, XdpError> {
        let chunk_bytes = chunk_bytes(interface, mtu_bytes)?;
        let spare = options.spare_transmit_chunks;
        let frames_of = |level: Level| pool.transmit_frames[Lane::Level(level).index()] as u32;
        let levels = || {
            let all = Level::ALL.into_iter();
            all.filter(|level| options.levels & 1 << level.get() != 0)
        };
        let mut queues: Vec<QueuePlan> = Vec::new();
        for level in levels() {
            let queue = options.queues[usize::from(level.get())];
            if queue as usize >= MAX_QUEUES {
                let level = level.get();
                return Err(XdpError::QueueNumber { level, queue });
            }
            if queues.iter().any(|known| known.queue == queue) {
                continue;
            }
            let here = |level: &Level| options.queues[usize::from(level.get())] == queue;
            let receive_chunks = receive_chunks(options, &pool, queue, levels().filter(here))?;
            let transmit: u32 = levels().filter(here).map(frames_of).sum();
            queues.push(QueuePlan {
                queue,
                receive_chunks,
                fill_entries: receive_chunks.next_power_of_two(),
                completion_entries: (transmit + spare).next_power_of_two(),
            });
        }
        let receive: u32 = queues.iter().map(|queue| queue.receive_chunks).sum();
        let transmit: u32 = levels().map(frames_of).sum();
        let lanes = levels().fold(0, |set, level| set | Lane::Level(level).bit());
        let mut oversize_frames = pool.oversize_frames;
        for level in levels() {
            let frames = &mut oversize_frames[Lane::Level(level).index()];
            *frames = (*frames).max(OVERSIZE_FRAMES);
        }
        Ok(Plan {
            chunk_bytes,
            queues,
            transmit_entries: Level::ALL
                .map(|level| (frames_of(level) + spare).next_power_of_two()),
            pool: PoolConfig {
                head_room_bytes: FRAME_HEAD_ROOM_BYTES,
                oversize_frames,
                device: Some(DeviceConfig {
                    chunk_bytes: chunk_bytes.get(),
                    chunks: (receive + transmit + spare) as usize,
                    lanes,
                }),
                ..pool
            },
        })
    }
}

/// Largest MTU whose frames fit a chunk.
pub(super) const fn room_bytes(chunk: ChunkBytes) -> usize {
    chunk.get() - KERNEL_HEAD_ROOM_BYTES - LINK_HEADER_BYTES
}

/// Smallest chunk size for the frames of an interface.
fn chunk_bytes(interface: &str, mtu_bytes: usize) -> Result<ChunkBytes, XdpError> {
    let sizes = [ChunkBytes::TwoKib, ChunkBytes::FourKib];
    let fitting = sizes
        .into_iter()
        .find(|chunk| mtu_bytes <= room_bytes(*chunk));
    fitting.ok_or_else(|| XdpError::MtuTooLarge {
        interface: interface.to_owned(),
        mtu_bytes,
        room_bytes: room_bytes(ChunkBytes::FourKib),
    })
}

/// Receive chunks of a queue with lanes of these levels.
fn receive_chunks(
    options: &XdpOptions,
    pool: &PoolConfig,
    queue: u32,
    levels: impl Iterator<Item = Level> + Clone,
) -> Result<u32, XdpError> {
    let entries = |level: Level| options.receive_entries[usize::from(level.get())];
    let held = |level: Level| pool.receive_frames[Lane::Level(level).index()] as u32;
    let rings: u32 = levels.clone().map(entries).sum();
    let held: u32 = levels.map(held).sum();
    let needed = rings + held + options.critical_reserve;
    let chunks = options.receive_frames.unwrap_or(needed);
    if chunks < needed && !options.overcommit {
        return Err(XdpError::UmemTooSmall {
            queue,
            chunks,
            needed,
            rings,
            held,
            reserve: options.critical_reserve,
        });
    }
    Ok(chunks.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(options: &XdpOptions) -> Result<Plan, XdpError> {
        Plan::new(options, PoolConfig::default(), "eth0", 1_500)
    }

    #[test]
    fn every_lane_has_its_share_and_the_reserve_is_left() {
        let options = XdpOptions {
            levels: 0b1000_0010,
            queues: [1, 1, 0, 0, 0, 0, 0, 3],
            receive_entries: [512; 8],
            ..XdpOptions::default()
        };
        let plan = plan(&options).unwrap();
        let shares = plan
            .queues
            .iter()
            .map(|one| (one.queue, one.receive_chunks));
        // Ring entries, 20 held frames and a reserve of 64.
        assert_eq!(shares.collect::<Vec<_>>(), [(1, 596), (3, 596)]);
        assert_eq!(plan.queues[0].fill_entries, 1_024);
        assert_eq!(plan.queues[0].completion_entries, 256);
        let device = plan.pool.device.unwrap();
        assert_eq!(device.chunks, 2 * 596 + 2 * 32 + 128);
        assert_eq!(device.lanes, Lane::ALL[2].bit() | Lane::ALL[8].bit());
        assert_eq!(plan.pool.oversize_frames[8], OVERSIZE_FRAMES);
        assert_eq!(plan.pool.oversize_frames[1], 0);
    }

    #[test]
    fn too_few_chunks_are_refused_with_the_numbers_unless_recycling_is_trusted() {
        let few = XdpOptions {
            levels: 0b1000_0001,
            receive_frames: Some(600),
            ..XdpOptions::default()
        };
        let message = plan(&few).unwrap_err().to_string();
        assert!(
            message.contains("600 receive frames")
                && message.contains("needs 616: 512 for the rings")
                && message.contains("40 that the readers")
                && message.contains("64 in reserve")
                && message.contains("receive_frames = 616"),
            "{message}"
        );
        let trusting = XdpOptions {
            overcommit: true,
            ..few
        };
        assert_eq!(plan(&trusting).unwrap().queues[0].receive_chunks, 600);
    }

    #[test]
    fn chunks_grow_with_the_mtu_until_there_are_no_larger_ones() {
        let with = |mtu| {
            let plan = Plan::new(&XdpOptions::default(), PoolConfig::default(), "eth0", mtu);
            plan.map(|plan| plan.chunk_bytes)
        };
        assert_eq!(with(1_500).unwrap(), ChunkBytes::TwoKib);
        assert_eq!(with(1_770).unwrap(), ChunkBytes::TwoKib);
        assert_eq!(with(1_771).unwrap(), ChunkBytes::FourKib);
        let message = with(9_000).unwrap_err().to_string();
        assert!(message.contains("ip link set eth0 mtu 3818"), "{message}");
    }

    #[test]
    fn a_queue_beyond_the_last_is_named() {
        let mut options = XdpOptions::default();
        options.queues[3] = 8;
        let message = plan(&options).unwrap_err().to_string();
        assert!(
            message.contains("level 3") && message.contains("queue 8"),
            "{message}"
        );
    }
}
