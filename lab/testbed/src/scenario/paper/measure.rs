//! The two hosts inside the guest, and one measurement between them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isolane_bench::child::Program;
use isolane_bench::namespace::{Host, Testbed, TestbedConfig};
use isolane_bench::scenario::rtt::{self, Config};

use isolane_support::Result;

use crate::inside::devices::{self, Counters};
use crate::inside::{appeared, never_rest};

use super::cell::{self, Cell, Extent};
use super::tuning::{self, in_host};

/// The ends of round trips are children of the product's own command.
const PRODUCT: &str = "/usr/bin/isolane";
/// Its hidden command for them.
const CHILD: &str = "child";
/// The same without the right to a real-time priority: an application for which nobody has set up anything.
const ORDINARY: &str = "/usr/bin/setpriv";
const WITHOUT_RIGHT: [&str; 2] = ["--bounding-set", "-sys_nice"];
/// How often the busy loop turns before it looks whether it is over.
const TURNS_A_LOOK: u32 = 10_000;
/// The guest's devices, of host A and of host B.
const DEVICES: [&str; 2] = ["eth0", "eth1"];
/// The two hosts, ready to talk to each other, on a processor that never rests.
pub(super) fn hosts() -> Result<Testbed> {
    never_rest()?;
    for device in DEVICES {
        appeared(&Path::new("/sys/class/net").join(device))?;
    }
    let hosts = Testbed::of_devices(DEVICES, &TestbedConfig::default())?;
    wait_for_link(&hosts)?;
    Ok(hosts)
}

/// Devices that were just set up have no carrier for a while.
fn wait_for_link(hosts: &Testbed) -> Result<()> {
    for host in Host::BOTH {
        let line = format!("ip link show {}", host.interface());
        let since = Instant::now();
        while !in_host(hosts, host, &line)?.contains("LOWER_UP") {
            if since.elapsed() > Duration::from_secs(10) {
                return Err(format!("{} has no link", host.interface()).into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

/// What came of a cell, and its round trips in their order.
pub(super) fn cell(
    hosts: &Testbed,
    cell: Cell,
    extent: Extent,
) -> Result<(cell::Result, Vec<u64>)> {
    run(hosts, cell, &cell.config(extent), || {
        let mut tuned = Host::BOTH.iter().filter(|_| cell.path.is_tuned());
        tuned.try_for_each(|&host| tuning::order_threads(host))
    })
}

/// The same with another configuration; `set_up` when the ends are there.
pub(super) fn run(
    hosts: &Testbed,
    cell: Cell,
    config: &Config,
    set_up: impl FnOnce() -> Result<()>,
) -> Result<(cell::Result, Vec<u64>)> {
    let before = counters(hosts)?;
    let is_over = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        if cell.is_disturbed {
            scope.spawn(|| busy_loop(&is_over));
        }
        let outcome = rtt::run_between_prepared_hosts(hosts, &program_of(cell), config, || {
            set_up().map_err(|error| error.to_string())
        });
        is_over.store(true, Ordering::Relaxed);
        outcome
    })?;
    let after = counters(hosts)?;
    let frames = [0, 1].map(|host| devices::between(&before[host], &after[host]));
    let rtt_ns = outcome.rtt_ns.clone();
    Ok((cell::Result::of(cell, outcome, frames), rtt_ns))
}

/// Takes what time there is, at the ordinary priority, on the one processor that there is. A processor's hint
/// that it waits would make an emulator wait, and an emulated second last a minute.
fn busy_loop(is_over: &AtomicBool) {
    let mut turns = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..TURNS_A_LOOK {
            turns = std::hint::black_box(turns + 1);
        }
    }
}

fn counters(hosts: &Testbed) -> Result<[Counters; 2]> {
    let of = |host: Host| -> Result<Counters> {
        let line = format!("ethtool --statistics {}", host.interface());
        Ok(devices::counters(&in_host(hosts, host, &line)?))
    };
    Ok([of(Host::A)?, of(Host::B)?])
}
fn program_of(cell: Cell) -> Program {
    match cell.path.is_real_time() {
        true => Program::new(PRODUCT, &[CHILD]),
        false => Program::new(ORDINARY, &[&WITHOUT_RIGHT[..], &[PRODUCT, CHILD]].concat()),
    }
}
