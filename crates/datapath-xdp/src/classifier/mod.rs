//! eBPF classifier in the driver: flows, budgets, recycling, and a reference model in Rust.
//!
//! For each received frame, a program in the driver decides before the kernel allocates an skb: redirect to a lane,
//! drop, or pass to the kernel unchanged. `classifier/classifier.bpf.c` describes the path of a frame. This module
//! loads, attaches and configures the program.
//!
//! A [`Classifier`] is the program of one interface. Configuration and counters are in memory shared with the kernel:
//! changing a budget, reporting free buffers and reading a counter are loads and stores. System calls only load,
//! attach, bind a lane's socket, and start a budget's timer. A BPF link attaches the program once and detaches it when
//! the process ends, however it ends. Another process's program on the hook is reported and left alone.
//!
//! Attaching has side effects: some drivers reset the device, and a veth's peer loses its offloads.
//!
//! [`ReferenceModel`](reference_model::ReferenceModel) makes the same decisions over the views of `isolane-wire`. Tests
//! compare the two. The classifier never parses RTPS beyond its first four bytes.

mod attachment;
mod budgets;
mod error;
mod flows;
mod program;
pub mod reference_model;
mod shared_memory;
mod verdict;

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use isolane_datapath::flow::{InterfaceRateLimit, RateLimit, RateLimitError};
use isolane_hostnet::link::name_of;
use isolane_wire::level::Level;

use self::attachment::Link;
pub use self::attachment::{AttachMode, Foreign};
pub use self::budgets::Replenisher;
pub(crate) use self::budgets::{check as check_budget, check_interface};
pub use self::error::ClassifierError;
use self::flows::Table;
pub use self::flows::{Flow, FlowError, FlowSlot, RedirectAction};
use self::program::Loaded;
pub use self::program::Tag;
use self::shared_memory::{Memory, Queue};
pub use self::verdict::{
    Action, Counts, FlowCounts, FlowReason, OthersCounts, OthersReason, Verdict,
};
use crate::limits::{MAX_LANES, MAX_QUEUES};

/// Load options of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifierConfig {
    /// Writes the arrival time (CLOCK_MONOTONIC, nanoseconds) into the eight bytes before each
    /// frame handed to a lane. Reading the clock costs as much as the rest of the program.
    pub stamps: bool,
    /// Replenishes budgets by kernel timers, where the kernel has them.
    pub timers: bool,
    /// Traces each verdict for [`Classifier::judge`]. For tests.
    pub traces: bool,
}

impl Default for ClassifierConfig {
    fn default() -> ClassifierConfig {
        ClassifierConfig {
            stamps: false,
            timers: true,
            traces: false,
        }
    }
}

/// Mechanisms that can be switched off to measure their effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enforcement {
    /// Drops frames at a lane's low-water mark. If false, they are only counted ([`Counts::touched_fill`]).
    pub recycling: bool,
    /// Keeps the interface's reserve for critical flows. If false, use by other flows is only
    /// counted ([`Counts::touched_reserve`]).
    pub reserve: bool,
}

impl Default for Enforcement {
    fn default() -> Enforcement {
        Enforcement {
            recycling: true,
            reserve: true,
        }
    }
}

/// Simulated arrival point of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Interface index in this network namespace.
    pub interface_index: u32,
    /// Receive queue of the interface.
    pub queue: u32,
}

/// Classifier of one interface. Dropping it detaches the program; frames already redirected stay in their sockets.
#[derive(Debug)]
pub struct Classifier {
    // Dropped first, so that no frame arrives afterwards.
    link: Option<Link>,
    loaded: Loaded,
    memory: Memory,
    table: Table,
    replenisher: Replenisher,
    traces: bool,
    /// Due time of the next budget, if user space replenishes; 0 means at once.
    due_ns: u64,
}

impl Classifier {
    /// Loads the program and its maps. It receives no frames before [`attach`](Self::attach).
    ///
    /// # Errors
    /// The kernel lacks a feature, or the process lacks rights.
    pub fn load(config: &ClassifierConfig) -> Result<Classifier, ClassifierError> {
        let loaded = Loaded::new(config.stamps, config.traces, config.timers)?;
        let memory = loaded.memory()?;
        let classifier = Classifier {
            link: None,
            replenisher: match loaded.has_timers {
                true => Replenisher::KernelTimer,
                false => Replenisher::UserSpace,
            },
            loaded,
            memory,
            table: Table::new(),
            traces: config.traces,
            due_ns: 0,
        };
        for queue in &classifier.memory.queues {
            queue
                .low_water
                .iter()
                .for_each(|mark| mark.store(-1, Relaxed));
        }
        classifier.enforce(Enforcement::default());
        Ok(classifier)
    }

