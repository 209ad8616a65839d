//! The loaded program in a network namespace, and sequences that the program and a reference model process together.

use std::fmt;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use isolane_datapath::flow::{Budget, InterfaceRateLimit, OverBudget, RateLimit};
use isolane_datapath_xdp::classifier::twin::Twin;
use isolane_datapath_xdp::classifier::{
    Action, Arrival, Classifier, ClassifierConfig, ClassifierError, Counts, Enforcement, Flow,
    FlowError, FlowSlot, Verdict, Way,
};
use isolane_datapath_xdp::limits::{MAX_FLOWS, MAX_LANES, MAX_QUEUES};
use isolane_wire::level::Level;

use crate::frames::{ADDRESSES, PORTS, SOURCES, frame, happens, one_of};

/// Number of receive queues of the interface: two more than lanes can use.
const QUEUES: u32 = MAX_QUEUES as u32 + 2;

/// Number of frames between two comparisons of all counters.
const FRAMES_A_COMPARISON: u64 = 2_048;

/// Prints that the tests were skipped, and fails in CI.
fn left_out(reason: &str) {
    let in_ci = std::env::var_os("CI").is_some();
    assert!(!in_ci, "CI must allow this: {reason}");
    eprintln!("nothing was tried: {reason}");
}

/// Only one world exists at a time. While another test starts a program, the new process briefly has a copy of each
/// descriptor, and a closed socket stays open in it.
static ONLY: Mutex<()> = Mutex::new(());

/// The program in the kernel, and the sockets of its lanes.
pub(crate) struct World {
    _only: MutexGuard<'static, ()>,
    classifier: Classifier,
    interface_index: u32,
    sockets: [[Option<OwnedFd>; MAX_LANES]; MAX_QUEUES],
}

