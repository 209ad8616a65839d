//! Device with lanes: its queues, UMEM, classifier, and each lane's rings.

use std::os::fd::AsFd;

use isolane_datapath::clock::monotonic_now;
use isolane_datapath::pool::Class;
use isolane_datapath::{Frame, Lane, Pool};
use isolane_wire::level::Level;

use super::error::XdpError;
use super::flows::{Owner, Slots};
use super::kind::XdpOptions;
use super::plan::{Plan, QueuePlan};
use super::send::LastPlace;
use crate::classifier::{Classifier, ClassifierConfig, Flow};
use crate::limits::{COMPLETED_BURST, MAX_COMPLETED, MAX_REFILL, REFILL_BURST};
use crate::routing::Partial;
use crate::socket::{Held, Mode, Queue, QueueConfig, ReceiveSocket, Side, TransmitSocket, Umem};

/// Socket-buffer bytes charged per frame in flight, including the kernel's overhead.
const SEND_BUFFER_PER_FRAME: u32 = 4_096;

/// Rings of a lane.
pub(super) struct DeviceLane {
    pub(super) level: Level,
    /// Index of its queue.
    pub(super) queue: usize,
    pub(super) receive: ReceiveSocket,
    pub(super) transmit: TransmitSocket,
    /// Source port of its datagrams, equal to the kernel socket's port.
    pub(super) port: u16,
    /// Limit of frames its reader may hold.
    pub(super) held_limit: usize,
    /// Whether the kernel sockets precede the ring in the current turn; alternates.
    pub(super) kernel_first: bool,
    /// Number of outstanding frames of all lanes from which a single send polls for completions.
    pub(super) completed_burst: usize,
    /// [`Partial::Expected`] if the last frame had a partial checksum.
    pub(super) partial: Partial,
    /// Frames the kernel left in the transmit ring.
    pub(super) left: u32,
    pub(super) last_place: Option<LastPlace>,
}

/// Queue with at least one lane.
pub(super) struct OpenQueue {
    pub(super) queue: Queue,
    /// Index in the plan and in its frame class.
    place: u8,
    /// Three quarters of the chunks.
    most: u32,
    /// Number of chunks from which fewer than a refill batch can be free; at least `most`.
    nearly_all: u32,
}

impl OpenQueue {
    fn new(queue: Queue, place: u8, chunks: u32) -> OpenQueue {
        let most = (chunks / 4 * 3).max(1);
        let nearly_all = (chunks + 1).saturating_sub(REFILL_BURST as u32);
        OpenQueue {
            queue,
            place,
            most,
            nearly_all: nearly_all.max(most),
        }
    }

    /// Class of its receive chunks. Built on each call, so that the compiler knows the variant.
    #[inline]
    pub(super) fn class(&self) -> Class {
        Class::Queue(self.place)
    }

    /// Returns whether to refill now. While the device has most of its chunks (`used`), returned chunks are collected
    /// for a batch, because refilling one by one costs twice as much.
    #[inline]
    pub(super) fn wants_refill(&self, used: u32, pool: &Pool) -> bool {
        // Above `nearly_all`, fewer chunks than a batch can be free, so the pool is not consulted.
        used < self.nearly_all && (used < self.most || pool.free(self.class()) >= REFILL_BURST)
    }

    /// Gives free chunks to the device, and returns their number.
    #[inline(never)]
    pub(super) fn refill(
        &mut self,
        held: &mut Held<Frame>,
        umem: &Umem,
        classifier: &Classifier,
        pool: &Pool,
    ) -> usize {
        let class = self.class();
        let number = self.queue.number();
        let fill = &mut self.queue.fill;
        // The fill ring has an entry for each chunk; only an invalid kernel index leaves no room.
        let most = MAX_REFILL.min(fill.free() as usize);
        let given = pool.take_chunks(class, most, |frame| {
            let chunk = frame.chunk().expect("frames of a queue are chunks");
            if held.hold_chunk(Side::Receive, chunk, frame).is_err() {
                unreachable!("a frame at home is not in the kernel's hands");
            }
            assert!(fill.stage(umem.start_of(chunk)), "there was room");
        });
        if given > 0 {
            fill.show();
        }
        classifier.note_free(number, || fill.used());
        given
    }
}

