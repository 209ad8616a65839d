//! Cost of dropping a flood's frame: by the classifier in the driver, against a full kernel socket. `cargo xtask drop-cost`
//! runs this example and makes a table.
//!
//!     cargo run --release -p isolane-datapath-xdp --example drop_cost FRAMES ROUNDS MANNER...
//!
//! The kernel itself makes the frames (live frames of BPF_PROG_TEST_RUN) on one core and sends them into a veth. A NAPI
//! thread on another core receives them. The cost is that thread's CPU time divided by its frames, so no sender's
//! socket is included. The manners of dropping take turns; each turn prints a line `MANNER NANOSECONDS`. Nanoseconds
//! depend on the machine; compare ratios. Needs root; runs in a network namespace that ends with the program.

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

/// Minimum percentage of a turn's frames that must be dropped in its manner.
const PURE_PERCENT: u64 = 99;

/// Manner of dropping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// A kernel UDP socket that is full.
    Socket,
    /// An XDP program, in its first instruction.
    FirstInstruction,
    /// The classifier: no flow, and the budget for other traffic is used up.
    OthersBudget,
    /// The classifier: a flow, and its budget is used up.
    FlowBudget,
    /// The classifier: a flow, and its lane has no free buffer.
    NoBuffer,
    /// A full socket, after the classifier has passed the frame.
    PassedToSocket,
}
use Manner::*;

const MANNERS: [(&str, Manner); 6] = [
    ("socket", Socket),
    ("first-instruction", FirstInstruction),
    ("others-budget", OthersBudget),
    ("flow-budget", FlowBudget),
    ("no-buffer", NoBuffer),
    ("passed-to-socket", PassedToSocket),
];

const USAGE: &str = "usage: drop_cost FRAMES ROUNDS MANNER...";

/// Setup of a turn, removed at its end.
#[derive(Default)]
struct Setup {
    classifier: Option<Classifier>,
    _program: Option<(Program, Program)>,
    _socket: Option<OwnedFd>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || -> Result<u32> { Ok(arguments.next().ok_or(USAGE)?.parse()?) };
    let (frames, rounds) = (number()?, number()?);
    let manners: Vec<_> = arguments
        .map(|name| {
            MANNERS
                .into_iter()
                .find(|(known, _)| *known == name)
                .ok_or_else(|| {
                    let known = MANNERS.map(|(known, _)| known).join(", ");
                    format!("no manner {name:?}; known: {known}")
                })
        })
        .collect::<std::result::Result<_, _>>()?;

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

    for _ in 0..rounds {
        for &(name, manner) in &manners {
            println!("{name} {:.1}", turn(manner, &send, frames)?);
        }
    }
    drop(socket);
    Ok(())
}

/// Runs one turn; returns nanoseconds per frame.
fn turn(manner: Manner, send: &Program, frames: u32) -> Result<f64> {
    kernel::receive_by_napi(RECEIVER, manner == Socket)?;
    let setup = set_up(manner)?;
    let thread = kernel::napi_thread(RECEIVER)?;
    kernel::pin(thread, 1)?;
    let frame = frame();
    // Fills the socket and warms the caches.
    send.run_live(&frame, frames / 10 + 1)?;
    settle()?;

    let dropped_before = dropped(manner, &setup)?;
    let (frames_before, time_before) = (kernel::received(RECEIVER)?, kernel::on_cpu_ns(thread)?);
    send.run_live(&frame, frames)?;
    settle()?;
    let took = kernel::received(RECEIVER)? - frames_before;
    let time = kernel::on_cpu_ns(thread)? - time_before;
    let dropped = dropped(manner, &setup)?
        .map_or(took, |dropped| dropped - dropped_before.unwrap_or_default());
    if took == 0 || dropped * 100 < took * PURE_PERCENT {
        return Err(format!("{manner:?}: of {took} frames {dropped} were dropped that way").into());
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

fn set_up(manner: Manner) -> Result<Setup> {
    let interface = index_of(RECEIVER);
    let mut setup = Setup::default();
    match manner {
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
    match manner {
        FlowBudget => {
            flow.rate_limit = Some(RateLimit {
                budget,
                over: OverBudget::Drop,
            });
        }
        NoBuffer => {
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
    if manner != OthersBudget {
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

/// Frames dropped so far in this manner; `None` where no other outcome is possible.
fn dropped(manner: Manner, setup: &Setup) -> Result<Option<u64>> {
    let counts = setup.classifier.as_ref().map(Classifier::counts);
    let of_flow = |reason| counts.as_ref().map(|counts| counts.flow(SLOT).get(reason));
    Ok(match manner {
        FirstInstruction => None,
        Socket | PassedToSocket => Some(kernel::refused_by_sockets(PORT)?),
        OthersBudget => counts.map(|counts| counts.others.get(OthersReason::OverOthers)),
        FlowBudget => of_flow(FlowReason::OverBudget),
        NoBuffer => of_flow(FlowReason::Recycled),
    })
}

/// RTPS message of 64 bytes to the port.
fn frame() -> Vec<u8> {
    let mut payload = [0; 64];
    payload[..4].copy_from_slice(b"RTPS");
    let device = MacAddress(RECEIVER_MAC);
    udp_frame([10, 9, 0, 2], device, ADDRESS, PORT, &payload)
}
