//! The eBPF program at the driver: flows, budgets, recycling, and its twin.
//!
//! For each frame that arrives on an interface, a program in its driver decides before the kernel has
//! made a packet of it: handed to a lane, dropped, or left to the kernel untouched.
//! `classifier/classifier.bpf.c` tells the way of a frame through it; here it is loaded, attached and
//! told what to do.
//!
//! A [`Classifier`] is the program of one interface. Its configuration and its counters lie in memory
//! that it shares with the kernel: changing a budget, saying how many buffers are free and reading a
//! counter are loads and stores. System calls are made to load, to attach, to bind a lane's socket, and
//! to start a budget's timer. The program is attached by a link, once; dropped or killed, this process
//! takes it along, and the interface is as if nobody had been there. A program of somebody else on
//! the hook is named and left alone.
//!
//! Attaching is not free: some drivers reset the device, and a veth's peer loses its offloads.
//!
//! [`twin::Twin`] decides the same over the views of `isolane-wire`, for tests and explanations. What it
//! never does: parse RTPS beyond the first four bytes, or look at a frame of no flow twice.

mod attachment;
mod budgets;
mod config;
mod counts;
mod decision;
mod error;
mod flow;
mod foreign;
mod layout;
mod memory;
mod program;
mod table;
pub mod twin;

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use isolane_datapath::flow::{InterfaceProtection, ProtectError, Protection};
use isolane_hostnet::link::name_of;
use isolane_wire::level::Level;

pub use self::attachment::AttachMode;
use self::attachment::Link;
pub use self::budgets::Replenisher;
pub(crate) use self::budgets::{check as check_budget, check_interface};
pub use self::config::{Arrival, ClassifierConfig, Enforcement};
pub use self::counts::{Counts, FlowCounts, OthersCounts};
pub use self::decision::{Action, FlowReason, OthersReason, Verdict};
pub use self::error::ClassifierError;
pub use self::flow::{Flow, FlowError, FlowSlot, Way};
pub use self::foreign::Foreign;
use self::layout::Queue;
use self::memory::Memory;
use self::program::Loaded;
pub use self::program::Tag;
use self::table::Table;
use crate::limits::{MAX_LANES, MAX_QUEUES};

/// The program of one interface. Dropped, it is off the interface; frames that it has handed to
/// sockets stay there.
#[derive(Debug)]
pub struct Classifier {
    // Dropped first: no frame comes after it.
    link: Option<Link>,
    loaded: Loaded,
    memory: Memory,
    table: Table,
    replenisher: Replenisher,
    traces: bool,
    /// When the next budget is due, if user space fills them up; 0 is at once.
    due_ns: u64,
}

impl Classifier {
    /// Loads the program and its maps. No frame comes to it yet.
    ///
    /// # Errors
    /// The kernel, or the process's rights, do not allow it.
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

    /// Puts the program at the driver of an interface of this network namespace, once. It stays there
    /// until this value is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// There is no such interface, its driver cannot, or somebody else's program is there.
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

    /// The interface the program is on, as the kernel says; `None` before it is attached and once the
    /// interface is gone.
    #[must_use]
    pub fn attached_to(&self) -> Option<u32> {
        self.link.as_ref()?.interface_index()
    }

    /// What tells this build of the program from others, as this kernel computes it.
    #[must_use]
    pub const fn tag(&self) -> Tag {
        self.loaded.tag
    }

    /// Who fills budgets up.
    #[must_use]
    pub const fn replenisher(&self) -> Replenisher {
        self.replenisher
    }

    /// Fills up what is due at `now_ns` (CLOCK_MONOTONIC, nanoseconds) and says when to come again.
    /// `None`: nothing has a budget, or timers do it. No system call; before the time, one
    /// comparison.
    pub fn replenish(&mut self, now_ns: u64) -> Option<u64> {
        if self.replenisher == Replenisher::KernelTimer {
            return None;
        }
        if now_ns >= self.due_ns {
            self.due_ns = budgets::replenish(&self.memory, now_ns).unwrap_or(u64::MAX);
        }
        Some(self.due_ns).filter(|due_ns| *due_ns != u64::MAX)
    }

    /// Registers a flow, in place of what was in the slot. Its budget is full.
    ///
    /// # Errors
    /// The slot does not exist, the port has too many flows, or the budget cannot be kept; what was
    /// in the slot is then still there.
    pub fn set_flow(&mut self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        self.table.admit(slot, flow)?;
        if let Some(protection) = &flow.protection {
            budgets::check(&protection.budget)?;
        }
        self.table.remove(&self.memory, slot);
        let server = budgets::protect(&self.memory, slot.index(), flow.protection.as_ref());
        self.table.insert(&self.memory, slot, flow);
        self.start(server);
        Ok(())
    }

    /// Forgets a flow: its frames go the kernel's way. Its counters stay.
    pub fn remove_flow(&mut self, slot: FlowSlot) {
        self.table.remove(&self.memory, slot);
        if slot.index() < self.memory.flows.len() {
            budgets::protect(&self.memory, slot.index(), None);
        }
    }

