//! Cost of dropping a flood's frame: by the classifier in the driver, against a full kernel socket.
//!
//!     cargo run --release -p isolane-datapath-xdp --example drop_cost [FRAMES] [ROUNDS]
//!
//! The kernel itself makes the frames (live frames of BPF_PROG_TEST_RUN) on one core and sends them into a veth. A NAPI
//! thread on another core receives them. The cost is that thread's CPU time divided by its frames, so no sender's
//! socket is included. The manners of dropping take turns; each row is the median of its rounds, with the lowest and
//! highest. Nanoseconds depend on the machine; compare ratios. Needs root; runs in a network namespace that ends with
//! the program.

#[path = "../../tests/hosts/mod.rs"]
mod hosts;
mod kernel;
#[path = "../../tests/udp_frame/mod.rs"]
mod udp_frame;

use std::error::Error;
use std::net::UdpSocket;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::time::Duration;

use isolane_datapath::flow::{Budget, InterfaceRateLimit, OverBudget, RateLimit};
use isolane_datapath_xdp::classifier::{
    AttachMode, Classifier, ClassifierConfig, Flow, FlowReason, FlowSlot, OthersReason,
    RedirectAction,
};
use isolane_wire::ethernet::MacAddress;
use isolane_wire::level::Level;

use self::hosts::{Namespace, index_of, ip};
use self::kernel::Program;
use self::udp_frame::udp_frame;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SENDER: &str = "flood";
const RECEIVER: &str = "drops";
const RECEIVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ADDRESS: [u8; 4] = [10, 9, 0, 1];
const PORT: u16 = 7_411;
const SLOT: FlowSlot = FlowSlot(0);

/// Frames of a turn, and turns. The kernel takes about 25 ms to start a turn.
const FRAMES: u32 = 300_000;
const ROUNDS: usize = 5;

/// Minimum percentage of a turn's frames that must be dropped in the row's manner.
const PURE_PERCENT: u64 = 99;

/// Manner of dropping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Socket,
    FirstInstruction,
    OthersBudget,
    FlowBudget,
    Recycling,
    PassedToSocket,
}
use Manner::*;

const WAYS: [(Manner, &str); 6] = [
    (Socket, "kernel UDP socket, full"),
    (FirstInstruction, "program: first instruction"),
    (
        OthersBudget,
        "classifier: parsed, no flow, budget of others",
    ),
    (FlowBudget, "classifier: parsed, flow found, its budget"),
    (Recycling, "classifier: parsed, flow found, no buffers"),
    (PassedToSocket, "classifier passes, socket full"),
];

/// Setup of a turn, removed at its end.
#[derive(Default)]
struct Setup {
    classifier: Option<Classifier>,
    _program: Option<(Program, Program)>,
    _socket: Option<OwnedFd>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let frames = arguments.next().transpose()?.unwrap_or(FRAMES);
    let rounds = arguments
        .next()
        .transpose()?
        .map_or(ROUNDS, |rounds| rounds as usize);

    Namespace::new()?.enter();
    kernel::show_own_interfaces()?;
    ip(&format!(
        "link add {SENDER} type veth peer name {RECEIVER} address 02:00:00:00:00:02"
    ));
    ip(&format!("address add 10.9.0.1/24 dev {RECEIVER}"));
    for interface in [SENDER, RECEIVER] {
        ip(&format!("link set {interface} up"));
    }
    kernel::pin(0, 0)?;
    // Never read, so it is soon full.
    let socket = UdpSocket::bind((std::net::Ipv4Addr::from(ADDRESS), PORT))?;
    let send = Program::that_sends(index_of(SENDER))?;

    let mut costs = vec![Vec::new(); WAYS.len()];
    for _ in 0..rounds.max(1) {
        for ((way, _), costs) in WAYS.iter().zip(&mut costs) {
            costs.push(turn(*way, &send, frames)?);
        }
    }
    drop(socket);
    print(&mut costs, frames);
    Ok(())
}