/// Open device. Fields drop in this order: the classifier stops the frames, the sockets release the kernel's chunks,
/// then the frames return to the pool.
pub(super) struct Device {
    pub(super) classifier: Classifier,
    pub(super) lanes: [Option<Box<DeviceLane>>; 8],
    /// Indexed as in the plan.
    pub(super) queues: Vec<Option<OpenQueue>>,
    pub(super) held: Held<Frame>,
    pub(super) umem: Umem,
    pub(super) slots: Slots,
    pub(super) interface_index: u32,
    /// Whether this process replenishes the budgets, because the kernel does not.
    pub(super) replenishes: bool,
    /// Open lanes, and lanes with frames left in their transmit rings: bit *l* is level *l*.
    pub(super) open_levels: u8,
    pub(super) left_levels: u8,
}

impl Device {
    /// Binds the first lane's queue, then attaches the classifier. If another socket has the queue, the device thus
    /// remains unchanged.
    pub(super) fn open(
        interface_index: u32,
        options: &XdpOptions,
        stamps: bool,
        plan: &Plan,
        pool: &Pool,
        first: usize,
    ) -> Result<Device, XdpError> {
        let memory = pool
            .device_memory()
            .expect("the plan gave the pool a device");
        // SAFETY: the owner keeps the region mapped until it is dropped. Addresses given to rings are those of frames.
        // `refill` and `send_single` move a frame into `held` before the kernel sees its address, and the frame stays
        // there until the kernel returns it. `send` moves frames into `held` afterwards. No code writes to them in
        // between, and the caller closes the lane if a panic prevents the move.
        let umem = unsafe { Umem::over(memory.memory(), memory.owner(), plan.chunk_bytes, 0) }?;
        let mut device = Device {
            held: Held::new(&umem),
            queues: plan.queues.iter().map(|_| None).collect(),
            lanes: Default::default(),
            classifier: Classifier::load(&ClassifierConfig {
                stamps,
                timers: options.kernel_timers,
                ..ClassifierConfig::default()
            })?,
            umem,
            slots: Slots::new(),
            interface_index,
            replenishes: false,
            open_levels: 0,
            left_levels: 0,
        };
        device.open_queue(options, plan, pool, first)?;
        device.classifier.enforce(options.enforcement);
        device.classifier.attach(interface_index, options.attach)?;
        Ok(device)
    }

    /// Binds a queue and gives it its chunks, unless it is open.
    fn open_queue(
        &mut self,
        options: &XdpOptions,
        plan: &Plan,
        pool: &Pool,
        place: usize,
    ) -> Result<(), XdpError> {
        if self.queues[place].is_some() {
            return Ok(());
        }
        let QueuePlan {
            queue,
            receive_chunks,
            fill_entries,
            completion_entries,
        } = plan.queues[place];
        let config = QueueConfig {
            interface_index: self.interface_index,
            queue,
            mode: options.mode,
            fill_entries,
            completion_entries,
        };
        let queue = match self.queues.iter().flatten().next() {
            None => Queue::open(&self.umem, &config)?,
            Some(first) => first.queue.open_shared(&config)?,
        };
        let open = OpenQueue::new(queue, place as u8, receive_chunks);
        let missing =
            receive_chunks as usize - pool.capacity(open.class()).min(receive_chunks as usize);
        pool.reserve(open.class(), missing)?;
        self.queues[place] = Some(open);
        while self.refill(place, pool) > 0 {}
        Ok(())
    }

    /// Opens a level's rings and registers its flows.
    pub(super) fn open_lane(
        &mut self,
        level: Level,
        options: &XdpOptions,
        plan: &Plan,
        pool: &Pool,
        port: u16,
        flows: &[Flow],
    ) -> Result<(), XdpError> {
        let number = usize::from(level.get());
        let lane = Lane::Level(level);
        let wanted = options.queues[number];
        let mut places = plan.queues.iter();
        let place = places.position(|queue| queue.queue == wanted);
        let place = place.expect("the plan has the queue of every level that gets a lane");
        self.open_queue(options, plan, pool, place)?;
        let open = self.queues[place].as_ref().expect("it was opened");
        let receive = ReceiveSocket::open(&open.queue, options.receive_entries[number])?;
        let entries = plan.transmit_entries[number];
        let transmit = TransmitSocket::open(&open.queue, entries)?;
        // An error is ignored: with a smaller buffer, frames wait in the ring a little longer.
        let _ = transmit.set_send_buffer(entries * SEND_BUFFER_PER_FRAME);
        if let Some(busy_poll) = options.busy_poll {
            receive.set_busy_poll(busy_poll)?;
        }
        self.classifier.bind_lane(wanted, level, receive.as_fd())?;
        let owner = Owner { lane, topic: None };
        if let Err(error) = self.slots.add(&mut self.classifier, owner, flows) {
            self.classifier.unbind_lane(wanted, level);
            return Err(error);
        }
        self.lanes[number] = Some(Box::new(DeviceLane {
            level,
            queue: place,
            receive,
            transmit,
            port,
            held_limit: pool.config().receive_frames[lane.index()],
            completed_burst: COMPLETED_BURST.min(pool.capacity(Class::Transmit(lane)) / 4),
            kernel_first: false,
            partial: Partial::Unexpected,
            left: 0,
            last_place: None,
        }));
        self.open_levels |= 1 << number;
        self.set_low_water(options, place);
        let highest = self.highest().expect("a lane is open");
        self.slots.set_critical(&mut self.classifier, highest)
    }

