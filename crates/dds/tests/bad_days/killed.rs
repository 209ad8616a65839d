//! Tests of SIGKILL in any state: while a process opens lanes, sends, receives a flood, or closes. The kernel releases
//! program and queue, other traffic never stops, and the next start gets its lanes.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use isolane::{BuildError, Qos, UdpOptions, XdpOptions};

use crate::hosts::{eventually, ip};
use crate::network::{Host, INTERFACE, Segment};
use crate::world::{BULK, Block, CRITICAL, Side, assert_sockets_work, best_effort, lanes, with};

const VICTIM: &str = "ISOLANE_TEST_VICTIM";
const NAME: &str =
    "killed::whenever_it_is_killed_its_interface_is_free_and_the_next_start_has_lanes";
const KILLS: u32 = 100;
/// Line that the victim prints when its lanes are open.
const OPEN: &str = "victim: open";

/// Opens lanes, sends, receives and closes them, repeatedly.
fn be_killed() {
    let qos = |level| -> Qos { best_effort(level) };
    let round = || -> Result<(), BuildError> {
        let participant = lanes(XdpOptions::default()).build()?;
        let readers = [CRITICAL, BULK].map(|level| {
            participant.create_reader::<Block>(&format!("In{}", level.get()), &qos(level))
        });
        let [critical, bulk] = readers;
        let _readers = (critical?, bulk?);
        let writer = participant.create_writer::<Block>("Out", &qos(BULK))?;
        println!("{OPEN}");
        let begin = Instant::now();
        let mut number = 0;
        while begin.elapsed() < Duration::from_millis(60) {
            let bytes = vec![0; 500];
            number += 1;
            // A full history is also a state in which the process may be killed.
            let _ = writer.write(&Block { number, bytes });
            participant.run_for(Duration::from_micros(100));
        }
        Ok(())
    };
    loop {
        if let Err(error) = round() {
            println!("victim: {error}");
        }
    }
}

/// Victim process, and its output.
struct Victim {
    child: Child,
    says: Receiver<String>,
}

impl Victim {
    fn start(host: &Host) -> Victim {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command
            .args(["--exact", NAME, "--nocapture"])
            .env(VICTIM, "1");
        let mut child = host
            .enter(|| command.stdout(Stdio::piped()).spawn())
            .expect("the victim starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (said, says) = mpsc::channel();
        // The thread ends with the victim.
        thread::spawn(move || {
            let words = lines.map_while(Result::ok);
            words
                .take_while(|line| said.send(line.clone()).is_ok())
                .for_each(drop);
        });
        Victim { child, says }
    }

    /// Waits until the victim's lanes are open. On a machine that stalls, a queue may stay in use for longer than one
    /// attempt waits, so the victim tries again.
    fn wait_until_open(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        let mut said = Vec::new();
        while said.last().is_none_or(|line| line != OPEN) {
            let left = end.saturating_duration_since(Instant::now());
            match self.says.recv_timeout(left) {
                Ok(line) => {
                    let is_refused = line.starts_with("victim: ") && line != OPEN;
                    assert!(!is_refused || line.contains("is used by"), "{line}");
                    said.push(line);
                }
                Err(_) => panic!("it has no lanes: {said:#?}"),
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }
}

/// Sends datagrams to the groups of two levels, and to a reader.
fn disturb(host: &Host, end: &AtomicBool) {
    let socket = host.enter(|| UdpSocket::bind((host.address(), 0)));
    let socket = socket.expect("a socket");
    let side = Side::new(host, with(UdpOptions::default())).expect("sockets");
    let reader = side.reader("Out", &best_effort(BULK)).expect("a reader");
    while !end.load(Ordering::SeqCst) {
        for group in ["239.255.23.0:7401", "239.255.17.0:7401"] {
            for _ in 0..20 {
                let _ = host.enter(|| socket.send_to(b"RTPS, and nothing else", group));
            }
        }
        side.run(Duration::from_millis(2));
        while let Ok(Some(_)) = reader.take() {}
    }
}

#[test]
fn whenever_it_is_killed_its_interface_is_free_and_the_next_start_has_lanes() {
    if std::env::var_os(VICTIM).is_some() {
        return be_killed();
    }
    let mut segment = Segment::new();
    let [host, far] = [(); 2].map(|()| segment.add_host());
    let end = AtomicBool::new(false);
    struct AtEnd<'a>(&'a AtomicBool);
    impl Drop for AtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    thread::scope(|scope| {
        let _end = AtEnd(&end);
        scope.spawn(|| disturb(&far, &end));
        let mut seed = 0x2545_f491_4f6c_dd1d_u64;
        for number in 0..KILLS {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let victim = Victim::start(&host);
            // Every second victim is killed while it opens its first lanes. The others have opened them, which also
            // shows that the previous kill left no obstacle.
            let longest_ms = if number % 2 == 0 {
                100
            } else {
                victim.wait_until_open();
                250
            };
            thread::sleep(Duration::from_micros(seed % (1_000 * longest_ms)));
            victim.kill();
            eventually("the program is gone with its owner", || {
                let shown = host.enter(|| ip(&format!("-d link show dev {INTERFACE}")));
                (!shown.contains("xdp")).then_some(())
            });
            assert_sockets_work(&far, &host);
        }
        let last = Victim::start(&host);
        last.wait_until_open();
        last.kill();
    });
}