    /// Gives a flow another budget, full, or none.
    ///
    /// # Errors
    /// There is no such flow, or the budget cannot be kept; it then keeps the one it had.
    pub fn protect(
        &mut self,
        slot: FlowSlot,
        protection: Option<Protection>,
    ) -> Result<(), ProtectError> {
        if let Some(protection) = &protection {
            budgets::check(&protection.budget)?;
        }
        let flow = self.table.flow_mut(slot).ok_or(ProtectError::NoFlow)?;
        flow.protection = protection;
        let server = budgets::protect(&self.memory, slot.index(), protection.as_ref());
        self.start(server);
        Ok(())
    }

    /// Gives the interface other budgets, full, or none.
    ///
    /// # Errors
    /// They cannot be kept; it then keeps those it had.
    pub fn protect_interface(
        &mut self,
        protection: &InterfaceProtection,
    ) -> Result<(), ProtectError> {
        check_interface(protection)?;
        let servers = budgets::protect_interface(&self.memory, protection);
        self.start(servers);
        Ok(())
    }

    /// Has servers replenished from now on.
    fn start(&mut self, servers: impl IntoIterator<Item = usize>) {
        for server in servers {
            self.due_ns = 0;
            let is_started = self.replenisher == Replenisher::KernelTimer
                && self.loaded.start_timer(server).is_ok();
            if !is_started {
                // From now on for all of them. One that has a timer too is filled up at the instants
                // that both read from the same place.
                self.replenisher = Replenisher::UserSpace;
            }
        }
    }

    /// The flow in a slot.
    #[must_use]
    pub fn flow(&self, slot: FlowSlot) -> Option<&Flow> {
        self.table.get(slot)
    }

    /// Frames left of a flow's budget in this period; `None` without a budget.
    #[must_use]
    pub fn left(&self, slot: FlowSlot) -> Option<u32> {
        self.flow(slot)?.protection?;
        let left = self.memory.servers[slot.index()].left.load(Relaxed);
        // Below zero by one a processor that looked at the same time.
        Some(left.max(0) as u32)
    }

    /// Hands the frames of a level that arrive on a queue to an AF_XDP socket, which is bound to the
    /// same queue of the same interface: the kernel drops frames given to one of another queue.
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

    /// Leaves the frames of a level on a queue to the kernel again. A socket that is closed is taken
    /// out of the map by the kernel too; frames between its end and this call are passed.
    pub fn unbind_lane(&mut self, queue: u32, lane: Level) {
        if let Some(known) = self.queue(queue) {
            known.bound.fetch_and(!(1 << lane.get()), Relaxed);
            // Empty already if the socket was closed.
            let _ = self.loaded.set_socket(index(queue, lane), None);
        }
    }

    /// With so few free entries in the queue's fill ring, or fewer, frames of this lane are dropped
    /// before they take one; `None`: never, for critical lanes. Give a lane the number of frames that
    /// are kept for the lanes above it. No effect for a queue that does not exist.
    pub fn set_low_water(&mut self, queue: u32, lane: Level, low_water: Option<u32>) {
        if let Some(queue) = self.queue(queue) {
            let mark = low_water.map_or(-1, i64::from);
            queue.low_water[usize::from(lane.get())].store(mark, Relaxed);
        }
    }

    /// Says how many entries of the queue's fill ring the kernel has not taken yet, which `free` reads
    /// from the ring; to be called after each refill. Between two calls the program counts what it
    /// hands to sockets. It cannot see what their rings refuse, so it takes the free entries for
    /// fewer than they are, never for more. Before the first call nothing is free. No system call.
    pub fn note_free(&self, queue: u32, free: impl FnOnce() -> u32) {
        if let Some(queue) = self.queue(queue) {
            // First: frames that arrive between the two readings then count as taken twice, not never.
            let taken = queue.taken.0.load(Acquire);
            queue.filled.store(taken + u64::from(free()), Relaxed);
        }
    }

    /// Switches mechanisms off and on.
    pub fn enforce(&self, enforcement: Enforcement) {
        let settings = &self.memory.settings;
        let recycling = u8::from(enforcement.recycling);
        settings.enforces_recycling.store(recycling, Relaxed);
        let reserve = u8::from(enforcement.reserve);
        settings.enforces_reserve.store(reserve, Relaxed);
    }

    /// What was counted since the program was loaded. No system call.
    #[must_use]
    pub fn counts(&self) -> Box<Counts> {
        Counts::read(&self.memory)
    }

    /// Of [`Counts`], the frames whose stamp the driver had no room for. No allocation.
    #[must_use]
    pub fn unstamped(&self) -> u64 {
        let rows = self.memory.rows.iter();
        rows.map(|row| row.unstamped.load(Relaxed)).sum()
    }

    /// The same of one queue (modulo [`MAX_QUEUES`]). A frame that was counted there before a socket's
    /// ring showed it is among them.
    #[must_use]
    pub fn unstamped_on(&self, queue: u32) -> u64 {
        let row = &self.memory.rows[queue as usize % MAX_QUEUES];
        row.unstamped.load(Acquire)
    }

    /// What the loaded program decides of a frame: it runs as if the frame had arrived, and is
    /// counted and charged, but goes nowhere. For tests and explanations.
    ///
    /// # Errors
    /// The program was loaded without `traces`; the frame is shorter than 14 bytes or longer than a
    /// page; there is no such interface or queue.
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

/// A lane's place in the map of sockets.
const fn index(queue: u32, lane: Level) -> u32 {
    queue * MAX_LANES as u32 + lane.get() as u32
}

const _: () = assert!(MAX_QUEUES == 8 && MAX_LANES == Level::COUNT);