    /// Most critical level with a lane.
    fn highest(&self) -> Option<Level> {
        let open = self.lanes.iter().rev().flatten();
        open.map(|lane| lane.level).next()
    }

    /// Most critical level with a lane on a queue.
    pub(super) fn highest_on(&self, queue: usize) -> Option<Level> {
        let open = self.lanes.iter().rev().flatten();
        open.filter(|lane| lane.queue == queue)
            .map(|lane| lane.level)
            .next()
    }

    /// Returns whether a level has the most critical lane of its queue.
    pub(super) fn is_highest(&self, level: Level) -> bool {
        let lane = self.lanes[usize::from(level.get())].as_ref();
        lane.is_some_and(|lane| self.highest_on(lane.queue) == Some(level))
    }

    /// Sets the low-water marks of a queue's lanes except the highest: the reserve, plus one for each lane above.
    fn set_low_water(&mut self, options: &XdpOptions, queue: usize) {
        let on_queue = self.lanes.iter().rev().flatten();
        let on_queue = on_queue.filter(|lane| lane.queue == queue);
        for (above, lane) in (0..).zip(on_queue) {
            let number = options.queues[usize::from(lane.level.get())];
            let mark = (above > 0 && options.recycling).then_some(options.critical_reserve + above);
            self.classifier.set_low_water(number, lane.level, mark);
        }
    }

    /// Gives free chunks of a queue to the device, and returns their number.
    pub(super) fn refill(&mut self, place: usize, pool: &Pool) -> usize {
        let Some(open) = &mut self.queues[place] else {
            return 0;
        };
        open.refill(&mut self.held, &self.umem, &self.classifier, pool)
    }

    /// Entries of a queue's fill ring that the kernel has not taken.
    pub(super) fn free_chunks(&mut self, place: usize) -> u32 {
        let open = self.queues[place].as_mut();
        open.map_or(0, |open| open.queue.fill.used())
    }

    /// Returns up to [`MAX_COMPLETED`] sent frames to the pool.
    pub(super) fn take_completed(&mut self, place: usize) {
        let Some(open) = &mut self.queues[place] else {
            return;
        };
        let completion = &mut open.queue.completion;
        let count = completion.ready(MAX_COMPLETED);
        if count == 0 {
            return;
        }
        for _ in 0..count {
            let address = completion.take();
            let holding = address.and_then(|address| self.held.find(Side::Transmit, address));
            if let Some(holding) = holding {
                holding.discard();
            }
        }
        completion.give_back();
    }

    /// Returns all sent frames to the pool.
    pub(super) fn take_all_completed(&mut self) {
        for place in 0..self.queues.len() {
            let mut left = usize::MAX;
            while self.held.count(Side::Transmit) < left {
                left = self.held.count(Side::Transmit);
                self.take_completed(place);
            }
        }
    }

    /// Wakes a driver that waits for chunks.
    pub(super) fn wake(&mut self) {
        let mut queues = self.queues.iter().flatten();
        if queues.any(|open| open.queue.fill.needs_wakeup()) {
            self.poll();
        }
    }

    /// Replenishes budgets, if kernel timers do not.
    pub(super) fn replenish(&mut self) {
        if self.replenishes {
            let now_ns = monotonic_now().as_nanos();
            self.replenishes = self.classifier.replenish(now_ns).is_some();
        }
    }

    /// Determines whether this process replenishes budgets. Called after budgets may have been set.
    pub(super) fn note_rate_limits(&mut self) {
        let now_ns = monotonic_now().as_nanos();
        self.replenishes = self.classifier.replenish(now_ns).is_some();
    }

    pub(super) fn mode(&self) -> Option<Mode> {
        let open = self.queues.iter().flatten().next()?;
        Some(open.queue.mode())
    }
}