    /// Attaches the program to an interface of this network namespace, once. It stays attached until this value is
    /// dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// The interface does not exist, its driver cannot run the program, or another process's program is attached.
    pub fn attach(
        &mut self,
        interface_index: u32,
        mode: AttachMode,
    ) -> Result<(), ClassifierError> {
        if self.link.is_some() {
            return Err(ClassifierError::AlreadyAttached);
        }
        let Some(interface) = name_of(interface_index) else {
            return Err(ClassifierError::NoInterface { interface_index });
        };
        let program = self.loaded.descriptor()?;
        let link = Link::new(program, interface_index, mode)
            .map_err(|cause| error::not_attached(cause, interface_index, interface))?;
        self.link = Some(link);
        Ok(())
    }

    /// Index of the attached interface, read from the kernel. `None` before attaching and once the interface is gone.
    #[must_use]
    pub fn attached_to(&self) -> Option<u32> {
        self.link.as_ref()?.interface_index()
    }

    /// Program tag: the kernel's hash of this build's instructions.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.loaded.tag
    }

    /// Component that replenishes the budgets.
    #[must_use]
    pub const fn replenisher(&self) -> Replenisher {
        self.replenisher
    }

    /// Replenishes the budgets due at `now_ns` (CLOCK_MONOTONIC, nanoseconds) and returns the next due time. `None`: no
    /// budgets are set, or kernel timers replenish them. Makes no system call; costs one comparison before the due
    /// time.
    pub fn replenish(&mut self, now_ns: u64) -> Option<u64> {
        if self.replenisher == Replenisher::KernelTimer {
            return None;
        }
        if now_ns >= self.due_ns {
            self.due_ns = budgets::replenish(&self.memory, now_ns).unwrap_or(u64::MAX);
        }
        Some(self.due_ns).filter(|due_ns| *due_ns != u64::MAX)
    }

    /// Registers a flow with a full budget, replacing the slot's previous flow.
    ///
    /// # Errors
    /// The slot does not exist, the port has too many flows, or the budget is invalid. The previous flow then stays.
    pub fn set_flow(&mut self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        self.table.admit(slot, flow)?;
        if let Some(rate_limit) = &flow.rate_limit {
            budgets::check(&rate_limit.budget)?;
        }
        self.table.remove(&self.memory, slot);
        let server = budgets::set_rate_limit(&self.memory, slot.index(), flow.rate_limit.as_ref());
        self.table.insert(&self.memory, slot, flow);
        self.start(server);
        Ok(())
    }

    /// Removes a flow; its frames then pass to the kernel. Its counters stay.
    pub fn remove_flow(&mut self, slot: FlowSlot) {
        self.table.remove(&self.memory, slot);
        if slot.index() < self.memory.flows.len() {
            budgets::set_rate_limit(&self.memory, slot.index(), None);
        }
    }

    /// Replaces or removes a flow's budget. A new budget starts full.
    ///
    /// # Errors
    /// The flow does not exist, or the budget is invalid. The previous budget then stays.
    pub fn set_rate_limit(
        &mut self,
        slot: FlowSlot,
        rate_limit: Option<RateLimit>,
    ) -> Result<(), RateLimitError> {
        if let Some(rate_limit) = &rate_limit {
            budgets::check(&rate_limit.budget)?;
        }
        let flow = self.table.flow_mut(slot).ok_or(RateLimitError::NoFlow)?;
        flow.rate_limit = rate_limit;
        let server = budgets::set_rate_limit(&self.memory, slot.index(), rate_limit.as_ref());
        self.start(server);
        Ok(())
    }

    /// Replaces or removes the interface's budgets. New budgets start full.
    ///
    /// # Errors
    /// A budget is invalid. The previous budgets then stay.
    pub fn set_interface_rate_limit(
        &mut self,
        rate_limit: &InterfaceRateLimit,
    ) -> Result<(), RateLimitError> {
        check_interface(rate_limit)?;
        let servers = budgets::set_interface_rate_limit(&self.memory, rate_limit);
        self.start(servers);
        Ok(())
    }

    /// Starts the replenishment of servers.
    fn start(&mut self, servers: impl IntoIterator<Item = usize>) {
        for server in servers {
            self.due_ns = 0;
            let is_started = self.replenisher == Replenisher::KernelTimer
                && self.loaded.start_timer(server).is_ok();
            if !is_started {
                // User space takes over all servers. A server that also has a timer is replenished once a period,
                // because both read the due time from the same field.
                self.replenisher = Replenisher::UserSpace;
            }
        }
    }

    /// Flow registered in a slot.
    #[must_use]
    pub fn flow(&self, slot: FlowSlot) -> Option<&Flow> {
        self.table.get(slot)
    }

    /// Frames left in a flow's budget in this period. `None` without a budget.
    #[must_use]
    pub fn left(&self, slot: FlowSlot) -> Option<u32> {
        self.flow(slot)?.rate_limit?;
        let left = self.memory.servers[slot.index()].left.load(Relaxed);
        // Concurrent CPUs can take the counter below zero, each by one.
        Some(left.max(0) as u32)
    }

    /// Redirects a level's frames that arrive on a queue to an AF_XDP socket. The socket must be bound to the same
    /// queue of the same interface: the kernel drops frames redirected to a socket of another queue.
    ///
    /// # Errors
    /// The queue is beyond [`MAX_QUEUES`], or the kernel refuses the socket.
    pub fn bind_lane(
        &mut self,
        queue: u32,
        lane: Level,
        socket: BorrowedFd<'_>,
    ) -> Result<(), ClassifierError> {
        self.queue(queue).ok_or(ClassifierError::Queue { queue })?;
        self.loaded.set_socket(index(queue, lane), Some(socket))?;
        if let Some(queue) = self.queue(queue) {
            queue.bound.fetch_or(1 << lane.get(), Relaxed);
        }
        Ok(())
    }

    /// Passes a level's frames on a queue to the kernel again. The kernel also removes a closed socket from the map;
    /// frames that arrive between its closing and this call are passed too.
    pub fn unbind_lane(&mut self, queue: u32, lane: Level) {
        if let Some(known) = self.queue(queue) {
            known.bound.fetch_and(!(1 << lane.get()), Relaxed);
            // Already empty if the socket was closed.
            let _ = self.loaded.set_socket(index(queue, lane), None);
        }
    }

    /// Sets a lane's low-water mark. At or below that many free fill-ring entries, frames of the lane are dropped
    /// before they take an entry. Set the mark to the number of entries reserved for more critical lanes. `None`, for
    /// critical lanes, disables it. No effect for a queue that does not exist.
    pub fn set_low_water(&mut self, queue: u32, lane: Level, low_water: Option<u32>) {
        if let Some(queue) = self.queue(queue) {
            let mark = low_water.map_or(-1, i64::from);
            queue.low_water[usize::from(lane.get())].store(mark, Relaxed);
        }
    }

    /// Reports the free fill-ring entries of a queue: those the kernel has not taken yet, read by `free`. Call it after
    /// each refill.
    ///
    /// Between two calls the program subtracts the frames it redirects. The program cannot see which of these the
    /// sockets' rings refuse, so it may underestimate the free entries, but never overestimates them. Before the first
    /// call, none are free. Makes no system call.
    pub fn note_free(&self, queue: u32, free: impl FnOnce() -> u32) {
        if let Some(queue) = self.queue(queue) {
            // `taken` is read before `free`. A frame that arrives between the reads is then subtracted twice, so the
            // estimate is never too high.
            let taken = queue.taken.0.load(Acquire);
            queue.filled.store(taken + u64::from(free()), Relaxed);
        }
    }

    /// Switches mechanisms on or off.
    pub fn enforce(&self, enforcement: Enforcement) {
        let settings = &self.memory.settings;
        let recycling = u8::from(enforcement.recycling);
        settings.enforces_recycling.store(recycling, Relaxed);
        let reserve = u8::from(enforcement.reserve);
        settings.enforces_reserve.store(reserve, Relaxed);
    }

    /// Counters since the program was loaded. Makes no system call.
    #[must_use]
    pub fn counts(&self) -> Box<Counts> {
        Counts::read(&self.memory)
    }

    /// Frames without a stamp ([`Counts::unstamped`]), without allocating.
    #[must_use]
    pub fn unstamped(&self) -> u64 {
        let rows = self.memory.rows.iter();
        rows.map(|row| row.unstamped.load(Relaxed)).sum()
    }

    /// Frames without a stamp on one queue (modulo [`MAX_QUEUES`]). A frame without a stamp is in this count before a
    /// socket's ring shows it.
    #[must_use]
    pub fn unstamped_on(&self, queue: u32) -> u64 {
        let row = &self.memory.rows[queue as usize % MAX_QUEUES];
        row.unstamped.load(Acquire)
    }

    /// Runs the loaded program on a frame and returns its verdict. The frame is counted and charged, but delivered
    /// nowhere. For tests.
    ///
    /// # Errors
    /// The program was loaded without `traces`; the frame is shorter than 14 bytes or longer than a page; or the
    /// interface or queue does not exist.
    pub fn judge(
        &self,
        frame: &[u8],
        arrival: Option<Arrival>,
    ) -> Result<Verdict, ClassifierError> {
        let arrival = arrival.map(|arrival| (arrival.interface_index, arrival.queue));
        let action = self.loaded.classify(frame, arrival)?;
        let last = &self.memory.settings.last;
        let [traced, reason, place, lane] = [0, 1, 2, 3].map(|at: usize| last[at].load(Relaxed));
        let verdict = Verdict::from_trace(reason, place, lane);
        verdict
            .filter(|verdict| {
                let says = verdict.action() as u8;
                self.traces && says == traced && u32::from(says) == action
            })
            .ok_or_else(|| ClassifierError::System {
                doing: "reading the classifier's verdict",
                cause: std::io::Error::other("it was loaded without traces, or contradicts itself"),
            })
    }

    fn queue(&self, queue: u32) -> Option<&Queue> {
        self.memory.queues.get(queue as usize)
    }
}

/// Index of a lane in the socket map.
const fn index(queue: u32, lane: Level) -> u32 {
    queue * MAX_LANES as u32 + lane.get() as u32
}

const _: () = assert!(MAX_QUEUES == 8 && MAX_LANES == Level::COUNT);