impl World {
    /// Loads the program in a new network namespace; `None` where that is not allowed.
    pub(crate) fn new() -> Option<World> {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let config = ClassifierConfig {
            stamps: true,
            timers: false,
            traces: true,
        };
        let classifier = match Classifier::load(&config) {
            Ok(classifier) => classifier,
            Err(error @ (ClassifierError::Denied { .. } | ClassifierError::UserNamespace)) => {
                left_out(&error.to_string());
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        // SAFETY: no memory is passed; only this thread changes its network.
        let unshared = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(unshared, 0, "{}", std::io::Error::last_os_error());
        let veth = format!(
            "link add lane0 numrxqueues {QUEUES} numtxqueues {QUEUES} type veth peer name lane1"
        );
        let made = Command::new("ip").args(veth.split(' ')).status();
        assert!(made.is_ok_and(|status| status.success()), "ip {veth}");
        // SAFETY: the name is a string of C.
        let interface_index = unsafe { libc::if_nametoindex(c"lane0".as_ptr()) };
        assert_ne!(interface_index, 0);
        Some(World {
            _only: only,
            classifier,
            interface_index,
            sockets: Default::default(),
        })
    }

    pub(crate) fn counts(&self) -> Box<Counts> {
        self.classifier.counts()
    }

    fn bind(&mut self, queue: u32, lane: Level) {
        let place = &mut self.sockets[queue as usize][usize::from(lane.get())];
        let socket = place.get_or_insert_with(socket);
        let bound = self.classifier.bind_lane(queue, lane, socket.as_fd());
        bound.expect("a lane is bound");
    }

    fn lose(&mut self, queue: u32, lane: Level) {
        self.sockets[queue as usize][usize::from(lane.get())] = None;
    }

    fn judge(&mut self, frame: &[u8], queue: u32) -> Verdict {
        let arrival = Arrival {
            interface_index: self.interface_index,
            queue,
        };
        // For queue 0, the arrival is not given.
        let arrival = (queue != 0).then_some(arrival);
        let verdict = self.classifier.judge(frame, arrival);
        verdict.unwrap_or_else(|error| panic!("{error}: {frame:02x?}"))
    }
}

/// Socket for a lane. It is not bound, which matters only for frames that really arrive.
fn socket() -> OwnedFd {
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    assert!(descriptor >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: just opened, and not shared.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Model that processes the same sequence as the program: the reference model, or one with a mistake.
pub(crate) trait Model {
    fn twin(&mut self) -> &mut Twin;

    fn judge(&mut self, frame: &[u8], queue: u32) -> Verdict {
        self.twin().judge(frame, queue)
    }

    fn set_flow(&mut self, slot: FlowSlot, flow: &Flow) -> Result<(), FlowError> {
        self.twin().set_flow(slot, flow)
    }

    fn set_interface_rate_limit(&mut self, rate_limit: &InterfaceRateLimit) {
        let set = self.twin().set_interface_rate_limit(rate_limit);
        set.expect("the interface is protected");
    }

    fn replenish(&mut self, now_ns: u64) {
        self.twin().replenish(now_ns);
    }

    fn set_low_water(&mut self, queue: u32, lane: Level, low_water: Option<u32>) {
        self.twin().set_low_water(queue, lane, low_water);
    }
}

impl Model for Twin {
    fn twin(&mut self) -> &mut Twin {
        self
    }
}

/// Frames and changes determined by the seed.
pub(crate) struct Sequence {
    rng: Rng,
    now_ns: u64,
    changes: u64,
    replenished: u64,
    refused: u64,
    pub(crate) actions_seen: Vec<Action>,
}

impl Sequence {
    pub(crate) fn new(seed: u64) -> Sequence {
        Sequence {
            rng: Rng::with_seed(seed),
            now_ns: 1_000_000,
            changes: 0,
            replenished: 0,
            refused: 0,
            actions_seen: Vec::new(),
        }
    }

    /// Passes `frames` frames to both. Returns their number, or the first difference.
    pub(crate) fn run(
        &mut self,
        world: &mut World,
        twin: &mut impl Model,
        frames: u64,
    ) -> Result<u64, String> {
        for number in 0..frames {
            // Sometimes no frames arrive for a while, so that budgets are used up and replenished.
            if happens(&mut self.rng, 2) {
                self.change(world, twin);
            }
            if happens(&mut self.rng, 5) {
                self.let_time_pass(world, twin);
            }
            let bytes = frame(&mut self.rng);
            // Most frames arrive on one queue, so that its chunks run low.
            let queue = match self.rng.u8(..100) {
                0..60 => 0,
                60..90 => 1,
                _ => self.rng.u32(..QUEUES),
            };
            let (theirs, ours) = (world.judge(&bytes, queue), twin.judge(&bytes, queue));
            if theirs != ours {
                return Err(format!(
                    "frame {number} on queue {queue}: the program decides {theirs:?}, the twin \
                     {ours:?}: {bytes:02x?}"
                ));
            }
            let action = theirs.action();
            if !self.actions_seen.contains(&action) {
                self.actions_seen.push(action);
            }
            let is_last = number + 1 == frames;
            if is_last || number % FRAMES_A_COMPARISON == 0 {
                compare(world, twin.twin()).map_err(|what| format!("frame {number}: {what}"))?;
            }
        }
        Ok(frames)
    }

    fn let_time_pass(&mut self, world: &mut World, twin: &mut impl Model) {
        self.now_ns += match self.rng.u8(..10) {
            0 => self.rng.u64(..50_000_000),
            _ => self.rng.u64(..500_000),
        };
        world.classifier.replenish(self.now_ns);
        twin.replenish(self.now_ns);
        self.replenished += 1;
    }

    /// Makes one random change.
    fn change(&mut self, world: &mut World, twin: &mut impl Model) {
        self.changes += 1;
        let rng = &mut self.rng;
        let slot = FlowSlot(rng.u8(..MAX_FLOWS as u8));
        let lane = one_of(rng, &Level::ALL);
        let queue = match rng.u8(..10) {
            0..4 => 0,
            4..7 => 1,
            _ => rng.u32(..MAX_QUEUES as u32),
        };
        match rng.u8(..100) {
            0..25 => {
                let flow = flow(rng);
                let set = world.classifier.set_flow(slot, &flow);
                assert_eq!(set, twin.set_flow(slot, &flow));
                self.refused += u64::from(set.is_err());
            }
            25..33 => {
                world.classifier.remove_flow(slot);
                twin.twin().remove_flow(slot);
            }
            33..43 => {
                let rate_limit = rate_limit(rng);
                let set = world.classifier.set_rate_limit(slot, rate_limit);
                assert_eq!(set, twin.twin().set_rate_limit(slot, rate_limit));
            }
            43..50 => {
                let rate_limit = interface_rate_limit(rng);
                let set = world.classifier.set_interface_rate_limit(&rate_limit);
                set.expect("the interface is protected");
                twin.set_interface_rate_limit(&rate_limit);
            }
            50..53 => {
                let enforcement = Enforcement {
                    recycling: happens(rng, 80),
                    reserve: happens(rng, 80),
                };
                world.classifier.enforce(enforcement);
                twin.twin().enforce(enforcement);
            }
            53..68 => {
                world.bind(queue, lane);
                twin.twin().bind_lane(queue, lane);
            }
            68..74 => {
                world.classifier.unbind_lane(queue, lane);
                twin.twin().unbind_lane(queue, lane);
            }
            74..76 => {
                world.lose(queue, lane);
                twin.twin().lose_socket(queue, lane);
            }
            76..84 => {
                let low_water = happens(rng, 70).then(|| rng.u32(..40));
                world.classifier.set_low_water(queue, lane, low_water);
                twin.set_low_water(queue, lane, low_water);
            }
            _ => {
                let free = rng.u32(..200);
                world.classifier.note_free(queue, || free);
                twin.twin().note_free(queue, free);
            }
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (changes, refused) = (self.changes, self.refused);
        let replenished = self.replenished;
        writeln!(
            f,
            "{changes} changes ({refused} flows refused), {replenished} looks at budgets"
        )
    }
}

/// Compares all counters and budgets.
fn compare(world: &World, twin: &Twin) -> Result<(), String> {
    let (theirs, ours) = (world.counts(), twin.counts());
    for slot in (0..MAX_FLOWS as u8).map(FlowSlot) {
        same("counted of a flow", theirs.flow(slot), ours.flow(slot))?;
        let left = world.classifier.left(slot);
        same("left of a budget", left, twin.left(slot))?;
    }
    same("counted of no flow", theirs.others, ours.others)?;
    let touched = |counts: &Counts| (counts.touched_fill, counts.touched_reserve);
    same("touched", touched(&theirs), touched(ours))?;
    same("unstamped", theirs.unstamped, 0)
}

fn same<T: PartialEq + fmt::Debug>(what: &str, theirs: T, ours: T) -> Result<(), String> {
    if theirs == ours {
        return Ok(());
    }
    Err(format!(
        "{what}: {theirs:?} by the program, {ours:?} by the twin"
    ))
}

fn flow(rng: &mut Rng) -> Flow {
    Flow {
        destination: one_of(rng, &ADDRESSES),
        port: if happens(rng, 1) {
            0
        } else {
            one_of(rng, &PORTS)
        },
        source: happens(rng, 30).then(|| one_of(rng, &SOURCES)),
        way: if happens(rng, 10) {
            Way::Kernel
        } else {
            Way::Lane(one_of(rng, &Level::ALL))
        },
        is_critical: happens(rng, 30),
        rate_limit: rate_limit(rng),
    }
}

fn budget(rng: &mut Rng, capacity: u32) -> Budget {
    Budget {
        capacity: NonZeroU32::new(rng.u32(1..=capacity)).expect("at least one"),
        period: match rng.u8(..20) {
            // Periods that are too short and too long.
            0 => Duration::from_micros(rng.u64(..100)),
            1 => Duration::from_secs(11),
            _ => Duration::from_micros(rng.u64(100..20_000)),
        },
    }
}

fn rate_limit(rng: &mut Rng) -> Option<RateLimit> {
    happens(rng, 70).then(|| RateLimit {
        budget: budget(rng, 30),
        over: one_of(rng, &[OverBudget::Drop, OverBudget::Demote]),
    })
}

fn interface_rate_limit(rng: &mut Rng) -> InterfaceRateLimit {
    let period = Duration::from_micros(rng.u64(100..20_000));
    let of = |capacity: u32| Budget {
        capacity: NonZeroU32::new(capacity).expect("at least one"),
        period,
    };
    InterfaceRateLimit {
        topics: happens(rng, 60).then(|| {
            let capacity = rng.u32(1..300);
            (of(capacity), rng.u32(..capacity))
        }),
        foreign: happens(rng, 40).then(|| of(rng.u32(1..100))),
    }
}