/// Runs one turn; returns nanoseconds per frame.
fn turn(way: Manner, send: &Program, frames: u32) -> Result<f64> {
    kernel::receive_by_napi(RECEIVER, way == Socket)?;
    let setup = set_up(way)?;
    let thread = kernel::napi_thread(RECEIVER)?;
    kernel::pin(thread, 1)?;
    let frame = frame();
    // Fills the socket and warms the caches.
    send.run_live(&frame, frames / 10 + 1)?;
    settle()?;

    let dropped_before = dropped(way, &setup)?;
    let (frames_before, time_before) = (kernel::received(RECEIVER)?, kernel::on_cpu_ns(thread)?);
    send.run_live(&frame, frames)?;
    settle()?;
    let took = kernel::received(RECEIVER)? - frames_before;
    let time = kernel::on_cpu_ns(thread)? - time_before;
    let dropped =
        dropped(way, &setup)?.map_or(took, |dropped| dropped - dropped_before.unwrap_or_default());
    if took == 0 || dropped * 100 < took * PURE_PERCENT {
        return Err(format!("{way:?}: of {took} frames {dropped} were dropped that way").into());
    }
    Ok(time as f64 / took as f64)
}

/// Waits until the ring is empty.
fn settle() -> Result<()> {
    let mut last = kernel::received(RECEIVER)?;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let now = kernel::received(RECEIVER)?;
        if now == last {
            return Ok(());
        }
        last = now;
    }
}

fn set_up(way: Manner) -> Result<Setup> {
    let interface = index_of(RECEIVER);
    let mut setup = Setup::default();
    match way {
        Socket => return Ok(setup),
        FirstInstruction => {
            let program = Program::that_drops()?;
            setup._program = Some((program.attach(interface)?, program));
            return Ok(setup);
        }
        _ => {}
    }
    let mut classifier = Classifier::load(&ClassifierConfig::default())?;
    let budget = Budget {
        capacity: NonZeroU32::MIN,
        period: Duration::from_secs(10),
    };
    let mut flow = Flow {
        destination: ADDRESS,
        port: PORT,
        source: None,
        action: RedirectAction::Lane(Level::MIN),
        is_critical: false,
        rate_limit: None,
    };
    match way {
        FlowBudget => {
            flow.rate_limit = Some(RateLimit {
                budget,
                over: OverBudget::Drop,
            });
        }
        Recycling => {
            let socket = af_xdp_socket()?;
            classifier.bind_lane(0, Level::MIN, socket.as_fd())?;
            classifier.set_low_water(0, Level::MIN, Some(0));
            setup._socket = Some(socket);
        }
        OthersBudget => classifier.set_interface_rate_limit(&InterfaceRateLimit {
            topics: None,
            foreign: Some(budget),
        })?,
        _ => {}
    }
    if way != OthersBudget {
        classifier.set_flow(SLOT, &flow)?;
    }
    classifier.attach(interface, AttachMode::Native)?;
    setup.classifier = Some(classifier);
    Ok(setup)
}

/// Opens a lane's socket; no frame reaches it.
fn af_xdp_socket() -> Result<OwnedFd> {
    // SAFETY: no memory is passed.
    let descriptor = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Frames dropped so far in the row's manner; `None` where no other outcome is possible.
fn dropped(way: Manner, setup: &Setup) -> Result<Option<u64>> {
    let counts = setup.classifier.as_ref().map(Classifier::counts);
    let of_flow = |reason| counts.as_ref().map(|counts| counts.flow(SLOT).get(reason));
    Ok(match way {
        FirstInstruction => None,
        Socket | PassedToSocket => Some(kernel::refused_by_sockets(PORT)?),
        OthersBudget => counts.map(|counts| counts.others.get(OthersReason::OverOthers)),
        FlowBudget => of_flow(FlowReason::OverBudget),
        Recycling => of_flow(FlowReason::Recycled),
    })
}

fn print(costs: &mut [Vec<f64>], frames: u32) {
    let rounds = costs.first().map_or(0, Vec::len);
    println!("nanoseconds of the receiving thread a dropped frame of 64 B payload;");
    println!("{rounds} rounds of {frames} frames, interleaved: median (lowest to highest)\n");
    let median = |costs: &[f64]| costs[costs.len() / 2];
    costs
        .iter_mut()
        .for_each(|costs| costs.sort_by(f64::total_cmp));
    let socket = median(&costs[0]);
    for ((_, name), costs) in WAYS.iter().zip(costs) {
        let (low, high) = (costs[0], costs[costs.len() - 1]);
        let cost = median(costs);
        let ratio = socket / cost;
        println!("{name:<48} {cost:>6.0} ({low:.0} to {high:.0})  socket / this: {ratio:.1}");
    }
}

/// RTPS message of 64 bytes to the port.
fn frame() -> Vec<u8> {
    let mut payload = [0; 64];
    payload[..4].copy_from_slice(b"RTPS");
    let device = MacAddress(RECEIVER_MAC);
    udp_frame([10, 9, 0, 2], device, ADDRESS, PORT, &payload)
}
